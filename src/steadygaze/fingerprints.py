"""Fingerprints of neurons: numbers that are equal if two neurons have equal values for the same reason.

Entries of a window may be equal on whole regions: on a constant background, or where all pixels are clipped to 1.
Floats cannot show whether two values are exactly equal; fingerprints can. The fingerprint of a neuron is its value,
under the pattern of the region, in a network whose pixels and weights are replaced by fixed random numbers modulo 2⁶¹ −
1, the same for equal pixels and for equal weights. Neurons that sum equal products, in any order, have equal
fingerprints; any two other neurons have different ones, except with a chance of about 2⁻⁶¹.

The steps of a network are carried out one after another, never joined into one matrix, so no weight is a rounded
product. A batch normalisation or a quotient is represented by the numbers that define it. If a step has constants that
were rounded before, every row gets a random number of its own: it is not known to equal anything.
"""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np

from .lazily import scipy_sparse
from .network.graph import Graph
from .network.layers import ENTRY
from .network.operators import Matrix, Mean, ScaleShift, Shape
from .network.steps import PartStep, Step
from .network.windows import AveragePool

PRIME = (1 << 61) - 1

AFTER_CLIP, AFTER_LAYER, AFTER_STEP = 0, 1, 2
"""The kinds of inputs of a stage: clipped lines, outputs of the layer before, results of the stage before."""

SEED = 61


