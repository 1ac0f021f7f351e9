"""Turn plain arrays into the compound network f ∘ g^{x0} that the printed search walks, as the paper encodes it.

Holds data and plain forward passes only: no linear program, no search. Matrices are dense or CSR, all float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

import numpy as np
from scipy import sparse

Matrix: TypeAlias = "np.ndarray | sparse.csr_array"
Layer = tuple[Matrix, np.ndarray]  # W (n_out, n_in), b (n_out,)
Pattern = bytes  # one byte per neuron in layer order: 1 active (pre-activation > 0), 0 inactive


@dataclass(frozen=True)
class Translation:
    """The parameter that moves the attention map, and the source of each pixel when it is 1 (-1: vacated, zero)."""

    axis: int
    source: np.ndarray  # (N,) integers


@dataclass(frozen=True)
class Question:
    """Prob = (f, g, x0, Θ, δ), curried with x0. A ReLU follows every layer but the last, which gives K outputs."""

    layers: tuple[Layer, ...]  # f ∘ g^{x0}, from theta (d,)
    classifier: tuple[Layer, ...]  # f alone, from the pixels (N,)
    expected: np.ndarray  # (K, N): map_j(x0) = ∂f_j(x0)/∂x, filter = identity
    translation: Translation | None  # None: the expected map stays
    label: int
    delta: float
    low: np.ndarray  # (d,)
    high: np.ndarray  # (d,)
    neurons: tuple[tuple[int, int], ...] = field(init=False)  # (l, n), counted from 0
    vertices: np.ndarray = field(init=False)  # (2^d, d) of Θ

    def __post_init__(self) -> None:
        """Derive the neurons in the order of the paper's loop, and the few vertices of Θ."""
        neurons = [(layer, n) for layer, (_, bias) in enumerate(self.layers[:-1]) for n in range(len(bias))]
        object.__setattr__(self, "neurons", tuple(neurons))
        object.__setattr__(self, "vertices", np.array(list(product(*zip(self.low, self.high, strict=True)))))


def problem_from(
    chain: Sequence[Layer],
    image: np.ndarray,
    offset: np.ndarray,
    slope: np.ndarray,
    *,
    low: Sequence[float],
    high: Sequence[float],
    delta: float,
    translation: Translation | None = None,
) -> Question:
    """Put g^{x0}(θ) = clip(offset + θ·slope, 0, 1) in front of the classifier `chain`, as two ReLU layers.

    image (N,) or (C, H, W) is x0, offset (N,), slope (d, N). With g^(4) = 1 − ReLU(h) and g^(5) = 1 − ReLU(g^(4)) the
    layers are h1 = slopeᵀθ + offset, h2 = 1 − ReLU(h1), and f's first map takes 1 − ReLU(h2).
    """
    chain = tuple(chain)
    pixels = np.asarray(image, dtype=np.float64).ravel()
    first, bias = chain[0]
    ones = np.ones(len(pixels))
    layers = (
        (np.ascontiguousarray(np.asarray(slope, dtype=np.float64).T), np.asarray(offset, dtype=np.float64)),
        (sparse.csr_array(-sparse.eye_array(len(pixels))), ones),
        (-first, bias + first @ ones),
        *chain[1:],
    )
    return _problem(layers, classifier=chain, pixels=pixels, low=low, high=high, delta=delta, translation=translation)


def plain_problem(layers: Sequence[Layer], *, low: Sequence[float], high: Sequence[float], delta: float) -> Question:
    """A network whose pixels are the parameters themselves: g(θ, x0) = θ and x0 = 0."""
    layers = tuple(layers)
    return _problem(layers, classifier=layers, pixels=np.zeros(len(low)), low=low, high=high, delta=delta)


def shift_source(shape: tuple[int, int, int], *, dx: int = 0, dy: int = 0) -> np.ndarray:
    """Where each pixel of an image (C, H, W) shifted by (dx, dy) comes from: (C·H·W,), -1 where vacated."""
    index = np.arange(np.prod(shape)).reshape(shape)
    source = np.full(shape, -1)
    _, height, width = shape
    rows, columns = slice(max(dy, 0), height + min(dy, 0)), slice(max(dx, 0), width + min(dx, 0))
    source[:, rows, columns] = index[:, max(-dy, 0) : height - max(dy, 0), max(-dx, 0) : width - max(dx, 0)]
    return source.ravel()


def forward(layers: Sequence[Layer], point: np.ndarray) -> tuple[Pattern, np.ndarray]:
    """Pattern and outputs (K,) at one point; active means > 0."""
    pattern = b""
    for matrix, bias in layers[:-1]:
        preactivation = matrix @ point + bias
        pattern += (preactivation > 0).astype(np.uint8).tobytes()
        point = np.maximum(preactivation, 0.0)
    matrix, bias = layers[-1]
    return pattern, matrix @ point + bias


def gradients(classifier: Sequence[Layer], pattern: Pattern) -> np.ndarray:
    """∂f_j/∂x_i as the weights of f under its own pattern (Lemma 1): (K, N)."""
    active = np.frombuffer(pattern, dtype=np.uint8)
    matrix, _ = classifier[-1]
    result = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    end = len(active)
    for matrix, bias in reversed(classifier[:-1]):
        start = end - len(bias)
        result = (result * active[start:end]) @ matrix
        end = start
    return result


def _problem(
    layers: tuple[Layer, ...],
    *,
    classifier: tuple[Layer, ...],
    pixels: np.ndarray,
    low: Sequence[float],
    high: Sequence[float],
    delta: float,
    translation: Translation | None = None,
) -> Question:
    pattern, outputs = forward(classifier, pixels)
    return Question(
        layers=layers,
        classifier=classifier,
        expected=gradients(classifier, pattern),
        translation=translation,
        label=int(np.argmax(outputs)),
        delta=float(delta),
        low=np.asarray(low, dtype=np.float64),
        high=np.asarray(high, dtype=np.float64),
    )
