"""From a result to the pieces that the interactive map shows: proved labels for every δ, flat polygons, and shades.

The pieces of an answer are split at its own δ; tiles are not, so one set serves the whole slider. Their units are
regions (and boxes, which come first), numbered as in `JointPieces.pieces.region`. Shades are not proved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps

from ...compound import Compound
from ...engines.refine.merged_answer import UNKNOWN_WINNER
from ...labels import Kept
from ...polytopes import Polygons, Polytopes, box_polytopes
from ...properties.classification import strip_volumes
from ...properties.joint import JointPieces
from ...results.answer import inconsistency_at
from ...results.label_grid import beside, held_at
from ...results.result import Result
from ..drawing import colours
from ..thresholds import count_units

PLANES = (9, 5, 3, 1)
"""Possible numbers of planes across each of three parameters; the largest that fits is used."""
MOST_POLYGONS = 60_000
"""Polygons of all planes together; with more, fewer planes are used."""
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
        columns.append((chosen, np.where(codes == Kept.NO, UNKNOWN_WINNER, result.label), codes, own.margin))
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
    return top_of_most(np.where(np.isfinite(values), values, 0.0).max(axis=1), volumes)


def top_of_most(highest: np.ndarray, volumes: np.ndarray) -> float:
    """The highest of the lower nine tenths of values (N,) with volumes (N,), or the highest if that is little more."""
    order = np.argsort(highest, kind="stable")
    below = np.cumsum(volumes[order])
    if not len(below) or below[-1] <= 0.0:
        return 0.0
    quantile = float(highest[order][np.searchsorted(below, LOWER_SHARE * below[-1])])
    largest = float(highest.max())
    return largest if largest <= 1.5 * quantile else quantile


class Winners(NamedTuple):
    """The shares (K + 1,) of the domain that each class wins, and those where it replaces the label; unknown last."""

    shares: np.ndarray
    lost: np.ndarray


def tile_winners(result: Result, tiles: Tiles) -> Winners:
    """The winners of all pieces."""
    shares, lost = np.zeros((2, len(result.question.names) + 1))
    np.add.at(shares, tiles.winner, tiles.volumes)
    is_lost = tiles.label == Kept.NO
    np.add.at(lost, tiles.winner[is_lost], tiles.volumes[is_lost])
    return Winners(shares, lost)


def palette(result: Result, winners: Winners) -> dict[str, object]:
    """Colours by name, and one for each class that may win, as in the figures."""
    count, (shares, lost) = len(result.question.names), winners
    shares = np.where(np.arange(count + 1) == result.label, 0.0, shares)
    ranked = [int(winner) for winner in np.argsort(-shares[:count], kind="stable") if shares[winner] > 0.0]
    own = colours.winner_colours(ranked, result.label)
    named = {
        "unknown": colours.UNKNOWN, "notReached": colours.NOT_REACHED, "hatch": colours.HATCH_INK,
        "changed": colours.CHANGED, "ink": colours.INK, "threshold": colours.DELTA_LINE, "paper": colours.PAPER,
        "kept": colours.KEPT, **colours.JOINT,
    }  # fmt: skip
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
