"""How attention maps are judged: explanation method, filter, property, its distance or mask, and classes."""

from dataclasses import dataclass, replace

import numpy as np

from ..network.graph import Graph
from .distances import Distance
from .filters import IDENTITY, Filter
from .masks import Mask
from .measures import Measure
from .measures.distance import DISTANCE
from .methods import GRADIENT, GradientMethod, Method
from .methods.gradcam import upsample


@dataclass(frozen=True)
class AttentionOptions:
    """Which maps are judged, and how: filter, classes to sum over (None: all), method, property and mask.

    distance: the norm of differences between maps, and of their errors. Properties other than the distance have their
    own norm. resolution (H, W): maps are resampled to it before the filter; None keeps their own.
    """

    filter: Filter = IDENTITY
    distance: Distance = Distance.L2
    classes: tuple[int, ...] | None = None
    method: Method = GRADIENT
    measure: Measure = DISTANCE
    mask: Mask | None = None
    resolution: tuple[int, int] | None = None

    def judged_on(self, image: np.ndarray, *, moves: bool) -> "AttentionOptions":
        """Set the resolution of an image (C, H, W) if masks, single pixels or moving expected maps require it."""
        channels, height, width = image.shape
        is_other = self.method.map_shape((channels, height, width))[1:] != (height, width)
        is_needed = moves or self.mask is not None or self.measure.tells_strayed
        return replace(self, resolution=(height, width)) if is_other and is_needed else self

    def map_shape(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """The shape of one judged map, for images of a shape (C, H, W)."""
        own = self.method.map_shape(shape)
        return own if self.resolution is None else (own[0], *self.resolution)

    def explained(self, graph: Graph, image: np.ndarray) -> np.ndarray:
        """Unfiltered maps (K', C, H, W) at an image, by the definition of the method."""
        found = self.method.maps(graph, image, self.chosen(graph.classes))
        return found if self.resolution is None else upsample(found, *self.resolution)

    @property
    def largest_factor(self) -> float:
        """The largest factor by which the method multiplies a gradient, for pixels in [0, 1]; 1 if it has no factor."""
        baseline = self.method.factor_baseline
        return 1.0 if baseline is None else max(abs(baseline), abs(1.0 - baseline))

    @property
    def has_sums(self) -> bool:
        """Whether curves are stored as the sums of a measure or of factored maps, not as curves of the distance."""
        return self.measure != DISTANCE or self.method.factor_baseline is not None

    def has_straight_borders(self, *, moves: bool) -> bool:
        """Whether a few numbers determine the loss on a region; moves: whether expected maps move."""
        if not self.method.changes_in_regions:
            return True
        takes_factor = self.method.factor_baseline is not None and self.measure.takes_factor(self.distance)
        return takes_factor and self.filter.is_pixelwise and not moves

    def has_enclosed_borders(self, *, moves: bool, moves_twice: bool) -> bool:
        """Whether the losses of regions are functions of a few polynomials in t, with borders that are not straight.

        moves: whether expected maps move; moves_twice: whether two parameters move them.
        """
        if not self.measure.takes_polynomials(self.distance):
            return False
        if (moves or moves_twice) and not self.measure.polynomials_move:
            return False
        if not self.method.changes_in_regions:
            return moves_twice
        if self.method.factor_baseline is None or not self.filter.is_pixelwise:
            return False
        # The filter of a moved map is not the moved map of the filter, unless nothing is filtered.
        can_move = not self.measure.uses_expected or not self.filter.steps
        return can_move if moves else not self.measure.takes_factor(self.distance)

    def finish(self, gradients: np.ndarray, images: np.ndarray) -> np.ndarray:
        """Filtered maps (…, K', C, H, W) from gradients of the same shape at images (…, C, H, W)."""
        baseline = self.method.factor_baseline
        return self.filter(gradients if baseline is None else gradients * (images - baseline)[..., None, :, :, :])

    def chosen(self, count: int) -> np.ndarray:
        """The classes as an index array, for a network with `count` logits."""
        return np.arange(count) if self.classes is None else np.array(self.classes)

    def size(self, maps: np.ndarray) -> float:
        """The norms of filtered maps (K', C, H, W), summed over classes: the size of the original maps, or ai."""
        return float(sum(self.distance.size(part) for part in maps))

    def losses(self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The losses (B,) of filtered maps (B, K', C, H, W) against expected maps; weights (B or 1, H, W): the mask."""
        return self.measure.losses(actual, expected, weights, self.distance)

    def loss(self, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None) -> float:
        """The loss of filtered maps (K', C, H, W) against expected maps; weights (H, W): the mask."""
        return float(self.losses(actual[None], expected[None], None if weights is None else weights[None])[0])

    def targets(self, count: int) -> np.ndarray:
        """Weights (K', A) of the network's aims, for `count` logits: maps are gradients of these weighted sums.

        For methods that use more than gradients, the sums are the chosen logits.
        """
        weights = self.method.targets(count) if isinstance(self.method, GradientMethod) else np.eye(count)
        return weights[self.chosen(count)]

    def total_size(self, error: np.ndarray) -> float:
        """A bound on the norm of an error of maps (K', pixels) after the filter, summed over classes."""
        order, largest = self.distance.value, float(np.abs(error).max(initial=0.0))
        if largest == 0.0:
            return 0.0
        if not np.isfinite(largest):
            return np.inf
        # Scaled first: squares may underflow or overflow.
        sizes = np.linalg.norm(error / largest, ord=order, axis=1).sum() * (1.0 + 1e-9)
        return float(sizes) * largest * self.filter.lipschitz(order)
