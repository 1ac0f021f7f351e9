"""Plans how to answer a question: by a map or a refinement, and with which bounds and exact regions.

Plans depend on counts (multiplications, neurons of unknown sign, regions of a few small boxes), never on seconds, so
they are the same on every machine. The counts are estimates: no proof depends on them.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...bounds.bounder import Bounder
from ...budget import WALKING, Budget, Limits, is_over
from ...compound import Compound
from ...network.steps import ConvStep
from ...perturbation import Perturbed
from ...polytopes import Polytopes
from ...regions.assemble import CutTable
from ...regions.subdivide import subdivide_boxes
from ...tolerances import MAX_MAP_PARAMETERS, TOUCH
from ..contract import MOST_REGIONS
from .boxes import BoxQuestion

SIDES = {2: 1.0 / 32.0, 3: 1.0 / 12.0}  # sides of the boxes whose regions are counted, by the number of parameters
PLACES = 12  # the number of these boxes
# Steps between these boxes along each axis, modulo 1: powers of 1 / 1.3247… (the plastic number) spread evenly.
STEPS = np.array([0.754877666246693, 0.569840290998053, 0.430159709001947])
# The last estimate for each compound network and its `most`: the choice of a method and its plan share one count.
_ESTIMATES: WeakKeyDictionary[Compound, tuple[int, float]] = WeakKeyDictionary()

# Costs in multiplications: an overhead, and a share of one product with all weights.
BOX_WORK = 8e5  # for bounding a box (measured on small networks)
REGION_WORK, REGION_SHARE = 1.5e5, 0.2  # for walking one region
MAP_WORK, MAP_SHARE, LOCAL_MAP_SHARE = 1.0e5, 2.0, 0.15  # for the maps of a region; the last if flips are local
LARGEST_WORK = 5e7  # the regions of networks with more multiplications are never walked one by one
SMALL_WORK = 1.5e9  # up to this, subdivide the whole domain at once: probing the bounds would cost more
# The whole domain is subdivided if its expected regions fit into this memory; large networks use up to five times it.
MOST_BYTES = 2.0**28

CROSSINGS = 0.06  # the share of pairs of neurons of unknown sign whose lines cross in a small box (bundled networks)
CROWDING = 8.0  # a box is assumed to have at most this many times the average number of regions for its size
PROBE_SHARE = 0.04  # the share of the work for subdividing the whole domain that probing the bounds may take
PROBE_LEVELS = (2, 4, 6)  # probe boxes have sides of 2 to the power of minus these
PLANNING = 0.5  # the share of the time limit after which the choice of a method and the plan end
LEAST_PLANNING = 1.0  # seconds that the choice may always take: it rarely takes a tenth of that
PROBE_ROOM = 64  # generators that every layer may add to keep correlations
DEEP_ROOM = 32  # generators that every layer may add in deep networks that cannot be walked
MOST_BOXES = 4096  # the most boxes into which a deep network's domain is cut before any are bounded


class Choice(NamedTuple):
    """The method that fits a question, and the reason in one readable sentence."""

    method: str
    reason: str


def choose_method(compound: Compound, *, most: int = MOST_REGIONS, budget: Budget | None = None) -> Choice:
    """Choose map or refine: the map if at most `most` regions are expected.

    The choice does not depend on the machine, unless half of the time limit is not enough for the estimate.
    """
    d = compound.domain.dimension
    why_no_map = _why_no_map(compound)
    if why_no_map is not None:
        return Choice("refine", why_no_map)
    if d == 1:
        return Choice("map", "a single parameter has few regions")
    user = budget or Budget()
    limit = user.limits.timeout_seconds
    half = Limits(None if limit is None else max(LEAST_PLANNING, PLANNING * limit - user.seconds()))
    patient = Budget(half, cancelled=user.cancelled)
    regions = estimate_regions(compound, most=most, budget=patient)
    if user.cancelled.is_set():
        return Choice("map", "the run was stopped before its size was known")
    if regions <= most:
        return Choice("map", f"{_rounded(regions)} regions expected")
    late = "half of the time limit was not enough to estimate the number of regions"
    return Choice("refine", f"more than {most:,} regions expected in a map" if patient.exhausted() is None else late)


def _why_no_map(compound: Compound) -> str | None:
    """Why no map is possible, whatever its size; None if one may be possible."""
    d = compound.domain.dimension
    if compound.perturbed.is_curved:
        return "the image is curved in theta, and only a refinement encloses it"
    if d > MAX_MAP_PARAMETERS:
        return f"the map takes up to {MAX_MAP_PARAMETERS} parameters, and this question has {d}"
    if sum(step.work for segment in compound.graph.steps for step in segment) > LARGEST_WORK:
        return f"the network is too large for a map ({compound.graph.neurons:,} neurons)"
    return None


def estimate_regions(compound: Compound, *, most: int = MOST_REGIONS, budget: Budget | None = None) -> float:
    """Estimate the number of regions of the domain (up to 3 parameters) from those of a few small boxes.

    Infinite if it clearly exceeds `most`, or if the budget ends first. With a single parameter hardly any neuron
    changes its bit twice, so the number of neurons that are not carried is an upper bound in practice.
    """
    if compound.domain.dimension == 1:
        carried = sum(int(layer.carried.sum()) for layer in compound.graph.layers)
        return float(sum(compound.hidden) - carried + 1)
    known = _ESTIMATES.get(compound)
    if known is not None and known[0] == most:
        return known[1]
    cell, low, high = _sample_boxes(compound)
    share = float(np.prod(high - low, axis=1).sum())
    user = budget or Budget()
    # Boxes with this many regions show that the map has far more than `most`.
    limits = replace(user.limits, max_regions=max(1, int(3.0 * most * share)) + PLACES)
    own = Budget(limits, started=user.started, cancelled=user.cancelled)
    sides, cuts = np.ones((*low.shape, 2), dtype=np.int64), CutTable(compound.corners).cuts()
    found = subdivide_boxes(compound, cell, low, high, sides, cuts, budget=own, share=WALKING)
    regions = float("inf")
    if found.complete.all():
        regions = _count_whole(found.regions.polytopes, found.box, low, high) / share
    if user.exhausted(WALKING) is None:
        _ESTIMATES[compound] = most, regions
    return regions


def _sample_boxes(compound: Compound) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Small boxes spread over the domain: their knot cells (N,), low and high (N, D) in t."""
    d = compound.domain.dimension
    places = (0.5 + np.arange(1, PLACES + 1)[:, None] * STEPS[:d]) % 1.0
    cells = [compound.perturbed.cell_of(theta).index for theta in compound.to_theta(places)]
    first, last = (np.array([compound.corners[cell][end] for cell in cells]) for end in (0, 1))
    low = np.clip(places - 0.5 * SIDES[d], first, np.maximum(first, last - SIDES[d]))
    return np.array(cells), low, np.minimum(low + SIDES[d], last)


