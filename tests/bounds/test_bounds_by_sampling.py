"""Bounds on the bundled networks: every sampled theta lies in the enclosures of all boxes that contain it.

Margins come from the graph's plain pass, gradients from masks and matrix products. Both are rounded, by far less than
the tolerance here; where exactness matters see `test_bounds_exact`.
"""

from functools import cache

import numpy as np
import pytest

from steadygaze.attention.gradients import gradient_maps
from steadygaze.bounds.bounder import Bounder, Enclosures
from steadygaze.question import Question as Problem
from steadygaze.question import make_question
from support.oracles.attention_by_definition import Question, pattern_at, transported

PLAIN = 1e-9
"""Rounding of a plain pass, relative to the size of what it computes: about 1e-13 on sixteen layers."""

PROBLEMS = {
    "dense": ("M-FNN-100", "mnist:69990", ("brightness", "patch:x=12,y=12,w=4,h=4"), "identity", "l2"),
    "dense, moving, one parameter": ("M-FNN-100", "mnist:69992", ("translate:dx=2:-1..1.5",), "abs+mean", "l1"),
    "deep": ("M-FNN-800", "mnist:69991", ("translate:dy=1", "brightness:0..0.5"), "mean", "l2"),
    "deep, four parameters": (
        "M-FNN-800",
        "mnist:69993",
        ("translate:dx=1", "brightness:0..0.2", "patch:x=3,y=3,w=9,h=9", "patch:x=12,y=12,w=4,h=4,tone=-1"),
        "identity",
        "l1",
    ),
    "convolutions": ("M-CNN-S", "mnist:69990", ("translate:dx=1", "patch:x=12,y=12,w=4,h=4"), "mean+abs", "l2"),
    "convolutions, three parameters": (
        "M-CNN-S",
        "mnist:69994",
        ("darkness", "brightness:0..0.5", "patch:x=8,y=8,w=4,h=4"),
        "abs",
        "l1",
    ),
    "many convolutions": ("M-CNN-M", "mnist:69990", ("translate:dx=1", "brightness"), "identity", "l2"),
}


@cache
def asked(name: str) -> Problem:
    model, image, specs, words, dist = PROBLEMS[name]
    return make_question(model, image, list(specs), filter=words, dist=dist)


@cache
def bounder_of(name: str, room: int) -> Bounder:
    problem = asked(name)
    return Bounder(problem.model.graph, problem.perturbed, problem.label, problem.attention, room=room)


def nested_boxes(problem: Problem, rng: np.random.Generator, depth: int) -> tuple[int, np.ndarray, np.ndarray]:
    """A knot cell and boxes inside it (depth, d), each half of the one before; the last ones are tiny."""
    cell = problem.perturbed.cells[int(rng.integers(len(problem.perturbed.cells)))]
    domain = problem.perturbed.domain
    low, high = ((end - domain.low) / domain.widths for end in (cell.low, cell.high))
    lows, highs = [low], [high]
    while len(lows) < depth:
        low, high, axis = low.copy(), high.copy(), int(rng.integers(len(low)))
        middle = 0.5 * (low[axis] + high[axis])
        if rng.random() < 0.5:
            low[axis] = middle
        else:
            high[axis] = middle
        lows.append(low)
        highs.append(high)
    return cell.index, np.array(lows), np.array(highs)


def measured(problem: Problem, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Margins (B,) and inconsistencies (B,) at thetas, plainly."""
    perturbed, label = problem.perturbed, problem.label
    images = perturbed.images(thetas)
    logits = problem.model.graph.logits(images)
    margins = logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)
    chain, words = problem.model.chain, Question(problem.attention.filter.name, problem.attention.distance.name.lower())
    both = np.concatenate([images, perturbed.x0[None]]).reshape(len(thetas) + 1, -1)
    maps = gradient_maps(chain, pattern_at(chain, both)).reshape(len(thetas) + 1, -1, *perturbed.x0.shape)
    original = words.of(maps[-1])
    sizes = [
        words.distance(words.of(actual) - transported(original, perturbed, theta))
        for actual, theta in zip(maps[:-1], thetas, strict=True)
    ]
    return margins, np.array(sizes)


@pytest.mark.parametrize("room", [0, 8])
@pytest.mark.parametrize("name", PROBLEMS)
def test_samples_lie_in_the_enclosures_of_all_boxes_around_them(name: str, room: int) -> None:
    problem, bounder = asked(name), bounder_of(name, room)
    rng = np.random.default_rng([len(name), room])
    samples = 2 if "M-CNN-M" in PROBLEMS[name][0] else 6
    cell, low, high = nested_boxes(problem, rng, 8 if samples > 2 else 6)
    found = bounder.bound(cell, low, high)
    assert (found.margin[:, 0] <= found.margin[:, 1]).all()
    assert (found.inconsistency[:, 0] <= found.inconsistency[:, 1]).all()
    domain, piece = problem.perturbed.domain, problem.perturbed.cells[cell]
    for box in range(len(low)):
        t = low[box] + rng.random((samples, len(low[box]))) * (high[box] - low[box])
        t[0] = np.where(rng.random(len(low[box])) < 0.5, low[box], high[box])
        thetas = np.clip(domain.low + t * domain.widths, piece.low, piece.high)
        margins, sizes = measured(problem, thetas)
        # The sample of a box lies in all boxes that it was cut from.
        for around in range(box + 1):
            assert_between(margins, found.margin[around])
            assert_between(sizes, found.inconsistency[around])


def assert_between(values: np.ndarray, ends: np.ndarray) -> None:
    slack = PLAIN * (1.0 + np.abs(values))
    assert (ends[0] - slack <= values).all()
    assert (values <= ends[1] + slack).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_enclosures_of_points_are_narrow(name: str) -> None:
    """At a single theta only rounding is left; carried by absolute weights, it grows with every layer."""
    problem, bounder = asked(name), bounder_of(name, 0)
    rng = np.random.default_rng(9)
    cell, low, high = nested_boxes(problem, rng, 2)
    t = 0.5 * (low[-1:] + high[-1:]) + 0.01 * (high[-1:] - low[-1:])
    found: Enclosures = bounder.bound(cell, t, t)
    margins, sizes = measured(problem, problem.perturbed.domain.low + t * problem.perturbed.domain.widths)
    share = 1e-3 if name.startswith("deep") else 1e-8
    np.testing.assert_allclose(found.margin[0], margins[0], rtol=share)
    np.testing.assert_allclose(found.inconsistency[0], sizes[0], rtol=share)
    assert found.unstable[0] == 0


def test_more_room_gives_no_worse_bounds_in_the_end() -> None:
    """Generators keep what a remainder forgets: on a deep network the bounds of small boxes get narrower."""
    problem = asked("deep")
    cell, low, high = nested_boxes(problem, np.random.default_rng(3), 14)
    plain, richer = (bounder_of("deep", room).bound(cell, low[-4:], high[-4:]).margin for room in (0, 64))
    assert (np.diff(richer, axis=1) < np.diff(plain, axis=1)).all()
