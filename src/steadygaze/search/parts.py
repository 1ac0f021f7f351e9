"""The parts of a region: where a property holds (one convex part), and convex pieces that cover the rest.

A part is the region's half-spaces and a few rows more. What two parts have in common is found on vertices in one and
two dimensions, and by quick tests and linear programs from three on.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import HalfspaceIntersection

from ..tolerances import DISTANCE, TOUCH, UNIT
from ..traversal import Traversal, TraversedRegion
from ..verdict import Property
from .labels import Labeller
from .outcome import Visited


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of one region.

    kept (M, d+1): the property holds where all rows are ≥ 0 (in the whole region if there is no row), or None if it
    holds nowhere. lost: each row (d+1,), or none at all, leaves one convex piece of the rest where it is ≥ 0.
    """

    visited: Visited
    kept: np.ndarray | None
    lost: tuple[np.ndarray, ...]

    @property
    def region(self) -> TraversedRegion:
        """The region."""
        return self.visited.region

    @cached_property
    def rows(self) -> tuple[np.ndarray | None, ...]:
        """The rows of all parts: the kept one first (None if there is none), then the pieces of the rest."""
        return (self.kept, *self.lost)


def make_parts(labeller: Labeller, visited: Visited, wanted: Property) -> Parts:
    """The parts of a labelled region for a property. What is undecided as a whole counts as not kept."""
    region = visited.region
    whole = np.zeros((0, region.dimension + 1))
    rows = []
    if wanted is not Property.CR:
        if visited.attention == "undecided" and not _has_inner(labeller, region):
            return Parts(visited, None, (whole,))
        if visited.attention == "IR":
            return Parts(visited, None, (whole,))
        if visited.attention != "AR":
            rows += _slab_rows(labeller, region)
    if wanted is not Property.AR and visited.classification != "CR":
        if visited.classification == "MR" or not labeller.tells_kept_part(visited):
            return Parts(visited, None, (whole,))  # a tie, to rounding, is not kept
        forms = labeller.leads(region).T
        # A lead without a slope (to what a division can tell) is kept as it is: only its sign counts.
        sizes = np.maximum(np.linalg.norm(forms[:, :-1], axis=1), np.abs(forms[:, -1]) * UNIT)
        rows += [form / size if size > 0.0 else form for form, size in zip(forms, sizes, strict=True)]
    cutting, lost = [], []
    for row in rows:
        # On the vertices: the bounds of `reach` are rounded outward and would invent pieces.
        values = region.vertices @ row[:-1] + row[-1]
        if values.min() < -DISTANCE:
            lost.append(-row[None])
            if values.max() <= DISTANCE:
                return Parts(visited, None, (whole,))
            cutting.append(row)
    kept = np.array(cutting).reshape(-1, region.dimension + 1)
    if cutting and not has_inside(labeller.traversal, region, kept):
        return Parts(visited, None, (whole,))
    return Parts(visited, kept, tuple(lost))


def has_inside(traversal: Traversal, region: TraversedRegion, rows: np.ndarray) -> bool:
    """Whether the rows leave a part of the region that is wider than the tolerance."""
    if not len(rows):
        return True
    if region.dimension == 1:
        low, high = _interval(np.sort(region.vertices, axis=0), rows)
        return high - low > TOUCH
    if region.dimension == 2:
        return _thickness(clip(region.vertices, rows)) > TOUCH
    values = np.concatenate([region.centres, region.inside[None]]) @ rows[:, :-1].T + rows[:, -1]
    if (values > 1e-6).all(axis=1).any():
        return True
    return traversal.largest_ball(np.concatenate([region.halfspaces, rows])) is not None


def frontier_points(traversal: Traversal, parts: Parts) -> np.ndarray:
    """Where, at its corners (S, d), the kept part is bounded by its own rows: the frontier inside the region."""
    region, rows = parts.region, parts.kept
    if rows is None or not len(rows):
        return np.zeros((0, region.dimension))
    if region.dimension == 1:
        corners = np.array(_interval(np.sort(region.vertices, axis=0), rows))[:, None]
    elif region.dimension == 2:
        corners = clip(region.vertices, rows)
    else:
        both = np.concatenate([region.halfspaces, rows])
        inside = traversal.largest_ball(both)
        if inside is None:
            raise traversal.programs.trouble("the kept part of a region is narrower than the tolerance")
        corners = HalfspaceIntersection(-both, inside).intersections
    return corners[(np.abs(corners @ rows[:, :-1].T + rows[:, -1]) <= TOUCH).any(axis=1)]


def on_facet(traversal: Traversal, region: TraversedRegion, facet: int, rows: np.ndarray | None) -> bool:
    """Whether rows leave a part of a facet that is wider than the tolerance; None leaves nothing."""
    if rows is None or not len(rows):
        return rows is not None
    if region.dimension == 1:
        return bool((region.centres[facet] @ rows[:, :-1].T + rows[:, -1] >= -TOUCH).all())
    if region.dimension == 2:
        low, high = facet_interval(region, facet, rows)
        return high - low > TOUCH
    if (region.centres[facet] @ rows[:, :-1].T + rows[:, -1] > 1e-6).all():
        return True
    corners = facet_corners(region, facet)
    is_outside = (corners @ rows[:, :-1].T + rows[:, -1] < TOUCH).all(axis=0).any()
    return not is_outside and traversal.facet_ball(region, facet, rows) is not None


