"""Proved enclosures of the margin and the inconsistency on boxes of thetas."""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..attention.filters import Intervals
from ..attention.options import AttentionOptions
from ..errors import ModelError
from ..network.graph import Graph
from ..perturbation import Perturbed
from ..tolerances import LEAST, MAX_MAP_PARAMETERS, SMALLEST_WEIGHT, UNIT, gamma
from .decisions import OPEN, near_kinks
from .forms import Forms, pixels
from .norms import DEEP
from .passes import Passed, Readout, decide_layers, forward, gradients, inconsistencies, reaches

ORIGINAL_ROOM = 64  # generators of every layer at the unperturbed image of a deep network
CACHED = 1 << 20  # most numbers in the arrays of one batch of boxes: eight megabytes


@dataclass(frozen=True, eq=False)
class Enclosures:
    """Proved bounds on B boxes: margin and inconsistency (B, 2).

    unstable (B,) counts the ReLUs and windows that may split a box. pull (B, d) hints which parameter to split (see
    `passes.Passed`).
    """

    margin: np.ndarray
    inconsistency: np.ndarray
    unstable: np.ndarray
    pull: np.ndarray


class Hulls(NamedTuple):
    """Proved bounds on B polytopes with V corners each: inconsistency (B, 2), and f_label minus each of R other logits.

    Each difference is within radius (B, R) of an affine function with the values leads (B, V, R) at the corners.
    """

    leads: np.ndarray
    radius: np.ndarray
    inconsistency: np.ndarray

    @property
    def margin(self) -> np.ndarray:
        """Proved bounds (B, 2) of the margin; infinite if NaN."""
        with np.errstate(invalid="ignore"):
            low = (self.leads.min(axis=1) - self.radius).min(axis=1, initial=np.inf)
            high = (self.leads.max(axis=1) + self.radius).min(axis=1, initial=np.inf)
        return np.stack([np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)], axis=1)


