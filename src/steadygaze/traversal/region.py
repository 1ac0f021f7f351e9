"""One region as the traversal knows it: its half-spaces, one point inside each facet, pattern and logits. Data only."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import ConvexHull, HalfspaceIntersection


@dataclass(frozen=True, eq=False)
class TraversedRegion:
    """A region with volume, in t, of the true dimension d.

    halfspaces (F, d+1): unit inward normals and offsets, n·t + c ≥ 0, the non-redundant ones alone. sources (F,): the
    neuron (counted through all layers of the program) that made each, or −1 − (2·axis + side) for a side of the knot
    cell. centres (F, d): a point inside each facet. inside (d,): a point strictly inside. clip and pattern: the packed
    bits of the clip's and of the classifier's neurons. logits (d+1, K): slope in t and constant. corners (V, d) are the
    vertices where the dimension gives them for free. box: the lowest and the highest corner (d,) of the knot cell.
    clearance (L,): the smallest |value| of a neuron of each layer of the classifier at `inside`, divided by the
    neuron's scale (`Traversal.scales`). Both are None where they are not known.
    """

    cell: int
    clip: bytes
    pattern: bytes
    halfspaces: np.ndarray
    sources: np.ndarray
    centres: np.ndarray
    inside: np.ndarray
    logits: np.ndarray
    corners: np.ndarray | None = None
    box: tuple[np.ndarray, np.ndarray] | None = None
    clearance: np.ndarray | None = None

    @cached_property
    def key(self) -> bytes:
        """What tells this region from all others: the knot cell and the pattern of all layers."""
        return make_key(self.cell, self.clip, self.pattern)

    @property
    def dimension(self) -> int:
        """The number of parameters d."""
        return len(self.inside)

    @cached_property
    def vertices(self) -> np.ndarray:
        """The vertices (V, d); counter-clockwise in two dimensions."""
        if self.corners is not None:
            return self.corners
        if self.dimension == 1:
            return np.sort(self.centres, axis=0)
        found = HalfspaceIntersection(-self.halfspaces, self.inside).intersections
        if self.box is not None:
            found = np.clip(found, *self.box)  # no theta of the domain lies outside of it
        if self.dimension > 2:
            return found
        return found[np.argsort(np.arctan2(*(found - self.inside).T[::-1]), kind="stable")]

    @cached_property
    def volume(self) -> float:
        """The volume as a share of the domain: length in one dimension, area in two."""
        points = self.vertices
        if self.dimension == 1:
            return float(points[1, 0] - points[0, 0])
        if self.dimension == 2:
            edges = points - points[0]
            return float(0.5 * (edges[:-1, 0] * edges[1:, 1] - edges[:-1, 1] * edges[1:, 0]).sum())
        return float(ConvexHull(points).volume)

    def contains(self, point: np.ndarray, *, within: float = 1e-9) -> bool:
        """Tell whether a point (d,) satisfies all half-spaces, up to a distance."""
        return bool((self.halfspaces[:, :-1] @ point + self.halfspaces[:, -1] >= -within).all())


def make_key(cell: int, clip: bytes, pattern: bytes) -> bytes:
    """The key of the region with these bits in a knot cell."""
    return cell.to_bytes(4, "big") + clip + pattern
