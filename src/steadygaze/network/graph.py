"""A classifier as a graph of operators, and as a chain of affine maps: canonical pixels (C, H, W) in, logits out.

The graph defines the classifier; all arithmetic is float64. A node may feed several others, and an operator may have
several inputs. A forward pass goes node by node; `preactivations` and `gradients` go layer by layer (see `layers`),
through the linear steps. `lower` fuses the steps between two layers into one matrix and one bias, for the walks.
Matrices of large networks fill the memory, so `LazyChain` makes them on first use.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..errors import InternalError, ModelError
from ..lazily import is_sparse, scipy_sparse
from .layers import Frame, Layer, frames_of, inputs_of, layer_of, steps_between
from .operators import Array, Matrix, Operator, Shape, select
from .steps import Segment, Step, downwards, magnitude, upwards

# The most images in one pass through the graph, and the most numbers of all their values: a forward pass needs less
# than a GiB for any batch, even if a convolution copies its input for every place of its window.
CHUNK = 128
CHUNK_NUMBERS = 2**24

DENSE_SHARE = 0.25
"""From this share of nonzero entries on, a dense product is faster than a sparse one."""

MAX_ENTRIES = 2**27
"""Most entries that one matrix may store, 1.6 GB as CSR: a map with more would need too much memory and time."""

SEED, IMAGES = 20240, 8  # of the fixed random images that compare graph and chain
SHARE = 1e-9  # sums of the same numbers in another order: n·2⁻⁵³ for n ≤ 10⁵ terms is 1e-11


@dataclass(frozen=True)
class Node:
    """One operator, the numbers of the nodes that feed it, the shape of its result and its name in the model file."""

    operator: Operator
    inputs: tuple[int, ...]
    shape: Shape
    name: str


@dataclass(frozen=True)
class Graph:
    """Nodes in topological order; value 0 is the image (C, H, W), value i the result of nodes[i - 1].

    The last node gives the logits; without nodes the pixels are the logits. `aims` is the value whose gradients are
    attention maps; None stands for the logits.
    """

    input_shape: tuple[int, int, int]
    nodes: tuple[Node, ...]
    notes: tuple[str, ...] = ()
    aims: int | None = None

    @property
    def classes(self) -> int:
        """Number of logits."""
        return prod(self.shape_of(len(self.nodes)))

    @property
    def outputs(self) -> tuple[int, ...]:
        """The values that all layers lead to: the logits, and the aims if they differ from the logits."""
        return (len(self.nodes),) if self.aims is None else (len(self.nodes), self.aims)

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """The values of every layer."""
        return frames_of(self)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The neurons of every layer."""
        return tuple(layer_of(self, frame) for frame in self.frames)

    @cached_property
    def hidden(self) -> tuple[int, ...]:
        """Number of neurons of every layer, carried ones and entries of windows included."""
        return tuple(map(len, self.layers))

    @property
    def neurons(self) -> int:
        """The number of ReLUs and windows."""
        return sum(layer.decided for layer in self.layers)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the graph is a chain of linear operators and ReLUs."""
        return all(layer.is_plain for layer in self.layers)

    @cached_property
    def steps(self) -> tuple[tuple[Step, ...], ...]:
        """The linear steps that lead to each layer, and to the logits."""
        ends = (None, *self.frames, None)
        return tuple(steps_between(self, *pair) for pair in pairwise(ends))

    @cached_property
    def aim_steps(self) -> tuple[Step, ...]:
        """The linear steps from the last layer to the values whose gradients are attention maps."""
        if self.aims is None:
            return self.steps[-1]
        return steps_between(self, self.frames[-1] if self.frames else None, None, self.aims)

    def shape_of(self, value: int) -> Shape:
        """Shape of value number `value` for one image."""
        return self.nodes[value - 1].shape if value else self.input_shape

    def logits(self, images: Array) -> Array:
        """Logits (B, K) of images (B, C, H, W), by plain float64 arithmetic node by node."""
        rows = [self.values(chunk)[-1].reshape(len(chunk), -1) for chunk in self._chunks(images)]
        return np.concatenate(rows) if rows else np.zeros((0, self.classes))

    def trace(self, images: Array) -> tuple[list[Array], Array]:
        """The input (B, n) of every layer, and the logits (B, K), for images (B, C, H, W)."""
        sizes = (*self.hidden, self.classes)
        parts: list[list[Array]] = [[np.zeros((0, size))] for size in sizes]
        for chunk in self._chunks(images):
            values = self.values(chunk)
            for part, frame in zip(parts, self.frames, strict=False):
                part.append(inputs_of(self, frame, values))
            parts[-1].append(values[-1].reshape(len(chunk), -1))
        *preactivations, logits = [np.concatenate(part) for part in parts]
        return preactivations, logits

    @property
    def _numbers(self) -> int:
        """How many numbers all values of one image hold."""
        return prod(self.input_shape) + sum(prod(node.shape) for node in self.nodes)

    def _chunks(self, images: Array) -> Iterator[Array]:
        images = np.asarray(images, dtype=np.float64)
        if images.shape[1:] != self.input_shape:
            raise ValueError(f"images of shape {images.shape}, expected (B, {', '.join(map(str, self.input_shape))})")
        size = max(1, min(CHUNK, CHUNK_NUMBERS // self._numbers))
        return (images[start : start + size] for start in range(0, len(images), size))

    def values(self, images: Array) -> list[Array]:
        """All values for images (B, C, H, W): the images first, the logits last."""
        values = [images]
        for node in self.nodes:
            values.append(node.operator.apply(*(values[i] for i in node.inputs)))
        return values


def preactivations(graph: Graph, pixels: Array) -> list[Array]:
    """The input of every layer, then the logits, each (B, n), for flattened images (B, C·H·W), by linear steps."""
    values, results = pixels, []
    for segment, layer in zip(graph.steps, graph.layers, strict=False):
        results.append(upwards(segment, values))
        values = layer.apply(results[-1])
    return [*results, upwards(graph.steps[-1], values)]


def patterns(graph: Graph, inputs: Sequence[Array]) -> list[NDArray[np.bool_]]:
    """The pattern (B, n) of every layer, given its computed inputs (B, n)."""
    return [layer.bits(values) for layer, values in zip(graph.layers, inputs, strict=True)]


def gradients(graph: Graph, bits: Sequence[Array], targets: Array | None = None) -> Iterator[Array]:
    """Gradients (K', n) of targets (K', A) times the aims, or of all logits, under one pattern, last layer first.

    bits: one boolean array (n,) per layer. The gradients are taken with respect to the output of the last layer, …, of
    the first layer, and finally to the pixels. The A aims of a graph are its logits, unless `graph.aims` is given.
    """
    segment, chosen = (graph.steps[-1], np.eye(graph.classes)) if targets is None else (graph.aim_steps, targets)
    rows = downwards(segment, chosen)
    yield rows
    for segment, layer in zip(reversed(graph.steps[:-1]), reversed(bits), strict=True):
        rows = downwards(segment, rows * layer)
        yield rows


@dataclass(frozen=True, eq=False)
class AffineMap:
    """x → matrix @ x + bias; matrix (n_out, n_in) C-contiguous ndarray or csr_array with sorted indices, float64."""

    matrix: Matrix
    bias: Array

    @cached_property
    def row_norms(self) -> Array:
        """The euclidean norm of every row (n_out,)."""
        matrix = self.matrix
        squares = matrix * matrix if isinstance(matrix, np.ndarray) else matrix.multiply(matrix)
        return np.sqrt(np.asarray(squares.sum(axis=1)).ravel())

    @cached_property
    def absolute(self) -> Matrix:
        """The absolute values of the matrix, which every bound of an error needs."""
        return abs(self.matrix)

    @cached_property
    def is_copy(self) -> bool:
        """Whether every output is one of the inputs."""
        matrix = self.matrix
        if isinstance(matrix, np.ndarray):
            return False
        return bool((np.diff(matrix.indptr) == 1).all() and (matrix.data == 1.0).all() and not self.bias.any())

    def copied_inputs(self, first: np.ndarray, end: np.ndarray) -> np.ndarray:
        """For every output, the input that it copies, or the first entry of the window that it sums.

        first and end (n_in,) are the windows of the inputs, each input alone if it has none. −1 for other outputs.

        >>> matrix = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.5, 0.0, 0.0]])
        >>> AffineMap(matrix, np.zeros(3)).copied_inputs(np.arange(3), np.arange(3) + 1)
        array([ 1, -1, -1], dtype=int32)
        """
        matrix = self.matrix
        if isinstance(matrix, np.ndarray):
            counts = np.count_nonzero(matrix, axis=1)
            if not matrix.size or counts.min() > np.max(end - first):
                return np.full(len(matrix), -1, dtype=np.int32)
            matrix = scipy_sparse.csr_array(matrix)
        counts, data, indices = np.diff(matrix.indptr), matrix.data, matrix.indices
        others = np.bincount(np.repeat(np.arange(len(counts)), counts), data != 1.0, len(counts))
        rows = np.flatnonzero((counts > 0) & (others == 0) & (self.bias == 0.0))
        lowest, highest = indices[matrix.indptr[rows]], indices[matrix.indptr[rows + 1] - 1]
        # Indices are sorted: a row holds a whole window if its ends and its size match those of the window.
        is_whole = (first[lowest] == lowest) & (end[lowest] == highest + 1) & (end[lowest] - lowest == counts[rows])
        copied = np.full(len(counts), -1, dtype=np.int32)
        copied[rows[is_whole]] = lowest[is_whole]
        return copied

    def apply(self, values: Array) -> Array:
        """Result (B, n_out) for values (B, n_in)."""
        return (self.matrix @ values.T).T + self.bias


@dataclass(frozen=True, eq=False)
class Chain:
    """Affine maps with a layer of neurons after each but the last; the first map reads flattened pixels.

    Without `layers`, all neurons are ReLUs. `other_aim` is the map to the aims, if these are not the logits.
    """

    maps: tuple[AffineMap, ...]
    layers: tuple[Layer, ...] = field(default=(), kw_only=True)
    other_aim: AffineMap | None = field(default=None, kw_only=True)

    @property
    def aim(self) -> AffineMap:
        """The map from the last layer to the values whose gradients are attention maps: by default the logits."""
        return self.maps[-1] if self.other_aim is None else self.other_aim

    def preactivations(self, pixels: Array) -> list[Array]:
        """Result (B, n) of every map for pixels (B, C·H·W): the input of every layer, then the logits."""
        values, results = pixels, []
        layers = self.layers or tuple(Layer.relus(len(affine.bias)) for affine in self.maps[:-1])
        for affine, layer in zip(self.maps, layers, strict=False):
            results.append(affine.apply(values))
            values = layer.apply(results[-1])
        return [*results, self.maps[-1].apply(values)]


class LazyChain(Chain):
    """The chain of a graph; its maps are made and compared with the graph on first use."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name
        try:
            object.__setattr__(self, "layers", graph.layers)
        except ModelError as error:
            raise ModelError(f"{name}: {error}") from None

    @cached_property
    def _lowered(self) -> Chain:
        try:
            chain = lower(self.graph)
        except ModelError as error:
            raise ModelError(f"{self.name}: {error}") from None
        check_lowered(self.graph, chain, self.name)
        return chain

    @property
    def maps(self) -> tuple[AffineMap, ...]:
        """The affine maps; ModelError, with the name of the model file, if they are too large."""
        return self._lowered.maps

    @property
    def other_aim(self) -> AffineMap | None:
        """The map to the aims, if these are not the logits."""
        return self._lowered.other_aim


