"""Turns a torch module into a `Model`: exports it to ONNX in memory, reads that like a file, compares it with autograd.

The exporter leaves every weight unchanged: the reader folds batch normalisation, in float64. Logits are compared in the
module's own float type. Gradients are compared with autograd on a copy of the module in float64, or on the module
itself if it does not run in float64. Gradients may differ on an image where a neuron is so close to its kink, or two
entries of a window so close to a tie, that rounding decides: such an image is skipped.
"""

import copy
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import LayoutError, ModelError
from ..lazily import torch
from .graph import Graph, gradients, patterns, preactivations
from .layers import RELU, Layer
from .layout import DEFAULT_OPTIONS, Preprocessing, ReadOptions
from .model import LEAST_SHARE, MOST_SHARE, Model, model_from_bytes, sample_images, which_image
from .onnx_file import final_activation, one_line, parse_onnx
from .operators import Array
from .replay import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FloatType, estimate_rounding
from .torch_objects import TorchModule

OPSET = 17
DROPPED = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}  # operators by torch's names
GREY = 0.5  # the pixels of the image on which a module is traced if only the shape is given

FIRST = (0, 1, 2, -1, -2)
"""The images whose gradients are compared first: the given one, two near it, two of plain noise."""

MOST_CORNERS = 16
"""With more corners than this, logits are compared at two corners of the domain: the lowest and the highest."""

FEW_THETAS, MANY_THETAS = 16, 256
"""At so many random thetas of the domain logits are compared, and at so many if torch's tracer warned."""

MOST_ROWS = 10
"""With more classes than this, gradients of this many random sums of all logits are compared."""

SEED = 20247

LEAST_GRADIENT, MOST_GRADIENT = 1e-6, 1e-2
"""Bounds of the tolerance of a gradient, as shares of the largest entry of the image's gradients."""


class TorchRun:
    """A module with its preprocessing: arrays of images (B, C, H, W) with pixels in [0,1] → logits and gradients.

    `dropped` names a torch function, such as softmax, that is replaced by the identity: the reader drops a final
    softmax, and refuses one anywhere else.
    """

    def __init__(self, module: Any, preprocessing: Preprocessing, name: str, dropped: str | None = None) -> None:
        self.module, self.preprocessing, self.name, self.dropped = module, preprocessing, name, dropped
        floats = (value for value in (*module.parameters(), *module.buffers()) if value.is_floating_point())
        first = next(floats, torch.zeros(()))
        self.dtype, self.device = first.dtype, first.device

    @property
    def float_type(self) -> FloatType:
        """The float type of the module's weights."""
        kinds = {torch.float64: FLOAT64, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}
        return kinds.get(self.dtype, FLOAT32)

    def tensor(self, images: Array) -> Any:
        """The input of the module: (x·scale − mean)/std in float64, rounded once."""
        mean, std = (np.reshape(each, (-1, 1, 1)) for each in (self.preprocessing.mean, self.preprocessing.std))
        prepared = np.ascontiguousarray((images * self.preprocessing.scale - mean) / std)
        return torch.from_numpy(prepared).to(device=self.device, dtype=self.dtype)

    def logits(self, images: Array) -> Array:
        """Logits (B, K), each image alone; raises ModelError."""
        with torch.no_grad():
            return np.concatenate([self._outputs(self.tensor(image[None])).double().cpu().numpy() for image in images])

    def gradients(self, image: Array, targets: Array) -> Array:
        """Gradients (K', C, H, W) of targets (K', K) times the logits with respect to the pixels."""
        with torch.inference_mode(False), torch.enable_grad():
            given = self.tensor(image[None]).requires_grad_()
            logits = self._outputs(given)[0]
            rows = np.zeros((len(targets), *image.shape))
            for row, target in zip(rows, targets, strict=True):
                total = logits @ torch.from_numpy(target).to(logits)
                if total.requires_grad:
                    (found,) = torch.autograd.grad(total, given, retain_graph=True, allow_unused=True)
                    row[...] = 0.0 if found is None else found[0].double().cpu().numpy()
        return rows * self.preprocessing.scale / np.reshape(self.preprocessing.std, (-1, 1, 1))

    def frozen(self) -> "TorchRun":
        """The same run with a copy of the module, which later changes leave as it is; itself if torch cannot copy."""
        try:
            with warnings.catch_warnings(), torch.inference_mode(False):
                warnings.simplefilter("ignore")  # torch warns when it copies a scripted module
                module = copy.deepcopy(self.module)
        except Exception:  # whatever a user's module raises
            return self
        return TorchRun(module, self.preprocessing, self.name, self.dropped)

    def in_float64(self, image: Array) -> "TorchRun | None":
        """The same run with a float64 copy of the module; None if the copy fails on the image or leaves float64."""
        try:
            with warnings.catch_warnings(), torch.inference_mode(False):
                warnings.simplefilter("ignore")  # torch warns when it copies a scripted module
                module = copy.deepcopy(self.module).double()
            lifted = TorchRun(module, self.preprocessing, self.name, self.dropped)
            lifted.dtype = torch.float64
            found = lifted._outputs(lifted.tensor(image[None]))
        except Exception:  # whatever a user's module raises: the module itself is compared instead
            return None
        return lifted if found.dtype == torch.float64 else None

    def _outputs(self, given: Any) -> Any:
        """Logits (1, K) of an input; raises ModelError."""
        try:
            with _without(self.dropped):
                found = self.module(given)
        except Exception as error:
            raise LayoutError(
                f"{self.name}: fails on an image of shape {tuple(given.shape)} ({one_line(error)}); give an image of "
                "the shape that it expects, to a module that takes images alone, and start a module of dense layers "
                "with nn.Flatten()"
            ) from None
        if not isinstance(found, torch.Tensor):
            raise ModelError(
                f"{self.name}: returns a {type(found).__name__}; wrap it in a module that returns the logits alone"
            )
        logits = found.reshape(1, -1)
        # A single logit means class 1 where it is above zero, as in `from_onnx`.
        return torch.cat([torch.zeros_like(logits), logits], dim=1) if logits.shape[1] == 1 else logits


