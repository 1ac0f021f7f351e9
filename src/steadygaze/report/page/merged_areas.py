"""Merged areas of maps with too many pieces to show: points of a grid with the same labels become one area.

Points with the same winner, label and steps of AR and IR belong to one area, and boundaries become lines. Every entry
is proved at its point; between points the picture is coarse. Shades are not proved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...compound import Compound
from ...labels import Kept
from ...polytopes import Polygons
from ...polytopes.grid import ASIDE, owners_on_grid
from ...results.label_grid import NOTHING, LabelGrid
from ...results.result import Result
from ..drawing.plane_sections import make_sections
from ..drawing.raster import borders_between
from ..thresholds import Thresholds
from .tiles import Plane, Tiles

GRID = 1000
"""Points along each side of a merged plane."""
NO_AREA = 65_535
MOST_AREAS = 65_000
"""Kinds of areas; their numbers have 16 bits."""
MOST_LINES = 40_000
"""Segments of boundaries that Bokeh draws quickly; if there are more, the longest are drawn."""

Columns = tuple[np.ndarray, ...]
"""Of N points: the winner, the label, the step from which on AR, the step before which IR, whether it is in a box."""


@dataclass(frozen=True, eq=False)
class MergedPlane:
    """areas (GRID, GRID): the area of every point, −1 for none; lines (S, 4) in t with their kinds (S,).

    Kind 0 is the decision boundary; on kind 1 the inconsistency is the result's own δ.
    """

    areas: np.ndarray
    lines: np.ndarray
    kinds: np.ndarray


@dataclass(frozen=True, eq=False)
class Merged:
    """Planes of merged areas, and the table of the areas as arrays for the page."""

    planes: tuple[MergedPlane, ...]
    arrays: dict[str, tuple[str, np.ndarray]]


def merge_tiles(
    result: Result,
    tiles: Tiles,
    planes: tuple[Plane, ...],
    steps: Thresholds,
    values: np.ndarray,
    spans: np.ndarray,
) -> Merged:
    """Merge the pieces of every plane; values (U, n) between spans (U, 2) shade the areas (see `unit_values`)."""
    compound = result.question.compound
    rows, owners, shades = [], [], []
    for plane in planes:
        edges = np.zeros(len(plane.points), dtype=np.int64)
        owner = owners_on_grid(Polygons(plane.points, plane.starts, edges), GRID)
        is_there = owner.ravel() >= 0
        piece = plane.piece[owner.ravel()[is_there]]
        unit, points = tiles.unit[piece], _grid_points(compound, plane, is_there)
        kept_from, lost_until = _steps_at(steps, unit, points)
        is_box = unit < tiles.boxes
        rows.append((tiles.winner[piece], tiles.label[piece], kept_from, lost_until, is_box))
        owners.append((is_there, owner.shape))
        axis = compound.perturbed.moving_axis
        shades.append(_values_at(unit, None if axis is None else points[:, axis], values, spans))
    table = _merge(result, rows, shades, steps)
    merged = []
    for (is_there, shape), numbers, (lines, of) in zip(owners, table.numbers, _boundaries(result, planes), strict=True):
        areas = np.full(is_there.shape, -1)
        areas[is_there] = numbers
        merged.append(MergedPlane(areas.reshape(shape), lines, of))
    return Merged(tuple(merged), table.arrays)


def merge_grid(result: Result, grid: LabelGrid, steps: Thresholds) -> Merged:
    """The areas of a map in chunks, from the points of its grid; their boundaries have no lines."""
    rows, shades = [], []
    for plane in grid.planes:
        is_there = plane.label != NOTHING
        low, high = plane.reach[:, is_there]
        attention = plane.attention[is_there]
        # NaN bounds nothing. At its own δ the result knows more than bounds of ai.
        kept_from = np.searchsorted(steps.deltas, np.where(np.isnan(high), np.inf, high), side="left")
        lost_until = np.searchsorted(steps.deltas, np.where(np.isnan(low), 0.0, low), side="left")
        kept_from = np.where(attention == Kept.YES, np.minimum(kept_from, steps.chosen), kept_from)
        lost_until = np.where(attention == Kept.NO, np.maximum(lost_until, steps.chosen + 1), lost_until)
        rows.append((plane.winner[is_there], plane.label[is_there], kept_from, lost_until, np.zeros(len(low))))
        shades.append(plane.inconsistency[is_there].astype(np.float64))
    table = _merge(result, rows, shades, steps)
    merged = []
    for plane, numbers in zip(grid.planes, table.numbers, strict=True):
        areas = np.full(plane.label.shape, -1)
        areas[plane.label != NOTHING] = numbers
        merged.append(MergedPlane(areas, np.zeros((0, 4)), np.zeros(0)))
    return Merged(tuple(merged), table.arrays)


class _AreaTable(NamedTuple):
    """The area of every point, plane by plane, and the table of the areas for the page."""

    numbers: list[np.ndarray]
    arrays: dict[str, tuple[str, np.ndarray]]


def _merge(result: Result, rows: Sequence[Columns], shades: Sequence[np.ndarray], steps: Thresholds) -> _AreaTable:
    """The areas of points, given for each plane the columns that make an area, and the inconsistency."""
    steps_count = len(steps.deltas) + 1
    # Every kind of area is one number: distinct ones are then quick to find.
    sizes = (len(result.question.names) + 1, len(Kept), steps_count, steps_count, 2)
    codes = [
        np.ravel_multi_index([winner.astype(np.int64) + 1, *(column.astype(np.int64) for column in others)], sizes)
        for winner, *others in rows
    ]
    kinds, inverse = np.unique(np.concatenate(codes), return_inverse=True)
    table = np.stack(np.unravel_index(kinds, sizes), axis=1) - np.array([1, 0, 0, 0, 0])
    shade = np.concatenate(shades)
    counts = np.bincount(inverse, weights=np.isfinite(shade), minlength=len(table))
    mean = np.bincount(inverse, weights=np.nan_to_num(shade), minlength=len(table)) / np.maximum(counts, 1.0)
    mean[counts == 0] = np.nan
    if len(table) > MOST_AREAS:
        # Areas without a number become one undecided area.
        table, mean = table[: MOST_AREAS + 1], mean[: MOST_AREAS + 1]
        table[MOST_AREAS], mean[MOST_AREAS] = [-1, Kept.UNKNOWN, len(steps.deltas), 0, 0], np.nan
        inverse = np.minimum(inverse, MOST_AREAS)
    arrays = {
        "unit": ("u4", np.arange(len(table))),
        "winner": ("i2", table[:, 0]),
        "label": ("u1", table[:, 1]),
        "keptFrom": ("u2", table[:, 2]),
        "lostUntil": ("u2", table[:, 3]),
        "isBox": ("u1", table[:, 4]),
        "values": ("f4", mean[:, None]),
    }
    return _AreaTable(np.split(inverse, np.cumsum([len(part) for part in codes])[:-1]), arrays)


def _grid_points(compound: Compound, plane: Plane, is_there: np.ndarray) -> np.ndarray:
    """The points t (N, D) of a plane's grid that a piece covers."""
    row, column = np.divmod(np.flatnonzero(is_there), GRID)
    points = np.empty((len(row), compound.coordinates))
    points[:, plane.axes[0]], points[:, plane.axes[1]] = (column + ASIDE[0]) / GRID, (row + ASIDE[1]) / GRID
    if plane.held is not None:
        points[:, plane.held[0]] = plane.held[2]
    return points


