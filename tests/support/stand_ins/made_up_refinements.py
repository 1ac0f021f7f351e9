"""Turns full maps into results of refinements: boxes get enclosures from the map, some become exact.

The enclosure of a box covers the pieces of the map that meet it, widened by a slack like sound bounds.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from steadygaze.api import verify
from steadygaze.attention.map_errors import MapErrors
from steadygaze.attention.measuring import measure
from steadygaze.engines.refine.boxes import Boxes, State
from steadygaze.engines.refine.merged_answer import box_at
from steadygaze.engines.refine.refine_tiling import RefineTiling
from steadygaze.properties.classification import classify
from steadygaze.question import make_question
from steadygaze.regions.check import CheckedMap
from steadygaze.regions.region import RegionSet
from steadygaze.results.answer import Answers
from steadygaze.results.result import Result

SLACK = 0.01
IMAGE = "mnist:69990"
PLANE = ("brightness:0..1", "patch:x=12,y=12,w=4,h=4")
MOVING = ("translate:dx=3:-0.2..1.3", "brightness:0..0.1")
LINE, MOVING_LINE = ("brightness:0..1",), ("translate:dx=3:-0.2..1.3",)


@cache
def full_map(specs: tuple[str, ...], **options: str) -> Result:
    """The map of M-FNN-100 on a seven."""
    return verify("M-FNN-100", IMAGE, list(specs), threads=1, **options)


@cache
def made(
    specs: tuple[str, ...],
    levels: int = 6,
    exact_cells: tuple[int, ...] = (),
    *,
    property: str = "both",
    delta: str = "25%",
    thetas: tuple[tuple[float, ...], ...] = (),
) -> Result:
    """A refinement of a question: knot cells are halved `levels` times; those in `exact_cells` become exact regions."""
    whole = full_map(specs, property=property, delta=delta)
    compound = whole.question.compound
    cells = Boxes.of(compound)
    is_exact = np.isin(cells.cell, exact_cells)
    rest = halved(cells.take(~is_exact), levels, compound.domain.dimension)
    exact = cells.take(is_exact)
    rest.margin[:], rest.inconsistency[:] = enclosures(whole, rest)
    if property == "cr":
        rest.inconsistency[:] = 0.0, np.inf
    exact.state[:] = State.EXACT
    boxes = Boxes.join([rest, exact], rest.cuts)
    answers, box_of = None, np.zeros(0, dtype=np.int64)
    if len(exact):
        answers = exact_answers(whole, boxes, exact_cells, is_measured=property != "cr")
        place = {int(cell): len(rest) + number for number, cell in enumerate(exact.cell)}
        box_of = np.array([place[int(cell)] for cell in answers.regions.cell])
    tiling = RefineTiling(
        question=whole.question, boxes=boxes, answers=answers, box_of=box_of, until=0.001, goal="map",
        points=np.array(thetas, dtype=np.float64).reshape(-1, compound.domain.dimension), relaxation="from a map",
    )  # fmt: skip
    return settled(replace(whole, tiling=tiling, checked=CheckedMap(0.0, 0, 0), seconds={}))


def with_tiling(result: Result, **changes: object) -> Result:
    """The result with other fields of its tiling."""
    return replace(result, tiling=replace(result.tiling, **changes))


def settled(result: Result) -> Result:
    """The result with boxes BOUNDED if they are decided for its property, and OPEN otherwise."""
    answer, boxes = result.answer, result.tiling.boxes
    is_open = np.zeros(len(boxes), dtype=bool)
    if result.question.property.value != "ar":
        is_open |= answer.label_codes == 1
    if result.question.property.value != "cr":
        is_open |= answer.attention_codes == 1
    state = np.where(boxes.state == State.EXACT, State.EXACT, np.where(is_open, State.OPEN, State.BOUNDED))
    return with_tiling(result, boxes=replace(boxes, state=state.astype(np.uint8)))


def halved(boxes: Boxes, levels: int, dimension: int) -> Boxes:
    """All boxes halved so many times, along one axis after the other."""
    for level in range(levels):
        boxes = boxes.split(np.full(len(boxes), level % dimension))
    return boxes


def enclosures(whole: Result, boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of margin and inconsistency (B, 2) over every box: those of the pieces whose bounding boxes meet it."""
    pieces, reach = whole.tiling.answers.pieces, whole.answer.labels.reach
    ends = [pieces.polytopes.extent(axis) for axis in range(boxes.low.shape[1])]
    margin, inconsistency = np.zeros((len(boxes), 2)), np.zeros((len(boxes), 2))
    for place in range(len(boxes)):
        meets = np.ones(len(pieces), dtype=bool)
        for axis, (low, high) in enumerate(ends):
            meets &= (low <= boxes.high[place, axis]) & (high >= boxes.low[place, axis])
        own, found = pieces.margin[meets], reach[pieces.region[meets]]
        margin[place] = own[:, 0].min() - SLACK, own[:, 1].max() + SLACK
        inconsistency[place] = max(0.0, found[:, 0].min() - SLACK), found[:, 1].max() + SLACK
    return margin, inconsistency


def exact_answers(whole: Result, boxes: Boxes, cells: Sequence[int], *, is_measured: bool = True) -> Answers:
    """The regions of some knot cells, their cuts numbered after those of the boxes."""
    found, question, compound = whole.tiling.answers.regions, whole.question, whole.question.compound
    chosen = np.flatnonzero(np.isin(found.cell, cells))
    first = int((found.cuts[:, 0] < 2).sum())
    polytopes = found.polytopes.take(chosen)
    signed = polytopes.facets
    shift = np.where(np.abs(signed) > first, len(boxes.cuts) - first, 0)
    regions: RegionSet = replace(
        found,
        polytopes=replace(polytopes, facets=signed + np.sign(signed) * shift),
        cuts=np.concatenate([boxes.cuts, found.cuts[first:]]),
        **{key: getattr(found, key)[chosen] for key in ("cell", "pattern", "clip", "logits", "doubtful")},
    )
    pieces = classify(compound, regions, question.label)
    if not is_measured:
        return Answers(compound, regions, pieces, None, None, whole.tiling.answers.size)
    curves = measure(compound, regions, question.attention, whole.question.original, threads=1)
    errors = MapErrors(compound, regions.patterns, curves, question.attention)
    return Answers(compound, regions, pieces, curves, errors, whole.tiling.answers.size)


def blank(result: Result, **more: object) -> Result:
    """The same question with nothing known of any box."""
    start = Boxes.of(result.question.compound)
    return with_tiling(result, boxes=start, answers=None, box_of=np.zeros(0, int), **more)


def box_of_theta(result: Result, theta: ArrayLike) -> int | None:
    """The box of a refinement that contains theta (d,); None outside of the domain."""
    return box_at(result.question.compound, result.tiling.boxes, np.asarray(theta, dtype=np.float64))


def four() -> Result:
    """Four parameters: sixteen boxes, the label kept on all, the attention lost on the last."""
    specs = ["brightness:0..0.1", *(f"patch:x={x},y=2,w=2,h=2:0..0.1" for x in (2, 8, 20))]
    question = make_question("M-FNN-100", "mnist:69990", specs)
    boxes = halved(Boxes.of(question.compound), 4, 4)
    boxes.margin[:], boxes.inconsistency[:] = (1.0, 9.0), (0.0, 10.0)
    boxes.inconsistency[-1] = 2.0, 50.0
    tiling = RefineTiling(question, boxes, answers=None, box_of=np.zeros(0, int), until=0.001, goal="map")
    return settled(Result(question, tiling, question.threshold, question.agreement, CheckedMap(0.0, 0, 0)))
