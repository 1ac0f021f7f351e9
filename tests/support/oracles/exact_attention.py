"""Attention maps and their distances in exact rationals, for tiny networks; norms of L2 to 60 digits.

Gradients come from `exact_numbers`, filters and transport from `attention_by_definition`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from math import floor

import numpy as np
from flint import fmpq

from steadygaze.compound import Compound
from steadygaze.perturbation import Brightness, Patch, Perturbed, Translate
from support.oracles.attention_by_definition import Question, shifted, transported
from support.oracles.exact_numbers import Dyadic, ExactChain, as_fractions, as_rationals, to_decimal


@dataclass(frozen=True, eq=False)
class ExactAttention:
    """Maps and their distances of a compound network, in exact numbers."""

    compound: Compound
    question: Question

    @cached_property
    def chain(self) -> ExactChain:
        """The classifier."""
        return ExactChain.of(self.compound.chain)

    def maps(self, bits: Sequence[np.ndarray]) -> np.ndarray:
        """The filtered maps (K', C, H, W) under a pattern of the classifier, one boolean array per layer."""
        key = pattern_key(bits)
        if key not in self._maps:
            gradients = self.chain.gradients(bits).reshape(-1, *self.compound.perturbed.x0.shape)
            self._maps[key] = self.question.of(gradients)
        return self._maps[key]

    @cached_property
    def _maps(self) -> dict[bytes, np.ndarray]:
        return {}

    @cached_property
    def original(self) -> np.ndarray:
        """The filtered maps of the unperturbed image."""
        return self.maps(self.chain.forward(Dyadic.of(self.compound.perturbed.x0.ravel()))[0])

    def difference(self, bits: Sequence[np.ndarray], theta: Sequence[Fraction]) -> np.ndarray:
        """Actual minus expected maps under a pattern at theta."""
        return self.maps(bits) - transported(self.original, self.compound.perturbed, theta)

    def inconsistency(self, bits: Sequence[np.ndarray], theta: Sequence[Fraction]) -> Decimal:
        """ai under a pattern at theta, to 60 digits."""
        return norm(self.difference(bits, theta), self.question.dist)


def pattern_key(bits: Sequence[np.ndarray]) -> bytes:
    """A pattern as the key of a dictionary."""
    return b"/".join(np.asarray(layer, dtype=bool).tobytes() for layer in bits)


def exact_image(perturbed: Perturbed, theta: Sequence[Fraction] | Sequence[fmpq]) -> np.ndarray:
    """The image (C, H, W) at theta in rationals of its type: clip(x0 + the sum of the changes, 0, 1)."""
    image = unclipped_image(perturbed, theta)
    return np.minimum(np.maximum(image, 0 * image.flat[0]), 0 * image.flat[0] + 1)


def unclipped_image(perturbed: Perturbed, theta: Sequence[Fraction] | Sequence[fmpq]) -> np.ndarray:
    """x0 + the sum of the changes (C, H, W) at theta in rationals of its type."""
    original = (as_rationals if isinstance(theta[0], fmpq) else as_fractions)(perturbed.x0)
    image = original.copy()
    for perturbation, value in zip(perturbed.perturbations, theta, strict=True):
        if isinstance(perturbation, Translate):
            whole, share = floor(value), value - floor(value)
            moved = [
                shifted(
                    original,
                    step * (perturbation.dx > 0) - step * (perturbation.dx < 0),
                    step * (perturbation.dy > 0) - step * (perturbation.dy < 0),
                )
                for step in (whole, whole + 1)
            ]
            image = image + moved[0] + share * (moved[1] - moved[0]) - original
        elif isinstance(perturbation, Patch):
            rows, columns = (
                slice(perturbation.y, perturbation.y + perturbation.h),
                slice(perturbation.x, perturbation.x + perturbation.w),
            )
            image[:, rows, columns] += perturbation.tone * value
        else:
            image = image + (value if isinstance(perturbation, Brightness) else -value)
    return image


def norm(difference: np.ndarray, dist: str) -> Decimal:
    """The sum over the classes of the norm of a difference (K', …) of rationals."""
    with localcontext() as context:
        context.prec = 60
        total = Decimal(0)
        for row in difference.reshape(len(difference), -1).tolist():
            if dist == "l1":
                total += to_decimal(sum(map(abs, row), Fraction(0)))
            else:
                total += to_decimal(sum((d * d for d in row), Fraction(0))).sqrt()
        return total
