"""From a result to the pieces that the interactive map shows: proved labels for every δ, flat polygons, and shades.

The pieces of an answer are split at its own δ; tiles are not, so one set serves the whole slider. Their units are
regions (and boxes, which come first), numbered as in `JointPieces.pieces.region`. A map with too many pieces is merged:
points of a grid with the same winner, label and steps of AR and IR belong to one area, and boundaries become lines.
Every entry is proved at its point; between points the picture is coarse. Shades are not proved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps

from ...compound import Compound
from ...engines.refine.merged_answer import UNTOLD
from ...labels import Kept
from ...polytopes import Polygons, Polytopes, box_polytopes
from ...polytopes.grid import ASIDE, owners_on_grid
from ...properties.classification import strip_volumes
from ...properties.joint import JointPieces
from ...results.answer import inconsistency_at
from ...results.label_grid import beside, held_at
from ...results.result import Result
from ..drawing import colours
from ..drawing.raster import borders_between
from ..drawing.sections import make_sections
from .thresholds import Thresholds, count_units

PLANES = (9, 5, 3, 1)
"""Possible numbers of planes across each of three parameters; the largest that fits is used."""
MOST_POLYGONS = 60_000
"""Polygons of all planes together; with more, fewer planes are used."""
GRID = 1000
"""Points along each side of a merged plane."""
NO_AREA = 65_535
MOST_AREAS = 65_000
"""Kinds of areas; their numbers have 16 bits."""
MOST_LINES = 40_000
"""Segments of boundaries that Bokeh draws quickly; if there are more, the longest are drawn."""
MOST_SAMPLES, FEWEST_SAMPLES, NUMBERS = 17, 3, 200_000
"""Samples of each curve where the expected map moves: as many as this total of numbers allows."""

SEQUENTIAL = "cividis"
"""For inconsistencies without a threshold: lightness rises steadily, and red against green has no meaning."""
LEVELS = 256
LOWER_SHARE = 0.9


@dataclass(frozen=True, eq=False)
class Tiles:
    """Pieces (P of them) in parts of one kind of shape: first boxes, then pieces of exact regions.

    unit (P,), winner (P,: −1 if unknown), label (P,: `Kept` codes), margin (P, 2). `boxes` units are boxes,
    the other `regions` ones are regions; pages name them by their number within their kind.
    """

    parts: tuple[Polytopes, ...]
    unit: np.ndarray
    winner: np.ndarray
    label: np.ndarray
    margin: np.ndarray
    boxes: int
    regions: int

    @property
    def volumes(self) -> np.ndarray:
        """Shares of the domain (P,)."""
        return np.concatenate([np.zeros(0), *(part.volumes for part in self.parts)])


@dataclass(frozen=True, eq=False)
class Plane:
    """Polygons (S of them) in two coordinates of t, and the piece (S,) that each shows.

    `held`: the third parameter, its theta, and its t just beside it; None for a whole map.
    """

    axes: tuple[int, int]
    held: tuple[int, float, float] | None
    points: np.ndarray
    starts: np.ndarray
    piece: np.ndarray


def make_tiles(result: Result) -> Tiles:
    """The pieces of a result of up to three parameters, for any δ."""
    answers = result.tiling.answers
    parts: list[Polytopes] = []
    columns: list[tuple[np.ndarray, ...]] = []
    boxes, regions = count_units(result)
    if result.tiling.boxes is not None:
        answer: Any = result.answer
        chosen = answer.bounded
        codes = answer.label_codes[chosen]
        own = result.tiling.boxes.take(chosen)
        parts.append(box_polytopes(own.low, own.high, own.sides))
        columns.append((chosen, np.where(codes == Kept.NO, UNTOLD, result.label), codes, own.margin))
    if answers is not None:
        pieces, nothing = answers.pieces, np.zeros(len(answers.pieces))
        codes = JointPieces(pieces, nothing, strip_volumes(pieces, answers.regions), nothing).label_codes
        parts.append(pieces.polytopes)
        slack = pieces.slack[:, None] * np.array([-1.0, 1.0])
        columns.append((boxes + pieces.region, pieces.winner, codes, pieces.margin + slack))
    unit, winner, label, margin = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Tiles(tuple(parts), unit, winner, label, margin, boxes, regions)


def make_planes(compound: Compound, tiles: Tiles) -> tuple[Plane, ...]:
    """The map itself, or planes across each of three parameters, the one through zero among them."""
    if tiles.parts[0].dimension == Polygons.dimension:
        return (_plane((0, 1), None, tiles.parts, np.arange(len(tiles.unit))),)
    for count in PLANES:
        planes = tuple(plane for axis in range(3) for plane in _planes_across(compound, tiles, axis, count))
        if sum(len(plane.piece) for plane in planes) <= MOST_POLYGONS:
            break
    return planes


def _planes_across(compound: Compound, tiles: Tiles, axis: int, count: int) -> list[Plane]:
    low, high = float(compound.domain.low[axis]), float(compound.domain.high[axis])
    values = np.linspace(low, high, count) if count > 1 else np.zeros(0)
    main = held_at(compound.domain, axis)[0]
    if not len(values) or np.abs(values - main).min() > 1e-9 * (high - low):
        values = np.sort(np.append(values, main))
    first, second = (other for other in range(3) if other != axis)
    planes = []
    for value in values:
        at = beside(float(compound.domain.to_unit(value, axis)))
        polygons, piece, before = [], [np.zeros(0, dtype=np.int64)], 0
        for part in tiles.parts:
            cut, of = part.section(axis, at)
            polygons.append(cut)
            piece.append(before + of)
            before += len(part)
        planes.append(_plane((first, second), (axis, float(value), float(at)), polygons, np.concatenate(piece)))
    return planes


def _plane(
    axes: tuple[int, int], held: tuple[int, float, float] | None, parts: Sequence[Polytopes], piece: np.ndarray
) -> Plane:
    """One plane from the polygons of every part, and the pieces that they show."""
    points = np.concatenate([np.zeros((0, 2)), *(part.points for part in parts)])
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(part.starts) for part in parts)])
    return Plane(axes, held, points, np.concatenate([[0], np.cumsum(sizes)]), piece)


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
    steps_count = len(steps.deltas) + 1
    # Every kind of area is one number: distinct ones are then quick to find.
    sizes = (len(result.question.names) + 1, len(Kept), steps_count, steps_count, 2)
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
        # Areas without a number become one undecided area.
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
    """t of the moving parameter at the points of a plane's grid that a piece covers; None if nothing moves."""
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
    """The step from which on points (N,) of units are AR, and the step before which IR; slabs divide mixed units."""
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


