"""Answers about bundled networks against tens of thousands of random thetas: by the definitions and by onnxruntime.

No theta may contradict the label of the piece it lies in, and the sampled shares must agree with the areas.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from steadygaze.api import verify
from steadygaze.labels import Kept
from steadygaze.network.graph import Chain
from steadygaze.perturbation import Perturbed
from steadygaze.results.result import Result
from support.oracles.attention_by_definition import Question, transported
from support.readers.maps import owners

PATCH = "patch:x=12,y=12,w=4,h=4"
PROBLEMS = (
    ("M-FNN-100", "mnist:69990", ("brightness", PATCH), Question(), 3.0, 20_000),
    ("M-FNN-100", "mnist:69992", ("translate:dy=1", "brightness:0..0.5"), Question(), "60%", 8_000),
    ("M-FNN-100", "mnist:69991", ("translate:dx=3:-1.5..2.25",), Question("mean", "l1"), "50%", 4_000),
    (
        "M-FNN-100",
        "mnist:69993",
        ("patch:x=4,y=9,w=20,h=8,tone=-1", "darkness:-0.25..0.5"),
        Question("abs", "l1"),
        "50%",
        4_000,
    ),
    ("M-CNN-S", "mnist:69990", ("brightness:0..0.1", PATCH), Question(), "60%", 3_000),
    (
        "M-CNN-S",
        "mnist:69994",
        ("translate:dx=1:0..0.5", "brightness:0..0.004"),
        Question("abs+mean", "l2"),
        "25%",
        3_000,
    ),
)
STRIP = 1e-9
"""Half the width, in margin and in ai, of what may be undecided around a border."""

FLOAT32 = 1e-3
"""Margins above this are not a matter of rounding in float32 (logits are some tens)."""

SIGMAS = 5.0


@dataclass(frozen=True, eq=False)
class Sampled:
    """Random thetas: the piece each lies in, margin and ai by definition, the class by onnxruntime."""

    result: Result
    piece: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray
    replayed: np.ndarray


def gradients_of_patterns(chain: Chain, bits: list[np.ndarray]) -> np.ndarray:
    """Gradients (K, pixels) under one pattern, one boolean array per layer."""
    last = chain.maps[-1].matrix
    rows = last if isinstance(last, np.ndarray) else last.toarray()
    for affine, layer in zip(reversed(chain.maps[:-1]), reversed(bits), strict=True):
        rows = (affine.matrix.T @ (rows * layer).T).T
    return rows


def inconsistencies(result: Result, thetas: np.ndarray, images: np.ndarray, question: Question) -> np.ndarray:
    """ai by definition at thetas (B, d); thetas with the same pattern share their actual maps."""
    problem = result.question
    chain, perturbed, shape = problem.model.chain, problem.perturbed, problem.model.input_shape
    layers = [values > 0 for values in problem.model.graph.trace(images)[0]]
    _, first, inverse = np.unique(
        np.packbits(np.hstack(layers), axis=1), axis=0, return_index=True, return_inverse=True
    )
    own = [values > 0 for values in problem.model.graph.trace(perturbed.x0[None])[0]]
    original = question.of(gradients_of_patterns(chain, [layer[0] for layer in own]).reshape(-1, *shape))
    found = np.zeros(len(thetas))
    for number, example in enumerate(first):
        actual = question.of(gradients_of_patterns(chain, [layer[example] for layer in layers]).reshape(-1, *shape))
        members = np.flatnonzero(inverse.ravel() == number)
        for part in np.array_split(members, -(-len(members) // 64)):
            difference = actual - expected_maps(original, perturbed, thetas[part])
            rows = np.abs(difference.reshape(*difference.shape[:2], -1))
            norms = rows.sum(axis=2) if question.dist == "l1" else np.sqrt((rows**2).sum(axis=2))
            found[part] = norms.sum(axis=1)
    return found


def expected_maps(original: np.ndarray, perturbed: Perturbed, thetas: np.ndarray) -> np.ndarray:
    """The expected maps (B or 1, K', C, H, W) at thetas (B, d), between those at whole pixels."""
    axis = perturbed.moving_axis
    if axis is None:
        return original[None]
    whole = np.floor(thetas[:, axis])
    expected = np.zeros((len(thetas), *original.shape))
    for step in np.unique(whole):
        before, after = (_at_whole_pixel(original, perturbed, int(step) + more) for more in (0, 1))
        chosen = whole == step
        share = (thetas[chosen, axis] - step)[:, None, None, None, None]
        expected[chosen] = (1 - share) * before + share * after
    return expected


def _at_whole_pixel(original: np.ndarray, perturbed: Perturbed, step: int) -> np.ndarray:
    theta = np.zeros(perturbed.domain.dimension)
    theta[perturbed.moving_axis] = step
    return transported(original, perturbed, theta)


@pytest.fixture(scope="module", params=PROBLEMS, ids=lambda problem: f"{problem[0]}-{'+'.join(problem[2])}")
def sampled(request: pytest.FixtureRequest) -> Sampled:
    name, reference, specs, question, delta, count = request.param
    result = verify(name, reference, specs, delta=delta, filter=question.filter, dist=question.dist, threads=2)
    compound = result.tiling.answers.compound
    thetas = compound.to_theta(np.random.default_rng(11).random((count, 2)))
    points = compound.to_unit(thetas)
    if compound.domain.dimension == 1:
        points[:, 1] = 0.5
    piece, depth = owners(result.answer.joint.pieces, points)
    assert (depth > -1e-9).all(), "a theta that no piece contains"
    # Beside an edge the plain forward pass may be on either side.
    piece = np.where(depth > 1e-8, piece, -1)
    assert (piece >= 0).mean() > 0.99
    images = compound.perturbed.images(thetas)
    logits = result.question.model.graph.logits(images)
    margin = logits[:, result.label] - np.delete(logits, result.label, axis=1).max(axis=1)
    replayed = np.argmax(result.question.model.replay.logits(images), axis=1)
    return Sampled(result, piece, margin, inconsistencies(result, thetas, images, question), replayed)


def test_no_theta_contradicts_its_label(sampled: Sampled) -> None:
    inside = sampled.piece >= 0
    keeps = sampled.result.answer.joint.pieces.keeps_label[sampled.piece]
    assert (sampled.margin[inside & keeps] > -STRIP).all()
    assert (sampled.margin[inside & ~keeps] < STRIP).all()


def test_no_theta_contradicts_its_label_in_onnxruntime(sampled: Sampled) -> None:
    clear = (sampled.piece >= 0) & (np.abs(sampled.margin) > FLOAT32)
    keeps = sampled.result.answer.joint.pieces.keeps_label[sampled.piece]
    assert clear.mean() > 0.9
    assert ((sampled.replayed == sampled.result.label) == keeps)[clear].all()


def test_no_theta_contradicts_its_attention(sampled: Sampled) -> None:
    inside, delta = sampled.piece >= 0, sampled.result.answer.delta
    attention = sampled.result.answer.joint.attention[sampled.piece]
    assert (sampled.inconsistency[inside & (attention == Kept.YES)] <= delta + STRIP).all()
    assert (sampled.inconsistency[inside & (attention == Kept.NO)] > delta - STRIP).all()
    assert (attention == Kept.UNKNOWN).mean() < 1e-3


def test_reach_of_a_region_contains_the_sampled_inconsistency(sampled: Sampled) -> None:
    inside = sampled.piece >= 0
    answer = sampled.result.answer
    region = answer.joint.pieces.region[sampled.piece[inside]]
    low, high = answer.labels.reach[region].T
    assert (low <= sampled.inconsistency[inside] + STRIP).all() and (
        sampled.inconsistency[inside] <= high + STRIP
    ).all()


def test_sampled_shares_agree_with_the_areas(sampled: Sampled) -> None:
    areas, delta = sampled.result.areas, sampled.result.answer.delta
    is_kept, is_same = sampled.margin > 0, sampled.inconsistency <= delta
    masks = {"CR": is_kept, "MR": ~is_kept, "AR": is_same, "IR": ~is_same}
    masks |= {f"{a}&{b}": masks[a] & masks[b] for a in ("CR", "MR") for b in ("AR", "IR")}
    for name, mask in masks.items():
        low, high = areas[name]
        assert high - low < 1e-6
        sigma = np.sqrt(max(low * (1 - low), 1.0 / len(mask)) / len(mask))
        assert abs(mask.mean() - low) < SIGMAS * sigma, name


def test_the_problems_are_not_trivial(sampled: Sampled) -> None:
    low, high = sampled.result.areas["AR"]
    assert 1e-3 < low <= high < 0.999
