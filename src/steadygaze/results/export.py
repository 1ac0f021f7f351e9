"""Exports: the schema of columns, the rows of regions, and the writers of CSV, GeoJSON and Parquet.

Boxes and visited regions make their own rows. Rows are made and written in blocks; the file appears when complete.
Reading a written number gives the same float. CSV holds no text from users, so no cell can be a formula; the other two
formats carry such text beside the rows, as JSON.
"""

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import to_builtins

from ..compound import Compound
from ..errors import OptionError, did_you_mean, not_writable
from ..labels import Kept, Label
from ..polytopes import Polytopes
from .answer import Answer
from .directory import atomic_file, check_file

if TYPE_CHECKING:
    from .result import Result

INTEGER, NUMBER, TEXT, POINTS = "int64", "float64", "string", "list of lists of float64"
"""The types of columns."""

BLOCK = 8192
"""Rows made and written at a time: memory does not grow with their number."""


@dataclass(frozen=True)
class Column:
    """A column: its name, type, unit and meaning. `is_optional`: a cell may be empty."""

    name: str
    kind: str
    unit: str
    meaning: str
    is_optional: bool = False


Block = dict[str, Any]
"""Columns of some rows, in the order of the schema: arrays for numbers, lists for texts and points.

An empty cell is NaN in an array of numbers, −1 in an array of integers, None in a list.
"""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one kind: their number, and the function that makes a range of them as a block without `id`."""

    count: int
    make: Callable[[int, int], Block]


@dataclass(frozen=True, eq=False)
class Table:
    """The content of an export: parts one after another, and facts about all of them.

    dimension is the number of parameters; `facts` are plain data and contain text from users.
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
    """The columns for a number of parameters.

    >>> [column.name for column in make_columns(1)][-5:]
    ['delta', 'low_1', 'high_1', 'inside_1', 'vertices']
    """
    axes = range(1, dimension + 1)
    return (
        Column("id", INTEGER, "", "number of the row, from 0"),
        Column("kind", TEXT, "", "`region`, or `box` of a refinement (decided or left open by bounds alone)"),
        Column("number", INTEGER, "", "number of the region (as in `result.regions`) or box of the row"),
        Column("classification", TEXT, "", "`CR`, `MR`, `CB` (both occur) or `undecided`", is_optional=True),
        Column("attention", TEXT, "", "`AR`, `IR`, `AB` (both occur) or `undecided`", is_optional=True),
        Column("winner", INTEGER, "class", "the class that wins on the whole row, if there is one", is_optional=True),
        Column("share", NUMBER, "of the domain", "its length, area or volume"),
        Column(
            "label_open", NUMBER, "of the domain", "the part of `share` where the label is not decided",
            is_optional=True,
        ),
        Column(
            "attention_open", NUMBER, "of the domain", "the part of `share` where the attention is not decided",
            is_optional=True,
        ),
        Column(
            "margin_low", NUMBER, "logit", "lower bound of the margin (f_label − largest other logit)", is_optional=True
        ),
        Column("margin_high", NUMBER, "logit", "upper bound of the margin", is_optional=True),
        Column(
            "inconsistency_low", NUMBER, "as δ", "lower bound of the inconsistency in region or box", is_optional=True
        ),
        Column(
            "inconsistency_high", NUMBER, "as δ", "upper bound of the inconsistency in region or box", is_optional=True
        ),
        Column("delta", NUMBER, "as δ", "the largest loss at which `attention` is AR"),
        *(Column(f"low_{axis}", NUMBER, "theta", f"smallest value of parameter {axis}") for axis in axes),
        *(Column(f"high_{axis}", NUMBER, "theta", f"largest value of parameter {axis}") for axis in axes),
        *(Column(f"inside_{axis}", NUMBER, "theta", f"parameter {axis} of a theta inside") for axis in axes),
        Column(
            "vertices", POINTS, "theta", "the corners: the two ends with one parameter, counter-clockwise with two, in "
            "no order with three and more",
        ),
    )  # fmt: skip


