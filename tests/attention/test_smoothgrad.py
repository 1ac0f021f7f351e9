"""SmoothGrad in every engine: one network with a copy of the classifier for each noise."""

from dataclasses import replace

import numpy as np
import pytest

from steadygaze.api import load, verify
from steadygaze.attention.gradients import maps_under, pattern_at
from steadygaze.attention.methods import Method, attended
from steadygaze.attention.methods.smoothgrad import SmoothGrad
from steadygaze.errors import InternalError, OptionError, StoreError
from steadygaze.labels import Label
from steadygaze.network.rewrites import Copies
from support.networks.branching import random_graph
from support.networks.layered_models import model_of

EXPLAIN = "smoothgrad:n=3,sigma=0.4,seed=5"
SPECS = ("brightness:0..0.6", "patch:x=0,y=0,w=1,h=2:0..0.5")
IMAGE = np.array([[[0.1, 0.7], [0.4, 0.3]]])
SEEDS = (1, 2, 4)


def finite_differences(graph, image, noises):
    """The mean over noises of the gradients (K, pixels) of the logits, by differences of plain passes."""
    step, found = 1e-7, np.zeros((graph.classes, image.size))
    moves = step * np.eye(image.size).reshape(-1, *image.shape)
    for noise in noises:
        found += ((graph.logits(image + noise + moves) - graph.logits(image + noise - moves)) / (2 * step)).T
    return found / len(noises)


def losses(question, thetas):
    """The inconsistency (B,) at thetas, straight from the definition: L2, a kept expected map."""
    graph, noises = question.model.graph, question.attention.method.arrays["noises"]
    classes = question.attention.chosen(graph.classes)
    original = finite_differences(graph, question.perturbed.x0, noises)[classes]
    images = question.perturbed.images(thetas)
    maps = np.stack([finite_differences(graph, image, noises)[classes] for image in images])
    return np.linalg.norm(maps - original, axis=2).sum(axis=1), np.linalg.norm(original, axis=1).sum()


def contradictions(result, count=300):
    """How many random thetas have another label than the definition gives them."""
    domain = result.question.perturbed.domain
    thetas = np.random.default_rng(3).uniform(domain.low, domain.high, (count, domain.dimension))
    found, size = losses(result.question, thetas)
    limit, wrong = result.question.threshold.number * size, 0
    for theta, loss in zip(thetas, found, strict=True):
        point = result.at(theta)
        assert abs(point.inconsistency - loss) <= 1e-5 * size or is_near_kink(result.question, theta)
        wrong += (point.inconsistency <= limit) != (loss <= limit) and not is_near_kink(result.question, theta)
    return wrong


def is_near_kink(question, theta):
    """Whether differences may cross a kink there."""
    image = question.perturbed.image(theta).reshape(1, -1)
    around = image + 2e-7 * np.vstack([np.eye(image.size), -np.eye(image.size)])
    here, there = pattern_at(question.graph, image), pattern_at(question.graph, around)
    return not all((own == other).all() for own, other in zip(here, there, strict=True))


