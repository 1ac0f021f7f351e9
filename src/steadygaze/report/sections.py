"""The flat pictures of a map: the map itself in one and two dimensions, plane sections through zero in three.

Turns the pieces of an answer into polygons that the drawing code takes. Decides nothing about labels.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..perturbation import Domain
from ..regions.polyhedra import Polyhedra
from ..regions.region import Cut, Polygons
from ..results.domain_result import DomainResult
from ..tolerances import BESIDE
from .section_kernels import cut_polyhedra

NEAR = 1e-4
"""A theta is marked on a section when it is nearer to its plane than this share of the domain's width."""


@dataclass(frozen=True, eq=False)
class Section:
    """A flat part of a map: polygons (S of them) in two of the coordinates of t, and the piece that each belongs to.

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
    def corners(self) -> np.ndarray:
        """The lower left and the upper right corner (2, 2) as drawn."""
        return self.positions(np.array([[0.0, 0.0], [1.0, 1.0]]))

    def positions(self, points: np.ndarray) -> np.ndarray:
        """Points (…, 2) of the section as they are drawn: thetas; with one parameter the second stays as it is."""
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


def make_sections(result: DomainResult) -> tuple[Section, ...]:
    """The whole map, or the three sections of a map of three parameters where one of them is zero.

    Where zero is outside of the domain of a parameter, that one is held at its low end.
    """
    joint, domain = result.answer.joint, result.problem.perturbed.domain
    polytopes = joint.polytopes
    if isinstance(polytopes, Polyhedra):
        return tuple(_cut(result, polytopes, axes) for axes in combinations(range(3), 2))
    outlines = _outlines(polytopes, joint.pieces.cuts)
    return (Section(domain, (0, 1), None, polytopes, np.arange(len(polytopes)), outlines),)


def held_at(domain: Domain, axis: int) -> tuple[float, float]:
    """Where sections hold a parameter: its theta (zero, or the low end of its range), and t beside it.

    Zero is a border of the domain, where every region ends, and often a knot.
    """
    low, high = float(domain.low[axis]), float(domain.high[axis])
    value = 0.0 if low <= 0.0 <= high else low
    at = (value - low) / (high - low)
    return value, at + BESIDE if at < 0.5 else at - BESIDE


def _cut(result: DomainResult, polyhedra: Polyhedra, axes: tuple[int, int]) -> Section:
    domain, axis = result.problem.perturbed.domain, 3 - sum(axes)
    value, at = held_at(domain, axis)
    polygons, piece = cut_at(polyhedra, axis, at)
    outlines = _outlines(polygons, result.answer.joint.pieces.cuts)
    return Section(domain, axes, (axis, value), polygons, piece, outlines)


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
    cut_polyhedra(
        polyhedra.points, polyhedra.starts, polyhedra.facets, polyhedra.facet_starts, polyhedra.incidence,
        chosen, axis, at, np.zeros((most, 3)), np.zeros((most, words), dtype=np.uint64), points, edges, starts,
    )  # fmt: skip
    used = starts[-1]
    polygons = Polygons(points[:used], starts, edges[:used])
    is_there = np.diff(starts) >= 3
    return polygons.take(np.flatnonzero(is_there)), chosen[is_there]


def _outlines(polygons: Polygons, cuts: np.ndarray) -> np.ndarray:
    """The borders between regions and boxes, each once, without the border of the domain."""
    kind = cuts[np.abs(polygons.edges) - 1, 0]
    chosen = (polygons.edges > 0) & np.isin(kind, (Cut.NEURON, Cut.KNOT, Cut.SPLIT))
    return np.stack([polygons.points[chosen], polygons.points[polygons.following[chosen]]], axis=1)