def shape_columns(corners: np.ndarray, starts: np.ndarray, inside: np.ndarray) -> Block:
    """The columns with the places of rows: corners (V, d), where row r has starts[r]:starts[r+1]; inside (R, d)."""
    axes = range(inside.shape[1])
    low, high = (end.reduceat(corners, starts[:-1], axis=0) for end in (np.minimum, np.maximum))
    points = corners.tolist()
    return {
        **{f"low_{axis + 1}": low[:, axis] for axis in axes},
        **{f"high_{axis + 1}": high[:, axis] for axis in axes},
        **{f"inside_{axis + 1}": inside[:, axis] for axis in axes},
        "vertices": [points[first:last] for first, last in pairwise(starts.tolist())],
    }


WHATS = ("regions", "pieces")
LABELS, ATTENTIONS = np.array([Label.CR, Label.UNDECIDED, Label.MR]), np.array([Label.AR, Label.UNDECIDED, Label.IR])
"""Words for `Kept` codes."""

NOTE = "Coordinates are perturbation parameters (theta), not degrees of longitude and latitude."


def make_table(result: "Result", what: str) -> Table:
    """The rows of a result, with the facts about it: its units, or their pieces."""
    question, described = result.question, result.question.describe()
    facts = {
        "note": NOTE,
        "rows": check_what(what),
        "property": question.property.value,
        "label": question.label,
        "class_names": list(question.names),
        **{name: to_builtins(getattr(described, name)) for name in ("domain", "model", "image", "attention")},
        "method": result.method,
        "delta": {"text": result.stated.text, "value": result.answer.delta, "map_size": question.base},
        "complete": result.is_complete,
        "sliver_share": result.sliver_share,
    }
    return Table(result.tiling.parts(result.answer, what), question.perturbed.domain.dimension, facts)


def check_what(what: str) -> str:
    """The kind of rows, if it is one; OptionError otherwise."""
    if what not in WHATS:
        raise OptionError(f"unknown --what {what!r}; expected {' or '.join(WHATS)}.{did_you_mean(what, WHATS)}")
    return what


def region_part(answer: Answer, what: str, *, is_measured: bool) -> Part:
    """The regions of an answer, or the pieces of them."""
    return _regions(answer, is_measured) if what == "regions" else _pieces(answer, is_measured)


def _regions(answer: Answer, is_measured: bool) -> Part:
    answers, joint = answer.answers, answer.joint
    found, count = answers.regions, len(answers.regions)
    owner = joint.pieces.region
    slack, winner = np.zeros(count), np.full(count, -1)
    np.maximum.at(slack, owner, joint.pieces.slack)
    winner[owner] = joint.pieces.winner
    has_others = np.zeros(count, dtype=bool)
    has_others[owner[winner[owner] != joint.pieces.winner]] = True
    classification = answer.classifications
    winner[has_others | ~np.isin(classification, (Label.CR, Label.MR))] = -1
    label_open, attention_open = (np.bincount(owner, open_, count) for open_ in _open_shares(answer, is_measured))

    def make(start: int, stop: int) -> Block:
        rows = np.arange(start, stop)
        return {
            "kind": ["region"] * len(rows),
            "number": rows,
            "classification": classification[rows].tolist(),
            "attention": answer.attentions[rows].tolist() if is_measured else [None] * len(rows),
            "winner": winner[rows],
            "share": found.polytopes.volumes[rows],
            "label_open": label_open[rows],
            "attention_open": attention_open[rows],
            **_bounds(answer, found.polytopes.take(rows), rows, slack[rows], is_measured),
            **shape_of(answers.compound, found.polytopes.take(rows)),
        }

    return Part(count, make)


def _pieces(answer: Answer, is_measured: bool) -> Part:
    joint, compound = answer.joint, answer.answers.compound
    label, attention = joint.label_codes, joint.attention_codes
    winner = np.where(label == Kept.UNKNOWN, -1, joint.pieces.winner)
    label_open, attention_open = _open_shares(answer, is_measured)

    def make(start: int, stop: int) -> Block:
        rows = np.arange(start, stop)
        region, polytopes = joint.pieces.region[rows], joint.polytopes.take(rows)
        return {
            "kind": ["region"] * len(rows),
            "number": region,
            "classification": LABELS[label[rows]].tolist(),
            "attention": ATTENTIONS[attention[rows]].tolist() if is_measured else [None] * len(rows),
            "winner": winner[rows],
            "share": joint.polytopes.volumes[rows],
            "label_open": label_open[rows],
            "attention_open": attention_open[rows],
            **_bounds(answer, polytopes, region, joint.pieces.slack[rows], is_measured),
            **shape_of(compound, polytopes),
        }

    return Part(len(joint.pieces), make)


