"""Six networks built to deceive: never robust, no share that excludes the truth, no internal error.

The truths come from the exact oracle; short derivations stand beside them.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from adversary.judge import ENGINES, WHOLE, ask, complaints
from adversary.oracle import Change, Oracle, Question, Truth
from steadygaze import verify

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Deceiver:
    """A model file, its image, and the question that it answered wrongly once."""

    model: str
    image: str
    changes: tuple[Change, ...]
    wanted: str
    delta: float = 1.0

    @property
    def path(self) -> Path:
        return DATA / f"{self.model}.onnx"


def patch(x: int, y: int, w: int = 1, h: int = 1, high: float = 1.0) -> Change:
    return Change("patch", 0.0, high, x=x, y=y, w=w, h=h)


OVERFLOWING = (Change("brightness", -1.0, 1.0), patch(1, 1, 2, 2))
DECEIVERS = {
    one.model: one
    for one in (
        Deceiver("a2", "a2", (patch(0, 1),), "cr"),
        Deceiver("a3", "a3", (patch(3, 1),), "ar"),
        Deceiver("a4", "a4", (patch(3, 1, high=0.50001),), "cr"),
        Deceiver("a6b", "a6", OVERFLOWING, "cr"),
        Deceiver("a6ref", "a6", OVERFLOWING, "cr"),
        Deceiver("bump5", "bump", (patch(0, 0), patch(1, 0)), "cr"),
        Deceiver(
            "s378",
            "s378",
            (Change("brightness", -0.99, 0.16), Change("brightness", -0.94, 0.7), Change("translate", 0.0, 3.0, dy=-3)),
            "both",
            500_000.0,
        ),
    )
}


def read_layers(path: Path) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    parts = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}
    return tuple((parts[f"W{k}"], parts[f"b{k}"]) for k in range(len(parts) // 2))


@cache
def oracle_of(name: str) -> Oracle:
    one = DECEIVERS[name]
    image = np.load(DATA / f"{one.image}.npy")
    return Oracle(Question(read_layers(one.path), image, one.changes, "l2", one.delta))


def truth_of(name: str) -> Truth:
    return oracle_of(name).truth


# The truths


def test_truth_of_a2():
    """h = ReLU(2^20·(x_1 − x_2) + 2^-20·θ) = 2^-20·θ, z = ReLU(2^24·h + x_4 − 9) = ReLU(16θ − 8), f = (4 − z, 0).

    The label 0 is lost where 16θ − 8 > 4: θ > 3/4.
    """
    truth = truth_of("a2")
    assert truth.label == 0
    assert truth.shares["MR"] == (0.25, 0.25)
    assert oracle_of("a2").at([0.9]).margin == pytest.approx(-2.4, abs=1e-6)


def test_truth_of_a3():
    """The large terms of the first neuron add up to less than 2^-60; it is 1 + θ, and its kink above lies at 1/2.

    ai is 0.01 below it and 673,379 above.
    """
    truth = truth_of("a3")
    assert float(truth.shares["AR"][0]) == pytest.approx(0.5, abs=1e-15)
    assert truth.inconsistencies == pytest.approx((0.01, 673379.18), rel=1e-6)


def test_truth_of_a4():
    """f = (1 − 2^20·ReLU(1.001·θ − 0.5005…), 0.01·θ): lost on the last 2e-5 of the domain."""
    truth = truth_of("a4")
    assert float(truth.shares["MR"][0]) == pytest.approx(1.8176174811191052e-05, rel=1e-12)
    assert float(truth.least_margin) == pytest.approx(-9.539270762682268)


def test_truth_of_a6():
    """Both files compute the same function: the label is never lost, and tied on exactly an eighth of the domain."""
    for name in ("a6b", "a6ref"):
        truth = truth_of(name)
        assert (truth.shares["CR"], truth.shares["MR"], truth.tied) == ((0.875, 0.875), (0, 0), 0.125)
        assert truth.least_margin == 0


def test_truth_of_bump5():
    """A bump of ±1 in the margin: lost on a share of 5.005e-11, and the margin falls to −1.0005."""
    truth = truth_of("bump5")
    assert float(truth.shares["MR"][0]) == pytest.approx(5.005348484961974e-11, rel=1e-12)
    assert float(truth.least_margin) == pytest.approx(-1.0005347963256077)


def test_truth_of_s378():
    """The label is kept everywhere by 0.0808…; ai is 0, or 834,338 and more on a share of 5.76e-5.

    So any δ between them gives the same answer, and so does 25 % of the original maps, which are 0.
    """
    truth = truth_of("s378")
    assert truth.shares["CR"] == (1, 1)
    assert float(truth.least_margin) == pytest.approx(0.08088541030883789)
    assert float(truth.shares["IR"][0]) == pytest.approx(5.760637695915746e-05, rel=1e-12)


# The verifier


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DECEIVERS)
def test_no_engine_is_deceived(name, engine):
    one, oracle = DECEIVERS[name], oracle_of(name)
    answer = ask(one.path, oracle.question, one.wanted, engine, limit_seconds=1.0)
    assert not complaints(answer, oracle.truth, one.wanted, oracle)
    assert answer.verdict in ("not robust", "undecided", "refused")


@pytest.mark.parametrize("name", DECEIVERS)
def test_the_usual_refinement_is_not_deceived(name):
    """As the command line runs it: until a thousandth is left, with a relative δ for s378."""
    one, oracle = DECEIVERS[name], oracle_of(name)
    delta = "25%" if name == "s378" else one.delta
    options = {"method": "refine", "property": one.wanted, "delta": delta}
    result = verify(one.path, oracle.question.image, oracle.question.specs, **options)
    assert result.summary()["verdict"] in ("not robust", "undecided")


@pytest.mark.parametrize("engine", WHOLE)
@pytest.mark.parametrize("name", ["a2", "bump5"])
def test_the_violation_is_found(name, engine):
    one, oracle = DECEIVERS[name], oracle_of(name)
    assert ask(one.path, oracle.question, one.wanted, engine).verdict == "not robust"


@pytest.mark.parametrize("engine", WHOLE)
def test_equal_functions_get_answers_that_do_not_contradict(engine):
    answers = [ask(DECEIVERS[name].path, oracle_of(name).question, "cr", engine).verdict for name in ("a6b", "a6ref")]
    assert "robust" not in answers


@pytest.mark.parametrize("method", WHOLE)
def test_the_witness_is_one_that_onnxruntime_shows(method: str) -> None:
    """The label of a2 is lost beyond 3/4; just beyond it float32 still keeps it."""
    one = DECEIVERS["a2"]
    image = np.load(DATA / f"{one.image}.npy")
    result = verify(one.path, image, [change.spec for change in one.changes], method=method, property="cr")
    witness = next(found for found in result.witnesses if found.kind == "label")
    assert witness.replay.agrees and witness.remark is None and witness.point.margin < -1.0
