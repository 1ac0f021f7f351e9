"""From patterns of the classifier to gradients: attention maps before any filter, plainly, with matrix products.

This is the definition that faster code is compared with, and what single thetas are answered with.
"""

import numpy as np

from ..network.lower import Chain


def sensitivities(chain: Chain, bits: list[np.ndarray]) -> list[np.ndarray]:
    """Gradients of the logits under given patterns: with respect to the pixels, then to every ReLU layer's input.

    bits: one boolean array (B, n) per ReLU layer. Returns arrays (B, K, pixels), (B, K, n_1), …, (B, K, n_L); the
    gradient with respect to an inactive neuron is 0.
    """
    batch = len(bits[0]) if bits else 1
    last = chain.maps[-1].matrix
    dense = last if isinstance(last, np.ndarray) else last.toarray()
    classes = len(dense)
    gradient = np.broadcast_to(dense, (batch, *dense.shape))
    results = []
    for affine, layer in zip(reversed(chain.maps[:-1]), reversed(bits), strict=True):
        gradient = gradient * layer[:, None, :]
        results.append(gradient)
        flat = gradient.reshape(batch * classes, -1)
        gradient = (affine.matrix.T @ flat.T).T.reshape(batch, classes, -1)
    results.append(np.ascontiguousarray(gradient))
    return results[::-1]


def gradient_maps(chain: Chain, bits: list[np.ndarray]) -> np.ndarray:
    """Gradients of the logits with respect to the pixels, (B, K, pixels), under patterns bits (B, n) per layer."""
    return sensitivities(chain, bits)[0]


def pattern_at(chain: Chain, pixels: np.ndarray) -> list[np.ndarray]:
    """The classifier's pattern at images (B, pixels): active means above zero."""
    return [values > 0.0 for values in chain.preactivations(pixels)[:-1]]
