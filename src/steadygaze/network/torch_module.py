"""Turns a torch module into a `Model`: exports it to ONNX in memory, reads that like a file, compares it with autograd.

The exporter leaves every weight unchanged: the reader folds batch normalisation, in float64.
"""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError
from ..lazily import torch
from .autograd import FEW_THETAS, MANY_THETAS, DomainComparison, TorchRun, compare_with_autograd
from .layout import DEFAULT_OPTIONS, ReadOptions
from .model import Model, model_from_bytes, sample_images
from .onnx_file import final_activation, one_line, parse_onnx
from .operators import Array
from .torch_objects import TorchModule

OPSET = 17
DROPPED = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}  # operators by torch's names
GREY = 0.5  # the pixels of the image on which a module is traced if only the shape is given


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