def differs_on_facet(
    traversal: Traversal, region: TraversedRegion, facet: int, one: np.ndarray | None, other: np.ndarray | None
) -> bool:
    """Whether two kept parts, on the two sides of a facet, have other traces on it."""
    if one is None or other is None:
        return on_facet(traversal, region, facet, one) or on_facet(traversal, region, facet, other)
    if not len(one) and not len(other):
        return False
    if region.dimension == 1:
        return on_facet(traversal, region, facet, one) != on_facet(traversal, region, facet, other)
    if region.dimension == 2:
        ends = np.array([facet_interval(region, facet, rows) for rows in (one, other)])
        is_there = ends[:, 1] - ends[:, 0] > TOUCH
        return bool(is_there[0] != is_there[1] or (is_there.all() and np.abs(ends[0] - ends[1]).max() > 10 * TOUCH))
    for mine, theirs in ((one, other), (other, one)):
        for row in theirs:
            if on_facet(traversal, region, facet, np.concatenate([mine, -row[None] - _nudge(row)])):
                return True
    return False


def facet_corners(region: TraversedRegion, facet: int) -> np.ndarray:
    """The vertices (S, d) of a region that lie on a facet."""
    row = region.halfspaces[facet]
    return region.vertices[np.abs(region.vertices @ row[:-1] + row[-1]) <= TOUCH]


def facet_interval(region: TraversedRegion, facet: int, rows: np.ndarray) -> tuple[float, float]:
    """The part of an edge that rows leave, as lengths from its first end; (0, 0) or less if nothing."""
    row = region.halfspaces[facet]
    along = np.array([-row[1], row[0]])
    places = facet_corners(region, facet) @ along
    low, high = (float(places.min()), float(places.max())) if len(places) else (0.0, 0.0)
    origin = region.centres[facet] - (region.centres[facet] @ along) * along
    for value, rise in zip(rows[:, :-1] @ origin + rows[:, -1], rows[:, :-1] @ along, strict=True):
        if abs(rise) < 1e-12:
            if value < -DISTANCE:
                return low, low
        elif rise > 0.0:
            low = max(low, -value / rise)
        else:
            high = min(high, -value / rise)
    return low, high


def clip(polygon: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The part (V, 2) of a convex polygon where all rows are at least 0."""
    for row in rows:
        values = polygon @ row[:-1] + row[-1]
        points = []
        for i, value in enumerate(values):
            j = (i + 1) % len(values)
            if value >= 0.0:
                points.append(polygon[i])
            if (value > 0.0) != (values[j] > 0.0) and value != values[j]:
                points.append(polygon[i] + value / (value - values[j]) * (polygon[j] - polygon[i]))
        if not points:
            return np.zeros((0, 2))
        polygon = np.array(points)
    return polygon


def _thickness(polygon: np.ndarray) -> float:
    """A lower bound of the width of a convex polygon: its area by its diameter."""
    if len(polygon) < 3:
        return 0.0
    edges = polygon - polygon[0]
    area = 0.5 * float((edges[:-1, 0] * edges[1:, 1] - edges[:-1, 1] * edges[1:, 0]).sum())
    return area / max(float(np.ptp(polygon, axis=0).max()), 1e-300)


def _interval(ends: np.ndarray, rows: np.ndarray) -> tuple[float, float]:
    """The part of an interval (2, 1) that rows (M, 2) leave."""
    low, high = float(ends[0, 0]), float(ends[1, 0])
    for slope, constant in rows:
        if slope > 0.0:
            low = max(low, -constant / slope)
        elif slope < 0.0:
            high = min(high, -constant / slope)
        elif constant < 0.0:
            high = low
    return low, high


def _nudge(row: np.ndarray) -> np.ndarray:
    """Moves a row inward by ten times the width that counts."""
    nudge = np.zeros((1, len(row)))
    nudge[0, -1] = 10 * TOUCH
    return nudge


def _has_inner(labeller: Labeller, region: TraversedRegion) -> bool:
    labels = labeller.slabs(region)
    return bool(labels.inner[0, 0] <= labels.inner[0, 1])


def _slab_rows(labeller: Labeller, region: TraversedRegion) -> list[np.ndarray]:
    """The rows a ≤ t ≤ b of the moving axis between which ai ≤ δ, where they cut the region."""
    labels = labeller.slabs(region)
    axis, domain = labeller.problem.perturbed.moving_axis, labeller.problem.perturbed.domain
    if axis is None:
        return []
    start = labeller.problem.perturbed.cells[region.cell].low[axis]
    middle = 0.5 * (labels.inner[0] + labels.outer[0])
    rows = []
    for end, sign, limit in ((0, 1.0, labels.taus[0, 0]), (1, -1.0, labels.taus[0, 1])):
        if sign * (middle[end] - limit) > 0.0:
            row = np.zeros(region.dimension + 1)
            row[axis] = sign
            row[-1] = -sign * (start + middle[end] - domain.low[axis]) / domain.widths[axis]
            rows.append(row)
    return rows
