"""Properties of attention on bundled, pooled and residual networks against plain numpy at sampled thetas."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from steadygaze import load, verify
from steadygaze.bounds.bounder import Bounder
from steadygaze.engines.refine.merged_answer import MergedAnswer, box_at
from steadygaze.engines.refine.pointwise import PointPasses
from steadygaze.labels import Kept
from steadygaze.question import make_question
from steadygaze.results.delta_answer import DeltaAnswer
from support.networks import branching
from support.networks.chunked_maps import small_chunks
from support.networks.layered_models import make_model, model_of
from support.oracles.attention_by_definition import transported

MASK = "auto:bright=0.2,grow=1"
PROPERTIES = {
    "object": {"tau": "90%", "mask": MASK},
    "pointing": {"mask": MASK},
    "alike": {"gamma": 0.9, "classes": "predicted"},
    "topk": {"top": "30:0.7", "classes": "predicted"},
}
DOMAINS = {
    "kept": ("brightness:0..0.2", "patch:x=12,y=12,w=4,h=4"),
    "moved": ("translate:dx=2:-0.5..1.5", "brightness:0..0.1"),
}
CURVED = {
    "turned": ("rotate:-3..3", "brightness:0..0.05"),
    "shifted": ("shift:dx=1,dy=1:-0.25..0.25",),
    "hazy": ("scale:0.98..1.02", "haze:0..0.05"),
}
TRIED = 300


def loss(name: str, actual: np.ndarray, expected: np.ndarray, weights: np.ndarray | None) -> float:
    """The loss of maps (K', C, H, W), as the words of the property say."""
    sizes = np.abs(actual)
    if not sizes.any() and name != "distance":
        return 2.0
    if name == "distance":
        return float(sum(np.sqrt((own**2).sum()) for own in actual - expected))
    if name == "object":
        return float(1.0 - (sizes * weights).sum() / sizes.sum())
    if name == "pointing":
        *_, y, x = np.unravel_index(np.argmax(sizes), sizes.shape)
        return 0.0 if weights[y, x] >= 0.5 else 1.0
    if name == "alike":
        return float(1.0 - (actual * expected).sum() / np.sqrt((actual**2).sum() * (expected**2).sum()))
    tops = [set(np.argsort(-np.abs(maps).sum(axis=(0, 1)).ravel(), kind="stable")[:30]) for maps in (actual, expected)]
    return 1.0 - len(tops[0] & tops[1]) / 30


def plain_maps(question, images: np.ndarray) -> np.ndarray:
    """The maps (B, K', C, H, W) of images (B, C, H, W) by products with masked matrices."""
    chain = question.compound.chain
    matrices = [np.asarray(m if isinstance(m, np.ndarray) else m.toarray()) for m in (one.matrix for one in chain.maps)]
    values, masks = images.reshape(len(images), -1), []
    for matrix, one in zip(matrices[:-1], chain.maps, strict=False):
        values = values @ matrix.T + one.bias
        masks.append(values > 0.0)
        values = np.maximum(values, 0.0)
    rows = matrices[-1][list(question.attention.chosen(question.model.classes))]
    gradient = np.repeat(rows[None], len(images), axis=0)
    for matrix, mask in zip(reversed(matrices[:-1]), reversed(masks), strict=True):
        gradient = (gradient * mask[:, None]) @ matrix
    return gradient.reshape(len(images), len(rows), *images.shape[1:])


def contradictions(result, name: str, count: int = TRIED) -> tuple[int, int]:
    """How many sampled thetas contradict the labels of a result, and how many are decided."""
    question, rng = result.question, np.random.default_rng(7)
    domain = question.perturbed.domain
    thetas = domain.low + rng.random((count, domain.dimension)) * domain.widths
    maps = plain_maps(question, question.perturbed.images(thetas))
    original = plain_maps(question, question.perturbed.x0[None])[0]
    wrong = decided = 0
    for theta, actual in zip(thetas, maps, strict=True):
        mask = question.attention.mask
        weights = None if mask is None else transported(mask.weights, question.perturbed, theta)
        value = loss(name, actual, transported(original, question.perturbed, theta), weights)
        code = code_at(result.answer, theta)
        decided += code is not Kept.UNKNOWN
        if code is not Kept.UNKNOWN and abs(value - result.answer.delta) > 1e-9:
            wrong += (value <= result.answer.delta) != (code is Kept.YES)
    return wrong, decided


def code_at(answer: DeltaAnswer, theta: np.ndarray) -> Kept:
    """The attention that an answer claims at a theta."""
    if isinstance(answer, MergedAnswer):
        box = box_at(answer.compound, answer.boxes, theta)
        if box in answer.bounded:
            return Kept(int(answer.attention_codes[box]))
        answer = answer.exact
    joint = answer.joint
    piece = joint.polytopes.deepest(answer.compound.to_unit(theta[None])[0])
    if piece is None or joint.attention_strip[piece] > 1e-6 * joint.polytopes.volumes[piece]:
        return Kept.UNKNOWN
    return Kept(int(joint.attention_codes[piece]))


@cache
def bundled(name: str, model: str, domain: str, method: str):
    more = {"until": 0.02} if method == "refine" else {}
    specs = DOMAINS[domain] if model != "M-CNN-S" else tuple(spec.replace("0.2", "0.05") for spec in DOMAINS[domain])
    return verify(model, "mnist:69993", specs, attention=name, method=method, threads=1, **PROPERTIES[name], **more)


RUNS = (("M-FNN-100", "map"), ("M-FNN-200", "refine"), ("M-CNN-S", "refine"))
PAIRWISE = [
    (name, domain, *run)
    for place, name in enumerate(PROPERTIES)
    for number, run in enumerate(RUNS)
    for domain in [list(DOMAINS)[(place + number) % 2]]
]
"""Every two of property, domain and run meet."""


@pytest.mark.parametrize(("name", "domain", "model", "method"), PAIRWISE)
def test_labels_agree_with_plain_numpy(name, domain, model, method):
    wrong, decided = contradictions(bundled(name, model, domain, method), name)
    assert wrong == 0
    assert decided > (0.4 if name == "topk" else 0.9) * TRIED


@pytest.mark.parametrize("name", [*PROPERTIES, "distance"])
@pytest.mark.parametrize("domain", CURVED)
def test_maps_and_masks_move_along_curved_movements(name, domain):
    """Boxes against plain numpy: images, expected maps and masks are looked up by another definition."""
    options = PROPERTIES.get(name, {})
    result = verify("M-FNN-100", "mnist:69993", CURVED[domain], attention=name, until=0.3, **options)
    wrong, decided = contradictions(result, name)
    assert wrong == 0
    assert decided > (0.0 if name == "topk" else 0.5) * TRIED


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("seed", range(6))
def test_labels_hold_on_branching_networks(name, seed):
    """Residual sums, joins and maxima over windows: labels against a forward and a backward pass."""
    graph = branching.random_graph(seed, classes=3)
    rng = np.random.default_rng(seed)
    image = rng.choice([0.0, 0.25, 0.5, 1.0], size=graph.input_shape)
    image.ravel()[:2] = 0.25, 1.0
    given = dict(PROPERTIES[name], classes="all")
    given |= {"top": "2:0.5"} if name == "topk" else {}
    given |= {"mask": (image[0] > 0.4).astype(float)} if "mask" in given else {}
    if "mask" in given and not 0.0 < given["mask"].mean() < 1.0:
        pytest.skip("no mask")
    try:
        result = verify(model_of(graph), image, ("brightness:-0.5..0.5",), attention=name, method="map", **given)
    except Exception as error:
        if "zero everywhere" in str(error) or "tied" in str(error):
            pytest.skip(str(error)[:60])
        raise
    for theta in rng.uniform(-0.5, 0.5, 100):
        code = code_at(result.answer, np.array([theta]))
        value = result.at([theta]).inconsistency
        if code is not Kept.UNKNOWN and abs(value - result.answer.delta) > 1e-9:
            assert (value <= result.answer.delta) == (code is Kept.YES)


def tiny_question(name: str, domain: str, seed: int):
    rng = np.random.default_rng(seed)
    sizes = [30, 8, 6, 3]
    layers = [(rng.normal(size=(b, a)), 0.3 * rng.normal(size=b)) for a, b in pairwise(sizes)]
    image = rng.choice([0.0, 0.3, 0.6, 1.0], size=(1, 5, 6))
    image.ravel()[:2] = 0.0, 1.0
    given = dict(PROPERTIES[name]) | ({"top": "7:0.6"} if name == "topk" else {})
    given |= {"mask": "auto:bright=0.5"} if "mask" in given else {}
    specs = {"kept": ("brightness:0..0.5", "patch:x=1,y=1,w=2,h=2"), "moved": ("translate:dx=2", "brightness:0..0.5")}
    return make_question(make_model(layers, image.shape), image, specs[domain], attention=name, **given)


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("seed", range(3))
def test_enclosures_hold_all_samples(name, domain, seed):
    question, rng = tiny_question(name, domain, seed), np.random.default_rng(seed)
    bounder = Bounder(question.model.graph, question.perturbed, question.label, question.attention)
    passes, narrow = PointPasses(question), 0
    for number, cell in enumerate(question.perturbed.cells):
        first, last = (question.perturbed.domain.to_unit(end) for end in (cell.low, cell.high))
        for width in (1.0, 0.1, 1e-3, 1e-6):
            low = first + rng.random((6, 2)) * (1.0 - width) * (last - first)
            high = low + width * (last - first)
            bounds = bounder.bound(number, low, high).inconsistency
            narrow += int((bounds[:, 1] - bounds[:, 0] < 0.05).sum())
            for box in range(len(low)):
                points = low[box] + rng.random((40, 2)) * (high[box] - low[box])
                values = passes.inconsistencies(question.compound.to_theta(points))
                assert (bounds[box, 0] - 1e-12 <= values).all() and (values <= bounds[box, 1] + 1e-12).all()
    assert narrow > 0


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_maps_in_chunks_and_stored_ones_say_the_same(name, domain, tmp_path):
    options = dict(PROPERTIES[name], attention=name, method="map", threads=1)
    specs = DOMAINS[domain]
    whole = bundled(name, "M-FNN-100", domain, "map")
    with small_chunks():
        streamed = verify("M-FNN-100", "mnist:69993", specs, **options)
        again = load(streamed.save(tmp_path / "chunks"))
    for other in (streamed, again, load(whole.save(tmp_path / "whole"))):
        for label, bounds in whole.areas.items():
            assert other.areas[label] == pytest.approx(bounds, abs=1e-6), label
        assert other.zero_share == pytest.approx(whole.zero_share, abs=1e-6)
        assert other.kept_shares.keys() == whole.kept_shares.keys()
        for text, bounds in whole.kept_shares.items():
            assert other.kept_shares[text] == pytest.approx(bounds, abs=1e-5), text


@cache
def small(name: str, domain: str, method: str):
    options = dict(PROPERTIES[name], attention=name, property="ar")
    specs = {"kept": ("brightness:0..0.05", "patch:x=12,y=12,w=4,h=4:0..0.05"), "moved": ("translate:dx=1:0..0.2",)}
    return verify("M-FNN-100", "mnist:69993", specs[domain], method=method, **options)


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("method", ["bfs", "gbs", "boundary"])
def test_searches_agree_with_the_map(name, domain, method):
    found, whole = small(name, domain, method), small(name, domain, "map")
    if method == "bfs":
        low, high = whole.areas["AR"]
        assert found.areas["AR"][0] <= high + 1e-9 and low - 1e-9 <= found.areas["AR"][1]
        assert found.areas["AR"][1] - found.areas["AR"][0] < 1e-2
    assert not {found.verdict.value, whole.verdict.value} >= {"robust", "not robust"}


def test_a_mask_that_stands_still_in_bounds_is_caught(monkeypatch):
    true = Bounder._weights
    monkeypatch.setattr(Bounder, "_weights", lambda self, cell, low, high: true(self, 0, 0.0 * low, 0.0 * high))
    question = tiny_question("object", "moved", 1)
    bounder = Bounder(question.model.graph, question.perturbed, question.label, question.attention)
    passes, rng = PointPasses(question), np.random.default_rng(0)
    points = rng.random((50, 2)) * [0.5, 1.0]
    bounds = bounder.bound(0, points, points).inconsistency
    values = passes.inconsistencies(question.compound.to_theta(points))
    assert ((values < bounds[:, 0] - 1e-9) | (values > bounds[:, 1] + 1e-9)).any()
