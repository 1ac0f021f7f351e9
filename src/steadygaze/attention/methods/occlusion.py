"""Occlusion: how far a logit drops when a window of the image is blanked, for windows that cover the image.

A window is square and blanks all channels. Windows start at every `stride`-th row and column until one reaches the end
of the image; the last windows may be cut off there. A pixel in several windows gets their mean.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...errors import OptionError
from ...network.graph import Graph
from ...network.rewrites import Copies
from . import Method


@dataclass(frozen=True)
class Occlusion(Method):
    """f(image) − f(image with a window set to the baseline), spread over the window."""

    name: ClassVar[str] = "occlusion"
    uses_gradients: ClassVar[bool] = False

    window: int = 4
    stride: int = 4
    baseline: float = 0.0

    def __post_init__(self) -> None:
        if self.window < 1:
            raise OptionError(f"occlusion: window is {self.window}; expected at least 1 pixel")
        if not 1 <= self.stride <= self.window:
            raise OptionError(
                f"occlusion: stride is {self.stride}; expected 1 to {self.window}, the size of the window: a larger "
                "stride would leave gaps"
            )

    def fit(self, graph: Graph) -> Method:
        height, width = graph.input_shape[1:]
        if self.window > min(height, width):
            raise OptionError(
                f"occlusion: a window of {self.window} pixels is larger than the image, which is {width}×{height}; "
                f"expected at most {min(height, width)}"
            )
        return self

    def masks(self, shape: tuple[int, int, int]) -> np.ndarray:
        """Which pixels each window blanks, (windows, 1, H, W)."""
        down, across = (self._along(size) for size in shape[1:])
        return (down[:, None, :, None] & across[None, :, None, :]).reshape(-1, 1, *shape[1:])

    def _along(self, size: int) -> np.ndarray:
        """The pixels (positions, size) under the window at each of its positions along an axis."""
        starts = self.stride * np.arange(-(-(size - self.window) // self.stride) + 1)[:, None]
        places = np.arange(size)
        return (places >= starts) & (places < starts + self.window)

    def passes(self, shape: tuple[int, int, int]) -> int:
        return 1 + len(self.masks(shape))

    def shares(self, shape: tuple[int, int, int]) -> np.ndarray:
        """The share (windows, H · W) of each window in every pixel: one over the number of windows that blank it."""
        blanked = self.masks(shape).reshape(-1, shape[1] * shape[2]).astype(np.float64)
        return blanked / blanked.sum(axis=0)

    def copies(self, shape: tuple[int, int, int]) -> Copies:
        """The copies of an image of a shape (C, H, W) that the classifier reads, one for every window."""
        blanked = self.masks(shape).astype(np.float64)
        return Copies(1.0 - blanked, self.baseline * blanked)

    def maps(self, graph: Graph, image: np.ndarray, classes: np.ndarray) -> np.ndarray:
        lost = graph.logits(image[None]) - graph.logits(self.copies(graph.input_shape).images(image))
        spread = (lost[:, classes].T @ self.shares(graph.input_shape)).reshape(len(classes), 1, *image.shape[1:])
        return np.broadcast_to(spread, (len(classes), *image.shape))
