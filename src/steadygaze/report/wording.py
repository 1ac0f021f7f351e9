"""Words and numbers of figures and reports: counts, shares, thetas, titles. Bounds are rounded outward."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from ..engines.refine.boxes import State
from ..labels import Property, Verdict
from ..question import Question
from ..results.result import Result

MINUS = "−"
ALL_DIGITS = 17
"""Enough significant digits to write any float exactly: for thresholds, which people chose."""
SMALL = 0.0005
"""Shares that differ by less than this are written as one number."""

KEPT_WORDS = {
    Property.CR: "the label is kept",
    Property.AR: "the attention is kept",
    Property.BOTH: "label and attention are kept",
}
PROPERTIES = {Property.CR: "label", Property.AR: "attention", Property.BOTH: "label and attention"}
OUTCOMES = {Verdict.ROBUST: "proved robust", Verdict.NOT_ROBUST: "not robust", Verdict.UNDECIDED: "undecided"}


def percent(share: float) -> str:
    """A share in percent with one decimal; only exactly 0 and 1 are written as 0 % and 100 %.

    >>> percent(0.1236), percent(1.0), percent(0.9999), percent(1e-9), percent(0.0)
    ('12.4 %', '100 %', '> 99.9 %', '< 0.1 %', '0 %')
    """
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    if share < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if share > 0.9995 else f"{100 * share:.1f} %"


def percent_between(low: float, high: float) -> str:
    """A share that is known between two bounds; bounds that look the same are written once.

    >>> percent_between(0.25, 0.25 + 1e-12), percent_between(0.2496, 0.2504), percent_between(0.25, 0.5)
    ('25.0 %', '25.0 %', '25.0 to 50.0 %')
    """
    if high - low < 0.0005 or percent(low) == percent(high):
        return percent(low if low > 0.0 else high)
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def number(value: float, digits: int = 4) -> str:
    """A number with so many significant digits, without exponents where people do not expect them.

    >>> number(11.0342), number(12345.6), number(0.000123), number(-0.0)
    ('11.03', '12346', '0.000123', '0')
    """
    return f"{value:.0f}" if 10**digits <= abs(value) < 1e6 else f"{value + 0.0:.{digits}g}"


def signed(value: float) -> str:
    """A number of three digits for captions, with a real minus sign.

    >>> signed(-0.12345), signed(2.0)
    ('−0.123', '2')
    """
    return number(float(value), 3).replace("-", MINUS)


def counted(count: int, word: str, words: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "region"), counted(1200, "region"), counted(2, "box", "boxes")
    ('1 region', '1,200 regions', '2 boxes')
    """
    return f"{count:,} {word if count == 1 else words or f'{word}s'}"


def comparison(value: float, delta: float) -> str:
    """An inconsistency against δ; where their digits would look the same, only which is larger.

    >>> comparison(3.0, 3.0), comparison(3.00012, 3.0), comparison(3.00000012, 3.0)
    ('3 ≤ δ = 3', '3.0001 > δ = 3', 'just > δ = 3')
    """
    sign = "≤" if value <= delta else ">"
    for digits in (4, 5, 6):
        left, right = number(value, digits), number(delta, digits)
        if value == delta or left != right:
            return f"{left} {sign} δ = {right}"
    return f"just {sign} δ = {number(delta)}"


def theta_text(theta: np.ndarray, widths: np.ndarray) -> str:
    """A theta (d,) as it stands in captions, rounded to a ten-thousandth of the widths (d,) of the domain or finer.

    Three parameters are rounded to about a thousandth, four to a hundredth: more does not fit.

    >>> theta_text(np.array([0.3]), np.ones(1)), theta_text(np.array([1.96e-12, 1]), np.array([1, 3.0]))
    ('θ = 0.3', 'θ ≈ (0, 1)')
    >>> theta_text(np.array([0.12345, 0.5, 0.98765]), np.array([1.0, 1.0, 0.9]))
    'θ ≈ (0.123, 0.5, 0.988)'
    """
    scales = [math.log10(width) for width in widths]
    decimals = [4 - math.floor(scale) if len(theta) < 3 else 6 - len(theta) - math.ceil(scale) for scale in scales]
    rounded = [round(float(value), places) for value, places in zip(theta, decimals, strict=True)]
    numbers = ", ".join(f"{value + 0.0:.10g}".replace("-", "−") for value in rounded)
    return f"θ {'=' if rounded == theta.tolist() else '≈'} {numbers if len(theta) == 1 else f'({numbers})'}"


