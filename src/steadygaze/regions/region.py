"""Sets of regions (shapes with the cut behind every facet, patterns, affine logits), and joining several sets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from ..accuracy import Accuracy
from ..errors import InternalError
from ..labels import Stop
from ..polytopes import Cut, Polytopes, join_polytopes
from ..polytopes.protocol import join_rows
from .patterns import PatternTable, distinct_rows, join_tables

_JOINED = ("polytopes", "cell", "pattern", "patterns", "clip", "clips", "doubtful")
"""Arrays to join row by row, like the logits."""


@dataclass(frozen=True, eq=False)
class RegionSet:
    """All regions that a run has found: R polytopes, each with the pattern and the logits that hold on it.

    cuts (E, 3): kind and details (see `Cut`). cell (R,) is the knot cell. pattern (R,) indexes patterns (P, bytes), the
    classifier's packed bits; clip (R,) indexes clips (Q, bytes), the packed bits of the clip. logits (R, D+1, K): slope
    in t and constant. `stopped` is the reason why a map is partial. doubtful (R,) is 1 if the value of some neuron of
    the classifier is only rounding, or exactly zero, on the whole region, or if rounding may decide a window there: the
    pattern, and with it the attention map, is then not certain. `accuracy` holds the measures that bound all errors.
    """

    polytopes: Polytopes
    cuts: np.ndarray
    cell: np.ndarray
    pattern: np.ndarray
    patterns: PatternTable
    clip: np.ndarray
    clips: np.ndarray
    logits: np.ndarray
    doubtful: np.ndarray
    accuracy: Accuracy
    stopped: Stop | None

    def __len__(self) -> int:
        return len(self.polytopes)

    @cached_property
    def pattern_count(self) -> int:
        """The number of regions by their patterns: signs of ReLUs and winners of windows, within a knot cell.

        Near a point where three entries of a window are equal, a straight cut between two of them divides the part
        where the third wins: several polytopes are then parts of one region. Without windows this is the number of
        polytopes.
        """
        return len(np.unique(self.pattern_digests, axis=0))

    @cached_property
    def pattern_digests(self) -> np.ndarray:
        """The knot cell and the pattern of every polytope as a digest (R, 2) of 16 bytes, the same in all chunks."""
        keys, inverse = np.unique(np.stack([self.cell, self.clip, self.pattern], axis=1), axis=0, return_inverse=True)
        digests = np.zeros((len(keys), 2), dtype=np.uint64)
        for row, (cell, clip, pattern) in zip(digests, keys.tolist(), strict=True):
            # The table of clips may be wider than a knot cell needs.
            bits = self.patterns[pattern].tobytes() + self.clips[clip].tobytes().rstrip(b"\0")
            found = blake2b(cell.to_bytes(4, "big") + bits, digest_size=16).digest()
            row[:] = np.frombuffer(found, dtype=np.uint64)
        return digests[inverse.ravel()]


def take_regions(regions: RegionSet, chosen: np.ndarray) -> RegionSet:
    """The chosen regions (an index array) in that order; keeps the full tables of cuts and patterns."""
    rows: dict[str, Any] = {
        name: getattr(regions, name)[chosen] for name in ("cell", "pattern", "clip", "logits", "doubtful")
    }
    return replace(regions, polytopes=regions.polytopes.take(chosen), **rows)


def join_region_sets(parts: list[RegionSet], *, cuts: np.ndarray | None = None, is_numbered: bool = False) -> RegionSet:
    """Join sets of regions with disjoint interiors (at least one) in order; empties the list.

    All tables of cuts share their rows before the first neuron. The longest such beginning (or `cuts`, which must
    extend it) stays unchanged; the cuts of neurons follow, renumbered. is_numbered: the facets already refer to `cuts`,
    which is then the whole table. Each array of the parts is freed once it is joined, to save memory.
    """
    if is_numbered and cuts is not None:
        table, shifts = cuts, [_Shift(len(cuts), 0)] * len(parts)
    else:
        table, shifts = _joined_cuts(parts, cuts)
    numbers: dict[str, Any] = {
        "accuracy": Accuracy.joined([part.accuracy for part in parts]),
        "stopped": next((part.stopped for part in parts if part.stopped is not None), None),
    }
    columns = {name: [getattr(part, name) for part in parts] for name in _JOINED}
    columns["logits"] = [part.logits for part in parts if len(part)] or [parts[0].logits]
    parts.clear()
    pattern, patterns = _joined_patterns(columns.pop("pattern"), columns.pop("patterns"))
    clip, clips = _joined_tables(columns.pop("clip"), columns.pop("clips"))
    shapes = [
        replace(shape, facets=shift.of(shape.facets))
        for shape, shift in zip(columns.pop("polytopes"), shifts, strict=True)
    ]
    polytopes = join_polytopes(shapes)
    rows: dict[str, Any] = {name: join_rows(columns.pop(name)) for name in list(columns)}
    return RegionSet(
        polytopes=polytopes, cuts=table, pattern=pattern, patterns=patterns, clip=clip, clips=clips, **rows, **numbers
    )


def _shared_rows(cuts: np.ndarray) -> int:
    """The number of rows of a table of cuts before the first neuron."""
    is_neuron = cuts[:, 0] == Cut.NEURON
    return int(np.argmax(is_neuron)) if is_neuron.any() else len(cuts)


class _Shift(NamedTuple):
    """Adds `by` to numbers of cuts beyond `own`."""

    own: int
    by: int

    def of(self, signed: np.ndarray) -> np.ndarray:
        return np.where(np.abs(signed) > self.own, signed + self.by * np.sign(signed), signed)


def _joined_cuts(parts: Sequence[RegionSet], cuts: np.ndarray | None) -> tuple[np.ndarray, list[_Shift]]:
    """One table of cuts (E, 3), and the shift of each part's own cuts."""
    sizes = [_shared_rows(part.cuts) for part in parts]
    longest = int(np.argmax(sizes))
    shared = parts[longest].cuts[: sizes[longest]] if cuts is None else cuts
    rows, size, shifts = [shared], len(shared), []
    for part, own in zip(parts, sizes, strict=True):
        if not np.array_equal(part.cuts[:own], shared[:own]):
            raise InternalError("cannot join sets of regions whose tables of cuts begin differently")
        shifts.append(_Shift(own, size - own))
        rows.append(part.cuts[own:])
        size += len(part.cuts) - own
    return np.concatenate(rows).astype(np.int32), shifts


def _joined_tables(ids: list[np.ndarray], tables: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Ids (R,) into one table of distinct rows, from ids and tables; tables without rows may have any width."""
    numbers, rows = distinct_rows([table for table in tables if len(table)] or [tables[0]])
    starts = np.cumsum([0] + [len(table) for table in tables])
    return numbers[np.concatenate([own + start for own, start in zip(ids, starts, strict=False)])], rows


def _joined_patterns(ids: list[np.ndarray], tables: list[PatternTable]) -> tuple[np.ndarray, PatternTable]:
    """Ids (R,) into one table of patterns; wide patterns are not compared across parts, so they may appear twice."""
    if all(table.is_plain for table in tables):
        pattern, patterns = _joined_tables(ids, [table.keys for table in tables])
        return pattern, PatternTable.of(patterns)
    starts = np.cumsum([0] + [len(table) for table in tables])
    pattern = np.concatenate([own + start for own, start in zip(ids, starts, strict=False)])
    return pattern, join_tables(tables)
