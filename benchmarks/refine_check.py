"""Checks the claims of a refinement by plain passes at sampled thetas, and by maps.

Turns a result into a list of contradictions. This module times nothing.
"""

from dataclasses import replace

import numpy as np

from steadygaze.engines import run
from steadygaze.engines.refine.self_check import Sampled, sample_contradictions
from steadygaze.polytopes import Polygons
from steadygaze.question import Question, make_question
from steadygaze.results.result import Result

AREA = 1e-9
"""The largest difference between shares of the domain if both engines are exact."""

WINDOW = 1 / 32
"""The sides of a window, as a share of those of the domain."""

SEED = 20245


def sampled(result: Result, count: int) -> Sampled:
    """Contradictions by plain passes at a number of thetas, half of them close to borders between labels.

    If the question includes attention, a tenth of them also compare the attention, which takes ten times as long.
    """
    delta = result.question.limit(result.threshold)
    inconsistencies = count // 10 if result.is_measured else 0
    counts = count, inconsistencies, count // 10
    return sample_contradictions(result.question, result.tiling.boxes, result.tiling.answers, delta, *counts)


def map_disagreements(result: Result, mapped: Result) -> list[str]:
    """Shares that differ from those of the full map by more than AREA; parts open in the map may be decided."""
    open_share = mapped.areas["undecided"][1]
    found = []
    for name, (low, high) in mapped.areas.items():
        own_low, own_high = result.areas[name]
        if name == "undecided":
            is_same = own_high <= high + AREA
        else:
            is_same = max(abs(own_low - low), abs(own_high - high)) <= AREA + open_share
        if not is_same:
            found.append(f"{name} is [{own_low!r}, {own_high!r}], by the map [{low!r}, {high!r}]")
    return found


def window_disagreements(result: Result, count: int) -> list[str]:
    """Compare the share of CR in random windows of the domain (two parameters) with a map of each window alone."""
    found = []
    for low in window_corners(result, count):
        window = np.stack([low, low + WINDOW])
        mapped = run(restricted_problem(result.question, window), "map", threads=1)
        least, most = (share * WINDOW**2 for share in mapped.areas["CR"])
        share, strip = kept_inside(result, window)
        if not least - strip - AREA <= share <= most + strip + AREA:
            found.append(f"CR covers {share!r} of the window at {low.tolist()}, by its map [{least!r}, {most!r}]")
    return found


def window_corners(result: Result, count: int) -> np.ndarray:
    """Fixed low corners (count, 2) in t: alternately anywhere, and around regions of exact boxes."""
    generator = np.random.default_rng(SEED)
    corners = generator.random((count, 2)) * (1.0 - WINDOW)
    if result.tiling.answers is not None:
        centres = result.tiling.answers.regions.polytopes.centres
        chosen = centres[generator.integers(len(centres), size=len(corners[1::2]))]
        corners[1::2] = np.clip(chosen - 0.5 * WINDOW, 0.0, 1.0 - WINDOW)
    return corners


def restricted_problem(question: Question, window: np.ndarray) -> Question:
    """The same question on a window (2, 2) of the domain alone: its low and its high corner in t."""
    ends = question.compound.to_theta(window)
    perturbations = [
        replace(perturbation, range=(float(low), float(high)))
        for perturbation, low, high in zip(question.perturbed.perturbations, *ends, strict=True)
    ]
    return make_question(
        question.model, question.perturbed.x0, perturbations, property="cr", delta=str(question.threshold)
    )


def kept_inside(result: Result, window: np.ndarray) -> tuple[float, float]:
    """The share of the domain that is CR inside a window, and the share within the error of a border there."""
    joint = result.answer.joint
    polygons = joint.polytopes
    assert isinstance(polygons, Polygons), "windows are compared in two dimensions"
    ends = np.array([polygons.extent(axis) for axis in (0, 1)])
    touches = (ends[:, 0] < window[1][:, None]) & (ends[:, 1] > window[0][:, None])
    chosen = np.flatnonzero(touches.all(axis=0))
    inside = np.array([clipped_area(polygons[number], window) for number in chosen])
    keeps = joint.pieces.keeps_label[chosen]
    strip = np.minimum(joint.label_strip[chosen], inside)
    return float(inside[keeps].sum()), float(strip.sum())


def clipped_area(points: np.ndarray, window: np.ndarray) -> float:
    """The area of a convex polygon (V, 2) inside a window (2, 2).

    >>> clipped_area(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [0.5, 1.0]]))
    0.125
    """
    for axis in (0, 1):
        for sign, end in ((1.0, window[0][axis]), (-1.0, window[1][axis])):
            depth = sign * (points[:, axis] - end)
            parts = []
            for here, there, a, b in zip(points, np.roll(points, -1, axis=0), depth, np.roll(depth, -1), strict=True):
                if a >= 0.0:
                    parts.append(here)
                if (a > 0.0 > b) or (a < 0.0 < b):
                    parts.append(here + a / (a - b) * (there - here))
            if len(parts) < 3:
                return 0.0
            points = np.array(parts)
    x, y = points.T
    return float(0.5 * (x * np.roll(y, -1) - np.roll(x, -1) * y).sum())
