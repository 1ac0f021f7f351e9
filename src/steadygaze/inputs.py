"""What a caller gives as model and image → a `Model`, and pixels (C, H, W) in [0,1] with their name."""

from pathlib import Path

import numpy as np

from . import zoo
from .errors import ImageError, ModelError, OptionError
from .images import image_from_array, read_image
from .network.layout import ReadOptions
from .network.model import Model, model_from_file
from .network.torch_module import read_module
from .network.torch_objects import TorchModule, TorchTensor, is_module, is_tensor, not_a_model, tensor_image

ModelLike = str | Path | Model | TorchModule
ImageLike = str | Path | np.ndarray | TorchTensor


def given_model(model: ModelLike, pixels: np.ndarray, options: ReadOptions) -> Model:
    """The model of a file, a bundled name, a torch module or a `Model`, for an image (C, H, W); raises ModelError."""
    if isinstance(model, Model):
        if not options.is_usual:
            raise OptionError("mean, std, scale and output apply to model files only; give them to read_model")
        return model
    if is_module(model):
        return read_module(model, pixels, options=options)
    if not isinstance(model, str | Path):
        raise ModelError(not_a_model(model))
    path = Path(model) if _is_file_name(str(model)) else zoo.model_path(str(model))
    return _read_fitting(path, pixels.shape, options)


def given_image(image: ImageLike) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Pixels, name and notes of an image: a file, a bundled name, an array or a torch tensor; raises ImageError."""
    if isinstance(image, str | Path):
        name = str(image)
        file = read_image(zoo.image_path(name) if zoo.is_reference(name) else name)
        return file.pixels, name if zoo.is_reference(name) else Path(name).name, file.notes
    values = tensor_image(image) if is_tensor(image) else np.asarray(image)
    if values.dtype == object:
        raise ImageError(
            f"image: is a {type(image).__name__}; give a PNG, JPEG or NPY file, a bundled image such as mnist:69990, "
            "or an array or torch tensor (C, H, W)"
        )
    file = image_from_array(values, "image")
    return file.pixels, "image", file.notes


def _read_fitting(path: Path, image_shape: tuple[int, ...], options: ReadOptions) -> Model:
    """Read a model for images of a shape; if the shape does not fit, `fit_image` raises a better error later."""
    try:
        return model_from_file(path, image_shape, options)
    except (ModelError, OptionError) as error:
        try:
            return model_from_file(path, None, options)
        except (ModelError, OptionError):
            raise error from None


def _is_file_name(text: str) -> bool:
    return text.endswith(".onnx") or "/" in text or Path(text).exists()
