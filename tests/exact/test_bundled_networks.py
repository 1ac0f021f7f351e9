"""Bundled networks on small triangles: outcomes agree with certain float64 margins."""

import numpy as np
import pytest

from steadygaze.exact import ExactLabels, LabelOutcome
from steadygaze.question import make_question

SPECS = ["brightness:0..0.3", "patch:x=12,y=12,w=4,h=4"]
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def float_margins(question, thetas: np.ndarray, label: int) -> np.ndarray:
    images = np.stack([question.perturbed.image(theta) for theta in thetas])
    logits = question.model.graph.logits(images)
    return logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)


@pytest.mark.parametrize(
    ("name", "specs"),
    [("M-FNN-100", SPECS), ("M-FNN-100", ["translate:dx=3", "brightness:0..0.3"]), ("M-CNN-S", SPECS)],
)
def test_small_triangles(name, specs):
    question = make_question(name, "mnist:69990", specs)
    labels = ExactLabels(question.compound, question.label)
    rng = np.random.default_rng(0)
    # The second one straddles the knot at one pixel, where a translation is the first axis.
    for corner, size in (([0.5, 0.5], 1e-6), ([1 / 3 - 1e-4, 0.25], 3e-4), ([0.0, 0.0], 1e-3)):
        vertices = np.array(corner) + size * TRIANGLE
        thetas = question.compound.to_theta(rng.dirichlet(np.ones(3), size=20) @ vertices)
        values = float_margins(question, thetas, question.label)
        assert np.abs(values).min() > 1e-6
        settlement = labels.settle(vertices, 1e-12, limit_seconds=60)
        assert settlement.outcome is (LabelOutcome.KEPT if values.min() > 0 else LabelOutcome.LOST)
        for theta, value in zip(thetas[:3], values, strict=False):
            assert float(labels.margin_at(theta).low) == pytest.approx(value, abs=1e-9)


def test_a_border_inside_a_triangle():
    question = make_question("M-FNN-100", "mnist:69992", ["brightness:0..1", "translate:dx=3"])
    ticks = np.linspace(0.0, 1.0, 33)
    grid = np.array([[a, b] for a in ticks for b in ticks])
    signs = float_margins(question, question.compound.to_theta(grid), question.label) > 0
    border = next(i for i in range(len(grid) - 1) if signs[i] != signs[i + 1] and grid[i][0] == grid[i + 1][0])
    vertices = np.vstack([grid[border : border + 2], grid[border] + [1e-3, 0.0]])
    labels = ExactLabels(question.compound, question.label)
    settlement = labels.settle(vertices, 1e-12, limit_seconds=60, with_shares=True)
    assert settlement.outcome is LabelOutcome.MIXED
    assert labels.margin_at(settlement.witness).high < 0
    area = 0.5 * 1e-3 / 32
    assert settlement.shares.kept[1] + settlement.shares.lost[1] == pytest.approx(area, rel=1e-9)
