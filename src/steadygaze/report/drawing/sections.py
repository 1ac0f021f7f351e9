"""The flat pictures of a result: the tiling itself for one and two parameters, plane sections through zero for three.

Turns the pieces of a map or a refinement, or the visited regions of a search, into polygons. Decides nothing about
labels; volumes come from the pieces themselves.
"""

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ...compiling import compiled
from ...engines.search.search_result import SearchResult
from ...perturbation import Domain
from ...regions.polyhedra import Polyhedra
from ...regions.region import Cut, Polygons
from ...results.result import DomainResult
from ...tolerances import BESIDE
from ..wording import number

Array = np.ndarray[Any, Any]
"""Short for the arguments of compiled loops."""
NEAR = 1e-4
"""A section shows a theta that is nearer to its plane than this share of the domain's width."""
SMALLEST = 1e-15
"""Polygons of a smaller area, as shares of the section, are rounding."""
SAME = 1e-12
"""Corners of a section that are nearer to each other are one; rounding stays well below."""


@dataclass(frozen=True, eq=False)
class Section:
    """A flat part of a tiling: polygons (S of them) in two coordinates of t, and the piece that each belongs to.

    axes are those two coordinates; `held` is the third one and its theta, None where there is none. outlines
    (N, 2, 2) are the borders of regions and boxes.
    """

    domain: Domain
    axes: tuple[int, int]
    held: tuple[int, float] | None
    polygons: Polygons
    piece: np.ndarray
    outlines: np.ndarray

    @property
    def place(self) -> str:
        """Where the section lies, such as "at brightness = 0"; empty for a whole tiling."""
        return "" if self.held is None else f"at {self.domain.names[self.held[0]]} = {number(self.held[1])}"

    @property
    def corners(self) -> np.ndarray:
        """The lower left and the upper right corner (2, 2) as drawn."""
        return self.positions(np.array([[0.0, 0.0], [1.0, 1.0]]))

    def positions(self, points: np.ndarray) -> np.ndarray:
        """Points (…, 2) of the section as drawn: thetas; with one parameter the second coordinate stays."""
        drawn = points.copy()
        for place, axis in enumerate(self.axes):
            if axis < self.domain.dimension:
                low, high = self.domain.low[axis], self.domain.high[axis]
                drawn[..., place] = np.clip(low + points[..., place] * self.domain.widths[axis], low, high)
        return drawn

    def shows(self, theta: np.ndarray) -> bool:
        """Whether a theta (d,) lies in the domain and in the plane of the section."""
        if not self.domain.contains(theta):
            return False
        if self.held is None:
            return True
        axis, value = self.held
        return abs(float(theta[axis]) - value) <= NEAR * float(self.domain.widths[axis])


def make_sections(result: DomainResult | SearchResult) -> tuple[Section, ...]:
    """The whole tiling, or the three sections of a result with three parameters where one of them is zero.

    A parameter whose range does not contain zero is held at its low end.
    """
    domain = domain_of(result)
    if domain.dimension < 3:
        return (_section(result, domain, (0, 1), None, 0.0),)
    held = [(axes, 3 - sum(axes)) for axes in combinations(range(3), 2)]
    values = [held_at(domain, axis) for _, axis in held]
    return tuple(
        _section(result, domain, axes, (axis, value), at)
        for (axes, axis), (value, at) in zip(held, values, strict=True)
    )


def domain_of(result: DomainResult | SearchResult) -> Domain:
    """The domain of any result."""
    return result.question.perturbed.domain


def held_at(domain: Domain, axis: int) -> tuple[float, float]:
    """Where sections hold a parameter: its theta (zero, or the low end of its range), and t beside it.

    Zero is often a border of the domain or a knot, where regions end.
    """
    low, high = float(domain.low[axis]), float(domain.high[axis])
    value = 0.0 if low <= 0.0 <= high else low
    return value, beside((value - low) / (high - low))


def beside(at: float) -> float:
    """A coordinate of t moved a little towards the middle of the domain."""
    return at + BESIDE if at < 0.5 else at - BESIDE


