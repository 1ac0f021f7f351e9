"""The refinement engine: bounds decide boxes of the domain; undecided boxes are split or subdivided exactly."""

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...bounds.bounder import Bounder
from ...budget import WALKING, Budget
from ...errors import OptionError, StoreError
from ...labels import Stop, Verdict
from ...question import Question
from ...results.answer import Answers
from ...results.delta_answer import verdict_from
from ...results.result import Result
from ...results.store import PIXELS, read_checked, read_pixels, refusing_damage
from ...tolerances import MAX_MAP_PARAMETERS
from ..contract import UNTIL, Engine, Goal, Progress, ProgressReport, RunOptions, Until
from .boxes import (
    BoundedBoxes,
    Boxes,
    BoxQuestion,
    ExactBoxes,
    Frontier,
    State,
    mixed_axes,
    proved_violations,
    split_rows,
)
from .falsify import WORK, falsify
from .parted_boxes import Parted, part_block
from .planning import Costs, RefinePlan, make_plan
from .refine_tiling import RefineTiling, restore_tiling
from .self_check import check_refined

RUN_OF_REGIONS, RUN_OF_BYTES = 20_000, 2.0**24  # expected regions per exact run, and memory of their patterns
EXACT_MEMORY = 0.6  # the share of the memory limit after which no more boxes are subdivided
QUICK_PASSES, QUICK_BOXES = 60, 128  # passes of the first search for a verdict; boxes bounded before a thorough search
EXACT_SEARCH_SHARE = 0.25  # the share of the usual work for the search for violations if `until` is "exact"


class RefineEngine(Engine):
    """Splits the domain into boxes and decides each by bounds, or by its regions if that is cheaper.

    Ends when the undecided share is at most `until` ("exact": every box is decided by bounds or subdivided), at the
    first proved violation if `goal` is "verdict", or with the budget. The number of threads does not change the result.
    """

    method = "refine"
    sentence = (
        "A refinement: bounds on the network decide boxes of the domain; where bounds do not suffice, the regions of a "
        "box decide."
    )
    takes = frozenset(("until", "goal", "resume", "threads"))

    def run(
        self, question: Question, budget: Budget, options: RunOptions, progress: ProgressReport | None = None
    ) -> Result:
        """Refine the domain; `resume` continues an earlier result of the same question."""
        earlier = None if options.resume is None else _earlier(options.resume, question)
        until = UNTIL if options.until is None else options.until
        threads = options.threads or os.cpu_count() or 1
        return _Refinement(question, until, options.goal or "map", budget, threads, progress).result(earlier)

    def restore(self, content: dict[str, Any], folder: Path, question: Question) -> RefineTiling:
        return restore_tiling(content, folder, question)


def _earlier(given: str | Path | Result, question: Question) -> RefineTiling:
    """The refinement to continue, loaded if it is stored; OptionError if it answers another question."""
    if isinstance(given, Result):
        if not isinstance(given.tiling, RefineTiling) or given.question is not question:
            raise OptionError(
                "resume got the result of another method or another question; give a refinement of the same question, "
                "or its directory"
            )
        return given.tiling
    folder = Path(given)
    content = read_checked(folder)
    if content.get("method") != RefineEngine.method:
        raise StoreError(
            f"{folder}: holds a result of method {content.get('method', 'map')}, which cannot be resumed; give the "
            "directory of a refinement"
        )
    with refusing_damage(folder):
        different = question.differences(content, read_pixels(folder / PIXELS))
        earlier = None if different else restore_tiling(content, folder, question)
    if earlier is None:
        raise OptionError(
            f"--resume {folder}: it answers another question (different: {', '.join(different)}); ask the same "
            "question, or leave --resume out"
        )
    return earlier


