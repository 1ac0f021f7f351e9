"""Divides regions into parts where a property holds or does not, and finds the components of the outermost boundary.

A region has one convex part where the property holds, and convex pieces that cover the rest. A part is given by the
region's half-spaces and a few more rows. Up to three dimensions, vertices decide whether two parts touch; in four,
quick tests and linear programs do. Kept parts that touch through facets are joined; those joined to zero are reachable.
All other parts are joined in the same way. If a component of these touches both the border of the domain and the
reachable part, its frontier belongs to the outermost boundary (in a box, the frontier between two connected sets is
connected). The other components are enclaves.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from scipy.cluster.hierarchy import DisjointSet
from scipy.spatial import HalfspaceIntersection

from ...labels import Label, Property
from ...polytopes import Polygons
from ...tolerances import DISTANCE, TOUCH, UNIT
from .clipping_kernels import clipped_width
from .labeller import Labeller
from .traversal import Traversal
from .visited import BoundaryPart, TraversedRegion, Visited, polygon_area

Node = tuple[bytes, int]  # a part: the key of its region, and its place in `Parts.rows`
KeyBeyond = Callable[[TraversedRegion, int], bytes | None]


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of one region.

    kept (M, d+1): the property holds where all rows are ≥ 0 (in the whole region if there are no rows); None if it
    holds nowhere. lost: convex pieces that cover the rest; each is the part where its row (d+1,) is ≥ 0, or the whole
    region if it has no row.
    """

    visited: Visited
    kept: np.ndarray | None
    lost: tuple[np.ndarray, ...]

    @property
    def region(self) -> TraversedRegion:
        return self.visited.region

    @cached_property
    def rows(self) -> tuple[np.ndarray | None, ...]:
        """The rows of all parts: the kept part first (None if there is none), then the pieces of the rest."""
        return (self.kept, *self.lost)

    def keeps(self, point: np.ndarray) -> bool:
        """Whether a point (d,) of the region belongs to the closure of its kept part."""
        if self.kept is None or not len(self.kept):
            return self.kept is not None
        return bool((_values(self.kept, point) >= -TOUCH).all())


