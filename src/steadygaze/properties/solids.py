"""Maps of three parameters: drives the compiled loops over polyhedra (`solid_kernels`), makes room for their output."""

from collections.abc import Iterator

import numpy as np

from ..errors import InternalError
from ..regions.polyhedra import Polyhedra
from . import hull_kernels, solid_kernels
from .solid_kernels import Room, Solids

GROWTH = (1, 4, 16, 64)
"""How much room is tried, in multiples of what is usually enough."""


def split_by_argmax(
    polyhedra: Polyhedra, logits: np.ndarray, noise: float, base: int
) -> tuple[Polyhedra, np.ndarray, np.ndarray, np.ndarray]:
    """See `shapes.split_by_argmax`."""
    for growth, room in _rooms(polyhedra):
        count = len(polyhedra) + growth * (1024 + len(polyhedra) // 2)
        out = _output(polyhedra, room, count, growth)
        origin, winner = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        pairs = np.zeros((count, 2), dtype=np.int64)
        pieces, cuts = solid_kernels.split_by_argmax(
            logits, noise, _arrays(polyhedra), base, room, out, origin, winner, pairs
        )
        if pieces >= 0:
            return _used(out, pieces), origin[:pieces].copy(), winner[:pieces].copy(), pairs[:cuts].copy()
    raise InternalError("a region has more argmax pieces than there is room for: please report the model")


def split_by_slab(
    polyhedra: Polyhedra, slab: np.ndarray, axis: int, base: int
) -> tuple[Polyhedra, np.ndarray, np.ndarray, int]:
    """See `shapes.split_by_slab`."""
    for growth, room in _rooms(polyhedra):
        count = 3 * len(polyhedra)
        out = _output(polyhedra, room, min(count, len(polyhedra) + growth * (1024 + len(polyhedra) // 2)), growth)
        origin, inside = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.uint8)
        pieces, cuts = solid_kernels.split_by_slab(
            np.ascontiguousarray(slab), axis, _arrays(polyhedra), base, room, out, origin, inside
        )
        if pieces >= 0:
            return _used(out, pieces), origin[:pieces].copy(), inside[:pieces].astype(bool), int(cuts)
    raise InternalError("a slab cut has more pieces than there is room for: please report the model")


def margins(polyhedra: Polyhedra, logits: np.ndarray, region: np.ndarray, label: int) -> np.ndarray:
    """See `shapes.margins`."""
    out = np.zeros((len(region), 2))
    solid_kernels.margins(logits, label, polyhedra.points, polyhedra.starts, region, polyhedra.centres, out)
    return out


def decided_volumes(
    polyhedra: Polyhedra,
    logits: np.ndarray,
    label: int,
    region: np.ndarray,
    winner: np.ndarray,
    slack: np.ndarray,
    chosen: np.ndarray,
) -> np.ndarray:
    """See `shapes.decided_volumes`."""
    decided, forms = np.zeros(len(chosen)), np.zeros((logits.shape[2], 4))
    for _, room in _rooms(polyhedra):
        if solid_kernels.decided_volumes(
            logits, label, _arrays(polyhedra), region, winner, slack, chosen, forms, room, decided
        ):
            return decided
    raise InternalError("a strip has more vertices than there is room for: please report the model")


def slab_volumes(polyhedra: Polyhedra, chosen: np.ndarray, slab: np.ndarray, axis: int) -> np.ndarray:
    """See `shapes.slab_volumes`."""
    found, forms = np.zeros(len(chosen)), np.zeros((2, 4))
    slab = np.ascontiguousarray(slab)
    for _, room in _rooms(polyhedra):
        if solid_kernels.slab_volumes(_arrays(polyhedra), chosen, slab, axis, forms, room, found):
            return found
    raise InternalError("a slab has more vertices than there is room for: please report the model")


def nearest_points(point: np.ndarray, points: np.ndarray, starts: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """See `shapes.nearest_points`; the squared distance is a proved lower bound."""
    out = np.zeros((len(chosen), 4))
    hull_kernels.distances_to(np.asarray(point), points, starts, chosen, np.zeros((7, 4)), out)
    return out


def clip(vertices: np.ndarray, form: np.ndarray) -> np.ndarray:
    """See `shapes.clip`. All pairs of vertices count: those that are no edge add nothing to the hull."""
    values = vertices @ form[:3] + form[3]
    above, below = values >= 0.0, values < 0.0
    start, end = vertices[above][:, None], vertices[below][None]
    share = values[above][:, None] / (values[above][:, None] - values[below][None])
    crossings = start + share[:, :, None] * (end - start)
    return np.concatenate([vertices[above], crossings.reshape(-1, 3)])


def _arrays(polyhedra: Polyhedra) -> Solids:
    return Solids(polyhedra.points, polyhedra.starts, polyhedra.facets, polyhedra.facet_starts, polyhedra.incidence)


def _rooms(polyhedra: Polyhedra) -> Iterator[tuple[int, Room]]:
    """Scratch for the parts of one polyhedron, larger every time."""
    vertices = int(np.diff(polyhedra.starts).max(initial=8)) + 32
    facets = int(np.diff(polyhedra.facet_starts).max(initial=6)) + 16
    for growth in GROWTH:
        widest, most = growth * vertices, growth * facets
        # Cutting adds few facets to a part, and with them words only where it already has many.
        words = -(-most // 64)
        yield (
            growth,
            Room(
                points=np.zeros((32 * widest, 3)),
                incidence=np.zeros((32 * widest, words), dtype=np.uint64),
                facets=np.zeros(32 * most, dtype=np.int64),
                stack=np.zeros((4096, 4), dtype=np.int64),
                here_points=np.zeros((widest, 3)),
                here_incidence=np.zeros((widest, words), dtype=np.uint64),
                here_facets=np.zeros(most, dtype=np.int64),
                value=np.zeros(widest),
                rank=np.zeros((2, most), dtype=np.int64),
                pairs=np.zeros((2, widest), dtype=np.int64),
            ),
        )


def _output(polyhedra: Polyhedra, room: Room, count: int, growth: int) -> Solids:
    """Arrays for `count` pieces of polyhedra."""
    more = count - len(polyhedra)
    vertices = len(polyhedra.points) + (8 + 8 * growth) * more
    facets = len(polyhedra.facets) + (6 + 6 * growth) * more
    return Solids(
        points=np.zeros((vertices, 3)),
        starts=np.zeros(count + 1, dtype=np.int64),
        facets=np.zeros(facets, dtype=np.int64),
        facet_starts=np.zeros(count + 1, dtype=np.int64),
        incidence=np.zeros((vertices, room.incidence.shape[1]), dtype=np.uint64),
    )


def _used(out: Solids, pieces: int) -> Polyhedra:
    """The pieces that were written, with no more words than their facets need."""
    vertices, facets = out.starts[pieces], out.facet_starts[pieces]
    starts, facet_starts = out.starts[: pieces + 1].copy(), out.facet_starts[: pieces + 1].copy()
    words = -(-int(np.diff(facet_starts).max(initial=1)) // 64)
    return Polyhedra(
        out.points[:vertices].copy(),
        starts,
        out.facets[:facets].copy(),
        facet_starts,
        np.ascontiguousarray(out.incidence[:vertices, :words]),
    )
