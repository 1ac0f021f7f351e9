"""Constants that are rounded when a model is read: proofs hold for the exact ones, whatever cancels."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from onnx import TensorProto, helper

import steadygaze
from steadygaze.attention.options import AttentionOptions
from steadygaze.bounds.bounder import Bounder
from steadygaze.errors import ModelError
from steadygaze.exact import ExactLabels
from steadygaze.network.model import read_model
from steadygaze.network.operators import MatMul, ScaleShift
from steadygaze.network.steps import Step, is_folded
from steadygaze.question import make_question
from steadygaze.regions import forward_error

SPECS = ("darkness",)
IMAGE = np.array([[[0.0, 1.0]]])
SEEDS = range(12)
KINDS = ("last", "first", "hidden")
LARGE = 2.0**20


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs, [output], **attributes)


def slope(gain: float, variance: float, epsilon: float) -> Fraction:
    """gain / √(variance + epsilon) to 100 digits."""
    spread = Fraction(variance) + Fraction(epsilon)
    root = Fraction(isqrt(spread.numerator * 10**240 // spread.denominator), 10**120)
    return Fraction(gain) / root


@dataclass(frozen=True, eq=False)
class Cancelling:
    """A batch norm of two pixels (a, b) whose first shift cancels, so that its float and its true value differ.

    Logit 0 minus logit 1 is, up to a positive factor, shift − threshold + b·slope_b, where `threshold` lies between the
    true and the computed shift. "last": the batch norm gives the logits. "first": a large weight follows. "hidden": a
    large weight and a ReLU follow.
    """

    kind: str
    gain: np.ndarray
    offset: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    threshold: float

    EPSILON = float(np.float32(1e-5))

    @classmethod
    def make(cls, kind: str, seed: int) -> "Cancelling":
        rng = np.random.default_rng(seed)
        gain, variance = np.array([rng.uniform(0.5, 2.0), 1.0]), np.array([rng.uniform(0.5, 2.0), 1.0])
        mean = np.array([rng.uniform(0.5e8, 1e8), 0.0])
        offset = np.array([float(mean[0] * slope(gain[0], variance[0], cls.EPSILON)), 0.0])
        case = cls(kind, gain, offset, mean, variance, 0.0)
        threshold = float((case.true_shift + Fraction(case.computed_shift)) / 2)
        if kind == "last":
            gain[1], offset[1] = -1.0, threshold
        return cls(kind, gain, offset, mean, variance, threshold)

    @property
    def true_shift(self) -> Fraction:
        factor = slope(self.gain[0], self.variance[0], self.EPSILON)
        return Fraction(self.offset[0]) - Fraction(self.mean[0]) * factor

    @property
    def computed_shift(self) -> float:
        return float(self.offset[0] - self.mean[0] * self.gain[0] / np.sqrt(self.variance[0] + self.EPSILON))

    def margin(self, b: Fraction) -> Fraction:
        """The exact margin for pixels (0, b)."""
        if self.kind == "last":
            return self.true_shift - Fraction(self.threshold) - b * slope(-1.0, 1.0, self.EPSILON)
        inner = b * slope(1.0, 1.0, self.EPSILON) + self.true_shift
        if self.kind == "first":
            return Fraction(LARGE) * (inner - Fraction(self.threshold))
        return max(Fraction(LARGE) * inner + 1, Fraction(0)) + Fraction(-LARGE * self.threshold - 1.0)

    def write(self, save):
        names = ["gain", "offset", "mean", "variance"]
        weights = {name: getattr(self, name) for name in names}
        nodes = [node("Flatten", ["image"], "flat"), node("Relu", ["flat"], "pixels")]
        nodes.append(node("BatchNormalization", ["pixels", *names], "norm", epsilon=self.EPSILON))
        if self.kind != "last":
            weights |= {"w": np.array([[LARGE, 0.0], [LARGE, 0.0]]), "v": np.array([-LARGE * self.threshold, 0.0])}
            if self.kind == "first":
                nodes.append(node("Gemm", ["norm", "w", "v"], "logits"))
            else:
                weights |= {"one": np.array([1.0, 0.0]), "unit": np.eye(2), "u": weights["v"] - [1.0, 0.0]}
                nodes.append(node("Gemm", ["norm", "w", "one"], "sum"))
                nodes.append(node("Relu", ["sum"], "hidden"))
                nodes.append(node("Gemm", ["hidden", "unit", "u"], "logits"))
        return save(nodes, weights, [1, 1, 1, 2], elem=TensorProto.DOUBLE, classes=[1, 2])


def plain_bias_sizes(patch: pytest.MonkeyPatch) -> None:
    """The mistake: a rounded shift is taken as accurate to its own last digits."""
    patch.setattr(Step, "count_roundings", lambda self, operator, shape: self)


def no_folding_errors(patch: pytest.MonkeyPatch) -> None:
    """The mistake in the map: joined steps are taken as exact."""
    patch.setattr(forward_error, "_folding", lambda segment, size: 0.0 * size[:1])


def no_exact_arithmetic(patch: pytest.MonkeyPatch) -> None:
    """Not an error: labels that float64 cannot decide stay undecided."""

    def refuse(self, *arguments, **options):
        raise ModelError("no exact arithmetic")

    patch.setattr(ExactLabels, "__init__", refuse)


def wrong_bounds(save) -> int:
    """How many cases have a bound over a point that excludes the exact margin there."""
    wrong = 0
    for seed, kind in ((seed, kind) for seed in SEEDS for kind in KINDS):
        case = Cancelling.make(kind, seed)
        question = make_question(case.write(save), IMAGE, SPECS)
        bounder = Bounder(question.model.graph, question.perturbed, 0, AttentionOptions())
        for t in (0.0, 0.25, 1.0):
            low, high = bounder.bound(0, np.array([[t]]), np.array([[t]])).margin[0]
            exact = case.margin(1 - Fraction(t))
            wrong += not low <= exact <= high
            assert high - low <= 1e-5 * (1.0 if kind == "last" else LARGE), "far wider than rounding"
    return wrong


def test_bounds_hold_for_a_batch_norm_whose_shift_cancels(save):
    assert wrong_bounds(save) == 0


def test_bounds_relative_to_the_rounded_shift_are_wrong(save, monkeypatch):
    plain_bias_sizes(monkeypatch)
    assert wrong_bounds(save) > 0


def wrong_verdicts(save, method: str) -> list[str]:
    """Verdicts about the label that the exact margin at the end of the domain, its smallest, contradicts."""
    wrong = []
    for seed, kind in ((seed, kind) for seed in SEEDS[:6] for kind in KINDS):
        case = Cancelling.make(kind, seed)
        result = steadygaze.verify(case.write(save), IMAGE, SPECS, property="cr", method=method, threads=1)
        least = case.margin(Fraction(0))
        if result.verdict.value == ("robust" if least <= 0 else "not robust"):
            wrong.append(f"{kind} {seed}: {result.verdict.value}, smallest margin {float(least):.3g}")
    return wrong


@pytest.mark.parametrize("method", ["map", "refine"])
def test_no_verdict_is_wrong_where_a_shift_cancels(save, method):
    assert wrong_verdicts(save, method) == []


@pytest.mark.parametrize("method", ["map", "refine"])
def test_no_verdict_is_wrong_without_exact_arithmetic(save, method, monkeypatch):
    no_exact_arithmetic(monkeypatch)
    assert wrong_verdicts(save, method) == []


def test_a_map_without_errors_of_folding_is_wrong(save, monkeypatch):
    no_exact_arithmetic(monkeypatch)
    no_folding_errors(monkeypatch)
    assert wrong_verdicts(save, "map")


@pytest.mark.parametrize("kind", KINDS)
def test_exact_arithmetic_takes_the_numbers_of_the_file(save, kind):
    for seed in SEEDS:
        case = Cancelling.make(kind, seed)
        labels = ExactLabels(make_question(case.write(save), IMAGE, SPECS).compound, 0)
        for t in (0.0, 0.25, 1.0):
            low, high = labels.margin_at(np.array([t]))
            truth = case.margin(1 - Fraction(t))
            assert low - Fraction(1, 10**80) <= truth <= high + Fraction(1, 10**80)
            assert high - low < Fraction(1, 10**40)


def dense(rng, *, is_merged: bool):
    """Gemm, batch norm with √(variance + epsilon) a power of two and a shift that cancels, ReLU, Gemm; or merged.

    All numbers have few bits, so that merging is exact.
    """
    first, bias = rng.integers(-8, 9, size=(2, 4)) / 4.0, rng.integers(-8, 9, size=4) / 8.0
    deviation, gain = 2.0 ** rng.integers(-2, 3, size=4), rng.integers(1, 5, size=4) / 4.0
    mean = 2.0**26 + rng.integers(-8, 9, size=4)
    offset = (mean - rng.integers(-8, 9, size=4) / 16.0) * gain / deviation
    second, last = rng.integers(-8, 9, size=(4, 2)) * 2.0**10, rng.integers(-8, 9, size=2) / 4.0
    nodes = [node("Flatten", ["image"], "flat")]
    weights = {"w": first, "v": bias, "w2": second, "v2": last}
    if is_merged:
        weights |= {"w": first * gain / deviation, "v": (bias - mean) * gain / deviation + offset}
        nodes.append(node("Gemm", ["flat", "w", "v"], "norm"))
    else:
        epsilon = 2.0**-10
        weights |= {"gain": gain, "offset": offset, "mean": mean, "variance": deviation**2 - epsilon}
        nodes.append(node("Gemm", ["flat", "w", "v"], "sum"))
        names = ["sum", "gain", "offset", "mean", "variance"]
        nodes.append(node("BatchNormalization", names, "norm", epsilon=epsilon))
    nodes += [node("Relu", ["norm"], "hidden"), node("Gemm", ["hidden", "w2", "v2"], "logits")]
    return nodes, weights


def test_merged_and_separate_batch_norms_do_not_contradict(save):
    decided = 0
    for seed in range(8):
        results = []
        for is_merged in (False, True):
            nodes, weights = dense(np.random.default_rng(seed), is_merged=is_merged)
            path = save(nodes, weights, [1, 1, 1, 2], elem=TensorProto.DOUBLE, classes=[1, 2])
            image = np.array([[[0.25, 0.75]]])
            results.append(steadygaze.verify(path, image, "brightness:-0.25..0.25", property="cr", method="map"))
        verdicts = {result.verdict.value for result in results}
        assert verdicts != {"robust", "not robust"}
        decided += len(verdicts) == 1 and "undecided" not in verdicts
        for name in ("CR", "MR"):
            (a, b), (c, d) = (result.areas[name] for result in results)
            assert max(a, c) <= min(b, d) + 1e-12
    assert decided >= 6


def test_roundings_are_counted_where_there_are_some(save):
    weights = {"c": np.float32([[3.0]]), "w": np.float32([[0.1, 0.2], [0.3, 0.4]])}
    nodes = [
        node("Div", ["image", "c"], "d"),
        node("Mul", ["d", "c"], "m"),
        node("Add", ["m", "c"], "a"),
        node("Flatten", ["a"], "f"),
        node("Gemm", ["f", "w"], "logits", alpha=0.3),
    ]
    path = save(nodes, weights, [1, 1, 1, 2], classes=[1, 2])
    ((divided, multiplied, added, product),) = read_model(path).graph.steps
    assert [step.roundings > 0 for step in (divided, multiplied, added, product)] == [True, False, False, False]
    assert is_folded([divided]) and not is_folded([multiplied])
    assert divided.terms > multiplied.terms
    ((scaled, *_),) = read_model(path, mean=0.1, std=0.3).graph.steps
    assert scaled.roundings > 0
    np.testing.assert_array_equal(scaled.bias_size, np.abs(scaled.bias))


def operators_of(save, nodes, weights, *, elem=TensorProto.DOUBLE):
    graph = read_model(save(nodes, weights, [1, 1, 1, 2], elem=elem, classes=[1, 2])).graph
    return [one.operator for one in graph.nodes if isinstance(one.operator, MatMul | ScaleShift)]


@pytest.mark.parametrize(
    "alpha,beta,kind,expected",
    [(0.3, 1.0, np.float64, 1), (1.0, 0.3, np.float64, 1), (0.5, -2.0, np.float64, 0), (0.3, 0.7, np.float32, 0)],
)
def test_gemm_with_factors(save, alpha, beta, kind, expected):
    weights = {"w": kind([[0.1, 0.2], [0.3, 0.4]]), "b": kind([0.1, 0.2])}
    nodes = [node("Flatten", ["image"], "f"), node("Gemm", ["f", "w", "b"], "logits", alpha=alpha, beta=beta)]
    elem = TensorProto.DOUBLE if kind is np.float64 else TensorProto.FLOAT
    (found,) = operators_of(save, nodes, weights, elem=elem)
    assert found.roundings == expected
    for attribute, name, factor in (("weight", "w", alpha), ("bias", "b", beta)):
        exact = [Fraction(float(v)) * Fraction(float(np.float32(factor))) for v in weights[name].ravel()]
        rounded = [Fraction(float(v)) for v in getattr(found, attribute).ravel()]
        for a, b in zip(exact, rounded, strict=True):
            assert abs(a - b) <= expected * abs(a) / 2**53


@pytest.mark.parametrize(
    "kind,left,right,expected",
    [
        ("Mul", 0.1, 0.3, 1),
        ("Mul", 0.1, 4.0, 0),
        ("Mul", float(np.float32(0.1)), float(np.float32(0.3)), 0),
        ("Div", 1.0, 3.0, 1),
        ("Div", 1.5, 3.0, 0),
        ("Add", 0.1, 0.3, 1),
        ("Add", 0.25, 0.5, 0),
        ("Sub", 1.0, 2.0**-60, 1),
        ("Sub", 0.3, 0.2999, 0),
    ],
)
def test_folded_constants_count_their_roundings(save, kind, left, right, expected):
    weights = {"l": np.full((1, 2), left), "r": np.full((1, 2), right)}
    nodes = [node("Flatten", ["image"], "f"), node(kind, ["l", "r"], "c"), node("Mul", ["f", "c"], "logits")]
    (found,) = operators_of(save, nodes, weights)
    assert found.roundings == expected
    exact = {"Mul": Fraction.__mul__, "Div": Fraction.__truediv__, "Add": Fraction.__add__, "Sub": Fraction.__sub__}
    truth = exact[kind](Fraction(left), Fraction(right))
    assert (Fraction(float(found.factor.ravel()[0])) == truth) == (expected == 0)


def test_exact_arithmetic_refuses_constants_rounded_by_the_reader(save):
    weights = {"l": np.full((1, 2), 1.0), "r": np.array([[3.0, 7.0]])}
    nodes = [node("Flatten", ["image"], "f"), node("Div", ["l", "r"], "c"), node("Mul", ["f", "c"], "logits")]
    path = save(nodes, weights, [1, 1, 1, 2], elem=TensorProto.DOUBLE, classes=[1, 2])
    with pytest.raises(ModelError, match="rounded"):
        ExactLabels(make_question(path, np.array([[[0.9, 1.0]]]), SPECS).compound, 0)


def test_sums_of_rounded_constants_are_refused(save):
    weights = {"l": np.full((1, 2), 1.0), "r": np.full((1, 2), 3.0)}
    nodes = [node("Flatten", ["image"], "f"), node("Div", ["l", "r"], "c"), node("Sub", ["l", "c"], "d")]
    nodes.append(node("Mul", ["f", "d"], "logits"))
    with pytest.raises(ModelError, match="rounded"):
        operators_of(save, nodes, weights)


@pytest.mark.parametrize("gain,variance", [(1e-300, 1e200), (1e300, 1e-200)])
def test_a_batch_norm_beyond_float64_is_refused(save, gain, variance):
    weights = {"g": np.full(2, gain), "z": np.zeros(2), "v": np.full(2, variance)}
    nodes = [
        node("Flatten", ["image"], "f"),
        node("BatchNormalization", ["f", "g", "z", "z", "v"], "logits", epsilon=0.0),
    ]
    with pytest.raises(ModelError, match="range of float64"):
        operators_of(save, nodes, weights)
