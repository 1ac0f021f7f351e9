"""Whether attention is kept, in exact rationals and by the words of each property; shares no code with the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from support.oracles.attention_by_definition import Question, transported
from support.oracles.exact_attention import ExactAttention, exact_image
from support.oracles.exact_numbers import Dyadic, as_fractions

Threshold = Fraction | tuple[int, Fraction] | None


@dataclass(frozen=True, eq=False)
class ExactLosses:
    """A property of attention for one compound network: `name` as in `--attention`, an absolute threshold, a mask."""

    attention: ExactAttention
    name: str
    threshold: Threshold
    mask: np.ndarray | None = None

    @classmethod
    def of(cls, result, threshold: Threshold) -> "ExactLosses":
        """The property that a result was asked for."""
        options = result.question.attention
        plain = Question(options.filter.name, "l2", options.classes)
        mask = None if options.mask is None else as_fractions(options.mask.weights)
        return cls(ExactAttention(result.question.compound, plain), options.measure.name, threshold, mask)

    def bits_at(self, theta: Sequence[Fraction]) -> list[np.ndarray]:
        """The classifier's pattern at a theta."""
        image = exact_image(self.attention.compound.perturbed, theta)
        return self.attention.chain.forward(Dyadic.of(image.ravel()))[0]

    def is_kept_at(self, theta: Sequence[Fraction]) -> bool:
        """Whether attention is kept at a theta, under the pattern there."""
        return self.is_kept(self.bits_at(theta), theta)

    def is_kept(self, bits: Sequence[np.ndarray], theta: Sequence[Fraction]) -> bool:
        """Whether attention is kept at a theta, under a pattern."""
        actual = self.attention.maps(bits)
        perturbed = self.attention.compound.perturbed
        expected = transported(self.attention.original, perturbed, theta)
        weights = None if self.mask is None else transported(self.mask, perturbed, theta)
        return {"object": self._object, "pointing": self._pointing, "alike": self._alike, "topk": self._topk}[
            self.name
        ](actual, expected, weights)

    def _object(self, actual, expected, weights) -> bool:
        mass = np.abs(actual).sum(axis=(0, 1))
        total = mass.sum()
        return total > 0 and (mass * weights).sum() >= self.threshold * total

    def _pointing(self, actual, expected, weights) -> bool:
        sizes = np.abs(actual).max(axis=(0, 1))
        largest = sizes.max()
        return largest > 0 and any(
            sizes[place] == largest and weights[place] >= Fraction(1, 2) for place in np.ndindex(sizes.shape)
        )

    def _alike(self, actual, expected, weights) -> bool:
        across = (actual * expected).sum()
        sizes = (actual * actual).sum() * (expected * expected).sum()
        return sizes > 0 and across > 0 and across * across >= self.threshold * self.threshold * sizes

    def _topk(self, actual, expected, weights) -> bool:
        k, share = self.threshold
        if not np.abs(actual).sum():
            return False
        return len(self._strongest(actual, k) & self._strongest(expected, k)) >= share * k

    @staticmethod
    def _strongest(maps: np.ndarray, k: int) -> set[int]:
        strengths = np.abs(maps).sum(axis=(0, 1)).ravel()
        return set(sorted(range(len(strengths)), key=lambda place: (-strengths[place], place))[:k])

    @cached_property
    def axis(self) -> int | None:
        """The parameter that moves the image."""
        return self.attention.compound.perturbed.moving_axis
