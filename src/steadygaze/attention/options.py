"""How maps are judged: attention method, filter, the property asked of them, its distance or mask, classes."""

from dataclasses import dataclass

import numpy as np

from .distances import Distance
from .filters import IDENTITY, Filter
from .masks import Mask
from .measures import Measure
from .measures.distance import DISTANCE
from .methods import GRADIENT, GradientMethod


@dataclass(frozen=True)
class AttentionOptions:
    """Which maps are judged and how: filter, the classes to sum over (None: all), method, property and mask.

    distance: the norm of differences between maps, and of their errors. Properties other than the distance have a norm
    of their own.
    """

    filter: Filter = IDENTITY
    distance: Distance = Distance.L2
    classes: tuple[int, ...] | None = None
    method: GradientMethod = GRADIENT
    measure: Measure = DISTANCE
    mask: Mask | None = None

    @property
    def largest_factor(self) -> float:
        """The most that a method multiplies a gradient by, at any image with pixels in [0, 1]; 1 if it does not."""
        baseline = self.method.factor_baseline
        return 1.0 if baseline is None else max(abs(baseline), abs(1.0 - baseline))

    def finish(self, gradients: np.ndarray, images: np.ndarray) -> np.ndarray:
        """Filtered maps (…, K', C, H, W), given the gradients of the same shape at images (…, C, H, W)."""
        baseline = self.method.factor_baseline
        return self.filter(gradients if baseline is None else gradients * (images - baseline)[..., None, :, :, :])

    def chosen(self, count: int) -> np.ndarray:
        """The classes as an index array, for a network with `count` logits."""
        return np.arange(count) if self.classes is None else np.array(self.classes)

    def size(self, maps: np.ndarray) -> float:
        """The norms of filtered maps (K', C, H, W), summed over the classes: the size of the original map, or ai."""
        return float(sum(self.distance.size(part) for part in maps))

    def losses(self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The losses (B,) of filtered maps (B, K', C, H, W) and expected maps; weights (B or 1, H, W) of the mask."""
        return self.measure.losses(actual, expected, weights, self.distance)

    def loss(self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None) -> float:
        """The loss of filtered maps (K', C, H, W); weights (H, W) of the mask."""
        return float(self.losses(actual[None], expected[None], None if weights is None else weights[None])[0])

    def targets(self, count: int) -> np.ndarray:
        """Weights (K', A) of the network's aims, for `count` logits: maps are made of the gradients of these sums."""
        return self.method.targets(count)[self.chosen(count)]

    def total_size(self, error: np.ndarray) -> float:
        """A bound on an error of maps (K', pixels) after the filter, summed over the classes."""
        order, largest = self.distance.value, float(np.abs(error).max(initial=0.0))
        if largest == 0.0:
            return 0.0
        if not np.isfinite(largest):
            return np.inf
        # Scaled first: squares may underflow or overflow.
        sizes = np.linalg.norm(error / largest, ord=order, axis=1).sum() * (1.0 + 1e-9)
        return float(sizes) * largest * self.filter.lipschitz(order)