class Bounder:
    """Bounds on boxes of the domain for one image, label and map comparison; they hold over the real numbers.

    Every layer may add up to `room` generators (see `passes`); 0 leaves only the affine form with a remainder.
    """

    def __init__(
        self, graph: Graph, perturbed: Perturbed, label: int, attention: AttentionOptions, *, room: int = 0
    ) -> None:
        self.perturbed, self.attention, self.room = perturbed, attention, room
        self.segments, self.layers = graph.steps, graph.layers
        if min((step.smallest for steps in self.segments for step in steps), default=1.0) < SMALLEST_WEIGHT:
            raise ModelError(
                f"a nonzero weight is smaller than {SMALLEST_WEIGHT:g}: products with it vanish in float64; "
                "set such weights to zero"
            )
        everything = np.eye(graph.classes, dtype=np.int64)
        rivals = np.delete(np.arange(graph.classes), label)
        self.margins = Readout.of(self.segments[-1], everything[label] - everything[rivals])
        self.classes = graph.classes

    def with_room(self, room: int) -> "Bounder":
        """A copy with another `room` for generators."""
        _ = self.original  # computed once for both
        other = copy(self)
        other.room = room
        return other

    @cached_property
    def logits(self) -> Readout:
        """The functions of the last hidden values whose gradients are the maps."""
        return Readout.of(self.segments[-1], self.attention.targets(self.classes))

    @property
    def neurons(self) -> int:
        """The number of bits in a pattern of the classifier."""
        return sum(map(len, self.layers))

    @property
    def batch(self) -> int:
        """The number of boxes bounded at a time."""
        widest = max([self.perturbed.x0.size, *(step.sizes[1] for steps in self.segments for step in steps)])
        return int(np.clip(CACHED // (widest * (2 + self.perturbed.domain.dimension)), 1, 64))

    def bound(self, cell: int, low: np.ndarray, high: np.ndarray, attention: np.ndarray | None = None) -> Enclosures:
        """Bound boxes with corners low and high (B, d) in t, all in one knot cell.

        The inconsistency is bounded where `attention` (B,) is true (by default everywhere), and is unknown elsewhere.
        """
        inconsistency = np.tile([0.0, np.inf], (len(low), 1))
        if not len(low):
            return Enclosures(inconsistency, inconsistency, np.zeros(0, dtype=np.int64), np.zeros((0, low.shape[1])))
        with np.errstate(over="ignore", invalid="ignore"):
            passed = self.pass_forward(cell, low, high)
            chosen = np.arange(len(low)) if attention is None else np.flatnonzero(attention)
            if len(chosen):
                inconsistency[chosen] = self.inconsistency_bounds(passed.take(chosen), cell, low[chosen], high[chosen])
            return Enclosures(self.margin_bounds(passed), inconsistency, passed.unstable, self._pull(passed))

    def _pull(self, passed: Passed) -> np.ndarray:
        """How much each parameter (B, d) moves what is open: with many parameters, counted in units of the logits.

        Up to three parameters, neurons of unknown sign alone decide: exact regions follow. With more, boxes are halved
        until bounds decide them. So the affine part of every lead of unknown sign counts, and a neuron as much as it
        can move the leads. A parameter that moves none of them is never split.
        """
        d = self.perturbed.domain.dimension
        if d <= MAX_MAP_PARAMETERS:
            return passed.pull
        least, most = self.margins.bounds(passed.last)
        # Logits that another one surely exceeds do not decide the margin.
        is_open = (least <= 0.0) & (most >= 0.0) & (least <= most.min(axis=1, initial=np.inf, keepdims=True))
        return np.nan_to_num(passed.pull + np.einsum("bkr,br->bk", self.margins.moves(passed.last, d), is_open))

    @cached_property
    def _weights(self) -> list[np.ndarray] | None:
        """How much the neurons of every layer count in the pull."""
        if self.perturbed.domain.dimension <= MAX_MAP_PARAMETERS:
            return None
        return reaches(self.segments, np.concatenate([self.margins.row, self.logits.row]))

    def bound_hulls(self, cell: int, vertices: np.ndarray, around: float, *, asks_attention: bool) -> Hulls:
        """Bound the hulls of vertices (B, V, d) in t, all in one knot cell; shorter lists repeat a vertex.

        A hull includes the points of the knot cell within `around` of it along every axis.
        """
        low, high = vertices.min(axis=1) - around, vertices.max(axis=1) + around
        with np.errstate(over="ignore", invalid="ignore"):
            image = self.image(cell, low, high, vertices)
            passed = forward(self.segments, self.layers, image, self.perturbed.domain.dimension)
            inconsistency = np.tile([0.0, np.inf], (len(low), 1))
            if asks_attention:
                inconsistency = self.inconsistency_bounds(passed, cell, low, high)
            assert image.corners is not None
            return Hulls(*self.margins.at_corners(passed.last, image.corners), inconsistency)

    def near_zero(self, cell: int, vertices: np.ndarray, together: float) -> np.ndarray:
        """Which neurons (B, V, n) may be on their kink at vertices (B, V, d) of hulls in one knot cell.

        A ReLU may if |value| ≤ `together`, an entry if it is within `together` of the largest of its window and some
        other entry is, too. Entries that are equal to an earlier one on the whole hull never win, and never count.
        """
        around = 8.0 * UNIT
        low, high = vertices.min(axis=1) - around, vertices.max(axis=1) + around
        found = [np.zeros((*vertices.shape[:2], 0), dtype=bool)]
        with np.errstate(over="ignore", invalid="ignore"):
            image = self.image(cell, low, high, vertices)
            for layer, decided in zip(self.layers, decide_layers(self.segments, self.layers, image), strict=True):
                found.append(near_kinks(layer, decided.inputs, together))
        return np.concatenate(found, axis=2)

    def pass_forward(self, cell: int, low: np.ndarray, high: np.ndarray) -> Passed:
        """Enclosures of every neuron on the boxes."""
        image = self.image(cell, low, high)
        return forward(self.segments, self.layers, image, self.perturbed.domain.dimension, self.room, self._weights)

    @property
    def is_deep(self) -> bool:
        """Whether errors are bounded by their 2-norm (see `norms`)."""
        return len(self.layers) > DEEP

    def image(self, cell: int, low: np.ndarray, high: np.ndarray, vertices: np.ndarray | None = None) -> Forms:
        """The pixels on boxes, or on hulls of vertices inside them, in one knot cell."""
        return pixels(self.perturbed, cell, low, high, vertices, is_deep=self.is_deep)

    def margin_bounds(self, passed: Passed) -> np.ndarray:
        """Bounds (B, 2) of the margin: the smallest lead of the label's logit over another one."""
        least, most = self.margins.bounds(passed.last)
        return np.stack([least.min(axis=1, initial=np.inf), most.min(axis=1, initial=np.inf)], axis=1)

    def inconsistency_bounds(self, passed: Passed, cell: int, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Bounds (B, 2) of the inconsistency."""
        maps = self._maps(passed)
        flat = maps.reshape(*maps.centre.shape[:2], -1)
        return inconsistencies(flat, *self._expected(cell, low, high), self.attention.distance)

    def _maps(self, passed: Passed) -> Intervals:
        """The filtered maps (B, K', C, H, W)."""
        maps = gradients(self.segments, passed, self.logits)
        return self.attention.filter.enclose(maps.reshape(*maps.centre.shape[:2], *self.perturbed.x0.shape))

    @cached_property
    def is_original_certain(self) -> bool:
        """Whether every bit is proved at the unperturbed image; a ReLU at 0 is off."""
        return not any((bits == OPEN).any() for bits in self._at_original.bits)

    @property
    def original_margin(self) -> tuple[float, float]:
        """Proved bounds of the margin at the unperturbed image; an end may be NaN."""
        low, high = self.margin_bounds(self._at_original)[0]
        return float(low), float(high)

    @cached_property
    def _at_original(self) -> Passed:
        image = self.perturbed.x0.reshape(1, 1, -1)
        # A pixel read as v/255 was rounded once; 0 and 1 are exact.
        error = np.where(image[0] < 1.0, 1.01 * UNIT * image[0], 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            exact = Forms(image, error)
            if not self.is_deep:
                return forward(self.segments, self.layers, exact)
            # Here, only rounding opens neurons, few enough for generators.
            return forward(self.segments, self.layers, exact.with_norms(), room=ORIGINAL_ROOM)

    @cached_property
    def original(self) -> Intervals:
        """The filtered maps (K', C, H, W) of the unperturbed image."""
        # If a neuron's sign is unknown at this one point, its activity is unknown, and so is the map.
        maps = self._maps(self._at_original)
        return maps.reshape(*maps.centre.shape[1:])

    def _expected(self, cell: int, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the expected maps over boxes, (B or 1, K', pixels) each."""
        axis, count = self.perturbed.moving_axis, len(self.original.centre)
        if axis is None:
            least, most = self.original.ends
            return least.reshape(1, count, -1), most.reshape(1, count, -1)
        domain = self.perturbed.domain
        ends = []
        for corner in (low, high):
            theta = domain.to_theta(corner[:, axis], axis)[:, None, None]
            base, offset, slope, error = self._transports[cell]
            centre = base + offset + theta * slope
            ends.append((centre - error, centre + error))
        return np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])

    @cached_property
    def _transports(self) -> list[tuple[np.ndarray, ...]]:
        """The expected maps on every knot cell as base + offset + θ_T · slope, and a bound of their error.

        Each is (K', pixels). The error uses the largest terms on any cell, because rounding may push the corner of a
        box beyond a knot, where the next cell's maps hold.
        """
        maps, radius, axis = self.original.centre, self.original.radius, self.perturbed.moving_axis
        domain, cells = self.perturbed.domain, self.perturbed.cells
        farthest = float(max(abs(domain.low[axis]), abs(domain.high[axis])))
        moved = [part for cell in cells if (part := self.perturbed.transport(maps, cell)) is not None]
        spread = [part for cell in cells if (part := self.perturbed.transport(radius, cell)) is not None]
        # An expected map mixes two shifted maps; its error mixes theirs.
        ends = [
            np.abs(radius + offset + end[axis] * slope)
            for cell, (offset, slope) in zip(cells, spread, strict=True)
            for end in (cell.low, cell.high)
        ]
        sizes = [np.abs(offset) + farthest * np.abs(slope) for offset, slope in (*moved, *spread)]
        error = np.max(ends, axis=0) * (1.0 + 1e-9)
        error = error + gamma(32) * (np.abs(maps) + radius + np.max(sizes, axis=0)) + LEAST
        return [tuple(part.reshape(len(maps), -1) for part in (maps, offset, slope, error)) for offset, slope in moved]
