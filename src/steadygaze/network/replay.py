"""Runs the model file itself in its own float type, and estimates how far rounding in that type can move its values.

`Replay` is a second opinion on the graph: the two share the bytes of the file and the choice of the input's layout, but
no arithmetic. So this module has its own code for preprocessing and layout.

`estimate_rounding` gives a first-order estimate, in the usual random model of rounding errors; it proves nothing. If
rounding can change the sign of a neuron, the neuron's whole error counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..lazily import onnx, onnxruntime
from .doubts import doubtful_bits, pattern_errors
from .graph import Graph
from .layers import Layer
from .layout import Layout, Order, Preprocessing
from .onnx_file import DataType, OnnxFile, final_activation, float_types, input_dims, one_line
from .operators import Array
from .steps import downwards, upwards

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxruntime import InferenceSession

# Images per run of a session.
CHUNK = 128
SILENT = 4  # onnxruntime's log level for fatal errors only: other errors are raised anyway

PROBES = 8
"""Number of error vectors with random signs: propagated through the network, they find neurons of uncertain sign."""

SPREAD = 4.0
"""The largest error of a neuron, in units of the root mean square over the probes."""

SEED = 20243

JACOBIAN_WORK = 1e11
"""The most multiplications for the gradients of all logits; beyond, the errors of logits are read off the probes."""

COARSE_MARGIN = 0.1
"""Rounding is too coarse for a question if it can move a logit by more than this share of the label's margin, …"""

COARSE_SCALE = 1e-3
"""… or by more than this share of the largest logit."""

COARSE_END = 0.1
"""The share of the largest logit at an end of the domain, where the margin does not matter. Estimates there reach 1e-3
on ordinary networks of sixteen layers."""


@dataclass(frozen=True)
class FloatType:
    """A float type: its name, the largest relative error of one rounding, its smallest and its largest number."""

    name: str
    unit: float
    least: float
    largest: float


BFLOAT16 = FloatType("bfloat16", 2.0**-8, 2.0**-133, 3.4e38)
FLOAT16 = FloatType("float16", 2.0**-11, 2.0**-24, 65504.0)
FLOAT32 = FloatType("float32", 2.0**-24, 2.0**-149, 3.4e38)
FLOAT64 = FloatType("float64", 2.0**-53, 2.0**-1074, 1.7e308)

KINDS: dict[int, FloatType] = {
    DataType.BFLOAT16: BFLOAT16,
    DataType.FLOAT16: FLOAT16,
    DataType.FLOAT: FLOAT32,
    DataType.DOUBLE: FLOAT64,
}


