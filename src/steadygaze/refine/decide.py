"""What enclosures say: whether label and attention are kept on a box, and what is left to be asked of it."""

from dataclasses import dataclass

import numpy as np

from ..properties.joint import Kept
from ..verdict import Property


def label_codes(margin: np.ndarray) -> np.ndarray:
    """`Kept` codes (B,) of the label for enclosures (B, 2) of the margin."""
    return np.where(margin[:, 0] > 0.0, Kept.YES, np.where(margin[:, 1] < 0.0, Kept.NO, Kept.UNKNOWN))


def attention_codes(inconsistency: np.ndarray, delta: float) -> np.ndarray:
    """`Kept` codes (B,) of the attention for enclosures (B, 2) of the inconsistency."""
    is_kept, is_lost = inconsistency[:, 1] <= delta, inconsistency[:, 0] > delta
    return np.where(is_kept, Kept.YES, np.where(is_lost, Kept.NO, Kept.UNKNOWN))


@dataclass(frozen=True)
class Question:
    """What a refinement asks of every box.

    `is_verdict`: only whether the property holds, so that a box that violates one part of it is decided.

    >>> question = Question(Property.BOTH, 3.0)
    >>> question.is_decided(np.array([[1.0, 2.0]]), np.array([[0.0, 4.0]])).tolist()
    [False]
    """

    wanted: Property
    delta: float
    is_verdict: bool = False

    @property
    def asks_label(self) -> bool:
        """Whether the label matters."""
        return self.wanted is not Property.AR

    @property
    def asks_attention(self) -> bool:
        """Whether the attention matters."""
        return self.wanted is not Property.CR

    def needs_attention(self, margin: np.ndarray, inconsistency: np.ndarray) -> np.ndarray:
        """Where (B,) the attention is asked for and not known yet."""
        if not self.asks_attention:
            return np.zeros(len(margin), dtype=bool)
        return (attention_codes(inconsistency, self.delta) == Kept.UNKNOWN) & ~self._is_settled(margin, inconsistency)

    def is_decided(self, margin: np.ndarray, inconsistency: np.ndarray) -> np.ndarray:
        """Where (B,) everything that is asked for is known."""
        label, attention = label_codes(margin), attention_codes(inconsistency, self.delta)
        is_known = np.ones(len(margin), dtype=bool)
        if self.asks_label:
            is_known &= label != Kept.UNKNOWN
        if self.asks_attention:
            is_known &= attention != Kept.UNKNOWN
        return is_known | self._is_settled(margin, inconsistency)

    def is_violated(self, margin: np.ndarray, inconsistency: np.ndarray) -> np.ndarray:
        """Where (B,) the property is violated everywhere on the box."""
        is_violated = np.zeros(len(margin), dtype=bool)
        if self.asks_label:
            is_violated |= label_codes(margin) == Kept.NO
        if self.asks_attention:
            is_violated |= attention_codes(inconsistency, self.delta) == Kept.NO
        return is_violated

    def _is_settled(self, margin: np.ndarray, inconsistency: np.ndarray) -> np.ndarray:
        return self.is_violated(margin, inconsistency) & self.is_verdict
