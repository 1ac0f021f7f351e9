"""Refinements of networks with branches and windows by bounds alone: labels and enclosures at thousands of thetas."""

import numpy as np
import pytest

from steadygaze.engines import run
from steadygaze.engines.refine import boxes as box_module
from steadygaze.engines.refine import refine_engine
from steadygaze.engines.refine.boxes import attention_codes, label_codes
from steadygaze.engines.refine.pointwise import PointPasses
from steadygaze.errors import ImageError
from steadygaze.labels import Kept, Property
from steadygaze.network.graph import gradients, patterns
from steadygaze.question import Question, make_question
from support.networks.branching import random_graph
from support.networks.layered_models import model_of
from support.networks.refine_problems import plan_with
from support.readers.sampled_enclosures import pooled_graph

SPECS = (
    ("brightness:-0.25..0.5", "patch:x=0,y=0,w=1,h=2:-0.5..0.5"),
    ("brightness:0..0.5",),
    ("patch:x=0,y=0,w=1,h=1:0..0.5", "translate:dx=1:-0.5..0.5"),
)


def problem(seed: int, **options: object) -> Question:
    """A question whose unperturbed image has one label."""
    for attempt in range(40):
        rng = np.random.default_rng([51, seed, attempt])
        graph = pooled_graph(seed + 100 * attempt) if seed % 3 == 2 else random_graph(seed + 100 * attempt, classes=3)
        question = make_question(
            model_of(graph), rng.random((1, 2, 2)), list(SPECS[seed % len(SPECS)]), delta="60%", **options
        )  # type: ignore[arg-type]
        try:
            _ = question.label
        except ImageError:
            continue
        if question.map_size > 0.0:
            return question
    raise AssertionError("no network without a tie")


def refined(monkeypatch: pytest.MonkeyPatch, question: Question, room: int, **options: object):
    """Bounds alone, down to boxes of a 16th: a tie on a whole region stays open for ever."""
    monkeypatch.setattr(refine_engine, "make_plan", plan_with(room, 0.0, 1e10))
    monkeypatch.setattr(box_module, "SMALLEST", 1.0 / 16.0)
    return run(question, "refine", until=0.05, threads=1, **options)


def measured(question: Question, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Margins and inconsistencies at thetas, from the graph's own pass and gradients under its pattern."""
    images, graph, label = question.perturbed.images(thetas), question.model.graph, question.label
    inputs, logits = graph.trace(images)
    margins = logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)
    original, _ = graph.trace(question.perturbed.x0[None])

    def maps(bits: list[np.ndarray]) -> np.ndarray:
        *_, rows = gradients(graph, bits)
        return rows.reshape(len(rows), *question.perturbed.x0.shape)

    expected = maps([bits[0] for bits in patterns(graph, original)])
    found = []
    for number, theta in enumerate(thetas):
        actual = maps([bits[number] for bits in patterns(graph, inputs)])
        cell = question.perturbed.cell_of(theta)
        moved = question.perturbed.transport(expected, cell)
        axis = question.perturbed.moving_axis
        own = expected if moved is None else expected + moved[0] + theta[axis] * moved[1]
        found.append(np.sqrt(((actual - own) ** 2).sum(axis=(1, 2, 3))).sum())
    return margins, np.array(found)


@pytest.mark.parametrize(("seed", "room"), [(seed, (0, 8)[seed % 2]) for seed in range(9)])
def test_boxes_hold_at_sampled_thetas(seed: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    question = problem(seed)
    result = refined(monkeypatch, question, room)
    boxes, d = result.tiling.boxes, question.perturbed.domain.dimension
    rng = np.random.default_rng(seed)
    chosen = rng.integers(len(boxes), size=600)
    t = boxes.low[chosen, :d] + rng.random((600, d)) * (boxes.high - boxes.low)[chosen, :d]
    margins, sizes = measured(question, question.compound.to_theta(t))
    delta = question.own_limit
    slack = 1e-9 * (1.0 + np.abs(margins))
    assert (boxes.margin[chosen, 0] - slack <= margins).all()
    assert (margins <= boxes.margin[chosen, 1] + slack).all()
    # A theta on a kink, up to rounding, may have the map of either side.
    off = (sizes < boxes.inconsistency[chosen, 0] - 1e-9) | (sizes > boxes.inconsistency[chosen, 1] + 1e-9)
    assert not off.any()
    labels = label_codes(boxes.margin)[chosen]
    assert (margins[labels == Kept.YES] > 0.0).all()
    assert (margins[labels == Kept.NO] < 0.0).all()
    attention = attention_codes(boxes.inconsistency, delta)[chosen]
    assert (sizes[attention == Kept.YES] <= delta + 1e-9).all()
    assert (sizes[attention == Kept.NO] > delta - 1e-9).all()
    assert (labels != Kept.UNKNOWN).mean() > 0.3


@pytest.mark.parametrize("seed", range(6))
def test_points_are_measured_as_the_definitions_say(seed: int) -> None:
    question = problem(seed)
    passes = PointPasses(question)
    thetas = question.compound.to_theta(np.random.default_rng(seed).random((40, question.perturbed.domain.dimension)))
    margins, sizes = measured(question, thetas)
    found = passes.measure(thetas, has_attention=True)
    assert (np.abs(found.margin - margins) <= found.margin_slack + 1e-12).all()
    assert (np.abs(found.inconsistency - sizes) <= found.inconsistency_slack + 1e-9).all()
    # The other graphs may hold w·h − w·h, which is zero, on its kink, everywhere.
    assert seed % 3 != 2 or np.isfinite(found.inconsistency_slack).mean() > 0.5
    step = 1e-6
    for axis in range(thetas.shape[1]):
        moved = thetas + step * np.eye(thetas.shape[1])[axis] * question.perturbed.domain.widths
        slope = (passes.margins(moved) - passes.margins(thetas)) / step
        agrees = np.abs(slope - passes.slopes(thetas)[:, axis]) <= 1e-4 * (1.0 + np.abs(slope))
        assert agrees.mean() > 0.8  # the others have a kink between


@pytest.mark.parametrize("seed", range(6))
def test_a_violation_that_is_found_is_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    question = problem(seed)
    result = refined(monkeypatch, question, 0, goal="verdict")
    if len(result.tiling.points):
        margins, sizes = measured(question, result.tiling.points)
        assert ((margins < 0.0) | (sizes > question.own_limit)).all()
    assert question.property is Property.BOTH
