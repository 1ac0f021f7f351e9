"""Finds the outermost boundary of a map in chunks, one chunk at a time.

Two pieces in different chunks can only touch at a cut that both chunks have. So a chunk alone joins its pieces to
components that satisfy the property or do not; only the pieces at shared cuts, and the facets between the two kinds of
components, are kept of it. Of every other piece there remain a few numbers.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...boundary import Boundary, assemble_boundary, joined_labels, nearest_theta
from ...compound import Compound
from ...labels import Kept, Property
from ...polytopes import Adjacency, Polytopes, join_polytopes
from ...properties.joint import JointPieces


class LoadedChunk(NamedTuple):
    """A chunk: its pieces, and the ids (E,) of the cuts at the start of its table."""

    joint: JointPieces
    ids: np.ndarray


@dataclass(frozen=True, eq=False)
class ChunkComponents:
    """What is kept of a chunk with P pieces.

    component (P,): the piece's component within the chunk; corner (C, d) and square (C,): the corner of each component
    that is farthest from zero, and its ‖theta‖₂². mixed: the facets between components that satisfy the property and
    others, at cuts of this chunk alone. rim: the pieces rim_piece at cuts that other chunks have, with other facets
    numbered 0.
    """

    volumes: np.ndarray
    kept: np.ndarray
    strips: np.ndarray
    region: np.ndarray
    is_border: np.ndarray
    at_zero: np.ndarray
    component: np.ndarray
    corner: np.ndarray
    square: np.ndarray
    mixed: Adjacency
    cuts: int
    rim: Polytopes
    rim_piece: np.ndarray


def chunk_components(
    compound: Compound, chunk: LoadedChunk, first_region: int, wanted: Property, shared: np.ndarray
) -> ChunkComponents:
    """The components of a chunk; shared (S,): the ascending ids of all cuts that several chunks have."""
    joint = chunk.joint
    pieces, polytopes = joint.pieces, joint.polytopes
    kept, strips = joint.kept(wanted)
    # The numbers of shared cuts among all shared cuts, 0 for cuts of this chunk alone.
    number = np.zeros(len(pieces.cuts) + 1, dtype=np.int64)
    number[1 : len(chunk.ids) + 1] = np.where(np.isin(chunk.ids, shared), np.searchsorted(shared, chunk.ids) + 1, 0)
    adjacency = polytopes.touching()
    own = adjacency.take(number[adjacency.cut] == 0)
    satisfies = kept == Kept.YES
    is_same = satisfies[own.first] == satisfies[own.second]
    component = joined_labels(own.first[is_same], own.second[is_same], len(kept))
    facets = np.sign(polytopes.facets) * number[np.abs(polytopes.facets)]
    rim_piece = np.unique(polytopes.facet_owner[facets != 0])
    corner, square = _farthest(compound, polytopes, component)
    return ChunkComponents(
        volumes=polytopes.volumes,
        kept=kept.astype(np.uint8),
        strips=strips,
        region=pieces.region + first_region,
        is_border=polytopes.on_border(pieces.cuts, compound.domain.dimension),
        at_zero=polytopes.contain(compound.zero_in_t),
        component=component.astype(np.int32),
        corner=corner,
        square=square,
        mixed=own.take(~is_same),
        cuts=len(pieces.cuts),
        rim=replace(polytopes, facets=facets).take(rim_piece),
        rim_piece=rim_piece,
    )


def _farthest(compound: Compound, polytopes: Polytopes, component: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corner (C, d) of every component with the largest ‖theta‖₂, and ‖theta‖₂² (C,)."""
    thetas = compound.to_theta(polytopes.points)
    squares = (thetas * thetas).sum(axis=1)
    owner = component[polytopes.owner]
    best = np.full(int(component.max(initial=-1)) + 1, -1.0)
    np.maximum.at(best, owner, squares)
    chosen = np.flatnonzero(squares == best[owner])
    first = np.unique(owner[chosen], return_index=True)[1]
    return thetas[chosen[first]], best


def shared_cuts(ids: Iterable[np.ndarray]) -> np.ndarray:
    """The ascending ids of the cuts that several chunks have, given the ids of each."""
    found, counts = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *ids]), return_counts=True)
    return found[counts > 1]


