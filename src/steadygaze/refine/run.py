"""refine(problem, …) -> RefineResult: decides boxes of the domain by bounds, splits the others, hands over the rest."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from ..attention.inconsistency import original_maps
from ..bounds.bounder import Bounder
from ..budget import Budget
from ..errors import OptionError
from ..problem import Problem
from ..results.answer import Answers
from .boxes import Boxes, State, joined
from .check import check_refined
from .decide import Question
from .estimate import MOST_REGIONS, estimate_regions
from .exact import ExactPart
from .falsify import WORK, falsify
from .frontier import Frontier, is_smallest, mixed_axes, split_axes
from .outcome import Goal, RefineResult, Until
from .plan import Plan, make_plan

RUN_OF_REGIONS = 20_000
"""Expected regions that are handed over at a time: some seconds on large networks."""


@dataclass(frozen=True)
class Advance:
    """How far a run is: the share decided, boxes bounded and still open, regions of boxes that were handed over."""

    share: float
    boxes: int
    open: int
    regions: int


Progress = Callable[[Advance], None]


def refine(
    problem: Problem,
    *,
    until: Until = 0.001,
    goal: Goal = "map",
    budget: Budget | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    resume: RefineResult | None = None,
) -> RefineResult:
    """Split the domain (1 to 4 parameters) into boxes and decide each by bounds, or by its regions where that is less.

    Ends when the share that is not decided is below `until` ("exact": nothing is left but what exact regions leave
    undecided), with `goal` "verdict" also as soon as a violation is proved, or with the budget. The result does not
    depend on the number of threads. `resume` goes on from an earlier result of the same question.
    """
    if until != "exact" and not (isinstance(until, int | float) and 0.0 <= until < 1.0):
        raise OptionError(f"until is {until!r}; expected a share such as 0.001, or exact")
    if goal not in ("map", "verdict"):
        raise OptionError(f"goal is {goal!r}; expected map or verdict")
    if until == "exact" and problem.perturbed.domain.dimension > 3:
        raise OptionError("until exact takes up to 3 parameters; give a share such as 0.001, or leave some out")
    workers = threads if threads is not None else os.cpu_count() or 1
    if workers < 1:
        raise OptionError(f"threads is {workers}; expected a whole number above 0")
    # Sums of a matrix product depend on the number of threads of BLAS; boxes are shared among threads instead.
    with threadpool_limits(limits=1):
        return _Run(problem, until, goal, budget or Budget(), workers, progress, resume).result()


class _Run:
    """One refinement, from the question to its result."""

    def __init__(
        self,
        problem: Problem,
        until: Until,
        goal: Goal,
        budget: Budget,
        threads: int,
        progress: Progress | None,
        resume: RefineResult | None,
    ) -> None:
        self.started = time.perf_counter()
        self.problem, self.until, self.goal, self.budget, self.progress = problem, until, goal, budget, progress
        self.threads, self.resume = threads, resume
        self.agreement = problem.agreement
        self.original = original_maps(problem.compound, problem.attention)
        self.size = float(sum(problem.attention.distance.size(part) for part in self.original))
        self.question = Question(problem.property, problem.delta.value(self.size), goal == "verdict")
        self.bounder = Bounder(problem.model.graph, problem.perturbed, problem.label, problem.attention)
        self.exact = ExactPart(problem, self.original, threads, measures=self.question.asks_attention)
        self.cuts = np.zeros((0, 3), dtype=np.int32)
        self.bounded: list[Boxes] = []
        self.handed: list[Boxes] = []
        self.pending: list[tuple[Boxes, np.ndarray]] = []
        self.stopped: str | None = None
        self.is_violated = False
        self.lost = np.zeros((0, problem.perturbed.domain.dimension))
        self.count = 0
        self.left = 1.0

    def result(self) -> RefineResult:
        """Find violations by trying, plan, decide what can be decided, check it."""
        start = self._start()
        points, plan = np.zeros((0, self.problem.perturbed.domain.dimension)), None
        if self.goal == "verdict":
            points = self._falsify()
        if not self._is_done():
            plan = make_plan(self.bounder, self.question, self._count_regions)
            # Where all regions are looked at in no time, trying finds nothing more.
            if self.goal == "map" and not plan.is_small:
                points = self._falsify(plan.trying)
        if plan is None:
            self.bounded.append(start)
        else:
            self._go(start, plan)
        boxes, answers, box_of = self._collected()
        solved = time.perf_counter()
        checked = check_refined(self.problem, boxes, answers, self.question.delta)
        done = time.perf_counter()
        return RefineResult(
            problem=self.problem,
            boxes=boxes,
            answers=answers,
            box_of=box_of,
            delta=self.problem.delta,
            original=self.original,
            agreement=self.agreement,
            checked=checked,
            until=self.until,
            goal=self.goal,
            stopped=self.stopped,
            seconds={"total": done - self.started, "engine": solved - self.started, "check": done - solved},
            points=points,
            relaxation="" if plan is None or plan.is_exact_at_once else "generators" if plan.room else "plain",
        )

    def _falsify(self, most: float = WORK) -> np.ndarray:
        """Thetas (N, d) that violate the property, found by trying, with at most so many multiplications."""
        found = falsify(
            self.problem, self.question.delta, wanted=self.problem.property, original=self.original,
            work=int(min(WORK, most)), budget=self.budget,
        )  # fmt: skip
        self.is_violated |= bool(len(found.points))
        self.lost = found.points
        return found.points

    def _start(self) -> Boxes:
        """The boxes to begin with: the knot cells, or what an earlier run left open."""
        if self.resume is None:
            start = Boxes.of(self.problem.compound)
            self.cuts = start.cuts
            return start
        known = self.resume.boxes
        self.cuts = known.cuts
        is_exact = known.state == State.EXACT
        # What the earlier run asked may have been less.
        is_open = ~is_exact & ~self.question.is_decided(known.margin, known.inconsistency)
        self.bounded.append(known.take(~is_exact & ~is_open))
        if self.resume.answers is not None and self.question.asks_attention and self.resume.answers.curves is None:
            raise OptionError(
                "the result to go on from did not measure attention; start anew, or ask for --property cr"
            )
        if self.resume.answers is not None:
            places = np.cumsum(is_exact) - 1
            self.exact.start_from(self.resume.answers, places[self.resume.box_of], int(is_exact.sum()))
        self.handed.append(known.take(is_exact))
        self.left = float(known.volumes[is_open].sum())
        self.is_violated |= bool(self.question.is_violated(known.margin, known.inconsistency).any())
        return replace(known.take(is_open), state=np.full(is_open.sum(), State.OPEN, dtype=np.uint8))

    def _go(self, start: Boxes, plan: Plan) -> None:
        if plan.is_exact_at_once:
            self._put_aside(start, plan)
        else:
            self._bound_all(start, plan)
        if self.pending and not self._is_done():
            self._hand_over()

    def _bound_all(self, start: Boxes, plan: Plan) -> None:
        """Bound and split, one generation of boxes after the other, until all are decided or put aside."""
        frontier = Frontier(self.bounder.with_room(plan.room), self.question, self.threads)
        generation = start
        try:
            while len(generation):
                generation = self._split_mixed(generation)
                halves: list[Boxes] = []
                blocks = list(frontier.blocks(generation))
                for number, block in enumerate(blocks):
                    if self._is_done():
                        halves += blocks[number:]
                        break
                    halves += self._look(frontier, block, plan)
                generation = self._joined(halves)
                if self._is_done():
                    self.bounded.append(generation)
                    return
        finally:
            frontier.close()

    def _put_aside(self, boxes: Boxes, plan: Plan) -> None:
        """Put all boxes aside, cut into parts that a limit may come between."""
        d, regions = self.problem.perturbed.domain.dimension, plan.regions or 1.0
        while (is_large := regions * boxes.volumes > RUN_OF_REGIONS).any():
            sides = (boxes.high - boxes.low)[is_large, :d]
            halves = replace(boxes.take(is_large), cuts=self.cuts).split(np.argmax(sides, axis=1))
            self.cuts = halves.cuts
            boxes = self._joined([boxes.take(~is_large), halves])
        self.pending.append((boxes, 1.0 + regions * boxes.volumes))

    def _split_mixed(self, boxes: Boxes) -> Boxes:
        """Halve boxes that are known to hold both kinds of thetas, until none is left: bounds cannot decide them."""
        compound = self.problem.compound
        d = compound.domain.dimension
        if not compound.domain.contains_zero or not len(self.lost):
            return boxes
        kept, lost = (compound.to_unit(thetas)[:, :d] for thetas in (np.zeros((1, d)), self.lost))
        while True:
            axes = mixed_axes(boxes, kept, lost)
            is_mixed = (axes >= 0) & ~is_smallest(boxes, d)
            if not is_mixed.any():
                return boxes
            halves = replace(boxes.take(is_mixed), cuts=self.cuts).split(axes[is_mixed])
            self.cuts = halves.cuts
            boxes = self._joined([boxes.take(~is_mixed), halves])

    def _look(self, frontier: Frontier, block: Boxes, plan: Plan) -> list[Boxes]:
        """Bound a block: keep what is decided, put aside what is to be handed over, return the halves of the rest."""
        seen = frontier.look(block)
        found, d = seen.boxes, self.problem.perturbed.domain.dimension
        is_open = found.state == State.OPEN
        self.count += len(found)
        self.left -= float(found.volumes[~is_open].sum())
        self.is_violated |= bool(self.question.is_violated(found.margin, found.inconsistency).any())
        regions = plan.expected_regions(seen.unstable, found.volumes)
        is_aside = is_open & ((regions <= plan.hand_over) | is_smallest(found, d))
        if plan.hand_over > 0.0:
            self.pending.append((found.take(is_aside), regions[is_aside]))
            self.bounded.append(found.take(~is_open))
        else:
            self.bounded.append(found.take(~is_open | is_aside))
        rest = is_open & ~is_aside
        split = replace(found.take(rest), cuts=self.cuts).split(split_axes(seen)[rest])
        self.cuts = split.cuts
        self._tell(int(rest.sum()))
        return [split]

    def _hand_over(self) -> None:
        """Subdivide what was put aside, most share of the domain for each expected region first."""
        boxes = self._joined([part for part, _ in self.pending])
        regions = np.concatenate([np.zeros(0), *(part for _, part in self.pending)])
        self.pending = []
        order = np.argsort(-boxes.volumes / regions, kind="stable")
        runs = np.floor(np.cumsum(regions[order]) / RUN_OF_REGIONS)
        ends = np.flatnonzero(np.diff(runs)) + 1
        for run in np.split(order, ends):
            if self._is_done():
                self.bounded.append(boxes.take(run))
                continue
            part = boxes.take(run)
            complete = self.exact.add(part, self.budget)
            self.handed.append(replace(part.take(complete), state=np.full(complete.sum(), State.EXACT, dtype=np.uint8)))
            self.bounded.append(part.take(~complete))
            self.left -= float(part.volumes[complete].sum())
            self._tell(len(boxes) - sum(len(done) for done in self.handed))

    def _is_done(self) -> bool:
        """Whether enough is decided, or a limit was reached."""
        if self.goal == "verdict" and self.is_violated:
            return True
        is_enough = self.left <= 0.0 if self.until == "exact" else self.left <= self.until
        if self.stopped is None and not is_enough:
            self.stopped = self.budget.exhausted()
        return is_enough or self.stopped is not None

    def _count_regions(self) -> float:
        """About how many regions the domain has; where they are too many to count, what is known to be exceeded."""
        return min(estimate_regions(self.problem.compound, budget=self.budget), 3.0 * MOST_REGIONS)

    def _joined(self, parts: list[Boxes]) -> Boxes:
        return joined(parts, self.cuts)

    def _collected(self) -> tuple[Boxes, Answers | None, np.ndarray]:
        """All boxes, those handed over last; the regions of these; and the box of each region."""
        rest = self._joined([*self.bounded, *(part for part, _ in self.pending)])
        boxes = self._joined([rest, *self.handed])
        answers = self.exact.answers(self.cuts, self.size)
        box_of = np.concatenate([np.zeros(0, dtype=np.int64), *self.exact.box])
        return boxes, answers, box_of + len(rest)

    def _tell(self, open_boxes: int) -> None:
        self.budget.regions = self.exact.regions
        if self.progress is not None:
            self.progress(Advance(1.0 - self.left, self.count, open_boxes, self.exact.regions))
