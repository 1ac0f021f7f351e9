"""The interface of the convex shapes of a map, in any dimension.

A shape is the hull of its vertices. Every facet (of a polygon: every edge) carries the signed number of the cut that
made it; two shapes that touch along a cut carry it with opposite signs. `Polygons` and `Polyhedra` implement the
operations that depend on the dimension; the rest of the package uses `Polytopes`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from ..budget import give_back_memory
from ..tolerances import TOUCH
from . import hull_kernels

if TYPE_CHECKING:
    from .adjacency import Adjacency
    from .polygons import Polygons

FREED_BYTES = 2**26
"""Memory is returned to the system after this much was freed: the C library does not do so by itself."""

OUTSIDE = 1e-9
"""A point belongs to a shape up to this distance outside it: an allowance for rounding of vertices and point."""

SMALLEST_FACET = 1e-18
"""Smaller facets have no reliable direction; they only cut off a corner."""


class Cut(IntEnum):
    """The kind of a cut: the first column of a cut table; the other two columns identify the cut."""

    BORDER = 0  # axis, 0 low or 1 high
    KNOT = 1  # axis (−1: the line between two halves of a box), number of the knot cell above it
    NEURON = 2  # layer (0 and 1 are the clip), neuron
    ARGMAX = 3  # two classes
    SLAB = 4  # 0, 0: where the attention is at its threshold
    SPLIT = 5  # axis, 0: where a refinement halves a box


@dataclass(frozen=True, eq=False)
class Polytopes(ABC):
    """R convex shapes in the unit square or cube.

    points (V, D): shape r has the vertices starts[r]:starts[r+1]. facets (F,): the signed cut, numbered from 1, of
    every facet, shape by shape.
    """

    points: np.ndarray
    starts: np.ndarray
    facets: np.ndarray

    dimension: ClassVar[int]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.points[self.starts[index] : self.starts[index + 1]]

    @cached_property
    def owner(self) -> np.ndarray:
        """The shape of every vertex (V,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @cached_property
    def centres(self) -> np.ndarray:
        """The mean of the vertices of every shape (R, D): a point strictly inside."""
        if not len(self):
            return np.zeros((0, self.dimension))
        return np.add.reduceat(self.points, self.starts[:-1], axis=0) / np.diff(self.starts)[:, None]

    def extent(self, axis: int) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest coordinate of every shape along an axis, (R,) each."""
        if axis not in self._extents:
            self._extents[axis] = self.ends_of(np.ascontiguousarray(self.points[:, axis]))
        return self._extents[axis]

    @cached_property
    def _extents(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        return {}

    def extent_along(self, along: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest t · along of every shape (R,), for a direction (R, D) of each."""
        return self.ends_of((self.points * along[self.owner]).sum(axis=1))

    def ends_of(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest of the values (V,) at the vertices of every shape, (R,) each."""
        low, high = (
            end.reduceat(values, self.starts[:-1]) if len(self) else values for end in (np.minimum, np.maximum)
        )
        return low, high

    def bounding_boxes(self) -> tuple[np.ndarray, np.ndarray]:
        """The low and the high corner of the bounding box of every shape, (R, D) each."""
        low, high = zip(*(self.extent(axis) for axis in range(self.dimension)), strict=True)
        return np.stack(low, axis=1), np.stack(high, axis=1)

    def contain(self, point: np.ndarray) -> np.ndarray:
        """The mask (R,) of shapes that contain a point (D,), borders included, within the tolerance."""
        # Facets that are too small to have a direction are skipped: the facets around them suffice.
        is_wide = np.flatnonzero(self.facet_sizes > TOUCH ** (self.dimension - 1))
        centres, outward = self.facet_planes(is_wide)
        is_beyond = ((point - centres) * outward).sum(axis=1) > TOUCH
        return np.bincount(self.facet_owner[is_wide[is_beyond]], minlength=len(self)) == 0

    def deepest(self, point: np.ndarray) -> int | None:
        """The shape in which a point (D,) lies deepest, None if it is outside all shapes."""
        low, high = self.bounding_boxes()
        chosen = np.flatnonzero(((low - OUTSIDE <= point) & (point <= high + OUTSIDE)).all(axis=1))
        if not len(chosen):
            return None
        near = self.take(chosen)
        centres, outward = near.facet_planes(slice(None))
        inward = ((centres - point) * outward).sum(axis=1)
        depth = np.minimum.reduceat(np.where(near.facet_sizes > SMALLEST_FACET, inward, np.inf), near.facet_starts[:-1])
        best = int(np.argmax(depth))
        return int(chosen[best]) if depth[best] >= -OUTSIDE else None

    def on_border(self, cuts: np.ndarray, dimension: int) -> np.ndarray:
        """The mask (R,) of shapes with a facet on the border of the domain, given the table of cuts (E, 3).

        With a single parameter, only the first axis has a border: nothing depends on the second coordinate.
        """
        kind, axis, _ = cuts[np.abs(self.facets) - 1].T
        is_wide = self.facet_sizes > TOUCH ** (self.dimension - 1)
        is_border = (kind == Cut.BORDER) & (axis < dimension) & is_wide
        return np.bincount(self.facet_owner[is_border], minlength=len(self)) > 0

    def nearest_points(self, point: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """For each chosen shape, the squared distance to a point (D,) and the nearest point of the shape: (S, 1 + D).

        In three dimensions, this is a proved lower bound of the squared distance, equal to it up to rounding.
        """
        return self.nearest_points_of(point, self.points, self.starts, chosen)

    @classmethod
    def distance_to_hull(cls, point: np.ndarray, vertices: np.ndarray) -> float:
        """The distance from a point (D,) to the convex hull of vertices (V, D), counter-clockwise in the plane."""
        found = cls.nearest_points_of(point, vertices, np.array([0, len(vertices)]), np.zeros(1, dtype=np.int64))
        return float(np.sqrt(found[0, 0]))

    def margins(self, logits: np.ndarray, region: np.ndarray, label: int) -> np.ndarray:
        """The smallest and largest f_label − max of the other logits on the vertices of every piece (P, 2)."""
        out = np.zeros((len(region), 2))
        hull_kernels.margins(logits, label, self.points, self.starts, region, np.zeros(self.dimension), out)
        return out

    def decided_volumes(
        self,
        logits: np.ndarray,
        label: int,
        region: np.ndarray,
        winner: np.ndarray,
        slack: np.ndarray,
        chosen: np.ndarray,
    ) -> np.ndarray:
        """Volumes (S,) of the parts of the chosen pieces (S,) where the winner beats its rivals by the slack (P,).

        Every class is a rival of the label; only the label is a rival of the other classes.
        """
        own, winners, classes = logits[region[chosen]], winner[chosen, None], np.arange(logits.shape[2])
        leads = np.take_along_axis(own, winners[:, None], axis=2) - own
        leads[:, -1] -= slack[chosen, None]
        is_rival = np.where(winners == label, classes != winners, classes == label)
        always = np.eye(self.dimension + 1)[-1][:, None]
        forms = np.where(is_rival[:, None], leads, always).transpose(0, 2, 1)
        return self.clipped_volumes(chosen, np.ascontiguousarray(forms))

    def slab_volumes(self, chosen: np.ndarray, slab: np.ndarray, along: np.ndarray) -> np.ndarray:
        """Volumes (S,) of the parts of the chosen shapes where slab0 ≤ t · along ≤ slab1.

        Each shape has its own slab (S, 2) and direction (S, D).
        """
        forms = np.empty((len(chosen), 2, self.dimension + 1))
        forms[:, 0, :-1], forms[:, 1, :-1] = along, -along
        forms[:, 0, -1], forms[:, 1, -1] = -slab[:, 0], slab[:, 1]
        return self.clipped_volumes(chosen, forms)

    # Operations that depend on the dimension: whole shapes.

    @property
    @abstractmethod
    def volumes(self) -> np.ndarray:
        """The volume (area) of every shape (R,), in shares of the unit cube (square)."""

    @abstractmethod
    def take(self, chosen: np.ndarray) -> Self:
        """The chosen shapes (an index array) in that order."""

    @abstractmethod
    def bare(self) -> Self:
        """The same shapes without derived arrays, if these are large and quick to compute again."""

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """Join the shapes of several parts in order; empties the list and frees each part once it is copied."""
        filled = [part for part in parts if len(part)]
        parts.clear()
        return filled[0] if len(filled) == 1 else cls._concatenate(filled)

    @classmethod
    @abstractmethod
    def _concatenate(cls, parts: list[Self]) -> Self:
        """See `join`."""

    @classmethod
    @abstractmethod
    def boxes(cls, low: np.ndarray, high: np.ndarray, sides: np.ndarray) -> Self:
        """Boxes from low to high (B, D) with the signed cuts (B, D, 2) at the low and the high end of every axis."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by their names in stored results."""

    @classmethod
    @abstractmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Rebuild the shapes from stored arrays."""

    # Facets.

    if TYPE_CHECKING:  # a field of Polyhedra, which a property of the base would hide

        @property
        def facet_starts(self) -> np.ndarray:
            """Where the facets of every shape begin (R+1,)."""

    @property
    @abstractmethod
    def facet_owner(self) -> np.ndarray:
        """The shape of every facet (F,)."""

    @property
    @abstractmethod
    def facet_sizes(self) -> np.ndarray:
        """The area (length) of every facet (F,)."""

    @property
    @abstractmethod
    def facet_widths(self) -> np.ndarray:
        """The width of every facet (F,) in its narrow direction: area over diameter, or the length of an edge."""

    @abstractmethod
    def facet_planes(self, chosen: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
        """The centre and the outward unit normal of chosen facets, (N, D) each; a facet without size has normal 0."""

    @abstractmethod
    def facet_bends(self) -> np.ndarray:
        """The largest distance of each facet's vertices from its plane (F,)."""

    @abstractmethod
    def touching(self) -> "Adjacency":
        """All pairs of shapes with a common facet wider than the tolerance."""

    # Cuts and parts.

    @abstractmethod
    def split_by_argmax(
        self, logits: np.ndarray, noise: float, base: int
    ) -> tuple[Self, np.ndarray, np.ndarray, np.ndarray]:
        """Split every shape into pieces on which one of its logits (R, D+1, K) wins; ties within `noise` go to any.

        Returns the pieces (including unsplit shapes), the shape (P,) and the winner (P,) of each piece, and the two
        classes (N, 2) of every cut; cuts are numbered from base + 1.
        """

    @abstractmethod
    def split_by_slab(self, slab: np.ndarray, along: np.ndarray, base: int) -> tuple[Self, np.ndarray, np.ndarray, int]:
        """Cut every shape at t · along = slab0 and slab1 (R, 2), if these lie inside it; along (R, D): unit vectors.

        Returns the pieces, the shape of each piece, whether it lies between the two, and the number of cuts.
        """

    @abstractmethod
    def clipped_volumes(self, chosen: np.ndarray, forms: np.ndarray) -> np.ndarray:
        """Volumes (S,) of the parts of the chosen shapes where each of their forms (S, N, D+1) is at least 0."""

    @abstractmethod
    def section(self, axis: int | None, at: float) -> tuple["Polygons", np.ndarray]:
        """The polygons in which the plane t[axis] = at meets the shapes, and the shape (S,) of each polygon.

        Polygons are their own section (axis None). Edges carry their facets' cuts; 0 marks an edge without length.
        """

    @abstractmethod
    def on_line(self, axis: int, point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Intervals where the line along an axis through a point (D,) meets shapes: low, high, shape, (N,) each."""

    @staticmethod
    @abstractmethod
    def clip_hull(vertices: np.ndarray, form: np.ndarray) -> np.ndarray:
        """Points (N, D) whose hull is the part of the hull of vertices (V, D) where the form (D+1,) is at least 0."""

    @staticmethod
    @abstractmethod
    def nearest_points_of(point: np.ndarray, points: np.ndarray, starts: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Like `nearest_points`, for hulls of points (V, D); `starts` as in `Polytopes`."""


def join_rows(parts: list[np.ndarray]) -> np.ndarray:
    """Concatenate arrays (at least one); empties the list along the way to save memory.

    >>> join_rows([np.zeros((2, 3)), np.ones((1, 3))]).shape
    (3, 3)
    """
    whole = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), dtype=np.result_type(*{part.dtype for part in parts}))
    start = freed = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[start : start + len(part)] = part
        start, freed = start + len(part), freed + part.nbytes
        del part
        if freed > FREED_BYTES:
            give_back_memory()
            freed = 0
    return whole


def join_starts(parts: list[np.ndarray]) -> np.ndarray:
    """The starts of all runs of several parts, from the starts of each part.

    >>> join_starts([np.array([0, 2]), np.array([0, 3])]).tolist(), join_starts([]).tolist()
    ([0, 2, 5], [0])
    """
    return starts_of(np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(part) for part in parts)]))


def starts_of(sizes: np.ndarray) -> np.ndarray:
    """Where runs of the given sizes (R,) begin, and where the last one ends (R+1,)."""
    starts = np.empty(len(sizes) + 1, dtype=np.int64)
    starts[0] = 0
    np.add.accumulate(sizes, out=starts[1:])
    return starts


def take_runs(starts: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New starts of the chosen runs, and the indices of their members."""
    sizes = np.diff(starts)[chosen]
    new = starts_of(sizes)
    return new, np.repeat(starts[chosen] - new[:-1], sizes) + np.arange(new[-1])
