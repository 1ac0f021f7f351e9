"""A question as plain data: domain, model, image, what is asked of attention, and notes."""

from msgspec import Struct

from .attention.asking import AttentionFacts


class DomainFacts(Struct, frozen=True):
    """The domain: names of its parameters, their ranges in theta, and the perturbations as specs.

    shown_at_zero: what people read where theta is zero, by parameter: 1 for a factor. Empty if it is 0 for all.
    """

    names: list[str]
    low: list[float]
    high: list[float]
    specs: list[str]
    shown_at_zero: list[float] = []


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