def rounded_down(value: float, digits: int = 3) -> str:
    """A number with so many significant digits that is not above the given one.

    >>> rounded_down(0.31999), rounded_down(-0.31999), rounded_down(0.0), rounded_down(1e-9)
    ('0.319', '−0.32', '0', '1e−9')
    """
    return _digits(_decimal(value), digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int = 3) -> str:
    """A number with so many significant digits that is not below the given one.

    >>> rounded_up(0.3111), rounded_up(-0.31999), rounded_up(12345.0)
    ('0.312', '−0.319', '12400')
    """
    return _digits(_decimal(value), digits, ROUND_CEILING)


def rounded(value: float, digits: int = 5) -> str:
    """A number to the nearest with so many significant digits: for numbers that are no bounds.

    >>> rounded(0.0123456789), rounded(3.0), rounded(-1.5), rounded(float("inf"))
    ('0.012346', '3', '−1.5', 'infinite')
    """
    return "infinite" if math.isinf(value) else _digits(_decimal(value), digits, ROUND_HALF_EVEN)


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
    low, high = (
        f"{100 * share:.0f} %"
        if share in (0.0, 1.0)
        else f"{(100 * _decimal(share)).quantize(Decimal('0.0001'), rounding=rounding)} %"
        for share, rounding in zip(bounds, (ROUND_FLOOR, ROUND_CEILING), strict=True)
    )
    return low, high


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))


def _percent(share: float, rounding: str) -> str:
    percent = 100 * _decimal(share)
    # Below one tenth of a percent two digits tell more than one decimal.
    digits = 2 if percent < Decimal("0.1") else max(1, percent.adjusted() + 2)
    return f"{_digits(percent, digits, rounding)} %"


def _digits(value: Decimal, digits: int, rounding: str) -> str:
    value = Context(prec=digits, rounding=rounding).create_decimal(value)
    if not value:
        return "0"
    exponent = value.adjusted()
    # Exponents only where people expect them.
    is_plain = -6 <= exponent < 9
    text = f"{value if is_plain else value.scaleb(-exponent):f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return (text if is_plain else f"{text}e{exponent}").replace("-", MINUS)


def subject_text(question: Question) -> str:
    """Model, image and label."""
    return f"{question.model_name} on {question.image_name}, label {question.names[question.label]}"


def verdict_text(property: Property, verdict: Verdict) -> str:
    """The outcome of a question.

    >>> verdict_text(Property.BOTH, Verdict.NOT_ROBUST)
    'label and attention not robust'
    """
    return f"{PROPERTIES[property]} {OUTCOMES[verdict]}"


def attention_text(question: Question) -> str:
    """The filter, distance and classes with which attention maps are compared."""
    options, chosen = question.attention, question.attention.classes
    names = None if chosen is None else [question.names[j] for j in chosen]
    return comparison_text(options.filter.name, options.distance.name, names)


def comparison_text(filter: str, distance: str, classes: Sequence[str] | None) -> str:
    """How attention maps are compared; None stands for all classes.

    >>> comparison_text("abs", "l2", None), comparison_text("mean", "l1", ["3", "8"])
    ('filter abs, distance l2, all classes', 'filter mean, distance l1, classes 3, 8')
    """
    words = "all classes" if classes is None else f"class{'' if len(classes) == 1 else 'es'} {', '.join(classes)}"
    return f"filter {filter}, distance {distance}, {words}"


def delta_text(result: Result) -> str:
    """The threshold, and what it refers to where it is relative."""
    delta = f"δ = {number(result.answer.delta)}"
    if result.delta.is_relative:
        delta += f" ({result.delta} of the original map's size {number(result.question.map_size)})"
    return delta


def extent_text(result: Result) -> str:
    """The regions and boxes that a figure rests on; a partial result says why it is one."""
    regions = counted(result.region_count, "region")
    found = result.tiling.boxes
    if found is not None:
        boxes = counted(int((found.state == State.BOUNDED).sum()), "box", "boxes")
        exact = f" and {regions}" if result.region_count else ""
        stopped = "" if result.is_complete else f" (ended by {result.stopped})"
        undecided = result.areas["undecided"][0]
        rest = f", {percent(undecided)} undecided" if undecided > 0.0 else ""
        return f"refinement{stopped}: {boxes} decided by bounds{exact}{rest}"
    if result.is_complete:
        return f"map of {regions}"
    share = percent(1.0 - share_not_reached(result))
    return f"partial map ({result.stopped}): {regions} on {share} of the domain"


def share_not_reached(result: Result) -> float:
    """The share of the domain that a partial map does not cover."""
    missing = 1.0 - float(result.answer.joint.polytopes.volumes.sum())
    return missing if missing > 1e-9 and not result.is_complete else 0.0
