"""A question as plain data: domain, model, image, property of attention, and notes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from .attention.asking import AttentionFacts
from .words import shown_at_zero

if TYPE_CHECKING:
    from .perturbation import Domain


class DomainFacts(Struct, frozen=True):
    """The domain: names of its parameters, their ranges in theta, and the perturbations as specs.

    shown_at_zero: the number shown for theta = 0, by parameter: 1 for a factor. Empty if it is 0 for all.
    """

    names: list[str]
    low: list[float]
    high: list[float]
    specs: list[str]
    shown_at_zero: list[float] = []

    @classmethod
    def of(cls, domain: "Domain", specs: Sequence[str]) -> "DomainFacts":
        """The domain of perturbations as plain data."""
        shown = [shown_at_zero(name) for name in domain.names]
        ends = domain.low.tolist(), domain.high.tolist()
        return cls(list(domain.names), *ends, list(specs), shown if any(shown) else [])


class ModelFacts(Struct, frozen=True):
    """The model: its name, the hash of its file, and its number of classes."""

    name: str
    sha256: str
    classes: int


class ImageFacts(Struct, frozen=True):
    """The image: its name and shape (C, H, W)."""

    name: str
    shape: list[int]


class QuestionFacts(Struct, frozen=True):
    """A question as plain data: the part that all answers share."""

    domain: DomainFacts
    model: ModelFacts
    image: ImageFacts
    attention: AttentionFacts
    notes: list[str]
