"""Where attention goes when it is lost: the nearest theta that loses it, the numbers there, and the pixels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..attention.inconsistency import expected_at
from ..labels import Label
from .claims import Violation
from .point import Point
from .result import Result

CLEAR = 0.08
"""Pixels lie beside the object if their middle is farther from its middle than this share of the image's side."""


@dataclass(frozen=True, eq=False)
class Strayed:
    """A theta that loses the attention, and where the attention is instead.

    before and after: the losses at the unperturbed image and at theta; None before if the domain lacks zero,
    or the map there is uncertain. pixels
    (H, W): where the attention is instead, None if the property gives no place. is_nearest: nothing nearer violates.
    """

    point: Point
    before: float | None
    pixels: np.ndarray | None
    place: str
    is_nearest: bool


def find_strayed(result: Result) -> Strayed | None:
    """The nearest known theta with a lost attention; None if none is known, or attention was not asked for."""
    if not result.is_measured or not result.tiling.answers_any_delta:
        return None
    nearest = result.nearest[Label.AR]
    kinds = (Violation.ATTENTION, Violation.EVIDENCE)
    points = [] if nearest.theta is None else [result.at(nearest.theta)]
    points += [witness.point for witness in result.witnesses if witness.kind in kinds]
    limit = result.answer.delta
    found = next((point for point in points if point.inconsistency > limit), None)
    if found is None:
        return None
    pixels, question = strayed_pixels(result, found), result.question
    zero = np.zeros(question.perturbed.domain.dimension)
    before = None
    is_certain = question.attention.measure.uses_expected or question.unperturbed.doubt == 0.0
    if question.perturbed.domain.contains_zero and is_certain:
        expected, weights = expected_at(question.compound, zero, question.original, question.attention)
        own = None if weights is None else weights[None]
        before = float(question.attention.losses(question.original[None], expected[None], own)[0])
    is_nearest = nearest.theta is not None and np.array_equal(found.theta, nearest.theta)
    return Strayed(found, before, pixels, place_text(pixels, found.weights), bool(is_nearest))


def strayed_pixels(result: Result, point: Point) -> np.ndarray | None:
    """The pixels (H, W) that hold the attention of a point instead of those that should; None if there are none."""
    pixels = result.question.attention.measure.strayed(point.actual, point.expected, point.weights)
    return None if pixels is None or not pixels.any() else pixels


def place_text(pixels: np.ndarray | None, weights: np.ndarray | None) -> str:
    """Where pixels (H, W) lie, seen from the object with weights (H, W); empty if there is no object.

    >>> weights = np.zeros((9, 9))
    >>> weights[4, 4] = 1.0
    >>> corner = np.zeros((9, 9), dtype=bool)
    >>> corner[0, 0] = True
    >>> place_text(corner, weights), place_text(corner | corner[::-1] | corner[:, ::-1] | corner[::-1, ::-1], weights)
    ('above and left of the object', 'around the object')
    """
    if pixels is None or weights is None or not pixels.any() or not weights.any():
        return ""
    down, right = (own - other for own, other in zip(_middle(pixels), _middle(weights), strict=True))
    words: Sequence[str] = [
        *(["above" if down < 0.0 else "below"] * (abs(down) > CLEAR * len(weights))),
        *(["left of" if right < 0.0 else "right of"] * (abs(right) > CLEAR * weights.shape[1])),
    ]
    return f"{' and '.join(words) or 'around'} the object"


def _middle(weights: np.ndarray) -> tuple[float, float]:
    rows, columns = np.indices(weights.shape)
    total = float(weights.sum())
    return float((rows * weights).sum()) / total, float((columns * weights).sum()) / total
