"""Numbers as a report writes them: rounded in the direction in which the statement around them stays true."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

MINUS = "−"
ALL_DIGITS = 17
"""Significant digits with which every float is written as it is: for thresholds, which people chose."""

SMALL = 0.0005
"""Shares that differ by less than this are written as one number with the word about."""


def rounded_down(value: float, digits: int = 3) -> str:
    """A number with so many significant digits that is not above the given one.

    >>> rounded_down(0.31999), rounded_down(-0.31999), rounded_down(0.0), rounded_down(1e-9)
    ('0.319', '−0.32', '0', '1e−9')
    """
    return _text(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(Decimal(repr(float(value)))))


def rounded_up(value: float, digits: int = 3) -> str:
    """A number with so many significant digits that is not below the given one.

    >>> rounded_up(0.3111), rounded_up(-0.31999), rounded_up(12345.0)
    ('0.312', '−0.319', '12400')
    """
    return _text(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(repr(float(value)))))


def rounded(value: float, digits: int = 5) -> str:
    """A number to the nearest with so many significant digits: for what is no bound.

    >>> rounded(0.0123456789), rounded(3.0), rounded(-1.5), rounded(float("inf"))
    ('0.012346', '3', '−1.5', 'infinite')
    """
    if value in (float("inf"), float("-inf")):
        return "infinite"
    return _text(Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(Decimal(repr(float(value)))))


def is_exact(value: float) -> bool:
    """Whether a number is what `rounded` writes.

    >>> is_exact(-0.25), is_exact(0.1234567)
    (True, False)
    """
    return float(rounded(value).replace(MINUS, "-")) == value


def percent_down(share: float) -> str:
    """A share in percent, not more than it is.

    >>> percent_down(0.12999), percent_down(1.0), percent_down(1.0 - 1e-12), percent_down(2.99e-6), percent_down(0.0)
    ('12.9 %', '100 %', '99.9 %', '0.00029 %', '0 %')
    """
    return _percent(share, ROUND_FLOOR)


def percent_up(share: float) -> str:
    """A share in percent, not less than it is.

    >>> percent_up(0.1201), percent_up(0.9999999), percent_up(2.91e-6), percent_up(0.0)
    ('12.1 %', '100 %', '0.0003 %', '0 %')
    """
    return _percent(share, ROUND_CEILING)


def share_between(low: float, high: float) -> str:
    """A share with proved bounds in words, for a sentence.

    >>> share_between(0.124, 0.12401), share_between(0.1, 0.2), share_between(0.0, 0.2), share_between(0.9, 1.0)
    ('about 12.4 %', 'between 10 % and 20 %', 'at most 20 %', 'at least 90 %')
    >>> share_between(1.0, 1.0), share_between(0.0, 0.0), share_between(1e-7, 1e-7), share_between(0.99997, 1.0)
    ('100 %', '0 %', 'about 0.00001 %', 'at least 99.9 %')
    """
    if low == high and low in (0.0, 1.0):
        return f"{100 * low:.0f} %"
    if low <= 0.0:
        return f"at most {percent_up(high)}"
    if high >= 1.0:
        return f"at least {percent_down(low)}"
    texts = {_percent(share, ROUND_HALF_EVEN) for share in (low, high)}
    if high - low < SMALL and len(texts) == 1 and "100 %" not in texts:
        return f"about {texts.pop()}"
    return f"between {percent_down(low)} and {percent_up(high)}"


def share_bounds(bounds: Sequence[float]) -> tuple[str, str]:
    """Both bounds of a share for a table, rounded outward to four decimals of a percent.

    >>> share_bounds([0.1243312, 0.1243313]), share_bounds([0.0, 1e-12]), share_bounds([0.5, 1.0])
    (('12.4331 %', '12.4332 %'), ('0 %', '0.0001 %'), ('50.0000 %', '100 %'))
    """
    low, high = bounds
    return _fixed(low, ROUND_FLOOR), _fixed(high, ROUND_CEILING)


def _fixed(share: float, rounding: str) -> str:
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    return f"{(100 * Decimal(repr(float(share)))).quantize(Decimal('0.0001'), rounding=rounding)} %"


def _percent(share: float, rounding: str) -> str:
    percent = 100 * Decimal(repr(float(share)))
    # Below one tenth of a percent two digits tell more than one decimal.
    digits = 2 if percent < Decimal("0.1") else max(1, percent.adjusted() + 2)
    return f"{_text(Context(prec=digits, rounding=rounding).create_decimal(percent))} %"


def _text(value: Decimal) -> str:
    if not value:
        return "0"
    exponent = value.adjusted()
    # Without exponents where people do not expect them.
    if -6 <= exponent < 9:
        text = f"{value:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        mantissa = f"{value.scaleb(-exponent):f}"
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        text = f"{mantissa}e{exponent}"
    return text.replace("-", MINUS)