@lru_cache(maxsize=4)
def lazy_chain(graph: Graph, name: str) -> LazyChain:
    """The chain of a graph; the chains of the last four graphs are kept."""
    return LazyChain(graph, name)


def lower(graph: Graph) -> Chain:
    """Fuse the linear steps before each layer, and before the logits, into one affine map, exact up to rounding."""
    sizes = (prod(graph.input_shape), *graph.hidden)
    maps = tuple(_fuse(segment, size) for segment, size in zip(graph.steps, sizes, strict=True))
    aim = None if graph.aims is None else _fuse(graph.aim_steps, sizes[-1])
    return Chain(maps, layers=graph.layers, other_aim=aim)


def check_lowered(graph: Graph, chain: Chain, name: str) -> None:
    """Raise InternalError if graph and chain differ in a layer on fixed random images by more than rounding."""
    images = np.random.default_rng(SEED).random((IMAGES, *graph.input_shape))
    layers, logits = graph.trace(images)
    theirs = chain.preactivations(images.reshape(IMAGES, -1))
    compare_layers(graph, images, [*layers, logits], theirs, f"{name}: graph and affine maps")
    if graph.aims is not None:
        values = graph.layers[-1].apply(theirs[-2]) if graph.layers else images.reshape(IMAGES, -1)
        aims = graph.values(images)[graph.aims].reshape(IMAGES, -1)
        scale, difference = (
            magnitude(graph.aim_steps, np.abs(values)).max(),
            np.abs(chain.aim.apply(values) - aims).max(),
        )
        if not difference <= SHARE * scale:
            raise InternalError(f"{name}: graph and affine maps differ by {difference:.3g} in their aims")


