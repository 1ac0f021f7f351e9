"""Encloses, over boxes, the maps of explanation methods that use more than gradients.

Each enclosure makes its own passes through the classifier, and holds over the real numbers, whatever the rounding.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from ..attention.filters import Intervals
from ..attention.methods import Method
from ..attention.methods.gradcam import GradCam, layer_names, upsample
from ..attention.methods.occlusion import Occlusion
from ..attention.options import AttentionOptions
from ..network.graph import Graph
from ..network.rewrites import anchored
from ..tolerances import LEAST, gamma, up
from .deep import DEEP
from .forms import Forms
from .passes import Passed, Readout, forward, gradients

CACHED = 1 << 20
"""The most numbers in the arrays of one batch of boxes."""


class Explained(ABC):
    """Encloses the maps of one method."""

    def __init__(self, graph: Graph, options: AttentionOptions) -> None:
        self.graph, self.options = graph, options
        self.rows = Readout.of(graph.steps[-1], np.eye(graph.classes)[options.chosen(graph.classes)])

    @property
    def is_deep(self) -> bool:
        """Whether errors are bounded by their 2-norm."""
        return len(self.graph.layers) > DEEP

    @property
    def work(self) -> int:
        """The multiplications of the passes for the maps of one image."""
        return self.options.method.passes(self.graph.input_shape) * sum(
            step.work for steps in self.graph.steps for step in steps
        )

    def maps(self, image: Forms) -> Intervals:
        """Enclosures (B, K', C, H, W) of unfiltered maps, at the resolution at which they are judged."""
        size = max(image.forms.shape[2], *map(len, self.graph.layers), 1)
        images = size * image.forms.shape[1] * self.options.method.passes(self.graph.input_shape)
        batch, boxes = max(1, CACHED // images), len(image.forms)
        parts = [self._maps(image.take_boxes(np.arange(i, min(i + batch, boxes)))) for i in range(0, boxes, batch)]
        centre, radius = (np.concatenate([getattr(part, name) for part in parts]) for name in ("centre", "radius"))
        shape = self.options.map_shape(self.graph.input_shape)
        return Intervals(centre, radius).reshape(boxes, len(self.rows.row), *shape)

    @abstractmethod
    def _maps(self, image: Forms) -> Intervals:
        """Like `maps`, for a batch of boxes: (B, K', …)."""

    def _passed(self, image: Forms, keep: int | None = None) -> Passed:
        ready = image.with_norms() if self.is_deep and image.norms is None else image
        return forward(self.graph.steps, self.graph.layers, ready, image.forms.shape[1] - 1, keep=keep)


class OccludedMaps(Explained):
    """f(image) − f(image with a window blanked): the forms of both share the same coordinates."""

    def _maps(self, image: Forms) -> Intervals:
        method, shape = self.options.method, self.graph.input_shape
        assert isinstance(method, Occlusion)
        blanked = np.broadcast_to(method.masks(shape), (len(method.masks(shape)), *shape))
        blanked = np.concatenate([np.zeros((1, *shape), dtype=bool), blanked]).reshape(-1, image.forms.shape[2])
        boxes, read = len(image.forms), len(blanked)
        several = image.take_boxes(np.repeat(np.arange(boxes), read))
        is_blank = np.tile(blanked, (boxes, 1))
        forms = np.where(is_blank[:, None], 0.0, several.forms)
        forms[:, 0] += method.baseline * is_blank
        images = Forms(forms, np.where(is_blank, 0.0, several.remainder), several.corners, several.norms)
        lost = self._lost(self._passed(images).last, boxes, read)
        return spread(Intervals.between(*lost), method.shares(shape), shape[0])

    def _lost(self, last: Forms, boxes: int, read: int) -> tuple[np.ndarray, np.ndarray]:
        """Bounds (B, K', windows) on the loss of the logits; their constants cancel."""
        values, error = self.rows.applied(last)
        rows, count = values.shape[1:]
        values, error = values.reshape(boxes, read, rows, count), error.reshape(boxes, read, count)
        difference = values[:, :1] - values[:, 1:]
        errors = error[:, :1] + error[:, 1:]
        errors = errors + gamma(rows + 2) * (np.abs(values[:, :1]) + np.abs(values[:, 1:])).sum(axis=2)
        flat = difference.transpose(0, 2, 3, 1).reshape(boxes, rows, -1)
        total = (errors * up(sum(last.forms.shape[1:]) + 8) + LEAST).transpose(0, 2, 1).reshape(boxes, -1)
        first = None if last.corners is None else last.corners.take(np.arange(boxes) * read)
        low, high = known(*Forms(np.ascontiguousarray(flat), np.ascontiguousarray(total), first).bounds())
        return low.reshape(boxes, count, -1), high.reshape(boxes, count, -1)


class CamMaps(Explained):
    """Grad-CAM: mean gradients with respect to a layer, as intervals, times its values, as affine forms."""

    def __init__(self, graph: Graph, options: AttentionOptions) -> None:
        method = options.method
        assert isinstance(method, GradCam)
        value = layer_names(graph)[method.layer]
        self.channels = graph.shape_of(value)[1]
        anchor = anchored(graph, value)
        self.layer, self.neurons = anchor.layer, anchor.neurons
        super().__init__(anchor.graph, options)

    def _maps(self, image: Forms) -> Intervals:
        passed = self._passed(image, self.layer)
        assert passed.kept is not None
        weights = self._weights(gradients(self.graph.steps, passed, self.rows, at=self.layer))
        values = passed.kept
        boxes, rows = values.forms.shape[:2]
        size = self.options.method.map_shape(self.graph.input_shape)[1:]
        forms = values.forms[..., self.neurons].reshape(boxes, rows, self.channels, -1)
        rest, reach = (
            part[:, self.neurons].reshape(boxes, self.channels, -1)
            for part in (values.rest, np.abs(values.forms[:, 0]) + values.spread)
        )
        centre = np.einsum("bkc,brcp->brkp", weights.centre, forms).reshape(boxes, rows, -1)
        sizes = np.abs(weights.centre)
        error = np.einsum("bkc,bcp->bkp", sizes, rest + gamma(self.channels + 2) * reach)
        error = error + np.einsum("bkc,bcp->bkp", weights.radius, (reach + rest) * up(rows))
        error = (error * up(2 * self.channels + 8) + LEAST).reshape(boxes, -1)
        low, high = known(*Forms(centre, error, values.corners).bounds())
        found = Intervals.between(np.maximum(low, 0.0), np.maximum(high, 0.0))
        found = found.reshape(boxes, len(self.rows.row), -1)
        if self.options.resolution is None:
            return found
        return _upsampled(found.reshape(boxes, -1, *size), self.options.resolution)

    def _weights(self, slopes: Intervals) -> Intervals:
        """The mean gradients (B, K', channels), given those with respect to all neurons of the layer."""
        shape = (*slopes.centre.shape[:2], self.channels, -1)
        centre, radius = (part[..., self.neurons].reshape(shape) for part in (slopes.centre, slopes.radius))
        places = centre.shape[3]
        rounded = radius.mean(axis=3) + gamma(places + 4) * np.abs(centre).mean(axis=3)
        return Intervals(centre.mean(axis=3), rounded * up(places + 8) + LEAST)


def spread(cells: Intervals, shares: np.ndarray, channels: int) -> Intervals:
    """Weighted means (B, K', channels · pixels) of cells (B, K', m), with non-negative weights (m, pixels)."""
    centre = cells.centre @ shares
    # Includes the rounding of the weights themselves, two roundings each.
    radius = cells.radius @ shares + gamma(len(shares) + 8) * (np.abs(cells.centre) @ shares)
    radius = np.where(radius > 0.0, radius * up(len(shares) + 12) + LEAST, radius)  # zero stays zero, NaN stays NaN
    return Intervals(*(np.tile(part, (1, 1, channels)) for part in (centre, radius)))


def _upsampled(maps: Intervals, resolution: tuple[int, int]) -> Intervals:
    """Maps (B, K', h, w) at another resolution: weighted means, with non-negative weights, along either axis."""
    centre, radius = upsample(maps.centre, *resolution), upsample(maps.radius, *resolution)
    terms = sum(maps.centre.shape[2:]) + 8
    radius = radius + gamma(terms) * upsample(np.abs(maps.centre), *resolution)
    return Intervals(centre, np.where(radius > 0.0, radius * up(terms) + LEAST, radius))


def known(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bounds, with NaN where a pass has overflowed and nothing is known."""
    is_known = np.isfinite(low) & np.isfinite(high)
    return np.where(is_known, low, np.nan), np.where(is_known, high, np.nan)


ENCLOSURES: dict[type[Method], Callable[[Graph, AttentionOptions], Explained]] = {
    Occlusion: OccludedMaps,
    GradCam: CamMaps,
}
"""The enclosure of every method that uses more than gradients."""
