"""Numbers and words for people: shares, thetas, counts, names. A share reads the same everywhere.

A proved lower bound is rounded down and an upper bound up, so a rounded number never claims more than was proved: no
lower bound below 1 reads 100 %, no upper bound above 0 reads 0 %. Shares have two decimals of a percent; those below
0.01 % two significant digits.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

import numpy as np

MINUS = "−"
FACTOR = "×"
"""The unit of a parameter that people write and read as a factor; its theta is the factor minus 1."""
ALL_DIGITS = 17
"""Enough significant digits to write any float exactly: for thresholds, which people chose."""
TIGHT, LEAST = 1e-6, 1e-4
"""Bounds of a share above LEAST that differ by less than TIGHT are written as one number, the lower bound."""


def percent_down(share: float) -> str:
    """A share in percent, rounded down.

    >>> percent_down(0.12999), percent_down(1.0), percent_down(1.0 - 1e-12), percent_down(2.99e-6), percent_down(0.0)
    ('12.99 %', '100 %', '99.99 %', '0.00029 %', '0 %')
    """
    return _percent(share, ROUND_FLOOR)


def percent_up(share: float) -> str:
    """A share in percent, rounded up.

    >>> percent_up(0.12001), percent_up(0.9999999), percent_up(2.91e-6), percent_up(0.0), percent_up(3e-12)
    ('12.01 %', '100 %', '0.0003 %', '0 %', '3e−10 %')
    """
    return _percent(share, ROUND_CEILING)


def share_text(low: float, high: float | None = None) -> str:
    """A share with proved bounds, or a known share.

    >>> share_text(0.12434), share_text(0.25, 0.25 + 1e-12), share_text(0.25, 0.5), share_text(0.0, 2e-9)
    ('12.43 %', '25.00 %', '25.00 to 50.00 %', '≤ 2e−7 %')
    """
    if high is not None and low == 0.0 < high < TIGHT:
        return f"≤ {percent_up(high)}"
    if high is None or percent_down(low) == percent_down(high) or (high - low < TIGHT and low > LEAST and high < 1.0):
        return percent_down(low)
    return f"{percent_down(low).removesuffix(' %')} to {percent_up(high)}"


def share_between(low: float, high: float) -> str:
    """A share with proved bounds in words, for a sentence.

    >>> share_between(0.124, 0.1240001), share_between(0.1, 0.2), share_between(0.0, 0.2), share_between(0.9, 1.0)
    ('12.40 %', '10.00 to 20.00 %', 'at most 20.00 %', 'at least 90.00 %')
    >>> share_between(1.0, 1.0), share_between(0.0, 0.0)
    ('100 %', '0 %')
    """
    if low <= 0.0 < high:
        return f"at most {percent_up(high)}"
    if low < 1.0 <= high:
        return f"at least {percent_down(low)}"
    return share_text(low, high)


def spaced_percent(text: str) -> str:
    """A percentage as people give it, with a space before its sign.

    >>> spaced_percent("25%"), spaced_percent("0.5")
    ('25 %', '0.5')
    """
    return text.replace("%", " %")


def percent_of_up(value: float, whole: float) -> str:
    """A value in percent of a whole, rounded up to four digits; empty if the whole is zero.

    >>> percent_of_up(0.30001, 1.2), percent_of_up(0.1, 0.0)
    ('25.01 %', '')
    """
    return f"{rounded_up(100.0 * value / whole, 4)} %" if whole > 0.0 else ""


def rounded_down(value: float, digits: int = 3) -> str:
    """A number rounded down to some significant digits.

    >>> rounded_down(0.31999), rounded_down(-0.31999), rounded_down(0.0), rounded_down(1e-9)
    ('0.319', '−0.32', '0', '1e−9')
    """
    return _digits(_decimal(value), digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int = 3) -> str:
    """A number rounded up to some significant digits.

    >>> rounded_up(0.3111), rounded_up(-0.31999), rounded_up(12345.0)
    ('0.312', '−0.319', '12400')
    """
    return _digits(_decimal(value), digits, ROUND_CEILING)


def rounded(value: float, digits: int = 5) -> str:
    """A number rounded to some significant digits: never for bounds.

    >>> rounded(0.0123456789), rounded(3.0), rounded(-1.5), rounded(float("inf"))
    ('0.012346', '3', '−1.5', 'infinite')
    """
    return "infinite" if math.isinf(value) else _digits(_decimal(value), digits, ROUND_HALF_EVEN)


def distance_text(low: float, high: float, digits: int = 5) -> str:
    """Bounds of the distance of a nearest violation, rounded outward unless they are tight; infinite: there is none.

    >>> distance_text(math.inf, math.inf), distance_text(0.25, math.inf), distance_text(0.25, 0.5)
    ('none', 'not below 0.25', '0.25 to 0.5')
    >>> distance_text(0.25, 0.25), distance_text(0.0, math.inf)
    ('0.25', 'not known')
    """
    if math.isinf(low):
        return "none"
    if math.isinf(high):
        return f"not below {rounded_down(low, digits)}" if low > 0.0 else "not known"
    is_tight = high - low <= 1e-5 * high
    return rounded(high, digits) if is_tight else f"{rounded_down(low, digits)} to {rounded_up(high, digits)}"


ON_BORDER = 1e-6
"""A margin of less than this is that of a point on the decision boundary."""


def margin_text(value: float) -> str:
    """A margin for readers: digits of rounding errors say nothing.

    >>> margin_text(-1.0878e-8), margin_text(0.25), margin_text(-2.5e-5)
    ('0, on the decision boundary', '0.25', '−0.000025')
    """
    return "0, on the decision boundary" if abs(value) < ON_BORDER else rounded(value)


def number_text(value: float) -> str:
    """A number with five significant digits in ASCII, for the terminal: users can paste it into a command.

    >>> number_text(0.0123456789), number_text(-3.0), number_text(4e-13)
    ('0.012346', '-3', '4e-13')
    """
    return f"{value:.5g}"


def counted(count: int, word: str, words: str | None = None) -> str:
    """A count with its noun.

    >>> counted(1, "region"), counted(1200, "region"), counted(2, "box", "boxes")
    ('1 region', '1,200 regions', '2 boxes')
    """
    return f"{count:,} {word if count == 1 else words or f'{word}s'}"


def class_text(name: str, number: int) -> str:
    """A class by name, and by number if the name differs from it.

    >>> class_text("7", 7), class_text("Sneaker", 7)
    ('7', 'Sneaker (class 7)')
    """
    return name if name == str(number) else f"{name} (class {number})"


def plain_name(name: str) -> str:
    """The name of a parameter without its unit."""
    return name.partition(" [")[0] if name.endswith("]") else name


def unit_of(name: str) -> str:
    """The unit in the name of a parameter, after a blank; empty if it has none, or is a factor."""
    has_unit = " [" in name and name.endswith("]") and not is_factor(name)
    return f" {name.partition(' [')[2].removesuffix(']')}" if has_unit else ""


def is_factor(name: str) -> bool:
    """Whether people write and read a parameter as the factor 1 + theta, which its name states like a unit."""
    return name.endswith(f" [{FACTOR}]")


def shown_value(name: str, theta: float) -> float:
    """The number that people read for a theta of the named parameter.

    >>> shown_value("scale [×]", -0.25), shown_value("brightness", -0.25)
    (0.75, -0.25)
    """
    return theta + shown_at_zero(name)


def read_value(name: str, shown: float) -> float:
    """The theta of a number that people write for the named parameter.

    >>> read_value("scale [×]", 0.75), read_value("brightness", 0.75)
    (-0.25, 0.75)
    """
    return shown - shown_at_zero(name)


def shown_text(name: str, theta: float, digits: int = 5) -> str:
    """The number of `shown_value`, rounded.

    >>> shown_text("scale [×]", 0.0512345, 3), shown_text("brightness", -0.25)
    ('1.05', '−0.25')
    """
    return rounded(shown_value(name, theta), digits)


def shown_at_zero(name: str) -> float:
    """The number that people read where theta is zero."""
    return 1.0 if is_factor(name) else 0.0


def named_theta(names: Sequence[str], theta: Sequence[float]) -> str:
    """A theta with the names of its parameters, rounded to five digits.

    >>> named_theta(["brightness", "translation right [px]"], [-0.25, 1.2345678])
    'brightness = −0.25, translation right ≈ 1.2346 px'
    """
    parts = []
    for name, own in zip(names, theta, strict=True):
        value = shown_value(name, own)
        text = rounded(value)
        sign = "=" if float(text.replace(MINUS, "-")) == value else "≈"
        parts.append(f"{plain_name(name)} {sign} {text}{unit_of(name)}")
    return ", ".join(parts)


def caption_theta(theta: np.ndarray, widths: np.ndarray, names: Sequence[str] = ()) -> str:
    """A theta (d,) for captions, rounded to a ten-thousandth of the widths (d,) of the domain or finer.

    Parameters that `names` calls factors are shown as such.

    Three parameters are rounded to about a thousandth, four to a hundredth: more digits do not fit.

    >>> caption_theta(np.array([0.3]), np.ones(1)), caption_theta(np.array([1.96e-12, 1]), np.array([1, 3.0]))
    ('θ = 0.3', 'θ ≈ (0, 1)')
    >>> caption_theta(np.array([0.12345, 0.5, 0.98765]), np.array([1.0, 1.0, 0.9]))
    'θ ≈ (0.123, 0.5, 0.988)'
    """
    theta = theta + np.array([shown_at_zero(name) for name in names] or 0.0)
    scales = [math.log10(width) for width in widths]
    decimals = [4 - math.floor(scale) if len(theta) < 3 else 6 - len(theta) - math.ceil(scale) for scale in scales]
    values = [round(float(value), places) for value, places in zip(theta, decimals, strict=True)]
    numbers = ", ".join(f"{value + 0.0:.10g}".replace("-", MINUS) for value in values)
    return f"θ {'=' if values == theta.tolist() else '≈'} {numbers if len(theta) == 1 else f'({numbers})'}"


def comparison(value: float, delta: float) -> str:
    """An inconsistency against δ; if both would print the same digits, only the larger one is named.

    >>> comparison(3.0, 3.0), comparison(3.00012, 3.0), comparison(3.00000012, 3.0)
    ('3 ≤ δ = 3', '3.0001 > δ = 3', 'just > δ = 3')
    """
    if math.isnan(value):
        return "unknown"
    sign = "≤" if value <= delta else ">"
    for digits in (4, 5, 6):
        left, right = rounded(value, digits), rounded(delta, digits)
        if value == delta or left != right:
            return f"{left} {sign} δ = {right}"
    return f"just {sign} δ = {rounded(delta, 4)}"


def total_seconds(seconds: Mapping[str, float]) -> float | None:
    """The time of a run, given by phase; None if it is unknown. Earlier versions stored it as `total`.

    >>> total_seconds({"walk": 1.0, "labels": 0.5}), total_seconds({"total": 2.0, "engine": 1.5}), total_seconds({})
    (1.5, 2.0, None)
    """
    return seconds.get("total", sum(seconds.values())) if seconds else None


def sentence(text: str) -> str:
    """A text with a capital letter and a full stop."""
    return text[0].upper() + text[1:] + "."


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))


def _percent(share: float, rounding: str) -> str:
    share = min(max(share, 0.0), 1.0)  # sums of shares carry rounding errors
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    percent = 100 * _decimal(share)
    if percent < Decimal("0.01"):
        return f"{_digits(percent, 2, rounding)} %"
    text = percent.quantize(Decimal("0.01"), rounding=rounding)
    return f"{100 if text == 100 else text} %"


def _digits(value: Decimal, digits: int, rounding: str) -> str:
    value = Context(prec=digits, rounding=rounding).create_decimal(value)
    if not value:
        return "0"
    exponent = value.adjusted()
    # Exponents only for very small and very large numbers.
    is_plain = -6 <= exponent < 9
    text = f"{value if is_plain else value.scaleb(-exponent):f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return (text if is_plain else f"{text}e{exponent}").replace("-", MINUS)
