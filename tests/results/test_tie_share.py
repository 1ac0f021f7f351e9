"""The share that depends on the rule for ties in results: maps, summaries, sentences, stored results."""

import json

import numpy as np
import pytest

from steadygaze.api import load, verify
from steadygaze.network.joins import Winner
from steadygaze.network.operators import MatMul, Relu, Reshape
from steadygaze.results.description import small_print
from steadygaze.results.summary import Summary, summarise
from support.networks.branching import Builder
from support.networks.layered_models import model_of
from support.networks.onnx_files import make_proto
from support.networks.operator_models import floats, node

SENTENCE = "of the domain entries of a maximum tie, and the attention depends on the rule: the first one wins."


def pooled(windows, weights=((1.0, -1.0),)):
    """The largest of some of 2×2 pixels, after a ReLU, and logits."""
    builder = Builder((1, 2, 2))
    value = builder.add(Relu(), builder.add(Reshape((1, 4)), 0))
    value = builder.add(Winner(np.array(windows), (1, len(windows))), value)
    builder.add(MatMul(np.array(weights), np.array([2.0, 0.0])), value)
    return model_of(builder.graph())


def ask(model, image, *specs, **options):
    return verify(model, np.array(image), list(specs), **{"method": "map", "threads": 1, **options})


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
    """Pixels 0.6 and 0.8 are both white from brightness 0.4 on."""
    image = np.array([[[153.0, 204.0], [0.0, 0.0]]]) / 255
    result = ask(pooled([[0, 1]]), image, "brightness:0..0.8")
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


def test_a_refinement_does_not_know_the_share():
    model = pooled([[0, 1, 2, 3]])
    result = ask(model, np.full((1, 2, 2), 51 / 255), "brightness:0..0.5", method="refine")
    assert result.tie_share is None and "ties" not in summarise(result).plain()
