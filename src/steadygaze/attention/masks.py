"""Masks: which pixels belong to the object, as weights from 0 to 1, from a picture, a rule or an array."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..errors import ImageError, OptionError
from ..images import read_image
from ..network.torch_objects import TorchTensor, is_tensor, tensor_image

AUTO = "auto"
EXAMPLE = "auto:bright=0.2,grow=1"

MaskLike = str | Path | np.ndarray | Sequence[Sequence[float]] | TorchTensor


@dataclass(frozen=True, eq=False)
class Mask:
    """Weights (H, W) from 0 to 1, the same for all channels; `text` names their source."""

    weights: np.ndarray
    text: str

    @cached_property
    def sha256(self) -> str:
        """The hash of size and weights."""
        shape = np.array(self.weights.shape, dtype="<i8")
        return hashlib.sha256(shape.tobytes() + self.weights.astype("<f8").tobytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mask) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    @classmethod
    def of(cls, given: MaskLike, image: np.ndarray) -> "Mask":
        """The mask of a grey picture, of `auto:bright=0.2,grow=1`, or of an array, list or tensor (H, W), for an image
        (C, H, W).

        OptionError if it does not fit the image, is empty or is full.

        >>> image = np.zeros((1, 3, 4))
        >>> image[0, 1, 0] = 0.5
        >>> float(Mask.of("auto:bright=0.2,grow=1", image).weights.sum())
        6.0
        """
        if not isinstance(given, str | Path):
            found = cls._checked(_numbers(given), "array", image)
        elif str(given) == AUTO or str(given).startswith(f"{AUTO}:"):
            found = cls._automatic(str(given), image)
        else:
            found = cls._read(Path(given), image)
        if not found.weights.any():
            is_rule = found.text.startswith(AUTO)
            advice = "choose a lower bright, or mark the object in a picture" if is_rule else "mark the object"
            raise OptionError(f"mask {found.text}: is empty, every weight is 0; {advice}")
        if (found.weights == 1.0).all():
            raise OptionError(
                f"mask {found.text}: is full, every weight is 1, so nothing lies outside; mark only the object"
            )
        return found

    @classmethod
    def _read(cls, path: Path, image: np.ndarray) -> "Mask":
        if not path.is_file():
            raise OptionError(f"mask {path}: no such file; check the path of the mask, or use a rule such as {EXAMPLE}")
        try:
            pixels = read_image(path).pixels
        except ImageError as error:
            raise OptionError(f"mask {error}") from None
        if len(pixels) > 1 and not (pixels == pixels[0]).all():
            raise OptionError(f"mask {path.name}: is a colour picture; save it as a grey PNG, weight = grey/255")
        return cls._checked(pixels[0], path.name, image)

    @classmethod
    def _automatic(cls, text: str, image: np.ndarray) -> "Mask":
        values = {"bright": 0.2, "grow": 0.0}
        for part in filter(None, text.removeprefix(AUTO).removeprefix(":").split(",")):
            name, _, number = part.partition("=")
            try:
                values[name.strip()] = float(number) if name.strip() in values else float("nan")
            except ValueError:
                values[name.strip()] = float("nan")
        bright, grow = values["bright"], values["grow"]
        is_number = 0.0 <= bright < 1.0 and 0.0 <= grow < float("inf") and grow == int(grow)
        if not is_number or set(values) != {"bright", "grow"}:
            raise OptionError(
                f"mask {text!r} is not a rule; expected {EXAMPLE}, with bright from 0 to below 1, grow in pixels"
            )
        is_on = (image > bright).max(axis=0)
        for _ in range(min(int(grow), max(is_on.shape))):
            padded = np.pad(is_on, 1)
            height, width = is_on.shape
            parts = np.stack([padded[y : y + height, x : x + width] for y in range(3) for x in range(3)])
            is_on = parts.max(axis=0)
        return cls(np.asarray(is_on, dtype=np.float64), f"{AUTO}:bright={bright:g},grow={grow:g}")

    @classmethod
    def _checked(cls, weights: np.ndarray, name: str, image: np.ndarray) -> "Mask":
        if weights.shape != image.shape[1:]:
            shape = " × ".join(str(side) for side in weights.shape[::-1])
            raise OptionError(
                f"mask {name}: is {shape}, but the image is {image.shape[2]} × {image.shape[1]} (width × height); "
                "give a mask of the image's size"
            )
        if not ((weights >= 0.0) & (weights <= 1.0)).all():  # NaN is in no range
            raise OptionError(f"mask {name}: has weights outside 0 to 1; give numbers from 0 to 1")
        return cls(np.ascontiguousarray(weights), name)


def _numbers(given: object) -> np.ndarray:
    """The weights of an array, a list of rows or a torch tensor."""
    try:
        return np.array(tensor_image(given) if is_tensor(given) else given, dtype=np.float64)
    except (ImageError, TypeError, ValueError):
        raise OptionError(
            f"mask: received {type(given).__name__}; expected an array (H, W) of weights from 0 to 1, the path of a "
            f"grey PNG, or a rule such as {EXAMPLE}"
        ) from None
