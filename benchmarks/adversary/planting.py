"""Networks with a planted violation in a cell of chosen size, each with a twin: the same network with a lower bump.

A bump violates the label (another logit rises above that of the label), the attention (its steep sides change the
gradient), or makes a tie (the margin is ReLU(c − H·bump), which is 0 on a cell).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import factorial

import numpy as np

from .bumps import HIDINGS, STILL, Shape, bump_layers, overflowing
from .nets import Layers, beside, deepen, is_ordinary, random_net, single
from .oracle import Oracle, Question, Truth
from .scenes import Scene, make_scene

WANTED = {"label": "cr", "attention": "ar", "both": "both", "tie": "cr"}
"""The property that each kind of violation breaks, by the verifier's name."""
KINDS = tuple(WANTED)
PLACES = ("inside", "corner", "edge", "knot")

Rounded = tuple[tuple[np.ndarray, np.ndarray], ...]


@dataclass(frozen=True, eq=False)
class Planted:
    """A network with a violation and its twin without one, each with its exact truth.

    size: the intended share of the domain; `share` is the exact one.
    """

    name: str
    kind: str
    hiding: str
    place: str
    size: float
    question: Question
    truth: Truth
    twin: Question
    twin_truth: Truth

    @property
    def wanted(self) -> str:
        return WANTED[self.kind]

    @property
    def share(self) -> float:
        return float(self.truth.violated_share(self.wanted))

    @property
    def is_ordinary(self) -> bool:
        return is_ordinary(self.question.layers)


@dataclass(frozen=True, eq=False)
class _Base:
    """The network beside the bump: its label is kept everywhere, with the given margin where the bump will be."""

    layers: Layers
    label: int
    margin: float

    @property
    def classes(self) -> int:
        return len(self.layers[-1][1])


def plant(seed: int, *, kind: str, hiding: str, place: str, size: float, dimension: int) -> Planted | None:
    """Make one network and its twin; None if the scene has no room for it or rounding removed the violation."""
    random = np.random.default_rng([seed, KINDS.index(kind), HIDINGS.index(hiding), PLACES.index(place)])
    scene = make_scene(random, dimension, place, has_still=hiding in STILL)
    base = None if scene is None else _make_base(random, scene, is_trained=hiding == "trained")
    if scene is None or base is None:
        return None
    try:
        layers, twin_layers = _planted_layers(random, scene, base, kind, hiding, size)
    except OverflowError:
        return None
    dist = "l1" if random.random() < 0.3 else "l2"
    oracle, twin_oracle = (Oracle(scene.question(one, dist)) for one in (layers, twin_layers))
    delta = 1.0
    if WANTED[kind] != "cr":
        delta = _threshold(oracle.truth.inconsistencies[-1], twin_oracle.truth.inconsistencies[-1])
    question, twin = replace(oracle.question, delta=delta), replace(twin_oracle.question, delta=delta)
    truth, twin_truth = oracle.truth_at(delta), twin_oracle.truth_at(delta)
    is_lost, is_kept = truth.violated_share(WANTED[kind]) > 0, twin_truth.is_violated(WANTED[kind]) is False
    if not is_lost or not is_kept or truth.label != twin_truth.label:
        return None
    name = f"{kind}-{hiding}-{place}-{dimension}d-{size:.0e}-{seed}"
    return Planted(name, kind, hiding, place, size, question, truth, twin, twin_truth)


def by_name(name: str) -> Planted | None:
    """Make a network again by its name.

    >>> by_name("label-plain-inside-1d-1e-03-0").wanted
    'cr'
    """
    kind, hiding, place, dimension, mantissa, exponent, seed = name.split("-")
    size = float(f"{mantissa}-{exponent}")
    return plant(int(seed), kind=kind, hiding=hiding, place=place, size=size, dimension=int(dimension[0]))


