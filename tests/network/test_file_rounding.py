"""The effect of rounding in the file's float type on one image, by hand, and the note about it."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

from steadygaze.errors import ModelError
from steadygaze.network import replay
from steadygaze.network.graph import Graph, Node
from steadygaze.network.model import Agreement, check_agreement, read_model
from steadygaze.network.operators import MatMul, Relu
from steadygaze.network.replay import FLOAT16, FLOAT32, FLOAT64, Coarseness, FloatType, coarse_notes, estimate_rounding
from steadygaze.question import make_question


def graph_of(*layers):
    """The chain of layers (weight, bias), with ReLUs between, on an image of two pixels."""
    nodes = []
    for weight, bias in layers:
        size = len(bias)
        nodes += [Node(MatMul(np.array(weight), np.array(bias)), (len(nodes),), (1, 1, size), "")]
        nodes += [Node(Relu(), (len(nodes),), (1, 1, size), "")]
    return Graph((1, 1, 2), tuple(nodes[:-1]))


def kind(unit, **changes):
    return replace(FloatType("test", unit, 0.0, np.inf), **changes)


def test_effect_by_hand():
    """One neuron 3·x0 − 4·x1 + 1 with a ReLU, then the logits (2·a, −a)."""
    graph = graph_of(([[3.0], [-4.0]], [1.0]), ([[2.0, -1.0]], [0.0, 0.0]))
    active, dead, unit = np.array([1.0, 0.5]), np.array([0.0, 1.0]), 1e-3
    # First layer, two products and a bias: (√3 + 1)·(3 + 4 + 1), doubled by the second; there (√2 + 1)·|2·a|, a = 2.
    expected = 2 * (np.sqrt(3) + 1) * 8 + (np.sqrt(2) + 1) * 4
    assert estimate_rounding(graph, active, kind(unit)).effect == pytest.approx(unit * expected)
    assert estimate_rounding(graph, dead, kind(unit)).effect == 0.0


def test_a_neuron_that_rounding_may_switch_on_counts():
    """x0 − 0.5 is −1e-9 at the image: far from the kink in float64, at it in float32; then a weight of 1e6."""
    graph = graph_of(([[1.0], [0.0]], [-0.5]), ([[1e6, 0.0]], [0.0, 1.0]))
    image = np.array([0.5 - 1e-9, 0.0])
    assert estimate_rounding(graph, image, FLOAT64).effect < 1e-9
    assert 0.1 < estimate_rounding(graph, image, FLOAT32).effect < 10.0
    assert estimate_rounding(graph, image, FLOAT32).neurons[0][0] > 1e-8


def test_two_doubtful_neurons_do_not_cancel():
    """relu(x0 − 0.5) + relu(0.5 − x0), times 1e6: the slopes at the kink are 1 and −1, the sum bends."""
    graph = graph_of(([[1.0, -1.0], [0.0, 0.0]], [-0.5, 0.5]), ([[1e6, 0.0], [1e6, 0.0]], [0.0, 1.0]))
    assert estimate_rounding(graph, np.array([0.5 + 1e-9, 0.0]), FLOAT32).effect > 0.1


def test_products_that_vanish_and_values_out_of_range():
    graph = graph_of(([[1.0], [0.0]], [0.0]), ([[1.0, 0.0]], [0.0, 1.0]))
    image = np.array([0.5, 0.0])
    assert estimate_rounding(graph, image, kind(0.0, least=1e-3)).effect >= 1e-3
    assert estimate_rounding(graph, image, kind(0.0, largest=0.9)).effect == np.inf
    # An overflow behind a weight of 0 must not become NaN.
    large = graph_of(([[1e300], [0.0]], [0.0]), ([[1e300]], [0.0]), ([[0.0, 0.0]], [0.0, 1.0]))
    assert estimate_rounding(large, image, FLOAT32).effect == np.inf


def test_too_coarse_for_the_label_for_the_logits_and_at_an_end():
    image = np.array([[[0.5, 0.0]]])
    steep = ([[1.0], [0.0]], [-0.5])
    for weight, words in ((1e6, "while the label wins by 1:"), (3e4, "while the largest logit is 1:")):
        (note,) = coarse_notes(graph_of(steep, ([[weight, 0.0]], [0.0, 1.0])), image, [], FLOAT32)
        assert note.startswith("In float32, rounding alone can move the logits of this image by up to ")
        assert words in note
        assert "the model file's own arithmetic is too coarse for this question" in note
    graph, away = graph_of(steep, ([[1e6, 0.0]], [0.0, 1.0])), np.zeros((1, 1, 2))
    assert coarse_notes(graph, away, [], FLOAT32) == []
    (note,) = coarse_notes(graph, away, [image], FLOAT32)
    assert "at an end of the domain" in note and "too coarse for this question in part of the domain" in note
    assert coarse_notes(graph, away, [image], FLOAT64) == []
    (note,) = coarse_notes(graph_of(([[1e5], [0.0]], [0.0]), ([[1.0, 0.0]], [0.0, 1.0])), image, [], FLOAT16)
    assert "In float16, rounding alone can move the logits of this image by any amount" in note


@pytest.mark.parametrize("numbers", [(np.nan, 1.0, 1.0), (1e-9, np.nan, np.nan), (np.inf, np.inf, np.inf)])
def test_nan_counts_as_too_coarse(numbers):
    assert Coarseness(*numbers).hides_label or numbers[0] == np.inf
    assert not Coarseness(1e-9, 1.0, 1.0).hides_label
    assert Coarseness(np.nan, 1.0, 1.0).hides_logits(0.1) and Coarseness(1.0, np.nan, 1.0).hides_logits(0.1)


@pytest.fixture
def uneven(save):
    """Logits (1, 0) plus 1e7·relu(x0 − 0.5): tame where the first pixel is dark, huge on random images."""
    weights = {"w": np.array([[1.0], [0.0], [0.0], [0.0]], np.float32), "b": np.array([-0.5], np.float32)}
    weights |= {"v": np.array([[1e7, 0.0]], np.float32), "c": np.array([1.0, 0.0], np.float32)}
    nodes = [
        helper.make_node("Flatten", ["image"], ["f"]),
        helper.make_node("Gemm", ["f", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["a"]),
        helper.make_node("Gemm", ["a", "v", "c"], ["logits"]),
    ]
    return read_model(save(nodes, weights, [1, 1, 2, 2]))


def test_every_image_is_compared_at_its_own_scale(uneven):
    """A bias misread by 1e-3 is nothing beside logits of 1e6; on the image itself it is a visible difference."""
    image = np.zeros((1, 2, 2))
    agreement = check_agreement(uneven, image)
    assert agreement.scale > 1e6 and agreement.relative_difference < 1e-3
    last = uneven.graph.nodes[-1]
    wrong = replace(last, operator=replace(last.operator, bias=last.operator.bias + 1e-3))
    tampered = replace(uneven, graph=replace(uneven.graph, nodes=(*uneven.graph.nodes[:-1], wrong)))
    with pytest.raises(ModelError, match=r"disagree by 0\.001 .*\(logits up to 1, tolerance 1e-05\)"):
        check_agreement(tampered, image)


def test_images_at_ends_of_the_domain_are_compared_too(uneven):
    class Other:
        float_type, unit_roundoff = FLOAT32, FLOAT32.unit

        def logits(self, images):
            logits = uneven.replay.logits(images)
            logits[-1, 0] += 1.0
            return logits

    image = np.zeros((1, 2, 2))
    assert check_agreement(uneven, image, [np.full((1, 2, 2), 0.25)]).images == 18
    with pytest.raises(ModelError, match="an image at an end of the domain"):
        check_agreement(replace(uneven, replay=Other()), image, [np.full((1, 2, 2), 0.25)])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_replay_that_is_not_a_number_is_refused(uneven, bad):
    class Broken:
        float_type, unit_roundoff = FLOAT32, FLOAT32.unit

        def logits(self, images):
            logits = uneven.replay.logits(images)
            logits[0, 1] = bad
            return logits

    with pytest.raises(ModelError, match="NaN or infinite"):
        check_agreement(replace(uneven, replay=Broken()), np.zeros((1, 2, 2)))


def test_the_note_reaches_the_question(uneven):
    question = make_question(uneven, np.zeros((1, 2, 2)), ["patch:x=0,y=0,w=1,h=1:0..0.5"])
    assert any("at an end of the domain" in note for note in question.notes)
    assert not any(
        "rounding" in note for note in make_question(uneven, np.zeros((1, 2, 2)), ["brightness:0..0.1"]).notes
    )


def test_float_types_of_files(save, dense):
    for elem, name in (
        (TensorProto.FLOAT, "float32"),
        (TensorProto.DOUBLE, "float64"),
        (TensorProto.FLOAT16, "float16"),
    ):
        nodes, weights = dense()
        dtype = helper.tensor_dtype_to_np_dtype(elem)
        weights = {key: value.astype(dtype) for key, value in weights.items()}
        model = read_model(save(nodes, weights, [1, 1, 4, 4], elem=elem))
        assert model.replay.float_type.name == name
        assert (
            f"run by onnxruntime in {name}, gave the same" in check_agreement(model, np.full((1, 4, 4), 0.5)).sentence
        )


def test_sentences():
    base = Agreement(1.0, 2.0, 3.0, 0.0, 17)
    assert base.sentence == "The model file, run by onnxruntime in float32, gave the same logits within 1 on 17 images."
    close = replace(base, relative_difference=2.01e-7, relative_rounding=1.3e-5, label=7, replayed_label=7)
    assert close.sentence == (
        "The model file, run by onnxruntime in float32, gave the same logits on 17 images, within 2.1e-07 of an "
        "image's largest logit (rounding in float32 can account for up to 1.3e-05)."
    )
    far = replace(close, relative_difference=0.4, relative_rounding=None, replayed_label=3)
    assert far.sentence == (
        "The model file, run by onnxruntime in float32, gave different logits on 17 images: they differ by up to 0.4 "
        "of an image's largest logit; rounding in float32 can account for that. For the image itself it predicts "
        "class 3, not 7."
    )


@pytest.mark.parametrize("seed", range(4))
def test_probes_alone_tell_the_errors_of_networks_that_are_too_large(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    graph = graph_of(*((rng.normal(size=ends), rng.normal(size=ends[1])) for ends in ((2, 30), (30, 30), (30, 5))))
    image = rng.random(2)
    usual = estimate_rounding(graph, image, FLOAT32)
    monkeypatch.setattr(replay, "JACOBIAN_WORK", 0.0)
    probed = estimate_rounding(graph, image, FLOAT32)
    with np.errstate(all="ignore"):
        values = image.astype(np.float32)
        for node in graph.nodes:
            is_relu = isinstance(node.operator, Relu)
            weights = (
                None if is_relu else (node.operator.weight.astype(np.float32), node.operator.bias.astype(np.float32))
            )
            values = np.maximum(values, 0) if weights is None else values @ weights[0] + weights[1]
    assert (np.abs(values - graph.logits(image.reshape(1, 1, 1, 2))[0]) <= probed.logits).all()
    assert 0.05 * usual.effect <= probed.effect <= 5.0 * usual.effect
