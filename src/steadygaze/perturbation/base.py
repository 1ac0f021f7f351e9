"""The base classes of all perturbations: a change of the image that is affine in theta between neighbouring knots.

They check ranges and fields for all families, and write the canonical spec text. `compose` adds perturbations up and
clips the sum to [0, 1].
"""

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from functools import cache
from operator import index
from types import NoneType, UnionType
from typing import Any, ClassVar, NoReturn, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ..errors import PerturbationError
from .fields import Colour, FileArray

FloatArray = NDArray[np.float64]

LARGEST_WHOLE_NUMBER = 10**6  # far beyond any image side; whole numbers stay exact as floats
LARGEST_CHANGE = 1e6  # of a pixel in 0..1: beyond that, sums of both have too few digits left for the pixel
SMALLEST_WIDTH = 1e-6  # one 8-bit grey level is 4e-3; far below that, rounding errors would decide the answer


@dataclass(frozen=True, kw_only=True)
class Perturbation(ABC):
    """One parameter theta in [low, high] that changes an image (C, H, W) piecewise affinely; theta = 0 changes nothing.

    Curved families (`is_curved`) are the exception: their images are not affine in theta.

    A family is a frozen keyword-only dataclass in its own file in `families`; its fields (int, float, str, Colour or a
    kind of FileArray) are the keys of its spec. A range equal to the default is stored as None: equal perturbations
    compare equal.
    """

    keyword: ClassVar[str]
    """The word that names the family in a spec."""
    example: ClassVar[str]
    """A spec that error messages show."""
    moves: ClassVar[bool] = False
    """Whether the expected attention map moves with the image (True) or is kept (False)."""
    is_curved: ClassVar[bool] = False
    """Whether images are not piecewise affine in theta: boxes enclose them, and `change` raises InternalError."""

    @property
    def reads_image(self) -> bool:
        """Whether the change depends on the pixels: such a change of a moving image is not affine in theta."""
        return False

    range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for key, kind in field_kinds(type(self)).items():
            object.__setattr__(self, key, self._checked_field(key, kind))
        self.check_fields()
        if self.range is not None:
            given = self._checked_range(self.range)
            object.__setattr__(self, "range", None if given == self.default_range else given)

    @property
    def name(self) -> str:
        """The readable name of theta's axis; by default the keyword."""
        return self.keyword

    @abstractmethod
    def apply(self, image: FloatArray, thetas: FloatArray) -> FloatArray:
        """Return the images (B, C, H, W) for thetas (B,), straight from the definition, before the clip."""

    @abstractmethod
    def change(self, image: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Return offset and slope, each (C, H, W): the image gains offset + theta * slope for theta in [low, high].

        [low, high] must not have a knot inside.
        """

    def transport(self, maps: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray] | None:
        """Return offset and slope of the change of the expected maps (..., C, H, W) on [low, high]; None if kept."""
        return None

    def knots(self) -> tuple[float, ...]:
        """Return the thetas strictly inside (low, high), ascending, where the affine form of `change` may change."""
        return ()

    def check_fields(self) -> None:  # noqa: B027
        """Raise PerturbationError if the fields are invalid for every image."""

    def check(self, shape: tuple[int, int, int]) -> None:  # noqa: B027
        """Raise PerturbationError if the perturbation does not fit an image of shape (C, H, W)."""

    @property
    def default_range(self) -> tuple[float, float]:
        """The range used if none is given."""
        return 0.0, 1.0

    @property
    def widest_range(self) -> tuple[float, float]:
        """The widest range that may be given."""
        return -1.0, 1.0

    @property
    def why_no_wider(self) -> str:
        """The reason for `widest_range`, for an error message."""
        return "beyond ±1 every pixel that it touches is clipped to 0 or 1"

    def snap(self, end: float) -> float:
        """Return the end of a range, rounded if the family rounds ends."""
        return end

    @property
    def low(self) -> float:
        """The smallest theta."""
        return (self.range or self.default_range)[0]

    @property
    def high(self) -> float:
        """The largest theta."""
        return (self.range or self.default_range)[1]

    @property
    def spec(self) -> str:
        """The canonical spec text; `parse_spec` turns it back into an equal perturbation."""
        kinds = field_kinds(type(self))
        given = [
            f"{field.name}={_write_value(getattr(self, field.name))}"
            for field in fields(self)
            if field.name in kinds and (field.default is MISSING or getattr(self, field.name) != field.default)
        ]
        parts = [self.keyword, ",".join(given)] if given else [self.keyword]
        if self.range is not None:
            parts.append(write_range(self.range))
        return ":".join(parts)

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """The contents of the files that it reads, by digest."""
        values = [getattr(self, key) for key in field_kinds(type(self))]
        return {value.digest: value.values for value in values if isinstance(value, FileArray)}

    def refuse(self, what: str) -> NoReturn:
        """Raise a PerturbationError that starts with the keyword."""
        raise PerturbationError(f"{self.keyword}: {what}")

    def _checked_field(self, key: str, kind: type) -> object:
        value = getattr(self, key)
        if value is None and type(self).__dataclass_fields__[key].default is None:
            return None
        if issubclass(kind, Colour | FileArray):
            try:
                return kind.of(value)
            except ValueError as error:
                self.refuse(f"{key} is {_shown(value)}: {error}")
            except PerturbationError as error:
                self.refuse(f"{key}: {error}")
        if kind is str:
            number = as_number(value)
            return write_number(number) if number is not None else str(value).strip()
        if kind is int:
            try:
                whole = index(value)
            except TypeError:
                whole = None
            if whole is None or isinstance(value, bool) or abs(whole) > LARGEST_WHOLE_NUMBER:
                self.refuse(f"{key} is {value!r}; expected a whole number of at most {LARGEST_WHOLE_NUMBER} in size")
            return whole
        number = as_number(value)
        if number is None or not np.isfinite(number):
            self.refuse(f"{key} is {value!r}; expected a finite number")
        return number + 0.0

    def _checked_range(self, given: object) -> tuple[float, float]:
        is_row = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim == 1)
        pair = [as_number(end) for end in given] if is_row else []  # type: ignore[attr-defined]
        ends = tuple(end for end in pair if end is not None)
        if len(pair) != 2 or len(ends) != 2:
            shown = " ".join(repr(given).split())[:80]
            self.refuse(f"the range {shown} is not a pair of numbers; give (low, high), for example (0.0, 0.5)")
        if not np.isfinite(ends).all():
            self.refuse(f"the range {write_range(ends)} is not finite; give two numbers low..high such as 0..0.5")
        # Adding zero turns -0.0 into 0.0: equal ranges have equal texts.
        low, high = self.snap(ends[0]) + 0.0, self.snap(ends[1]) + 0.0
        text = write_range((low, high))
        if low > high:
            self.refuse(f"the range {text} is inverted; write the smaller end first: {write_range((high, low))}")
        if low == high:
            self.refuse(f"the range {text} is empty; its ends must differ, for example {write_range((low, low + 0.1))}")
        if high - low < SMALLEST_WIDTH:
            self.refuse(f"the range {text} is narrower than {SMALLEST_WIDTH}: rounding would decide; give a wider one")
        widest = self.widest_range
        if low < widest[0] or high > widest[1]:
            self.refuse(f"the range {text} leaves {write_range(widest)}: {self.why_no_wider}; give a smaller one")
        return low, high


@dataclass(frozen=True, kw_only=True)
class Ramp(Perturbation):
    """A perturbation that adds theta times a fixed array to the image: x0 + theta · slope, without knots.

    The slope is computed once in float64. All proofs are about the family with this stored slope.
    """

    @abstractmethod
    def slope(self, image: FloatArray) -> FloatArray:
        """Return the change of an image (C, H, W) per unit of theta, an array that broadcasts to its shape.

        The slope is affine in the image.
        """

    def apply(self, image: FloatArray, thetas: FloatArray) -> FloatArray:
        """Return the images (B, C, H, W) for thetas (B,), before the clip."""
        return image + thetas[:, None, None, None] * self.slope(image)

    def change(self, image: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Return the offset, which is zero, and the slope, each (C, H, W)."""
        # Adding zero turns -0.0 into 0.0, and copies the array.
        return np.zeros(image.shape), np.broadcast_to(self.slope(image), image.shape) + 0.0

    def check_colour(self, colour: Colour, channels: int) -> None:
        """Refuse a colour that does not fit images with this many channels."""
        if not colour.fits(channels):
            self.refuse(
                f"colour={colour.text} has {len(colour.levels)} channels, the image has {channels}; "
                "give a grey level such as 0.5"
            )

    def check_reach(self, key: str, name: str, values: FloatArray) -> None:
        """Refuse an array of a file that changes pixels, by theta times its numbers, by more than leaves digits."""
        reach = max(abs(self.low), abs(self.high))
        largest = float(np.abs(values).max(initial=0.0))
        if not reach * largest <= LARGEST_CHANGE:
            self.refuse(
                f"{key}: {name} holds numbers up to {largest:.3g}, and theta goes up to {reach:g}, so pixels in 0..1 "
                f"would change by more than {LARGEST_CHANGE:.0e}; scale the file, or give a smaller range"
            )

    def check_size(self, key: str, name: str, found: tuple[int, ...], shape: tuple[int, int, int]) -> None:
        """Refuse an array of a file that is neither (H, W) nor (1 or C, H, W) for an image of `shape` (C, H, W)."""
        if len(found) not in (2, 3) or found[-2:] != shape[1:] or (len(found) == 3 and found[0] not in (1, shape[0])):
            self.refuse(
                f"{key}: {name} has shape {found}; expected {shape[1:]} or {shape}, like the image: (height, width) or "
                "(channels, height, width); resize or convert the file"
            )


@dataclass(frozen=True, kw_only=True)
class Mix(Ramp):
    """A ramp that blends pixels into replacements: theta in 0..1 is the share of the replacements."""

    share_of: ClassVar[str]
    """The thing whose share is theta, in words, for an error message."""

    @property
    def reads_image(self) -> bool:
        """Yes: the slope is the replacements minus the pixels."""
        return True

    @property
    def widest_range(self) -> tuple[float, float]:
        """From 0, nothing replaced, to 1, everything replaced."""
        return 0.0, 1.0

    @property
    def why_no_wider(self) -> str:
        """The meaning of theta."""
        return f"theta is the share of {self.share_of}"


@cache
def field_kinds(family: type) -> dict[str, type]:
    """Return the fields of a family that a spec may set, in order, each with its type; `X | None` gives X.

    >>> from steadygaze.perturbation import Translate
    >>> field_kinds(Translate)
    {'dx': <class 'int'>, 'dy': <class 'int'>, 'interp': <class 'str'>}
    """
    hints = get_type_hints(family)
    return {field.name: _kind(hints[field.name]) for field in fields(family) if field.name != "range"}


def _kind(hint: Any) -> type:
    """The type of a field; X of X | None."""
    chosen = [kind for kind in get_args(hint) if kind is not NoneType] if isinstance(hint, UnionType) else [hint]
    return chosen[0]


def _shown(value: object) -> str:
    return repr(" ".join(str(value).split())[:80])


def _write_value(value: object) -> str:
    if isinstance(value, Colour | FileArray):
        return value.text
    return value if isinstance(value, str) else write_number(value)  # type: ignore[arg-type]


def as_number(value: object) -> float | None:
    """Return a real number as float, infinite if it is too large; None for other values."""
    if isinstance(value, bool | np.bool_ | str | bytes):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    except OverflowError:
        return float("inf")


def write_number(value: float) -> str:
    """Write a number that reads back as the same float.

    >>> write_number(2.0), write_number(0.1), write_number(-3)
    ('2', '0.1', '-3')
    """
    return repr(float(value)).removesuffix(".0")


def write_range(ends: tuple[float, ...]) -> str:
    """Write a range as in a spec.

    >>> write_range((0.0, 1.5))
    '0..1.5'
    """
    return "..".join(write_number(end) for end in ends)


@dataclass(frozen=True, kw_only=True)
class Rectangle(Ramp):
    """Columns x..x+w-1 and rows y..y+h-1; x counts from the left and y from the top, both from 0."""

    x: int
    y: int
    w: int
    h: int

    @property
    def place(self) -> str:
        """Size and place in words."""
        return f"{self.w}×{self.h} at ({self.x}, {self.y})"

    def check_fields(self) -> None:
        """Refuse a rectangle that fits no image."""
        if self.w < 1 or self.h < 1:
            self.refuse(f"w={self.w}, h={self.h} contains no pixel; both must be at least 1")
        if self.x < 0 or self.y < 0:
            self.refuse(f"x={self.x}, y={self.y} lies outside the image; both count from 0 at its top left corner")

    def check(self, shape: tuple[int, int, int]) -> None:
        """Refuse a rectangle that leaves the image."""
        _, height, width = shape
        if self.x + self.w > width or self.y + self.h > height:
            self.refuse(
                f"columns {self.x} to {self.x + self.w - 1} and rows {self.y} to {self.y + self.h - 1} leave the "
                f"image, which has columns 0 to {width - 1} and rows 0 to {height - 1}; move it or make it smaller"
            )

    def inside(self, image: FloatArray) -> FloatArray:
        """Return 1 inside the rectangle and 0 outside, (H, W)."""
        mask = np.zeros(image.shape[-2:])
        mask[self.y : self.y + self.h, self.x : self.x + self.w] = 1.0
        return mask
