"""The hidden layers of a narrow bump, ReLU(P − G·Σ_k |x_k − c_k|) over a few pixels x_k, hidden in several ways.

Weights are float64 here and rounded to float32 later; the oracle describes the rounded network.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import log2

import numpy as np

from .nets import ORDINARY, Layers, add_dead, duplicate
from .scenes import Scene

HIDINGS = (
    "plain",
    "cancelling",  # large weights on two equal pixels
    "noise",  # a pixel's value is at most 2^-36 of the terms that cancel in its neuron, and is amplified later
    "greedy",  # large weights on pixels that never change: their sum is small, and float64 rounds it
    "rounding",  # the same with weights up to 2^38
    "tiny",  # first multiplied by 2^-14 to 2^-44
    "huge",  # first multiplied by 2^24 to 2^40
    "overflow",  # beside neurons that are 0, with weights whose products leave float64
    "duplicated",  # every neuron as h, 2h and −h
    "dead",  # beside neurons that never fire, with large weights above
    "deep",  # between identity layers, up to twelve
    "low",  # a small peak instead of a steep slope
    "trained",  # beside a random network with two hidden layers
)
STILL = ("greedy", "rounding")
"""Hidings that need pixels which never change."""


@dataclass(frozen=True)
class Shape:
    """The bump's peak P and gain G."""

    peak: float
    gain: float


def bump_layers(random: np.random.Generator, scene: Scene, hiding: str, shape: Shape) -> Layers:
    """Hidden layers that end in the bump as the only neuron."""
    gains = _gains(random, hiding, shape.gain)
    if hiding in ("noise", "greedy", "rounding"):
        carried, factors, offsets = _carry(random, scene, hiding)
        gains = [1.0, *gains]
        layers = [carried, *_absolute(np.diag(1 / factors), -offsets / factors)]
    else:
        rows = np.zeros((len(scene.pixels), scene.image.size))
        for k, pixel in enumerate(scene.pixels):
            rows[k, pixel] = gains[0]
            if hiding in ("cancelling", "tiny"):
                big = gains[0] * 2.0 ** int(random.integers(8, 30))
                big = big if hiding == "tiny" else min(big, ORDINARY[1] / 2)
                rows[k, list(scene.equal)] += [big, -big]
        layers = _absolute(rows, -gains[0] * np.array(scene.centres))
    width = 2 * len(scene.pixels)
    layers += [(np.eye(width) * gain, np.zeros(width)) for gain in gains[1:-1]]
    layers.append((np.full((1, width), -gains[-1]), np.array([shape.peak])))
    if hiding == "duplicated":
        layers = duplicate(layers)
    return add_dead(layers, random, 4) if hiding == "dead" else layers


def _absolute(rows: np.ndarray, offsets: np.ndarray) -> Layers:
    """ReLU(h) and ReLU(−h) of every h = row·x + offset. Rounding is symmetric, so their sum stays |h|."""
    weight = np.stack([rows, -rows], axis=1).reshape(-1, rows.shape[1])
    return [(weight, np.stack([offsets, -offsets], axis=1).ravel())]


def _carry(
    random: np.random.Generator, scene: Scene, hiding: str
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """A layer of neurons f·x_k + terms that cancel; the factors f; and the neurons' values at the centre."""
    count = len(scene.pixels)
    rows, bias = np.zeros((count, scene.image.size)), np.zeros(count)
    factors, values = np.ones(count), np.zeros(count)
    for k, (pixel, centre) in enumerate(zip(scene.pixels, scene.centres, strict=True)):
        if hiding == "noise":
            low, high = (-18, 19) if random.random() < 0.7 else (-30, 30)
            factors[k], big = 2.0**low, 2.0**high
            rows[k, list(scene.equal)] = [big, -big]
            rest = Fraction(0)
        else:
            rest = _cancel_greedily(random, scene, rows[k], is_ordinary=hiding == "greedy")
            bias[k] = float(random.choice([0.0, 1.0]))
        rows[k, pixel] = factors[k]
        values[k] = factors[k] * centre + bias[k] + float(rest)
    return (rows, bias), factors, values


def _cancel_greedily(random: np.random.Generator, scene: Scene, row: np.ndarray, *, is_ordinary: bool) -> Fraction:
    """Fill a row on still pixels with float32 weights, each chosen to cancel the remainder; returns the exact rest."""
    size, least = (2.0**19, ORDINARY[0]) if is_ordinary else (2.0 ** int(random.integers(24, 39)), 2.0**-80)
    rest = Fraction(0)
    for number, pixel in enumerate(scene.still):
        value = Fraction(float(scene.image.ravel()[pixel]))
        wish = size * random.uniform(0.5, 1) if number == 0 else float(-rest / value)
        if abs(wish) < least or abs(wish) > 2.0**60:
            break
        row[pixel] = float(np.float32(wish))
        rest += Fraction(float(row[pixel])) * value
    return rest


def overflowing(inputs: int, depth: int, classes: int) -> Layers:
    """A network of zeros: one neuron that never fires, and weights of 2^120 on the way from it to the logits."""
    layers: Layers = [(np.full((1, inputs), -1.0), np.array([-0.125]))]
    layers += [(np.full((1, 1), 2.0**120), np.zeros(1)) for _ in range(depth - 2)]
    return [*layers, (np.ones((classes, 1)), np.zeros(classes))]


def _gains(random: np.random.Generator, hiding: str, gain: float) -> list[float]:
    """Factors of the gain, one per layer; the first is a power of two, which keeps the centre in place."""
    if hiding == "huge":
        first = 2.0 ** int(random.integers(24, 40))
        return [first, gain / first]
    if hiding == "tiny":
        first = 2.0 ** -int(random.integers(14, 44))
        second = 2.0 ** int(log2(gain / first) / 2)
        return [first, second, gain / first / second]
    parts = max(2, 1 + int(np.ceil(max(log2(gain), 1) / float(random.uniform(4, 12)))))
    each = max(gain, 1e-3) ** (1 / parts)
    first = 2.0 ** round(log2(each))
    middle = [each * float(random.uniform(0.8, 1.25)) for _ in range(parts - 2)]
    return [first, *middle, gain / first / float(np.prod(middle))]