def _section(
    result: DomainResult | SearchResult,
    domain: Domain,
    axes: tuple[int, int],
    held: tuple[int, float] | None,
    at: float,
) -> Section:
    if isinstance(result, SearchResult):
        polygons, piece = _visited_polygons(result, domain, axes, None if held is None else held[0], at)
        return Section(domain, axes, held, polygons, piece, edge_segments(polygons))
    pieces, polytopes = result.answer.joint.pieces, result.answer.joint.polytopes
    if isinstance(polytopes, Polyhedra):
        assert held is not None
        polygons, piece = cut_at(polytopes, held[0], at)
    else:
        polygons, piece = polytopes, np.arange(len(polytopes))
    # The borders between regions and boxes, each once, without the border of the domain.
    kind = pieces.cuts[np.abs(polygons.edges) - 1, 0]
    chosen = (polygons.edges > 0) & np.isin(kind, (Cut.NEURON, Cut.KNOT, Cut.SPLIT))
    return Section(domain, axes, held, polygons, piece, edge_segments(polygons)[chosen])


def edge_segments(polygons: Polygons) -> np.ndarray:
    """All edges (V, 2, 2) of polygons."""
    return np.stack([polygons.points, polygons.points[polygons.following]], axis=1)


def _visited_polygons(
    found: SearchResult, domain: Domain, axes: tuple[int, int], held: int | None, at: float
) -> tuple[Polygons, np.ndarray]:
    """The polygons in which visited regions meet a plane, and the region (S,) of each."""
    # In t: n·(low + widths t) + c = (n widths)·t + (c + n·low).
    rows = found.arrays["halfspaces"]
    forms, constants = rows[:, :-1] * domain.widths, rows[:, -1] + rows[:, :-1] @ domain.low
    if held is not None:
        constants = constants + forms[:, held] * at
    second = forms[:, axes[1]] if domain.dimension > 1 else np.zeros(len(forms))
    lines = np.stack([forms[:, axes[0]], second, constants], axis=1).tolist()
    shapes = [clipped(lines[start:end]) for start, end in pairwise(found.arrays["starts"].tolist())]
    region = np.array([r for r, shape in enumerate(shapes) if _area(shape) > SMALLEST], dtype=np.int64)
    corners = [shapes[r] for r in region]
    points = np.array([corner for shape in corners for corner in shape]).reshape(-1, 2)
    starts = np.concatenate([[0], np.cumsum([len(shape) for shape in corners])]).astype(np.int64)
    return Polygons(points, starts, np.arange(1, len(points) + 1)), region


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
            if min(value, following) < 0.0 < max(value, following):
                share = value / (value - following)
                kept.append((x + share * (next_x - x), y + share * (next_y - y)))
        corners = kept
    return corners


def _area(shape: list[tuple[float, float]]) -> float:
    if len(shape) < 3:
        return 0.0
    (x0, y0), *rest = shape
    return 0.5 * sum((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0) for (x1, y1), (x2, y2) in pairwise(rest))


def cut_at(polyhedra: Polyhedra, axis: int, at: float) -> tuple[Polygons, np.ndarray]:
    """The polygons in which the plane t[axis] = at meets the polyhedra, and whose each is (S,).

    The edges carry the cuts of the facets that they lie in; 0 stands for an edge without length.
    """
    low, high = polyhedra.extent(axis)
    chosen = np.flatnonzero((low < at) & (high > at))
    sizes, facets = np.diff(polyhedra.starts), np.diff(polyhedra.facet_starts)
    # A polygon has at most as many edges as its polyhedron has facets.
    room = int(facets[chosen].sum())
    points, edges = np.zeros((room, 2)), np.zeros(room, dtype=np.int64)
    starts = np.zeros(len(chosen) + 1, dtype=np.int64)
    most, words = int(sizes.max(initial=0)) ** 2 // 4 + 1, polyhedra.incidence.shape[1]
    _cut_polyhedra(
        polyhedra.points, polyhedra.starts, polyhedra.facets, polyhedra.facet_starts, polyhedra.incidence,
        chosen, axis, at, np.zeros((most, 3)), np.zeros((most, words), dtype=np.uint64), points, edges, starts,
    )  # fmt: skip
    used = starts[-1]
    polygons = Polygons(points[:used], starts, edges[:used])
    is_there = np.diff(starts) >= 3
    return polygons.take(np.flatnonzero(is_there)), chosen[is_there]


