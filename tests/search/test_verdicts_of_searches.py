"""Cases in which a search or the map could wrongly claim robust: corners, slivers, tiny logits, knots at zero."""

import numpy as np
import pytest

from steadygaze.engines import run
from steadygaze.labels import Status, Verdict
from steadygaze.question import Question, make_question
from steadygaze.results.result import Result
from support.networks.search_problems import FloatLayer, diamond, free_pixels


def on_pixels(layers: list[FloatLayer]) -> Question:
    """A network that takes theta itself: every parameter is the value of one pixel."""
    model, image, specs = free_pixels(layers, in_middle=False)
    return make_question(model, image, list(specs), property="cr")


def search(question: Question, *, method: str, line: str | tuple[float, ...] = "corner") -> Result:
    """Like the users' function: a search that covers the domain is confirmed."""
    return run(question, method=method, line=None if method == "bfs" else line)


def verdict_of(question: Question, method: str) -> Verdict:
    return run(question, "map").verdict if method == "map" else search(question, method=method).verdict


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_corner_that_gbs_does_not_visit_is_not_proved(count: int):
    """ReLU(x_n − (other x) − 1 + s) is active in a corner whose volume is below the tolerance of the volumes."""
    side = {2: 2.0**-16, 3: 2.0**-10, 4: 2.0**-7}[count]
    weight = np.array([[-1.0] * (count - 1) + [1.0]])
    question = on_pixels([(weight, np.array([side - 1.0])), (np.array([[0.0], [2.0 / side]]), np.array([1.0, 0.0]))])
    assert search(question, method="bfs").verdict is Verdict.NOT_ROBUST
    found = search(question, method="gbs")
    assert (found.status, found.verdict) == (Status.ROBUST, Verdict.UNDECIDED)
    assert found.coverage < 1.0


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("method", ["map", "bfs"])
def test_a_violation_thinner_than_the_tolerance_is_found(count: int, method: str):
    """The margin is 1e-8 − 1e3 ReLU(Σx − n + 5e-11): violated in a corner that no engine splits off.

    Float64 leaves the label of the region open; exact arithmetic settles it.
    """
    weight = np.vstack([np.ones((1, count)), np.eye(count)])
    bias = np.concatenate([[5e-11 - count], np.zeros(count)])
    last = np.array([[0.0] * (count + 1), [1e3] + [0.0] * count])
    assert verdict_of(on_pixels([(weight, bias), (last, np.array([1e-8, 0.0]))]), method) is Verdict.NOT_ROBUST


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("method", ["map", "bfs"])
def test_a_strip_around_a_vertex_is_undecided_however_small(count: int, method: str):
    """The margin n − 5e-11 − Σx is violated at one vertex of the domain, by less than a share that volumes can tell."""
    weight, bias = np.eye(count), np.zeros(count)
    last = np.array([[-1.0] * count, [0.0] * count])
    question = on_pixels([(weight, bias), (last, np.array([count - 5e-11, 0.0]))])
    assert verdict_of(question, method) is not Verdict.ROBUST


@pytest.mark.parametrize("scale", [1.0, 1e-10, 1e-13])
def test_tiny_logits_have_the_same_labels(scale: float):
    """Linear programs have absolute tolerances; the labels must not depend on the size of the logits."""
    *hidden, (weight, bias) = diamond(np.full(3, 0.5), 0.25)
    found = search(on_pixels([*hidden, (weight * scale, bias * scale)]), method="bfs")
    whole = search(on_pixels([*hidden, (weight, bias)]), method="bfs")
    assert found.sets["CR"] == whole.sets["CR"] > 0
    assert found.sets["CB"] == whole.sets["CB"] > 0


@pytest.mark.parametrize("method", ["bfs", "gbs", "boundary"])
def test_zero_on_a_knot_in_the_middle(method: str):
    specs = ["translate:dx=1:-0.5..0.5", "patch:x=12,y=12,w=4,h=4:0..0.2"]
    question = make_question("M-FNN-100", "mnist:69990", specs, property="cr", delta=3.0)
    options = {} if method == "bfs" else {"line": (0.0, 0.2)}
    found = search(question, method=method, **options)
    assert found.tiling.visited and not found.tiling.failures
    if method == "bfs":
        whole = run(question, "map")
        assert found.region_count == len(whole.regions)
        assert found.verdict is whole.verdict


@pytest.mark.parametrize("method", ["bfs", "gbs", "boundary"])
def test_a_margin_that_grazes_zero_is_no_violation(method: str):
    """The margin |x1 + x2 + x3 − 1.5| + 1e-10 is positive everywhere, by less than the tolerance of linear programs."""
    fold = (np.vstack([np.ones((1, 3)), -np.ones((1, 3))]), np.array([-1.5, 1.5]))
    question = on_pixels([fold, (np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([1e-10, 0.0]))])
    found = search(question, method=method)
    assert found.verdict is (Verdict.ROBUST if found.tiling.is_covering else Verdict.UNDECIDED)
    assert method != "bfs" or found.tiling.is_covering
