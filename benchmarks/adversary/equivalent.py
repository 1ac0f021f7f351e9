"""Pairs of different networks that compute exactly the same function, including all gradients.

The weights of `whole_net` are multiples of 105 over a power of two, so neurons can be scaled by 3, 5 and 7 without
rounding; the other transformations are exact for any network within float32's range.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .bumps import HIDINGS
from .files import Norm
from .nets import Layers, add_dead, beside, deepen, duplicate, single
from .oracle import Oracle, Question, Truth
from .planting import plant
from .scenes import make_scene

MULTIPLE = 105


@dataclass(frozen=True, eq=False)
class Pair:
    """Two questions with one truth; `norms` are batch normalisations that the second file keeps as separate nodes."""

    name: str
    wanted: str
    first: Question
    second: Question
    norms: dict[int, Norm]
    truth: Truth


def whole_net(random: np.random.Generator, sizes: list[int]) -> Layers:
    """Weights k·105/2^10 with 1 ≤ |k| ≤ 9, biases k·105/2^11."""
    found = []
    for n, m in pairwise(sizes):
        weight = random.integers(1, 10, (m, n)) * random.choice([-1, 1], (m, n)) * MULTIPLE / 2.0**10
        bias = random.integers(-9, 10, m) * MULTIPLE / 2.0**11
        found.append((weight, bias))
    return found


def split_neurons(layers: Layers, random: np.random.Generator) -> Layers:
    """Duplicate every neuron of a layer: one copy gets a quarter of its outgoing weights, the other three quarters."""
    k = int(random.integers(len(layers) - 1))
    (weight, bias), (above, shift) = layers[k], layers[k + 1]
    twice = np.vstack([weight, weight]), np.concatenate([bias, bias])
    return _replaced(layers, k, twice, (np.hstack([above / 4, above * 3 / 4]), shift))


def halve_neurons(layers: Layers, random: np.random.Generator) -> Layers:
    """Every neuron of a layer as two neurons of half its size."""
    k = int(random.integers(len(layers) - 1))
    (weight, bias), (above, shift) = layers[k], layers[k + 1]
    half = np.vstack([weight / 2, weight / 2]), np.concatenate([bias / 2, bias / 2])
    return _replaced(layers, k, half, (np.hstack([above, above]), shift))


def permute(layers: Layers, random: np.random.Generator) -> Layers:
    """Neurons in another order, in every layer."""
    found = list(layers)
    for k in range(len(found) - 1):
        order = random.permutation(len(found[k][1]))
        (weight, bias), (above, shift) = found[k], found[k + 1]
        found[k], found[k + 1] = (weight[order], bias[order]), (above[:, order], shift)
    return found


def scale_by_twos(layers: Layers, random: np.random.Generator, *, reach: int = 10) -> Layers:
    """Every neuron times a power of two, its outgoing weights over it."""
    return _scaled(layers, lambda count: 2.0 ** random.integers(-reach, reach + 1, count))


def scale_far(layers: Layers, random: np.random.Generator) -> Layers:
    """As `scale_by_twos`, up to 2^±30."""
    return scale_by_twos(layers, random, reach=30)


def scale_by_others(layers: Layers, random: np.random.Generator) -> Layers:
    """Every neuron of one layer times 3, 5, 7, 15, 21, 35 or 105; needs outgoing weights that are multiples of 105."""
    k = int(random.integers(len(layers) - 1))
    (weight, bias), (above, shift) = layers[k], layers[k + 1]
    factors = random.choice([3.0, 5.0, 7.0, 15.0, 21.0, 35.0, 105.0], len(bias))
    return _replaced(layers, k, (weight * factors[:, None], bias * factors), (above / factors, shift))


def add_identities(layers: Layers, random: np.random.Generator) -> Layers:
    """One to six identity layers."""
    return deepen(layers, len(layers) + int(random.integers(1, 7)), random)


def double_branches(layers: Layers, random: np.random.Generator) -> Layers:
    """The whole network twice, each with half its logits."""
    weight, bias = layers[-1]
    half = [*layers[:-1], (weight / 2, bias / 2)]
    return beside(half, permute(half, random))


def add_dead_neurons(layers: Layers, random: np.random.Generator) -> Layers:
    """Neurons that no image activates."""
    return add_dead(layers, random, 3)


def triple(layers: Layers, random: np.random.Generator) -> Layers:
    """Every neuron of the first layer as h, 2h and −h."""
    return duplicate(layers)


TRANSFORMATIONS: tuple[Callable[[Layers, np.random.Generator], Layers], ...] = (
    split_neurons,
    halve_neurons,
    permute,
    scale_by_twos,
    scale_far,
    scale_by_others,
    add_identities,
    double_branches,
    add_dead_neurons,
    triple,
)


def unmerged(layers: Layers, random: np.random.Generator) -> tuple[Layers, Layers, dict[int, Norm]]:
    """The layers with merged batch normalisations; and the layers without them, with the normalisations beside.

    Variance and epsilon add up to a power of four, so merging does not round.
    """
    merged, norms = list(layers), {}
    for k in range(len(layers) - 1):
        weight, bias = layers[k]
        count = len(bias)
        deviation = 2.0 ** random.integers(-2, 3, count)
        epsilon = 2.0**-10
        scale, shift = random.integers(1, 8, count) / 4.0, random.integers(-8, 9, count) / 16.0
        mean = random.integers(-8, 9, count) / 16.0
        norms[k] = (scale, shift, mean, deviation**2 - epsilon, epsilon)
        factor = scale / deviation
        merged[k] = (weight * factor[:, None], (bias - mean) * factor + shift)
    return merged, layers, norms


def pairs(count: int, seed: int) -> Iterator[Pair]:
    """`count` pairs: each transformation in turn, batch norm, several at once, and some on planted violations."""
    random = np.random.default_rng([seed, 1])
    for number in range(count):
        made = None
        while made is None:
            made = make_pair(int(random.integers(2**31)), number % (len(TRANSFORMATIONS) + 3))
        yield made


def make_pair(seed: int, which: int) -> Pair | None:
    """One pair by the number of its transformation; None if the image is tied or float32 cannot hold the weights."""
    random = np.random.default_rng([seed, 7])
    wanted = str(random.choice(["cr", "ar", "both"]))
    norms: dict[int, Norm] = {}
    is_planted = which == len(TRANSFORMATIONS) + 2
    if is_planted:
        question, layers = _planted(random)
    else:
        question, layers = _whole(random)
    if question is None:
        return None
    if which < len(TRANSFORMATIONS):
        change = TRANSFORMATIONS[which]
        name, other = change.__name__, change(layers, random)
    elif which == len(TRANSFORMATIONS):
        name = "batch_norm"
        layers, other, norms = unmerged(layers, random)
    else:
        exact = [c for c in TRANSFORMATIONS if c is not scale_by_others and not (is_planted and c is split_neurons)]
        chosen = [exact[i] for i in random.choice(len(exact), 3, replace=False)]
        name, other = "+".join(change.__name__ for change in chosen), layers
        for change in chosen:
            other = change(other, random)
    try:
        first, second = question.with_layers(single(layers)), question.with_layers(single(other))
    except OverflowError:
        return None
    return _checked(f"pair-{which}-{seed}-{name}", wanted, first, second, norms, random)


def _checked(
    name: str, wanted: str, first: Question, second: Question, norms: dict[int, Norm], random: np.random.Generator
) -> Pair | None:
    oracle = Oracle(first)
    if oracle.label is None:
        return None
    if not norms:
        other = Oracle(second)
        centres = [region.polytope.centre() for region in oracle.regions[:8]]
        if any(oracle.logits_at(theta) != other.logits_at(theta) for theta in centres):
            raise AssertionError(f"{name} changed the function")
    delta = first.delta or _delta(oracle, random)
    first, second = replace(first, delta=delta), replace(second, delta=delta)
    return Pair(name, wanted, first, second, norms, oracle.truth_at(delta))


def _delta(oracle: Oracle, random: np.random.Generator) -> float:
    """A threshold between two inconsistencies that occur."""
    met = oracle.truth_at(1.0).inconsistencies
    k = int(random.integers(len(met)))
    middle = (met[k] + met[min(k + 1, len(met) - 1)]) / 2
    return float(np.float32(middle)) or 0.5


def _whole(random: np.random.Generator) -> tuple[Question | None, Layers]:
    scene = make_scene(random, int(random.choice([1, 2, 2, 3])), "inside")
    if scene is None:
        return None, []
    depth = int(random.integers(1, 4))
    sizes = [scene.image.size, *(int(random.integers(2, 5)) for _ in range(depth)), int(random.integers(2, 4))]
    layers = whole_net(random, sizes)
    return scene.question(single(layers), str(random.choice(["l1", "l2"]))), layers


def _planted(random: np.random.Generator) -> tuple[Question | None, Layers]:
    made = plant(
        int(random.integers(2**31)),
        kind=str(random.choice(["label", "attention"])),
        hiding=str(random.choice([h for h in HIDINGS if h not in ("tiny", "huge", "overflow", "rounding")])),
        place="inside",
        size=10.0 ** -int(random.integers(3, 9)),
        dimension=int(random.integers(1, 3)),
    )
    if made is None:
        return None, []
    return made.question, [(w.astype(np.float64), b.astype(np.float64)) for w, b in made.question.layers]


def _scaled(layers: Layers, factors: Callable[[int], np.ndarray]) -> Layers:
    found = list(layers)
    for k in range(len(found) - 1):
        (weight, bias), (above, shift) = found[k], found[k + 1]
        by = factors(len(bias))
        found[k], found[k + 1] = (weight * by[:, None], bias * by), (above / by, shift)
    return found


def _replaced(
    layers: Layers, k: int, lower: tuple[np.ndarray, np.ndarray], upper: tuple[np.ndarray, np.ndarray]
) -> Layers:
    return [*layers[:k], lower, upper, *layers[k + 2 :]]