def unit_values(result: Result, tiles: Tiles) -> tuple[np.ndarray, np.ndarray]:
    """The inconsistency (U, n) of all units at n places between their ends (U, 2) in t of the moving parameter.

    For boxes the middle of the bounds; NaN if nothing is known. n is 1 if the expected map is kept.
    """
    compound, answers = result.question.compound, result.tiling.answers
    axis, units = compound.perturbed.moving_axis, tiles.boxes + tiles.regions
    samples = 1 if axis is None else int(np.clip(NUMBERS // max(units, 1), FEWEST_SAMPLES, MOST_SAMPLES))
    values, spans = np.full((units, samples), np.nan), np.tile([0.0, 1.0], (units, 1))
    if result.tiling.boxes is not None:
        low, high = result.tiling.boxes.inconsistency.T
        middle = np.where(np.isfinite(high), 0.5 * (low + np.where(np.isfinite(high), high, 0.0)), np.nan)
        values[: tiles.boxes] = middle[:, None]
    if answers is None or answers.curves is None or not len(answers.regions):
        return values, spans
    polytopes, everything = answers.regions.polytopes, np.arange(len(answers.regions))
    points = polytopes.centres.copy()
    if axis is not None:
        spans[tiles.boxes :] = np.stack(polytopes.extent(axis), axis=1)
    for place in range(samples):
        if axis is not None:
            points[:, axis] = spans[tiles.boxes :] @ np.array([1.0 - place / (samples - 1), place / (samples - 1)])
        values[tiles.boxes :, place] = inconsistency_at(
            compound, answers.regions.cell, answers.curves, everything, points
        )
    return values, spans


def shown_top(values: np.ndarray, tiles: Tiles) -> float:
    """The inconsistency where shades end: the highest of the lower nine tenths of the domain, or a little above.

    Otherwise a few small regions far above all others would leave the rest of the picture one colour.
    """
    volumes = np.bincount(tiles.unit, weights=tiles.volumes, minlength=len(values))
    highest = np.where(np.isfinite(values), values, 0.0).max(axis=1)
    order = np.argsort(highest, kind="stable")
    below = np.cumsum(volumes[order])
    if not len(below) or below[-1] <= 0.0:
        return 0.0
    quantile = float(highest[order][np.searchsorted(below, LOWER_SHARE * below[-1])])
    largest = float(highest.max())
    return largest if largest <= 1.5 * quantile else quantile


def palette(result: Result, tiles: Tiles) -> dict[str, object]:
    """Colours by name, and one for each class that may win, as in the figures."""
    count = len(result.question.names)
    shares = np.zeros(count + 1)
    np.add.at(shares, tiles.winner, tiles.volumes)
    shares[result.label] = 0.0
    ranked = [int(winner) for winner in np.argsort(-shares[:count], kind="stable") if shares[winner] > 0.0]
    own = colours.winner_colours(ranked, result.label)
    named = {
        "unknown": colours.UNKNOWN, "notReached": colours.NOT_REACHED, "hatch": colours.HATCH_INK,
        "changed": colours.CHANGED, "ink": colours.INK, "threshold": colours.DELTA_LINE, "paper": colours.PAPER,
        "kept": colours.KEPT, **colours.JOINT,
    }  # fmt: skip
    lost = np.zeros(count + 1)
    is_lost = tiles.label == Kept.NO
    np.add.at(lost, tiles.winner[is_lost], tiles.volumes[is_lost])
    return {
        "named": named,
        "winners": [own.get(winner, colours.KEPT) for winner in range(count)],
        "ranked": ranked,
        "most": len(colours.WINNERS),
        "shares": {str(winner): float(min(lost[winner], 1.0)) for winner in [*ranked, -1] if lost[winner] > 0.0},
    }


def shade_tables() -> dict[str, tuple[str, np.ndarray]]:
    """Shades (256, 3) from 0 to 255: attention kept, attention not kept, inconsistency, attention maps."""
    shares = np.linspace(0.0, 1.0, LEVELS)
    maps = {
        "kept": colours.AR_SHADES, "lost": colours.IR_SHADES, "sequential": colormaps[SEQUENTIAL],
        "diverging": colormaps[colours.MAP_SHADES],
    }  # fmt: skip
    return {name: ("u1", np.round(255 * shades(shares)[:, :3])) for name, shades in maps.items()}