@pytest.mark.parametrize("seed", range(12))
def test_copies_read_the_noisy_images_and_the_logits_stay(seed):
    graph = random_graph(seed)
    method = Method.parse(EXPLAIN).fit(graph)
    network, images = attended(method, graph), np.random.default_rng(seed).random((9, *graph.input_shape))
    np.testing.assert_array_equal(network.logits(images), graph.logits(images))
    aims = network.values(images)[network.aims].reshape(9, 3, -1)
    for number, noise in enumerate(method.arrays["noises"]):
        np.testing.assert_array_equal(aims[:, number], graph.logits(images + noise))
    targets = method.targets(graph.classes)
    for image in images:
        found = maps_under(network, pattern_at(network, image.reshape(1, -1)), targets)
        wanted = method.maps(graph, image, np.arange(graph.classes)).reshape(found.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_map_refinement_and_search_agree_with_the_definition(seed):
    model = model_of(random_graph(seed))
    options = {"explain": EXPLAIN, "delta": "40%"}
    whole = verify(model, IMAGE, SPECS, method="map", threads=1, **options)
    refined = verify(model, IMAGE, SPECS, method="refine", until=1e-3, threads=1, **options)
    visited = verify(model, IMAGE, SPECS, method="bfs", **options)
    assert whole.areas["undecided"][1] <= 1e-6
    for name in (Label.CR, Label.AR):
        (low, high), (least, most) = whole.areas[name], refined.areas[name]
        assert least - 1e-9 <= low <= high <= most + 1e-9
    assert visited.verdict is whole.verdict
    assert contradictions(whole) == 0
    plain = verify(model, IMAGE, SPECS, method="map", threads=1, delta="40%")
    assert plain.areas[Label.CR] == pytest.approx(whole.areas[Label.CR], abs=1e-9)


def test_shares_are_those_of_samples():
    result = verify(model_of(random_graph(1)), IMAGE, SPECS, method="map", threads=1, explain=EXPLAIN, delta="40%")
    thetas = np.random.default_rng(0).uniform([0, 0], [0.6, 0.5], (4000, 2))
    found, size = losses(result.question, thetas)
    low, high = result.areas[Label.AR]
    share = float((found <= 0.4 * size).mean())
    assert low - 0.04 <= share <= high + 0.04
    assert 0.05 < share < 0.95


@pytest.mark.parametrize("fault", ["missing copy", "wrong class"])
def test_a_planted_error_is_caught(fault, monkeypatch):
    copies, targets = SmoothGrad.copies, SmoothGrad.targets

    def unmoved(self, shape):
        own = copies(self, shape)
        return Copies(own.scale, np.concatenate([own.shift[:-1], own.shift[:1]]))

    if fault == "missing copy":
        monkeypatch.setattr(SmoothGrad, "copies", unmoved)
    else:
        monkeypatch.setattr(SmoothGrad, "targets", lambda self, classes: targets(self, classes)[::-1])
    with pytest.raises((AssertionError, InternalError)):
        result = verify(
            model_of(random_graph(1)), IMAGE, SPECS, method="map", threads=1, explain=EXPLAIN, delta="40%", classes=[0]
        )
        assert contradictions(result) == 0


def test_noises_are_stored_and_no_generator_is_needed_to_load(tmp_path, monkeypatch):
    result = verify("M-FNN-100", "mnist:69990", "brightness:0..0.02", explain="smoothgrad:n=2,seed=3", method="map")
    result.save(tmp_path / "one")
    noises = result.question.attention.method.arrays["noises"]
    np.testing.assert_array_equal(np.load(tmp_path / "one" / "noises.npy"), noises)
    with monkeypatch.context() as patch:
        patch.setattr(np.random, "default_rng", lambda seed: pytest.fail("noises are drawn again"))
        again = load(tmp_path / "one")
    assert again.question.attention == result.question.attention
    assert again.areas == result.areas
    np.testing.assert_array_equal(again.question.original, result.question.original)
    np.save(tmp_path / "one" / "noises.npy", noises + 1e-9)
    with pytest.raises(StoreError, match=r"noises.npy: differs from what was written"):
        load(tmp_path / "one")


def test_a_question_differs_by_method_settings_and_noises():
    result = verify("M-FNN-100", "mnist:69990", "brightness:0..0.02", explain="smoothgrad:n=2", method="map")
    question, content = result.question, {**result.summary(), "stored": result.question.stored(result.threshold)}
    assert question.differences(content, question.perturbed.x0) == []
    assert content["attention"]["explain"] == "smoothgrad:n=2,sigma=0.1,seed=0"
    moved = question.attention.method.with_arrays({"noises": question.attention.method.arrays["noises"] + 1e-12})
    for method in (moved, Method.parse("gradient"), Method.parse("smoothgrad:n=2,seed=1").fit(question.model.graph)):
        other = replace(question, attention=replace(question.attention, method=method))
        assert other.differences(content, question.perturbed.x0) == ["the explanation method"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smoothgrad:n=0", "n is 0; expected a whole number from 1 to 1000"),
        ("smoothgrad:sigma=0", "sigma is 0.0; expected a deviation above 0"),
        ("smoothgrad:sigma=nan", "sigma is 'nan'; expected a number"),
        ("smoothgrad:n=2.5", "n is '2.5'; expected a whole number"),
        ("smoothgrad:n=2,n=3", "n is given twice"),
        ("smoothgrad:seed=-1", "seed is -1"),
        ("smoothgrad:sigmas=2", "did you mean 'sigma'"),
        ("gradient:n=1", "It has no settings"),
        ("integrated:steps=0", "steps is 0; expected a whole number from 1 to 1000"),
        ("occlusion:window=0", "window is 0; expected at least 1 pixel"),
        ("occlusion:window=29,stride=1", "larger than the image, which is 28×28; expected at most 28"),
        ("occlusion:stride=5", "stride is 5; expected 1 to 4"),
        ("gradcam:layer=conv1", "the network has no convolutions"),
        ("saliency", "'saliency' is not known; expected gradcam, gradient, "),
    ],
)
def test_a_wrong_text_is_refused_in_one_line(text, message):
    with pytest.raises(OptionError) as error:
        verify("M-FNN-100", "mnist:69990", "brightness", explain=text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_layer_is_refused_with_the_list():
    with pytest.raises(
        OptionError, match="no layer 'conv9'; expected layer=NAME with one of conv1, relu1, conv2, relu2"
    ):
        verify("M-CNN-S", "mnist:69990", "brightness", explain="gradcam:layer=conv9")
