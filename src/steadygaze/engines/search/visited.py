"""The data that searches collect: regions, visited regions with their labels, and the components of a boundary."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from scipy.spatial import ConvexHull, HalfspaceIntersection

from ... import labels
from ...labels import Label, Property
from .solids import Faces

CLASSIFICATIONS, ATTENTIONS = (
    ("", Label.UNDECIDED, *labels.CLASSIFICATIONS),
    ("", Label.UNDECIDED, *labels.ATTENTIONS),
)
"""The labels in the order of their stored codes; "" if the label was not requested."""


def make_key(cell: int, clip: bytes, pattern: bytes) -> bytes:
    """The key of the region with these bits in a knot cell."""
    return cell.to_bytes(4, "big") + clip + pattern


def polygon_area(corners: np.ndarray) -> float:
    """The area of a convex polygon (V, 2), counter-clockwise."""
    edges = corners - corners[0]
    return float(0.5 * (edges[:-1, 0] * edges[1:, 1] - edges[:-1, 1] * edges[1:, 0]).sum())


@dataclass(frozen=True, eq=False)
class TraversedRegion:
    """A region with volume, in t, of the true dimension d.

    halfspaces (F, d+1): unit inward normals and offsets, n·t + c ≥ 0, none redundant. sources (F,): the neuron behind
    each facet, numbered through all layers of the program (for a window, the entry that reaches the winner there);
    −1 − (2·axis + side) for a side of the knot cell's box; −1 − 2d for the line between two halves of a box. centres
    (F, d): a point inside each facet. inside (d,): a point strictly inside. clip and pattern: packed bits of the clip's
    and the classifier's neurons. logits (d+1, K): slope in t and constant. corners (V, d): the vertices, up to three
    dimensions; faces: those of a polyhedron with these corners. box: the lowest and highest corner (d,) of the knot
    cell. clearance (L,): for each classifier layer, the smallest distance of a neuron from its kink at `inside`,
    divided by its scale (see `measuring_kernels`). known_volume: the volume, if stored or measured. The last five are
    None if unknown.
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
    faces: Faces | None = None
    box: tuple[np.ndarray, np.ndarray] | None = None
    clearance: np.ndarray | None = None
    known_volume: float | None = None

    @cached_property
    def key(self) -> bytes:
        """The identity of this region: the knot cell and the pattern of all layers."""
        return make_key(self.cell, self.clip, self.pattern)

    @property
    def dimension(self) -> int:
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
            found = np.clip(found, *self.box)  # no theta of the domain lies outside the box
        if self.dimension > 2:
            return found
        return found[np.argsort(np.arctan2(*(found - self.inside).T[::-1]), kind="stable")]

    @cached_property
    def volume(self) -> float:
        """The volume as a share of the domain: length in one dimension, area in two."""
        if self.known_volume is not None:
            return self.known_volume
        points = self.vertices
        if self.dimension == 1:
            return float(points[1, 0] - points[0, 0])
        return polygon_area(points) if self.dimension == 2 else float(ConvexHull(points).volume)

    def contains(self, point: np.ndarray, *, within: float = 1e-9) -> bool:
        """Return whether a point (d,) satisfies all half-spaces, up to a distance."""
        return bool((self.halfspaces[:, :-1] @ point + self.halfspaces[:, -1] >= -within).all())


class Holds(Enum):
    """Whether a property holds on a region: everywhere, nowhere, in part, or unknown."""

    EVERYWHERE = "everywhere"
    NOWHERE = "nowhere"
    PARTLY = "partly"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Visited:
    """One region with its labels.

    classification is CR, MR, CB or undecided, attention is AR, IR, AB or undecided; "" if not requested. margin
    encloses f_label − (largest other logit) and inconsistency encloses ai, both over the region. `is_following`: the
    search was following a boundary when it reached the region. `is_doubtful`: the pattern is uncertain, so bounds for
    any pattern decide the attention.
    """

    region: TraversedRegion
    classification: str
    attention: str
    margin: tuple[float, float]
    inconsistency: tuple[float, float]
    is_following: bool = False
    is_doubtful: bool = False

    def holds(self, wanted: Property) -> Holds:
        asked = {self.classification if wanted is not Property.AR else Label.CR}
        asked |= {self.attention if wanted is not Property.CR else Label.AR}
        if asked & {Label.MR, Label.IR}:
            return Holds.NOWHERE
        if asked & {"", Label.UNDECIDED}:
            return Holds.UNKNOWN
        return Holds.PARTLY if asked & {Label.CB, Label.AB} else Holds.EVERYWHERE


@dataclass(frozen=True, eq=False)
class BoundaryPart:
    """One component of the outermost boundary: keys of the regions along it, on the reachable side and beyond."""

    inner: frozenset[bytes]
    outer: frozenset[bytes]