@compiled
def _is_edge(incidence: Array, first: int, end: int, i: int, j: int, shared: Array) -> bool:
    """Whether two vertices span an edge: at least two common facets, and no third vertex on all of these."""
    count = 0
    for w in range(shared.shape[0]):
        shared[w] = incidence[i, w] & incidence[j, w]
        rest = shared[w]
        while rest != np.uint64(0):
            rest &= rest - np.uint64(1)
            count += 1
    if count < 2:
        return False
    for k in range(first, end):
        if k not in (i, j):
            is_on_all = True
            for w in range(shared.shape[0]):
                is_on_all &= (incidence[k, w] & shared[w]) == shared[w]
            if is_on_all:
                return False
    return True


@compiled
def _common_cut(mine: Array, other: Array, facets: Array, first: int) -> int:
    """The cut of the first facet that two points share, 0 if there is none."""
    for w in range(mine.shape[0]):
        both = mine[w] & other[w]
        for b in range(64):
            if (both >> np.uint64(b)) & np.uint64(1):
                return facets[first + 64 * w + b]
    return 0


@compiled
def _is_new(crossing: Array, on: Array, last: int) -> bool:
    """Whether the last crossing is none of the others; one that is gives its facets to that other.

    The plane may run through a vertex, where several edges are crossed at once.
    """
    for i in range(last):
        if max(abs(crossing[i, 0] - crossing[last, 0]), abs(crossing[i, 1] - crossing[last, 1])) <= SAME:
            for w in range(on.shape[1]):
                on[i, w] |= on[last, w]
            return False
    return True


@compiled
def _by_angle(crossing: Array, count: int, on: Array) -> None:
    """Sort crossings (x, y, angle) counter-clockwise around their mean; `on` goes with them."""
    x, y = 0.0, 0.0
    for i in range(count):
        x, y = x + crossing[i, 0] / count, y + crossing[i, 1] / count
    for i in range(count):
        crossing[i, 2] = np.arctan2(crossing[i, 1] - y, crossing[i, 0] - x)
        j = i
        while j > 0 and crossing[j - 1, 2] > crossing[j, 2]:
            for k in range(3):
                crossing[j - 1, k], crossing[j, k] = crossing[j, k], crossing[j - 1, k]
            for w in range(on.shape[1]):
                on[j - 1, w], on[j, w] = on[j, w], on[j - 1, w]
            j -= 1


@compiled
def _cut_polyhedra(
    points: Array, starts: Array, facets: Array, facet_starts: Array, incidence: Array, chosen: Array, axis: int,
    at: float, crossing: Array, on: Array, out_points: Array, out_edges: Array, out_starts: Array,
) -> None:  # fmt: skip
    """Write the sections of the chosen polyhedra where t[axis] = at; polygons have the other two coordinates.

    crossing (N, 3) and on (N, words) are scratch, with room for every pair of a vertex below and one above. A polygon
    that has more corners than its polyhedron has facets is damaged and left out.
    """
    across, up = (1, 2) if axis == 0 else (0, 2) if axis == 1 else (0, 1)
    used = 0
    out_starts[0] = 0
    for n in range(chosen.shape[0]):
        p = chosen[n]
        first, end = starts[p], starts[p + 1]
        count = 0
        for i in range(first, end):
            if points[i, axis] > at:
                continue
            for j in range(first, end):
                if points[j, axis] <= at or not _is_edge(incidence, first, end, i, j, on[count]):
                    continue
                share = (at - points[i, axis]) / (points[j, axis] - points[i, axis])
                crossing[count, 0] = points[i, across] + share * (points[j, across] - points[i, across])
                crossing[count, 1] = points[i, up] + share * (points[j, up] - points[i, up])
                count += _is_new(crossing, on, count)
        if 3 <= count <= facet_starts[p + 1] - facet_starts[p]:
            _by_angle(crossing, count, on)
            for i in range(count):
                k = i + 1 if i + 1 < count else 0
                out_points[used, 0], out_points[used, 1] = crossing[i, 0], crossing[i, 1]
                out_edges[used] = _common_cut(on[i], on[k], facets, facet_starts[p])
                used += 1
        out_starts[n + 1] = used
