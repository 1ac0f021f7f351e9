"""Encloses the margin and the inconsistency on boxes of thetas; the enclosures are proved."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..attention.filters import Intervals
from ..attention.measures.distance import DISTANCE
from ..attention.options import AttentionOptions
from ..errors import ModelError
from ..network.graph import Graph
from ..perturbation import Perturbed
from ..tolerances import LEAST, MAX_MAP_PARAMETERS, SMALLEST_WEIGHT, UNIT, gamma, up
from .decisions import OFF, ON, OPEN, near_kinks
from .deep import DEEP
from .expected import Ends, MovedAlong
from .explained import ENCLOSURES
from .forms import Forms, pixels
from .passes import Passed, Readout, decide_layers, forward, gradients, reaches

ORIGINAL_ROOM = 64  # generators that every layer may add at the unperturbed image of a deep network
CACHED = 1 << 20  # the most numbers in the arrays of one batch of boxes: eight megabytes


@dataclass(frozen=True, eq=False)
class Enclosures:
    """Proved bounds on B boxes: margin and inconsistency (B, 2).

    unstable (B,) counts the ReLUs and windows that may split a box. pull (B, d) suggests which parameter to split (see
    `passes.Passed`).
    """

    margin: np.ndarray
    inconsistency: np.ndarray
    unstable: np.ndarray
    pull: np.ndarray


class Hulls(NamedTuple):
    """Proved bounds on B polytopes with V corners: the inconsistency (B, 2), and f_label minus each of R other logits.

    Each difference is within radius (B, R) of an affine function with the values leads (B, V, R) at the corners.
    """

    leads: np.ndarray
    radius: np.ndarray
    inconsistency: np.ndarray

    @property
    def margin(self) -> np.ndarray:
        """Proved bounds (B, 2) on the margin; infinite if NaN."""
        with np.errstate(invalid="ignore"):
            low = (self.leads.min(axis=1) - self.radius).min(axis=1, initial=np.inf)
            high = (self.leads.max(axis=1) + self.radius).min(axis=1, initial=np.inf)
        return np.stack([np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)], axis=1)


class Bounder:
    """Bounds boxes of the domain for one image, label and question about attention; holds over the real numbers.

    Every layer may add up to `room` generators (see `passes`); with 0, values are affine forms with a remainder alone.
    `prove_original` returns the bits (n,) of every layer at the unperturbed image, or None if they are not proved.
    """

    def __init__(
        self, graph: Graph, perturbed: Perturbed, label: int, attention: AttentionOptions, *, room: int = 0,
        prove_original: Callable[[], Sequence[np.ndarray] | None] | None = None,
    ) -> None:  # fmt: skip
        self.perturbed, self.attention, self.room, self.prove_original = perturbed, attention, room, prove_original
        self.segments, self.layers, self.aim_steps = graph.steps, graph.layers, graph.aim_steps
        if (
            min((step.smallest for steps in (*self.segments, self.aim_steps) for step in steps), default=1.0)
            < SMALLEST_WEIGHT
        ):
            raise ModelError(
                f"a nonzero weight is smaller than {SMALLEST_WEIGHT:g}: products with it vanish in float64; "
                "set such weights to zero"
            )
        everything = np.eye(graph.classes, dtype=np.int64)
        rivals = np.delete(np.arange(graph.classes), label)
        kind = ENCLOSURES.get(type(attention.method))
        self.explained = None if kind is None else kind(graph, attention)
        self.margins = Readout.of(self.segments[-1], everything[label] - everything[rivals])
        self.classes = graph.classes

    def with_room(self, room: int) -> "Bounder":
        """A copy with a different `room` for generators."""
        _ = self.original  # computed once for both
        other = copy(self)
        other.room = room
        return other

    @cached_property
    def aims(self) -> Readout:
        """The functions of the last hidden values whose gradients are the maps."""
        return Readout.of(self.aim_steps, self.attention.targets(self.classes))

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
        """How much each parameter (B, d) moves undecided neurons and leads; with many parameters, in units of logits.

        Up to three parameters, only neurons of unknown sign count, because exact regions follow. With more, boxes are
        halved until bounds decide them. So the affine part of every lead of unknown sign counts, and neurons count by
        how much they can move the leads. A parameter that moves none of these is never split.
        """
        d = self.perturbed.domain.dimension
        if d <= MAX_MAP_PARAMETERS:
            return passed.pull
        least, most = self.margins.bounds(passed.last)
        # A rival that another rival surely exceeds does not decide the margin.
        is_open = (least <= 0.0) & (most >= 0.0) & (least <= most.min(axis=1, initial=np.inf, keepdims=True))
        return np.nan_to_num(passed.pull + np.einsum("bkr,br->bk", self.margins.moves(passed.last, d), is_open))

    @cached_property
    def _counts(self) -> list[np.ndarray] | None:
        """The weights of every layer's neurons in the pull."""
        if self.perturbed.domain.dimension <= MAX_MAP_PARAMETERS:
            return None
        return reaches(self.segments, np.concatenate([self.margins.row, self.aims.row]))

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
                inconsistency = self.inconsistency_bounds(passed, cell, low, high, image)
            assert image.corners is not None
            return Hulls(*self.margins.at_corners(passed.last, image.corners), inconsistency)

    def inconsistency_under(self, cell: int, place: np.ndarray, bits: Sequence[np.ndarray]) -> np.ndarray:
        """Bounds (2,) on the inconsistency at a point (d,) in t of a knot cell, given its proved bits (n,) by layer."""
        low = place[None]
        with np.errstate(over="ignore", invalid="ignore"):
            passed = _with_bits(self.pass_forward(cell, low, low), bits)
            return self.inconsistency_bounds(passed, cell, low, low)[0]

    def near_zero(self, cell: int, vertices: np.ndarray, together: float) -> np.ndarray:
        """Which neurons (B, V, n) may be on their kink at vertices (B, V, d) of hulls in one knot cell.

        A ReLU may be if |value| ≤ `together`; an entry, if it and another entry are within `together` of the largest
        entry of their window. An entry that equals an earlier one on the whole hull never wins and does not count.
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
        return forward(self.segments, self.layers, image, self.perturbed.domain.dimension, self.room, self._counts)

    @property
    def is_deep(self) -> bool:
        """Whether errors are bounded by their 2-norm (see `deep`)."""
        return len(self.layers) > DEEP

    def image(self, cell: int, low: np.ndarray, high: np.ndarray, vertices: np.ndarray | None = None) -> Forms:
        """The pixels on boxes, or on hulls of vertices inside them, in one knot cell."""
        return pixels(self.perturbed, cell, low, high, vertices, is_deep=self.is_deep)

    def margin_bounds(self, passed: Passed) -> np.ndarray:
        """Bounds (B, 2) on the margin: the smallest lead of the label's logit over another logit."""
        least, most = self.margins.bounds(passed.last)
        return np.stack([least.min(axis=1, initial=np.inf), most.min(axis=1, initial=np.inf)], axis=1)

    def inconsistency_bounds(
        self, passed: Passed, cell: int, low: np.ndarray, high: np.ndarray, image: Forms | None = None
    ) -> np.ndarray:
        """Bounds (B, 2) on the inconsistency; image: the pixels, if they are known on hulls inside the boxes."""
        measure, weights = self.attention.measure, self._weights(cell, low, high)
        expected = self._expected.ends(cell, low, high)
        if self.explained is not None:
            maps = self.attention.filter.enclose(self.explained.maps(image or self.image(cell, low, high)))
            return measure.enclose(maps, expected, weights, self.attention.distance)
        found = gradients(self.segments, passed, self.aims)
        if self.attention.method.factor_baseline is not None:
            factor = self._factor(self.image(cell, low, high))
            if measure == DISTANCE and self.attention.filter.is_linear:
                # Actual and expected maps have the same factor: enclose their difference instead of both.
                maps = self._filtered(product(difference(found, expected), factor))
                nothing = np.zeros((1, *expected[0].shape[1:]))
                return measure.enclose(maps, (nothing, nothing), weights, self.attention.distance)
            moved = self._filtered(product(Intervals.between(*expected), factor))
            least, most = moved.reshape(*moved.centre.shape[:2], -1).ends
            found, expected = product(found, factor), (least, most)
        return measure.enclose(self._filtered(found), expected, weights, self.attention.distance)

    def _factor(self, image: Forms) -> Intervals:
        """The image minus the method's baseline, (B, 1, pixels)."""
        baseline = self.attention.method.factor_baseline
        assert baseline is not None
        least, most = image.bounds()
        # Pixels are clipped, whatever the bounds on their forms.
        least, most = np.clip(least, 0.0, 1.0) - baseline, np.clip(most, 0.0, 1.0) - baseline
        found = Intervals.between(least, most)
        slack = gamma(2) * (np.abs(found.centre) + found.radius + abs(baseline))
        return Intervals(found.centre[:, None], (found.radius + slack)[:, None])

    def _filtered(self, maps: Intervals) -> Intervals:
        """Filtered maps (B, K', C, H, W) of maps (B, K', pixels)."""
        return self.attention.filter.enclose(maps.reshape(*maps.centre.shape[:2], *self.perturbed.x0.shape))

    @cached_property
    def is_original_certain(self) -> bool:
        """Whether every bit is proved at the unperturbed image; a ReLU at 0 is off."""
        return not any((bits == OPEN).any() for bits in self._at_original.bits)

    @property
    def original_margin(self) -> tuple[float, float]:
        """Proved bounds on the margin at the unperturbed image; an end may be NaN."""
        low, high = self.margin_bounds(self._at_original)[0]
        return float(low), float(high)

    @cached_property
    def _original_image(self) -> Forms:
        image = self.perturbed.x0.reshape(1, 1, -1)
        # A pixel read as v/255 was rounded once; 0 and 1 are exact.
        return Forms(image, np.where(image[0] < 1.0, 1.01 * UNIT * image[0], 0.0))

    @cached_property
    def _at_original(self) -> Passed:
        exact = self._original_image
        with np.errstate(over="ignore", invalid="ignore"):
            if not self.is_deep:
                passed = forward(self.segments, self.layers, exact)
            else:
                # At this point only rounding leaves neurons undecided: few enough for generators.
                passed = forward(self.segments, self.layers, exact.with_norms(), room=ORIGINAL_ROOM)
        proved = None if self.prove_original is None else self.prove_original()
        return passed if proved is None else _with_bits(passed, proved)

    @cached_property
    def original(self) -> Intervals:
        """The filtered maps (K', C, H, W) of the unperturbed image."""
        if self.explained is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                found = self.attention.filter.enclose(self.explained.maps(self._original_image))
            return found.reshape(*found.centre.shape[1:])
        # If the sign of a neuron is unknown even at this single point, so is the map.
        maps = gradients(self.segments, self._at_original, self.aims)
        if self.attention.method.factor_baseline is not None:
            maps = product(maps, self._factor(self._original_image))
        filtered = self._filtered(maps)
        return filtered.reshape(*filtered.centre.shape[1:])

    @cached_property
    def expected_radius(self) -> np.ndarray:
        """How far expected maps (K', C, H, W) may be from their centres at any theta, before the filter."""
        return self._expected.original.radius * self.attention.largest_factor

    @cached_property
    def _expected(self) -> MovedAlong:
        """The filtered maps of the unperturbed image, or the gradients if the method multiplies them by the image."""
        if self.attention.method.factor_baseline is None:
            return MovedAlong(self.perturbed, self.original)
        found = gradients(self.segments, self._at_original, self.aims)
        return MovedAlong(self.perturbed, found.reshape(found.centre.shape[1], *self.perturbed.x0.shape))

    @cached_property
    def _mask(self) -> MovedAlong | None:
        """The weights of the mask; they are exact."""
        mask = self.attention.mask
        if mask is None:
            return None
        return MovedAlong(self.perturbed, Intervals(mask.weights[None], np.zeros((1, *mask.weights.shape))))

    def _weights(self, cell: int, low: np.ndarray, high: np.ndarray) -> Ends | None:
        """Lower and upper ends of the mask's weights over boxes, (B or 1, pixels) each."""
        if self._mask is None:
            return None
        least, most = (end[:, 0] for end in self._mask.ends(cell, low, high))
        return np.clip(least, 0.0, 1.0), np.clip(most, 0.0, 1.0)


