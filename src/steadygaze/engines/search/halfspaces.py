"""Reduces many half-spaces to the few that bound a region, with a point inside each facet: by rays, then by programs.

A half-space is a row (n, c) with n·t + c ≥ 0 and |n| = 1. Most rows need no linear program: the box of the knot cell,
rays from a point inside (the first row that a ray meets bounds the region) and the region's bounding box decide them.
Works in two and more dimensions; the searches use it in four. HiGHS solves the linear programs.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import highspy
import numpy as np

from ...tolerances import CLEAR, DISTANCE, FEASIBILITY, THIN

RAYS = 40
_PLAIN: dict[str, str | int] = {"presolve": "off", "solver": "simplex", "simplex_scale_strategy": 0}
_RETRIES: tuple[dict[str, str | int], ...] = (
    {"simplex_scale_strategy": 4},
    {"presolve": "on", "simplex_scale_strategy": 2},
    {"presolve": "on", "solver": "ipm"},
)


class LinearProgramTroubleError(Exception):
    """HiGHS gave neither a solution nor a proof of infeasibility, whatever the scaling."""


@dataclass
class LinearPrograms:
    """A solver that counts the linear programs it solved, and those without a usable answer."""

    solved: int = 0
    failures: int = 0
    _solver: highspy.Highs = field(default_factory=highspy.Highs, repr=False)

    def __post_init__(self) -> None:
        self._solver.setOptionValue("output_flag", False)
        self._solver.setOptionValue("threads", 1)
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._solver.setOptionValue(name, FEASIBILITY)

    def maximise(
        self, cost: np.ndarray, rows: np.ndarray, lower: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray | None:
        """The x (n,) with low ≤ x ≤ high and rows @ x ≥ lower that maximises cost @ x; None if there is no such x.

        Raises LinearProgramTroubleError if several attempts with different scaling fail.
        """
        self.solved += 1
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = count, width = rows.shape
        program.col_cost_, program.col_lower_, program.col_upper_ = cost, low, high
        program.row_lower_, program.row_upper_ = lower, np.full(count, highspy.kHighsInf)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.arange(0, count * width + 1, width)
        program.a_matrix_.index_ = np.tile(np.arange(width), count)
        program.a_matrix_.value_ = rows.ravel()
        program.sense_ = highspy.ObjSense.kMaximize
        for options in (_PLAIN, *_RETRIES):
            for name, value in (_PLAIN | options).items():
                self._solver.setOptionValue(name, value)
            self._solver.clearSolver()
            self._solver.passModel(program)
            self._solver.run()
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                return np.array(self._solver.getSolution().col_value)
            if status == highspy.HighsModelStatus.kInfeasible:
                return None
        raise self.trouble(f"HiGHS: {self._solver.modelStatusToString(status)}")

    def trouble(self, what: str) -> LinearProgramTroubleError:
        """Count a program without a usable answer; returns the error to raise."""
        self.failures += 1
        return LinearProgramTroubleError(what)


class Facets(NamedTuple):
    """The rows that bound a region, as indices; a point inside each facet; and a point inside the region."""

    places: np.ndarray
    centres: np.ndarray
    inside: np.ndarray


class FacetFinder:
    """Finds the facets of regions of a given dimension; all regions share the same rays."""

    def __init__(self, dimension: int, programs: LinearPrograms) -> None:
        rays = np.random.default_rng(20221).normal(size=(RAYS, dimension))
        rays /= np.linalg.norm(rays, axis=1)[:, None]
        self.rays, self.programs, self.dimension = np.concatenate([rays, -rays]), programs, dimension
        self._low, self._high = np.full(dimension, -1.0), np.full(dimension, 2.0)

    def find(self, rows: np.ndarray, inside: np.ndarray) -> Facets | None:
        """The facets of the region of rows (M, d+1); None if it has no inside. `inside` (d,) may be near a facet."""
        if _clearance(rows, inside) < THIN:
            centre = self.centre(rows)
            if centre is None:
                return None
            inside = centre
        for _ in range(2):
            inside = _shoot(rows, inside, self.rays)[1].mean(axis=0)
        first, points = _shoot(rows, inside, self.rays)
        open_rows = self._within_reach(rows, np.unique(first))
        # Then shoot straight at every row that is still open.
        also, where = _shoot(rows, inside, -rows[open_rows, :-1])
        first, points = np.concatenate([first, also]), np.concatenate([points, where])
        certain = np.unique(first)
        candidates = _distinct(rows, certain, np.setdiff1d(open_rows, certain))
        places, centres = [], []
        for place in candidates:
            own = points[first == place]
            centre = own.mean(axis=0) if len(own) else None
            others = candidates[candidates != place]
            if centre is None or _clearance(rows[others], centre) < CLEAR:
                centre = self.facet_centre(rows, int(place), others)
            if centre is not None:
                # Project onto the plane: rays and linear programs meet it only up to their tolerance.
                gap = rows[place, :-1] @ centre + rows[place, -1]
                places.append(place)
                centres.append(centre - gap * rows[place, :-1])
        return Facets(np.array(places, dtype=np.int64), np.array(centres), inside)

    def centre(self, rows: np.ndarray) -> np.ndarray | None:
        """The centre of the largest ball inside the rows; None if no ball exceeds rounding."""
        return self._ball(rows, np.ones(len(rows)))

    def facet_centre(self, rows: np.ndarray, place: int, others: np.ndarray) -> np.ndarray | None:
        """The centre of the largest ball in the facet of a row, bounded by other rows; None if the facet is empty."""
        normal = rows[place, :-1]
        flat = rows[others, :-1] - (rows[others, :-1] @ normal)[:, None] * normal
        widths = np.concatenate([np.linalg.norm(flat, axis=1), [0.0, 0.0]])
        return self._ball(np.concatenate([rows[others], rows[[place]], -rows[[place]]]), widths)

    def highest(self, rows: np.ndarray, form: np.ndarray) -> float:
        """An upper bound on a form (d+1,) over a region, by one linear program, rounded outward."""
        size = float(np.abs(form[:-1]).sum())  # no squares, which may underflow
        if size == 0.0:
            return float(form[-1])
        # Scaled to a slope of about length 1, because the solver's tolerances are absolute.
        found = self.programs.maximise(form[:-1] / size, rows[:, :-1], -rows[:, -1], self._low, self._high)
        if found is None:
            raise self.programs.trouble("HiGHS: a region with an inside has no point")
        return float(form[:-1] @ found + form[-1]) + 10 * FEASIBILITY * size

    def _within_reach(self, rows: np.ndarray, certain: np.ndarray) -> np.ndarray:
        """The rows that cut the bounding box of the polytope that the certain rows define."""
        known, box = rows[certain], np.zeros((2, self.dimension))
        for axis in range(self.dimension):
            for side, sign in enumerate((-1.0, 1.0)):
                cost = np.zeros(self.dimension)
                cost[axis] = sign
                found = self.programs.maximise(cost, known[:, :-1], -known[:, -1], self._low, self._high)
                box[side, axis] = float(side) if found is None else found[axis]
        middle, half = box.mean(axis=0), 0.5 * (box[1] - box[0]) + 1e-9
        lowest = rows[:, :-1] @ middle + rows[:, -1] - np.abs(rows[:, :-1]) @ half
        lowest[certain] = -1.0
        return np.flatnonzero(lowest < 0.0)

    def _ball(self, rows: np.ndarray, widths: np.ndarray) -> np.ndarray | None:
        """The centre of the largest ball inside the rows; for each row, the radius counts times its width (M,)."""
        cost = np.append(np.zeros(self.dimension), 1.0)
        matrix = np.hstack([rows[:, :-1], -widths[:, None]])
        low, high = np.append(self._low, 0.0), np.append(self._high, 2.0)
        found = self.programs.maximise(cost, matrix, -rows[:, -1], low, high)
        return None if found is None or found[-1] < THIN else found[:-1]


def _clearance(rows: np.ndarray, point: np.ndarray) -> float:
    return float((rows[:, :-1] @ point + rows[:, -1]).min(initial=np.inf))


def _shoot(rows: np.ndarray, start: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first row that each ray (S, d) meets, and where (S, d)."""
    speed = rays @ rows[:, :-1].T
    gap = rows[:, :-1] @ start + rows[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(speed < 0.0, -np.maximum(gap, 0.0) / speed, np.inf)
    nearest = times.min(axis=1)
    # A ray meets coinciding rows at once: the first of them represents all.
    first = np.argmax(times <= nearest[:, None] + DISTANCE, axis=1)
    return first, start + nearest[:, None] * rays


def _distinct(rows: np.ndarray, certain: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The indices of the certain and the other rows, sorted; of rows that coincide up to rounding, only one index."""
    places = np.concatenate([certain, others])
    chosen = rows[places]
    same = np.abs(chosen[:, None, :] - chosen[None, :, :]).max(axis=2) <= 10 * DISTANCE
    return np.sort(places[~np.tril(same, -1).any(axis=1)])
