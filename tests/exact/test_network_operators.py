"""Every operator of a graph in exact arithmetic, against plain fractions; enclosed constants and families."""

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar

import numpy as np
import pytest

from steadygaze.compound import Compound
from steadygaze.errors import ModelError
from steadygaze.exact import ExactLabels, LabelOutcome
from steadygaze.network.graph import Graph, Node, lower
from steadygaze.network.operators import LeftMatMul, Linear, MatMul, Mean, Pad, Relu, Reshape, ScaleShift, Transpose
from steadygaze.network.windows import AveragePool, Conv, Window
from steadygaze.perturbation import Perturbation, compose
from support.networks.layered_networks import batch_norm, compound_of
from support.oracles import exact_margin

RNG = np.random.default_rng(5)
IMAGE = RNG.integers(0, 256, size=(2, 4, 4)) / 255
SPECS = ("brightness:-0.3..0.4", "translate:dx=2:-1..2")
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def weights(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32).astype(np.float64)


def window(size: int, stride: int = 1, pad: int = 0, *, ceil: bool = False) -> Window:
    return Window((size, size), (stride, stride), (1, 1), (pad, pad), (pad, pad), ceil)


def dense(count: int) -> list:
    return [Reshape((1, count)), MatMul(weights(count, 3), weights(3))]


NETWORKS = {
    "conv": [Conv(weights(3, 2, 3, 3), weights(3), window(3, pad=1)), Relu(), *dense(48)],
    "strides and groups": [Conv(weights(4, 1, 2, 2), weights(4), window(2, 2), groups=2), Relu(), *dense(16)],
    "average pool": [
        Conv(weights(2, 2, 2, 2), weights(2), window(2)),
        Relu(),
        AveragePool(window(2, 2, ceil=True)),
        *dense(8),
    ],
    "padded pool": [AveragePool(window(3, 2, 1), count_padding=True), Relu(), *dense(8)],
    "batch norm": [
        Conv(weights(2, 2, 2, 2), weights(2), window(2)),
        batch_norm([0.1, -0.2], [1.5, 0.7], [0.25, 2.25], [0.3, 0.1]),
        Relu(),
        *dense(18),
    ],
    "pad, mean, transpose": [
        Pad((0, 0, 1, 0), (0, 0, -1, 2), 0.7),
        Transpose((0, 2, 3, 1)),
        MatMul(weights(2, 3), weights(3)),
        Relu(),
        Mean((1,)),
        *dense(18),
    ],
    "left product, add, subtract": [
        LeftMatMul(weights(3, 4)),
        ScaleShift(offset=weights(2, 1, 1)),
        Relu(),
        ScaleShift(gain=np.full((), -1.0), offset=weights(1, 4)),
        Relu(),
        *dense(24),
    ],
    "huge and tiny": [
        Conv(weights(2, 2, 2, 2) * 10.0 ** RNG.integers(-150, 150, size=(2, 2, 2, 2)), weights(2), window(2)),
        Relu(),
        *dense(18),
    ],
}


@pytest.mark.parametrize("name", NETWORKS)
def test_margins_are_exact(name):
    compound = compound_of(NETWORKS[name], IMAGE, SPECS)
    labels = ExactLabels(compound, 1)
    for theta in ([-0.3, -1.0], [0.1, 0.0], [0.25, 0.37], [0.4, 2.0], [0.0, 1.9]):
        truth = exact_margin.margin(compound, 1, np.array(theta))
        assert labels.margin_at(np.array(theta)) == (truth, truth)


@pytest.mark.parametrize("name", NETWORKS)
def test_outcomes_agree_with_samples_across_knots(name):
    compound = compound_of(NETWORKS[name], IMAGE, SPECS)
    labels = ExactLabels(compound, 1)
    rng = np.random.default_rng(1)
    for middle in ([0.5, 1 / 3], [0.2, 2 / 3], [0.8, 0.5]):
        vertices = np.array(middle) + 0.05 * np.array([[-1, -1], [1, -1], [0, 1]])
        settlement = labels.settle(vertices, 1e-12, limit_seconds=60, max_parts=10**5)
        thetas = compound.to_theta(rng.dirichlet(np.ones(3), size=20) @ vertices)
        signs = {exact_margin.margin(compound, 1, theta) > 0 for theta in thetas}
        assert settlement.outcome in (LabelOutcome.KEPT, LabelOutcome.LOST, LabelOutcome.MIXED)
        assert (
            signs
            <= {LabelOutcome.KEPT: {True}, LabelOutcome.LOST: {False}, LabelOutcome.MIXED: {True, False}}[
                settlement.outcome
            ]
        )


