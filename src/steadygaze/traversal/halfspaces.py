"""From many half-spaces to the few that bound a region, with a point inside each facet: rays first, then programs.

A half-space is a row (n, c) with n·t + c ≥ 0 and |n| = 1. Most rows are decided without a linear program: by the box of
the knot cell, by rays from a point inside (what a ray meets first bounds the region), and by the region's own bounding
box. Works in two and more dimensions; the searches use it from three on.
"""

from dataclasses import dataclass

import numpy as np

from ..tolerances import CLEAR, DISTANCE, FEASIBILITY, THIN
from .programs import Programs

RAYS = 40


@dataclass(frozen=True, eq=False)
class Facets:
    """The rows that bound a region, as places in the rows given, a point inside each facet, and one inside of all."""

    places: np.ndarray
    centres: np.ndarray
    inside: np.ndarray


class Simplifier:
    """Finds the facets of regions of one dimension; the rays are the same for all of them."""

    def __init__(self, dimension: int, programs: Programs) -> None:
        rays = np.random.default_rng(20221).normal(size=(RAYS, dimension))
        rays /= np.linalg.norm(rays, axis=1)[:, None]
        self.rays, self.programs, self.dimension = np.concatenate([rays, -rays]), programs, dimension

    def find(self, rows: np.ndarray, inside: np.ndarray | None) -> Facets | None:
        """The facets of the region of rows (M, d+1); None if it has no inside. `inside` (d,) may be near a facet."""
        if inside is None or self._clearance(rows, inside) < THIN:
            inside = self.centre(rows)
            if inside is None:
                return None
        for _ in range(2):
            inside = self._shoot(rows, inside, self.rays)[1].mean(axis=0)
        first, points = self._shoot(rows, inside, self.rays)
        open_rows = self._within_reach(rows, np.unique(first))
        first, points = self._add_normal_rays(rows, open_rows, inside, first, points)
        certain = np.unique(first)
        candidates = _distinct(rows, certain, np.setdiff1d(open_rows, certain))
        places, centres = [], []
        for place in candidates:
            own = points[first == place]
            centre = own.mean(axis=0) if len(own) else None
            others = candidates[candidates != place]
            if centre is None or self._clearance(rows[others], centre) < CLEAR:
                centre = self.facet_centre(rows, int(place), others)
            if centre is not None:
                # Onto the plane: rays and programs meet it only to their own tolerance.
                gap = rows[place, :-1] @ centre + rows[place, -1]
                places.append(place)
                centres.append(centre - gap * rows[place, :-1])
        return Facets(np.array(places, dtype=np.int64), np.array(centres), inside)

    def centre(self, rows: np.ndarray) -> np.ndarray | None:
        """The centre of the largest ball inside the rows; None if there is none of more than rounding."""
        return self._ball(rows, np.ones(len(rows)))

    def highest(self, rows: np.ndarray, form: np.ndarray) -> float:
        """An upper bound of a form (d+1,) on a region, by one program, rounded outward."""
        low, high = np.full(self.dimension, -1.0), np.full(self.dimension, 2.0)
        size = float(np.linalg.norm(form[:-1]))
        if size == 0.0:
            return float(form[-1])
        # A slope of length 1: the tolerances of the solver are absolute.
        found = self.programs.maximise(form[:-1] / size, rows[:, :-1], -rows[:, -1], low, high)
        if found is None:
            raise self.programs.trouble("a region that is there has no point")
        return float(form[:-1] @ found + form[-1]) + 10 * FEASIBILITY * size

    def _clearance(self, rows: np.ndarray, point: np.ndarray) -> float:
        return float((rows[:, :-1] @ point + rows[:, -1]).min(initial=np.inf))

    def _shoot(self, rows: np.ndarray, start: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first row that each ray (S, d) meets, and where (S, d)."""
        speed = rays @ rows[:, :-1].T
        gap = rows[:, :-1] @ start + rows[:, -1]
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(speed < 0.0, -np.maximum(gap, 0.0) / speed, np.inf)
        nearest = times.min(axis=1)
        # Rows that coincide are met together: the first of them stands for all.
        first = np.argmax(times <= nearest[:, None] + DISTANCE, axis=1)
        return first, start + nearest[:, None] * rays

    def _within_reach(self, rows: np.ndarray, certain: np.ndarray) -> np.ndarray:
        """Rows that cut the bounding box of the polytope of the certain rows."""
        known = rows[certain]
        low, high = np.full(self.dimension, -1.0), np.full(self.dimension, 2.0)
        box = np.zeros((2, self.dimension))
        for axis in range(self.dimension):
            for side, sign in enumerate((-1.0, 1.0)):
                cost = np.zeros(self.dimension)
                cost[axis] = sign
                found = self.programs.maximise(cost, known[:, :-1], -known[:, -1], low, high)
                box[side, axis] = float(side) if found is None else found[axis]
        middle, half = box.mean(axis=0), 0.5 * (box[1] - box[0]) + 1e-9
        lowest = rows[:, :-1] @ middle + rows[:, -1] - np.abs(rows[:, :-1]) @ half
        lowest[certain] = -1.0
        return np.flatnonzero(lowest < 0.0)

    def _add_normal_rays(
        self, rows: np.ndarray, chosen: np.ndarray, inside: np.ndarray, first: np.ndarray, points: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Shoot from inside straight at the chosen rows as well."""
        also, where = self._shoot(rows, inside, -rows[chosen, :-1])
        return np.concatenate([first, also]), np.concatenate([points, where])

    def facet_centre(self, rows: np.ndarray, place: int, others: np.ndarray) -> np.ndarray | None:
        """The centre of the largest ball of the facet that other rows leave of a row; None if they leave nothing."""
        normal = rows[place, :-1]
        flat = rows[others, :-1] - (rows[others, :-1] @ normal)[:, None] * normal
        widths = np.concatenate([np.linalg.norm(flat, axis=1), [0.0, 0.0]])
        return self._ball(np.concatenate([rows[others], rows[[place]], -rows[[place]]]), widths)

    def _ball(self, rows: np.ndarray, widths: np.ndarray) -> np.ndarray | None:
        d = self.dimension
        cost = np.zeros(d + 1)
        cost[d] = 1.0
        low, high = np.full(d + 1, -1.0), np.full(d + 1, 2.0)
        low[d] = 0.0
        matrix = np.hstack([rows[:, :-1], -widths[:, None]])
        found = self.programs.maximise(cost, matrix, -rows[:, -1], low, high)
        return None if found is None or found[d] < THIN else found[:d]


def _distinct(rows: np.ndarray, certain: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The places of the certain rows and of the others, sorted, each of those that coincide to rounding once."""
    places = np.concatenate([certain, others])
    chosen = rows[places]
    same = np.abs(chosen[:, None, :] - chosen[None, :, :]).max(axis=2) <= 10 * DISTANCE
    return np.sort(places[~np.tril(same, -1).any(axis=1)])
