"""Whether attention is kept, in exact rationals and by the words of each property; shares no code with the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import fmpq

from support.oracles.attention_by_definition import Question, transported
from support.oracles.exact_attention import ExactAttention, exact_image, pattern_key
from support.oracles.exact_numbers import Dyadic, as_rationals, rational

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
        mask = None if options.mask is None else as_rationals(options.mask.weights)
        return cls(ExactAttention(result.question.compound, plain), options.measure.name, threshold, mask)

    def bits_at(self, theta: Sequence[fmpq]) -> list[np.ndarray]:
        """The classifier's pattern at a theta."""
        image = exact_image(self.attention.compound.perturbed, theta)
        return self.attention.chain.forward(Dyadic.of(image.ravel()))[0]

    def is_kept_at(self, theta: Sequence[Fraction]) -> bool:
        """Whether attention is kept at a theta, under the pattern there."""
        return self.is_kept(self.bits_at([rational(value) for value in theta]), theta)

    def is_kept(self, bits: Sequence[np.ndarray], theta: Sequence[Fraction]) -> bool:
        """Whether attention is kept at a theta, under a pattern."""
        perturbed, place = self.attention.compound.perturbed, [rational(value) for value in theta]
        key = pattern_key(bits)
        if key not in self._actual:
            self._actual[key] = as_rationals(self.attention.maps(bits))
        actual, expected = self._actual[key], transported(self._original, perturbed, place)
        weights = None if self.mask is None else transported(self.mask, perturbed, place)
        return {"object": self._object, "pointing": self._pointing, "alike": self._alike, "topk": self._topk}[
            self.name
        ](actual, expected, weights)

    @cached_property
    def _actual(self) -> dict[bytes, np.ndarray]:
        return {}

    @cached_property
    def _original(self) -> np.ndarray:
        return as_rationals(self.attention.original)

    def _object(self, actual, expected, weights) -> bool:
        mass = np.abs(actual).sum(axis=(0, 1))
        total = mass.sum()
        return total > 0 and (mass * weights).sum() >= rational(self.threshold) * total

    def _pointing(self, actual, expected, weights) -> bool:
        sizes = np.abs(actual).max(axis=(0, 1))
        largest = sizes.max()
        return largest > 0 and any(
            sizes[place] == largest and 2 * weights[place] >= 1 for place in np.ndindex(sizes.shape)
        )

    def _alike(self, actual, expected, weights) -> bool:
        across = (actual * expected).sum()
        sizes = (actual * actual).sum() * (expected * expected).sum()
        return sizes > 0 and across > 0 and across * across >= rational(self.threshold) ** 2 * sizes

    def _topk(self, actual, expected, weights) -> bool:
        k, share = self.threshold
        if not np.abs(actual).sum():
            return False
        return len(self._strongest(actual, k) & self._strongest(expected, k)) >= rational(share * k)

    @staticmethod
    def _strongest(maps: np.ndarray, k: int) -> set[int]:
        strengths = np.abs(maps).sum(axis=(0, 1)).ravel()
        return set(sorted(range(len(strengths)), key=lambda place: (-strengths[place], place))[:k])

    @cached_property
    def axis(self) -> int | None:
        """The parameter that moves the image."""
        return self.attention.compound.perturbed.moving_axis
