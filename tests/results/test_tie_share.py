"""The share that depends on the rule for ties in results: maps, summaries, sentences, stored results."""

import json
from dataclasses import replace

import numpy as np
import pytest

from steadygaze.api import load, verify
from steadygaze.budget import Budget
from steadygaze.engines.map.streamed_map import StreamedMap
from steadygaze.engines.refine.boxes import Boxes, State
from steadygaze.engines.search.visited_shares import unknown_shares
from steadygaze.network.joins import Winner
from steadygaze.network.operators import MatMul, Relu, Reshape
from steadygaze.properties import box_ties
from steadygaze.results.description import small_print
from steadygaze.results.summary import Summary, summarise, ties_sentences
from support.networks.branching import Builder
from support.networks.chunked_maps import small_chunks
from support.networks.layered_models import model_of
from support.networks.onnx_files import make_proto
from support.networks.operator_models import floats, node

SENTENCE = "of the domain entries of a maximum tie, and the attention depends on the rule (the first one wins)."


SATURATED = np.array([[[153.0, 204.0], [0.0, 0.0]]]) / 255
"""Pixels 0.6 and 0.8 are both white from brightness 0.4 on."""


def pooled(windows, weights=((1.0, -1.0),), bias=0.0):
    """The largest of some of 2×2 pixels, after a ReLU of each plus a bias, and logits."""
    builder = Builder((1, 2, 2))
    value = builder.add(Reshape((1, 4)), 0)
    value = builder.add(Relu(), builder.add(MatMul(np.eye(4), np.full(4, bias)), value) if bias else value)
    value = builder.add(Winner(np.array(windows), (1, len(windows))), value)
    builder.add(MatMul(np.array(weights), np.array([2.0, 0.0])), value)
    return model_of(builder.graph())


def pairs_file(path):
    """The largest pixel of each row of 2×2 pixels; the logits read the first row alone."""
    nodes = [
        node("MaxPool", "image", "p", kernel_shape=[1, 2]),
        node("Flatten", "p", "f"),
        node("MatMul", "f w", "h"),
        node("Add", "h b", "y"),
    ]
    weights = {"w": np.float32([[1, -1], [0, 0]]), "b": np.float32([2, 0])}
    path.write_bytes(make_proto(nodes, weights, [1, 1, 2, 2]).SerializeToString())
    return path