def _with_bits(passed: Passed, bits: Sequence[np.ndarray]) -> Passed:
    """A pass over one point with all bits known."""
    return replace(passed, bits=tuple(np.where(own, ON, OFF).astype(np.uint8)[None] for own in bits))


def product(left: Intervals, right: Intervals) -> Intervals:
    """Intervals that contain all products of numbers in two intervals, with broadcasting.

    >>> found = product(Intervals(np.array([2.0]), np.array([1.0])), Intervals(np.array([0.0]), np.array([0.5])))
    >>> float(found.centre[0]), float(found.radius[0]) >= 1.5
    (0.0, True)
    """
    sizes = np.abs(left.centre), np.abs(right.centre)
    radius = sizes[0] * right.radius + left.radius * (sizes[1] + right.radius)
    is_zero = (sizes[0] + left.radius == 0.0) | (sizes[1] + right.radius == 0.0)
    radius = (radius + gamma(2) * sizes[0] * sizes[1]) * up(6) + LEAST
    return Intervals(left.centre * right.centre, np.where(is_zero, 0.0, radius))


def difference(found: Intervals, ends: tuple[np.ndarray, np.ndarray]) -> Intervals:
    """Intervals that contain all differences between numbers in intervals and numbers between two ends."""
    other = Intervals.between(*ends)
    size = np.abs(found.centre) + np.abs(other.centre) + found.radius + other.radius
    radius = (found.radius + other.radius + gamma(2) * size) * up(4) + LEAST
    return Intervals(found.centre - other.centre, np.where(size == 0.0, 0.0, radius))