class Replay:
    """A single-threaded onnxruntime session that gives logits, even if the file ends in a softmax or a sigmoid.

    A single output z is the logit of class 1, and class 0 has the logit 0.
    """

    def __init__(self, file: OnnxFile, layout: Layout, preprocessing: Preprocessing) -> None:
        self._name = file.path.name
        self._layout = layout
        self.preprocessing = preprocessing
        self._input, dims = input_dims(file)
        self._output = file.output
        self._remedy = "again" if float_types(file.proto) <= {DataType.FLOAT} else "in float32"
        self._session = _session(_ending_in_logits(file), self._name, self._remedy)
        kinds = [KINDS[kind] for kind in float_types(file.proto)]  # the coarsest one counts
        self.float_type = max(kinds, key=lambda kind: kind.unit, default=FLOAT32)
        self._dtype = _numpy_type(file, self._input)
        self._takes_batches = dims[0] is None and self._is_batched()

    @property
    def unit_roundoff(self) -> float:
        """The largest relative error of one rounding, at least that of float32: no tolerance need be finer."""
        return max(self.float_type.unit, FLOAT32.unit)

    def logits(self, images: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logits (B, K) of images (B, C, H, W) with pixels in [0,1], the same as for each image alone."""
        batch = self._model_input(np.asarray(images, dtype=np.float64))
        step = CHUNK if self._takes_batches else 1
        rows = [
            self._run(batch[i : i + step]).reshape(len(batch[i : i + step]), -1) for i in range(0, len(batch), step)
        ]
        if not rows:
            return np.zeros((0, max(2, self._run(self._model_input(np.zeros((1, *self._layout.image_shape)))).size)))
        logits = np.concatenate(rows).astype(np.float64)
        return np.hstack([np.zeros_like(logits), logits]) if logits.shape[1] == 1 else logits

    def _model_input(self, images: NDArray[np.float64]) -> NDArray:
        """(x·scale − mean)/std in float64, rounded once to the file's type, in the file's order and shape."""
        if images.shape[1:] != self._layout.image_shape:
            raise ValueError(f"images of shape {images.shape}, expected (B, *{self._layout.image_shape})")
        prepared = images * self.preprocessing.scale
        for channel, (mean, std) in enumerate(zip(self.preprocessing.mean, self.preprocessing.std, strict=True)):
            prepared[:, channel] = (prepared[:, channel] - mean) / std
        if self._layout.order is Order.CHANNELS_LAST:
            prepared = np.moveaxis(prepared, 1, -1)
        shaped = prepared.reshape(len(images), *self._layout.model_shape[1:])
        return np.ascontiguousarray(shaped, dtype=self._dtype)

    def _run(self, batch: NDArray) -> NDArray:
        try:
            return np.asarray(self._session.run([self._output], {self._input: batch})[0])
        except Exception as error:
            raise ModelError(
                f"{self._name}: onnxruntime cannot run it ({one_line(error)}); export the model {self._remedy}"
            ) from None

    def _is_batched(self) -> bool:
        """Whether two images in one batch give the same logits as alone: a file with an open batch may assume one."""
        shape = (2, *self._layout.image_shape)
        batch = self._model_input(np.random.default_rng(0).random(shape))
        alone = [self._run(batch[i : i + 1]) for i in range(2)]
        try:
            together = self._run(batch)
        except ModelError:
            return False
        if together.size != 2 * alone[0].size or together.shape[:1] != (2,):
            return False
        return np.allclose(together.reshape(2, -1), np.stack([row.ravel() for row in alone]), rtol=1e-3, atol=1e-5)


def _ending_in_logits(file: OnnxFile) -> "ModelProto":
    """The model, or a copy in which an Identity replaces the final activation."""
    activation = final_activation(file)
    if activation is None:
        return file.proto
    position = next(i for i, node in enumerate(file.proto.graph.node) if activation.output[0] in node.output)
    changed = onnx.ModelProto()
    changed.CopyFrom(file.proto)
    # The Identity keeps the names of input and output, so the nodes around it still fit.
    changed.graph.node[position].CopyFrom(
        onnx.helper.make_node("Identity", [activation.input[0]], [activation.output[0]], name=activation.name)
    )
    return changed


def _session(proto: "ModelProto", name: str, remedy: str) -> "InferenceSession":
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = SILENT
    # Run node by node as in the file: an optimised graph could hide a difference.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelError(f"{name}: onnxruntime cannot load it ({one_line(error)}); export the model {remedy}") from None


def _numpy_type(file: OnnxFile, name: str) -> np.dtype:
    kind = next(value.type.tensor_type.elem_type for value in file.proto.graph.input if value.name == name)
    if kind == DataType.BFLOAT16:
        raise ModelError(f"{file.path.name}: onnxruntime cannot feed a bfloat16 input; export the model in float32")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))


@dataclass(frozen=True, eq=False)
class FileRounding:
    """Estimated errors of the inputs of all layers (n,), and of the logits (K,); infinite beyond the type's range."""

    neurons: list[Array]
    logits: Array

    @property
    def effect(self) -> float:
        """How far any logit can move."""
        return float(self.logits.max(initial=0.0))


@np.errstate(over="ignore", invalid="ignore")
def estimate_rounding(graph: Graph, pixels: Array, kind: FloatType) -> FileRounding:
    """Estimate the errors of all values for an image (C·H·W,) if they are computed in a float type.

    A sum of n products is off by about √n·unit·Σ|products| (n·unit in the worst case). This error reaches the logits
    through the layers above, whose ReLUs are fixed by the image: |J|·error, added up over all layers. Probes, which are
    errors with random signs, find the neurons of uncertain sign; these pass on their whole error. In the first layer
    pixels count as 1, which covers the mean that preprocessing subtracts. If the network is too large for |J|, the
    errors of the logits are read off the probes as well.
    """
    generator = np.random.default_rng(SEED)
    sizes, values, probes = np.ones(len(pixels)), pixels[None], np.zeros((PROBES, len(pixels)))
    errors, doubts, actives, neurons = [], [], [], []
    for segment, layer in zip(graph.steps, (*graph.layers, Layer.relus(graph.classes)), strict=True):
        share, lost = kind.unit * sum(np.sqrt(step.terms) + 1.0 for step in segment), np.zeros_like(sizes)
        for step in segment:
            sizes, lost = step.forward_abs(np.stack([sizes, lost]))
            sizes = sizes + step.bias_size
            # A product below the smallest number of the type becomes 0.
            lost += np.where(sizes > 0.0, step.terms * kind.least, 0.0)
            probes = step.forward(probes)
        error = np.where(sizes <= kind.largest, share * sizes + lost, np.inf)
        values = upwards(segment, values)
        probes = probes + error * (2.0 * generator.integers(0, 2, size=probes.shape) - 1.0)
        spread = error + SPREAD * np.sqrt((probes * probes).mean(axis=0))
        spread[~np.isfinite(spread)] = np.inf
        active, bent = layer.bits(values)[0], pattern_errors(layer, values, spread[None])[0]
        errors.append(error)
        doubts.append(np.where(bent > 0.0, bent, np.where(active, error, 0.0)))
        actives.append(active)
        neurons.append(spread)
        slopes = _drawn_bits(layer, active, doubtful_bits(layer, values, spread[None])[0], len(probes), generator)
        values, probes = layer.apply(values), np.where(slopes, probes, 0.0)
        sizes = np.abs(values[0])
    total = errors[-1].copy()
    if len(total) * sum(step.work for segment in graph.steps for step in segment) > JACOBIAN_WORK:
        return FileRounding(neurons[:-1], neurons[-1])
    jacobian = np.eye(len(total))
    for segment, active, doubt in zip(graph.steps[:0:-1], actives[-2::-1], doubts[-2::-1], strict=True):
        jacobian = downwards(segment, jacobian)
        total += np.abs(jacobian) @ doubt
        jacobian = jacobian * active
    total[~np.isfinite(total)] = np.inf
    return FileRounding(neurons[:-1], total)


def _drawn_bits(
    layer: Layer, active: Array, is_doubtful: Array, count: int, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Patterns (count, n) with random bits where they are in doubt: the errors of two neurons must not cancel."""
    drawn = np.where(is_doubtful, generator.integers(0, 2, size=(count, len(active))), active) > 0
    if len(layer.entries):
        lots = np.where(is_doubtful, 1.0 + generator.random((count, len(active))), active)
        drawn[:, layer.entries] = layer.bits(lots)[:, layer.entries]
    return drawn


def explain_difference(graph: Graph, pixels: Array, kind: FloatType, difference: float) -> str | None:
    """Why the file's arithmetic alone can move the logits of an image (C·H·W,) by this difference; None if it cannot.

    Only values beyond the range of the type explain a difference that is not finite.
    """
    limitless = estimate_rounding(graph, pixels, replace(kind, largest=np.inf)).effect
    if not limitless >= difference and estimate_rounding(graph, pixels, kind).effect == np.inf:
        return f"values exceed the range of {kind.name} (largest number {kind.largest:.2g})"
    if not limitless >= difference:
        return None
    if not estimate_rounding(graph, pixels, replace(kind, largest=np.inf, least=0.0)).effect >= difference:
        return f"values vanish in {kind.name} (smallest number {kind.least:.2g})"
    return f"rounding in {kind.name} can move these logits by {_up_to(limitless)}"


@dataclass(frozen=True)
class Coarseness:
    """How far rounding in a float type can move a logit of one image, its largest logit, and the label's margin."""

    rounding: float
    scale: float
    margin: float

    @classmethod
    def of(cls, graph: Graph, image: Array, kind: FloatType) -> "Coarseness":
        """Estimate it for an image."""
        logits = graph.logits(image[None])[0]
        margin = float(np.diff(np.sort(logits)[-2:])[0]) if len(logits) > 1 else np.inf
        effect = estimate_rounding(graph, image.ravel(), kind).effect
        return cls(effect, float(np.abs(logits).max(initial=0.0)), margin)

    @property
    def hides_label(self) -> bool:
        """Whether rounding is too large for the margin, or one of the two is NaN."""
        return not self.rounding <= COARSE_MARGIN * self.margin

    def hides_logits(self, share: float) -> bool:
        """Whether rounding can move a logit by more than a share of the largest one."""
        return not self.rounding <= share * self.scale


def coarse_notes(graph: Graph, image: Array, farthest: Sequence[Array], kind: FloatType) -> list[str]:
    """Sentences for the user if the arithmetic of the model file is too coarse for the question; otherwise none.

    image (C, H, W) is the unperturbed image; `farthest` are images at ends of the domain.
    """
    here = Coarseness.of(graph, image, kind)
    proof = "The proof holds for the network in real numbers; onnxruntime may"
    moves = f"In {kind.name}, rounding alone can move the logits of this image by {_up_to(here.rounding)}"
    coarse = "the model file's own arithmetic is too coarse for this question"
    if here.hides_label:
        return [f"{moves}, while the label wins by {here.margin:.2g}: {coarse}. {proof} predict another class."]
    if here.hides_logits(COARSE_SCALE):
        return [
            f"{moves}, while the largest logit is {here.scale:.2g}: {coarse}. {proof} give clearly different logits."
        ]
    ends = [Coarseness.of(graph, one, kind) for one in farthest]
    coarse_ends = [end for end in ends if end.hides_logits(COARSE_END)]
    if not coarse_ends:
        return []
    worst = max(coarse_ends, key=lambda end: end.rounding)
    return [
        f"In {kind.name}, rounding alone can move the logits by {_up_to(worst.rounding)} at an end of the domain, "
        f"while the largest logit there is {worst.scale:.2g}: {coarse} in part of the domain. {proof} predict another "
        "class there."
    ]


def _up_to(rounding: float) -> str:
    return f"up to {rounding:.2g}" if np.isfinite(rounding) else "any amount, because values leave its range"
