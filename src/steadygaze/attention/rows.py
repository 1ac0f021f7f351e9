"""Stores a classifier by rows for the compiled attention loops, and counts the costs of their steps.

With L2, a linear filter and a narrow first layer, the space of all possible maps has far fewer dimensions than the
image: `compress` replaces the pixels by coordinates in this space, which changes no distance.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..lazily import is_sparse, scipy_sparse
from ..network.graph import AffineMap
from ..network.operators import Matrix
from .filters import Filter

# Flips count as local if the path from a neuron of the first layer to the heads has at most so many multiplications.
WORTH_GOING_UP = 1 << 17
ROOM = 48  # dense neurons whose rows are kept; a new one replaces the least recently flipped


class Rows(NamedTuple):
    """The classifier's maps by rows. Layer 0 is the pixels, layers 1 … L the ReLU layers."""

    offsets: np.ndarray  # (L+2,) values of layer l are offsets[l]:offsets[l+1]
    dense_start: np.ndarray  # (L+1,) where the matrix into layer l starts in `dense`, −1 if it is sparse
    dense: np.ndarray  # matrices (n_out, n_in), row-major
    row_start: np.ndarray  # (L+1,) where the rows of the matrix into layer l start in `pointers`
    pointers: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    logits: np.ndarray  # (K, n_L) gradient of the logits with respect to the last layer
    flip_cost: np.ndarray  # (L+1,) multiplications for a flip in layer l
    full_cost: float  # multiplications for computing everything from scratch
    max_flips: int  # updates before everything is computed from scratch; 0: always
    byte_start: np.ndarray  # (L+2,) where the packed bits of layer l ≥ 1 start
    heads: int  # the layer on top of the sparse ones, L+1 for the logits; 0 if flips are not local
    top: np.ndarray  # the matrix into the heads, transposed, row-major (n_in, n_out)
    up_start: np.ndarray  # (L+1,) where the columns of the matrix into layer l start in `up_pointers`
    up_pointers: np.ndarray
    up_rows: np.ndarray
    up_values: np.ndarray


class Maps(NamedTuple):
    """Gradients under the current pattern."""

    gradient: np.ndarray  # (K, N) by every layer's output, the pixels first; if flips are local, by pixels, then zeros
    wide: np.ndarray  # (N, K) scratch: all gradients from scratch, if flips are local
    active: np.ndarray  # (N,)
    packed: np.ndarray  # `active`, packed, with zeros up to a multiple of eight bytes
    words: np.ndarray  # the memory of `packed` as words of eight bytes
    changes: np.ndarray  # scratch: bytes of the pattern that change
    vector: np.ndarray  # (N,) scratch: gradient of one neuron
    support: np.ndarray  # (2, widest) scratch: its nonzero entries
    mark: np.ndarray  # (N,) scratch
    flips: np.ndarray  # (N,) flips of each neuron since scratch
    state: np.ndarray  # (4,) flips since scratch (−1: never, or one neuron too often), stamp, rows in use, uses so far
    tail: np.ndarray  # (K + ROOM, T) gradient of each target with respect to the outputs of the tail's T neurons
    tail_rows: np.ndarray  # (ROOM, pixels, and zeros) gradient of the input of some tail neurons
    row_of: np.ndarray  # (ROOM,) which neurons, counted from the first head
    last_use: np.ndarray  # (ROOM,) when they last flipped
    place_of: np.ndarray  # (T,) the row of each tail neuron, −1 if it has none
    computed: np.ndarray  # (T,) how often each neuron's row was computed since scratch
    unit: np.ndarray  # (2, heads) scratch: gradient of the heads' inputs with respect to one neuron
    factor: np.ndarray  # (K + ROOM,) scratch