def _values(rows: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The values of rows (M, d+1) at points (…, d): (…, M)."""
    return points @ rows[:, :-1].T + rows[:, -1]


def make_parts(labeller: Labeller, visited: Visited, wanted: Property) -> Parts:
    """The parts of a labelled region for a property. An undecided region counts as not kept."""
    region = visited.region
    nowhere = Parts(visited, None, (np.zeros((0, region.dimension + 1)),))
    rows = []
    if wanted is not Property.CR:
        low, high = labeller.slabs(region).inner[0] if visited.attention == Label.UNDECIDED else (0.0, 0.0)
        if visited.attention == Label.IR or low > high:
            return nowhere  # ai ≤ δ is nowhere certain
        if visited.attention != Label.AR:
            rows += _slab_rows(labeller, region)
    if wanted is not Property.AR and visited.classification != Label.CR:
        if visited.classification == Label.MR or not labeller.has_certain_kept_part(visited):
            return nowhere  # a tie up to rounding is not kept
        forms = labeller.leads(region).T
        # A lead without a (divisible) slope is constant: only its sign counts.
        sizes = np.maximum(np.linalg.norm(forms[:, :-1], axis=1), np.abs(forms[:, -1]) * UNIT)
        rows += [form / size if size > 0.0 else form for form, size in zip(forms, sizes, strict=True)]
    cutting = []
    for row in rows:
        # By vertices: linear programs round outward, which would create pieces that do not exist.
        values = region.vertices @ row[:-1] + row[-1]
        if values.min() < -DISTANCE:
            if values.max() <= DISTANCE:
                return nowhere
            cutting.append(row)
    kept = np.array(cutting).reshape(-1, region.dimension + 1)
    if cutting and not has_inside(labeller.traversal, region, kept):
        return nowhere
    return Parts(visited, kept, tuple(-row[None] for row in cutting))


def _slab_rows(labeller: Labeller, region: TraversedRegion) -> list[np.ndarray]:
    """The rows a ≤ t ≤ b along the moving axis that bound the part with ai ≤ δ, if they cut the region."""
    if labeller.question.perturbed.moving_axis is None:
        return []
    labels = labeller.slabs(region)
    assert labels.along is not None
    along, middle = labels.along[0, : region.dimension], 0.5 * (labels.inner[0] + labels.outer[0])
    ends = ((1.0, middle[0], labels.ends[0, 0]), (-1.0, middle[1], labels.ends[0, 1]))
    return [sign * np.append(along, -at) for sign, at, limit in ends if sign * (at - limit) > 0.0]


def has_inside(traversal: Traversal, region: TraversedRegion, rows: np.ndarray) -> bool:
    """Whether the part of the region where the rows are ≥ 0 is wider than the tolerance."""
    if not len(rows):
        return True
    if region.dimension == 1:
        return float(np.diff(_interval(region, rows))[0]) > TOUCH
    if region.dimension == 2:
        return _thickness(reduce(Polygons.clip_hull, rows, region.vertices)) > TOUCH
    if (_values(rows, np.concatenate([region.centres, region.inside[None]])) > 1e-6).all(axis=1).any():
        return True
    if region.faces is not None and region.corners is not None:
        part = traversal.cutter.part(region.corners, region.faces, rows)
        # No shape has more volume than its width times the square of its diameter.
        return part is not None and part.volume > TOUCH * max(float(np.ptp(part.vertices, axis=0).max()), 1e-300) ** 2
    return traversal.finder.centre(np.concatenate([region.halfspaces, rows])) is not None


def frontier_points(traversal: Traversal, parts: Parts) -> np.ndarray:
    """The corners (S, d) of the frontier inside a region: the corners of its kept part that lie on the part's rows."""
    region, rows = parts.region, parts.kept
    if rows is None or not len(rows):
        return np.zeros((0, region.dimension))
    if region.dimension == 1:
        corners = np.array(_interval(region, rows))[:, None]
    elif region.dimension == 2:
        corners = reduce(Polygons.clip_hull, rows, region.vertices)
    elif region.faces is not None and region.corners is not None:
        part = traversal.cutter.part(region.corners, region.faces, rows)
        corners = np.zeros((0, 3)) if part is None else part.vertices
    else:
        both = np.concatenate([region.halfspaces, rows])
        inside = traversal.finder.centre(both)
        if inside is None:
            raise traversal.programs.trouble("the kept part of a region is narrower than the tolerance")
        corners = HalfspaceIntersection(-both, inside).intersections
    return corners[(np.abs(_values(rows, corners)) <= TOUCH).any(axis=1)]


def on_facet(traversal: Traversal, region: TraversedRegion, facet: int, rows: np.ndarray | None) -> bool:
    """Whether the part of a facet where the rows are ≥ 0 is wider than the tolerance; None stands for an empty part."""
    if rows is None or not len(rows):
        return rows is not None
    if region.dimension == 1:
        return bool((_values(rows, region.centres[facet]) >= -TOUCH).all())
    if region.dimension == 2:
        return float(np.diff(_edge_part(region, facet, rows))[0]) > TOUCH
    if (_values(rows, region.centres[facet]) > 1e-6).all():
        return True
    is_outside = (_values(rows, facet_corners(region, facet)) < TOUCH).all(axis=0).any()
    if region.faces is not None and not is_outside:
        loop = region.vertices[region.faces.loop(facet)]
        return clipped_width(loop, np.ascontiguousarray(rows), np.empty((2, len(loop) + len(rows), 3))) > TOUCH
    return not is_outside and traversal.has_facet_left(region, facet, rows)


def differing_ends(traversal: Traversal, parts: Parts, facet: int, other: Parts) -> np.ndarray:
    """If two kept parts have different traces on the facet between them, the points (S, d) where the traces may end.

    These are the corners of the facet, and in two dimensions also the ends of both traces.
    """
    region = parts.region
    if not _differs_on_facet(traversal, region, facet, parts.kept, other.kept):
        return np.zeros((0, region.dimension))
    corners = facet_corners(region, facet)
    if region.dimension != 2:
        return corners
    origin, along = _edge_line(region, facet)
    ends = [_edge_part(region, facet, rows) for rows in (parts.kept, other.kept) if rows is not None and len(rows)]
    places = np.array([place for low, high in ends if high > low for place in (low, high)])
    return np.concatenate([corners, origin + places[:, None] * along]) if len(places) else corners


def _differs_on_facet(
    traversal: Traversal, region: TraversedRegion, facet: int, one: np.ndarray | None, other: np.ndarray | None
) -> bool:
    """Whether two kept parts on both sides of a facet have different traces on it."""
    if one is None or other is None:
        return on_facet(traversal, region, facet, one) or on_facet(traversal, region, facet, other)
    if not len(one) and not len(other):
        return False
    if region.dimension == 1:
        return on_facet(traversal, region, facet, one) != on_facet(traversal, region, facet, other)
    if region.dimension == 2:
        ends = np.array([_edge_part(region, facet, rows) for rows in (one, other)])
        is_there = ends[:, 1] - ends[:, 0] > TOUCH
        return bool(is_there[0] != is_there[1] or (is_there.all() and np.abs(ends[0] - ends[1]).max() > 10 * TOUCH))
    # Look beyond each row of the other part, moved inward by ten times the width that counts.
    inward = np.append(np.zeros(region.dimension), 10 * TOUCH)
    return any(
        on_facet(traversal, region, facet, np.concatenate([mine, -row[None] - inward]))
        for mine, theirs in ((one, other), (other, one))
        for row in theirs
    )


def facet_corners(region: TraversedRegion, facet: int) -> np.ndarray:
    """The vertices (S, d) of a region that lie on a facet."""
    if region.faces is not None:
        return region.vertices[region.faces.loop(facet)]
    row = region.halfspaces[facet]
    return region.vertices[np.abs(region.vertices @ row[:-1] + row[-1]) <= TOUCH]


def _edge_line(region: TraversedRegion, facet: int) -> tuple[np.ndarray, np.ndarray]:
    """The line of an edge: its point (2,) nearest to the origin of t, and its direction (2,) of length 1."""
    row = region.halfspaces[facet]
    along = np.array([-row[1], row[0]])
    return region.centres[facet] - (region.centres[facet] @ along) * along, along


def _edge_part(region: TraversedRegion, facet: int, rows: np.ndarray) -> tuple[float, float]:
    """The part of an edge where rows are ≥ 0, as lengths along `_edge_line`; high ≤ low if it is empty."""
    origin, along = _edge_line(region, facet)
    return _part_of_line(origin, along, facet_corners(region, facet) @ along, rows)


def _interval(region: TraversedRegion, rows: np.ndarray) -> tuple[float, float]:
    """The part of a region of one parameter where rows (M, 2) are ≥ 0; high ≤ low if it is empty."""
    return _part_of_line(np.zeros(1), np.ones(1), region.vertices, rows)


def _part_of_line(origin: np.ndarray, along: np.ndarray, places: np.ndarray, rows: np.ndarray) -> tuple[float, float]:
    """The part of the line origin + s · along where rows are ≥ 0, for s between the smallest and the largest place."""
    low, high = (float(places.min()), float(places.max())) if len(places) else (0.0, 0.0)
    for value, rise in zip(rows[:, :-1] @ origin + rows[:, -1], rows[:, :-1] @ along, strict=True):
        if abs(rise) < 1e-12:
            if value < -DISTANCE:
                return low, low
        elif rise > 0.0:
            low = max(low, -value / rise)
        else:
            high = min(high, -value / rise)
    return low, high


def _thickness(polygon: np.ndarray) -> float:
    """A lower bound on the width of a convex polygon: its area divided by its diameter."""
    return polygon_area(polygon) / max(float(np.ptp(polygon, axis=0).max()), 1e-300) if len(polygon) > 2 else 0.0


def outermost_parts(
    traversal: Traversal,
    parts: Mapping[bytes, Parts],
    key_beyond: KeyBeyond,
    zero: np.ndarray,
    goes_on: Callable[[], bool] = lambda: True,
) -> list[BoundaryPart] | None:
    """The components of the outermost boundary, in the order of their keys; None if the budget ends."""
    pairs = list(_touching(traversal, parts, key_beyond, goes_on))
    if not goes_on():
        return None
    nodes = [(key, i) for key, own in parts.items() for i, rows in enumerate(own.rows) if rows is not None]
    kept, rest = DisjointSet(nodes), DisjointSet(nodes)
    for one, other in pairs:
        if one[1] == 0 and other[1] == 0:
            kept.merge(one, other)
    at_zero = (key for key, own in parts.items() if own.region.contains(zero, within=TOUCH) and own.keeps(zero))
    start = {kept[key, 0] for key in at_zero}
    reachable = {node for node in nodes if node[1] == 0 and kept[node] in start}
    for one, other in pairs:
        if one not in reachable and other not in reachable:
            rest.merge(one, other)
    outside = {rest[node] for node in _on_border(traversal, parts) if node not in reachable}
    sides: dict[Node, tuple[set[bytes], set[bytes]]] = {}
    for one, other in pairs:
        inner, outer = (one, other) if one in reachable else (other, one)
        if inner in reachable and outer not in reachable and rest[outer] in outside:
            keys = sides.setdefault(rest[outer], (set(), set()))
            keys[0].add(inner[0])
            keys[1].add(outer[0])
    ordered = sorted(sides, key=lambda root: min(rest.subset(root)))
    return [BoundaryPart(*map(frozenset, sides[root])) for root in ordered]


def _touching(
    traversal: Traversal, parts: Mapping[bytes, Parts], key_beyond: KeyBeyond, goes_on: Callable[[], bool]
) -> Iterator[tuple[Node, Node]]:
    """All pairs of parts that touch: inside one region, and across every facet between two regions."""
    for key, own in parts.items():
        if not goes_on():
            return
        for i, mine in enumerate(own.lost, start=1):
            if own.kept is not None:
                yield (key, 0), (key, i)
            for j, theirs in enumerate(own.lost[i:], start=i + 1):
                if has_inside(traversal, own.region, np.concatenate([mine, theirs])):
                    yield (key, i), (key, j)
        for facet in range(len(own.region.halfspaces)):
            beyond = key_beyond(own.region, facet)
            if beyond is None or beyond <= key or beyond not in parts:
                continue
            for i, rows in enumerate(own.rows):
                if rows is None or not on_facet(traversal, own.region, facet, rows):
                    continue
                for j, others in enumerate(parts[beyond].rows):
                    if others is not None and on_facet(traversal, own.region, facet, np.concatenate([rows, others])):
                        yield (key, i), (beyond, j)


def _on_border(traversal: Traversal, parts: Mapping[bytes, Parts]) -> Iterator[Node]:
    for key, own in parts.items():
        for facet in range(len(own.region.halfspaces)):
            if traversal.cell_across(own.region, facet) is None:
                for i, rows in enumerate(own.rows):
                    if on_facet(traversal, own.region, facet, rows):
                        yield key, i
