"""From a result with a network too large for a page to a few thetas with stored images and maps.

Images and maps have 8 bits, channels of the maps summed as figures show them; logits, margin and inconsistency are
exact. The page shows the nearest of these thetas and says which.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ...results.domain_result import DomainResult, Point
from .network_data import Arrays

SIDES = {1: 17, 2: 5, 3: 3}
"""Thetas along each side of the grid, by the number of parameters."""

MOST_MAPS = 4
"""Classes whose maps are stored: the label's first, then those of the largest original maps."""

LEVELS = 127


@dataclass(frozen=True, eq=False)
class StoredPoints:
    """`count` thetas: arrays by name and plain data for the page."""

    arrays: Arrays
    facts: dict[str, Any]
    count: int


def store_points(result: DomainResult) -> StoredPoints:
    """Evaluate and store zero, the nearest violations, witnesses, and a grid over the domain."""
    points = [result.at(theta) for theta in _thetas(result)]
    classes = result.problem.attention.chosen(result.problem.model.classes).tolist()
    places = _shown_places(result, classes)
    images = np.stack([np.round(255 * point.image) for point in points])
    actual, actual_scale = _quantised([point.actual[places].sum(axis=1) for point in points])
    expected, expected_scale = _quantised([point.expected[places].sum(axis=1) for point in points])
    distance = result.problem.attention.distance
    arrays: Arrays = {
        "thetas": ("f8", np.stack([point.theta for point in points])),
        "images": ("u1", images),
        "actual": ("u1", actual + LEVELS),
        "actualScale": ("f8", actual_scale),
        "expected": ("u1", expected + LEVELS),
        "expectedScale": ("f8", expected_scale),
        "logits": ("f8", np.stack([point.logits for point in points])),
        "inconsistency": ("f8", np.array([point.inconsistency for point in points])),
        "distances": ("f8", np.array([[distance.size(d) for d in _differences(point, places)] for point in points])),
    }
    facts = {"classes": [classes[place] for place in places], "shape": list(result.problem.perturbed.x0.shape)}
    return StoredPoints(arrays, facts, len(points))


def _differences(point: Point, places: list[int]) -> np.ndarray:
    return point.actual[places] - point.expected[places]


def _thetas(result: DomainResult) -> list[np.ndarray]:
    """Different thetas of the domain in a fixed order."""
    domain = result.problem.compound.domain
    wanted = [np.zeros(domain.dimension)] if domain.contains_zero else []
    names = ("CR", "AR") if result.is_measured else ("CR",)
    wanted += [theta for name in names if (theta := result.nearest[name].theta) is not None]
    wanted += [witness.point.theta for witness in result.witnesses]
    side = SIDES[domain.dimension]
    ticks = [np.linspace(low, high, side) for low, high in zip(domain.low, domain.high, strict=True)]
    wanted += [np.array(corner) for corner in product(*ticks)]
    chosen: list[np.ndarray] = []
    for theta in wanted:
        if all(np.abs((theta - other) / domain.widths).max() > 1e-9 for other in chosen):
            chosen.append(theta)
    return chosen


def _shown_places(result: DomainResult, classes: list[int]) -> list[int]:
    """The places among the compared classes whose maps are stored."""
    sizes = [-result.problem.attention.distance.size(part) for part in result.original]
    ranked = [int(place) for place in np.argsort(sizes, kind="stable")]
    if result.label in classes:
        own = classes.index(result.label)
        ranked = [own, *(place for place in ranked if place != own)]
    return ranked[:MOST_MAPS]


def _quantised(maps: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Maps (K', H, W) of all thetas as whole numbers from −127 to 127, and what one step is worth (N, K')."""
    stacked = np.stack(maps)
    scale = np.abs(stacked).max(axis=(2, 3)) / LEVELS
    return np.round(stacked / np.where(scale > 0.0, scale, 1.0)[:, :, None, None]), scale