def _count_whole(polytopes: Polytopes, box: np.ndarray, low: np.ndarray, high: np.ndarray) -> int:
    """How many regions have their lowest vertex inside their box, off its border: this counts each region once."""
    if not len(polytopes):
        return 0
    order = np.lexsort((polytopes.points @ STEPS[: low.shape[1]], polytopes.owner))
    lowest = polytopes.points[order[polytopes.starts[:-1]]]
    return int(((lowest > low[box] + TOUCH) & (lowest < high[box] - TOUCH)).all(axis=1).sum())


def _rounded(count: float) -> str:
    """A number of regions as a readable estimate: one digit, and "fewer than 1,000" for small numbers.

    >>> _rounded(12345.6), _rounded(0.0)
    ('about 10,000', 'fewer than 1,000')
    """
    return f"about {float(f'{count:.0e}'):,.0f}" if count >= 500.0 else "fewer than 1,000"


@dataclass(frozen=True)
class RefinePlan:
    """How to refine a domain of `dimension` parameters."""

    dimension: int
    room: int  # generators that every layer may add
    max_exact_regions: float  # subdivide boxes with at most this many expected regions: cheaper than bounding halves
    is_all_exact: bool  # subdivide the whole domain without any bounds
    regions: float | None  # estimated regions of the domain, None if not counted
    decided: float  # the share of the finest probe boxes that bounds decide
    exact_work: float  # multiplications for subdividing the whole domain
    largest_box: float = 1.0  # share of the domain: halve larger boxes without bounding them first

    @property
    def search_work(self) -> float:
        """Multiplications for the search for violations: none if exact regions find them sooner."""
        return PROBE_SHARE * self.exact_work if self.exact_work > SMALL_WORK else 0.0

    def expected_regions(self, unstable: np.ndarray, volumes: np.ndarray) -> np.ndarray:
        """Expected regions of boxes, from their neurons of unknown sign (B,) and shares of the domain (B,)."""
        count = np.asarray(unstable, dtype=np.float64)
        total, term = 1.0 + count, count
        for k in range(2, self.dimension + 1):
            term = CROSSINGS * term * np.maximum(count - k + 1, 0.0) / k
            total = total + term
        return total if self.regions is None else np.minimum(total, 4.0 + CROWDING * self.regions * volumes)


