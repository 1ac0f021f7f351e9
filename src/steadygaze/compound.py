"""The compound network: the classifier after the perturbation of one image, as a function of theta.

Turns a chain of affine maps and a perturbed image into one `Program` per knot cell: the first two layers are the clip
to [0,1], the others are the classifier's. Pixels whose unclipped values are the same function of theta share one
neuron, and pixels that do not depend on theta become part of the first bias. Thetas are scaled to t in the unit square
or cube; with a single parameter, nothing depends on the second coordinate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from .compound_kernels import near_zero, set_thresholds, store_map
from .fingerprints import PixelPrints, Product, fingerprint_fields, pixel_prints, products_of
from .lazily import is_sparse, scipy_sparse
from .network.graph import AffineMap, Chain, Graph, patterns, preactivations
from .network.layers import RELU, Layer
from .network.steps import is_folded
from .perturbation import Domain, KnotCell, Perturbed
from .tolerances import noise_share

CLIP_LAYERS = 2


class Program(NamedTuple):
    """A network in t as flat arrays, constant during a walk: layers 0 … L−1 are hidden, layer L gives the logits."""

    offsets: np.ndarray  # (L+2,) neurons of layer l are offsets[l]:offsets[l+1]
    clipped: int  # 1 if layers 0 and 1 are the two halves of the clip to [0,1]
    dense_start: np.ndarray  # (L+1,) where the matrix into layer l starts in `dense`, −1 if it is sparse
    dense: np.ndarray  # transposed matrices, row-major (n_in, n_out)
    column_start: np.ndarray  # (L+1,) where the columns of the matrix into layer l start in `columns`
    columns: np.ndarray  # CSC pointers into `rows` and `values`
    rows: np.ndarray
    values: np.ndarray
    bias: np.ndarray  # (N,)
    noise: np.ndarray  # (N,) smaller values of a neuron count as rounding
    near: np.ndarray  # (N,) a polytope lies beside a neuron's kink if the neuron's value comes this close to zero there
    is_folded: np.ndarray  # (L+1,) whether weights into a layer are rounded products: a zero may be inexact
    terms: np.ndarray  # (L+1,) the largest number of inputs that one neuron of a layer sums
    largest: np.ndarray  # (N,) the largest |weight| of a neuron's output in the next layer
    byte_start: np.ndarray  # (L+1,) where the packed pattern of layer l starts
    kind: np.ndarray  # (N,) uint8 RELU, CARRIED or ENTRY (see `network.layers`); 0 for logits
    window_first: np.ndarray  # (N,) int32 the first neuron of an entry's window; the neuron itself for other kinds
    window_end: np.ndarray  # (N,) int32 the neuron after the last one of the window
    is_plain: np.ndarray  # (L+1,) whether all neurons of a layer are ReLUs
    is_copy: np.ndarray  # (L+1,) whether every neuron of a layer copies an output of the layer before it
    has_copies: np.ndarray  # (L+1,) whether some neuron of a layer does
    is_rectified: np.ndarray  # (L+1,) whether the entries of a layer copy outputs of ReLUs: zero forms are zero exactly
    copied: np.ndarray  # (N,) int32 the neuron, or the first entry of the window, that a neuron copies; −1 for none
    prints: (
        np.ndarray
    )  # uint64 fingerprints (see `fingerprints`) of lines, then the results of all stages at their start
    print_stages: np.ndarray  # (S, 7) gate, layer, first input, inputs, first result, first fed input, first column
    print_columns: np.ndarray  # CSC pointers into `print_rows` and `print_values`
    print_rows: np.ndarray
    print_values: np.ndarray  # uint64
    print_start: np.ndarray  # where the fingerprints of a layer's neurons start in `prints`


class CellCorners(NamedTuple):
    """A knot cell in t: low and high corner (D,) of its box; if it is half a box, the form (D+1,) positive on it."""

    low: np.ndarray
    high: np.ndarray
    side: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class CellProgram:
    """The compound network on one knot cell, as the walks run it.

    `root` (D+1, n): the forms of layer 0 in t, slopes first. `low` and `high` (D,): the cell's box in t, where D is the
    number of parameters, but 2 for a single one; `side` (D+1,): if the cell is half of its box, the form of t that is
    positive on it. `line_of` (pixels,): the neuron of layer 0 that computes each pixel; −1 if the pixel is constant,
    with its value in `constant`.
    """

    program: Program
    root: np.ndarray
    low: np.ndarray
    high: np.ndarray
    line_of: np.ndarray
    constant: np.ndarray
    side: np.ndarray | None = None

    @cached_property
    def sides(self) -> np.ndarray:
        """The forms (0 or 1, D+1) that are positive on the cell, with unit normals."""
        found = np.zeros((0, len(self.low) + 1)) if self.side is None else self.side[None]
        return found / np.linalg.norm(found[:, :-1], axis=1, keepdims=True)

    @property
    def widths(self) -> np.ndarray:
        """Neurons of each layer, the logits last."""
        return np.diff(self.program.offsets)


@dataclass(frozen=True, eq=False)
class Compound:
    """Classifier after perturbation: `graph` and `perturbed` define it, and the walks subdivide the domain by `chain`.

    Only `programs` and the properties that need them compute the maps of the chain.
    """

    graph: Graph
    chain: Chain
    perturbed: Perturbed
    prove_original: Callable[[], tuple[np.ndarray, ...] | None] | None = None

    @cached_property
    def original_pattern(self) -> list[np.ndarray]:
        """The classifier's pattern at the unperturbed image, one boolean array (1, n) per ReLU layer.

        If `prove_original` returns a pattern, it is that one, else the pattern of a plain forward pass.
        """
        proved = None if self.prove_original is None else self.prove_original()
        if proved is not None:
            return [layer[None] for layer in proved]
        return patterns(self.graph, preactivations(self.graph, self.perturbed.x0.reshape(1, -1))[:-1])

    @property
    def domain(self) -> Domain:
        """The box of thetas."""
        return self.perturbed.domain

    @property
    def cells(self) -> tuple[KnotCell, ...]:
        """The knot cells that tile the domain."""
        return self.perturbed.cells

    @cached_property
    def hidden(self) -> tuple[int, ...]:
        """Neurons of each ReLU layer of the classifier."""
        return self.graph.hidden

    @cached_property
    def noise(self) -> list[np.ndarray]:
        """Values below these count as rounding: for every neuron of the classifier, layer by layer, then the logits."""
        largest = np.max([cell.program.noise[cell.program.offsets[CLIP_LAYERS] :] for cell in self.programs], axis=0)
        return np.split(largest, np.cumsum(self.hidden))

    @property
    def coordinates(self) -> int:
        """The number D of coordinates of t: one per parameter, but 2 for a single parameter."""
        return max(2, self.domain.dimension)

    def to_unit(self, thetas: np.ndarray) -> np.ndarray:
        """Scale thetas (B, d) to the unit square or cube (B, D); a missing second coordinate is 0."""
        scaled = self.domain.to_unit(thetas)
        return np.hstack([scaled, np.zeros((len(scaled), self.coordinates - scaled.shape[1]))])

    def to_theta(self, points: np.ndarray) -> np.ndarray:
        """Scale points of the unit square or cube (B, D) back to thetas (B, d) of the domain."""
        return self.domain.clip(self.domain.to_theta(points[:, : self.domain.dimension]))

    @property
    def zero_in_t(self) -> np.ndarray:
        """The unperturbed image as a point t (D,)."""
        return self.to_unit(np.zeros((1, self.domain.dimension)))[0]

    @cached_property
    def corners(self) -> tuple[CellCorners, ...]:
        """Every knot cell as a box in t, or half of one."""
        return tuple(self._corners(cell) for cell in self.cells)

    def _corners(self, cell: KnotCell) -> CellCorners:
        low, high = self.to_unit(np.stack([cell.low, cell.high]))
        if self.domain.dimension == 1:
            high[1] = 1.0
        if cell.side is None:
            return CellCorners(low, high)
        slopes, domain = cell.side[:-1], self.domain
        return CellCorners(low, high, np.append(slopes * domain.widths, cell.side[-1] + slopes @ domain.low))

    @cached_property
    def programs(self) -> tuple[CellProgram, ...]:
        """The compound network compiled for every knot cell."""
        # If products of weights overflow, everything stays undecided: no need for warnings of numpy.
        with np.errstate(over="ignore", invalid="ignore"):
            return tuple(self._compile_cell(cell) for cell in self.cells)

    def _compile_cell(self, cell: KnotCell) -> CellProgram:
        d, low, widths = self.domain.dimension, self.domain.low, self.domain.widths
        slope = cell.slope.reshape(d, -1)
        forms = np.zeros((self.coordinates + 1, slope.shape[1]))
        forms[:d] = slope * widths[:, None]
        forms[-1] = (self.perturbed.x0 + cell.offset).ravel() + low @ slope
        moving = (forms[:-1] != 0.0).any(axis=0)
        lines, inverse = np.unique(forms[:, moving], axis=1, return_inverse=True)
        line_of = np.full(len(moving), -1)
        line_of[moving] = inverse.ravel()
        constant = np.where(moving, 0.0, np.clip(forms[-1], 0.0, 1.0))
        maps = (_on_lines(self.chain.maps[0], line_of, constant, lines.shape[1]), *self.chain.maps[1:])
        folded = [is_folded(segment) for segment in self.graph.steps]
        prints = fingerprint_fields(self._pixel_prints(cell, line_of, forms[-1]), self._products)
        program = _compile(lines, maps, folded, self.graph.layers, prints)
        self._raise_noise(program, forms)
        corners = self.corners[cell.index]
        return CellProgram(program, lines, corners.low, corners.high, line_of, constant, corners.side)

    @cached_property
    def _products(self) -> list[list[Product]]:
        """The steps to all layers with windows, for fingerprints."""
        return products_of(self.graph)

    def _pixel_prints(self, cell: KnotCell, line_of: np.ndarray, constant: np.ndarray) -> PixelPrints | None:
        if not self._products:
            return None
        parts = (self.perturbed.x0, cell.offset, cell.slope)
        definition = np.vstack([np.reshape(part, (-1, len(line_of))) for part in parts])
        return pixel_prints(line_of, int(line_of.max(initial=-1)) + 1, constant, definition)

    def _raise_noise(self, program: Program, forms: np.ndarray) -> None:
        """Add all pixels to the noise of the first layer: merging them into the bias may cancel large terms."""
        affine = self.chain.maps[0]
        pixels = np.clip(np.maximum(forms[-1], forms[-1] + forms[:-1].clip(min=0.0).sum(axis=0)), 0.0, 1.0)
        first = slice(program.offsets[CLIP_LAYERS], program.offsets[CLIP_LAYERS + 1])
        scale = affine.absolute @ pixels + np.abs(affine.bias)
        program.noise[first] = np.maximum(program.noise[first], noise_share(row_terms(affine)) * scale)
        program.near[first] = np.maximum(program.near[first], near_zero(scale))


def plain_program(layers: list[tuple[np.ndarray, np.ndarray]]) -> CellProgram:
    """Compile a network whose input is t itself, without image or clip: W0, b0, ReLU, W1, b1, ReLU, …, logits.

    >>> plain_program([(np.eye(2), np.zeros(2)), (np.ones((1, 2)), np.zeros(1))]).widths
    array([2, 1])
    """
    if len(layers) < 2:
        raise ValueError("a plain program needs a hidden layer and a logit layer")
    shape = _plain_shape(tuple([weight.shape for weight, _ in layers]))
    weight, bias = layers[0]
    root = np.zeros((len(shape.high) + 1, len(bias)))
    root[: weight.shape[1]], root[-1] = weight.T, bias
    dense, (biases, noise, near, largest) = np.empty(shape.entries), np.zeros((4, shape.neurons))
    for (weight, bias), start, first in zip(layers[1:], shape.starts, shape.firsts, strict=True):
        store_map(np.ascontiguousarray(weight, np.float64), np.ascontiguousarray(bias, np.float64), start, first, dense,
                  biases)  # fmt: skip
    program = shape.program._replace(dense=dense, bias=biases, noise=noise, near=near, largest=largest)
    set_thresholds(program, 1, shape.shares, root, shape.points, np.empty(shape.room))
    return CellProgram(program, root, shape.low, shape.high, shape.nowhere, shape.nothing)


class _PlainShape(NamedTuple):
    """The shared part of plain programs with layers of the same sizes; `program` lacks the numbers of the network."""

    program: Program
    starts: list[int]
    firsts: list[int]
    entries: int
    neurons: int
    shares: np.ndarray
    points: np.ndarray
    room: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    nowhere: np.ndarray
    nothing: np.ndarray


@lru_cache(maxsize=8)
def _plain_shape(shapes: tuple[tuple[int, int], ...]) -> _PlainShape:
    """The shared part of plain programs, given the shapes of the matrices."""
    sizes, coordinates, nothing = tuple([shape[0] for shape in shapes]), max(2, shapes[0][1]), np.zeros(0)
    fields = _shared_fields(sizes, 1, (False,) * (len(shapes) - 1)) | fingerprint_fields(None, [])
    numbers = dict.fromkeys(("dense", "bias", "noise", "near", "largest"), nothing)
    points, shares = _sample_points(coordinates), _noise_shares(fields["terms"].tobytes())
    return _PlainShape(
        Program(clipped=0, **fields, **numbers), fields["dense_start"].tolist()[1:], fields["offsets"].tolist()[1:-1],
        sum([rows * columns for rows, columns in shapes[1:]]), sum(sizes), shares, points,
        (3, max(sizes), points.shape[1]), np.zeros(coordinates), np.ones(coordinates), nothing.astype(np.int64),
        nothing,
    )  # fmt: skip


def _on_lines(affine: AffineMap, line_of: np.ndarray, constant: np.ndarray, lines: int) -> AffineMap:
    """The classifier's first map, with clipped lines instead of pixels as input."""
    matrix = affine.matrix
    if not isinstance(matrix, np.ndarray):
        pixels = np.flatnonzero(line_of >= 0)
        gather = scipy_sparse.csr_array((np.ones(len(pixels)), (pixels, line_of[pixels])), shape=(len(line_of), lines))
        moved = np.abs(matrix) @ np.abs(constant)
        bias = _kept(affine.bias + matrix @ constant, np.abs(affine.bias) + moved)
        # Keep entries that cancel: readers rely on stored entries.
        merged = scipy_sparse.csr_array(matrix @ gather)
        merged.data = _kept(merged.data, np.ones(merged.nnz))
        return AffineMap(merged, bias)
    # Extended precision: hundreds of pixels may share one line (a black background), or be constant.
    order = np.argsort(line_of, kind="stable")
    first = np.searchsorted(line_of[order], np.arange(lines))
    rows = matrix.T[order].astype(np.longdouble)
    if lines:
        merged = _kept(np.add.reduceat(rows, first, axis=0), np.add.reduceat(np.abs(rows), first, axis=0))
    else:
        merged = np.zeros((0, len(matrix)))
    still = np.flatnonzero(constant)
    added = matrix.T[still].astype(np.longdouble) * constant[still, None]
    bias = _kept(affine.bias + added.sum(axis=0), np.abs(affine.bias) + np.abs(added).sum(axis=0))
    return AffineMap(np.ascontiguousarray(merged.T, dtype=np.float64), bias.astype(np.float64))


