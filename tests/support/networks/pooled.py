"""Small networks with windows whose entries are equal on whole regions: constant backgrounds, dead entries, twins."""

import numpy as np

from steadygaze.compound import Compound
from steadygaze.network.graph import Graph, lower
from steadygaze.network.joins import Winner
from steadygaze.network.operators import MatMul, Relu, Reshape, ScaleShift
from steadygaze.network.windows import Conv, Window
from steadygaze.perturbation import compose, parse_spec
from support.networks.branching import Builder


def branching_compound(graph: Graph, image: np.ndarray, *specs: str) -> Compound:
    """A graph after perturbations of an image (C, H, W)."""
    return Compound(graph, lower(graph), compose([parse_spec(spec) for spec in specs], image))


def pool_windows(channels: int, height: int, width: int, size: int = 2) -> np.ndarray:
    """The entries of windows of size × size that do not overlap, on a value (1, C, H, W)."""
    places = np.arange(channels * height * width).reshape(channels, height // size, size, width // size, size)
    return places.transpose(0, 1, 3, 2, 4).reshape(-1, size * size)


def pooled_graph(
    kernel: np.ndarray,
    bias: np.ndarray,
    head: np.ndarray,
    shape: tuple[int, int],
    *,
    is_rectified: bool,
    scale: ScaleShift | None = None,
) -> Graph:
    """ScaleShift or not, convolution (O, 1, 3, 3) without padding, ReLU or not, maximum over 2 × 2, dense layer
    (features, classes)."""
    builder = Builder((1, *shape))
    value = builder.add(Reshape((1, 1, *shape)), 0)
    if scale is not None:
        value = builder.add(scale, value)
    value = builder.add(Conv(kernel, bias, Window((3, 3), (1, 1), (1, 1), (0, 0), (0, 0))), value)
    if is_rectified:
        value = builder.add(Relu(), value)
    _, channels, height, width = builder.shape(value)
    index = pool_windows(channels, height, width)
    value = builder.add(Winner(index, (1, len(index))), value)
    builder.add(MatMul(head, np.zeros(head.shape[1])), value)
    return builder.graph()


def winner_graph(weight: np.ndarray, bias: np.ndarray, *, is_rectified: bool = False) -> Graph:
    """The largest of all rows of weight (entries, 4) @ pixels + bias, and its negative, as logits."""
    builder = Builder((1, 2, 2))
    value = builder.add(MatMul(weight.T, bias), builder.add(Reshape((1, 4)), 0))
    if is_rectified:
        value = builder.add(Relu(), value)
    value = builder.add(Winner(np.arange(len(bias))[None], (1, 1)), value)
    builder.add(MatMul(np.array([[1.0, -1.0]]), np.zeros(2)), value)
    return builder.graph()
