"""Finds the part of a full map that zero can reach, its outermost boundary, and its enclaves.

R is the union of the pieces that surely satisfy the property. C0 is the closure of R's component, connected through
facets, whose closure contains theta = 0. The rest of the domain falls into components, also connected through facets.
A component without a facet on the border of the domain is an enclave. The frontier between C0 and any other component
is a component of the outermost boundary. Each such frontier is connected, because C0 is closed and connected and a box
has no holes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .compound import Compound
from .errors import OptionError
from .labels import Kept, Property, Stop
from .lazily import scipy_sparse
from .polytopes import Adjacency, Polytopes
from .properties.joint import JointPieces
from .tolerances import TOUCH


@dataclass(frozen=True, eq=False, kw_only=True)
class OuterPart:
    """A part of the domain outside C0, connected through facets, and its frontier with C0.

    pieces (N,): the pieces of the part; share: their share of the domain. facets (F,) index `Boundary.frontier`;
    measure is their length in t (area with three parameters, number of thetas with one). inner and outer: the regions
    along the frontier on the side of C0 and on the other side, ascending.
    """

    pieces: np.ndarray
    share: float
    facets: np.ndarray
    measure: float
    inner: np.ndarray
    outer: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Component(OuterPart):
    """One component of the outermost boundary: the frontier of C0 towards a part that reaches the domain's border.

    touches_border: the frontier itself ends at the border of the domain.
    """

    touches_border: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Enclave(OuterPart):
    """A part of the domain that C0 encloses; zero cannot reach the satisfying pieces in it, if any.

    regions: those with a piece in the enclave; satisfying_share: the share of the domain that lies in the enclave and
    satisfies the property; theta (d,): the enclave's point nearest to zero; distance: its ‖theta‖₂.
    """

    regions: np.ndarray
    satisfying_share: float
    theta: np.ndarray
    distance: float


@dataclass(frozen=True, eq=False)
class Boundary:
    """The outermost boundary of a property on a map of P pieces, exact up to `undecided` pieces and strips beside it.

    kept (P,): `Kept` codes of the property. reachable (P,): the pieces of C0; enclosed (P,): those of C0 and its
    enclaves. starts: the number of facet-connected components whose closures contain zero; C0 is their union, empty if
    there are none. frontier: the facets between C0 and the rest, `first` in C0. farthest (d,): a theta of C0 with the
    largest ‖theta‖₂, None if C0 is empty. undecided (U,): the pieces beside C0 or at zero that may satisfy the
    property; strip_share: the share of the domain within the error of a threshold in C0 and in the pieces beside it.
    """

    wanted: Property
    volumes: np.ndarray
    kept: np.ndarray
    reachable: np.ndarray
    enclosed: np.ndarray
    starts: int
    frontier: Adjacency
    components: tuple[Component, ...]
    enclaves: tuple[Enclave, ...]
    farthest: np.ndarray | None
    undecided: np.ndarray
    strip_share: float

    @property
    def satisfying_share(self) -> float:
        """The share of the domain that satisfies the property."""
        return self.share(self.kept == Kept.YES)

    @property
    def reachable_share(self) -> float:
        """The share of the domain that zero can reach through thetas that satisfy the property."""
        return self.share(self.reachable)

    @property
    def unreachable_share(self) -> float:
        """The share of the domain that satisfies the property but that zero cannot reach."""
        return self.share((self.kept == Kept.YES) & ~self.reachable)

    @property
    def enclosed_share(self) -> float:
        """The share of the domain inside the outermost boundary: C0 and its enclaves."""
        return self.share(self.enclosed)

    @cached_property
    def distance(self) -> float | None:
        """‖theta‖₂ of the farthest reachable theta."""
        return None if self.farthest is None else float(np.linalg.norm(self.farthest))

    @property
    def is_certain(self) -> bool:
        """Whether every piece beside C0 and at zero is decided: then no piece could join C0."""
        return not len(self.undecided)

    def share(self, chosen: np.ndarray) -> float:
        """The share of the domain that the chosen pieces (P,) cover."""
        # The whole domain is exactly 1; a sum of shares may round.
        return 1.0 if chosen.all() else min(float(self.volumes[chosen].sum()), 1.0)


def find_boundary(compound: Compound, stopped: Stop | None, joint: JointPieces, wanted: Property) -> Boundary:
    """The outermost boundary of a property on a full map; OptionError for a partial map or a domain without zero.

    `stopped`: why the map is partial, None for a full map. A facet narrower than the tolerance connects nothing; a
    piece with only such facets belongs to neither C0 nor an enclave.
    """
    refuse_boundary(compound, stopped)
    polytopes = joint.polytopes
    kept, strips = joint.kept(wanted)
    adjacency = polytopes.touching()
    reachable, starts = _reachable(compound, joint, adjacency, kept == Kept.YES)
    return assemble_boundary(
        compound,
        wanted,
        volumes=polytopes.volumes,
        kept=kept,
        strips=strips,
        region=joint.pieces.region,
        is_border=polytopes.on_border(joint.pieces.cuts, compound.domain.dimension),
        at_zero=polytopes.contain(compound.zero_in_t),
        reachable=reachable,
        starts=starts,
        frontier=_frontier(adjacency, reachable),
        outside=_labelled(adjacency, ~reachable),
        nearest=lambda enclaves: [nearest_theta(compound, polytopes, pieces) for pieces in enclaves],
        farthest=_farthest(compound, joint, reachable),
    )


def assemble_boundary(
    compound: Compound,
    wanted: Property,
    *,
    volumes: np.ndarray,
    kept: np.ndarray,
    strips: np.ndarray,
    region: np.ndarray,
    is_border: np.ndarray,
    at_zero: np.ndarray,
    reachable: np.ndarray,
    starts: int,
    frontier: Adjacency,
    outside: np.ndarray,
    nearest: Callable[[Sequence[np.ndarray]], list[np.ndarray]],
    farthest: np.ndarray | None,
) -> Boundary:
    """The boundary, from facts about the pieces (P,) and the facets of C0.

    is_border, at_zero: whether a piece has a facet on the border of the domain, or contains zero. outside (P,): the
    facet-connected component of the complement of C0, −1 in C0. nearest: the theta nearest to zero of each of several
    sets of pieces. The other arguments are as in `Boundary`.
    """
    # Undecided pieces beside C0, and around zero itself, could belong to C0.
    beside = np.union1d(frontier.second, np.flatnonzero(at_zero & ~reachable))
    components: list[Component] = []
    enclosed, inside = reachable.copy(), list[tuple[dict[str, Any], np.ndarray]]()
    for pieces, facets in _parts(outside, frontier):
        shared: dict[str, Any] = {
            "pieces": pieces,
            "share": float(volumes[pieces].sum()),
            "facets": facets,
            "measure": float(frontier.measure[facets].sum()),
            "inner": np.unique(region[frontier.first[facets]]),
            "outer": np.unique(region[frontier.second[facets]]),
        }
        if is_border[pieces].any():
            components.append(Component(**shared, touches_border=_touches_border(compound, facets, frontier)))
        else:
            enclosed[pieces] = True
            inside.append((shared, pieces))
    enclaves = [
        Enclave(
            **shared,
            regions=np.unique(region[pieces]),
            satisfying_share=float(volumes[pieces[kept[pieces] == Kept.YES]].sum()),
            theta=theta,
            distance=float(np.linalg.norm(theta)),
        )
        for (shared, pieces), theta in zip(inside, nearest([pieces for _, pieces in inside]), strict=True)
    ]
    return Boundary(
        wanted=wanted,
        volumes=volumes,
        kept=kept,
        reachable=reachable,
        enclosed=enclosed,
        starts=starts,
        frontier=frontier,
        components=tuple(sorted(components, key=lambda part: -part.measure)),
        enclaves=tuple(sorted(enclaves, key=lambda part: -part.share)),
        farthest=farthest,
        undecided=beside[kept[beside] == Kept.UNKNOWN],
        strip_share=float(strips[reachable].sum() + strips[beside].sum()),
    )


def refuse_boundary(compound: Compound, stopped: Stop | None) -> None:
    """Raise OptionError for a partial map or a domain without zero."""
    domain = compound.domain
    if not domain.contains_zero:
        raise OptionError(
            "the boundary is defined from the unperturbed image, theta = 0, which is not in the domain from "
            f"{domain.low.tolist()} to {domain.high.tolist()}; map a domain that contains zero"
        )
    if stopped is not None:
        raise OptionError(
            f"the boundary needs a full map, but this one is partial ({stopped}); map again with a larger "
            "limit, or a smaller domain"
        )


def _labelled(adjacency: Adjacency, chosen: np.ndarray) -> np.ndarray:
    """For every piece (P,), the number of its facet-connected component among the chosen pieces; −1 if not chosen."""
    both = chosen[adjacency.first] & chosen[adjacency.second]
    labels = joined_labels(adjacency.first[both], adjacency.second[both], len(chosen))
    return np.where(chosen, labels, -1)


def joined_labels(first: np.ndarray, second: np.ndarray, count: int) -> np.ndarray:
    """The number (count,) of the component of each of `count` nodes that edges from first (E,) to second (E,) join.

    >>> joined_labels(np.array([0]), np.array([2]), 4).tolist()
    [0, 1, 0, 2]
    """
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 (slow to import)

    graph = scipy_sparse.coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1])


def _reachable(
    compound: Compound, joint: JointPieces, adjacency: Adjacency, satisfies: np.ndarray
) -> tuple[np.ndarray, int]:
    """The pieces of C0 (P,), and the number of its facet-connected components."""
    labels = _labelled(adjacency, satisfies)
    zero = compound.zero_in_t
    starts = np.unique(labels[satisfies & joint.polytopes.contain(zero)])
    return np.isin(labels, starts), len(starts)


def _frontier(adjacency: Adjacency, reachable: np.ndarray) -> Adjacency:
    """The facets between reachable and other pieces, the reachable piece first."""
    found = adjacency.take(reachable[adjacency.first] != reachable[adjacency.second])
    is_first = reachable[found.first]
    first, second = np.where(is_first, [found.first, found.second], [found.second, found.first])
    return Adjacency(first, second, found.cut, found.measure, found.extent)


def _parts(labels: np.ndarray, frontier: Adjacency) -> list[tuple[np.ndarray, np.ndarray]]:
    """The components of the complement that touch C0: their pieces, and their facets as indices into the frontier.

    labels (P,): the component of each piece.
    """
    order, of_facet = np.argsort(labels, kind="stable"), labels[frontier.second]
    facets, ordered = np.argsort(of_facet, kind="stable"), labels[order]
    parts = []
    for label in np.unique(of_facet):
        first, last = np.searchsorted(ordered, [label, label + 1])
        begin, end = np.searchsorted(of_facet[facets], [label, label + 1])
        parts.append((order[first:last], facets[begin:end]))
    return parts


def _touches_border(compound: Compound, facets: np.ndarray, frontier: Adjacency) -> bool:
    along = frontier.extent[facets][:, :, : compound.domain.dimension]
    return bool(((along <= TOUCH) | (along >= 1.0 - TOUCH)).any())


def nearest_theta(compound: Compound, polytopes: Polytopes, pieces: np.ndarray) -> np.ndarray:
    """The theta (d,) in the pieces that is nearest to zero."""
    from scipy.optimize import nnls  # noqa: PLC0415 (slow to import)

    chosen = polytopes.take(pieces)
    thetas = compound.to_theta(chosen.points)
    low, high = (end.reduceat(thetas, chosen.starts[:-1], axis=0) for end in (np.minimum, np.maximum))
    bounds = np.linalg.norm(np.maximum(np.maximum(low, -high), 0.0), axis=1)
    best, least = thetas[0], np.inf
    for piece in np.argsort(bounds, kind="stable"):
        if bounds[piece] >= least:
            break
        corners = thetas[chosen.starts[piece] : chosen.starts[piece + 1]]
        # The λ ≥ 0 with the least ‖Σ λ_i v_i‖² + (1 − Σ λ_i)² are the nearest point's weights, up to a factor.
        weights = nnls(np.vstack([corners.T, np.ones(len(corners))]), np.append(np.zeros(thetas.shape[1]), 1.0))[0]
        point = weights @ corners / weights.sum()
        if np.linalg.norm(point) < least:
            best, least = point, float(np.linalg.norm(point))
    return best


def _farthest(compound: Compound, joint: JointPieces, reachable: np.ndarray) -> np.ndarray | None:
    """The vertex of the reachable pieces with the largest ‖theta‖₂: a convex function has its maximum at a vertex."""
    points = joint.polytopes.points[reachable[joint.polytopes.owner]]
    if not len(points):
        return None
    thetas = compound.to_theta(points)
    return thetas[np.argmax((thetas * thetas).sum(axis=1))]