def _steps_at(steps: Thresholds, unit: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The step from which on points (N, D) of units are AR, and the step before which IR; slabs divide mixed units."""
    kept_from, lost_until = steps.kept_from[unit], steps.lost_until[unit]
    if not len(steps.slab_unit):
        return kept_from, lost_until
    order = np.argsort(unit, kind="stable")
    units, count = unit[order], len(steps.deltas)

    def states(step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The points whose units are mixed at a step, and whether each is AR, or IR."""
        part = slice(steps.slab_starts[step], steps.slab_starts[step + 1])
        mixed, slabs = steps.slab_unit[part], steps.slabs[part]
        first, last = np.searchsorted(units, mixed), np.searchsorted(units, mixed, side="right")
        sizes = last - first
        places = order[np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())]
        low, high, outer_low, outer_high, *along = np.repeat(slabs, sizes, axis=0).T
        at = (points[places] * np.stack(along, axis=1)).sum(axis=1)
        return places, (at >= low) & (at <= high), (at < outer_low) | (at > outer_high)

    for step in range(count - 1, -1, -1):
        places, is_kept, _ = states(step)
        chosen = places[is_kept & (kept_from[places] == step + 1)]
        kept_from[chosen] = step
    for step in range(count):
        places, _, is_lost = states(step)
        chosen = places[is_lost & (lost_until[places] == step)]
        lost_until[chosen] = step + 1
    return kept_from, lost_until


def _values_at(unit: np.ndarray, t: np.ndarray | None, values: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """The inconsistency (N,) at points of units, between samples on a line."""
    samples = values.shape[1]
    if t is None or samples == 1:
        return values[unit, 0]
    low, high = spans[unit].T
    share = np.clip((t - low) / np.maximum(high - low, 1e-300), 0.0, 1.0) * (samples - 1)
    place = np.minimum(share.astype(np.int64), samples - 2)
    first, second = values[unit, place], values[unit, place + 1]
    return first + (share - place) * (second - first)


def _boundaries(result: Result, planes: tuple[Plane, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Segments (S, 4) and kinds (S,) of the boundaries at the result's own δ, for every plane."""
    joint = result.answer.joint
    found = {}
    for section in make_sections(result):
        segments, kinds, common = [], [], section.polygons.touching()
        for kind, codes in enumerate((joint.label_codes, joint.attention)):
            own = borders_between(common, codes[section.piece], passed_over=int(Kept.UNKNOWN))
            segments.append(own.reshape(-1, 4))
            kinds.append(np.full(len(own), kind))
        lines, which = np.concatenate(segments), np.concatenate(kinds)
        lengths = np.hypot(lines[:, 2] - lines[:, 0], lines[:, 3] - lines[:, 1])
        longest = np.sort(np.argsort(-lengths, kind="stable")[:MOST_LINES])
        found[section.axes, None if section.held is None else section.held[1]] = lines[longest], which[longest]
    nothing = np.zeros((0, 4)), np.zeros(0)
    return [found.get((plane.axes, None if plane.held is None else plane.held[1]), nothing) for plane in planes]
