"""Numbers in options: from text to numbers, or an error that names the option."""

import math
from typing import NoReturn

from ..errors import OptionError


def whole_number(name: str, text: str | None) -> int | None:
    """A whole number above 0; None stays None.

    >>> whole_number("threads", "2")
    2
    """
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        _refuse(name, text, "a whole number above 0")
    return value


def number(name: str, text: str | None) -> float | None:
    """A finite number above 0; None stays None.

    >>> number("timeout", "1e3")
    1000.0
    """
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        _refuse(name, text, "a number above 0")
    return value


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
        _refuse(name, text, "a number such as 0.5, or one for each channel such as 0.49,0.48,0.45")
    return found


def theta(name: str, text: str) -> list[float]:
    """A theta: one finite number for each parameter, joined by commas.

    >>> theta("at", "0.5, -1")
    [0.5, -1.0]
    """
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(math.isfinite(value) for value in found):
        _refuse(name, text, "a theta: one number for each parameter, joined by commas, such as 0.5,1")
    return found


def _refuse(name: str, text: str, expected: str) -> NoReturn:
    raise OptionError(f"--{name} is {text!r}; expected {expected}") from None
