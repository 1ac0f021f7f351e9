"""From a problem to the arrays with which a page shows single thetas, packed as text.

The page repeats `Result.at` with weights, pixels and expected maps (assets/network.js). Weights are stored
exactly, in the smaller of float32 and float64 that holds them. If the network is too large, a few thetas are stored:
images and maps with 8 bits, channels of the maps summed as in figures; logits, margin and inconsistency exactly. The
page shows the nearest of these thetas and says which.

Of an image that is curved in theta, the page looks pixels, expected maps and masks up as `Moved.images` does, and adds
the changes of light (assets/curve.js).
"""

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ...attention.inconsistency import expected_maps, original_gradients
from ...attention.methods import GradientMethod
from ...attention.methods.gradcam import upsample
from ...errors import InternalError
from ...labels import Label
from ...lazily import scipy_sparse
from ...network.graph import Graph
from ...network.layers import CARRIED, ENTRY, RELU, Layer
from ...network.steps import ArrangeStep, ConvStep, MatrixStep, OrderStep, PartStep, ScaleStep, Step, SumStep
from ...perturbation.curved import Curve, CurvedLight, Light
from ...question import Question
from ...results.result import Result
from ..drawing.exhibits import is_apart

MOST_BYTES = 8 << 20
"""Weights and maps that a page computes with: more would make the report too large to share."""
MOST_WORK = 60_000_000
"""Multiplications for one theta: a browser does about a billion a second, and an answer should take under 100 ms."""
MOST_DOUBLE = 2 << 20
"""Up to so many bytes, expected maps that move are stored in double precision."""
SIDES = {1: 17, 2: 5, 3: 3}
"""Stored thetas along each side of a grid, by the number of parameters."""
MOST_MAPS = 4
"""Classes whose maps are stored: the label's first, then those of the largest original maps."""
LEVELS = 127
KINDS = {"f8": "<f8", "f4": "<f4", "u4": "<u4", "i2": "<i2", "u2": "<u2", "u1": "|u1"}
"""The types of JavaScript arrays."""

ALIGNED = 8
"""Every array begins at a multiple of this many bytes, as JavaScript requires."""

Arrays = dict[str, tuple[str, np.ndarray]]
"""Arrays by name, each with the type (see `KINDS`) that it is stored as."""


@dataclass(frozen=True, eq=False)
class ThetaData:
    """Arrays by name and plain data about them; `count` thetas are stored (0 if the page computes them)."""

    arrays: Arrays
    facts: dict[str, Any]
    count: int = 0


def fits_page(result: Result) -> bool:
    """Whether a page can hold the network and compute with it."""
    question = result.question
    if not isinstance(question.attention.method, GradientMethod):
        return False  # the page's own passes give gradients only
    segments = (*question.graph.steps, question.graph.aim_steps)
    weights = sum(_stored_numbers(step) for segment in segments for step in segment)
    passes = 1 + len(result.question.original)
    work = passes * sum(step.work for segment in segments for step in segment)
    numbers = weights + _image_numbers(question)
    return 4 * numbers <= MOST_BYTES and work <= MOST_WORK


def describe_network(result: Result) -> ThetaData:
    """The data to compute one theta: all weights are among them."""
    question = result.question
    arrays: Arrays = {}
    has_factor = question.attention.method.factor_baseline is not None
    original = original_gradients(question.compound, question.attention) if has_factor else question.original
    facts = describe_layers(question.graph, arrays) | _describe_cells(question, original, arrays)
    if result.tiling.kind == "map" or result.tiling.exact_regions is not None:
        # Rounded up: the page treats at least as much as rounding as the result does.
        noise = np.concatenate([np.zeros(0), *question.compound.noise[: len(question.graph.layers)]])
        arrays["noise"] = ("f4", np.nextafter(noise.astype(np.float32), np.float32(np.inf)))
    return ThetaData(arrays, facts)


def _image_numbers(question: Question) -> int:
    """How many numbers describe the image and the expected maps."""
    perturbed = question.perturbed
    if perturbed.curve is not None:
        return question.original.size + stored_numbers(perturbed.curve)
    cells, moves = len(perturbed.cells), perturbed.moving_axis is not None and not perturbed.has_enclosed_maps
    numbers = question.original.size * (2 * cells if moves else 1)
    return numbers + perturbed.x0.size * cells * (1 + perturbed.domain.dimension)


def _stored_numbers(step: Step) -> int:
    """How many weights and biases of a step are stored."""
    if isinstance(step, PartStep):
        return _stored_numbers(step.inner)
    return 0 if isinstance(step, ArrangeStep | SumStep) else step.weights.size + step.bias.size