def windows_file(path):
    """Four windows of 2×2 pixels, a hidden layer, and logits."""
    nodes = [
        node("MaxPool", "image", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p", "f"),
        node("MatMul", "f w", "h"),
        node("Add", "h b", "a"),
        node("Relu", "a", "r"),
        node("MatMul", "r v", "y"),
    ]
    weights = {"w": floats(4, 12, seed=8), "v": floats(12, 3, seed=9)}
    weights["b"] = -0.6 * weights["w"].sum(axis=0)
    path.write_bytes(make_proto(nodes, weights, [1, 1, 4, 4]).SerializeToString())
    return path


def ask(model, image, *specs, **options):
    return verify(model, np.array(image), list(specs), **{"method": "map", **options})


def test_a_constant_background_is_reported():
    result = ask(pooled([[0, 1, 2, 3]]), np.full((1, 2, 2), 51 / 255), "brightness:0..0.5", "patch:x=0,y=0,w=1,h=1")
    # The patch lifts the first pixel above the others; all are equal only on a line, but the other three always are.
    assert result.tie_share[1] < 1e-6
    assert "ties" in summarise(result).plain() and small_print(summarise(result)) == [
        sentence for sentence in small_print(summarise(result)) if SENTENCE not in sentence
    ]
    result = ask(pooled([[0, 1, 2, 3]]), np.full((1, 2, 2), 51 / 255), "brightness:0..0.5", "patch:x=0,y=0,w=2,h=1")
    assert result.tie_share == pytest.approx((1.0, 1.0), abs=1e-6)
    summary = summarise(result)
    assert summary.plain()["ties"] == {"share": list(result.tie_share)}
    assert any(SENTENCE in sentence for sentence in small_print(summary))
    assert SENTENCE in summary.guarantee


def test_half_of_the_domain_is_saturated():
    result = ask(pooled([[0, 1]]), SATURATED, "brightness:0..0.8")
    assert result.tie_share == pytest.approx((0.5, 0.5), abs=1e-6)
    assert result.tie_share[0] <= 0.5 <= result.tie_share[1]


def test_stored_results_know_the_share(tmp_path):
    """A network from a file: convolution, batch normalisation, MaxPool, on an image with a flat background."""
    nodes = [
        node("Conv", "image w", "c"),
        node("BatchNormalization", "c g o m v", "n"),
        node("Relu", "n", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p", "f"),
        node("MatMul", "f d", "y"),
    ]
    weights = {
        "w": np.abs(floats(2, 1, 1, 1)), "g": np.float32([1, 1]), "o": np.float32([0.1, 0.2]),
        "m": np.float32([0, 0.1]), "v": np.float32([2, 3]), "d": floats(8, 3, seed=4),
    }  # fmt: skip
    import onnx

    path = tmp_path / "pooled.onnx"
    onnx.save(make_proto(nodes, weights, [1, 1, 4, 4]), path)
    image = np.full((1, 4, 4), 51 / 255)
    image[0, 1:, 1:3] = 204 / 255
    result = ask(path, image, "brightness:-0.1..0.1")
    low, high = result.tie_share
    assert 0.99 < low <= high <= 1.0
    result.save(tmp_path / "stored")
    content = json.loads((tmp_path / "stored" / "result.json").read_text())
    assert content["ties"] == {"share": [low, high]}
    assert Summary.read(content, "here").tie_share == (low, high)
    assert load(tmp_path / "stored").tie_share == (low, high)


def test_networks_without_windows_have_no_such_key():
    result = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.01"], method="map")
    assert result.tie_share is None and "ties" not in summarise(result).plain()


@pytest.mark.parametrize("method", ["refine", "bfs"])
def test_other_methods_enclose_the_share_of_a_map(method, tmp_path):
    path = pairs_file(tmp_path / "pairs.onnx")
    result = ask(path, SATURATED, "brightness:0..0.8", method=method, property="ar")
    low, high = result.tie_share
    assert low <= 0.5 <= high
    summary = summarise(result)
    assert summary.plain()["ties"] == {"share": [low, high]}
    assert (SENTENCE in summary.guarantee) and any(SENTENCE in sentence for sentence in small_print(summary))
    result.save(tmp_path / "stored")
    assert load(tmp_path / "stored").tie_share == (low, high)


def test_a_search_that_visits_everything_knows_the_share():
    result = ask(pooled([[0, 1]]), SATURATED, "brightness:0..0.8", method="bfs", property="ar")
    assert result.tie_share == pytest.approx((0.5, 0.5), abs=1e-6)
    # Of a part of the domain only that part is known.
    visited = [one for one in result.tiling.visited if one.region.inside[0] > 0.5]
    part = replace(result.tiling, visited=visited)
    assert part.tie_share == pytest.approx((0.5, 1.0), abs=1e-6)
    # Regions without a certain pattern, or without a bound of their kinks, prove nothing.
    doubted = replace(result.tiling, visited=[replace(one, is_doubtful=True) for one in result.tiling.visited])
    assert doubted.tie_share == (0.0, 1.0)
    assert replace(result.tiling, shares=unknown_shares()).tie_share == (0.0, 1.0)


def test_a_search_in_two_dimensions_agrees_with_the_map():
    image = np.array([[[51.0, 51.0], [51.0, 102.0]]]) / 255
    specs = ("brightness:0..0.9", "patch:x=1,y=1,w=1,h=1:0..0.5")
    expected = ask(pooled([[0, 1, 2, 3]]), image, *specs, property="ar").tie_share
    assert expected[0] > 0.1 and expected[1] - expected[0] < 1e-6
    found = ask(pooled([[0, 1, 2, 3]]), image, *specs, method="bfs", property="ar").tie_share
    assert found == pytest.approx(expected, abs=1e-6)


def boxes_of(result, *ends):
    """The refinement as open boxes of a line between these ends, in t."""
    low = np.array([[end, 0.0] for end in ends[:-1]])
    high = np.array([[end, 1.0] for end in ends[1:]])
    count = len(low)
    boxes = replace(
        Boxes.of(result.question.compound), cell=np.zeros(count, dtype=np.int64), low=low, high=high,
        sides=np.zeros((count, 2, 2), dtype=np.int64), margin=np.tile([-np.inf, np.inf], (count, 1)),
        inconsistency=np.tile([0.0, np.inf], (count, 1)), state=np.full(count, State.OPEN, dtype=np.uint8),
    )  # fmt: skip
    return replace(result.tiling, boxes=boxes, answers=None, box_of=np.zeros(0, dtype=np.int64))


def test_boxes_without_ties_do_not_count():
    """Pixel 0.8 wins clearly up to brightness 0.4: bounds prove that of boxes well before it alone."""
    result = ask(pooled([[0, 1]]), SATURATED, "brightness:0..0.8", method="refine", property="ar")
    assert boxes_of(result, 0.0, 0.125, 0.25, 0.5, 1.0).tie_share == pytest.approx((0.0, 0.75), abs=1e-9)
    assert boxes_of(result, 0.0, 0.25, 1.0).tie_share == pytest.approx((0.0, 0.75), abs=1e-9)
    assert boxes_of(result, 0.0, 1.0).tie_share == (0.0, 1.0)
    # On the last box both are white: bounds decide the winner, but only by the rule.
    assert boxes_of(result, 0.0, 0.25, 0.75, 1.0).tie_share == pytest.approx((0.0, 0.75), abs=1e-9)


def test_boxes_on_which_dead_entries_tie_do_not_count():
    """All pixels are black from darkness 0.2 on; the second ReLU is then dead, and no gradient goes on through it."""
    model = pooled([[0, 1, 2, 3]], bias=-0.05)
    result = ask(model, np.full((1, 2, 2), 51 / 255), "darkness:0..0.8", method="refine", property="ar")
    assert boxes_of(result, 0.0, 0.5, 1.0).tie_share == pytest.approx((0.0, 0.5), abs=1e-9)


def test_work_that_runs_out_leaves_boxes_open(monkeypatch):
    result = ask(pooled([[0, 1]]), SATURATED, "brightness:0..0.8", method="refine", property="ar")
    monkeypatch.setattr(box_ties, "MOST_BOX_WORK", 0)
    assert boxes_of(result, 0.0, 0.25, 1.0).tie_share == (0.0, 1.0)


@pytest.mark.parametrize("method", ["refine", "bfs"])
def test_a_run_that_is_over_spends_no_time_on_ties(method):
    result = ask(pooled([[0, 1]]), SATURATED, "brightness:0..0.8", method=method, property="ar")
    tiling, budget = boxes_of(result, 0.0, 0.25, 1.0) if method == "refine" else result.tiling, Budget()
    budget.cancelled.set()
    with budget.running():
        assert replace(tiling).ties_within(budget) == (0.0, 1.0)
    assert replace(tiling).ties_within(None) != (0.0, 1.0)


def test_a_refinement_of_the_label_has_no_share():
    result = ask(pooled([[0, 1]]), SATURATED, "brightness:0..0.8", method="refine", property="cr")
    assert result.tie_share is None and "ties" not in summarise(result).plain()


def test_maps_in_chunks_know_the_share(tmp_path):
    image = np.random.default_rng(3).integers(0, 6, size=(1, 4, 4)) * 51.0 / 255
    path = windows_file(tmp_path / "windows.onnx")
    specs = ("brightness:0..0.9", "patch:x=1,y=1,w=2,h=2:0..0.5")
    expected = ask(path, image, *specs).tie_share
    assert 0.01 < expected[0] <= expected[1] < expected[0] + 1e-6
    with small_chunks():
        result = ask(path, image, *specs)
    assert isinstance(result.tiling, StreamedMap)
    assert result.tie_share == pytest.approx(expected, abs=1e-6)
    result.save(tmp_path / "stored")
    assert load(tmp_path / "stored").tie_share == result.tie_share


def test_a_share_that_is_not_known():
    assert ties_sentences((0.0, 1.0)) == [
        "It is not known where entries of a maximum tie and the attention depends on the rule (the first one wins)."
    ]


@pytest.mark.parametrize("chosen", ["abs", "mean"])
def test_a_filter_may_hide_the_rule(chosen):
    result = ask(pooled([[0, 1]]), SATURATED, "brightness:0..0.8", filter=chosen)
    low, high = result.tie_share
    assert low == 0.0
    assert high == pytest.approx(0.5, abs=1e-6)
