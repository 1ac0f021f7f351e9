"""The values of a family's fields other than numbers and words: colours, and arrays from files.

A file is identified by its content: its text in a spec ends with a digest of the numbers read, equal contents compare
equal, and a result stores the array itself.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import ImageError, PerturbationError
from ..images import read_image, read_layers, read_numbers

FloatArray = NDArray[np.float64]

DIGEST = re.compile(r"(.*)#([0-9a-f]{16})", re.DOTALL)
"""The name of a file, and the digest of its content."""
QUOTED = re.compile(r'"([^"]*)#([0-9a-f]{16})"')
"""A file in a canonical spec."""
WORDS = {"white": 1.0, "black": 0.0}


@dataclass(frozen=True)
class Colour:
    """A grey level for all channels, or one level for each of three; levels are in [0, 1].

    >>> Colour.of("white"), Colour.of("1/0.9/0.8").text, Colour.of("0.5/0.5/0.5").text
    (Colour(levels=(1.0,)), '1/0.9/0.8', '0.5')
    """

    levels: tuple[float, ...]

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the colour of a text, a number or a sequence of three numbers; raises ValueError."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            parts: Sequence[object] = [WORDS.get(part.strip().lower(), part) for part in value.split("/")]
        else:
            parts = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
        try:
            # Adding zero turns -0.0 into 0.0.
            levels = tuple(float(part) + 0.0 for part in parts if not isinstance(part, bool))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            levels = ()
        if len(levels) not in (1, 3) or len(levels) != len(parts) or not all(0.0 <= level <= 1.0 for level in levels):
            raise ValueError("expected a colour: white, black, a grey level in 0..1 such as 0.5, or r/g/b as 1/0.9/0.8")
        return cls(levels[:1] if len(set(levels)) == 1 else levels)

    @property
    def text(self) -> str:
        """The colour as in a spec."""
        words: dict[tuple[float, ...], str] = {(level,): word for word, level in WORDS.items()}
        return words.get(self.levels) or "/".join(repr(level).removesuffix(".0") for level in self.levels)

    def fits(self, channels: int) -> bool:
        """Whether the colour fits images with this many channels."""
        return len(self.levels) in (1, channels)

    @property
    def pixels(self) -> FloatArray:
        """The levels as an array (1 or 3, 1, 1)."""
        return np.array(self.levels)[:, None, None]


@dataclass(frozen=True)
class FileArray(ABC):
    """The numbers in a file; two are equal if their numbers are equal, whatever the names of the files."""

    expected: ClassVar[str]
    """The kind of file, for error messages."""

    name: str = field(compare=False)
    values: FloatArray = field(compare=False, repr=False)
    digest: str

    @staticmethod
    @abstractmethod
    def read(path: str) -> FloatArray:
        """Return the numbers of a file; raises ImageError."""

    @classmethod
    def check(cls, values: FloatArray) -> None:
        """Raise ValueError for an array that does not fit; by default any finite numbers do."""
        if not np.isfinite(values).all():
            raise ValueError("not all numbers are finite")

    @classmethod
    def of(cls, value: object, arrays: Mapping[str, FloatArray] | None = None) -> Self:
        """Return the array in the file of this name, or a given array; `arrays` holds known contents by digest.

        Raises ValueError for other values, PerturbationError for a file that cannot be read or has changed.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "fiu":
                raise ValueError(f"expected {cls.expected}, or an array of numbers")
            return cls._made("", np.array(value, dtype=np.float64))
        if not isinstance(value, str | Path) or not str(value).strip():
            raise ValueError(f"expected {cls.expected}")
        name, digest = str(value), ""
        if match := DIGEST.fullmatch(name):
            name, digest = match.groups()
        if '"' in name or not name.isprintable():
            raise ValueError(
                "a name with double quotes or control characters cannot be part of a spec; rename the file"
            )
        if digest and arrays is not None and digest in arrays:
            found = cls._made(name, np.array(arrays[digest], dtype=np.float64))
        elif not name:
            raise ValueError("the array has no file; only the result that stores it can restore it")
        else:
            try:
                found = cls._made(name, cls.read(name))
            except ImageError as error:
                raise PerturbationError(str(error)) from None
        if digest and found.digest != digest:
            raise ValueError(f"the content has changed: its digest is now {found.digest}; leave out #{digest}")
        return found

    @classmethod
    def _made(cls, name: str, values: FloatArray) -> Self:
        cls.check(values)
        values = np.ascontiguousarray(values) + 0.0  # equal numbers, equal bytes: no -0.0
        values.setflags(write=False)
        digest = hashlib.sha256(repr(values.shape).encode() + values.tobytes()).hexdigest()[:16]
        return cls(name, values, digest)

    @property
    def text(self) -> str:
        """The file as in a spec, with the digest of its content."""
        return f'"{self.name}#{self.digest}"'

    @property
    def short(self) -> str:
        """The name for people."""
        return Path(self.name).name or "array"


class Picture(FileArray):
    """An image (1 or 3, H, W) with pixels in [0, 1]."""

    expected = "a PNG, JPEG or NPY image"
    read = staticmethod(lambda path: read_image(path).pixels)

    @classmethod
    def check(cls, values: FloatArray) -> None:
        """Raise ValueError for an array that is not an image."""
        _check_layers(values, "(channels, height, width)", 1)


class Layers(FileArray):
    """A picture with an alpha channel, (2 or 4, H, W) with numbers in [0, 1], alpha last."""

    expected = "a PNG with an alpha channel"
    read = staticmethod(read_layers)

    @classmethod
    def check(cls, values: FloatArray) -> None:
        """Raise ValueError for an array without alpha."""
        _check_layers(values, "(channels and alpha, height, width)", 2)


class NumberFile(FileArray):
    """An array of finite numbers, of one to three axes."""

    expected = "an NPY file of finite numbers"
    read = staticmethod(read_numbers)


def _check_layers(values: FloatArray, axes: str, least: int) -> None:
    if values.ndim != 3 or len(values) < least or 0 in values.shape or not _is_unit(values):
        raise ValueError(f"the array has shape {values.shape}; expected {axes} with numbers in 0..1")


def _is_unit(values: FloatArray) -> bool:
    """Whether all numbers are in [0, 1]; NaN is not."""
    return bool(((values >= 0.0) & (values <= 1.0)).all())


def file_digests(spec: str) -> list[str]:
    """Return the digests of the files in a canonical spec."""
    return [digest for _, digest in QUOTED.findall(spec)]


def without_names(spec: str, shorten: Callable[[str], str] = lambda name: "") -> str:
    """Return a canonical spec that identifies files by content alone: equal texts mean equal perturbations.

    `shorten` chooses the part of each file name to keep.

    >>> without_names('blend:image="clouds.png#0123456789abcdef":0..0.5')
    'blend:image="#0123456789abcdef":0..0.5'
    """
    return QUOTED.sub(lambda file: f'"{shorten(file[1])}#{file[2]}"', spec)