class Costs(NamedTuple):
    """Multiplications for bounding a box, and for one region of the exact subdivision (infinite: not possible)."""

    box: float
    region: float

    @classmethod
    def of(cls, bounder: Bounder, question: BoxQuestion, rows: float) -> "Costs":
        """The costs for a question; rows: the average number of rows in the forms of a box."""
        work = float(sum(step.work for steps in bounder.segments for step in steps))
        box, region = BOX_WORK + (rows + 1.0) * work, REGION_WORK + REGION_SHARE * work
        if question.asks_attention:
            box += BOX_WORK + 3.0 * len(bounder.aims.row) * work
            region += MAP_WORK + (LOCAL_MAP_SHARE if _is_local(bounder) else MAP_SHARE) * work
            if bounder.explained is not None:
                box += 3.0 * (rows + 1.0) * bounder.explained.work
            moves, has_enclosed = bounder.perturbed.moving_axis is not None, bounder.perturbed.has_enclosed_maps
            if has_enclosed or not bounder.attention.has_straight_borders(moves=moves):
                region = float("inf")  # its maps change within a region
        perturbed = bounder.perturbed
        is_possible = (
            work <= LARGEST_WORK and perturbed.domain.dimension <= MAX_MAP_PARAMETERS and not perturbed.is_curved
        )
        return cls(box, region if is_possible else float("inf"))


def _is_local(bounder: Bounder) -> bool:
    """Whether the network consists of convolutions with dense layers above them."""
    kinds = [any(isinstance(step, ConvStep) for step in steps) for steps in bounder.segments[:-1]]
    return any(kinds) and kinds == sorted(kinds, reverse=True)


def make_plan(bounder: Bounder, question: BoxQuestion, compound: Compound, budget: Budget) -> RefinePlan:
    """Choose the cheapest way to refine: everything exactly, or by bounds with or without generators first."""
    d = bounder.perturbed.domain.dimension
    plain = Costs.of(bounder, question, 1.0 + d)
    if bounder.is_deep and plain.region == float("inf"):
        return _plan_deep(bounder.with_room(DEEP_ROOM), question, budget)
    regions, exact_work, fits = None, float("inf"), False
    if plain.region < float("inf"):
        # If there are too many to count, use a number that they surely exceed.
        regions = min(estimate_regions(compound, budget=budget), 3.0 * MOST_REGIONS)
        exact_work = regions * plain.region
        # A region stores its polygon, logits and labels, and the changes of its pattern.
        fits = regions * (1000.0 + 0.05 * bounder.neurons / 8.0) <= MOST_BYTES
    cost = exact_work if fits else float("inf")
    best = RefinePlan(d, 0, 2.0 * plain.box / plain.region, fits, regions, 0.0, exact_work)
    if exact_work <= SMALL_WORK:
        return best
    for room in (0, PROBE_ROOM):
        if is_over(budget, PLANNING):
            break
        own_cost, plan = _probe(bounder, question, room, regions, exact_work, budget)
        if own_cost < cost or (cost == float("inf") and plan.decided > best.decided):
            cost, best = own_cost, plan
        if plan.decided == 1.0:
            break
    return best


