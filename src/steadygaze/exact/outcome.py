"""What exact arithmetic says about the margin on a polytope: the outcome, a witness, shares. Data only."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

import numpy as np


class Outcome(Enum):
    """What is proved of the margin on a polytope, its border included."""

    KEPT = "the margin is positive everywhere"
    LOST = "the margin is negative everywhere"
    MIXED = "the margin is positive on a part with volume and negative on another"
    TIED = "the margin vanishes somewhere and does not take both signs"
    OPEN = "not decided; the reason says why"


class Bounds(NamedTuple):
    """Exact ends of an interval that holds the true value; they are equal where it is known exactly."""

    low: Fraction
    high: Fraction


class Shares(NamedTuple):
    """Shares of the unit cube, each (low, high) in floats rounded outward; the rest of the polytope is tied."""

    kept: tuple[float, float]
    lost: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Settlement:
    """The outcome for one polytope, and what comes with it.

    `witness` is a theta (d,) in the polytope at which, exactly as the float64 numbers it is, the margin is negative;
    None if there is none, or none was found. `has_kept` and `has_lost` tell which signs are proved to occur on parts
    with volume (for TIED at most one of them; for OPEN what was found so far). `shares` belong to the polytope without
    its inflation and are there only if asked for. `reason` says why an outcome is OPEN.
    """

    outcome: Outcome
    witness: np.ndarray | None = None
    has_kept: bool = False
    has_lost: bool = False
    shares: Shares | None = None
    reason: str = ""
