"""Gradients times the image in exact rationals, from layers of numbers; shares no code with the package's attention.

The network is a list of layers (W, b) with a ReLU after all but the last. Maps are (image − baseline) times the sum
over k of weight_k · scale_k · gradient at scale_k · image + offset_k.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import fmpq

from steadygaze.perturbation import Perturbed
from support.oracles.exact_attention import exact_image
from support.oracles.exact_numbers import as_rationals, rational


@dataclass(frozen=True, eq=False)
class ExactFactored:
    """Whether attention is kept: `object` (a mask and τ), or the L1 `distance` (δ) from the expected maps.

    copies: weight, scale and offset of each copy of the network; classes: those whose maps count.
    """

    layers: Sequence[tuple]
    perturbed: Perturbed
    classes: Sequence[int]
    copies: Sequence[tuple[Fraction, Fraction, Fraction]]
    baseline: Fraction
    threshold: Fraction
    mask: np.ndarray | None = None

    @cached_property
    def exact_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(as_rationals(np.array(weight)), as_rationals(np.array(bias))) for weight, bias in self.layers]

    @cached_property
    def original_gradient(self) -> np.ndarray:
        return self.gradient(as_rationals(self.perturbed.x0))

    @cached_property
    def exact_copies(self) -> list[tuple[fmpq, ...]]:
        return [tuple(map(rational, copy)) for copy in self.copies]

    @cached_property
    def exact_mask(self) -> np.ndarray | None:
        return None if self.mask is None else as_rationals(self.mask)

    def gradient(self, image: np.ndarray) -> np.ndarray:
        """The summed gradients (K', C, H, W) of all copies at an image."""
        return sum(
            weight * scale * self.own_gradient(scale * image + offset) for weight, scale, offset in self.exact_copies
        )

    def own_gradient(self, image: np.ndarray) -> np.ndarray:
        """The gradients (K', C, H, W) of the network at an image."""
        values, active = image.ravel(), []
        for weight, bias in self.exact_layers[:-1]:
            values = weight.dot(values) + bias
            active.append(values > 0)
            values = np.where(active[-1], values, 0)
        rows = self.exact_layers[-1][0][list(self.classes)]
        for (weight, _), bits in zip(self.exact_layers[-2::-1], active[::-1], strict=True):
            rows = np.where(bits, rows, 0).dot(weight)
        return rows.reshape(-1, *image.shape)

    def is_kept_at(self, theta: Sequence[Fraction]) -> bool:
        """Whether attention is kept at a theta."""
        image = exact_image(self.perturbed, [rational(value) for value in theta])
        factor, threshold = image - rational(self.baseline), rational(self.threshold)
        actual = self.gradient(image) * factor
        if self.exact_mask is None:
            return bool(np.abs(actual - self.original_gradient * factor).sum() <= threshold)
        mass = np.abs(actual).sum(axis=(0, 1))
        return bool(mass.sum() > 0 and (mass * self.exact_mask).sum() >= threshold * mass.sum())
