"""From the half-spaces of visited regions to flat pictures of them: bands, polygons, or plane sections through zero.

Turns a search into the same sections that maps have. Only for pictures: volumes are stored beside the half-spaces.
"""

from itertools import combinations, pairwise

import numpy as np

from ..engines.search import SearchResult
from ..perturbation import Domain
from ..regions.region import Polygons
from .sections import Section, held_at

SMALLEST = 1e-15
"""Polygons of a smaller area, in shares of the section, are rounding."""


def search_domain(found: SearchResult) -> Domain:
    """The domain of a search."""
    domain = found.summary()["domain"]
    return Domain(tuple(domain["names"]), np.array(domain["low"]), np.array(domain["high"]))


def make_search_sections(found: SearchResult) -> tuple[Section, ...]:
    """The visited regions of one or two parameters, or the three sections of three where one of them is zero."""
    domain = search_domain(found)
    if domain.dimension < 3:
        return (_section(found, domain, (0, 1), None),)
    return tuple(_section(found, domain, axes, 3 - sum(axes)) for axes in combinations(range(3), 2))


def _section(found: SearchResult, domain: Domain, axes: tuple[int, int], held: int | None) -> Section:
    """The polygons in which regions meet a plane; `held` is the parameter that has one value on it."""
    # In t: n·(low + widths t) + c = (n widths)·t + (c + n·low).
    rows = found.arrays["halfspaces"]
    forms, constants = rows[:, :-1] * domain.widths, rows[:, -1] + rows[:, :-1] @ domain.low
    value = None
    if held is not None:
        value, at = held_at(domain, held)
        constants = constants + forms[:, held] * at
    second = forms[:, axes[1]] if domain.dimension > 1 else np.zeros(len(forms))
    lines = np.stack([forms[:, axes[0]], second, constants], axis=1).tolist()
    starts = found.arrays["starts"].tolist()
    shapes = [clipped(lines[starts[r] : starts[r + 1]]) for r in range(len(found))]
    is_there = np.array([len(shape) > 2 and _area(shape) > SMALLEST for shape in shapes], dtype=bool)
    region = np.flatnonzero(is_there)
    polygons = _joined([shapes[place] for place in region])
    outlines = np.stack([polygons.points, polygons.points[polygons.following]], axis=1)
    return Section(domain, axes, None if held is None or value is None else (held, value), polygons, region, outlines)


def clipped(lines: list[list[float]]) -> list[tuple[float, float]]:
    """The corners of the part of the unit square where a x + b y + c ≥ 0 for all lines (a, b, c), counter-clockwise.

    >>> clipped([[-1.0, -1.0, 1.0]]), clipped([[1.0, 0.0, -2.0]])
    ([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)], [])
    """
    corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    for a, b, c in lines:
        values = [a * x + b * y + c for x, y in corners]
        if min(values, default=0.0) >= 0.0:
            continue
        kept: list[tuple[float, float]] = []
        for place, (corner, value) in enumerate(zip(corners, values, strict=True)):
            (x, y), (next_x, next_y) = corner, corners[(place + 1) % len(corners)]
            following = values[(place + 1) % len(corners)]
            if value >= 0.0:
                kept.append(corner)
            if value * following < 0.0:
                share = value / (value - following)
                kept.append((x + share * (next_x - x), y + share * (next_y - y)))
        corners = kept
    return corners


def _area(shape: list[tuple[float, float]]) -> float:
    (x0, y0), *rest = shape
    pairs = pairwise(rest)
    return 0.5 * sum((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0) for (x1, y1), (x2, y2) in pairs)


def _joined(shapes: list[list[tuple[float, float]]]) -> Polygons:
    starts = np.concatenate([[0], np.cumsum([len(shape) for shape in shapes])]).astype(np.int64)
    points = np.array([corner for shape in shapes for corner in shape]).reshape(-1, 2)
    return Polygons(points, starts, np.arange(1, len(points) + 1))
