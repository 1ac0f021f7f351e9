"""About how many regions a map would have: from the regions of a few small boxes. Chooses between map and refinement.

Everything is decided by counts, never by seconds, so that the choice does not depend on the machine. A guess, and
no more: nothing that is proved depends on it.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..budget import Budget
from ..compound import Compound
from ..regions.region import Polytopes
from ..regions.subdivide import MOST_PARAMETERS
from ..regions.within import subdivide_boxes
from ..tolerances import TOUCH
from .plan import LARGEST_WORK

MOST_REGIONS = 200_000
"""Maps up to about this many regions are drawn without asking: seconds to minutes."""

SIDES = {2: 1.0 / 32.0, 3: 1.0 / 12.0}
"""Sides of the boxes that are looked at, by the number of parameters."""

PLACES = 12
"""How many boxes are looked at."""

STEPS = np.array([0.754877666246693, 0.569840290998053, 0.430159709001947])
"""Steps between the boxes along each axis, modulo 1: powers of 1 / 1.3247…, the plastic number, spread evenly."""


@dataclass(frozen=True)
class Choice:
    """Which method fits a question, and why, in one sentence for people."""

    method: str
    reason: str


def choose_method(compound: Compound, *, most: int = MOST_REGIONS, budget: Budget | None = None) -> Choice:
    """Map or refine: the map while it is expected to have at most so many regions.

    Of the budget only the wish to stop counts: a choice that depended on time would depend on the machine.
    """
    d = compound.domain.dimension
    if d > MOST_PARAMETERS:
        return Choice("refine", f"the map takes up to {MOST_PARAMETERS} parameters, these are {d}")
    work = sum(step.work for segment in compound.graph.steps for step in segment)
    if work > LARGEST_WORK:
        return Choice("refine", f"the network is too large for a map ({sum(compound.hidden):,} neurons)")
    if d == 1:
        return Choice("map", "a single parameter has few regions")
    patient = None if budget is None else Budget(cancelled=budget.cancelled)
    regions = estimate_regions(compound, most=most, budget=patient)
    if patient is not None and patient.cancelled.is_set():
        return Choice("map", "the run was stopped before its size was known")
    if regions <= most:
        return Choice("map", f"it is expected to have {_rounded(regions)} regions")
    return Choice("refine", f"a map is expected to have more than {most:,} regions")


def estimate_regions(compound: Compound, *, most: int = MOST_REGIONS, budget: Budget | None = None) -> float:
    """About how many regions the domain has (up to 3 parameters), from those of a few small boxes.

    Infinite once it is clear that they are more than `most`, or when the budget ends first. With a single parameter
    hardly any neuron changes its sign twice, so their number is an upper bound in practice.
    """
    if compound.domain.dimension == 1:
        return float(sum(compound.hidden) + 1)
    cell, low, high = _boxes(compound)
    share = float(np.prod(high - low, axis=1).sum())
    sides = np.ones((*low.shape, 2), dtype=np.int64)
    # A map that has so many more regions in these boxes alone is large enough.
    user = budget or Budget()
    limits = replace(user.limits, max_regions=max(1, int(3.0 * most * share)) + PLACES)
    own = Budget(limits, started=user.started, cancelled=user.cancelled)
    found = subdivide_boxes(compound, cell, low, high, sides, np.zeros((1, 3), dtype=np.int32), budget=own)
    if not found.complete.all():
        return float("inf")
    return _count_whole(found.regions.polytopes, found.box, low, high) / share


def _boxes(compound: Compound) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Small boxes spread over the domain: the knot cell of each (N,), low and high (N, D) in t."""
    d = compound.domain.dimension
    places = (0.5 + np.arange(1, PLACES + 1)[:, None] * STEPS[:d]) % 1.0
    cells = [compound.perturbed.cell_of(theta).index for theta in compound.to_theta(places)]
    corners = [compound.corners[cell] for cell in cells]
    first, last = np.array([corner.low for corner in corners]), np.array([corner.high for corner in corners])
    low = np.clip(places - 0.5 * SIDES[d], first, np.maximum(first, last - SIDES[d]))
    return np.array(cells), low, np.minimum(low + SIDES[d], last)


def _count_whole(polytopes: Polytopes, box: np.ndarray, low: np.ndarray, high: np.ndarray) -> int:
    """How many regions have their lowest vertex inside their box.

    Every region has one lowest vertex, and what a box cuts off of a region has its own on the box's border: so regions
    are counted where they are, neither twice nor by the borders of the boxes.
    """
    if not len(polytopes):
        return 0
    order = np.lexsort((polytopes.points @ STEPS[: low.shape[1]], polytopes.owner))
    lowest = polytopes.points[order[polytopes.starts[:-1]]]
    return int(((lowest > low[box] + TOUCH) & (lowest < high[box] - TOUCH)).all(axis=1).sum())


def _rounded(count: float) -> str:
    """An estimated number of regions as people say it: one digit, and no small ones.

    >>> _rounded(12345.6), _rounded(0.0)
    ('about 10,000', 'fewer than 1,000')
    """
    return f"about {float(f'{count:.0e}'):,.0f}" if count >= 500.0 else "fewer than 1,000"