def _without(name: str | None) -> Any:
    """A context in which the torch function of this name returns its input."""

    class Without(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if name is not None and getattr(function, "__name__", "") == name:
                return args[0] if args else kwargs["input"]
            return function(*args, **(kwargs or {}))

    return Without()


def read_module(
    module: TorchModule,
    image: Array | None = None,
    *,
    image_shape: Sequence[int] | None = None,
    options: ReadOptions = DEFAULT_OPTIONS,
) -> Model:
    """The model of a module in eval mode, for images of the shape of `image` (C, H, W), or of `image_shape`.

    The module reads (pixel·scale − mean)/std. Raises ModelError unless logits and input gradients agree with torch; a
    question compares the logits on images of its domain too.
    """
    network: Any = getattr(module, "_orig_mod", module)  # what torch.compile wraps
    name = f"module {type(network).__name__}"
    check_mode(network, name)
    if image is None:
        if image_shape is None or len(image_shape) != 3:
            raise ModelError(
                f"{name}: a module does not state the shape of its images; give image_shape=(channels, height, width)"
            )
        image = np.full(tuple(image_shape), GREY)
    run = TorchRun(network, options.preprocessing(image.shape[0]), name)
    content, notes = export_module(network, run, image)
    last = final_activation(parse_onnx(content, Path(name), options.output))
    run.dropped = None if last is None else DROPPED[last.op_type]
    model = model_from_bytes(content, name, image.shape, options)
    compare_with_autograd(model, run, sample_images(image))
    compare = DomainComparison(model.graph, run.frozen(), MANY_THETAS if notes else FEW_THETAS)
    return replace(model, notes=(*model.notes, *notes), compare_module=compare)


def check_mode(module: Any, name: str) -> None:
    """Raise ModelError if the module, or a part that depends on the mode, is in training mode."""
    if module.training:
        raise ModelError(f"{name}: is in training mode; call module.eval() first")
    for path, part in module.named_modules():
        if part.training and _depends_on_mode(part):
            raise ModelError(
                f"{name}: its part '{path}' ({type(part).__name__}) is in training mode; call module.eval() first"
            )


def _depends_on_mode(part: Any) -> bool:
    """Whether a part may compute something else in training mode; few of torch's own layers do."""
    layers = torch.nn.modules
    dependent = (
        layers.batchnorm._NormBase, layers.dropout._DropoutNd, layers.rnn.RNNBase, torch.nn.RReLU,
        torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer, torch.nn.FractionalMaxPool2d,
    )  # fmt: skip
    return not type(part).__module__.startswith("torch.nn.modules.") or isinstance(part, dependent)


def export_module(module: Any, run: TorchRun, image: Array) -> tuple[bytes, list[str]]:
    """The bytes of an ONNX model for one image at a time, and notes for the user; raises ModelError."""
    run.logits(image[None])  # raises a clearer error than the exporter if the module cannot take the image
    buffer = io.BytesIO()
    try:
        with warnings.catch_warnings(record=True) as caught, _without_log():
            warnings.simplefilter("always")
            # Exporting by tracing needs no package beside torch; torch.export needs onnxscript. PRESERVE keeps batch
            # normalisation separate: EVAL would fold it into the weights in float32. Constant folding is for weights
            # that a module computes from others, as weight normalisation does.
            torch.onnx.export(
                module, (run.tensor(image[None]),), buffer, dynamo=False, opset_version=OPSET, input_names=["image"],
                output_names=["logits"], training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=True,
            )  # fmt: skip
    except Exception as error:
        raise ModelError(
            f"{run.name}: torch cannot export it to ONNX ({one_line(error)}); replace that operator, or export the "
            "module to an .onnx file yourself and give the file"
        ) from None
    traced = [one_line(warning.message) for warning in caught if warning.category.__name__ == "TracerWarning"]
    notes = [f"the proof is about the module as traced on one image; torch's tracer warns: {text}" for text in traced]
    return buffer.getvalue(), notes[:1]


@contextmanager
def _without_log() -> Iterator[None]:
    """A context in which torch does not print the whole graph when it meets an operator that it cannot export."""
    core = torch._C
    log = getattr(core, "_jit_onnx_log", None)
    if log is None:
        yield
        return
    core._jit_onnx_log = lambda *_: None
    try:
        yield
    finally:
        core._jit_onnx_log = log


def compare_with_autograd(model: Model, run: TorchRun, images: Array) -> None:
    """Raise ModelError unless logits and input gradients of the model agree with torch on images (B, C, H, W)."""
    _compare_logits(model.graph, run, images, [which_image(number) for number in range(len(images))])
    graph, name = model.graph, run.name
    targets = np.eye(graph.classes)
    if graph.classes > MOST_ROWS:
        targets = np.random.default_rng(SEED).normal(size=(MOST_ROWS, graph.classes)) / np.sqrt(graph.classes)
    order = [number % len(images) for number in FIRST]
    kind = max(FLOAT32, run.float_type, key=lambda one: one.unit)
    chosen = run.in_float64(images[0]) or run
    compared = 0
    for number in [*order, *(number for number in range(len(images)) if number not in order)]:
        if number not in order and compared:
            break
        found = _compare_gradients(graph, chosen, images[number], targets)
        if found.is_same:
            compared += 1
        elif np.isnan(found.difference) or not is_near_kink(graph, images[number].ravel(), kind):
            raise ModelError(
                f"{name}: the input gradients of torch's autograd and of the exported network differ by "
                f"{found.difference:.3g} on {which_image(number)} (entries up to {found.scale:.3g}, tolerance "
                f"{found.tolerance:.2g}), where no neuron is near its kink; nothing is verified. Use layers whose "
                "backward pass is the derivative of their forward pass, and report the module if it has no others"
            )
    if not compared:
        raise ModelError(
            f"{name}: its input gradients cannot be compared with torch's autograd: on each of {len(images)} images a "
            "neuron is within rounding of its kink, and the gradients differ; nothing is verified. Make "
            "module.double() run (register constant tensors as buffers): gradients are then compared in float64"
        )


@dataclass(frozen=True)
class DomainComparison:
    """Compares the logits of an exported module with the module itself on images of a domain.

    A module with a Python branch that depends on pixels may compute the same on the images that `read_module` compares,
    and something else on images of the domain: the export holds one branch alone.
    """

    graph: Graph
    run: TorchRun
    thetas: int

    def __call__(self, low: Array, high: Array, image: Callable[[Array], Array]) -> None:
        """Raise ModelError unless they agree at ends of the domain from low to high (d,), and at thetas inside.

        image: theta (d,) → image (C, H, W).
        """
        corners = list(product(*zip(low, high, strict=True))) if 2 ** len(low) <= MOST_CORNERS else [low, high]
        inside = np.random.default_rng(SEED).uniform(low, high, size=(self.thetas, len(low)))
        images = np.array([image(np.array(theta)) for theta in (*corners, *inside)])
        names = ["an image at an end of the domain"] * len(corners) + ["an image of the domain"] * len(inside)
        _compare_logits(self.graph, self.run, images, names)


def _compare_logits(graph: Graph, run: TorchRun, images: Array, names: Sequence[str]) -> None:
    ours, theirs = graph.logits(images), run.logits(images)
    if ours.shape != theirs.shape:
        raise ModelError(f"{run.name}: gives {theirs.shape[1]} logits in torch, but {ours.shape[1]} as exported")
    differences = np.abs(ours - theirs).max(axis=1)
    scales = np.maximum(np.abs(ours), np.abs(theirs)).max(axis=1)
    tolerances, most = LEAST_SHARE * scales, MOST_SHARE[max(run.float_type.unit, FLOAT32.unit)]
    for number in np.flatnonzero(~(differences <= tolerances)):
        effect = estimate_rounding(graph, images[number].ravel(), run.float_type).effect
        tolerances[number] = min(max(effect, tolerances[number]), most * scales.max())
        if not differences[number] <= tolerances[number]:
            raise ModelError(
                f"{run.name}: torch and the exported network disagree by {differences[number]:.3g} on "
                f"{names[int(number)]} (logits up to {scales[number]:.3g}, tolerance {tolerances[number]:.2g}); "
                "nothing is verified. A module must run the same operations on every image, without Python branches "
                "that depend on values; if yours does, report it"
            )


@dataclass(frozen=True)
class _Comparison:
    """Gradients of one image: the difference that exceeds its tolerance most, that tolerance, and the largest entry."""

    difference: float
    tolerance: float
    scale: float

    @property
    def is_same(self) -> bool:
        """Whether the difference is within the tolerance; NaN is not."""
        return self.difference <= self.tolerance


def _compare_gradients(graph: Graph, run: TorchRun, image: Array, targets: Array) -> _Comparison:
    inputs = preactivations(graph, image.reshape(1, -1))[:-1]
    bits = [layer[0] for layer in patterns(graph, inputs)]
    *_, ours = gradients(graph, bits, targets)
    theirs = run.gradients(image, targets).reshape(ours.shape)
    differences, scale = np.abs(ours - theirs), float(np.abs(ours).max(initial=0.0))
    rounding = _rounding_share(graph, run.float_type) * _absolute_gradients(graph, bits, targets)
    tolerances = np.clip(rounding, LEAST_GRADIENT * scale, MOST_GRADIENT * scale)
    worst = np.unravel_index(np.argmax(differences - tolerances), differences.shape)
    return _Comparison(float(differences[worst]), float(tolerances[worst]), scale)


def _rounding_share(graph: Graph, kind: FloatType) -> float:
    """The possible error of autograd in a float type, as a share of the sum of |weights| over all paths.

    In float64, only constants that the exporter or the module rounds to float32 differ: at most twice for each step.
    """
    steps = [step for segment in graph.steps for step in segment]
    if kind is FLOAT64:
        return 2.0 * (len(steps) + 1) * FLOAT32.unit
    return kind.unit * float(sum(np.sqrt(step.backward_terms) + np.sqrt(step.terms) + 2.0 for step in steps))


def _absolute_gradients(graph: Graph, bits: list[np.ndarray], targets: Array) -> Array:
    """The sum of |weights| over all active paths from each target (K') to each pixel: (K', pixels)."""
    rows = np.abs(targets)
    for number, segment in reversed(list(enumerate(graph.steps))):
        for step in reversed(segment):
            rows = step.backward_abs(rows)
        rows = rows * bits[number - 1] if number else rows
    return rows


def is_near_kink(graph: Graph, pixels: Array, kind: FloatType) -> bool:
    """Whether rounding in a float type may decide the sign of a neuron, or the winner of a window, on an image."""
    spreads = estimate_rounding(graph, pixels, kind).neurons
    inputs = [values[0] for values in preactivations(graph, pixels[None])[:-1]]
    return any(_has_kink(*layer) for layer in zip(graph.layers, inputs, spreads, strict=True))


def _has_kink(layer: Layer, values: Array, spread: Array) -> bool:
    """Whether a ReLU (n,) is within its spread (n,) of zero, or an entry within both spreads of the winner."""
    if bool((np.abs(values) <= spread)[layer.kind == RELU].any()):
        return True
    is_winner = layer.bits(values[None])[0][layer.entries]
    counts = np.diff(layer.starts, append=len(layer.entries))
    values, spread = values[layer.entries], spread[layer.entries]
    behind = np.repeat(values[is_winner], counts) - values
    return bool((behind <= np.repeat(spread[is_winner], counts) + spread)[~is_winner].any())
