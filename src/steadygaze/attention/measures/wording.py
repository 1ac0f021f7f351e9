"""Properties of attention in words and on the report's page: names, thresholds, clauses of sentences, a script."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from ...words import ALL_DIGITS, rounded, rounded_down, spaced_percent

GRADIENT = "gradient"
NONE = "no attention: the maps are zero everywhere"
ZERO_THERE = "the maps are zero everywhere there"
TOO_LARGE = 2.5
"""For properties other than the distance, a loss above this means a map without attention."""


class Stated(NamedTuple):
    """A threshold as an answer states it.

    text: the threshold as given. limit: the largest loss that it allows. base: the base of relative thresholds. maps:
    the explanation method.
    """

    text: str
    limit: float
    base: float = 1.0
    maps: str = GRADIENT

    @property
    def is_relative(self) -> bool:
        """Whether the threshold is a percentage of the base."""
        return self.text.endswith("%")

    @property
    def percent(self) -> str:
        """A relative threshold with a space before the percent sign."""
        return spaced_percent(self.text)

    def of_maps(self, what: str) -> str:
        """A quantity of the maps as a noun phrase.

        >>> Stated("0.5", 0.5).of_maps("mass"), Stated("0.5", 0.5, maps="smoothgrad:n=4").of_maps("mass")
        ("the gradient's mass", 'the mass of the smoothgrad maps')
        """
        method = self.maps.partition(":")[0]
        return f"the gradient's {what}" if method == GRADIENT else f"the {what} of the {method} maps"


class Clauses(NamedTuple):
    """The clauses for kept and for lost attention, each with its own subject."""

    kept: str
    lost: str


class Wording(ABC):
    """The words of a property of attention; the defaults fit a share or cosine that must reach a threshold.

    symbol: the threshold's symbol. noun: the number that is compared with the threshold. loss_noun: the loss. asks: the
    question that the property answers about a map. threshold_axis: the threshold as the label of a curve's axis.
    page_form: how the page writes the number, see `valueText` in panel.js. page_script: JavaScript that defines
    `SgMeasure` with `loss(actual, expected, weights, facts)`, the equivalent of `losses` for one theta.
    """

    symbol: ClassVar[str]
    noun: ClassVar[str]
    loss_noun: ClassVar[str]
    asks: ClassVar[str]
    threshold_axis: ClassVar[str] = "the threshold"
    page_form: ClassVar[str] = "number"
    page_script: ClassVar[str]

    @property
    def loss_limit(self) -> str:
        """The symbol of the largest loss allowed."""
        return f"1 − {self.symbol}"

    @property
    def symbol_word(self) -> str:
        """The symbol of the threshold, or "threshold" if it has none."""
        return self.symbol if len(self.symbol) == 1 else "threshold"

    @property
    def thresholds_word(self) -> str:
        """The symbol or the plural noun, as it follows "at other"."""
        return self.symbol if len(self.symbol) == 1 else "thresholds"

    @property
    def short(self) -> Clauses:
        """Kept and lost in as few words as possible."""
        return Clauses(f"{self.noun} ≥ {self.symbol}", f"{self.noun} < {self.symbol}")

    @abstractmethod
    def clauses(self, stated: Stated) -> Clauses:
        """Kept and lost at a threshold, as parts of sentences."""

    def left_text(self, stated: Stated, before: float | None, after: float) -> str:
        """How much attention is left at a theta where it is lost; before and after: the loss at zero and at theta."""
        return ZERO_THERE if after > TOO_LARGE else f"the {self.noun} is {self.value_text(after)} there"

    def went_text(self, place: str) -> str:
        """Where the attention has gone; place: relative to the object."""
        return f"more of it than before lies {place}"

    def number(self, value: float, digits: int = 4) -> str:
        """A value of the compared number."""
        return rounded(value, digits)

    def threshold_words(self, stated: Stated, digits: int = ALL_DIGITS) -> str:
        """The threshold as a number, with its base if it is relative."""
        return self.number(1.0 - stated.limit, digits)

    def relative_notes(self, stated: Stated) -> tuple[str, ...]:
        """A relative threshold as an absolute number; empty if its base does not depend on the network."""
        return ()

    def reached_text(self, value: float) -> str:
        """The strictest threshold that is proved to hold, rounded down."""
        return f"{self.symbol} = {rounded_down(value, 4)}"

    def kept_row(self, stated: Stated) -> str:
        """The meaning of AR at a threshold, for legends."""
        return f"{self.short.kept} = {self.number(1.0 - stated.limit)}"

    def stated_text(self, stated: Stated, digits: int = 4) -> str:
        """The threshold with its symbol."""
        return f"{self.symbol} = {self.threshold_words(stated, digits)}"

    def value_text(self, loss: float, digits: int = 4) -> str:
        """A loss as the number that is compared with the threshold."""
        if math.isnan(loss):
            return "unknown"
        return NONE if loss > TOO_LARGE else self.number(1.0 - loss, digits)

    def compared(self, loss: float, limit: float) -> str:
        """The number at one theta against the threshold; only the threshold if both would print the same."""
        if math.isnan(loss) or loss > TOO_LARGE:
            return self.value_text(loss)
        sign = "≥" if loss <= limit else "<"
        for digits in (4, 5, 6):
            left, right = self.number(1.0 - loss, digits), self.number(1.0 - limit, digits)
            if loss == limit or left != right:
                return f"{left} {sign} {self.symbol} = {right}"
        return f"just {sign} {self.symbol} = {self.number(1.0 - limit)}"