def describe_layers(graph: Graph, arrays: Arrays) -> dict[str, Any]:
    """The steps before every layer and before the logits, and how the neurons of each layer are decided."""
    return {
        "layers": [[_describe_step(step, arrays) for step in segment] for segment in graph.steps],
        "aims": None if graph.aims is None else [_describe_step(step, arrays) for step in graph.aim_steps],
        "neurons": [_describe_neurons(layer, arrays) for layer in graph.layers],
    }


def _describe_neurons(layer: Layer, arrays: Arrays) -> list[dict[str, Any]]:
    """Runs of neurons of one kind, in order; windows with their numbers of entries, a single one if all are equal."""
    starts = np.flatnonzero(np.diff(layer.kind.astype(np.int64), prepend=-1))
    runs: list[dict[str, Any]] = []
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(layer)], strict=True):
        kind = {RELU: "relu", CARRIED: "carried", ENTRY: "windows"}[int(layer.kind[start])]
        run: dict[str, Any] = {"kind": kind, "count": end - start}
        if kind == "windows":
            sizes = np.unique(layer.window[start:end], return_counts=True)[1]
            if (sizes == sizes[0]).all():
                run["each"] = int(sizes[0])
            else:
                run["sizes"] = f"sizes{len(arrays)}"
                arrays[run["sizes"]] = ("u4", sizes)
        runs.append(run)
    return runs


def _describe_step(step: Step, arrays: Arrays) -> dict[str, Any]:
    """One step as plain data; its arrays go into `arrays`, numbered in order."""
    number = len(arrays)

    def put(what: str, array: np.ndarray, kind: str | None = None) -> str:
        name = f"{what}{number}"
        arrays[name] = (kind or smallest_kind(array), array)
        return name

    match step:
        case PartStep():
            kind = "part"
            details: dict[str, Any] = {"before": step.before, "inner": _describe_step(step.inner, arrays)}
        case ArrangeStep():
            kind, details = "arrange", {"slices": [[part.start, part.stop] for part in step.slices]}
        case SumStep():
            kind, details = "sum", {"signs": step.signs.tolist()}
        case OrderStep():
            kind, details = "order", {"order": put("order", step.order, "u4")}
        case ScaleStep():
            kind, details = "scale", {"factor": put("factor", step.factor), "bias": put("bias", step.bias)}
        case ConvStep():
            kind, details = "conv", {"depth": step.shape[0], "height": step.shape[1], "width": step.shape[2]}
            details |= {"maps": step.target[0], "rows": step.target[1], "columns": step.target[2]}
            details |= {"kernel": list(step.conv.window.kernel), "window": step.window.tolist()}
            details |= {"weight": put("weight", step.weight), "bias": put("bias", step.conv.bias)}
        case MatrixStep() if isinstance(step.matrix, np.ndarray):
            kind, details = "dense", {"weight": put("weight", step.matrix), "bias": put("bias", step.bias)}
        case MatrixStep():
            kind, matrix = "sparse", scipy_sparse.csr_array(step.matrix)
            details = {"rows": put("rows", matrix.indptr, "u4"), "columns": put("columns", matrix.indices, "u4")}
            # The page takes missing weights as ones, a missing bias as zero: entries of windows, chosen or added up.
            details["weight"] = put("weight", matrix.data) if (matrix.data != 1.0).any() else None
            details["bias"] = put("bias", step.bias) if step.bias.any() else None
        case _:
            raise InternalError(f"step '{step.name}': the page does not know a {type(step).__name__}")
    return {"kind": kind, "inputs": step.sizes[0], "outputs": step.sizes[1], **details}


