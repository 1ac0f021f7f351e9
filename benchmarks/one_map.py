"""Measures one map in its own process and prints the outcome as one line of JSON; `map.py` starts it.

    python benchmarks/one_map.py M-FNN-100 BP mnist:69990 --repetitions 3 --seconds 20

Measured: the map with all labels, the pass of the affine form, the printed search, the peak memory. Checked: every
repetition finds the same number of regions, and the labels at sampled thetas agree with plain forward and backward
passes.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

# Read when numpy is imported: everything runs on one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from affine_pass import AffinePass, pass_at
from as_printed.bfs import bfs
from as_printed.question import Question as PrintedProblem
from as_printed.question import Translation, problem_from, shift_source
from steadygaze.engines import run
from steadygaze.labels import Kept
from steadygaze.network.model import Model
from steadygaze.question import Question, make_question
from steadygaze.regions import kernels
from steadygaze.results.result import Result
from timing import Spread, Stopwatch, clock, clocked, peak_mib

PATCH = "patch:x=12,y=12,w=4,h=4"
TRANSLATE = "translate:dy=1"
DOMAINS = {"BP": ("brightness", PATCH), "TP": (TRANSLATE, PATCH), "TB": (TRANSLATE, "brightness")}
DELTA = 3.0
ENGINE = ("prepare", "walk", "attention", "labels")
"""The phases of a map before its self-check."""

PASSES = 200
"""Passes of the affine form beside each repetition of the map, at 20 different thetas."""


def question_of(model: str | Model, domain: str, image: str) -> Question:
    return make_question(model, image, DOMAINS[domain], delta=DELTA)


def time_map(question: Question) -> tuple[Result, dict[str, float]]:
    """Map and label a fresh question; seconds of the whole (`engine`) and of each stage."""
    watch = Stopwatch()
    layout, _ = clock(lambda: question.compound.programs)
    with clocked(watch, advance=kernels):
        result = run(question, "map", threads=1)
    walk, seconds = watch.lap("advance"), result.seconds
    engine = layout + sum(seconds.get(name, 0.0) for name in ENGINE)
    return result, {
        "engine": engine,
        "with_check": engine + seconds["self-check"],
        "layout": layout,
        "walk": walk,
        "driver": seconds["walk"] - walk,
        "measure": seconds["attention"],
        "labels": seconds["labels"] + seconds.get("prepare", 0.0),
    }


def time_pass(passes: Sequence[AffinePass]) -> float:
    """The median of the seconds of many passes."""
    return float(np.median([clock(passes[n % len(passes)].logits)[0] for n in range(PASSES)]))


def printed_problem(question: Question) -> PrintedProblem:
    """The same question for the printed search."""
    perturbed = question.perturbed
    if len(perturbed.cells) != 1:
        raise SystemExit("the printed search knows no knots: translate by one pixel")
    cell, axis, shape = perturbed.cells[0], perturbed.moving_axis, perturbed.x0.shape
    move = None if axis is None else perturbed.perturbations[axis]
    return problem_from(
        [(affine.matrix, affine.bias) for affine in question.model.chain.maps],
        perturbed.x0,
        (perturbed.x0 + cell.offset).ravel(),
        cell.slope.reshape(len(cell.slope), -1),
        low=perturbed.domain.low.tolist(),
        high=perturbed.domain.high.tolist(),
        delta=DELTA,
        translation=move and Translation(axis, shift_source(shape, dx=np.sign(move.dx), dy=np.sign(move.dy))),
    )


def contradictions(result: Result, samples: int) -> tuple[list[str], int]:
    """Labels of the map that a plain forward or backward pass contradicts, and the number of compared thetas.

    Thetas within 1e-9 of an edge, and labels that the map leaves undecided, are not compared.
    """
    compound, joint = result.tiling.answers.compound, result.answer.joint
    polygons = joint.polytopes
    low = np.minimum.reduceat(polygons.points, polygons.starts[:-1])
    high = np.maximum.reduceat(polygons.points, polygons.starts[:-1])
    delta = result.answer.delta
    found, compared = [], 0
    for place in np.random.default_rng(0).random((samples, compound.domain.dimension)):
        theta = compound.domain.low + place * compound.domain.widths
        point = compound.to_unit(theta[None])[0]
        near = np.flatnonzero(((low <= point) & (point <= high)).all(axis=1))
        owner = [piece for piece in near if _depth(polygons[piece], point) > 1e-9]
        if len(owner) > 1 or not len(near):
            found.append(f"{len(owner)} pieces hold theta {theta.tolist()}")
        if len(owner) != 1:
            continue
        compared += 1
        plain = result.at(theta)
        if plain.label != joint.pieces.winner[owner[0]]:
            found.append(f"class {joint.pieces.winner[owner[0]]}, but {plain.label} wins at {theta.tolist()}")
        attention = joint.attention[owner[0]]
        if (attention == Kept.YES and plain.inconsistency > delta + 1e-9) or (
            attention == Kept.NO and plain.inconsistency < delta - 1e-9
        ):
            found.append(f"attention {Kept(attention).name}, but ai = {plain.inconsistency:.6g} at {theta.tolist()}")
    return found, compared


def _depth(polygon: np.ndarray, point: np.ndarray) -> float:
    """The depth of a point inside a counter-clockwise polygon (V, 2); negative outside."""
    edges = np.roll(polygon, -1, axis=0) - polygon
    ahead = point - polygon
    side = edges[:, 0] * ahead[:, 1] - edges[:, 1] * ahead[:, 0]
    return float((side / np.maximum(np.hypot(*edges.T), 1e-300)).min())


def measure_map(
    model: str, domain: str, image: str, *, repetitions: int, seconds: float, samples: int
) -> dict[str, Any]:
    """All measurements and checks of one map."""
    first = question_of(model, domain, image)
    result, _ = time_map(first)  # compiles or loads the kernels
    peak = peak_mib()
    problems, compared = contradictions(result, samples)
    count = len(result.tiling.answers.regions)
    widths, low = first.perturbed.domain.widths, first.perturbed.domain.low
    passes = [pass_at(first, low + place * widths) for place in np.random.default_rng(1).random((20, len(low)))]
    time_pass(passes)
    times: list[dict[str, float]] = []
    pass_seconds: list[float] = []
    for _ in range(repetitions):
        result, stages = time_map(question_of(first.model, domain, image))
        if len(result.tiling.answers.regions) != count:
            problems.append(f"{len(result.tiling.answers.regions)} regions after {count}")
        times.append(stages)
        pass_seconds.append(time_pass(passes))
    row: dict[str, Any] = {"model": model, "domain": domain, "image": image, "regions": count}
    row["patterns"] = len(result.tiling.answers.regions.patterns)
    row["seconds"] = {name: vars(Spread.of([stages[name] for stages in times])) for name in times[0]}
    row["pass_seconds"] = vars(Spread.of(pass_seconds))
    ratios = [stages["engine"] / count / one for stages, one in zip(times, pass_seconds, strict=True)]
    row["region_per_pass"] = vars(Spread.of(ratios))
    row |= {"peak_mib": peak, "compared_thetas": compared, "problems": problems}
    if seconds > 0.0:
        outcome = bfs(printed_problem(first), seconds)
        row["printed"] = {"popped": outcome.popped, "queued": outcome.queued, "seconds": outcome.seconds}
    return row


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("domain", choices=DOMAINS)
    parser.add_argument("image")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="time of the printed search; 0: leave it out")
    parser.add_argument("--samples", type=int, default=1000, help="thetas at which the labels are compared")
    print(json.dumps(measure_map(**vars(parser.parse_args(arguments)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