def plan(count: int, seed: int) -> Iterator[Planted]:
    """`count` networks: hidings and sizes from 1e-3 to 1e-14 in turn, kinds, places and dimensions at random."""
    random = np.random.default_rng(seed)
    for number in range(count):
        hiding = HIDINGS[number % len(HIDINGS)]
        made, tries = None, 0
        while made is None:
            places = PLACES[:3] if hiding in STILL else PLACES
            made = plant(
                int(random.integers(2**31)),
                kind=str(random.choice(KINDS, p=[0.5, 0.25, 0.15, 0.1])),
                hiding=hiding,
                place=str(random.choice(places)) if tries < 8 else "inside",
                size=10.0 ** -(3 + number // len(HIDINGS) % 12),
                dimension=int(random.choice([1, 2, 3], p=[0.3, 0.5, 0.2])),
            )
            tries += 1
        yield made


def _make_base(random: np.random.Generator, scene: Scene, *, is_trained: bool) -> _Base | None:
    """A random network with two hidden layers, or a nearly linear one; its label is lifted until it is kept."""
    classes = int(random.integers(2, 5))
    if is_trained:
        sizes = [scene.image.size, int(random.integers(4, 8)), int(random.integers(3, 6)), classes]
        layers = random_net(random, sizes)
    else:
        layers = random_net(random, [scene.image.size, 2, classes], scale=0.3)
    oracle = Oracle(scene.question(single(layers)))
    if oracle.label is None:
        return None
    wish = float(2.0 ** int(random.integers(-3, 3))) + 2.0 * max(oracle.truth.inconsistencies)
    weight, bias = layers[-1]
    bias = bias.copy()
    bias[oracle.label] += max(wish - float(oracle.truth.least_margin), 0.0)
    lifted = [*layers[:-1], (weight, bias)]
    after = Oracle(scene.question(single(lifted)))
    if after.label != oracle.label or after.truth.least_margin <= 0:
        return None
    return _Base(lifted, oracle.label, float(after.at(scene.theta).margin))


def _planted_layers(
    random: np.random.Generator, scene: Scene, base: _Base, kind: str, hiding: str, size: float
) -> tuple[Rounded, Rounded]:
    """The layers of the network with the violation and of its twin."""
    over = float(random.choice([1.5, 2.0, 4.0]))
    peak = float(2.0 ** -int(random.integers(4, 12))) if hiding == "low" else 1.0
    is_top = kind in ("label", "tie")  # only the top of the bump violates, not its sides
    shape = Shape(peak, peak * (1 - 1 / over if is_top else 1.0) / _radius(scene, size))
    other = int(random.choice([j for j in range(base.classes) if j != base.label]))
    margin = float(2.0 ** int(random.integers(-3, 3))) if kind == "tie" else base.margin
    height = margin / peak * (0.25 if kind == "attention" else over)
    lower = height / over / 2 if is_top else height / 64
    if random.random() < 0.2 and kind != "tie":
        lower = 0.0
    bump = bump_layers(random, scene, hiding, shape)
    depth = int(random.integers(5, 13)) if hiding in ("deep", "overflow") else 0
    depth = max(depth, len(bump) + (2 if kind == "tie" else 1), len(base.layers))
    places = int(random.integers(2**31))
    found = []
    for tall in (height, lower):
        out = np.zeros((base.classes, 1))
        if kind == "tie":
            out[base.label] = 1.0
            whole = [*bump, (np.array([[-tall]]), np.array([margin])), (out, np.zeros(base.classes))]
            beneath = _level(base, other)
        else:
            out[other] = tall
            whole = [*bump, (out, np.zeros(base.classes))]
            beneath = base.layers
        net = beside(deepen(beneath, depth), deepen(whole, depth, np.random.default_rng(places)))
        if hiding == "overflow":
            net = beside(net, overflowing(scene.image.size, depth, base.classes))
        found.append(single(net))
    return found[0], found[1]


def _radius(scene: Scene, size: float) -> float:
    """In pixels the cell is a ball of the 1-norm with volume (2r)^d/d!; each border of the domain halves it."""
    d = len(scene.pixels)
    room = size * scene.determinant * scene.volume * factorial(d) * 2**scene.borders
    return room ** (1 / d) / 2


def _level(base: _Base, other: int) -> Layers:
    """The base with another class exactly equal to the label."""
    weight, bias = (part.copy() for part in base.layers[-1])
    weight[other], bias[other] = weight[base.label], bias[base.label]
    return [*base.layers[:-1], (weight, bias)]


def _threshold(bump: float, twin: float) -> float:
    """δ between the largest inconsistencies of the network and of its twin."""
    return float(np.float32(max(twin * bump, (bump / 4) ** 2) ** 0.5))
