"""Searches for violations before any proof: on a coarse grid, then by descent, then by a walk towards zero.

A search without a find proves nothing. Multiplications, not seconds, limit its work, so the same problem always gives
the same thetas.
"""

from typing import NamedTuple

import numpy as np

from ...budget import WALKING, Budget
from ...labels import Property
from ...question import Question
from .pointwise import Measured, PointPasses

WORK = 3_000_000_000  # multiplications spent on each property: about a second
FEWEST = 20  # thetas that may always be evaluated for each property, however large the network
SMALL_GRID, LARGEST_GRID = 60, 300  # thetas of the first grid, and of a second one if the first has no violation
STARTS, ROUNDS = 4, 12  # the number of grid thetas that start a descent, and the most steps of a descent
LENGTHS = 2.0 ** -np.arange(9.0)  # step lengths tried at once, in units of the domain
FIRST_STEP, SMALLEST_STEP = 0.25, 2.0**-10  # steps of the pattern search, in units of the domain
WALKERS = 2  # violations moved towards zero
HALVINGS, HALVINGS_EACH = 14, 8  # bisections towards zero, and along axes; replays cannot resolve 2⁻¹⁴ of the domain
CLEAR = 1e-8  # a clear violation exceeds this share of the logits or of the original maps: far above rounding
MOST_POINTS, LEAST_POINTS = 16, 3  # the most thetas returned; thetas always measured for each property
SAME = 1e-9  # thetas closer than this, in units of the domain, count as one

Seen = list[tuple[np.ndarray, np.ndarray]]  # points (N, d) and their excess (N,)


class FoundViolations(NamedTuple):
    """Distinct thetas (N, d), at most 16, that violate at least one of the wanted properties."""

    thetas: np.ndarray
    measured: Measured
    is_label: np.ndarray  # (N,) whether each loses the label
    is_attention: np.ndarray  # (N,) whether each loses the attention
    evaluations: int  # forward passes of the search
    multiplications: int


def falsify(
    question: Question,
    delta: float,
    *,
    wanted: Property = Property.BOTH,
    original: np.ndarray | None = None,
    work: int = WORK,
    budget: Budget | None = None,
) -> FoundViolations:
    """Search the domain for thetas that violate a property; δ is absolute.

    original (K', C, H, W): the filtered maps of the unperturbed image, computed if not given. Every theta found
    violates the property by more than rounding; where it loses the attention, no neuron is within rounding of its kink.
    `work` bounds the multiplications for each property, except for a few thetas; an exhausted budget ends the search
    early.
    """
    search = _Search(question, delta, wanted, original, budget)
    for kind in (Property.CR, Property.AR):
        if wanted in (kind, Property.BOTH):
            search.look(kind, work)
    return search.collect()


