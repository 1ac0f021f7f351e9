"""refine(problem, …) -> RefineResult: decides boxes of the domain by bounds, splits the others, hands over the rest."""

import os
import time
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from ..attention.inconsistency import original_maps
from ..bounds.bounder import Bounder
from ..budget import Budget
from ..errors import OptionError
from ..problem import Problem
from ..results.answer import Answers, verdict_from
from ..verdict import Verdict
from .boxes import Boxes, State, joined, split_rows
from .check import check_refined
from .decide import Question
from .estimate import MOST_REGIONS, estimate_regions
from .exact import ExactPart
from .falsify import WORK, falsify
from .frontier import Frontier, is_smallest, mixed_axes, split_axes
from .outcome import Goal, RefineResult, Until
from .plan import Costs, Plan, make_plan
from .prove import proved_violations
from .tally import Progress, Tally

RUN_OF_REGIONS, RUN_OF_BYTES = 20_000, 2.0**24
"""Expected regions that are handed over at a time, and what their patterns may take: some seconds on large networks."""

FINDS_ANYWAY = 0.25
"""The share of the usual work for finding violations where everything is decided in the end."""


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
        self.problem, self.until, self.goal, self.budget = problem, until, goal, budget
        self.threads, self.resume = threads, resume
        self.agreement = problem.agreement
        self.original = original_maps(problem.compound, problem.attention)
        self.size = float(sum(problem.attention.distance.size(part) for part in self.original))
        self.question = Question(problem.property, problem.delta.value(self.size), goal == "verdict")
        self.bounder = Bounder(problem.model.graph, problem.perturbed, problem.label, problem.attention)
        if until == "exact" and not Costs.of(self.bounder, self.question, 1.0).has_regions:
            raise OptionError(
                "until exact takes up to 3 parameters and networks of moderate size; give a share such as 0.001"
            )
        self.exact = ExactPart(problem, self.original, threads, measures=self.question.asks_attention)
        self.tally = Tally(budget, 0.0 if until == "exact" else float(until), goal == "verdict", progress)
        self.cuts = [np.zeros((0, 3), dtype=np.int32)]
        self.cut_count = 0
        self.run_of_regions = min(RUN_OF_REGIONS, RUN_OF_BYTES * 8.0 / max(1, self.bounder.neurons))
        self.rest: list[Boxes] = []
        self.handed: list[Boxes] = []
        self.pending: list[tuple[Boxes, np.ndarray]] = []
        self.points = np.zeros((0, problem.perturbed.domain.dimension))

    def result(self) -> RefineResult:
        """Find violations by trying, plan, decide what can be decided, check it."""
        start, plan = self._start(), None
        self.tally.start(start)
        if self.goal == "verdict":
            self._falsify(WORK)
        if not self.tally.is_done():
            plan = make_plan(self.bounder, self.question, self._count_regions)
            # Where all regions are looked at in no time, trying finds nothing more.
            if self.goal == "map" and not plan.is_small:
                self._falsify(plan.trying * (FINDS_ANYWAY if self.until == "exact" else 1.0))
        if plan is None:
            self.rest.append(start)
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
            stopped=self.tally.stopped,
            seconds={"total": done - self.started, "engine": solved - self.started, "check": done - solved},
            points=self.points,
            relaxation="" if plan is None or plan.is_exact_at_once else "generators" if plan.room else "plain",
        )

    def _start(self) -> Boxes:
        """The boxes to begin with: the knot cells, or what an earlier run left open."""
        if self.resume is None:
            start = Boxes.of(self.problem.compound)
            self._begin(start.cuts)
            return start
        known, answers = self.resume.boxes, self.resume.answers
        if answers is not None and self.question.asks_attention and answers.curves is None:
            raise OptionError(
                "the result to go on from did not measure attention; start anew, or ask for --property cr"
            )
        self._begin(known.cuts)
        is_exact = known.state == State.EXACT
        # What the earlier run asked may have been less.
        is_open = ~is_exact & ~self.question.is_decided(known.margin, known.inconsistency)
        self.rest.append(known.take(~is_exact & ~is_open))
        self.handed.append(known.take(is_exact))
        if answers is not None:
            places = np.cumsum(is_exact) - 1
            self.exact.start_from(answers, places[self.resume.box_of], int(is_exact.sum()))
            self.tally.is_violated |= self._violates(answers)
        self.tally.is_violated |= bool(self.question.is_violated(known.margin, known.inconsistency).any())
        self._keep_points(self.resume.points)
        return replace(known.take(is_open), state=np.full(is_open.sum(), State.OPEN, dtype=np.uint8))

    def _falsify(self, most: float) -> None:
        """Look for thetas that violate the property, with at most so many multiplications."""
        found = falsify(
            self.problem, self.question.delta, wanted=self.problem.property, original=self.original,
            work=int(min(WORK, most)), budget=self.budget,
        )  # fmt: skip
        self._keep_points(found.points)

    def _keep_points(self, thetas: np.ndarray) -> None:
        """Keep those of some thetas (N, d) that bounds prove to violate the property."""
        is_proved = proved_violations(self.problem, self.bounder, self.question, thetas)
        self.points = np.unique(np.concatenate([self.points, thetas[is_proved]]), axis=0)
        self.tally.is_violated |= bool(is_proved.any())

    def _go(self, start: Boxes, plan: Plan) -> None:
        if plan.is_exact_at_once:
            self._put_aside(start, plan)
        else:
            self._bound_all(start, plan)
        if self.pending and not self.tally.is_done():
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
                    if self.tally.is_done():
                        halves += blocks[number:]
                        break
                    halves.append(self._look(frontier, block, plan))
                generation = self._joined(halves)
                if self.tally.is_done():
                    self.rest.append(generation)
                    return
        finally:
            frontier.close()

    def _look(self, frontier: Frontier, block: Boxes, plan: Plan) -> Boxes:
        """Bound a block: keep what is decided, put aside what is to be handed over, return the halves of the rest."""
        seen = frontier.look(block)
        found, d = seen.boxes, self.problem.perturbed.domain.dimension
        is_open = found.state == State.OPEN
        self.tally.bounded += len(found)
        self.tally.decide(found.volumes[~is_open])
        self.tally.is_violated |= bool(self.question.is_violated(found.margin, found.inconsistency).any())
        regions = plan.expected_regions(seen.unstable, found.volumes)
        is_aside = is_open & ((regions <= plan.hand_over) | is_smallest(found, d))
        if plan.hand_over > 0.0:
            self.pending.append((found.take(is_aside), regions[is_aside]))
            self.rest.append(found.take(~is_open))
        else:
            self.rest.append(found.take(~is_open | is_aside))
        is_left = is_open & ~is_aside
        halves = self._split(found.take(is_left), split_axes(seen)[is_left])
        self.tally.tell()
        return halves

    def _put_aside(self, boxes: Boxes, plan: Plan) -> None:
        """Put all boxes aside, cut into parts that a limit may come between."""
        d, regions = self.problem.perturbed.domain.dimension, plan.regions or 1.0
        while (is_large := regions * boxes.volumes > self.run_of_regions).any():
            sides = (boxes.high - boxes.low)[is_large, :d]
            halves = self._split(boxes.take(is_large), np.argmax(sides, axis=1))
            boxes = self._joined([boxes.take(~is_large), halves])
        self.pending.append((boxes, 1.0 + regions * boxes.volumes))

    def _split_mixed(self, boxes: Boxes) -> Boxes:
        """Halve boxes that are known to hold both kinds of thetas, until none is left: bounds cannot decide them."""
        compound = self.problem.compound
        d = compound.domain.dimension
        if not compound.domain.contains_zero or not len(self.points):
            return boxes
        kept, lost = (compound.to_unit(thetas)[:, :d] for thetas in (np.zeros((1, d)), self.points))
        while True:
            axes = mixed_axes(boxes, kept, lost)
            is_mixed = (axes >= 0) & ~is_smallest(boxes, d)
            if not is_mixed.any():
                return boxes
            halves = self._split(boxes.take(is_mixed), axes[is_mixed])
            boxes = self._joined([boxes.take(~is_mixed), halves])

    def _hand_over(self) -> None:
        """Subdivide what was put aside, most share of the domain for each expected region first."""
        boxes = replace(self._joined([part for part, _ in self.pending]), cuts=self._table())
        regions = np.concatenate([part for _, part in self.pending])
        self.pending = []
        order = np.argsort(-boxes.volumes / regions, kind="stable")
        if self.tally.until > 0.0:
            # No more than it takes; a little more than that, because sums are rounded.
            needed = self.tally.left - self.tally.until + 1e-12
            last = int(np.searchsorted(np.cumsum(boxes.volumes[order]), needed)) + 1
            self.rest.append(boxes.take(order[last:]))
            order = order[:last]
        runs = np.floor(np.cumsum(regions[order]) / self.run_of_regions)
        for run in np.split(order, np.flatnonzero(np.diff(runs)) + 1):
            part = boxes.take(run)
            if self.tally.is_done():
                self.rest.append(part)
                continue
            complete = self.exact.add(part, self.budget)
            state = np.full(int(complete.sum()), State.EXACT, dtype=np.uint8)
            self.handed.append(replace(part.take(complete), state=state))
            self.rest.append(part.take(~complete))
            self.tally.decide(part.volumes[complete])
            self.tally.regions = self.exact.regions
            if self.goal == "verdict" and complete.any():
                self.tally.is_violated |= self._violates(self.exact.last_answers(self.size))
            self.tally.tell()

    def _violates(self, answers: Answers) -> bool:
        """Whether exact regions prove a violation."""
        shares = answers.at(self.question.delta).shares
        return verdict_from(shares, self.problem.property) is Verdict.NOT_ROBUST

    def _count_regions(self) -> float:
        """About how many regions the domain has; where they are too many to count, what is known to be exceeded."""
        return min(estimate_regions(self.problem.compound, budget=self.budget), 3.0 * MOST_REGIONS)

    def _begin(self, cuts: np.ndarray) -> None:
        self.cuts, self.cut_count = [cuts], len(cuts)

    def _split(self, boxes: Boxes, axes: np.ndarray) -> Boxes:
        halves = boxes.halves(axes, self.cut_count)
        self.cuts.append(split_rows(axes))
        self.cut_count += len(axes)
        self.tally.split(len(boxes))
        return halves

    def _joined(self, parts: list[Boxes]) -> Boxes:
        """Boxes one after another; their table of cuts is only brought up to date where it is needed."""
        return joined(parts, self.cuts[0])

    def _table(self) -> np.ndarray:
        """All cuts so far."""
        self.cuts = [np.concatenate(self.cuts)]
        return self.cuts[0]

    def _collected(self) -> tuple[Boxes, Answers | None, np.ndarray]:
        """All boxes, those handed over last; the regions of these; and the box of each region."""
        rest = self._joined([*self.rest, *(part for part, _ in self.pending)])
        boxes = replace(self._joined([rest, *self.handed]), cuts=self._table())
        answers = self.exact.answers(boxes.cuts, self.size)
        box_of = np.concatenate([np.zeros(0, dtype=np.int64), *self.exact.box])
        return boxes, answers, box_of + len(rest)