def symbols(values: np.ndarray) -> np.ndarray:
    """The fixed random number of every float: 0 and ±1 are themselves, and −x is minus the number of x.

    >>> one, two = symbols(np.array([2.5, -2.5])).tolist()
    >>> symbols(np.array([0.0, 1.0])).tolist(), (one + two) % PRIME
    ([0, 1], 0)
    """
    values = np.asarray(values, dtype=np.float64)
    found = _mixed(np.abs(values).view(np.uint64))
    found = np.where(values == 0.0, np.uint64(0), np.where(np.abs(values) == 1.0, np.uint64(1), found))
    return np.where((values < 0.0) & (found > 0), np.uint64(PRIME) - found, found)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Random numbers below 2⁶¹ − 1, by the finalizer of SplitMix64."""
    with np.errstate(over="ignore"):
        z = numbers + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))) % np.uint64(PRIME)


class Product(NamedTuple):
    """A matrix by its columns, with symbols in place of its entries, and the start of its results (n_out,)."""

    pointers: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    start: np.ndarray

    @classmethod
    def of(cls, matrix: Matrix, start: np.ndarray) -> "Product":
        """A matrix (n_out, n_in); results start as the given numbers modulo 2⁶¹ − 1."""
        columns = scipy_sparse.csc_array(matrix)
        return cls(columns.indptr.astype(np.int64), columns.indices.astype(np.int32), symbols(columns.data), start)


def products_of(graph: Graph) -> list[list[Product]]:
    """The steps before every layer up to the last one with windows."""
    last = max((number for number, layer in enumerate(graph.layers) if (layer.kind == ENTRY).any()), default=-1)
    rng, found = np.random.default_rng(SEED), []
    for number, segment in enumerate(graph.steps[: last + 1]):
        products = [_product(graph, step, rng) for step in segment]
        if not segment and number > 0:
            # The layer reads the outputs of the layer before unchanged.
            size = len(graph.layers[number])
            products.append(Product.of(scipy_sparse.eye_array(size), np.zeros(size, dtype=np.uint64)))
        found.append(products)
    return found


def _product(graph: Graph, step: Step, rng: np.random.Generator) -> Product:
    matrix, bias = step.affine()
    product = Product.of(matrix, symbols(bias))
    if not step.roundings:
        return product
    nodes = [node for node in graph.nodes if node.name == step.name]
    operator = nodes[0].operator if len(nodes) == 1 and not isinstance(step, PartStep) else None
    if isinstance(operator, Mean | AveragePool) and not operator.read_roundings:
        return product  # different counts have different quotients 1/count
    if isinstance(operator, ScaleShift) and not operator.read_roundings:
        # Each row has one entry, hashed from its constants: equal for equal constants, however their quotient rounds.
        root = (0.0, 0.0) if operator.variance is None else (operator.variance, operator.epsilon)
        gain = (operator.multiplier, operator.gain, operator.divisor, *root)
        of_rows = _hashed(gain, nodes[0].shape)
        start = _hashed((*gain, operator.mean, operator.offset), nodes[0].shape)
        return product._replace(values=of_rows[product.rows], start=start)
    return product._replace(start=rng.integers(2, PRIME, len(bias), dtype=np.uint64))


def _hashed(parts: Sequence[np.ndarray | float], shape: Shape) -> np.ndarray:
    """A random number for every place of a value of this shape, the same for the same parts."""
    found = np.zeros(prod(shape), dtype=np.uint64)
    for part in parts:
        numbers = np.broadcast_to(np.asarray(part, dtype=np.float64), shape).ravel() + 0.0
        found = _mixed(found ^ numbers.view(np.uint64))
    return found


class PixelPrints(NamedTuple):
    """The fingerprints of the lines (n,), and the product that turns those of clipped lines into those of pixels."""

    lines: np.ndarray
    pixels: Product


def pixel_prints(line_of: np.ndarray, lines: int, unclipped: np.ndarray, definition: np.ndarray) -> PixelPrints:
    """The fingerprints of pixels, each with its line, or −1 if it is constant.

    definition (rows, pixels): the floats that define each pixel; pixels with the same definition are equal. unclipped
    (pixels,): the value of a constant pixel, up to rounding. A pixel whose line equals another one only by rounding
    gets a fingerprint of its own.
    """
    _, inverse = np.unique(definition, axis=1, return_inverse=True)
    inverse = inverse.ravel()
    known, own = np.random.default_rng(SEED + 1).integers(2, PRIME, (2, inverse.max(initial=0) + 1), dtype=np.uint64)
    moving = np.flatnonzero(line_of >= 0)
    of_lines, first = np.zeros(lines, dtype=np.uint64), np.zeros(lines, dtype=np.int64)
    first[line_of[moving]] = inverse[moving]
    of_lines[line_of[moving]] = known[inverse[moving]]
    start = np.where(unclipped <= 0.0, np.uint64(0), known[inverse])
    start[moving] = 0
    mixed = np.zeros(lines, dtype=bool)
    mixed[line_of[moving[first[line_of[moving]] != inverse[moving]]]] = True
    is_mixed = moving[mixed[line_of[moving]]]
    start[is_mixed] = own[inverse[is_mixed]]
    gather = scipy_sparse.csr_array((np.ones(len(moving)), (moving, line_of[moving])), shape=(len(line_of), lines))
    return PixelPrints(of_lines, Product.of(gather, start))


def fingerprint_fields(pixels: PixelPrints | None, products: Sequence[Sequence[Product]]) -> dict[str, np.ndarray]:
    """The fields of a program for fingerprints; empty without products. Layers are numbered after the clip's two."""
    if pixels is None or not products:
        return _no_fields(len(products))
    stages = [(AFTER_CLIP, 2, pixels.pixels)]
    for number, steps in enumerate(products):
        gates = [AFTER_LAYER if number and not place else AFTER_STEP for place in range(len(steps))]
        stages += [(gate, number + 2, step) for gate, step in zip(gates, steps, strict=True)]
    results = [pixels.lines]
    table, starts = [], np.zeros(2 + len(products), dtype=np.int64)
    first, size, fed, pointers, entries = 0, len(results[0]), 0, 0, 0
    columns = []
    for gate, layer, product in stages:
        inputs = len(product.pointers) - 1
        table.append((gate, layer, first, inputs, size, fed, pointers))
        columns.append(product.pointers + entries)
        results.append(product.start)
        first, starts[layer] = size, size
        size, fed, pointers = size + len(product.start), fed + inputs, pointers + inputs + 1
        entries += len(product.rows)
    return {
        "prints": np.concatenate(results),
        "print_stages": np.array(table, dtype=np.int64).reshape(-1, 7),
        "print_columns": np.concatenate(columns),
        "print_rows": np.concatenate([product.rows for _, _, product in stages]),
        "print_values": np.concatenate([product.values for _, _, product in stages]),
        "print_start": starts,
    }


@cache
def _no_fields(products: int) -> dict[str, np.ndarray]:
    return {
        "prints": np.zeros(0, dtype=np.uint64),
        "print_stages": np.zeros((0, 7), dtype=np.int64),
        "print_columns": np.zeros(0, dtype=np.int64),
        "print_rows": np.zeros(0, dtype=np.int32),
        "print_values": np.zeros(0, dtype=np.uint64),
        "print_start": np.zeros(2 + products, dtype=np.int64),
    }
