"""From a problem to what a page needs to compute single thetas itself: weights, pixels and expected maps as arrays.

The page repeats `DomainResult.at` with these numbers (assets/network.js): weights are stored exactly, in the smaller of
float32 and float64 that holds them. Nothing is computed here but sizes, which decide whether a page can do it at all.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...attention.inconsistency import expected_maps
from ...network.steps import ConvStep, MatrixStep, OrderStep, ScaleStep, Step
from ...problem import Problem
from ...results.domain_result import DomainResult
from .pack import smallest_kind

MOST_BYTES = 8 << 20
"""Weights and maps of a network that a page computes itself: more would make the report too large to hand over."""

MOST_WORK = 60_000_000
"""Multiplications for one theta: a browser does about a billion a second, and an answer should take below 100 ms."""

MOST_DOUBLE = 2 << 20
"""Bytes of expected maps that move, up to which they are stored in double precision."""

Arrays = dict[str, tuple[str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class NetworkData:
    """Arrays by name, and plain data that say what they are: layers of steps, shapes, knots, filter, distance."""

    arrays: Arrays
    facts: dict[str, Any]


def describe_network(result: DomainResult) -> NetworkData | None:
    """Everything that one theta needs, None for networks that are too large for a page."""
    problem = result.problem
    segments = problem.model.graph.steps
    weights = sum(step.weights.size + step.bias.size for segment in segments for step in segment)
    passes = 1 + len(result.original)
    work = passes * sum(step.work for segment in segments for step in segment)
    moves = problem.perturbed.moving_axis is not None
    cells = len(problem.perturbed.cells)
    numbers = weights + result.original.size * (2 * cells if moves else 1)
    numbers += problem.perturbed.x0.size * cells * (1 + problem.perturbed.domain.dimension)
    if 4 * numbers > MOST_BYTES or work > MOST_WORK:
        return None
    arrays: Arrays = {}
    layers = [[_describe_step(step, arrays) for step in segment] for segment in segments]
    facts = {"layers": layers, **_describe_cells(problem, result.original, arrays)}
    regions = result.exact_regions
    if regions is not None:
        # Rounded up, so that what is rounding for the result is rounding for the page.
        noise = np.concatenate([np.zeros(0), *problem.compound.noise[: len(segments) - 1]])
        arrays["noise"] = ("f4", np.nextafter(noise.astype(np.float32), np.float32(np.inf)))
    return NetworkData(arrays, facts)


def _describe_step(step: Step, arrays: Arrays) -> dict[str, Any]:
    """One step as plain data; its arrays go into `arrays`, numbered by how many there are."""
    number = len(arrays)
    sizes = {"inputs": step.sizes[0], "outputs": step.sizes[1]}

    def put(what: str, array: np.ndarray, kind: str | None = None) -> str:
        name = f"{what}{number}"
        arrays[name] = (kind or smallest_kind(array), array)
        return name

    if isinstance(step, OrderStep):
        return {"kind": "order", **sizes, "order": put("order", step.order, "u4")}
    if isinstance(step, ScaleStep):
        return {"kind": "scale", **sizes, "factor": put("factor", step.factor), "bias": put("bias", step.bias)}
    if isinstance(step, ConvStep):
        shapes: dict[str, Any] = {"depth": step.shape[0], "height": step.shape[1], "width": step.shape[2]}
        shapes |= {"maps": step.target[0], "rows": step.target[1], "columns": step.target[2]}
        shapes |= {"kernel": list(step.conv.window.kernel), "window": step.window.tolist()}
        weight, bias = put("weight", step.weight), put("bias", step.conv.bias)
        return {"kind": "conv", **sizes, **shapes, "weight": weight, "bias": bias}
    assert isinstance(step, MatrixStep)
    bias = put("bias", step.bias)
    if isinstance(step.matrix, np.ndarray):
        return {"kind": "dense", **sizes, "weight": put("weight", step.matrix), "bias": bias}
    rows, columns = put("rows", step.matrix.indptr, "u4"), put("columns", step.matrix.indices, "u4")
    return {
        "kind": "sparse", **sizes, "rows": rows, "columns": columns, "weight": put("weight", step.matrix.data),
        "bias": bias,
    }  # fmt: skip


def _describe_cells(problem: Problem, original: np.ndarray, arrays: Arrays) -> dict[str, Any]:
    """Pixels and expected maps as affine functions of theta on every knot cell, the last axis varying fastest."""
    perturbed, options = problem.perturbed, problem.attention
    base = np.stack([(perturbed.x0 + cell.offset).ravel() for cell in perturbed.cells])
    slopes = np.stack([cell.slope.reshape(len(cell.slope), -1) for cell in perturbed.cells])
    arrays["pixels"] = ("f8", base)
    arrays["slopes"] = (smallest_kind(slopes), slopes)
    moving = perturbed.moving_axis
    if moving is None:
        arrays["expected"] = (smallest_kind(original), original)
    else:
        pairs = [expected_maps(problem.compound, cell, original) for cell in perturbed.cells]
        expected = np.stack([low for low, _ in pairs])
        # Single precision where these arrays are the largest of all: their error stays far below what is compared.
        kind = "f8" if 16 * expected.size <= MOST_DOUBLE else "f4"
        arrays["expected"] = (kind, expected)
        arrays["change"] = (kind, np.stack([0.0 * original if slope is None else slope for _, slope in pairs]))
    return {
        "shape": list(perturbed.x0.shape),
        "knots": [list(perturbation.knots()) for perturbation in perturbed.perturbations],
        "cellLows": None if moving is None else [float(cell.low[moving]) for cell in perturbed.cells],
        "moving": moving,
        "filter": list(options.filter.steps),
        "distance": options.distance.value,
    }