def _open_shares(answer: Answer, is_measured: bool) -> tuple[np.ndarray, np.ndarray]:
    """The shares (P,) of the domain in every piece where the label, and where the attention, is not decided."""
    joint = answer.joint
    volumes = joint.polytopes.volumes
    label, attention = (np.minimum(strip, volumes) for strip in (joint.label_strip, joint.attention_strip))
    if not is_measured:
        return label, np.full(len(volumes), np.nan)
    return label, np.where(joint.attention == Kept.UNKNOWN, volumes, attention)


def _bounds(
    answer: Answer, polytopes: Polytopes, region: np.ndarray, slack: np.ndarray, is_measured: bool
) -> dict[str, Any]:
    """Proved bounds of margin and inconsistency for shapes (N of them) in regions (N,), and the threshold."""
    low, high = _margin_bounds(answer, polytopes, region)
    reach = answer.labels.reach[region] if is_measured else np.full((len(region), 2), np.nan)
    return {
        "margin_low": low - slack,
        "margin_high": high + slack,
        "inconsistency_low": np.maximum(reach[:, 0], 0.0),
        "inconsistency_high": reach[:, 1],
        "delta": np.full(len(region), answer.delta),
    }


def _margin_bounds(answer: Answer, polytopes: Polytopes, region: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest margin, and an upper bound of the margin: the smallest, over the rivals, of the largest leads."""
    found, label = answer.answers.regions, answer.answers.pieces.label
    points = np.hstack([polytopes.points, np.ones((len(polytopes.points), 1))])
    logits = np.einsum("nd,ndk->nk", points, found.logits[region][polytopes.owner])
    leads = logits[:, label, None] - np.delete(logits, label, axis=1)
    starts = polytopes.starts[:-1]
    return np.minimum.reduceat(leads.min(axis=1), starts), np.maximum.reduceat(leads, starts, axis=0).min(axis=1)


def shape_of(compound: Compound, polytopes: Polytopes) -> Block:
    """The columns with the places of shapes in t, in theta."""
    points, starts = polytopes.points, polytopes.starts
    if compound.domain.dimension == 1:
        ends = np.stack(polytopes.extent(0), axis=1)
        thetas = compound.to_theta(np.stack([ends.ravel(), np.zeros(ends.size)], axis=1))
        starts = 2 * np.arange(len(polytopes) + 1)
    else:
        thetas = compound.to_theta(points)
    return shape_columns(thetas, starts, compound.to_theta(polytopes.centres))


MOST_DRAWN = 2
"""Parameters up to which rows are shapes in the plane."""

ENDINGS = {"csv": ".csv", "geojson": ".geojson", "parquet": ".parquet"}


def check_format(format: str, dimension: int) -> str:
    """The format, if it can hold shapes of so many parameters and its library is installed; OptionError otherwise."""
    if format not in ENDINGS:
        raise OptionError(f"unknown --format {format!r}; expected {', '.join(ENDINGS)}.{did_you_mean(format, ENDINGS)}")
    if format == "geojson" and dimension > MOST_DRAWN:
        raise OptionError(
            f"GeoJSON holds shapes of one or two parameters, this result has {dimension}; use --format csv or "
            "parquet, which hold any number"
        )
    if format == "parquet":
        import_pyarrow()
    return format


def write_table(table: Table, path: str | Path, format: str, *, force: bool = False) -> Path:
    """Write a table to a file, atomically; refuses an existing file without `force`."""
    write = {"csv": _write_csv, "geojson": _write_geojson, "parquet": _write_parquet}[
        check_format(format, table.dimension)
    ]
    target = check_file(path, force=force)
    try:
        with atomic_file(target) as new:
            write(table, new)
    except OSError as error:
        raise not_writable(path, error) from None
    return target


def _write_csv(table: Table, path: Path) -> None:
    with path.open("w", encoding="ascii", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([column.name for column in table.columns])
        for block in table.blocks():
            writer.writerows(zip(*(plain_cells(column, block, _csv_number) for column in table.columns), strict=True))


def _csv_number(value: float) -> Any:
    return "" if math.isnan(value) else value


def _write_geojson(table: Table, path: Path) -> None:
    """A FeatureCollection as in RFC 7946, whose positions are thetas; a foreign member holds the question."""
    names = [column.name for column in table.columns if column.kind != POINTS]
    columns = [column for column in table.columns if column.kind != POINTS]
    with path.open("w", encoding="ascii") as stream:
        facts = json.dumps(dict(table.facts), allow_nan=False)
        stream.write(f'{{"type": "FeatureCollection", "steadygaze": {facts}, "features": [')
        separator = "\n"
        for block in table.blocks():
            rows = zip(*(plain_cells(column, block, _json_number) for column in columns), strict=True)
            for row, corners in zip(rows, block["vertices"], strict=True):
                properties = dict(zip(names, row, strict=True))
                feature = {"type": "Feature", "id": properties["id"], "geometry": planar_geometry(corners)}
                stream.write(separator + json.dumps(feature | {"properties": properties}, allow_nan=False))
                separator = ",\n"
        stream.write("\n]}\n")


def _json_number(value: float) -> Any:
    return value if math.isfinite(value) else None


def planar_geometry(corners: list[list[float]]) -> dict[str, Any]:
    """A polygon with a closed ring; with one parameter a line on the first axis, because positions have two numbers.

    >>> planar_geometry([[0.25], [0.5]])
    {'type': 'LineString', 'coordinates': [[0.25, 0.0], [0.5, 0.0]]}
    """
    if len(corners[0]) == 1:
        return {"type": "LineString", "coordinates": [[end, 0.0] for (end,) in corners]}
    return {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}


def _write_parquet(table: Table, path: Path) -> None:
    _, parquet = import_pyarrow()
    with parquet.ParquetWriter(path, arrow_schema(table)) as writer:
        for block in table.blocks():
            writer.write_table(arrow_block(table, block))


def arrow_schema(table: Table) -> Any:
    """The columns of a table as a schema of Arrow, with the facts as metadata."""
    arrow, _ = import_pyarrow()
    kinds = {
        INTEGER: arrow.int64(),
        NUMBER: arrow.float64(),
        TEXT: arrow.string(),
        POINTS: arrow.list_(arrow.list_(arrow.float64())),
    }
    fields = [arrow.field(column.name, kinds[column.kind], column.is_optional) for column in table.columns]
    return arrow.schema(fields, metadata={"steadygaze": json.dumps(dict(table.facts), allow_nan=False)})


def arrow_block(table: Table, block: Block) -> Any:
    """Some rows of a table as a table of Arrow."""
    arrow, _ = import_pyarrow()
    arrays = {
        column.name: plain_cells(column, block, lambda value: None if math.isnan(value) else value)
        for column in table.columns
    }
    return arrow.Table.from_pydict(arrays, schema=arrow_schema(table))


def plain_cells(column: Column, block: Block, number: Callable[[float], Any]) -> list[Any]:
    """The cells of a column as plain values, numbers converted by `number`; an empty cell is None."""
    values = block[column.name]
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if column.kind == NUMBER:
        return [number(value) for value in values]
    if column.kind == INTEGER:
        return [None if value < 0 else value for value in values]
    return list(values)


def import_pyarrow() -> tuple[Any, Any]:
    """The library of Arrow tables and Parquet files, an extra of the installation."""
    try:
        import pyarrow  # noqa: PLC0415 (large, and needed for one format only)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise OptionError(
            "pyarrow is not installed, but Parquet and Arrow tables need it; install the extra `export` (.venv/bin/pip "
            "install -e '.[export]' in the clone), or use --format csv"
        ) from None
    return pyarrow, parquet
