"""How a refinement goes about a problem: how much correlation its bounds keep, and from when on a box is handed over.

Everything is decided by counts (multiplications, neurons of unknown sign, regions in a few probe boxes), never by
seconds, so that the plan does not depend on the machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from ..bounds.bounder import Bounder
from ..network.steps import ConvStep
from ..perturbation import Perturbed
from .decide import Question

BOX_WORK = 8e5
"""Multiplications that take as long as what bounding a box costs whatever the network (measured on small ones)."""

REGION_WORK, REGION_SHARE = 1.5e5, 0.2
"""Likewise for walking one region: whatever the network, and as a share of one product with all weights."""

MAP_WORK, MAP_SHARE, LOCAL_MAP_SHARE = 1.0e5, 2.0, 0.15
"""Likewise for the attention maps of one region; the last where flips are followed locally."""

MOST_HELD = 2.0**28
"""Bytes that the regions expected in a domain may need for it to be handed over whole; bounds leave fewer of them.

On large networks there are up to five times as many regions as expected."""

LARGEST_WORK = 5e7
"""Products with all weights above this are too much for walking single regions: nothing is handed over."""

CROSSINGS = 0.06
"""The share of pairs of neurons of unknown sign whose lines cross inside a small box, as on the bundled networks."""

CROWDING = 8.0
"""How many times as many regions as on average are expected in a box at most, however many signs are not known."""

AT_ONCE = 1.5e9
"""Multiplications up to which the whole domain is handed over at once: less than finding out what bounds can do."""

PROBE_SHARE = 0.04
"""The share of handing the whole domain over that finding out what bounds can do may cost."""

PROBE_LEVELS = (2, 4, 6)
"""Probe boxes have sides of 2 to minus these."""

PROBE_ROOM = 64
"""Generators that every layer may add where correlations are kept."""

MOST_EXACT = 3
"""Parameters that the exact subdivision takes."""


@dataclass(frozen=True)
class Plan:
    """What was chosen: generators for each layer, estimated regions up to which a box is handed over.

    `is_exact_at_once`: the whole domain is handed over without bounding it. `regions` is the estimated number of
    regions of the domain (None where they are not counted), `decided` the share of the finest probe boxes that bounds
    decide, `at_once` the multiplications for handing the whole domain over.
    """

    dimension: int
    room: int
    hand_over: float
    is_exact_at_once: bool
    regions: float | None
    decided: float
    at_once: float

    @property
    def is_small(self) -> bool:
        """Whether handing the whole domain over costs less than any look around."""
        return self.at_once <= AT_ONCE

    @property
    def trying(self) -> float:
        """Multiplications that looking for violations may cost."""
        return PROBE_SHARE * self.at_once

    def expected_regions(self, unstable: np.ndarray, volumes: np.ndarray) -> np.ndarray:
        """About how many regions boxes have, by the neurons of unknown sign (B,) and their share of the domain (B,)."""
        found = expected_regions(unstable, self.dimension)
        return found if self.regions is None else np.minimum(found, 4.0 + CROWDING * self.regions * volumes)


@dataclass(frozen=True)
class Costs:
    """Multiplications for bounding a box, and for one region of the exact subdivision (infinite: not possible)."""

    box: float
    region: float

    @property
    def has_regions(self) -> bool:
        """Whether the exact subdivision can be asked at all."""
        return self.region < float("inf")

    @classmethod
    def of(cls, bounder: Bounder, question: Question, rows: float) -> "Costs":
        """The costs of a question; `rows` is the number of rows that the forms of a box have on average."""
        work = float(sum(step.work for steps in bounder.segments for step in steps))
        box, region = BOX_WORK + (rows + 1.0) * work, REGION_WORK + REGION_SHARE * work
        if question.asks_attention:
            box += BOX_WORK + 3.0 * len(bounder.logits.row) * work
            region += MAP_WORK + (LOCAL_MAP_SHARE if _is_local(bounder) else MAP_SHARE) * work
        is_possible = work <= LARGEST_WORK and bounder.perturbed.domain.dimension <= MOST_EXACT
        return cls(box, region if is_possible else float("inf"))


def _is_local(bounder: Bounder) -> bool:
    """Whether the network consists of convolutions with at most one dense hidden layer above them."""
    kinds = [any(isinstance(step, ConvStep) for step in steps) for steps in bounder.segments[:-1]]
    return len(kinds) > 1 and all(kinds[:-1])


def expected_regions(unstable: np.ndarray, dimension: int) -> np.ndarray:
    """About how many regions a box has in which the signs of so many neurons (B,) are not known.

    >>> expected_regions(np.array([0, 1]), 2).tolist()
    [1.0, 2.0]
    """
    count = np.asarray(unstable, dtype=np.float64)
    total, term = 1.0 + count, count
    for k in range(2, dimension + 1):
        term = CROSSINGS * term * np.maximum(count - k + 1, 0.0) / k
        total = total + term
    return total


def make_plan(bounder: Bounder, question: Question, count: Callable[[], float]) -> Plan:
    """Choose how to refine; `count` gives about how many regions the domain has, and is called where that matters.

    For every way to bound, the share of probe boxes that stay open at each level tells what deciding by bounds down to
    that level costs, and what is left for the exact subdivision then; the cheapest wins.
    """
    d = bounder.perturbed.domain.dimension
    plain = Costs.of(bounder, question, 1.0 + d)
    regions = None if plain.region == float("inf") else count()
    at_once = float("inf") if regions is None else regions * plain.region
    fits = regions is not None and regions * _bytes_each(bounder) <= MOST_HELD
    best = (at_once if fits else float("inf"), Plan(d, 0, _limit(plain), fits, regions, 0.0, at_once))
    if at_once <= AT_ONCE:
        return best[1]
    for room in (0, PROBE_ROOM):
        cost, plan = _try(bounder, question, room, regions, at_once)
        if cost < best[0] or (best[0] == float("inf") and plan.decided > best[1].decided):
            best = (cost, plan)
        if plan.decided == 1.0:
            break
    return best[1]


def _bytes_each(bounder: Bounder) -> float:
    """About how many bytes a region takes: its polygon, logits and labels, and the changes of its pattern."""
    return 1000.0 + 0.05 * bounder.neurons / 8.0


def _limit(costs: Costs) -> float:
    """Regions up to which handing a box over is cheaper than bounding its two halves."""
    return 2.0 * costs.box / costs.region


def _try(bounder: Bounder, question: Question, room: int, regions: float | None, at_once: float) -> tuple[float, Plan]:
    """What refining with so many generators would cost; finding that out costs a share of doing without bounds."""
    d = bounder.perturbed.domain.dimension
    rows, spent, probed = 1.0 + d, 0.0, 0.0
    is_open, best, decided = 1.0, float("inf"), 0.0
    costs = Costs.of(bounder, question, rows)
    for level in PROBE_LEVELS:
        probes = _probes(bounder.perturbed, level)
        probed += sum(len(low) for _, low, _ in probes) * costs.box
        if probed > PROBE_SHARE * at_once:
            break
        found = [bounder.with_room(room).bound(*probe, _all(question, len(probe[1]))) for probe in probes]
        margin, inconsistency, unstable = (
            np.concatenate([getattr(one, name) for one in found]) for name in ("margin", "inconsistency", "unstable")
        )
        if room:
            rows = 1.0 + d + float(np.mean(unstable))
            costs = Costs.of(bounder, question, rows)
        spent += 2.0 ** (d * level) * is_open * costs.box
        decided = float(question.is_decided(margin, inconsistency).mean())
        is_open = min(is_open, 1.0 - decided)
        left = 0.0 if is_open == 0.0 else is_open * (float("inf") if regions is None else regions * costs.region)
        best = min(best, spent + left)
        if spent > best or is_open == 0.0:
            break
    return best, Plan(d, room, _limit(costs), False, regions, decided, at_once)


def _all(question: Question, count: int) -> np.ndarray:
    return np.full(count, question.asks_attention)


def _probes(perturbed: Perturbed, level: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Boxes with sides of 2 to minus `level` over the domain: knot cells, each with the corners of its boxes."""
    domain = perturbed.domain
    side = 2.0**-level
    found: dict[int, list[np.ndarray]] = {}
    for number, corner in enumerate(product((0.2, 0.65), repeat=min(domain.dimension, 3))):
        # A little apart from each other along every axis, so that no two lie on the same line.
        place = np.resize(np.array(corner), domain.dimension) + 0.03 * (number % 5)
        cell = perturbed.cell_of(domain.low + place * domain.widths)
        low, high = ((end - domain.low) / domain.widths for end in (cell.low, cell.high))
        first = low + np.floor((place - low) / ((high - low) * side)) * (high - low) * side
        found.setdefault(cell.index, []).append(np.stack([first, first + (high - low) * side]))
    return [(cell, *np.stack(boxes, axis=1)) for cell, boxes in found.items()]
