"""Looks for violations before anything is proved: a coarse grid, then descent, then a walk towards zero.

Turns a problem into a few thetas at which the label is lost or the inconsistency exceeds δ by more than rounding. Finds
no proof: a search that comes back without a violation says nothing. The same input gives the same thetas; the work is
bounded by a count of multiplications, never by seconds.
"""

from dataclasses import dataclass, fields

import numpy as np

from ..budget import Budget
from ..problem import Problem
from ..verdict import Property
from .plain import Plain
from .rounding import Measuring

WORK = 3_000_000_000
"""Multiplications spent on each property: about a second."""

FEWEST = 20
"""Thetas that may be looked at for each property, however large the network."""

SMALL_GRID, LARGEST_GRID = 60, 300
"""Thetas of the grid that is tried first, and most thetas of the one after it, where that found nothing."""

STARTS = 4
"""Thetas of the grid from which a descent starts."""

ROUNDS = 12
"""Most steps of a descent."""

LENGTHS = 2.0 ** -np.arange(9.0)
"""Lengths of a step that are tried at once, in units of the domain."""

FIRST_STEP, SMALLEST_STEP = 0.25, 2.0**-10
"""Steps of a pattern search, in units of the domain."""

WALKERS = 2
"""Violations that are moved towards zero."""

HALVINGS = 14
"""Bisections on the way to zero; a 2¹⁴th part of the domain is far below what a replay can tell apart."""

HALVINGS_EACH = 8
"""Bisections along single axes."""

CLEAR = 1e-8
"""A violation is pursued where it exceeds this share of the logits, or of the original maps: rounding is far below."""

MOST_POINTS = 16
"""Violating thetas that are handed back."""

LEAST_MEASURED = 3
"""Violating thetas that are measured for each property, however large the network."""

SAME = 1e-9
"""Thetas closer than this, in units of the domain, count once."""


@dataclass(frozen=True, eq=False)
class Violation:
    """A theta (d,) that violates a property, and the margin or the inconsistency there."""

    theta: np.ndarray
    value: float


@dataclass(frozen=True, eq=False)
class Violations:
    """What a search found: the clearest violation of each property, or None; and all distinct ones that were kept.

    points (N, d), at most 16, violate at least one of the properties asked for; margin (N,) and inconsistency (N,) are
    computed there in float64, with bounds (N,) of their rounding errors; inconsistencies are NaN where they were not
    asked for. distance (N,): from zero, each axis divided by its width. `evaluations` counts forward passes.
    """

    label: Violation | None
    attention: Violation | None
    points: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray
    margin_slack: np.ndarray
    inconsistency_slack: np.ndarray
    distance: np.ndarray
    evaluations: int
    multiplications: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        return not len(self.points)


def falsify(
    problem: Problem,
    delta: float,
    *,
    wanted: Property = Property.BOTH,
    original: np.ndarray | None = None,
    work: int = WORK,
    budget: Budget | None = None,
) -> Violations:
    """Search the domain for thetas that violate a property; δ is absolute.

    original (K', C, H, W): the filtered maps of the unperturbed image, computed unless given. Every theta found
    violates by more than the rounding of the passes that found it, and for attention no neuron is within rounding of
    its kink there. `work` bounds the multiplications for each property (but a few thetas are always looked at); an
    exhausted budget ends the search with what it has.
    """
    search = _Search(problem, delta, wanted, original, budget)
    for kind in (Property.CR, Property.AR):
        if wanted in (kind, Property.BOTH):
            search.look(kind, work)
    return search.collect()