def _kept(sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The sums, made nonzero unless all of their terms are zero: readers rely on nonzero entries."""
    return np.where((sums == 0.0) & (sizes > 0.0), 1e-300, sums)


def _compile(
    root: np.ndarray,
    maps: tuple[AffineMap, ...],
    folded: Sequence[bool],
    layers: Sequence[Layer],
    prints: dict[str, np.ndarray],
) -> Program:
    """Store the layers, after those of the clip, as flat arrays, and sparse matrices column by column.

    `folded`: for each map, whether it is a product of several linear operators or has rounded constants. `layers`: the
    neurons after each map but the last.
    """
    sizes = (root.shape[1],) * CLIP_LAYERS + tuple([len(affine.bias) for affine in maps])
    fields = dict(_shared_fields(sizes, CLIP_LAYERS, tuple(folded)))
    if any([is_sparse(affine.matrix) for affine in maps]):
        fields |= _sparse_fields(maps)
    if not all([layer.is_plain for layer in layers]):
        fields |= _kinds(fields, layers, maps, folded)
    offsets, dense_start = fields["offsets"].tolist(), fields["dense_start"].tolist()
    dense = np.empty(sum([affine.matrix.size for affine in maps if not is_sparse(affine.matrix)]))
    bias, noise, near, largest = np.empty((4, offsets[-1]))
    bias[: offsets[CLIP_LAYERS]] = 0.0
    for layer, affine in enumerate(maps, start=CLIP_LAYERS):
        bias[offsets[layer] : offsets[layer + 1]] = affine.bias
        if not is_sparse(affine.matrix):
            matrix, start = affine.matrix, dense_start[layer]
            dense[start : start + matrix.size].reshape(matrix.T.shape)[...] = matrix.T
    program = Program(clipped=1, dense=dense, bias=bias, noise=noise, near=near, largest=largest, **fields, **prints)
    points = _sample_points(len(root) - 1)
    room = np.empty((3, max(sizes), points.shape[1]))
    set_thresholds(program, CLIP_LAYERS, _noise_shares(fields["terms"].tobytes()), root, points, room)
    return program


@lru_cache(maxsize=8)
def _shared_fields(sizes: tuple[int, ...], clip: int, folded: tuple[bool, ...]) -> dict[str, np.ndarray]:
    """The fields of programs with these layers, if all matrices are dense and all neurons are ReLUs, without the
    numbers of the network, for all of them; `clip`: the layers before the first map."""
    neurons, layers = sum(sizes), len(sizes)
    entries = [below * size for below, size in zip(sizes[clip - 1 :], sizes[clip:], strict=False)]
    first, no = np.arange(neurons, dtype=np.int32), np.zeros(layers, dtype=np.bool_)
    bytes_before = accumulate([-(-size // 8) for size in sizes[:-1]], initial=0)
    return {
        "offsets": np.array([0, *accumulate(sizes)], dtype=np.int64),
        "dense_start": np.array([-1] * clip + [0, *accumulate(entries[:-1])], dtype=np.int64),
        # The first pointer belongs to no layer: kernels may read column_start of a dense layer, but follow no pointer.
        "column_start": np.zeros(layers, dtype=np.int64), "columns": np.zeros(1, dtype=np.int64),
        "rows": np.zeros(0, dtype=np.int32), "values": np.zeros(0),
        "is_folded": np.array([False] * clip + list(folded)),
        "terms": np.array([1] * clip + list(sizes[clip - 1 : -1])), "byte_start": np.array(list(bytes_before)),
        "kind": np.zeros(neurons, dtype=np.uint8), "window_first": first, "window_end": first + np.int32(1),
        "is_plain": ~no, "is_copy": no, "has_copies": no, "is_rectified": no,
        "copied": np.full(neurons, -1, dtype=np.int32),
    }  # fmt: skip


def _sparse_fields(maps: tuple[AffineMap, ...]) -> dict[str, np.ndarray]:
    """The fields that differ from `_shared_fields` if some matrices are sparse: stored column by column."""
    dense_start, column_start, terms = [-1] * CLIP_LAYERS, [0] * CLIP_LAYERS, [1] * CLIP_LAYERS
    columns, rows, values = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int32)], [np.zeros(0)]
    entries, pointers, stored = 0, 1, 0
    for affine in maps:
        terms.append(row_terms(affine))
        dense_start.append(-1 if is_sparse(affine.matrix) else stored)
        column_start.append(pointers if is_sparse(affine.matrix) else 0)
        if not is_sparse(affine.matrix):
            stored += affine.matrix.size
            continue
        matrix = scipy_sparse.csc_array(affine.matrix)
        columns.append(matrix.indptr.astype(np.int64) + entries)
        rows.append(matrix.indices.astype(np.int32, copy=False))
        values.append(matrix.data)
        entries += matrix.nnz
        pointers += len(matrix.indptr)
    return {
        "dense_start": np.array(dense_start, dtype=np.int64),
        "column_start": np.array(column_start, dtype=np.int64),
        "columns": np.concatenate(columns),
        "rows": np.concatenate(rows),
        "values": np.concatenate(values),
        "terms": np.array(terms),
    }


@lru_cache(maxsize=8)
def _noise_shares(terms: bytes) -> np.ndarray:
    """The noise of every layer as a share of its scale, given the field `terms` of a program."""
    return np.array([noise_share(count) for count in np.frombuffer(terms, dtype=np.int64)])


def _kinds(
    known: dict[str, np.ndarray], layers: Sequence[Layer], maps: tuple[AffineMap, ...], folded: Sequence[bool]
) -> dict[str, np.ndarray]:
    """The fields of a program for kinds and copies of neurons, if not all neurons are ReLUs; `known` holds the fields
    as if all were."""
    names = ("kind", "window_first", "window_end", "is_plain", "is_copy", "has_copies", "is_rectified", "copied")
    fields = {name: known[name].copy() for name in names}
    kind, first, end, is_plain, is_copy, has_copies, is_rectified, copied = fields.values()
    offsets = known["offsets"].tolist()
    clip = len(offsets) - 1 - len(maps)
    for number, (layer, affine) in enumerate(zip(layers, maps, strict=False), start=clip):
        before, start = offsets[number - 1 : number + 1]
        here, below = slice(start, offsets[number + 1]), slice(before, start)
        kind[here], is_plain[number] = layer.kind, layer.is_plain
        first[here], end[here] = (part + np.int32(start) for part in layer.ends)
        copied[here] = affine.copied_inputs(first[below] - before, end[below] - before)
        copied[here] += np.where(copied[here] >= 0, np.int32(before), np.int32(0))
        has_copies[number], is_copy[number] = (copied[here] >= 0).any(), (copied[here] >= 0).all()
        sources = copied[here][layer.entries]
        is_rectified[number] = (sources >= 0).all() and (kind[sources] == RELU).all() and not folded[number - clip]
    return fields


def row_terms(affine: AffineMap) -> int:
    """The largest number of inputs that one output of an affine map sums."""
    matrix = affine.matrix
    return matrix.shape[1] if isinstance(matrix, np.ndarray) else int(np.diff(matrix.indptr).max(initial=0))


@lru_cache(maxsize=8)
def _sample_points(coordinates: int) -> np.ndarray:
    """A grid of points in the unit square or cube, as columns that end with a 1."""
    ticks = np.linspace(0.0, 1.0, 7 if coordinates < 4 else 5)
    grid = np.meshgrid(*[ticks] * coordinates)
    points = np.stack([*(axis.ravel() for axis in grid), np.ones(grid[0].size)])
    points.setflags(write=False)
    return points
