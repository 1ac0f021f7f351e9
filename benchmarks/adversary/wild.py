"""Random tiny networks whose weights range over twelve orders of magnitude."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .nets import single
from .oracle import Change, Oracle, Question, TooLargeError, Truth

MOST_REGIONS = 400


@dataclass(frozen=True, eq=False)
class Wild:
    """A random network with its exact truth."""

    name: str
    wanted: str
    question: Question
    truth: Truth


def wild_networks(count: int, seed: int) -> Iterator[Wild]:
    """`count` networks with few enough regions for the oracle."""
    random = np.random.default_rng([seed, 2])
    for _ in range(count):
        made = None
        while made is None:
            made = make_wild(int(random.integers(2**31)))
        yield made


def make_wild(seed: int, *, decades: float = 6.0) -> Wild | None:
    """One network with weights ±10^U(−decades, decades); None if the image is tied or there are too many regions."""
    random = np.random.default_rng([seed, 11])
    shape = (int(random.integers(1, 3)), 2, int(random.integers(2, 4)))
    image = random.integers(0, 17, shape) / 16.0
    inner = [int(random.integers(2, 6)) for _ in range(int(random.integers(1, 4)))]
    sizes = [image.size, *inner, int(random.integers(2, 4))]
    layers = []
    for n, m in pairwise(sizes):
        parts = [_spread(random, (m, n), decades), _spread(random, (m,), decades)]
        parts[1] *= random.random(m) < 0.7
        layers.append((parts[0], parts[1]))
    dist = str(random.choice(["l1", "l2"]))
    question = Question(single(layers), image, _changes(random, shape), dist)
    oracle = Oracle(question, most_regions=MOST_REGIONS)
    if oracle.label is None:
        return None
    try:
        met = oracle.truth_at(1.0).inconsistencies
    except TooLargeError:
        return None
    k = int(random.integers(len(met)))
    delta = float(np.float32((met[k] + met[min(k + 1, len(met) - 1)]) / 2)) or 1.0
    wanted = str(random.choice(["cr", "ar", "both"]))
    return Wild(f"wild-{seed}", wanted, replace(question, delta=delta), oracle.truth_at(delta))


def _spread(random: np.random.Generator, shape: tuple[int, ...], decades: float) -> np.ndarray:
    return random.choice([-1.0, 1.0], shape) * 10.0 ** random.uniform(-decades, decades, shape)


def _changes(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[Change, ...]:
    """One to three different perturbations; their ranges have few bits and contain zero."""
    width = shape[2]
    menu = [
        Change("brightness", float(random.choice([-1.0, -0.25, 0.0])), float(random.choice([0.125, 0.5, 1.0]))),
        Change("darkness", 0.0, float(random.choice([0.25, 0.75, 1.0]))),
        Change("patch", 0.0, 1.0, x=0, y=int(random.integers(2)), w=int(random.integers(1, width + 1))),
        Change("patch", -0.5, 0.5, x=width - 1, y=0, h=2, tone=int(random.choice([-1, 1]))),
        Change("translate", 0.0, float(random.choice([1.0, 1.5, 2.0])), dx=int(random.choice([-2, 2]))),
        Change("translate", -1.0, 1.0, dy=1),
    ]
    count = int(random.choice([1, 2, 3], p=[0.35, 0.5, 0.15]))
    while True:
        chosen = [menu[i] for i in random.choice(len(menu), count, replace=False)]
        if sum(change.kind == "translate" for change in chosen) <= 1:
            return tuple(chosen)