def _describe_cells(question: Question, original: np.ndarray, arrays: Arrays) -> dict[str, Any]:
    """Pixels and expected maps as affine functions of theta on every knot cell, the last axis varying fastest.

    Where the image is curved, pixels and maps are those of the unperturbed image, which `curve` moves and changes; on
    triangles, so are the maps.

    original: the filtered maps of the unperturbed image, or its gradients if the method multiplies them by the image.
    """
    perturbed, options = question.perturbed, question.attention
    targets = options.targets(question.model.classes)
    curve = None if perturbed.curve is None else describe_curve(perturbed.curve, arrays)
    triangles = perturbed.triangles
    moving = None if perturbed.has_enclosed_maps else perturbed.moving_axis
    if curve is None:
        base = np.stack([(perturbed.x0 + cell.offset).ravel() for cell in perturbed.cells])
        slopes = np.stack([cell.slope.reshape(len(cell.slope), -1) for cell in perturbed.cells])
        arrays["pixels"] = ("f8", base)
        arrays["slopes"] = (smallest_kind(slopes), slopes)
    if options.mask is not None and moving is None:
        arrays["weights"] = ("f8", options.mask.weights)
    elif options.mask is not None:
        masks = [expected_maps(question.compound, cell, options.mask.weights) for cell in perturbed.cells]
        arrays["weights"] = ("f8", np.stack([low for low, _ in masks]))
        arrays["weightChange"] = ("f8", np.stack([0.0 * low if slope is None else slope for low, slope in masks]))
    if moving is None:
        arrays["expected"] = (smallest_kind(original), original)
    else:
        pairs = [expected_maps(question.compound, cell, original) for cell in perturbed.cells]
        expected = np.stack([low for low, _ in pairs])
        # Single precision for the largest arrays: their error is far below the differences of maps.
        kind = "f8" if 16 * expected.size <= MOST_DOUBLE else "f4"
        arrays["expected"] = (kind, expected)
        arrays["change"] = (kind, np.stack([0.0 * original if slope is None else slope for _, slope in pairs]))
    return {
        "shape": list(perturbed.x0.shape),
        "knots": [list(perturbation.knots()) for perturbation in perturbed.perturbations],
        "sides": [[cell.index, *([] if cell.side is None else cell.side.tolist())] for *_, cell in perturbed.boxes],
        "triangles": None if triangles is None else [*triangles.axes, *(part.direction for part in triangles.parts)],
        "cellLows": None if moving is None else [float(cell.low[moving]) for cell in perturbed.cells],
        "moving": moving,
        "curve": curve,
        "targets": [[[int(j), float(row[j])] for j in np.flatnonzero(row)] for row in targets],
        "baseline": options.method.factor_baseline,
        "filter": list(options.filter.steps),
        "distance": options.distance.value,
        "k": getattr(options.measure, "k", 0),
    }


def store_points(result: Result) -> ThetaData:
    """Evaluate and store zero, the nearest violations, witnesses, and a grid over the domain."""
    points = [result.at(theta) for theta in _thetas(result)]
    classes = result.question.attention.chosen(result.question.model.classes).tolist()
    places = _shown_places(result, classes)
    images = np.stack([np.round(255 * point.image) for point in points])
    height, width = result.question.perturbed.x0.shape[1:]
    actual, actual_scale = _quantised([upsample(point.actual[places].sum(axis=1), height, width) for point in points])
    expected, expected_scale = _quantised(
        [upsample(point.expected[places].sum(axis=1), height, width) for point in points]
    )
    distance = result.question.attention.distance
    arrays: Arrays = {
        "thetas": ("f8", np.stack([point.theta for point in points])),
        "images": ("u1", images),
        "actual": ("u1", actual + LEVELS),
        "actualScale": ("f8", actual_scale),
        "expected": ("u1", expected + LEVELS),
        "expectedScale": ("f8", expected_scale),
        "logits": ("f8", np.stack([point.logits for point in points])),
        "inconsistency": ("f8", np.array([point.inconsistency for point in points])),
        "distances": (
            "f8",
            np.array([[distance.size(d) for d in point.actual[places] - point.expected[places]] for point in points]),
        ),
    }
    if points[0].weights is not None:
        arrays["weights"] = ("f4", np.stack([point.weights for point in points if point.weights is not None]))
    facts = {"classes": [classes[place] for place in places], "shape": list(result.question.perturbed.x0.shape)}
    return ThetaData(arrays, facts, len(points))


def _thetas(result: Result) -> list[np.ndarray]:
    """Different thetas of the domain in a fixed order."""
    domain = result.question.compound.domain
    wanted = [np.zeros(domain.dimension)] if domain.contains_zero else []
    names = (Label.CR, Label.AR) if result.is_measured else (Label.CR,)
    wanted += [theta for name in names if (theta := result.nearest[name].theta) is not None]
    wanted += [witness.point.theta for witness in result.witnesses]
    side = SIDES[domain.dimension]
    ticks = [np.linspace(low, high, side) for low, high in zip(domain.low, domain.high, strict=True)]
    wanted += [np.array(corner) for corner in product(*ticks)]
    chosen: list[np.ndarray] = []
    for theta in wanted:
        if is_apart(theta, chosen, domain.widths, 1e-9):
            chosen.append(theta)
    return chosen


def _shown_places(result: Result, classes: list[int]) -> list[int]:
    """The places among the compared classes whose maps are stored."""
    sizes = [-result.question.attention.distance.size(part) for part in result.question.original]
    ranked = [int(place) for place in np.argsort(sizes, kind="stable")]
    if result.label in classes:
        own = classes.index(result.label)
        ranked = [own, *(place for place in ranked if place != own)]
    return ranked[:MOST_MAPS]