def dense(matrix: Matrix) -> np.ndarray:
    """A matrix as an array."""
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def is_local(maps: tuple[AffineMap, ...]) -> bool:
    """Whether flips are local: sparse layers lie below dense ones, without too many paths upward."""
    kinds = [is_sparse(affine.matrix) for affine in maps[:-1]]
    if not any(kinds) or kinds != sorted(kinds, reverse=True):
        return False
    sparse = [affine.matrix for affine in maps[: sum(kinds)]]
    return most_reached(sparse) * maps[len(sparse)].matrix.shape[0] <= WORTH_GOING_UP


def most_reached(sparse: list) -> int:
    """The most neurons of the top sparse layer that depend on one neuron below it."""
    reached = 1
    for matrix in sparse[1:]:
        columns = np.bincount(matrix.indices, minlength=matrix.shape[1])
        reached = min(reached * int(columns.max(initial=0)), matrix.shape[0])
    return max(1, reached)


def compress(
    first: AffineMap, shape: tuple[int, ...], steps: Filter, expected: np.ndarray, slope: np.ndarray | None
) -> tuple[AffineMap, np.ndarray, np.ndarray | None] | None:
    """The first map, the expected maps (K, pixels) and their slope in orthonormal coordinates; None if not worthwhile.

    The coordinates span the filtered rows of the first matrix, the expected maps and their slopes, so distances between
    maps stay the same up to rounding.
    """
    if is_sparse(first.matrix) or not steps.is_linear:
        return None
    parts = [steps(first.matrix.reshape(-1, *shape)).reshape(len(first.matrix), -1), expected]
    parts += [] if slope is None else [slope]
    stacked = np.concatenate(parts)
    if 2 * len(stacked) > stacked.shape[1]:
        return None
    basis = np.linalg.qr(stacked.T)[0]
    moved = None if slope is None else slope @ basis
    return AffineMap(np.ascontiguousarray(parts[0] @ basis), first.bias), expected @ basis, moved


def lay_out(maps: tuple[AffineMap, ...], max_flips: int) -> Rows:
    """Store affine maps by rows; the gradients of the last one's outputs are the maps."""
    return _laid_out(maps)._replace(max_flips=max_flips)


