"""Grad-CAM at a layer: the positive part of the layer's channels, weighted by the mean gradients with respect to them.

The maps have the layer's own resolution; `upsample` resamples them to that of the image.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ...errors import OptionError
from ...network.graph import Graph
from ...network.node_gradients import gradients_at, values_of
from ...network.windows import Conv
from . import Method


@dataclass(frozen=True)
class GradCam(Method):
    """ReLU(Σ_k w_k A_k) for every logit: A_k are the channels of a node's result, w_k the mean gradients there."""

    name: ClassVar[str] = "gradcam"

    layer: str = ""
    _size: tuple[int, int] = field(default=(0, 0), compare=False, repr=False)

    def fit(self, graph: Graph) -> Method:
        names = layer_names(graph)
        if not names:
            raise OptionError(
                "gradcam: the network has no convolutions, so no layer has a height and a width; use another --explain"
            )
        if self.layer not in names:
            what = f"no layer {self.layer!r}" if self.layer else "the layer is missing"
            raise OptionError(f"gradcam: {what}; expected layer=NAME with one of {', '.join(names)}")
        height, width = graph.shape_of(names[self.layer])[2:]
        return replace(self, _size=(height, width))

    def map_shape(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        if self._size == (0, 0):
            raise ValueError("the layer's size is not known: fit the method to a classifier first")
        return (1, *self._size)

    def maps(self, graph: Graph, image: np.ndarray, classes: np.ndarray) -> np.ndarray:
        value = layer_names(graph)[self.layer]
        values = values_of(graph, image)
        slopes = gradients_at(graph, values, np.eye(graph.classes)[classes], value)[:, 0]
        weighted = np.einsum("kc,chw->khw", slopes.mean(axis=(2, 3)), values[value][0])
        return np.maximum(weighted, 0.0)[:, None]


def layer_names(graph: Graph) -> dict[str, int]:
    """The values with channels and places, (1, C, H, W), that depend on a convolution, by the names of their nodes."""
    found: dict[str, int] = {}
    after_conv = {0: False}
    for number, node in enumerate(graph.nodes, start=1):
        after_conv[number] = isinstance(node.operator, Conv) or any(after_conv[value] for value in node.inputs)
        if after_conv[number] and len(node.shape) == 4 and node.shape[0] == 1 and node.shape[2] * node.shape[3] > 1:
            found[node.name] = number
    return found


def upsample(maps: np.ndarray, height: int, width: int) -> np.ndarray:
    """Resample maps (…, h, w) bilinearly; pixels are squares with the values at their centres.

    >>> upsample(np.array([[0.0, 1.0]]), 1, 4)
    array([[0.  , 0.25, 0.75, 1.  ]])
    """
    if maps.shape[-2:] == (height, width):
        return maps
    rows, columns = _weights(maps.shape[-2], height), _weights(maps.shape[-1], width)
    return rows @ maps @ columns.T


def _weights(size: int, target: int) -> np.ndarray:
    """The weights (target, size) of linear interpolation along one axis."""
    places = np.clip((np.arange(target) + 0.5) * size / target - 0.5, 0.0, size - 1.0)
    left = np.minimum(places.astype(np.int64), max(size - 2, 0))
    share = places - left
    found = np.zeros((target, size))
    found[np.arange(target), left] = 1.0 - share
    found[np.arange(target), np.minimum(left + 1, size - 1)] += share
    return found