class _Refinement:
    """One refinement.

    left: the open share of the domain; in_boxes: the part of it in open boxes; open: the number of open boxes; bounded:
    the number of boxes bounded so far.
    """

    def __init__(
        self, problem: Question, until: Until, goal: Goal, budget: Budget, threads: int, progress: ProgressReport | None
    ) -> None:
        self.problem, self.until, self.goal, self.budget = problem, until, goal, budget
        self.threads, self.progress = threads, progress
        self.dimension = problem.perturbed.domain.dimension
        self.original, self.size = problem.original, problem.map_size
        self.question = BoxQuestion(problem.property, problem.own_limit, goal == "verdict")
        self.bounder = Bounder(problem.graph, problem.perturbed, problem.label, problem.attention)
        if until == "exact" and problem.perturbed.is_curved:
            raise OptionError(
                f"until exact needs an image that is piecewise affine in theta; {problem.perturbed.why_curved}; give a "
                "share such as --until 0.001"
            )
        if until == "exact" and Costs.of(self.bounder, self.question, 1.0).region == float("inf"):
            raise OptionError(
                f"until exact takes up to {MAX_MAP_PARAMETERS} parameters, networks of moderate size, and "
                "attention with straight borders on regions; give a share such as --until 0.001"
            )
        self.exact = ExactBoxes(problem, self.original, threads, measures=self.question.asks_attention, budget=budget)
        self.enough = 0.0 if until == "exact" else float(until)
        self.left, self.in_boxes, self.open, self.bounded, self.regions = 1.0, 1.0, 0, 0, 0
        self.is_violated = False
        self.stopped: Stop | None = None
        self.cuts: list[np.ndarray] = []
        self.run_of_regions = min(RUN_OF_REGIONS, RUN_OF_BYTES * 8.0 / max(1, self.bounder.neurons))
        self.rest: list[Boxes] = []
        self.parted: list[tuple[Boxes, Parted]] = []
        self.strips = 0.0  # the share of the domain along the planes of parted boxes: it stays open
        self.subdivided: list[Boxes] = []
        self.pending: list[tuple[Boxes, np.ndarray]] = []
        self.points = np.zeros((0, self.dimension))
        self.has_searched = False

    def result(self, resume: RefineTiling | None) -> Result:
        """Search for violations, plan, decide boxes, check the result."""
        start, plan = Boxes.of(self.problem.compound) if resume is None else resume.boxes, None
        self.cuts, self.cut_count = [start.cuts], len(start.cuts)
        if resume is not None:
            start = self._resumed(resume)
        self.in_boxes, self.open = float(start.volumes.sum()), len(start)
        self.left = self.in_boxes
        clock = self.budget.clock
        if self.goal == "verdict":
            self._falsify(QUICK_PASSES * sum(step.work for steps in self.bounder.segments for step in steps))
        if self._is_done():
            self.rest.append(start)
        else:
            with clock.phase("plan"):
                plan = make_plan(self.bounder, self.question, self.problem.compound, self.budget)
            if self.goal == "map" and plan.search_work > 0.0:
                self._falsify(plan.search_work * (EXACT_SEARCH_SHARE if self.until == "exact" else 1.0))
            with clock.phase("bounds"):
                if plan.is_all_exact:
                    self._set_aside(start, plan)
                else:
                    self._bound_all(start, plan)
            if self.pending and not self._is_done():
                self._search_thoroughly()
                with clock.phase("walk"):
                    self._subdivide()
        with clock.phase("labels"):
            boxes, answers, box_of = self._collected()
            parted = Parted.join([Parted.none(self.dimension), *(planes for _, planes in self.parted)])
        with clock.phase("self-check"):
            checked = check_refined(self.problem, boxes, answers, self.question.delta, self.budget, parted)
        tiling = RefineTiling(
            question=self.problem, boxes=boxes, answers=answers, box_of=box_of, until=self.until, goal=self.goal,
            stopped=self.stopped, points=self.points, parted=parted,
            relaxation="" if plan is None or plan.is_all_exact else "generators" if plan.room else "plain",
        )  # fmt: skip
        return Result.of_run(self.problem, tiling, self.budget, checked)

    def _resumed(self, earlier: RefineTiling) -> Boxes:
        """Keep the decided boxes of an earlier run; return those that it left open."""
        known, answers = earlier.boxes, earlier.answers
        if answers is not None and self.question.asks_attention and answers.curves is None:
            raise OptionError("the earlier result did not measure attention; start again, or ask for --property cr")
        is_exact = known.state == State.EXACT
        # The earlier run may have asked a weaker question.
        is_open = ~is_exact & ~self.question.is_decided(known.margin, known.inconsistency)
        self.rest.append(known.take(~is_exact & ~is_open))
        self.subdivided.append(known.take(is_exact))
        if answers is not None:
            places = np.cumsum(is_exact) - 1
            self.exact.start_from(answers, places[earlier.box_of], int(is_exact.sum()))
            self.is_violated |= self._violates(answers)
        self.is_violated |= bool(self.question.is_violated(known.margin, known.inconsistency).any())
        self._keep_violations(earlier.points)
        return replace(known.take(is_open), state=np.full(is_open.sum(), State.OPEN, dtype=np.uint8))

    def _is_done(self) -> bool:
        """Whether enough is decided or a limit is reached; only this ends a run."""
        is_enough = self.open == 0 or (self.enough > 0.0 and self.left <= self.enough)
        if is_enough or (self.goal == "verdict" and self.is_violated):
            return True
        if self.stopped is None:
            # Joining and labelling the exact regions will take more memory.
            self.stopped = self.budget.exhausted(WALKING, memory_share=EXACT_MEMORY if self.regions else 1.0)
        return self.stopped is not None

    def _count_decided(self, volumes: np.ndarray) -> None:
        """Count boxes with these volumes (B,) as decided."""
        self.open -= len(volumes)
        # Without open boxes, only strips are open, whatever the rounding of the sum.
        self.in_boxes -= float(volumes.sum())
        self.left = self.strips + (max(self.in_boxes, 0.0) if self.open else 0.0)

    def _report(self) -> None:
        self.budget.regions = self.regions
        if self.progress is not None:
            self.progress(Progress(1.0 - self.left, self.regions, self.bounded, self.open))

    def _falsify(self, most: float) -> None:
        """Search for thetas that violate the property, with at most `most` multiplications."""
        with self.budget.clock.phase("falsify"):
            found = falsify(
                self.problem, self.question.delta, wanted=self.problem.property, original=self.original,
                work=int(min(WORK, most)), budget=self.budget,
            )  # fmt: skip
            self._keep_violations(found.thetas)

    def _search_thoroughly(self) -> None:
        """Search once more for a violation that would decide the verdict, after bounds had a chance to exclude it."""
        if self.goal == "verdict" and not self.has_searched:
            self.has_searched = True
            self._falsify(WORK)

    def _keep_violations(self, thetas: np.ndarray) -> None:
        """Keep thetas (N, d) that violate the property in a plain pass; the verdict needs one that bounds prove."""
        is_proved = proved_violations(self.problem, self.bounder, self.question, thetas, self.budget)
        self.points = np.unique(np.concatenate([self.points, thetas]), axis=0)
        self.is_violated |= bool(is_proved.any())

    def _bound_all(self, start: Boxes, plan: RefinePlan) -> None:
        """Bound and split boxes, generation by generation, until all are decided or set aside."""
        generation = self._split_large(start, plan.largest_box)
        with closing(Frontier(self.bounder.with_room(plan.room), self.question, self.threads, self.budget)) as frontier:
            while len(generation):
                if self.bounded >= QUICK_BOXES:
                    self._search_thoroughly()
                blocks = list(frontier.blocks(self._split_mixed(generation)))
                halves = [block if self._is_done() else self._bound(frontier, block, plan) for block in blocks]
                generation = self._joined(halves)
                if self._is_done():
                    self.rest.append(generation)
                    return

    def _bound(self, frontier: Frontier, block: Boxes, plan: RefinePlan) -> Boxes:
        """Bound a block: keep decided boxes, set aside those to subdivide, return the halves of the rest."""
        bounded = frontier.bound(block)
        if self.dimension > MAX_MAP_PARAMETERS:
            bounded = self._part(frontier, bounded)
        found = bounded.boxes
        is_open = found.state == State.OPEN
        self.bounded += len(found)
        self._count_decided(found.volumes[~is_open])
        self.is_violated |= bool(self.question.is_violated(found.margin, found.inconsistency).any())
        regions = plan.expected_regions(bounded.unstable, found.volumes)
        is_aside = is_open & ((regions <= plan.max_exact_regions) | bounded.is_smallest)
        if plan.max_exact_regions > 0.0:
            self.pending.append((found.take(is_aside), regions[is_aside]))
            self.rest.append(found.take(found.state == State.BOUNDED))
        else:
            self.rest.append(found.take((found.state == State.BOUNDED) | is_aside))
        is_left = is_open & ~is_aside
        halves = self._split(found.take(is_left), bounded.split_axes[is_left])
        self._report()
        return halves

    def _part(self, frontier: Frontier, bounded: BoundedBoxes) -> BoundedBoxes:
        """Part open boxes by planes, since many parameters exclude exact regions. Strips use up to half of `until`."""
        bounded, planes = part_block(frontier, bounded, 0.5 * self.enough)
        boxes = bounded.boxes.take(bounded.boxes.state == State.PARTED)
        if len(planes):
            self.parted.append((boxes, planes))
            self.strips += float((planes.strips * boxes.volumes).sum())
            sides = planes.margin.reshape(-1, 2), planes.inconsistency.reshape(-1, 2)
            self.is_violated |= bool(self.question.is_violated(*sides).any())
        return bounded

    def _set_aside(self, boxes: Boxes, plan: RefinePlan) -> None:
        """Set all boxes aside, in parts small enough to check the limits in between."""
        regions = plan.regions or 1.0
        boxes = self._split_large(boxes, self.run_of_regions / regions)
        self.pending.append((boxes, 1.0 + regions * boxes.volumes))

    def _split_large(self, boxes: Boxes, largest: float) -> Boxes:
        """Halve boxes along their longest side until none has more than the share `largest` of the domain."""
        while (is_large := boxes.volumes > largest).any():
            sides = (boxes.high - boxes.low)[is_large, : self.dimension]
            halves = self._split(boxes.take(is_large), np.argmax(sides, axis=1))
            boxes = self._joined([boxes.take(~is_large), halves])
        return boxes

    @property
    def _keeps_zero(self) -> bool:
        """Whether the unperturbed image has the property, up to rounding: it has its label, but attention may fail."""
        return not self.question.asks_attention or self.problem.own_loss <= self.question.delta

    def _split_mixed(self, boxes: Boxes) -> Boxes:
        """Halve boxes until none contains both zero and a violation: bounds could not decide such a box."""
        domain, d = self.problem.perturbed.domain, self.dimension
        if not domain.contains_zero or not len(self.points) or not self._keeps_zero:
            return boxes
        kept, lost = domain.zero_in_t[None], domain.to_unit(self.points)
        while True:
            axes = mixed_axes(boxes, kept, lost)
            is_mixed = (axes >= 0) & ~boxes.is_smallest(d)
            if not is_mixed.any():
                return boxes
            halves = self._split(boxes.take(is_mixed), axes[is_mixed])
            boxes = self._joined([boxes.take(~is_mixed), halves])

    def _subdivide(self) -> None:
        """Subdivide the boxes set aside, those with the largest share of the domain per expected region first."""
        boxes = replace(self._joined([part for part, _ in self.pending]), cuts=self._table())
        regions = np.concatenate([part for _, part in self.pending])
        self.pending = []
        order = np.argsort(-boxes.volumes / regions, kind="stable")
        if self.enough > 0.0:
            # Only as many as needed; the small excess covers the rounding of the sums.
            needed = self.left - self.enough + 1e-12
            last = int(np.searchsorted(np.cumsum(boxes.volumes[order]), needed)) + 1
            self.rest.append(boxes.take(order[last:]))
            order = order[:last]
        runs = np.floor(np.cumsum(regions[order]) / self.run_of_regions)
        for run in np.split(order, np.flatnonzero(np.diff(runs)) + 1):
            part = boxes.take(run)
            if self._is_done():
                self.rest.append(part)
                continue
            complete = self.exact.add(part, self.budget)
            state = np.full(int(complete.sum()), State.EXACT, dtype=np.uint8)
            self.subdivided.append(replace(part.take(complete), state=state))
            self.rest.append(part.take(~complete))
            self._count_decided(part.volumes[complete])
            self.regions = self.exact.regions
            if self.goal == "verdict" and complete.any():
                self.is_violated |= self._violates(self.exact.last_answers(self.size))
            self._report()

    def _violates(self, answers: Answers) -> bool:
        shares = answers.at(self.question.delta).shares
        return verdict_from(shares, self.problem.property) is Verdict.NOT_ROBUST

    def _split(self, boxes: Boxes, axes: np.ndarray) -> Boxes:
        halves = boxes.halves(axes, self.cut_count)
        self.cuts.append(split_rows(axes))
        self.cut_count += len(axes)
        self.open += len(boxes)
        return halves

    def _joined(self, parts: list[Boxes]) -> Boxes:
        """Concatenate boxes; their table of cuts may lag behind `_table`."""
        return Boxes.join(parts, self.cuts[0])

    def _table(self) -> np.ndarray:
        self.cuts = [np.concatenate(self.cuts)]
        return self.cuts[0]

    def _collected(self) -> tuple[Boxes, Answers | None, np.ndarray]:
        """All boxes, the subdivided ones last; the answers of their regions; and the box of each region."""
        parted = [part for part, _ in self.parted]
        rest = self._joined([*self.rest, *(part for part, _ in self.pending), *parted])
        boxes = replace(self._joined([rest, *self.subdivided]), cuts=self._table())
        answers = self.exact.answers(boxes.cuts, self.size)
        box_of = np.concatenate([np.zeros(0, dtype=np.int64), *self.exact.box])
        return boxes, answers, box_of + len(rest)