class _Search:
    """The search of one problem; points (·, d) lie in the unit cube, and violate if their excess is positive."""

    def __init__(
        self, question: Question, delta: float, wanted: Property, original: np.ndarray | None, budget: Budget | None
    ) -> None:
        self.passes = PointPasses(question, original)
        self.delta, self.wanted, self.budget = delta, wanted, budget
        domain, self.dimension = question.perturbed.domain, question.perturbed.domain.dimension
        self.zero = domain.zero_in_t
        self.target = np.clip(self.zero, 0.0, 1.0)
        self.limit = 0
        self.found: list[np.ndarray] = []

    def look(self, kind: Property, work: int) -> None:
        """Search for violations of one property by a grid and by descent, then move the violations towards zero."""
        self.limit = self.passes.multiplications + max(work, FEWEST * self._cost(kind))
        room = self._room(kind)
        if not room:
            return
        points = _grid(self.dimension, min(room // 3, SMALL_GRID))
        excess = self._excess(points, kind)
        if not self._is_clear(excess, kind).any() and room // 3 > SMALL_GRID:
            points = _grid(self.dimension, room // 3)
            excess = self._excess(points, kind)
        if not self._is_clear(excess, kind).any() and kind is Property.CR:
            points, excess = self._descend(points, excess)
        if not self._is_clear(excess, kind).any():
            points, excess = self._climb(points, excess, kind)
        clear = self._is_clear(excess, kind)
        if clear.any():
            self.found += self._chosen(points[clear], excess[clear], kind)

    def collect(self) -> FoundViolations:
        """Measure the found points, and keep those that violate by more than rounding."""
        has_attention = self.wanted is not Property.CR
        points: list[np.ndarray] = []
        for point in self.found:
            if all(np.abs(point - other).max() > SAME for other in points):
                points.append(point)
        thetas = self._thetas(np.array(points).reshape(-1, self.dimension))
        found = self.passes.measure(thetas, has_attention=has_attention)
        is_label = (-found.margin - found.margin_slack > 0.0) & (self.wanted is not Property.AR)
        # An infinite slack gives −∞; comparisons with NaN are false.
        is_attention = (found.inconsistency - found.inconsistency_slack - self.delta > 0.0) & has_attention
        kept = np.flatnonzero(is_label | is_attention)
        measured, spent = Measured(*(column[kept] for column in found)), self.passes
        counts = spent.forward_passes, spent.multiplications
        return FoundViolations(thetas[kept], measured, is_label[kept], is_attention[kept], *counts)

    def _descend(self, points: np.ndarray, excess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Steepest descent of the margin from the best points; returns all visited points and their excess."""
        best = np.argsort(-excess, kind="stable")[:STARTS]
        current, reached = points[best], excess[best]
        seen = [(points, excess)]
        for _ in range(ROUNDS):
            slope = np.zeros_like(current)
            if self._room(Property.CR) >= len(current) * (len(LENGTHS) + 2):
                slope = self.passes.slopes(self._thetas(current))
            # The step drops its outward components, but keeps its full length.
            is_outward = ((slope > 0.0) & (current <= 0.0)) | ((slope < 0.0) & (current >= 1.0))
            direction = np.where(is_outward, 0.0, -slope)
            largest = np.abs(direction).max(axis=1)
            current, reached = current[largest > 0.0], reached[largest > 0.0]
            if not len(current) or self._is_clear(reached, Property.CR).any():
                break
            direction = direction[largest > 0.0] / largest[largest > 0.0, None]
            trials = np.clip(current[:, None] + LENGTHS[:, None] * direction[:, None], 0.0, 1.0)
            gained, current, reached = self._try(current, reached, trials, Property.CR, seen)
            current, reached = current[gained], reached[gained]
        return _all_seen(seen)

    def _climb(self, points: np.ndarray, excess: np.ndarray, kind: Property) -> tuple[np.ndarray, np.ndarray]:
        """Pattern search from the best points, along each axis, as the slope of ai does not lead out of a region."""
        best = np.argsort(-excess, kind="stable")[:STARTS]
        current, reached = points[best], excess[best]
        seen = [(points, excess)]
        axes = np.concatenate([np.eye(self.dimension), -np.eye(self.dimension)])
        steps = np.full(len(current), FIRST_STEP)
        while not self._is_clear(reached, kind).any():
            chosen = np.flatnonzero(steps >= SMALLEST_STEP)[: self._room(kind) // len(axes)]
            if not len(chosen):
                break
            trials = np.clip(current[chosen, None] + steps[chosen, None, None] * axes, 0.0, 1.0)
            gained, *moved = self._try(current[chosen], reached[chosen], trials, kind, seen)
            current[chosen], reached[chosen] = moved
            steps[chosen[~gained]] *= 0.5
        return _all_seen(seen)

    def _try(
        self, current: np.ndarray, reached: np.ndarray, trials: np.ndarray, kind: Property, seen: Seen
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Move each of S points to the best of its trials (S, T, d) if that is better; which moved, points, excess."""
        flat = trials.reshape(-1, self.dimension)
        seen.append((flat, self._excess(flat, kind)))
        table, places = seen[-1][1].reshape(trials.shape[:2]), np.arange(len(trials))
        best = np.argmax(table, axis=1)
        gained = table[places, best] > reached
        points = np.where(gained[:, None], trials[places, best], current)
        return gained, points, np.where(gained, table[places, best], reached)

    def _chosen(self, points: np.ndarray, excess: np.ndarray, kind: Property) -> list[np.ndarray]:
        """The clearest violation, the nearest ones moved towards zero, and the next nearest, up to the limit."""
        order = np.argsort(np.linalg.norm(points - self.zero, axis=1), kind="stable")
        walkers = points[order[:WALKERS]]
        walkers = self._approach(walkers, np.tile(self.target, (len(walkers), 1)), kind, HALVINGS)
        if self.dimension > 1:
            for axis in range(self.dimension):
                ends = walkers.copy()
                ends[:, axis] = self.target[axis]
                walkers = self._approach(walkers, ends, kind, HALVINGS_EACH)
            walkers = self._approach(walkers, np.tile(self.target, (len(walkers), 1)), kind, HALVINGS_EACH)
        most = MOST_POINTS // (2 if self.wanted is Property.BOTH else 1)
        # Measuring one theta with its rounding bounds costs about seven plain evaluations.
        most = max(LEAST_POINTS, min(most, self._room(kind) // 7))
        return [points[np.argmax(excess)], *walkers, *points[order]][:most]

    def _approach(self, points: np.ndarray, ends: np.ndarray, kind: Property, halvings: int) -> np.ndarray:
        """Move violating points (S, d) towards given ends (S, d) by bisection while they still violate."""
        far, near, middle = points.copy(), ends.copy(), ends
        for _ in range(halvings + 1):
            if self._room(kind) < len(points):
                break
            is_clear = self._is_clear(self._excess(middle, kind), kind)
            far[is_clear], near[~is_clear] = middle[is_clear], middle[~is_clear]
            middle = 0.5 * (near + far)
        return far

    def _thetas(self, points: np.ndarray) -> np.ndarray:
        return self.passes.question.compound.to_theta(points)

    def _excess(self, points: np.ndarray, kind: Property) -> np.ndarray:
        """How much (N,) the points (N, d) violate a property; negative if they satisfy it."""
        thetas = self._thetas(points)
        if kind is Property.CR:
            return -self.passes.margins(thetas)
        return self.passes.inconsistencies(thetas) - self.delta

    def _is_clear(self, excess: np.ndarray, kind: Property) -> np.ndarray:
        scale = float(np.abs(self.passes.unperturbed.logits).max()) if kind is Property.CR else self.passes.loss_scale
        return excess > CLEAR * scale

    def _cost(self, kind: Property) -> int:
        """The multiplications needed to evaluate one point."""
        return (1 if kind is Property.CR else 1 + len(self.passes.classes)) * self.passes.work

    def _room(self, kind: Property) -> int:
        if self.budget is not None and self.budget.exhausted(WALKING) is not None:
            return 0
        return max(0, self.limit - self.passes.multiplications) // self._cost(kind)


def _all_seen(seen: Seen) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([points for points, _ in seen]), np.concatenate([excess for _, excess in seen])


def _grid(dimension: int, count: int) -> np.ndarray:
    """Up to about `count` points (N, d) of the unit cube, but at least its corners and its centre.

    If there are too many corners: the centre, every parameter alone at its ends, and a fixed choice of corners.

    >>> _grid(1, 3).ravel().tolist(), len(_grid(2, 0)), len(_grid(16, 60))
    ([0.0, 0.5, 1.0], 5, 60)
    """
    if 2**dimension > LARGEST_GRID:
        alone = np.concatenate([np.eye(dimension), -np.eye(dimension)])
        corners = max(2, min(count, LARGEST_GRID) - 2 * dimension - 1)
        chosen = np.random.default_rng(dimension).integers(0, 2, (corners, dimension)).astype(np.float64)
        return np.concatenate([np.full((1, dimension), 0.5), 0.5 + 0.5 * alone, chosen])
    ticks = max(2, int(min(count, LARGEST_GRID) ** (1.0 / dimension) + 1e-9))
    axes = np.meshgrid(*[np.linspace(0.0, 1.0, ticks)] * dimension, indexing="ij")
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    return points if ticks % 2 else np.concatenate([points, np.full((1, dimension), 0.5)])
