"""Turns a torch module into a `Model`: exported to ONNX in memory, read as a file is, and compared with autograd.

The exporter keeps every weight as it is: batch normalisation is folded by the reader, in float64.
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
from .autograd import TorchRun, compare_with_autograd
from .layout import USUAL, ReadOptions
from .model import Model, model_from_bytes, sample_images
from .onnx_file import final_activation, one_line, parse_onnx
from .operators import Array
from .torch_objects import TorchModule

OPSET = 17
DROPPED = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}  # operators by torch's names
GREY = 0.5  # pixels of the image that stands for unknown ones


def read_module(
    module: TorchModule,
    image: Array | None = None,
    *,
    image_shape: Sequence[int] | None = None,
    options: ReadOptions = USUAL,
) -> Model:
    """The model of a module in eval mode, for images like `image` (C, H, W), or of `image_shape`; raises ModelError.

    The module gets (pixel·scale − mean)/std. Nothing is returned unless logits and input gradients agree with torch.
    """
    network: Any = getattr(module, "_orig_mod", module)  # what torch.compile wraps
    name = f"module {type(network).__name__}"
    check_mode(network, name)
    if image is None:
        if image_shape is None or len(image_shape) != 3:
            raise ModelError(f"{name}: give image_shape=(channels, height, width): a module does not say its own")
        image = np.full(tuple(image_shape), GREY)
    run = TorchRun(network, options.preprocessing(image.shape[0]), name)
    content, notes = export_module(network, run, image)
    last = final_activation(parse_onnx(content, Path(name), options.output))
    run.dropped = None if last is None else DROPPED[last.op_type]
    model = model_from_bytes(content, name, image.shape, options)
    compare_with_autograd(model, run, sample_images(image))
    return replace(model, notes=(*model.notes, *notes))


def check_mode(module: Any, name: str) -> None:
    """Raise ModelError if the module, or a part of it that heeds the mode, is in training mode."""
    if module.training:
        raise ModelError(f"{name}: is in training mode; call module.eval() first, and give it again")
    for path, part in module.named_modules():
        if part.training and _heeds_mode(part):
            raise ModelError(
                f"{name}: its part '{path}' ({type(part).__name__}) is in training mode; call module.eval() first, and "
                "give it again"
            )


def _heeds_mode(part: Any) -> bool:
    """Whether a part may compute something else in training mode; of torch's own layers only some do."""
    layers = torch.nn.modules
    heeding = (
        layers.batchnorm._NormBase, layers.dropout._DropoutNd, layers.rnn.RNNBase, torch.nn.RReLU,
        torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer, torch.nn.FractionalMaxPool2d,
    )  # fmt: skip
    return not type(part).__module__.startswith("torch.nn.modules.") or isinstance(part, heeding)


def export_module(module: Any, run: TorchRun, image: Array) -> tuple[bytes, list[str]]:
    """The bytes of an ONNX model for one image at a time, and notes for the user; raises ModelError."""
    run.logits(image[None])  # a module that cannot take the image says so without the exporter
    buffer = io.BytesIO()
    try:
        with warnings.catch_warnings(record=True) as caught, _without_log():
            warnings.simplefilter("always")
            # The exporter by tracing needs no package beside torch; the one by torch.export needs onnxscript. PRESERVE
            # keeps batch normalisation apart: EVAL would fold it into the weights in float32. Folding is for weights
            # that a module computes from others, such as a weight normalisation.
            torch.onnx.export(
                module, (run.tensor(image[None]),), buffer, dynamo=False, opset_version=OPSET, input_names=["image"],
                output_names=["logits"], training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=True,
            )  # fmt: skip
    except Exception as error:
        raise ModelError(
            f"{run.name}: torch cannot export it to ONNX ({one_line(error)}); replace that operator, or export the "
            "module to an .onnx file and give the file"
        ) from None
    traced = [one_line(warning.message) for warning in caught if warning.category.__name__ == "TracerWarning"]
    notes = [f"the proof is about the module as traced on one image; torch's tracer warns: {text}" for text in traced]
    return buffer.getvalue(), notes[:1]


@contextmanager
def _without_log() -> Iterator[None]:
    """A block in which torch does not print the whole graph when it meets an operator that it cannot export."""
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
