"""Small dense networks as lists of (W, b), and operations with a known effect on the function."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

Layers = list[tuple[np.ndarray, np.ndarray]]

ORDINARY = (2.0**-20, 2.0**20)
"""Sizes between which weights count as ordinary."""


def single(layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """The layers rounded to float32; overflow is an error."""
    found = []
    for weight, bias in layers:
        pair = np.asarray(weight, dtype=np.float64), np.asarray(bias, dtype=np.float64)
        rounded = tuple(part.astype(np.float32) for part in pair)
        if not all(np.isfinite(part).all() for part in rounded):
            raise OverflowError("a weight does not fit float32")
        found.append(rounded)
    return tuple(found)


def is_ordinary(layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> bool:
    """Whether every weight and bias other than 0 is of ordinary size.

    >>> is_ordinary([(np.array([[0.0, 2.0**-20]]), np.array([1.0]))]), is_ordinary([(np.eye(1) * 2e6, np.ones(1))])
    (True, False)
    """
    sizes = np.abs(np.concatenate([part.ravel() for layer in layers for part in layer])).astype(np.float64)
    sizes = sizes[sizes > 0]
    return bool(((sizes >= ORDINARY[0]) & (sizes <= ORDINARY[1])).all())


def random_net(random: np.random.Generator, sizes: Sequence[int], *, scale: float = 1.0) -> Layers:
    """Normal weights of a usual initialisation."""
    return [
        (random.normal(0.0, scale / np.sqrt(n), (m, n)), random.normal(0.0, 0.2 * scale, m)) for n, m in pairwise(sizes)
    ]


def deepen(layers: Layers, depth: int, random: np.random.Generator | None = None) -> Layers:
    """The same function with `depth` layers: identities behind a ReLU change nothing; their places may be random."""
    found = list(layers)
    while len(found) < depth:
        place = len(found) - 1 if random is None else int(random.integers(1, len(found)))
        width = found[place][0].shape[1]
        found.insert(place, (np.eye(width), np.zeros(width)))
    return found


def beside(first: Layers, second: Layers) -> Layers:
    """The sum of two networks of equal depth with the same inputs and outputs."""
    if len(first) != len(second):
        raise ValueError(f"{len(first)} layers beside {len(second)}")
    found = []
    for number, ((a, b), (c, d)) in enumerate(zip(first, second, strict=True)):
        if number == len(first) - 1:
            found.append((np.hstack([a, c]), b + d))
        elif number == 0:
            found.append((np.vstack([a, c]), np.concatenate([b, d])))
        else:
            weight = np.zeros((len(a) + len(c), a.shape[1] + c.shape[1]))
            weight[: len(a), : a.shape[1]], weight[len(a) :, a.shape[1] :] = a, c
            found.append((weight, np.concatenate([b, d])))
    return found


def add_dead(layers: Layers, random: np.random.Generator, count: int) -> Layers:
    """Neurons in the first layer that no image in [0, 1] makes positive, with large weights to the layer above.

    Every other one reaches 0 exactly at a corner of the cube of images.
    """
    (weight, bias), (above, shift), *rest = layers
    rows = np.round(random.uniform(-4, 4, (count, weight.shape[1])) * 16) / 16
    slack = np.where(np.arange(count) % 2, 0.0, 0.125)
    dead = -(np.maximum(rows, 0).sum(axis=1) + slack)
    out = np.round(random.uniform(-512, 512, (len(above), count)))
    return [(np.vstack([weight, rows]), np.concatenate([bias, dead])), (np.hstack([above, out]), shift), *rest]


def duplicate(layers: Layers) -> Layers:
    """Every neuron h of the first layer also as 2h (sharing the weights above) and as −h (with weights 0 above)."""
    (weight, bias), (above, shift), *rest = layers
    first = np.vstack([weight, 2 * weight, -weight]), np.concatenate([bias, 2 * bias, -bias])
    return [first, (np.hstack([above / 2, above / 4, 0 * above]), shift), *rest]
