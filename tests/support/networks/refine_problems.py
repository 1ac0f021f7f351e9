"""Small problems that a refinement decides partly by bounds and partly by exact regions.

A real run subdivides small networks at once. `plan_with` makes a run bound and split boxes first, and subdivide those
with few neurons of unknown sign, which exercises every part of a refinement.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from steadygaze.bounds.bounder import Bounder
from steadygaze.engines.refine.planning import RefinePlan
from steadygaze.errors import ImageError
from steadygaze.question import Question, make_question
from support.networks.layered_models import make_model
from support.networks.search_problems import SPECS

FOUR = (
    ("translate:dx=1", "patch:x=0,y=0,w=1,h=1", "brightness:0..0.5", "patch:x=0,y=1,w=2,h=1,tone=-1"),
    ("brightness:-0.25..0.25", "darkness:0..0.25", "patch:x=0,y=0,w=2,h=2", "patch:x=1,y=0,w=1,h=1:-0.5..0.5"),
)
HIDDEN = {1: (6, 5), 2: (5, 4), 3: (4, 3), 4: (4, 3)}


def mixed_problem(seed: int, dimension: int, **options: object) -> Question:
    """A dense network on 2×2 pixels; weights are 64ths, so exact regions stay cheap."""
    for attempt in range(50):
        rng = np.random.default_rng([11, seed, dimension, attempt])
        specs = (*SPECS.get(dimension, ()), *(FOUR if dimension == 4 else ()))
        layers = [
            (np.round(64 * rng.normal(size=(b, a))) / 64, np.round(32 * rng.normal(size=b)) / 64)
            for a, b in pairwise([4, *HIDDEN[dimension], 3])
        ]
        image = rng.integers(0, 5, size=(1, 2, 2)) / 4
        filters = {"filter": ("identity", "abs", "mean", "abs+mean")[seed % 4], "dist": ("l2", "l1")[seed % 2]}
        question = make_question(
            make_model(layers, (1, 2, 2)), image, list(specs[seed % len(specs)]), **{**filters, **options}
        )  # type: ignore[arg-type]
        try:
            _ = question.label
        except ImageError:
            continue
        return question
    raise AssertionError("no network without a tie")


def plan_with(room: int, max_exact_regions: float, exact_work: float) -> Callable[..., RefinePlan]:
    """A stand-in for `make_plan`: the number of generators, and the most expected regions of a subdivided box.

    exact_work: the pretended cost of subdividing everything; if it is large, violations are searched for first.
    """

    def make_plan(bounder: Bounder, *_: object) -> RefinePlan:
        d = bounder.perturbed.domain.dimension
        most = max_exact_regions * (1.0, 1.0, 2.0, 0.0)[d - 1]
        return RefinePlan(d, room, most, False, None, 0.0, exact_work)

    return make_plan
