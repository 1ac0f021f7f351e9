"""From a result to the pieces that the interactive map shows: what is proved of each for every δ, and flat polygons.

The pieces of an answer are split at its own δ; those here are not, so that one set of them serves the whole slider.
Their units are regions (and boxes, which come first), counted as `JointPieces.pieces.region` counts them.
"""

from dataclasses import dataclass

import numpy as np

from ...compound import Compound
from ...engines.refine.merged_answer import UNTOLD
from ...engines.refine.refine_result import RefineResult
from ...properties.classification import strip_volumes
from ...properties.joint import JointPieces, Kept
from ...regions.polyhedra import Polyhedra
from ...regions.region import Polygons, Polytopes, box_polytopes
from ...results.answer import Answers
from ...results.domain_result import DomainResult
from ...results.result import Result
from ...tolerances import BESIDE
from ..sections import cut_at

PLANES = (9, 5, 3, 1)
"""How many planes across each parameter a map of three parameters may be shown on, the most that fit are taken."""

MOST_POLYGONS = 60_000
"""Polygons of all planes together; with more of them fewer planes are taken."""


@dataclass(frozen=True, eq=False)
class Tiles:
    """Pieces (P of them) in parts of one kind of shape: first boxes, then pieces of exact regions.

    unit (P,), winner (P,: −1 where it is not told), label (P,: `Kept` codes), margin (P, 2). `boxes` units are boxes,
    the other `regions` ones are regions; what they are called is their number within their kind.
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

    `held`: the third parameter, its theta, and its t just beside it; None where there is none.
    """

    axes: tuple[int, int]
    held: tuple[int, float, float] | None
    points: np.ndarray
    starts: np.ndarray
    piece: np.ndarray


def exact_answers(result: DomainResult) -> Answers | None:
    """What the regions that were found one by one know; None where there are none."""
    return result.answers if isinstance(result, Result | RefineResult) else None


def count_units(result: DomainResult) -> tuple[int, int]:
    """How many units are boxes, and how many regions."""
    return len(result.boxes) if isinstance(result, RefineResult) else 0, result.region_count


def make_tiles(result: DomainResult) -> Tiles:
    """The pieces of a result of up to three parameters, whatever its δ."""
    answers = exact_answers(result)
    parts: list[Polytopes] = []
    columns: list[tuple[np.ndarray, ...]] = []
    boxes, regions = count_units(result)
    if isinstance(result, RefineResult):
        answer = result.answer
        chosen = answer.bounded
        codes = answer.label_codes[chosen]
        own = result.boxes.take(chosen)
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
    if not isinstance(tiles.parts[0], Polyhedra):
        flat = [part for part in tiles.parts if isinstance(part, Polygons)]
        return (_plane((0, 1), None, flat, np.arange(len(tiles.unit))),)
    for count in PLANES:
        planes = tuple(plane for axis in range(3) for plane in _planes_across(compound, tiles, axis, count))
        if sum(len(plane.piece) for plane in planes) <= MOST_POLYGONS:
            break
    return planes


def _planes_across(compound: Compound, tiles: Tiles, axis: int, count: int) -> list[Plane]:
    low, high = float(compound.domain.low[axis]), float(compound.domain.high[axis])
    values = np.linspace(low, high, count) if count > 1 else np.zeros(0)
    main = 0.0 if low <= 0.0 <= high else low
    if not len(values) or np.abs(values - main).min() > 1e-9 * (high - low):
        values = np.sort(np.append(values, main))
    axes = (0, 1) if axis == 2 else (0, 2) if axis == 1 else (1, 2)
    planes = []
    for value in values:
        at = (value - low) / (high - low)
        # Beside the plane itself, as in `sections`: regions end on borders of the domain, and often on whole numbers.
        at = at + BESIDE if at < 0.5 else at - BESIDE
        polygons, piece, before = [], [np.zeros(0, dtype=np.int64)], 0
        for part in tiles.parts:
            assert isinstance(part, Polyhedra)
            cut, of = cut_at(part, axis, at)
            polygons.append(cut)
            piece.append(before + of)
            before += len(part)
        planes.append(_plane(axes, (axis, float(value), float(at)), polygons, np.concatenate(piece)))
    return planes


def _plane(
    axes: tuple[int, int], held: tuple[int, float, float] | None, parts: list[Polygons], piece: np.ndarray
) -> Plane:
    """One plane from the polygons of every part, and the pieces that they show."""
    points = np.concatenate([np.zeros((0, 2)), *(part.points for part in parts)])
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(part.starts) for part in parts)])
    return Plane(axes, held, points, np.concatenate([[0], np.cumsum(sizes)]), piece)
