"""From patterns of the classifier to gradients: attention maps before any filter, plainly, with matrix products.

This is the definition that faster code is compared with. What is asked of single images goes through the linear steps
of the graph, which needs no matrices of whole layers: `pattern_of`, `maps_under`, `maps_at`.
"""

from collections.abc import Iterator

import numpy as np

from ..network.graph import Graph
from ..network.lower import Chain
from ..network.passes import gradients, preactivations


def sensitivities(chain: Chain, bits: list[np.ndarray]) -> list[np.ndarray]:
    """Gradients of the logits under given patterns: with respect to the pixels, then to every ReLU layer's input.

    bits: one boolean array (B, n) per ReLU layer. Returns arrays (B, K, pixels), (B, K, n_1), …, (B, K, n_L); the
    gradient with respect to an inactive neuron is 0.
    """
    return [masked for _, masked in _backward(chain, bits, None)][::-1]


def output_sensitivities(chain: Chain, bits: list[np.ndarray]) -> list[np.ndarray]:
    """As `sensitivities`, with respect to the outputs of the ReLU layers: inactive neurons count as well."""
    return [plain for plain, _ in _backward(chain, bits, None)][::-1]


def gradient_maps(chain: Chain, bits: list[np.ndarray], classes: np.ndarray | None = None) -> np.ndarray:
    """Gradients of the logits (of all or the given classes) with respect to the pixels, (B, K, pixels)."""
    *_, (gradient, _) = _backward(chain, bits, classes)
    return gradient


def _backward(
    chain: Chain, bits: list[np.ndarray], classes: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The gradients with respect to output and input of every ReLU layer, the last first; then to the pixels, twice."""
    batch = len(bits[0]) if bits else 1
    last = chain.maps[-1].matrix
    dense = last if isinstance(last, np.ndarray) else last.toarray()
    gradient = np.repeat((dense if classes is None else dense[classes])[None], batch, axis=0)
    for affine, layer in zip(reversed(chain.maps[:-1]), reversed(bits), strict=True):
        # By floats: numpy converts booleans piece by piece, which takes longer than the product.
        masked = gradient * layer.astype(np.float64)[:, None, :]
        yield gradient, masked
        flat = masked.reshape(-1, masked.shape[2])
        # Dense from the right, which keeps the result in order; scipy multiplies sparse matrices from the left.
        product = flat @ affine.matrix if isinstance(affine.matrix, np.ndarray) else (affine.matrix.T @ flat.T).T
        gradient = np.ascontiguousarray(product).reshape(batch, gradient.shape[1], -1)
    yield gradient, gradient


def pattern_at(chain: Chain, pixels: np.ndarray) -> list[np.ndarray]:
    """The classifier's pattern at images (B, pixels): active means above zero."""
    return [values > 0.0 for values in chain.preactivations(pixels)[:-1]]


def pattern_of(graph: Graph, pixels: np.ndarray) -> list[np.ndarray]:
    """As `pattern_at`, through the linear steps of a graph."""
    return [values > 0.0 for values in preactivations(graph, pixels)[:-1]]


def maps_under(graph: Graph, bits: list[np.ndarray], classes: np.ndarray | None = None) -> np.ndarray:
    """Gradients (K, pixels) of the logits (of all or the given classes) under one pattern: bits (1, n) per ReLU layer.

    As `gradient_maps` for that pattern, to rounding, through the linear steps of a graph.
    """
    *_, maps = gradients(graph, [layer[0] for layer in bits], classes)
    return maps


def maps_at(graph: Graph, image: np.ndarray, classes: np.ndarray | None = None) -> np.ndarray:
    """Maps (K, C, H, W) of the logits (of all or the given classes) at one image (C, H, W), before any filter."""
    bits = pattern_of(graph, image.reshape(1, -1))
    return maps_under(graph, bits, classes).reshape(-1, *image.shape)