def _plan_deep(bounder: Bounder, question: BoxQuestion, budget: Budget) -> RefinePlan:
    """Plan bounds with generators, starting from the largest boxes that they decide at two places.

    An undecided box costs many times a decided one, because all its neurons become unstable, layer after layer.
    """
    d, level, decided = bounder.perturbed.domain.dimension, 0, 0.0
    while True:
        probes = [(cell, low[:1], high[:1]) for cell, low, high in _probe_boxes(bounder.perturbed, level)[:2]]
        found = [bounder.bound(*probe, np.full(1, question.asks_attention)) for probe in probes]
        decided = float(np.mean([question.is_decided(one.margin, one.inconsistency) for one in found]))
        if decided == 1.0 or 2.0 ** (d * (level + 1)) > MOST_BOXES or is_over(budget, PLANNING):
            break
        level += 1
    return RefinePlan(d, bounder.room, 0.0, False, None, decided, float("inf"), 2.0 ** (-d * level))


def _probe(
    bounder: Bounder, question: BoxQuestion, room: int, regions: float | None, exact_work: float, budget: Budget
) -> tuple[float, RefinePlan]:
    """Estimate the cost of refining with `room` generators, with at most PROBE_SHARE of the exact work.

    The share of open probe boxes at each level shows how much work bounds need down to that level, and how much they
    leave for the exact subdivision.
    """
    d = bounder.perturbed.domain.dimension
    spent, probed, is_open, best, decided = 0.0, 0.0, 1.0, float("inf"), 0.0
    costs = Costs.of(bounder, question, 1.0 + d)
    for level in PROBE_LEVELS:
        probes = _probe_boxes(bounder.perturbed, level)
        probed += sum(len(low) for _, low, _ in probes) * costs.box
        if probed > PROBE_SHARE * exact_work or is_over(budget, PLANNING):
            break
        own = bounder.with_room(room)
        found = [own.bound(*probe, np.full(len(probe[1]), question.asks_attention)) for probe in probes]
        margin, inconsistency, unstable = (
            np.concatenate([getattr(one, name) for one in found]) for name in ("margin", "inconsistency", "unstable")
        )
        if room:
            costs = Costs.of(bounder, question, 1.0 + d + float(np.mean(unstable)))
        spent += 2.0 ** (d * level) * is_open * costs.box
        decided = float(question.is_decided(margin, inconsistency).mean())
        is_open = min(is_open, 1.0 - decided)
        left = 0.0 if is_open == 0.0 else is_open * (float("inf") if regions is None else regions * costs.region)
        best = min(best, spent + left)
        if spent > best or is_open == 0.0:
            break
    return best, RefinePlan(d, room, 2.0 * costs.box / costs.region, False, regions, decided, exact_work)


def _probe_boxes(perturbed: Perturbed, level: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Boxes with sides of 2^(−level) across the domain: knot cells, each with the low and high corners of its boxes."""
    domain = perturbed.domain
    side = 2.0**-level
    found: dict[int, list[np.ndarray]] = {}
    for number, corner in enumerate(product((0.2, 0.65), repeat=min(domain.dimension, 3))):
        # Slightly apart along every axis, so that no two lie on the same line.
        place = np.resize(np.array(corner), domain.dimension) + 0.03 * (number % 5)
        cell = perturbed.cell_of(domain.to_theta(place))
        low, high = (domain.to_unit(end) for end in (cell.low, cell.high))
        first = low + np.floor((place - low) / ((high - low) * side)) * (high - low) * side
        found.setdefault(cell.index, []).append(np.stack([first, first + (high - low) * side]))
    return [(cell, *np.stack(boxes, axis=1)) for cell, boxes in found.items()]
