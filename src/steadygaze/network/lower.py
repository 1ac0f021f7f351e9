"""From a graph to a chain of affine maps with a ReLU between: what the region engine runs on.

All linear operators between two ReLUs become one matrix and one bias, if the graph has no branches. Matrices of large
networks fill the memory, so `LazyChain` makes them on first use.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from scipy.sparse import csr_array, issparse

from ..errors import InternalError, ModelError
from .graph import Graph, Node
from .operators import Array, Linear, Matrix, Relu, Reshape, select
from .steps import magnitude

DENSE_SHARE = 0.25
"""Share of nonzero entries from which on a dense product is faster than a sparse one."""

MAX_ENTRIES = 2**27
"""Most entries that one matrix may store, 1.6 GB as CSR: more would need too much memory and time for a map."""

SEED, IMAGES = 20240, 8  # graph and chain are compared on these random images, always the same
SHARE = 1e-9  # the chain repeats the graph's sums in another order: n·2⁻⁵³ for n ≤ 10⁵ terms is 1e-11


@dataclass(frozen=True, eq=False)
class AffineMap:
    """x → matrix @ x + bias; matrix (n_out, n_in) C-contiguous ndarray or csr_array with sorted indices, float64."""

    matrix: Matrix
    bias: Array

    def apply(self, values: Array) -> Array:
        """Result (B, n_out) for values (B, n_in)."""
        return (self.matrix @ values.T).T + self.bias


@dataclass(frozen=True, eq=False)
class Chain:
    """Affine maps with a ReLU after every one but the last; the first takes flattened canonical pixels."""

    maps: tuple[AffineMap, ...]

    def preactivations(self, pixels: Array) -> list[Array]:
        """Result (B, n) of every map for pixels (B, C·H·W): the input of every ReLU, then the logits."""
        values, results = pixels, []
        for affine in self.maps:
            results.append(affine.apply(values))
            values = np.maximum(results[-1], 0.0)
        return results


class LazyChain(Chain):
    """The chain of a graph, lowered and compared with the graph when its maps are first asked for; then kept."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    @cached_property
    def maps(self) -> tuple[AffineMap, ...]:
        """The affine maps; ModelError, with the name of the model file, where they are too large."""
        try:
            chain = lower(self.graph)
        except ModelError as error:
            raise ModelError(f"{self.name}: {error}") from None
        check_lowered(self.graph, chain, self.name)
        return chain.maps


def check_chain(graph: Graph, name: str = "") -> None:
    """Raise ModelError, with the name of the model file, for a graph that is no chain of linear operators and ReLUs."""
    start = f"{name}: " if name else ""
    for number, node in enumerate(graph.nodes):
        if node.inputs != (number,):
            raise ModelError(f"{start}node '{node.name}' joins or leaves a branch; networks with branches come later")
        if not isinstance(node.operator, Relu | Linear):
            raise InternalError(f"{start}node '{node.name}': {type(node.operator).__name__} cannot be lowered")


def lower(graph: Graph) -> Chain:
    """Fuse the linear operators before each ReLU, and before the logits, into one affine map, exact up to rounding."""
    check_chain(graph)
    maps: list[AffineMap] = []
    fused = _Fused(prod(graph.input_shape))
    for node in graph.nodes:
        if isinstance(node.operator, Linear):
            fused.follow(node, node.operator, graph)
        else:
            maps.append(fused.finish())
            fused = _Fused(prod(node.shape))
    maps.append(fused.finish())
    return Chain(tuple(maps))


def check_lowered(graph: Graph, chain: Chain, name: str) -> None:
    """Raise InternalError where graph and chain differ in a layer on fixed random images beyond rounding."""
    images = np.random.default_rng(SEED).random((IMAGES, *graph.input_shape))
    preactivations, logits = graph.trace(images)
    ours, values = [*preactivations, logits], images.reshape(IMAGES, -1)
    if [layer.shape[1] for layer in ours] != [len(affine.bias) for affine in chain.maps]:
        raise InternalError(f"{name}: graph and affine maps differ in their layers; report this file")
    for affine, segment, left in zip(chain.maps, graph.steps, ours, strict=True):
        right = affine.apply(values)
        scale = float(magnitude(segment, values).max(initial=0.0))
        difference = float(np.abs(left - right).max(initial=0.0))
        if not difference <= SHARE * scale:
            raise InternalError(
                f"{name}: graph and affine maps differ by {difference:.3g} in a layer of size {scale:.3g}; "
                "report this file"
            )
        values = np.maximum(right, 0.0)


class _Fused:
    """The product of the linear operators seen since the last ReLU; None stands for the identity."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.matrix: Matrix | None = None
        self.bias = np.zeros(size)

    def follow(self, node: Node, operator: Linear, graph: Graph) -> None:
        if isinstance(operator, Reshape):
            return  # the identity on flattened values
        shape = graph.shape_of(node.inputs[0])
        _check_entries(operator.entries(shape), node.name)
        matrix, bias = operator.affine(shape)
        self.bias = matrix @ self.bias + bias
        if self.matrix is None:
            self.matrix = matrix
        else:
            if not (issparse(matrix) and issparse(self.matrix)):
                _check_entries(matrix.shape[0] * self.size, node.name)
            self.matrix = matrix @ self.matrix
        if not isinstance(self.matrix, np.ndarray):
            _check_entries(self.matrix.nnz, node.name)

    def finish(self) -> AffineMap:
        matrix = select(np.arange(self.size), self.size) if self.matrix is None else self.matrix
        return AffineMap(_stored(matrix), np.ascontiguousarray(self.bias, dtype=np.float64))


def _check_entries(entries: int, name: str) -> None:
    if entries > MAX_ENTRIES:
        raise ModelError(
            f"node '{name}' needs a matrix of {entries:.3g} entries, at most {MAX_ENTRIES:.3g} are supported; "
            "verify with --method refine, which takes larger networks, or verify a smaller one"
        )


def _stored(matrix: Matrix) -> Matrix:
    """Dense when at least a quarter of the entries are nonzero, else CSR with sorted indices and no stored zeros."""
    nonzero = int(np.count_nonzero(matrix.data if issparse(matrix) else matrix))
    if nonzero >= DENSE_SHARE * prod(matrix.shape):
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        return np.ascontiguousarray(dense, dtype=np.float64)
    sparse = csr_array(matrix, dtype=np.float64)
    sparse.sum_duplicates()
    sparse.eliminate_zeros()
    sparse.sort_indices()
    return sparse
