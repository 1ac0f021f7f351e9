"""Numbers in options: from text to numbers, or an error that names the option."""

import math
from collections.abc import Callable

from ..errors import OptionError


def whole_number(name: str, text: str | None) -> int | None:
    """A whole number above 0; None stays None.

    >>> whole_number("threads", "2")
    2
    """
    return _read(int, f"--{name}", text, "a whole number above 0")


def number(name: str, text: str | None) -> float | None:
    """A finite number above 0; None stays None.

    >>> number("timeout", "1e3")
    1000.0
    """
    return _read(float, f"--{name}", text, "a number above 0")


def numbers(name: str, text: str | None) -> list[float] | None:
    """Finite numbers joined by commas; None stays None.

    >>> numbers("mean", "0.49, 0.48")
    [0.49, 0.48]
    """
    if text is None:
        return None
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(math.isfinite(value) for value in found):
        raise OptionError(
            f"--{name} is {text!r}; expected a number such as 0.5, or one for each channel such as 0.49,0.48,0.45"
        )
    return found


def _read[Number: (int, float)](
    kind: Callable[[str], Number], name: str, text: str | None, expected: str
) -> Number | None:
    if text is None:
        return None
    try:
        value = kind(text)
    except (ValueError, OverflowError):
        value = kind("0")
    if not 0 < value < math.inf:
        raise OptionError(f"{name} is {text!r}; expected {expected}")
    return value