def chunked_boundary(
    compound: Compound,
    parts: Sequence[ChunkComponents],
    wanted: Property,
    shared: np.ndarray,
    load: Callable[[int], JointPieces],
) -> Boundary:
    """The outermost boundary, from the components of all chunks; load(number): the pieces of a chunk, loaded again."""
    first = np.cumsum([0, *(len(part.kept) for part in parts)])
    base = np.cumsum([0, *(len(part.corner) for part in parts)])
    cuts = len(shared) + np.cumsum([0, *(part.cuts for part in parts)])
    columns = ("volumes", "kept", "strips", "region", "is_border", "at_zero", "corner", "square")
    whole: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    component = np.concatenate([part.component + start for part, start in zip(parts, base, strict=False)])
    rim_piece = np.concatenate([part.rim_piece + start for part, start in zip(parts, first, strict=False)])
    between = join_polytopes([part.rim for part in parts]).touching()
    between = replace(between, first=rim_piece[between.first], second=rim_piece[between.second])
    satisfies = whole["kept"] == Kept.YES
    is_same = satisfies[between.first] == satisfies[between.second]
    mixed = _joined([_moved(part.mixed, first[i], cuts[i]) for i, part in enumerate(parts)] + [between.take(~is_same)])
    group = joined_labels(component[between.first[is_same]], component[between.second[is_same]], int(base[-1]))
    of_piece = group[component]
    starts = np.unique(of_piece[satisfies & whole["at_zero"]])
    reachable = np.isin(of_piece, starts) & satisfies
    # Facets between pieces that satisfy the property join no component of it: the first piece of a frontier does.
    is_first = satisfies[mixed.first]
    mixed = replace(
        mixed,
        first=np.where(is_first, mixed.first, mixed.second),
        second=np.where(is_first, mixed.second, mixed.first),
    )
    is_frontier = reachable[mixed.first]
    frontier, beyond = mixed.take(is_frontier), mixed.take(~is_frontier)
    outside = joined_labels(of_piece[beyond.first], of_piece[beyond.second], int(group.max(initial=-1)) + 1)
    squares = np.where(np.isin(group, starts), whole["square"], -1.0)
    squares[~_of_components(satisfies, component)] = -1.0
    farthest = whole["corner"][np.argmax(squares)] if squares.max(initial=-1.0) >= 0.0 else None

    def nearest(enclaves: Sequence[np.ndarray]) -> list[np.ndarray]:
        found: list[np.ndarray | None] = [None] * len(enclaves)
        for number in range(len(parts)):
            ends = [np.searchsorted(pieces, first[number : number + 2]) for pieces in enclaves]
            chosen = [place for place, (start, end) in enumerate(ends) if start < end]
            polytopes = load(number).polytopes if chosen else None
            for place in chosen:
                assert polytopes is not None
                theta = nearest_theta(compound, polytopes, enclaves[place][slice(*ends[place])] - first[number])
                best = found[place]
                if best is None or np.linalg.norm(theta) < np.linalg.norm(best):
                    found[place] = theta
        return [theta for theta in found if theta is not None]

    return assemble_boundary(
        compound,
        wanted,
        volumes=whole["volumes"],
        kept=whole["kept"],
        strips=whole["strips"],
        region=whole["region"],
        is_border=whole["is_border"],
        at_zero=whole["at_zero"],
        reachable=reachable,
        starts=len(starts),
        frontier=frontier,
        outside=np.where(reachable, -1, outside[of_piece]),
        nearest=nearest,
        farthest=farthest,
    )


def _of_components(satisfies: np.ndarray, component: np.ndarray) -> np.ndarray:
    """Whether the pieces of each component satisfy the property."""
    found = np.zeros(int(component.max(initial=-1)) + 1, dtype=bool)
    found[component[satisfies]] = True
    return found


def _moved(facets: Adjacency, first: int, cut: int) -> Adjacency:
    """Facets of a chunk, with the numbers that pieces and cuts have in the whole map."""
    return replace(facets, first=facets.first + first, second=facets.second + first, cut=facets.cut + cut)


def _joined(parts: Sequence[Adjacency]) -> Adjacency:
    names = ("first", "second", "cut", "measure", "extent")
    return Adjacency(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
