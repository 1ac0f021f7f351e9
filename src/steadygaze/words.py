"""Numbers and names in words: one rounding for the terminal, reports, figures and exports.

A bound is rounded in the direction that keeps its statement true. Only a share of exactly 0 or 1 reads 0 % or 100 %.
"""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from enum import Enum

MINUS = "−"
ALL_DIGITS = 17
"""Significant digits that write every float as it is: for thresholds, which people chose."""


class Rounding(Enum):
    """The direction in which a number is rounded."""

    NEAREST = ROUND_HALF_EVEN
    DOWN = ROUND_FLOOR
    UP = ROUND_CEILING


def number(value: float, digits: int = 5, rounding: Rounding = Rounding.NEAREST) -> str:
    """A number with so many significant digits; exponents only below 1e-6 and from 1e9 on.

    >>> number(0.0123456789), number(3.0), number(-1.5), number(float("inf"))
    ('0.012346', '3', '−1.5', 'infinite')
    >>> number(0.31999, 3, Rounding.DOWN), number(-0.31999, 3, Rounding.UP), number(1.234e-9, 2, Rounding.UP)
    ('0.319', '−0.319', '1.3e−9')
    """
    if value in (float("inf"), float("-inf")):
        return "infinite"
    return _plain(Context(prec=digits, rounding=rounding.value).create_decimal(Decimal(repr(float(value)))))


def is_written_exactly(value: float, digits: int = 5) -> bool:
    """Whether `number` writes a value without rounding it.

    >>> is_written_exactly(-0.25), is_written_exactly(0.1234567)
    (True, False)
    """
    return float(number(value, digits).replace(MINUS, "-")) == value


def percent(share: float, rounding: Rounding = Rounding.NEAREST) -> str:
    """A share in percent: two decimals, or two significant digits within 0.01 % of nothing or everything.

    >>> percent(0.12346), percent(1.0), percent(0.0), percent(2.94e-6), percent(1.0 - 1e-9)
    ('12.35 %', '100 %', '0 %', '0.00029 %', '99.9999999 %')
    >>> percent(0.12345, Rounding.DOWN), percent(0.12341, Rounding.UP), percent(1.0 - 1e-17, Rounding.DOWN)
    ('12.34 %', '12.35 %', '100 %')
    """
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    value = 100 * Decimal(repr(float(share)))
    rest = min(value, 100 - value)
    if rest >= Decimal("0.01"):
        return f"{value.quantize(Decimal('0.01'), rounding=rounding.value):f} %"
    digits = 2 if value < 1 else 3 - rest.adjusted()
    return f"{_plain(Context(prec=digits, rounding=rounding.value).create_decimal(value))} %"


def share_text(bounds: Sequence[float]) -> str:
    """A share with proved bounds: one number where both round to it, else both bounds, rounded outward.

    >>> share_text((0.25, 0.25)), share_text((0.25, 0.25 + 1e-9)), share_text((0.1, 0.2)), share_text((0.0, 1e-12))
    ('25.00 %', '25.00 %', '10.00 to 20.00 %', '0 to 1e−10 %')
    """
    low, high = bounds
    texts = {percent(low), percent(high)}
    if len(texts) == 1:
        return texts.pop()
    return f"{percent(low, Rounding.DOWN).removesuffix(' %')} to {percent(high, Rounding.UP)}"


def at_least(share: float) -> str:
    """A proved lower bound of a share, in words.

    >>> at_least(0.129999), at_least(1.0)
    ('at least 12.99 %', '100 %')
    """
    return percent(share) if share == 1.0 else f"at least {percent(share, Rounding.DOWN)}"


def at_most(share: float) -> str:
    """A proved upper bound of a share, in words.

    >>> at_most(0.120001), at_most(0.0)
    ('at most 12.01 %', '0 %')
    """
    return percent(share) if share == 0.0 else f"at most {percent(share, Rounding.UP)}"


def theta_text(theta: Sequence[float], axes: Sequence[str]) -> str:
    """A theta with the names of its axes.

    >>> theta_text([0.25, -1.5], ["brightness", "translation right [px]"])
    'brightness = 0.25, translation right [px] = −1.5'
    """
    return ", ".join(f"{axis} = {number(value)}" for axis, value in zip(axes, theta, strict=True))


def counted(count: int, word: str, words: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "region"), counted(1200, "region"), counted(2, "box", "boxes")
    ('1 region', '1,200 regions', '2 boxes')
    """
    return f"{count:,} {word if count == 1 else words or f'{word}s'}"


def plain_name(text: str) -> str:
    """A name from a file or a user without the characters that a terminal would obey.

    >>> plain_name("a\\tb\\x1b[31m")
    'a b [31m'
    """
    return "".join(letter if letter.isprintable() else " " for letter in text)


def sentence(text: str) -> str:
    """A clause as a sentence.

    >>> sentence("the label is kept")
    'The label is kept.'
    """
    return f"{text[0].upper()}{text[1:]}."


def _plain(value: Decimal) -> str:
    """A decimal without trailing zeros, and without an exponent where people do not expect one."""
    if not value:
        return "0"
    exponent = value.adjusted()
    has_exponent = not -6 <= exponent < 9
    text = f"{value.scaleb(-exponent) if has_exponent else value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text}e{exponent}".replace("-", MINUS) if has_exponent else text.replace("-", MINUS)
