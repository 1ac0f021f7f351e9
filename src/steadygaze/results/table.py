"""The columns of an export: one schema for maps, refinements and searches, and blocks of rows in it. Writes nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

INTEGER, NUMBER, TEXT, POINTS = "int64", "float64", "string", "list of lists of float64"
"""The types of columns."""

BLOCK = 8192
"""Rows that are made and written at a time, so that memory does not grow with their number."""


@dataclass(frozen=True)
class Column:
    """A column: its name, type, unit, and what it holds. `is_optional`: a row may have nothing there."""

    name: str
    kind: str
    unit: str
    meaning: str
    is_optional: bool = False


Block = dict[str, Any]
"""Columns of some rows, in the order of the schema: arrays for numbers, lists for texts and points.

In an array of numbers NaN stands for nothing, in an array of integers −1, in a list None.
"""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one kind: how many, and what makes the rows from one to another as a block without `id`."""

    count: int
    make: Callable[[int, int], Block]


@dataclass(frozen=True, eq=False)
class Table:
    """What an export writes: parts one after another, and facts about all of them.

    dimension is the number of parameters; `facts` are plain data, with texts that come from users.
    """

    parts: tuple[Part, ...]
    dimension: int
    facts: Mapping[str, Any]

    def __len__(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The schema."""
        return make_columns(self.dimension)

    def blocks(self) -> Iterator[Block]:
        """The rows, some at a time; each block has the columns of the schema in their order."""
        first = 0
        names = [column.name for column in self.columns]
        for part in self.parts:
            for start in range(0, part.count, BLOCK):
                stop = min(start + BLOCK, part.count)
                block = part.make(start, stop) | {"id": np.arange(first, first + stop - start)}
                yield {name: block[name] for name in names}
                first += stop - start


def make_columns(dimension: int) -> tuple[Column, ...]:
    """The columns for so many parameters.

    >>> [column.name for column in make_columns(1)][-5:]
    ['delta', 'low_1', 'high_1', 'inside_1', 'vertices']
    """
    axes = range(1, dimension + 1)
    return (
        Column("id", INTEGER, "", "number of the row, from 0"),
        Column("kind", TEXT, "", "`region` or `box` (of a refinement, known by bounds alone)"),
        Column("number", INTEGER, "", "number of the region (as in `result.regions`) or box that the row is, or is in"),
        Column("classification", TEXT, "", "`CR`, `MR`, `CB` (both occur) or `undecided`", is_optional=True),
        Column("attention", TEXT, "", "`AR`, `IR`, `AB` (both occur) or `undecided`", is_optional=True),
        Column("winner", INTEGER, "class", "the class that wins everywhere in it, where that is one", is_optional=True),
        Column("share", NUMBER, "of the domain", "its length, area or volume"),
        Column(
            "label_open", NUMBER, "of the domain", "the part of `share` where the label is not decided",
            is_optional=True,
        ),
        Column(
            "attention_open", NUMBER, "of the domain", "the part of `share` where the attention is not decided",
            is_optional=True,
        ),
        Column("margin_low", NUMBER, "logit", "no margin (f_label − largest other logit) is below", is_optional=True),
        Column("margin_high", NUMBER, "logit", "no margin is above", is_optional=True),
        Column(
            "inconsistency_low", NUMBER, "as δ", "no inconsistency in the region or box is below", is_optional=True
        ),
        Column(
            "inconsistency_high", NUMBER, "as δ", "no inconsistency in the region or box is above", is_optional=True
        ),
        Column("delta", NUMBER, "as δ", "the threshold that `attention` is about"),
        *(Column(f"low_{axis}", NUMBER, "theta", f"smallest value of parameter {axis}") for axis in axes),
        *(Column(f"high_{axis}", NUMBER, "theta", f"largest value of parameter {axis}") for axis in axes),
        *(Column(f"inside_{axis}", NUMBER, "theta", f"parameter {axis} of a theta inside") for axis in axes),
        Column(
            "vertices", POINTS, "theta", "the corners: the two ends with one parameter, counter-clockwise with two, in "
            "no order with three and more",
        ),
    )  # fmt: skip


def shape_columns(corners: np.ndarray, starts: np.ndarray, inside: np.ndarray) -> Block:
    """The columns that say where rows are: corners (V, d), of row r starts[r]:starts[r+1]; thetas inside (R, d)."""
    axes = range(inside.shape[1])
    low, high = (end.reduceat(corners, starts[:-1], axis=0) for end in (np.minimum, np.maximum))
    points = corners.tolist()
    return {
        **{f"low_{axis + 1}": low[:, axis] for axis in axes},
        **{f"high_{axis + 1}": high[:, axis] for axis in axes},
        **{f"inside_{axis + 1}": inside[:, axis] for axis in axes},
        "vertices": [points[first:last] for first, last in pairwise(starts.tolist())],
    }
