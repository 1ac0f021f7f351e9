"""Turns the model and image arguments of a caller into a `Model`, and pixels (C, H, W) in [0,1] with a name."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import zoo
from .errors import ImageError, LayoutError, ModelError, OptionError, PerturbationError
from .image_fit import UNFITTED, ImageFit
from .images import image_from_array, read_image
from .network.layout import ReadOptions
from .network.model import Model, model_from_file
from .network.torch_module import read_module
from .network.torch_objects import TorchModule, TorchTensor, is_module, is_tensor, not_a_model, tensor_image
from .perturbation import Perturbation, parse_specs

ModelLike = str | Path | Model | TorchModule
ImageLike = str | Path | np.ndarray | TorchTensor
PerturbationsLike = Sequence[Perturbation | str] | Perturbation | str


def given_model(model: ModelLike, pixels: np.ndarray, options: ReadOptions, fitting: ImageFit = UNFITTED) -> Model:
    """The model of a file, a bundled name, a torch module or a `Model`, for an image (C, H, W); raises ModelError.

    fitting: how to prepare the image once the size of the model's input is known.
    """
    if isinstance(model, Model):
        if not options.is_default:
            raise OptionError("mean, std, scale and output apply to model files only; give them to read_model")
        return model
    if is_module(model):
        try:
            return read_module(model, pixels, options=options)
        except LayoutError as error:
            if not fitting.needs_size:
                raise
            raise ModelError(
                f"{str(error).partition(';')[0]}. A torch module does not state the size of its input: give it in "
                f"pixels, such as fit='{fitting.how}:28x28'"
            ) from None
    if not isinstance(model, str | Path):
        raise ModelError(not_a_model(model))
    path = Path(model) if _is_file_name(str(model)) else zoo.model_path(str(model))
    return read_fitting(path, pixels.shape, options)


def given_image(image: ImageLike) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Pixels, name and notes of an image: a file, a bundled name, an array or a torch tensor; raises ImageError."""
    if isinstance(image, str | Path):
        name = str(image)
        if os.path.isdir(name):  # noqa: PTH112 (also works for texts that cannot be names of files)
            raise ImageError(
                f"{name}: is a folder; give one image, or all of them in a plan for steadygaze campaign run "
                "(docs/campaign.md)"
            )
        file = read_image(zoo.image_path(name) if zoo.is_reference(name) else name)
        return file.pixels, name if zoo.is_reference(name) else Path(name).name, file.notes
    values = tensor_image(image) if is_tensor(image) else _array(image)
    if values is None or values.dtype.kind in "OSU":
        raise ImageError(not_an_image(image))
    file = image_from_array(values, "image")
    return file.pixels, "image", file.notes


def given_perturbations(given: PerturbationsLike) -> list[Perturbation]:
    """The perturbations given as objects and specs; raises PerturbationError for anything else."""
    items: list[Any] = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    for item in items:
        if not isinstance(item, Perturbation | str):
            raise PerturbationError(
                f"perturbation: received {type(item).__name__}; expected a spec such as 'brightness:0..0.3', an object "
                "such as Brightness(range=(0, 0.3)), or a list of them"
            )
    return parse_specs(items)


def read_fitting(path: Path, image_shape: tuple[int, ...], options: ReadOptions) -> Model:
    """Read a model for images of a shape; if the shape does not fit, `fit_image` raises a better error later.

    If the model cannot be read for any shape, the error is about the model itself.
    """
    try:
        return model_from_file(path, image_shape, options, fills_open=False)
    except (ModelError, OptionError) as error:
        try:
            return model_from_file(path, None, options)
        except LayoutError:
            raise error from None


def _array(image: object) -> np.ndarray | None:
    """The numbers of an object; None if numpy cannot read it."""
    try:
        return np.asarray(image)
    except Exception:  # objects of other libraries may raise anything
        return None


def not_an_image(thing: object) -> str:
    """One line about an object that is not an image: the received type, the expected ones, and a remedy.

    >>> not_an_image({"pixels": 1})[:26]
    'image: received dict; expe'
    """
    kind = type(thing)
    whole = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    advice = "Convert it with numpy.asarray"
    if isinstance(thing, Model) or is_module(thing):
        advice = "The model comes first, then the image"
    elif isinstance(thing, list | tuple):
        advice = "All its rows must have the same length, and contain only numbers"
    return (
        f"image: received {whole}; expected a PNG, JPEG or NPY file, a bundled image such as mnist:69990, or an array "
        f"or torch tensor (C, H, W) of uint8 in 0..255 or float in 0..1. {advice}"
    )


def _is_file_name(text: str) -> bool:
    # os.path.exists also works for texts that cannot be names of files.
    return text.endswith(".onnx") or "/" in text or os.path.exists(text)  # noqa: PTH110
