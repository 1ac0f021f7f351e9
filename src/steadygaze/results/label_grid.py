"""Labels at the points of a grid: a picture of a map with too many regions to draw, painted chunk by chunk.

One and two parameters have one plane, the map itself; three have the planes where one of them is zero.
"""

import threading
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..compound import Compound
from ..labels import Kept
from ..perturbation import Domain
from ..polytopes.grid import ASIDE, shapes_on_grid
from ..tolerances import BESIDE
from .answer import Answer

SIDE = 900
"""Points along each side of a plane."""

NOTHING = 255
"""The code of points that no piece covers."""


def held_at(domain: Domain, axis: int) -> tuple[float, float]:
    """The value of a parameter held in sections: its theta (zero, or the low end of its range), and t beside it.

    Zero is often a border of the domain or a knot, where regions end.
    """
    low, high = float(domain.low[axis]), float(domain.high[axis])
    value = 0.0 if low <= 0.0 <= high else low
    return value, beside((value - low) / (high - low))


def beside(at: float) -> float:
    """A coordinate of t moved a little towards the middle of the domain."""
    return at + BESIDE if at < 0.5 else at - BESIDE


@dataclass(frozen=True, eq=False)
class GridPlane:
    """The labels of one plane. axes: its two coordinates of t; held: the third, its theta, and its t; None for a map.

    label and attention (SIDE, SIDE) hold `Kept` codes, or NOTHING; winner the class that wins; inconsistency is ai;
    reach (2, SIDE, SIDE) has proved bounds of ai on the region around each point. Rows count upwards.
    """

    axes: tuple[int, int]
    held: tuple[int, float, float] | None
    label: np.ndarray
    attention: np.ndarray
    winner: np.ndarray
    inconsistency: np.ndarray
    reach: np.ndarray


class LabelGrid:
    """The planes of a map, painted by one answer after another, from any thread.

    top: the largest finite bound of ai where the attention is lost.
    """

    def __init__(self, compound: Compound) -> None:
        domain = compound.domain
        self.lock = threading.Lock()
        self.top = 0.0
        if domain.dimension < 3:
            self.planes = [_blank((0, 1), None)]
            return
        self.planes = []
        for axes in combinations(range(3), 2):
            axis = 3 - sum(axes)
            self.planes.append(_blank((axes[0], axes[1]), (axis, *held_at(domain, axis))))

    def paint(self, answer: Answer) -> None:
        """Paint the pieces of an answer."""
        joint = answer.joint
        label = joint.label_codes
        lost = answer.reach[joint.attention == Kept.NO, 1]
        with self.lock:
            self.top = max(self.top, float(lost[np.isfinite(lost)].max(initial=0.0)))
        for plane in self.planes:
            axis, at = (None, 0.0) if plane.held is None else (plane.held[0], plane.held[2])
            pieces = shapes_on_grid(joint.polytopes, axis, at, SIDE)
            row, column = np.nonzero(pieces >= 0)
            found = pieces[row, column]
            held = None if axis is None else (axis, at)
            points = _in_plane(plane.axes, held, row, column, joint.polytopes.dimension)
            region = joint.pieces.region[found]
            values, (low, high) = answer.inconsistency_at(region, points), answer.labels.reach[region].T
            with self.lock:
                plane.label[row, column], plane.attention[row, column] = label[found], joint.attention_codes[found]
                plane.winner[row, column], plane.inconsistency[row, column] = joint.pieces.winner[found], values
                plane.reach[0, row, column] = np.nextafter(low.astype(np.float32), np.float32(-np.inf))
                plane.reach[1, row, column] = np.nextafter(high.astype(np.float32), np.float32(np.inf))

    def points(self, coordinates: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Label, attention and ai (N,) of all points of the planes, and the points (N, D) in t."""
        columns: list[tuple[np.ndarray, ...]] = []
        for plane in self.planes:
            at = None if plane.held is None else (plane.held[0], plane.held[2])
            row, column = np.indices(plane.label.shape).reshape(2, -1)
            points = _in_plane(plane.axes, at, row, column, coordinates)
            columns.append((plane.label.ravel(), plane.attention.ravel(), plane.inconsistency.ravel(), points))
        label, attention, ai, points = (np.concatenate(column) for column in zip(*columns, strict=True))
        return label, attention, ai, points


def _in_plane(
    axes: tuple[int, int], held: tuple[int, float] | None, row: np.ndarray, column: np.ndarray, coordinates: int
) -> np.ndarray:
    """Points (N, D) in t at rows and columns (N,) of the grid of a plane."""
    points = np.empty((len(row), coordinates))
    points[:, axes[0]], points[:, axes[1]] = (column + ASIDE[0]) / SIDE, (row + ASIDE[1]) / SIDE
    if held is not None:
        points[:, held[0]] = held[1]
    return points


def _blank(axes: tuple[int, int], held: tuple[int, float, float] | None) -> GridPlane:
    codes = np.full((2, SIDE, SIDE), NOTHING, dtype=np.uint8)
    return GridPlane(
        axes, held, codes[0], codes[1], np.zeros((SIDE, SIDE), dtype=np.int16),
        np.full((SIDE, SIDE), np.nan, dtype=np.float32), np.full((2, SIDE, SIDE), np.nan, dtype=np.float32),
    )  # fmt: skip
