"""From a map with too many pieces to merged areas: what is proved at the points of a grid, and the boundaries as lines.

Points of the same winner, label and steps of AR and IR belong to one area, so the page needs one number for each point
and a short table. Every entry is what the result proves at that point; between points the picture is coarse.
"""

from dataclasses import dataclass

import numpy as np

from ...compound import Compound
from ...properties.joint import Kept
from ...regions.region import Polygons
from ...results.domain_result import DomainResult
from ..borders import borders_between
from ..raster import ASIDE, owners_on_grid
from ..sections import make_sections
from .thresholds import Thresholds
from .tiles import Plane, Tiles

GRID = 1000
"""Points along each side of a plane."""

NO_AREA = 65_535
MOST_AREAS = 65_000
"""Kinds of areas that are told apart; their numbers have 16 bits."""

MOST_LINES = 40_000
"""Segments of boundaries that Bokeh still draws quickly; beyond that the longest are drawn."""


@dataclass(frozen=True, eq=False)
class MergedPlane:
    """areas (GRID, GRID): the area of every point, −1 for none; lines (S, 4) in t with their kinds (S,).

    Kind 0 is the decision boundary, kind 1 where the inconsistency is the result's own δ.
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
    result: DomainResult,
    tiles: Tiles,
    planes: tuple[Plane, ...],
    steps: Thresholds,
    values: np.ndarray,
    spans: np.ndarray,
) -> Merged:
    """Merge the pieces of every plane; values (U, n) between spans (U, 2) shade the areas (see `unit_values`)."""
    compound = result.problem.compound
    rows, owners, shades = [], [], []
    steps_count = len(steps.deltas) + 1
    # Every kind of area has one number, which is what makes finding the different ones quick.
    sizes = (len(result.problem.names) + 1, len(Kept), steps_count, steps_count, 2)
    for plane in planes:
        edges = np.zeros(len(plane.points), dtype=np.int64)
        owner = owners_on_grid(Polygons(plane.points, plane.starts, edges), GRID)
        is_there = owner.ravel() >= 0
        piece = plane.piece[owner.ravel()[is_there]]
        unit, t = tiles.unit[piece], _moving_t(compound, plane, is_there)
        kept_from, lost_until = _steps_at(steps, unit, t)
        is_box = unit < tiles.boxes
        columns = (tiles.winner[piece] + 1, tiles.label[piece], kept_from, lost_until, is_box)
        rows.append(np.ravel_multi_index([column.astype(np.int64) for column in columns], sizes))
        owners.append((is_there, owner.shape))
        shades.append(_values_at(unit, t, values, spans))
    kinds, inverse = np.unique(np.concatenate(rows), return_inverse=True)
    table = np.stack(np.unravel_index(kinds, sizes), axis=1) - np.array([1, 0, 0, 0, 0])
    shade = np.concatenate(shades)
    counts = np.bincount(inverse, weights=np.isfinite(shade), minlength=len(table))
    mean = np.bincount(inverse, weights=np.nan_to_num(shade), minlength=len(table)) / np.maximum(counts, 1.0)
    mean[counts == 0] = np.nan
    if len(table) > MOST_AREAS:
        # What there is no number for becomes one area in which nothing is decided.
        table, mean = table[: MOST_AREAS + 1], mean[: MOST_AREAS + 1]
        table[MOST_AREAS], mean[MOST_AREAS] = [-1, Kept.UNKNOWN, len(steps.deltas), 0, 0], np.nan
        inverse = np.minimum(inverse, MOST_AREAS)
    ends = np.cumsum([len(part) for part in rows])[:-1]
    merged = []
    segments = _boundaries(result, planes)
    for (is_there, shape), numbers, (lines, of) in zip(owners, np.split(inverse, ends), segments, strict=True):
        areas = np.full(is_there.shape, -1)
        areas[is_there] = numbers
        merged.append(MergedPlane(areas.reshape(shape), lines, of))
    arrays = {
        "unit": ("u4", np.arange(len(table))),
        "winner": ("i2", table[:, 0]),
        "label": ("u1", table[:, 1]),
        "keptFrom": ("u2", table[:, 2]),
        "lostUntil": ("u2", table[:, 3]),
        "isBox": ("u1", table[:, 4]),
        "values": ("f4", mean[:, None]),
    }
    return Merged(tuple(merged), arrays)


def _moving_t(compound: Compound, plane: Plane, is_there: np.ndarray) -> np.ndarray | None:
    """t of the moving parameter at the points of a plane's grid that a piece covers; None where nothing moves."""
    axis = compound.perturbed.moving_axis
    if axis is None:
        return None
    row, column = np.divmod(np.flatnonzero(is_there), GRID)
    if axis == plane.axes[0]:
        return (column + ASIDE[0]) / GRID
    if axis == plane.axes[1]:
        return (row + ASIDE[1]) / GRID
    assert plane.held is not None
    return np.full(len(row), plane.held[2])


def _steps_at(steps: Thresholds, unit: np.ndarray, t: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """From which step on points (N,) of units are AR, and before which IR; slabs tell where units are mixed."""
    kept_from, lost_until = steps.kept_from[unit], steps.lost_until[unit]
    if t is None or not len(steps.slab_unit):
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
        low, high, outer_low, outer_high = np.repeat(slabs, sizes, axis=0).T
        at = t[places]
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


def _boundaries(result: DomainResult, planes: tuple[Plane, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Segments (S, 4) and kinds (S,) of the boundaries at the result's own δ, for every plane."""
    joint = result.answer.joint
    found = {}
    for section in make_sections(result):
        segments, kinds = [], []
        for kind, codes in enumerate((joint.label_codes, joint.attention)):
            own = borders_between(section.polygons, codes[section.piece], passed_over=int(Kept.UNKNOWN))
            segments.append(own.reshape(-1, 4))
            kinds.append(np.full(len(own), kind))
        lines, which = np.concatenate(segments), np.concatenate(kinds)
        lengths = np.hypot(lines[:, 2] - lines[:, 0], lines[:, 3] - lines[:, 1])
        longest = np.sort(np.argsort(-lengths, kind="stable")[:MOST_LINES])
        found[section.axes, None if section.held is None else section.held[1]] = lines[longest], which[longest]
    nothing = np.zeros((0, 4)), np.zeros(0)
    return [found.get((plane.axes, None if plane.held is None else plane.held[1]), nothing) for plane in planes]