IRRATIONAL = [
    Conv(weights(2, 2, 2, 2), weights(2), window(2)),
    batch_norm([0.1, -0.2], [1.5, 0.7], [0.3, 2.1], [0.3, 0.1], 1e-5),
    Relu(),
    Conv(weights(3, 2, 2, 2), weights(3), window(2)),
    batch_norm([0.1, -0.2, 0.4], [1.5, -0.7, 2.0], [0.3, 2.1, 0.9], [0.3, 0.1, 0.0], 1e-5),
    Relu(),
    *dense(12),
]


def test_irrational_roots_are_enclosed():
    compound = compound_of(IRRATIONAL, IMAGE, SPECS)
    labels = ExactLabels(compound, 1)
    for theta in ([-0.3, -1.0], [0.1, 0.0], [0.25, 0.37], [0.4, 2.0]):
        low, high = labels.margin_at(np.array(theta))
        truth = exact_margin.margin(compound, 1, np.array(theta))
        error = Fraction(1, 10**70)
        assert low - error <= truth <= high + error
        assert 0 < high - low < Fraction(1, 2**200)
        assert (
            high - low
            > labels.margin_at(np.array(theta), bits=1024)[1] - labels.margin_at(np.array(theta), bits=1024)[0]
        )


def test_outcomes_with_irrational_roots():
    compound = compound_of(IRRATIONAL, IMAGE, SPECS)
    rng = np.random.default_rng(2)
    seen = set()
    for label in range(3):
        labels = ExactLabels(compound, label)
        for _ in range(6):
            vertices = rng.random(2) + rng.uniform(-0.1, 0.1, size=(4, 2))
            vertices = np.clip(vertices, 0.0, 1.0)
            settlement = labels.settle(vertices, 1e-12, limit_seconds=60, max_parts=10**5, with_shares=True)
            seen.add(settlement.outcome)
            thetas = compound.to_theta(rng.dirichlet(np.ones(4), size=10) @ vertices)
            signs = {exact_margin.margin(compound, label, theta) > 0 for theta in thetas}
            allowed = {LabelOutcome.KEPT: {True}, LabelOutcome.LOST: {False}, LabelOutcome.MIXED: {True, False}}
            assert signs <= allowed[settlement.outcome]
            assert 0.0 <= settlement.shares.kept[0] <= settlement.shares.kept[1] <= 1.0
            if settlement.witness is not None:
                assert exact_margin.margin(compound, label, settlement.witness) < 0
    assert {LabelOutcome.KEPT, LabelOutcome.LOST} <= seen


def test_a_tie_behind_a_root_stays_open():
    """Two equal logits behind a batch normalisation with √2: no precision proves a tie, and none breaks it."""
    operators = [
        batch_norm([0.1, 0.1], [1.0, 1.0], [2.0, 2.0], [0.0, 0.0]),
        Reshape((1, 32)),
        MatMul(np.tile([[1.0, 1.0, -1.0]], (32, 1)), np.zeros(3)),
    ]
    settlement = ExactLabels(compound_of(operators, IMAGE, ("brightness:0.1..0.4",)), 0).settle(
        SQUARE, 0.0, limit_seconds=60
    )
    assert settlement.outcome is LabelOutcome.OPEN
    assert "enclosed" in settlement.reason


def test_a_division_is_exact():
    """Thirds of x are thirds, and three of them are x."""
    theta, last = np.array([0.1, 0.1]), dense(32)
    divided, plain = (
        ExactLabels(compound_of([*first, Relu(), *last], IMAGE, SPECS), 0).margin_at(theta)
        for first in ([ScaleShift(divisor=np.array(3.0)), ScaleShift(gain=np.array(3.0))], [])
    )
    assert divided == plain and divided.low == divided.high


