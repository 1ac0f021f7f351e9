"""The layout of a model's input: NCHW, NHWC, rows of pixels without channels, or flat; and the preprocessing of pixels.

`from_onnx` and `replay` apply layout and preprocessing independently, so the agreement check compares them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import isqrt, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import LayoutError, OptionError
from ..words import counted
from .onnx_file import Dimension

CHANNELS = (1, 3, 4)

ImageShape: TypeAlias = tuple[int, int, int]
PerChannel: TypeAlias = float | Sequence[float] | None
"""One number for all channels, one for each, or None."""


class Order(Enum):
    """The order in which the model reads the numbers of an image."""

    CHANNELS_FIRST = "C, H, W"
    CHANNELS_LAST = "H, W, C"


@dataclass(frozen=True)
class Layout:
    """The canonical image shape, the model's own shape with a batch of 1, the order of numbers, notes for the user."""

    image_shape: ImageShape
    model_shape: tuple[int, ...]
    order: Order
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """The model's input is (pixel·scale − mean)/std, with one mean and std per channel."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    scale: float

    @property
    def is_identity(self) -> bool:
        """Whether the model's input is the pixels themselves."""
        return self.scale == 1.0 and not self.mean.any() and bool((self.std == 1.0).all())


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a model: its input is (pixel·scale − mean)/std; `output` names the output with the logits.

    Without `output`, the model must have a single one.

    >>> ReadOptions().preprocessing(1).is_identity, ReadOptions(std=0.5).is_default
    (True, False)
    """

    mean: PerChannel = None
    std: PerChannel = None
    scale: float = 1.0
    output: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether no option is given."""
        return self.mean is None and self.std is None and self.scale == 1.0 and self.output is None

    def preprocessing(self, channels: int) -> Preprocessing:
        """The preprocessing of images with this many channels; raises OptionError."""
        means = _per_channel(self.mean, 0.0, channels, "mean")
        stds = _per_channel(self.std, 1.0, channels, "std")
        factor = float(_per_channel(self.scale, 1.0, 1, "scale")[0])
        if (stds <= 0).any():
            raise OptionError(f"std is {', '.join(f'{s:g}' for s in stds)}; every standard deviation must be positive")
        if factor <= 0:
            raise OptionError(f"scale is {factor:g}; it must be positive (1 for pixels in 0..1, 255 for 0..255)")
        return Preprocessing(means, stds, factor)


DEFAULT_OPTIONS = ReadOptions()


def choose_layout(
    dims: Sequence[Dimension], image_shape: Sequence[int] | None, name: str, *, fills_open: bool = True
) -> Layout:
    """The layout of a model input of these dimensions; `image_shape` decides ambiguous cases.

    With `fills_open` it also sets open dimensions; otherwise only the batch may be open.

    >>> choose_layout([None, 32, 32, 3], None, "m.onnx").image_shape
    (3, 32, 32)
    >>> choose_layout([1, 784, 1], None, "m.onnx").image_shape
    (1, 28, 28)
    """
    wanted = None if image_shape is None else _image_shape(image_shape)
    if len(dims) < 2:
        raise LayoutError(f"{name}: {_received(dims)}; expected a batch of images, such as [1, 1, 28, 28] or [1, 784]")
    if dims[0] not in (None, 1):
        raise LayoutError(
            f"{name}: {_received(dims)}, a fixed batch of {dims[0]}; export it with a batch of 1, or an open batch size"
        )
    inner = list(dims[1:])
    if None in inner and not fills_open:
        raise LayoutError(
            f"{name}: {_received(dims)} with open dimensions; only the batch may be open: export the model with the "
            "fixed shape of its images, or give read_model that shape as image_shape in Python"
        )
    if len(inner) == 3:
        return _with_channels(inner, wanted, name)
    if len(inner) == 2 and 1 not in inner:
        height, width = inner
        shape = _unify([1, height, width], wanted, dims, name)
        note = f"the model's input {_shown(dims)} has no channels: read as grey rows of pixels"
        return Layout(shape, (1, *shape[1:]), Order.CHANNELS_FIRST, (note, *_open_note(dims, shape)))
    if len(inner) <= 2:
        return _flat(dims, wanted, name)
    raise LayoutError(f"{name}: {_received(dims)}; expected [1, C, H, W], [1, H, W, C] or [1, n]")