def compare_layers(
    graph: Graph, images: Array, ours: list[Array], theirs: list[Array], what: str, *, rounding: float = 0.0
) -> float:
    """The largest difference between two computations of all layers, relative to the magnitude of each layer.

    Raises InternalError, starting with `what`, if the difference exceeds rounding. Each layer may be off by a share
    `rounding` of its magnitude, which the layers above pass on by absolute weights.
    """
    if [layer.shape for layer in ours] != [layer.shape for layer in theirs]:
        raise InternalError(f"{what} differ in the shapes of their layers; please report this model file")
    largest, values = 0.0, images.reshape(len(images), -1)
    carried = np.zeros_like(values)
    rules = (*graph.layers, None)
    for segment, layer, left, right in zip(graph.steps, rules, ours, theirs, strict=True):
        sizes = magnitude(segment, values)
        for step in segment:
            carried = step.forward_abs(carried)
        carried = carried + rounding * sizes
        scale, difference = float(sizes.max(initial=0.0)), float(np.abs(left - right).max(initial=0.0))
        if not scale < np.inf or not difference <= max(SHARE * scale, float(carried.max(initial=0.0))):
            raise InternalError(
                f"{what} differ by {difference:.3g} in a layer of magnitude {scale:.3g}; please report this model file"
            )
        largest = max(largest, difference / scale if scale else 0.0)
        values = right if layer is None else layer.apply(right)
    return largest