class _Search:
    """Violations of one problem; points are in the unit cube (·, d); a positive excess means that one violates."""

    def __init__(
        self, problem: Problem, delta: float, wanted: Property, original: np.ndarray | None, budget: Budget | None
    ) -> None:
        self.plain = Plain(problem, original)
        self.delta, self.wanted, self.budget = delta, wanted, budget
        domain = self.plain.domain
        self.dimension = domain.dimension
        self.zero = -domain.low / domain.widths
        self.target = np.clip(self.zero, 0.0, 1.0)
        self.limit = 0
        self.found: list[np.ndarray] = []

    def look(self, kind: Property, work: int) -> None:
        """Search for violations of one property: grid, descent, and the walk of what was found towards zero."""
        cost = 1 if kind is Property.CR else 1 + len(self.plain.classes)
        self.limit = self.plain.multiplications + max(work, FEWEST * cost * self.plain.work)
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

    def collect(self) -> Violations:
        """Measure what was found, and keep what violates by more than rounding."""
        has_attention = self.wanted is not Property.CR
        points = np.array(_distinct(self.found)).reshape(-1, self.dimension)
        thetas = self.plain.to_theta(points)
        measured = Measuring(self.plain).at(thetas, has_attention=has_attention)
        label_excess = -measured.margin - measured.margin_slack
        is_label = (label_excess > 0.0) & (self.wanted is not Property.AR)
        # An infinite slack gives −∞, NaN compares as false.
        attention_excess = measured.inconsistency - measured.inconsistency_slack - self.delta
        is_attention = (attention_excess > 0.0) & has_attention
        kept = np.flatnonzero(is_label | is_attention)
        return Violations(
            label=_clearest(thetas, measured.margin, label_excess, is_label),
            attention=_clearest(thetas, measured.inconsistency, attention_excess, is_attention),
            points=thetas[kept],
            distance=np.linalg.norm(thetas[kept] / self.plain.domain.widths, axis=1),
            evaluations=self.plain.forward_passes,
            multiplications=self.plain.multiplications,
            **{field.name: getattr(measured, field.name)[kept] for field in fields(measured)},
        )

    def _descend(self, points: np.ndarray, excess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Steepest descent of the margin from the best points; all points seen, and their excess."""
        best = np.argsort(-excess, kind="stable")[:STARTS]
        current, reached = points[best], excess[best]
        seen, values = [points], [excess]
        for _ in range(ROUNDS):
            slope = np.zeros_like(current)
            if self._room(Property.CR) >= len(current) * (len(LENGTHS) + 2):
                slope = self.plain.slopes(self.plain.to_theta(current))[1]
            # What leads out of the domain is left out, so that the rest is followed at full length.
            is_outward = ((slope > 0.0) & (current <= 0.0)) | ((slope < 0.0) & (current >= 1.0))
            direction = np.where(is_outward, 0.0, -slope)
            largest = np.abs(direction).max(axis=1)
            current, reached = current[largest > 0.0], reached[largest > 0.0]
            if not len(current) or self._is_clear(reached, Property.CR).any():
                break
            direction = direction[largest > 0.0] / largest[largest > 0.0, None]
            trials = np.clip(current[:, None] + LENGTHS[:, None] * direction[:, None], 0.0, 1.0)
            gained, current, reached = self._try(current, reached, trials, Property.CR, seen, values)
            current, reached = current[gained], reached[gained]
        return np.concatenate(seen), np.concatenate(values)

    def _climb(self, points: np.ndarray, excess: np.ndarray, kind: Property) -> tuple[np.ndarray, np.ndarray]:
        """Pattern search from the best points: along each axis, by shorter steps where none gains.

        The inconsistency is constant on a region, or convex in one parameter: its slope leads nowhere else.
        """
        best = np.argsort(-excess, kind="stable")[:STARTS]
        current, reached = points[best], excess[best]
        seen, values = [points], [excess]
        axes = np.concatenate([np.eye(self.dimension), -np.eye(self.dimension)])
        steps = np.full(len(current), FIRST_STEP)
        while not self._is_clear(reached, kind).any():
            chosen = np.flatnonzero(steps >= SMALLEST_STEP)[: self._room(kind) // len(axes)]
            if not len(chosen):
                break
            trials = np.clip(current[chosen, None] + steps[chosen, None, None] * axes, 0.0, 1.0)
            gained, *moved = self._try(current[chosen], reached[chosen], trials, kind, seen, values)
            current[chosen], reached[chosen] = moved
            steps[chosen[~gained]] *= 0.5
        return np.concatenate(seen), np.concatenate(values)

    def _try(
        self,
        current: np.ndarray,
        reached: np.ndarray,
        trials: np.ndarray,
        kind: Property,
        seen: list[np.ndarray],
        values: list[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Move each of S points to the best of its trials (S, T, d) if that is better; which moved, points, excess."""
        excess = self._excess(trials.reshape(-1, self.dimension), kind)
        seen.append(trials.reshape(-1, self.dimension))
        values.append(excess)
        table = excess.reshape(trials.shape[:2])
        best, places = np.argmax(table, axis=1), np.arange(len(trials))
        gained = table[places, best] > reached
        points = np.where(gained[:, None], trials[places, best], current)
        return gained, points, np.where(gained, table[places, best], reached)

    def _chosen(self, points: np.ndarray, excess: np.ndarray, kind: Property) -> list[np.ndarray]:
        """The clearest violation, the nearest ones moved towards zero, and the next nearest; as many as may be kept."""
        order = np.argsort(self._distances(points), kind="stable")
        walkers = points[order[:WALKERS]]
        walkers = self._approach(walkers, np.tile(self.target, (len(walkers), 1)), kind, HALVINGS)
        if self.dimension > 1:
            for axis in range(self.dimension):
                ends = walkers.copy()
                ends[:, axis] = self.target[axis]
                walkers = self._approach(walkers, ends, kind, HALVINGS_EACH)
            walkers = self._approach(walkers, np.tile(self.target, (len(walkers), 1)), kind, HALVINGS_EACH)
        most = MOST_POINTS // (2 if self.wanted is Property.BOTH else 1)
        # Measuring one theta with its bounds of rounding takes about seven plain evaluations.
        most = max(LEAST_MEASURED, min(most, self._room(kind) // 7))
        return [points[np.argmax(excess)], *walkers, *points[order]][:most]

    def _approach(self, points: np.ndarray, ends: np.ndarray, kind: Property, halvings: int) -> np.ndarray:
        """Violating points (S, d) moved towards given ends (S, d) by bisection, as far as they still violate."""
        far, near, middle = points.copy(), ends.copy(), ends
        for _ in range(halvings + 1):
            if self._room(kind) < len(points):
                break
            is_clear = self._is_clear(self._excess(middle, kind), kind)
            far[is_clear], near[~is_clear] = middle[is_clear], middle[~is_clear]
            middle = 0.5 * (near + far)
        return far

    def _excess(self, points: np.ndarray, kind: Property) -> np.ndarray:
        """By how much (N,) points (N, d) violate a property; negative where they do not."""
        thetas = self.plain.to_theta(points)
        if kind is Property.CR:
            return -self.plain.margins(thetas)
        return self.plain.inconsistencies(thetas)[1] - self.delta

    def _is_clear(self, excess: np.ndarray, kind: Property) -> np.ndarray:
        original = self.plain.unperturbed.logits if kind is Property.CR else self.plain.size(self.plain.original).sum()
        return excess > CLEAR * float(np.abs(original).max())

    def _distances(self, points: np.ndarray) -> np.ndarray:
        return np.linalg.norm(points - self.zero, axis=1)

    def _room(self, kind: Property) -> int:
        """How many more points may be evaluated."""
        if self.budget is not None and self.budget.exhausted() is not None:
            return 0
        cost = 1 if kind is Property.CR else 1 + len(self.plain.classes)
        return max(0, self.limit - self.plain.multiplications) // (cost * self.plain.work)


def _grid(dimension: int, count: int) -> np.ndarray:
    """At most about so many points of the unit cube (N, d), but its corners and its centre in any case.

    >>> _grid(1, 3).ravel().tolist(), len(_grid(2, 0))
    ([0.0, 0.5, 1.0], 5)
    """
    ticks = max(2, int(min(count, LARGEST_GRID) ** (1.0 / dimension) + 1e-9))
    axes = np.meshgrid(*[np.linspace(0.0, 1.0, ticks)] * dimension, indexing="ij")
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    return points if ticks % 2 else np.concatenate([points, np.full((1, dimension), 0.5)])


def _distinct(points: list[np.ndarray]) -> list[np.ndarray]:
    kept: list[np.ndarray] = []
    for point in points:
        if all(np.abs(point - other).max() > SAME for other in kept):
            kept.append(point)
    return kept


def _clearest(thetas: np.ndarray, values: np.ndarray, excess: np.ndarray, chosen: np.ndarray) -> Violation | None:
    """The chosen theta that exceeds its threshold most."""
    if not chosen.any():
        return None
    best = int(np.argmax(np.where(chosen, excess, -np.inf)))
    return Violation(thetas[best], float(values[best]))