@lru_cache(maxsize=4)
def _laid_out(maps: tuple[AffineMap, ...]) -> Rows:
    matrices = [affine.matrix for affine in maps[:-1]]
    sizes = [maps[0].matrix.shape[1], *(matrix.shape[0] for matrix in matrices)]
    sparse = {
        layer: scipy_sparse.csr_array(matrix) for layer, matrix in enumerate(matrices, start=1) if is_sparse(matrix)
    }
    blocks = [np.zeros(0), *(np.zeros(0) if is_sparse(matrix) else matrix.ravel() for matrix in matrices)]
    starts = np.cumsum([0, *(len(block) for block in blocks)])[:-1]
    row_start, pointers, columns, values = _packed(sparse, len(maps))
    top = dense(maps[-1].matrix)
    # The cost of pulling one vector through the matrix into layer l, with half of the neurons active.
    pull = np.array([0.0, *(0.5 * matrix.size / (1 if is_sparse(matrix) else 8) for matrix in matrices)])
    heads, above, upward = 0, np.zeros(0), {}
    if is_local(maps):
        heads = len(sparse) + 1
        above = np.ascontiguousarray((top if heads == len(maps) else maps[len(sparse)].matrix).T).ravel()
        upward = {layer: scipy_sparse.csc_array(matrix) for layer, matrix in sparse.items() if layer > 1}
    up_start, up_pointers, up_rows, up_values = _packed(upward, len(maps))
    return Rows(
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        dense_start=np.where([layer in sparse or layer == 0 for layer in range(len(maps))], -1, starts),
        dense=np.concatenate(blocks),
        row_start=row_start,
        pointers=pointers,
        columns=columns,
        values=values,
        logits=np.ascontiguousarray(top),
        flip_cost=_flip_costs(matrices, pull, len(top), heads),
        heads=heads,
        top=above,
        up_start=up_start,
        up_pointers=up_pointers,
        up_rows=up_rows,
        up_values=up_values,
        full_cost=float(pull.sum() * len(top)),
        max_flips=0,
        byte_start=np.concatenate([[0, 0], np.cumsum([-(-size // 8) for size in sizes[1:]])]).astype(np.int64),
    )


def _packed(matrices: dict[int, Any], layers: int) -> tuple[np.ndarray, ...]:
    """Compressed matrices of several layers: the start of each, then pointers, indices and values of all."""
    start, pointers, indices, values = np.zeros(layers, dtype=np.int64), [np.zeros(1)], [np.zeros(0)], [np.zeros(0)]
    entries, lines = 0, 1
    for layer, matrix in matrices.items():
        start[layer] = lines
        pointers.append(matrix.indptr + entries)
        indices.append(matrix.indices)
        values.append(matrix.data)
        entries, lines = entries + matrix.nnz, lines + len(matrix.indptr)
    # Unsigned, so that compiled code need not test whether an index counts from the end.
    numbers = (np.concatenate(pointers).astype(np.int64), np.concatenate(indices).astype(np.uint32))
    return start, *numbers, np.concatenate(values)


def _flip_costs(matrices: list, pull: np.ndarray, classes: int, heads: int) -> np.ndarray:
    """Multiplications for one flip in every layer, including the update of the gradients below; heads: as in `Rows`."""
    costs = np.zeros(len(matrices) + 1)
    for layer in range(1, len(costs)):
        reach = 1.0
        for below in range(layer, 0, -1):
            (height, width), matrix = matrices[below - 1].shape, matrices[below - 1]
            share = min(1.0, reach * 2.0 / height)
            reach = width if not is_sparse(matrix) else min(width, reach * matrix.nnz / height)
            costs[layer] += share * pull[below] + classes * reach / (8 if reach == width else 1)
    if heads:
        # The row of a tail neuron is added to all maps; it rarely has to be computed first.
        costs[heads:] = (2.0 * classes * matrices[0].shape[1] + pull.sum()) / 8.0
    return costs


def blank_maps(rows: Rows) -> Maps:
    """Buffers for the gradients of one pattern after another."""
    neurons = int(rows.offsets[-1])
    widest = int(np.diff(rows.offsets).max())
    classes = len(rows.logits)
    packed = np.zeros(8 * -(-int(rows.byte_start[-1]) // 8), dtype=np.uint8)
    heads = len(rows.top) // int(rows.offsets[rows.heads] - rows.offsets[rows.heads - 1]) if rows.heads else 0
    tail = neurons - int(rows.offsets[rows.heads]) if rows.heads else 0
    room = ROOM if tail else 0
    # An odd number of cache lines: otherwise the same pixel of all maps would compete for one place in the cache.
    width = 8 * (int(rows.offsets[1]) // 16 * 2 + 3)
    return Maps(
        gradient=np.zeros((classes, width if heads else neurons)),
        wide=np.zeros((rows.offsets[rows.heads] if heads else 0, classes)),
        active=np.zeros(neurons, dtype=np.uint8),
        packed=packed,
        words=packed.view(np.uint64),
        changes=np.zeros(len(packed), dtype=np.int64),
        vector=np.zeros(neurons),
        support=np.zeros((2, widest), dtype=np.int64),
        mark=np.zeros(neurons, dtype=np.int64),
        flips=np.zeros(neurons, dtype=np.int64),
        state=np.array([-1, 0, 0, 0]),
        tail=np.zeros((classes + room, tail)),
        tail_rows=np.zeros((room, width)),
        row_of=np.zeros(room, dtype=np.int64),
        last_use=np.zeros(room, dtype=np.int64),
        place_of=np.zeros(tail, dtype=np.int64),
        computed=np.zeros(tail, dtype=np.int64),
        unit=np.zeros((2, heads)),
        factor=np.zeros(classes + room),
    )