def _fuse(segment: Segment, size: int) -> AffineMap:
    """Multiply the steps of a segment that reads `size` numbers into one affine map."""
    fused: Matrix | None = None  # the identity
    bias = np.zeros(size)
    for step in segment:
        _check_entries(step.entries, step.name)
        matrix, added = step.affine()
        bias = matrix @ bias + added
        if fused is None:
            fused = matrix
        else:
            if not (is_sparse(matrix) and is_sparse(fused)):
                _check_entries(matrix.shape[0] * fused.shape[1], step.name)
            fused = matrix @ fused
        if not isinstance(fused, np.ndarray):
            _check_entries(fused.nnz, step.name)
    matrix = select(np.arange(size), size) if fused is None else fused
    return AffineMap(_stored(matrix), np.ascontiguousarray(bias, dtype=np.float64))


def _check_entries(entries: int, name: str) -> None:
    if entries > MAX_ENTRIES:
        raise ModelError(
            f"node '{name}' needs a matrix of {entries:.3g} entries; at most {MAX_ENTRIES:.3g} are supported: "
            "verify with --method refine, which supports larger networks, or verify a smaller one"
        )


def _stored(matrix: Matrix) -> Matrix:
    """Dense if at least a quarter of the entries are nonzero, else CSR with sorted indices and no stored zeros."""
    nonzero = int(np.count_nonzero(matrix.data if is_sparse(matrix) else matrix))
    if nonzero >= DENSE_SHARE * prod(matrix.shape):
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        return np.ascontiguousarray(dense, dtype=np.float64)
    sparse = scipy_sparse.csr_array(matrix, dtype=np.float64)
    sparse.sum_duplicates()
    sparse.eliminate_zeros()
    sparse.sort_indices()
    return sparse