def _quantised(maps: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Maps (K', H, W) of all thetas as whole numbers from −127 to 127, and the size of one step (N, K')."""
    stacked = np.stack(maps)
    scale = np.abs(stacked).max(axis=(2, 3)) / LEVELS
    return np.round(stacked / np.where(scale > 0.0, scale, 1.0)[:, :, None, None]), scale


@dataclass(frozen=True)
class Pack:
    """A block in base64 and the places (type, shape, first byte) of the arrays in it."""

    block: str
    places: dict[str, dict[str, Any]]


def pack(arrays: Mapping[str, tuple[str, np.ndarray]]) -> Pack:
    """Pack arrays, each given with the type (see `KINDS`) that it is stored as.

    >>> pack({"a": ("u1", np.array([1, 2, 3])), "b": ("f4", np.array([[0.5]]))}).places["b"]
    {'kind': 'f4', 'shape': [1, 1], 'at': 8}
    """
    parts, places, at = [], {}, 0
    for name, (kind, array) in arrays.items():
        data = np.ascontiguousarray(array, dtype=KINDS[kind]).tobytes()
        data += bytes(-len(data) % ALIGNED)
        places[name] = {"kind": kind, "shape": list(np.shape(array)), "at": at}
        parts.append(data)
        at += len(data)
    return Pack(base64.b64encode(zlib.compress(b"".join(parts), 6)).decode("ascii"), places)


def smallest_kind(array: np.ndarray) -> str:
    """The smaller of f4 and f8 that holds every number exactly.

    >>> smallest_kind(np.array([0.5])), smallest_kind(np.array([0.1]))
    ('f4', 'f8')
    """
    with np.errstate(over="ignore"):
        return "f4" if np.array_equal(np.asarray(array, dtype=np.float32), array, equal_nan=True) else "f8"


def outward(bounds: np.ndarray) -> np.ndarray:
    """Bounds (…, 2) as float32, the first rounded down and the second up.

    >>> low, high = outward(np.array([0.1, 0.1]))
    >>> float(low) < 0.1 < float(high)
    True
    """
    with np.errstate(over="ignore"):
        near = np.asarray(bounds, dtype=np.float32)
    low, high = near[..., 0], near[..., 1]
    low = np.where(low > bounds[..., 0], np.nextafter(low, np.float32(-np.inf)), low)
    high = np.where(high < bounds[..., 1], np.nextafter(high, np.float32(np.inf)), high)
    return np.stack([low, high], axis=-1)


def stored_numbers(curve: Curve) -> int:
    """How many numbers describe the image in a page."""
    total = curve.x0.size
    for light in curve.lights:
        total += light.constant.size
        if not light.is_fixed:
            total += sum(2 * matrix.nnz + curve.x0.size for matrix in light.operators)
    return total


def describe_curve(curve: Curve, arrays: Arrays) -> dict[str, Any]:
    """The image as plain data; its arrays go into `arrays`."""
    arrays["pixels"] = ("f8", curve.x0)
    return {
        "outside": "zero" if curve.moved is None else curve.moved.outside,
        "lights": [_describe_light(light, number, arrays) for number, light in enumerate(curve.lights)],
    }


def _describe_light(light: Light, number: int, arrays: Arrays) -> dict[str, Any]:
    """The parts of a change of light: constants, and how they depend on the moved pixels."""
    parts = []
    for place in range(len(light.constant)):
        name = f"light{number}.{place}"
        arrays[f"{name}.constant"] = ("f8", light.constant[place])
        if not light.is_fixed:
            matrix = light.operators[place]
            arrays[f"{name}.rows"] = ("u4", matrix.indptr)
            arrays[f"{name}.columns"] = ("u4", matrix.indices)
            arrays[f"{name}.weights"] = ("f8", matrix.data)
        parts.append(name)
    return {"axis": light.axis, "parts": parts, "isFixed": light.is_fixed}


def curve_script(curve: Curve | None) -> str:
    """The functions of theta that the page calls: coordinates of every movement, and factors of every light."""
    moved = () if curve is None or curve.moved is None else curve.moved.movements
    lights = () if curve is None else curve.lights
    movements = [f"[{axis}, {movement.script}]" for axis, movement in moved]
    factors = [one.family.script if isinstance(one.family, CurvedLight) else "(t) => [t]" for one in lights]
    return f"const SgMovements = [{', '.join(movements)}], SgFactors = [{', '.join(factors)}];"