def test_preprocessing_is_exact():
    """(x − 0.1307)/0.3081 as the reader of a file makes it, of the floats as they are."""
    mean, std = np.full((2, 1, 1), 0.1307), np.full((2, 1, 1), 0.3081)
    operators = [Reshape((1, 32)), MatMul(weights(32, 3), weights(3))]
    nodes, shape = [Node(ScaleShift(mean=mean, divisor=std), (0,), IMAGE.shape, "preprocessing")], IMAGE.shape
    for number, operator in enumerate(operators, start=1):
        shape = operator.output_shape(shape)
        nodes.append(Node(operator, (number,), shape, f"node {number}"))
    graph = Graph(IMAGE.shape, tuple(nodes))
    plain = compound_of([], IMAGE, SPECS).perturbed
    compound = Compound(graph, lower(graph), plain)
    low, high = ExactLabels(compound, 0).margin_at(np.array([0.0, 0.0]))
    pixels = [(Fraction(int(v), 255) - Fraction(0.1307)) / Fraction(0.3081) for v in np.rint(IMAGE * 255).ravel()]
    logits = [
        sum((Fraction(float(w)) * p for w, p in zip(column, pixels, strict=True)), Fraction(float(b)))
        for column, b in zip(operators[1].weight.T, operators[1].bias, strict=True)
    ]
    truth = logits[0] - max(logits[1:])
    assert low == truth == high


@dataclass(frozen=True, kw_only=True)
class Smear(Perturbation):
    """x + θ·(mean of the image − x): its floats are rounded."""

    keyword: ClassVar[str] = "smear"
    example: ClassVar[str] = "smear"

    @property
    def name(self) -> str:
        return "smear"

    def apply(self, image, thetas):
        return image + thetas[:, None, None, None] * (image.mean() - image)

    def change(self, image, low, high):
        return np.zeros(image.shape), image.mean() - image


@dataclass(frozen=True, kw_only=True)
class Fade(Smear):
    """x + θ·(1 − x): whole numbers become whole numbers, so it is exact."""

    def apply(self, image, thetas):
        return image + thetas[:, None, None, None] * (1.0 - image)

    def change(self, image, low, high):
        return np.zeros(image.shape), 1.0 - image


@pytest.mark.parametrize("pixels", [IMAGE, np.round(IMAGE, 3)])
def test_families_that_round_are_enclosed_and_others_exact(pixels):
    graph = compound_of(NETWORKS["conv"], pixels, SPECS).graph
    exact = [Fraction(int(v), 255) for v in np.rint(pixels * 255).ravel()]
    if not np.array_equal(pixels, IMAGE):
        exact = [Fraction(float(v)) for v in pixels.ravel()]
    for family, target in ((Fade(), Fraction(1)), (Smear(), sum(exact) / len(exact))):
        compound = Compound(graph, lower(graph), compose([family], pixels))
        low, high = ExactLabels(compound, 0).margin_at(np.array([0.3]))
        values = [x + Fraction(0.3) * (target - x) for x in exact]
        for number, node in enumerate(graph.nodes):
            values = exact_margin._apply(node.operator, values, graph.shape_of(number))
        truth = values[0] - max(values[1:])
        assert low <= truth <= high
        assert (low == high) == isinstance(family, Fade)
        assert high - low < 1e-11


class Doubled(Linear):
    """2 x, as an operator that nothing else knows."""

    def output_shape(self, *shapes):
        return shapes[0]

    def apply(self, *values):
        return 2.0 * values[0]

    def affine(self, shape):
        return 2.0 * np.eye(prod(shape)), np.full(prod(shape), 0.25)


class RoundedWhenUsed(Doubled):
    own_roundings: ClassVar[int] = 1


def test_an_unknown_operator_with_exact_constants_is_exact():
    compound = compound_of([Doubled(), Relu(), *dense(32)], IMAGE, SPECS)
    theta = np.array([0.25, 0.37])
    truth = exact_margin.margin(compound, 1, theta)
    assert ExactLabels(compound, 1).margin_at(theta) == (truth, truth)


@pytest.mark.parametrize(
    ("operator", "message"),
    [(RoundedWhenUsed(), "does not support RoundedWhenUsed"), (Doubled(read_roundings=1), "reading it rounded")],
)
def test_rounded_constants_are_refused(operator, message):
    with pytest.raises(ModelError, match=message):
        ExactLabels(compound_of([operator, *dense(32)], IMAGE, SPECS), 0)
