"""A theta where something is claimed to go wrong, with all that is needed to test the claim. Data only."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np


class Violation(StrEnum):
    """What goes wrong at a theta."""

    LABEL = "label"
    ATTENTION = "attention"
    EVIDENCE = "right label, other evidence"


@dataclass(frozen=True, eq=False)
class Claim:
    """A theta (d,) of a violation.

    bits: the classifier's pattern there, one boolean array (1, n) per ReLU layer; None where it is that of a plain
    forward pass. label_slack and attention_slack() bound how far the claimed margin and inconsistency may be off;
    infinite where the pattern is not certain. A claim is refuted only beyond them. is_exact: exact arithmetic has
    confirmed the claim at this very theta.
    """

    theta: np.ndarray
    bits: list[np.ndarray] | None
    label_slack: float
    attention_slack: Callable[[], float]
    is_exact: bool = False
