"""Claims that float64 confirms, leaves open or refutes; and violations that float32 cannot show."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from steadygaze.api import verify
from steadygaze.errors import InternalError
from steadygaze.network.replay import FLOAT32
from steadygaze.report.page.facts import witness_rows
from steadygaze.results import map_check
from steadygaze.results.claims import Claim, Violation
from steadygaze.results.witness import Enclosing, find_witnesses

PLACE, ASIDE, STEEP = np.float32(0.371), np.float32(1.5e-8), np.float32(1e8)
CENTRE = float(PLACE) + float(ASIDE)
LAYERS = [
    (np.array([[1.0, 0, 0, 0]]), [-PLACE]),
    (np.array([[1.0], [-1.0]]), [-ASIDE, ASIDE]),
    (np.array([[-STEEP, -STEEP]]), [1.0]),
    (np.array([[-2.0], [0.0]]), [1.0, 0.0]),
]


def exact_margin(theta: float) -> Fraction:
    """1 − 2·relu(1 − 1e8·|relu(θ − 0.371) − 1.5e-8|) in rational numbers, each weight as float32."""
    first = max(Fraction(theta) - Fraction(float(PLACE)), Fraction(0))
    bump = max(1 - Fraction(float(STEEP)) * abs(first - Fraction(float(ASIDE))), Fraction(0))
    return 1 - 2 * bump


@pytest.fixture(scope="module")
def bump(tmp_path_factory):
    """The map of a bump 1e-8 wide, between two neighbouring float32 numbers, where the label is lost."""
    nodes, weights, last = [helper.make_node("Flatten", ["image"], ["a0"])], {}, "a0"
    for number, (weight, bias) in enumerate(LAYERS):
        weights |= {f"w{number}": np.asarray(weight, np.float32), f"b{number}": np.asarray(bias, np.float32)}
        nodes.append(helper.make_node("Gemm", [last, f"w{number}", f"b{number}"], [f"h{number}"], transB=1))
        nodes.append(helper.make_node("Relu", [f"h{number}"], [f"a{number + 1}"]))
        last = f"a{number + 1}"
    nodes.pop()
    graph = helper.make_graph(
        nodes,
        "bump",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 2, 2])],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    path = tmp_path_factory.mktemp("bump") / "bump.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return verify(path, np.zeros((1, 2, 2)), ["patch:x=0,y=0,w=1,h=1"], property="cr", delta=1.0)


def claiming(result, *claims: tuple[float, float], kind=Violation.LABEL):
    """The same result with only the given claims: thetas, and the errors of their margins."""
    tiling = replace(result.tiling)
    found = [Claim(np.array([theta]), None, slack, lambda: np.inf) for theta, slack in claims]
    tiling.__dict__["claims"] = lambda answer, wanted, scale: iter(found if wanted is kind else [])
    return replace(result, tiling=tiling)


def test_the_engine_finds_it_and_float32_cannot_show_it(bump):
    assert exact_margin(CENTRE) < 0
    assert bump.verdict.value == "not robust"
    found = bump.findings
    assert found.witnesses[0].kind is Violation.LABEL
    lost = found.witnesses[0]
    assert exact_margin(float(lost.point.theta[0])) < 0 and lost.point.label == 1
    assert not lost.is_deep and not lost.replay.agrees and lost.replay.label == 0
    assert lost.remark == (
        "onnxruntime, in float32, still predicts 0 there: the violation is smaller than float32 can show"
    )
    assert f"the witness of the lost label is real, but {lost.remark}" in found.notes


def test_summary_and_report_flag_it(bump):
    summary = bump.summary()
    json.dumps(summary, allow_nan=False)
    lost = summary["witnesses"][0]
    assert lost["replay"]["agrees"] is False
    assert lost["remark"] == bump.witnesses[0].remark and lost["replay"]["label_name"] == "0"
    assert any("still predicts 0 there" in note for note in summary["notes"])
    assert "still predicts 0 there" in witness_rows(bump.described)[0]["remark"]


def test_bounds_hold_the_exact_margin(bump):
    enclosing = Enclosing(bump.question)
    for theta in (0.0, 0.2, float(PLACE), CENTRE, CENTRE + 4.9e-9, np.nextafter(CENTRE, 1.0), 0.9, 1.0):
        low, high = enclosing.at(np.array([theta])).margin
        assert Fraction(low) <= exact_margin(theta) <= Fraction(high)
        assert high - low < 1e-5


def closest() -> float:
    """A theta whose margin is too close to 0 for float64: at the edge of the bump."""
    theta = CENTRE + 5e-9
    while exact_margin(theta) < 0:
        theta = float(np.nextafter(theta, 1.0))
    return theta


def test_claims_that_float64_cannot_decide_are_skipped(bump):
    # At the edge the margin moves by 1e-8 from one number to the next, as much as rounding does.
    close = closest()
    low, high = Enclosing(bump.question).at(np.array([close])).margin
    assert low < 0.0 < high
    found = find_witnesses(claiming(bump, (close, 1e-12)))
    assert found.witnesses == ()
    assert found.notes == (
        "there is no witness of the lost label: each of the 1 thetas tried is too close to a threshold to "
        "decide in float64",
    )
    both = find_witnesses(claiming(bump, (close, 1e-12), (CENTRE, 1e-12)))
    assert [witness.point.theta[0] for witness in both.witnesses] == [CENTRE]


def test_a_claim_that_is_really_false_is_caught(bump):
    theta = 0.123456789012345678
    with pytest.raises(InternalError, match=r"claims a violation \(label\) at theta") as caught:
        find_witnesses(claiming(bump, (theta, 1e-12)))
    text = str(caught.value)
    question = bump.question
    for part in (
        repr(theta),
        question.model.sha256,
        question.image_name,
        "patch:x=0,y=0,w=1,h=1",
        "1e-12",
        "property cr",
    ):
        assert part in text
    assert "\n" not in text


@pytest.mark.parametrize("slack", [2.0, np.inf, np.nan])
def test_a_difference_within_its_own_error_is_no_fault(bump, slack):
    assert find_witnesses(claiming(bump, (0.2, slack))).witnesses == ()


def test_evidence_is_refuted_where_the_label_is_lost(bump):
    with pytest.raises(InternalError, match=r"right label, other evidence"):
        find_witnesses(claiming(bump, (CENTRE, 1e-12), kind=Violation.EVIDENCE))


def test_bounds_that_overflow_decide_nothing(bump, monkeypatch):
    """Neither bounds nor exact arithmetic confirm anything here."""
    monkeypatch.setattr(Enclosing, "_bounder", None)
    pieces = bump.answer.joint.pieces
    object.__setattr__(pieces, "witnesses", pieces.witnesses[:0])
    assert find_witnesses(bump).witnesses == ()
    assert any("there is no witness" in note for note in find_witnesses(bump).notes)


class NoisyReplay:
    """The file's logits, off by a little on images other than the given ones."""

    float_type, unit_roundoff = FLOAT32, FLOAT32.unit

    def __init__(self, replay, known: list[np.ndarray]) -> None:
        self.replay, self.known = replay, known

    def logits(self, images: np.ndarray) -> np.ndarray:
        logits = self.replay.logits(images)
        for number, image in enumerate(images):
            if not any(np.array_equal(image, one) for one in self.known):
                logits[number] *= 1.0 + 0.1 * (-1) ** number
        return logits


def test_maps_that_only_the_file_contradicts_are_flagged(results):
    """Finite differences through a file that rounds badly differ; those in float64 do not, so it is no fault."""
    result = results["keep"]
    known = [found.point.image for found in result.witnesses]
    model = result.question.model
    noisy = replace(result.question, model=replace(model, replay=NoisyReplay(model.replay, known)))
    for found in find_witnesses(replace(result, question=noisy)).witnesses:
        assert found.replay.agrees
        assert found.map_check.agrees is False and not found.map_check.is_refuted
        assert found.remark == "finite differences through onnxruntime, in float32, do not show its attention maps"


def test_gradients_that_float64_contradicts_are_refuted(results, monkeypatch):
    plain = map_check.maps_under
    monkeypatch.setattr(map_check, "maps_under", lambda graph, bits, classes: 1.5 * plain(graph, bits, classes))
    with pytest.raises(InternalError, match="finite differences"):
        find_witnesses(results["keep"])