def _with_channels(inner: list[Dimension], wanted: ImageShape | None, name: str) -> Layout:
    last = [inner[2], *inner[:2]]
    is_last = inner[2] in CHANNELS and inner[0] not in CHANNELS
    if wanted is not None:
        is_last = not _fits(inner, wanted) and _fits(last, wanted)
    shape = _unify(last if is_last else inner, wanted, [None, *inner], name)
    notes = _open_note([None, *inner], shape)
    if is_last:
        return Layout(shape, (1, *shape[1:], shape[0]), Order.CHANNELS_LAST, notes)
    return Layout(shape, (1, *shape), Order.CHANNELS_FIRST, notes)


def _flat(dims: Sequence[Dimension], wanted: ImageShape | None, name: str) -> Layout:
    sizes = [size for size in dims[1:] if size != 1] or [1]
    count = sizes[0]
    if wanted is None:
        wanted = _square(count, dims, name)
    if count is not None and prod(wanted) != count:
        raise LayoutError(
            f"{name}: {_received(dims)}, but an image of shape {_shown(wanted)} has {prod(wanted)} numbers; "
            f"give an image_shape (channels, height, width) of {count} numbers"
        )
    model_shape = (1, *(prod(wanted) if size != 1 else 1 for size in dims[1:]))
    note = f"the model's input {_shown(dims)} is flat: its colours are read in the order channel, row, column"
    notes = (note,) if wanted[0] > 1 else ()
    return Layout(wanted, model_shape, Order.CHANNELS_FIRST, (*notes, *_open_note(dims, wanted)))


def _open_note(dims: Sequence[Dimension], shape: ImageShape) -> tuple[str, ...]:
    """A note for the user if the file leaves sizes other than the batch open."""
    if None not in dims[1:]:
        return ()
    left = f"the model's input {_shown(dims)} leaves sizes open"
    return (f"{left}: the answer is about images of shape {_shown(shape)} alone",)


def _square(count: Dimension, dims: Sequence[Dimension], name: str) -> ImageShape:
    """The shape of a grey or RGB square with `count` numbers; no count fits both."""
    for channels in (1, 3):
        if count is not None and count > 0 and count % channels == 0:
            side = isqrt(count // channels)
            if channels * side * side == count:
                return (channels, side, side)
    raise LayoutError(
        f"{name}: {_received(dims)}, neither a grey nor an RGB square; give image_shape=(channels, height, width)"
    )


def _unify(
    dims: Sequence[Dimension], wanted: ImageShape | None, received: Sequence[Dimension], name: str
) -> ImageShape:
    """The dimensions of the file; open ones are taken from the wanted shape."""
    if wanted is not None and not _fits(dims, wanted):
        raise LayoutError(f"{name}: {_received(received)}, which does not fit image_shape {_shown(wanted)}")
    filled = [wanted[i] if size is None and wanted is not None else size for i, size in enumerate(dims)]
    if None in filled:
        raise LayoutError(
            f"{name}: {_received(received)} with open dimensions; export with a fixed size, or give "
            "image_shape=(channels, height, width)"
        )
    channels, height, width = (int(size) for size in filled if size is not None)
    if min(channels, height, width) < 1:
        raise LayoutError(f"{name}: {_received(received)}; an image has at least one pixel")
    return channels, height, width


def _fits(dims: Sequence[Dimension], shape: ImageShape) -> bool:
    return all(size is None or size == want for size, want in zip(dims, shape, strict=True))


def _image_shape(shape: Sequence[int]) -> ImageShape:
    sizes = [int(size) for size in shape]
    if len(sizes) == 2:
        sizes = [1, *sizes]
    if len(sizes) != 3 or min(sizes) < 1:
        raise OptionError(f"image_shape is {tuple(shape)}; expected (channels, height, width), all positive")
    return sizes[0], sizes[1], sizes[2]


def _per_channel(value: PerChannel, default: float, channels: int, name: str) -> NDArray[np.float64]:
    try:
        numbers = np.atleast_1d(np.asarray(default if value is None else value, dtype=np.float64))
    except (TypeError, ValueError):
        raise OptionError(f"{name} is {value!r}; expected a number, or one for each channel") from None
    if numbers.ndim != 1 or len(numbers) not in (1, channels):
        raise OptionError(
            f"{name} has {numbers.size} numbers; expected one, or one for each of {counted(channels, 'channel')}"
        )
    if not np.isfinite(numbers).all():
        raise OptionError(f"{name} is {value!r}; expected finite numbers")
    return np.broadcast_to(numbers, (channels,)).copy()


def _shown(dims: Sequence[Dimension]) -> str:
    return "[" + ", ".join("N" if size is None else str(size) for size in dims) + "]"


def _received(dims: Sequence[Dimension]) -> str:
    return f"the input has shape {_shown(dims)}"
