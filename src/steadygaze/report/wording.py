"""Words and numbers as people read them in a figure: shares, thetas, names that come from users. Draws nothing."""

import math
from functools import cache

import numpy as np
from matplotlib import font_manager

MAIN_FONT = "DejaVu Sans"
OTHER_FONTS = (
    "Noto Sans CJK JP", "IPAexGothic", "IPAGothic", "Hiragino Sans", "Yu Gothic", "MS Gothic", "Microsoft YaHei",
    "PingFang SC", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Malgun Gothic", "Noto Sans", "Arial Unicode MS",
)  # fmt: skip
"""Fonts with characters that the main one does not have; those that the machine has are used."""


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


def printable(text: str) -> str:
    """Text with what cannot be shown replaced: control characters by spaces, characters without a glyph by ▯.

    >>> printable("a\\tb\\x00c"), printable("a$b_$.onnx")
    ('a b c', 'a$b_$.onnx')
    """
    return "".join(_printable_character(character) for character in text)


@cache
def _printable_character(character: str) -> str:
    if not character.isprintable():
        return "▯" if "\ud800" <= character <= "\udfff" else " "
    if any(ord(character) in _glyphs(family) for family in font_families()):
        return character
    return "▯"


@cache
def font_families() -> tuple[str, ...]:
    """The main font, then those of `OTHER_FONTS` that are installed."""
    installed = set(font_manager.fontManager.get_font_names())
    return (MAIN_FONT, *(name for name in OTHER_FONTS if name in installed))


@cache
def _glyphs(family: str) -> frozenset[int]:
    font = font_manager.get_font(font_manager.findfont(family))
    return frozenset(font.get_charmap())
