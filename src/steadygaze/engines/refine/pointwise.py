"""Computes margins, their gradients and inconsistencies at single thetas in float64, with bounds on their rounding.

Passes use the linear steps of the graph, so large networks need no matrices of whole layers.
"""

from collections import deque
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...attention.inconsistency import expected_at, original_gradients, single_curve
from ...attention.measures import Expectation
from ...attention.measures.distance import DISTANCE
from ...attention.methods import GradientMethod
from ...bounds.bounder import Bounder
from ...network.doubts import doubtful_bits
from ...network.graph import patterns, preactivations
from ...network.steps import Segment, downwards
from ...question import Question
from ...tolerances import UNIT, gamma
from .point_rounding import PROBES, Rounding, bound_rounding, map_errors, margin_slack

Segments = tuple[Segment, ...]

NUMBERS = 1 << 19  # numbers of one batch in the widest layer: 4 MiB, and moderate for all layers of a deep network
LARGEST_BATCH = 64  # the most thetas in one batch
STEP = 2.0**-20  # the step, as a share of the domain, of the differences that give the slope of a curved image


class Trace(NamedTuple):
    """A forward pass of B images: pixels (B, n), the inputs (B, n) of all ReLUs by layer, and the logits (B, K)."""

    pixels: np.ndarray
    values: list[np.ndarray]
    logits: np.ndarray


class Measured(NamedTuple):
    """Margins (B,) and inconsistencies (B,) at thetas, each with a bound (B,) on its rounding error."""

    margin: np.ndarray
    margin_slack: np.ndarray
    inconsistency: np.ndarray  # NaN if not wanted
    inconsistency_slack: np.ndarray  # infinite where the map is uncertain


class PointPasses:
    """Float64 passes of one problem at single thetas; counts its work. `original`: see the property, if known."""

    def __init__(self, question: Question, original: np.ndarray | None = None) -> None:
        self.question, self.perturbed = question, question.perturbed
        self.segments, self.layers = question.graph.steps, question.graph.layers
        self.aimed = (*self.segments[:-1], question.graph.aim_steps)
        self.classes = question.attention.chosen(question.model.classes)
        self.forward_passes, self.multiplications = 0, 0
        self._given = original
        self._expected: dict[int, list[tuple[np.ndarray, np.ndarray | None]]] = {}

    @cached_property
    def work(self) -> int:
        """Multiplications of one pass with one image, or with one row backward."""
        return max(1, sum(step.work for segment in self.segments for step in segment))

    @cached_property
    def original(self) -> np.ndarray:
        """The computed filtered maps (K', C, H, W) of the unperturbed image."""
        return self._filtered(self.maps(self.unperturbed))[0] if self._given is None else self._given

    @cached_property
    def map_size(self) -> float:
        """The size of the original maps, summed over the classes."""
        return float(self.size(self.original).sum())

    @property
    def loss_scale(self) -> float:
        """The scale of losses: the size of the original maps for the distance, 1 for other losses, which are shares."""
        return self.map_size if self.question.attention.measure == DISTANCE else 1.0

    @cached_property
    def unperturbed(self) -> Trace:
        """The forward pass of the unperturbed image."""
        return self._forward(self.perturbed.x0.reshape(1, -1))

    def trace(self, thetas: np.ndarray) -> Trace:
        """The forward pass at thetas (B, d)."""
        return self._forward(self.perturbed.images(thetas).reshape(len(thetas), -1))

    def margins(self, thetas: np.ndarray) -> np.ndarray:
        """Margins (B,) at thetas (B, d)."""
        parts = [self.margins_of(self.trace(thetas[part]).logits) for part in self.batches(len(thetas), 1)]
        return np.concatenate([np.zeros(0), *parts])

    def margins_of(self, logits: np.ndarray) -> np.ndarray:
        """Margins (B,) of logits (B, K)."""
        return logits[:, self.question.label] - np.delete(logits, self.question.label, axis=1).max(axis=1)

    def slopes(self, thetas: np.ndarray) -> np.ndarray:
        """Gradients (B, d) of the margin with respect to the unit cube, on the affine pieces at the thetas."""
        slopes = np.zeros(thetas.shape)
        for part in self.batches(len(thetas), 1):
            trace = self.trace(thetas[part])
            pixels = self.pixel_gradients(self.against_rival(trace.logits)[:, None], trace)
            for number, theta in enumerate(thetas[part]):
                image, slope = self.unclipped(theta)
                slope = np.where((image > 0.0) & (image < 1.0), slope, 0.0)
                slopes[part.start + number] = slope @ pixels[number, 0] * self.perturbed.domain.widths
        return slopes

    def inconsistencies(self, thetas: np.ndarray) -> np.ndarray:
        """The inconsistency (B,) at thetas (B, d)."""
        parts = self.batches(len(thetas), len(self.classes))
        values = [self.distances(thetas[part], self.maps(self.trace(thetas[part]))) for part in parts]
        return np.concatenate([np.zeros(0), *values])

    def distances(self, thetas: np.ndarray, maps: np.ndarray) -> np.ndarray:
        """The losses (B,) of unfiltered maps (B, K', pixels) at thetas (B, d)."""
        expected, weights = self._expected_at(thetas)
        if self.question.attention.measure == DISTANCE:
            return self.size(self._filtered(maps) - expected).sum(axis=1)
        return self.question.attention.losses(self._filtered(maps), expected, weights)

    def _expected_at(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Expected maps (B or 1, K', C, H, W) and weights of the mask (B or 1, H, W) at thetas (B, d)."""
        is_same = self.perturbed.moving_axis is None and self.question.attention.method.factor_baseline is None
        found = [self._expectation(theta) for theta in thetas[: 1 if is_same else None]]
        weights = [own for _, own in found if own is not None]
        return np.stack([maps for maps, _ in found]), np.stack(weights) if weights else None

    def measure(self, thetas: np.ndarray, *, has_attention: bool) -> Measured:
        """Margins, and inconsistencies if wanted, at thetas (B, d), with bounds on their rounding."""
        table = np.full((4, len(thetas)), np.nan)
        table[3] = np.inf
        for part in self.batches(len(thetas), 2 * len(self.classes) if has_attention else PROBES):
            trace = self.trace(thetas[part])
            rounding = bound_rounding(self, thetas[part], trace)
            table[0, part] = self.margins_of(trace.logits)
            table[1, part] = margin_slack(self, trace, rounding, self.against_rival(trace.logits)[:, None])[:, 0]
            if has_attention:
                maps = self.maps(trace)
                table[2, part] = self.distances(thetas[part], maps)
                table[3, part] = self._inconsistency_slack(trace, rounding, table[2, part], thetas[part], maps)
        return Measured(*table)

    def _inconsistency_slack(
        self, trace: Trace, rounding: Rounding, values: np.ndarray, thetas: np.ndarray, maps: np.ndarray
    ) -> np.ndarray:
        """Bounds (B,) on the error of the losses `values` (B,) of unfiltered maps (B, K', pixels) at thetas (B, d)."""
        if not isinstance(self.question.attention.method, GradientMethod):
            return self._enclosed_slack(thetas, values)
        # Moving a map does not enlarge its error. The maps of the unperturbed image have errors, too.
        errors = map_errors(self, trace) + self._original_error
        if self.question.attention.measure == DISTANCE:
            # Rounding of the differences and of the sums in the norms.
            errors += (
                4.0 * (self.perturbed.x0.size + len(self.classes) + 8) * UNIT * (values + 2.0 * self._largest_size)
            )
        else:
            errors = self._loss_errors(thetas, self._filtered(maps), errors)
        for layer, value, total in zip(self.layers, trace.values, rounding.total, strict=False):
            errors[doubtful_bits(layer, value, total).any(axis=1)] = np.inf
        return errors

    def _enclosed_slack(self, thetas: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Bounds (B,) on the error of losses (B,), from proved bounds at the thetas (B, d) themselves."""
        places, cells = self.perturbed.domain.to_unit(thetas), [self.perturbed.cell_of(theta) for theta in thetas]
        bounds = [self._bounder.bound(cell.index, *[at[None]] * 2) for cell, at in zip(cells, places, strict=True)]
        low, high = np.concatenate([found.inconsistency for found in bounds]).T
        return np.where(high - low < np.inf, np.maximum(np.maximum(high - values, values - low), 0.0), np.inf)

    @cached_property
    def _bounder(self) -> Bounder:
        return Bounder(self.question.graph, self.perturbed, self.question.label, self.question.attention)

    def _loss_errors(self, thetas: np.ndarray, maps: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Bounds (B,) on the error of losses, given bounds `errors` (B,) on those of filtered maps at thetas (B, d)."""
        expected, weights = self._expected_at(thetas)
        found = np.zeros(len(thetas))
        for number in range(len(thetas)):
            own = number if len(expected) > 1 else 0
            at = Expectation(expected[own], None, None if weights is None else weights[own])
            curve = single_curve(self.question.attention.measure, maps[number], at)
            found[number] = curve.measure.slack(curve, 0, np.zeros(2), float(errors[number]))
        # Twice: a map that may be zero, or a tie, has an error of the whole range. The sums round, too.
        return 2.0 * found + 16.0 * gamma(self.original.size + 16)

    @cached_property
    def _largest_size(self) -> float:
        """A bound on the size of the expected maps at any theta."""
        if self.question.attention.method.factor_baseline is None:
            return self.map_size
        options, gradients = (
            self.question.attention,
            original_gradients(self.question.compound, self.question.attention),
        )
        enlarged = options.filter.lipschitz(options.distance.value) * options.largest_factor
        return enlarged * float(self.size(gradients).sum())

    @cached_property
    def _original_error(self) -> float:
        """A bound on the error of the expected maps at any theta."""
        return float(map_errors(self, self.unperturbed, is_expected=True)[0])

    def _forward(self, pixels: np.ndarray) -> Trace:
        *values, logits = preactivations(self.question.graph, pixels)
        self.multiplications += len(pixels) * self.work
        self.forward_passes += len(pixels)
        return Trace(pixels, values, logits)

    def backward(self, rows: np.ndarray, trace: Trace, segments: Segments | None = None) -> Iterator[np.ndarray]:
        """Gradients (B, R, n) of rows (B, R, K) times the logits, for the ReLU outputs, last layer first, then pixels.

        segments: steps to use instead, for functions other than the logits.
        """
        batch, count = rows.shape[:2]
        self.multiplications += batch * count * self.work
        gradient = rows
        path = self.segments if segments is None else segments
        for segment, active in zip(reversed(path), [*self.active(trace)[::-1], None], strict=True):
            gradient = downwards(segment, gradient.reshape(batch * count, -1)).reshape(batch, count, -1)
            yield gradient
            if active is not None:
                gradient = gradient * active[:, None]

    def active(self, trace: Trace) -> list[np.ndarray]:
        """The pattern, layer by layer (B, n), as floats: numpy multiplies by booleans more slowly."""
        return [bits.astype(np.float64) for bits in patterns(self.question.graph, trace.values)]

    def pixel_gradients(self, rows: np.ndarray, trace: Trace) -> np.ndarray:
        """Gradients (B, R, pixels) of rows (B, R, K) times the logits."""
        return deque(self.backward(rows, trace), maxlen=1)[0]

    def maps(self, trace: Trace) -> np.ndarray:
        """Unfiltered maps (B, K', pixels)."""
        options, graph = self.question.attention, self.question.graph
        if not isinstance(options.method, GradientMethod):
            self.multiplications += len(trace.pixels) * (options.method.passes(graph.input_shape) + 1) * self.work
            found = [options.explained(graph, image.reshape(graph.input_shape)) for image in trace.pixels]
            return np.stack(found).reshape(len(found), len(self.classes), -1)
        rows, baseline = self.class_rows(len(trace.logits)), options.method.factor_baseline
        gradients = deque(self.backward(rows, trace, self.aimed), maxlen=1)[0]
        return gradients if baseline is None else gradients * (trace.pixels - baseline)[:, None]

    def class_rows(self, batch: int) -> np.ndarray:
        """Rows (B, K', A): the maps are the gradients of rows @ aims."""
        return np.repeat(self.question.attention.targets(self.question.model.classes)[None], batch, axis=0)

    def _filtered(self, maps: np.ndarray) -> np.ndarray:
        shape = self.question.attention.map_shape(self.perturbed.x0.shape)
        return self.question.attention.filter(maps.reshape(*maps.shape[:2], *shape))

    def size(self, maps: np.ndarray) -> np.ndarray:
        """Norms of maps: (…, K', C, H, W) to (…, K')."""
        flat = maps.reshape(*maps.shape[:-3], -1)
        return np.linalg.norm(flat, ord=self.question.attention.distance.value, axis=-1)

    def _expectation(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The expected maps (K', C, H, W), and the weights (H, W) of a mask, at a theta (d,)."""
        if self.perturbed.has_enclosed_maps or self.question.attention.method.factor_baseline is not None:
            return expected_at(self.question.compound, theta, self.original, self.question.attention)
        cell, mask = self.perturbed.cell_of(theta), self.question.attention.mask
        if cell.index not in self._expected:
            arrays = [self.original] if mask is None else [self.original, mask.weights]
            moved = [(array, self.perturbed.transport(array, cell)) for array in arrays]
            self._expected[cell.index] = [
                (array, None) if own is None else (array + own[0], own[1]) for array, own in moved
            ]
        found = [
            start if slope is None else start + theta[self.perturbed.moving_axis] * slope
            for start, slope in self._expected[cell.index]
        ]
        return found[0], None if mask is None else np.clip(found[1], 0.0, 1.0)

    def unclipped(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The image (pixels,) before the clip, and its slope (d, pixels), by differences if the image is curved."""
        if self.perturbed.is_curved:
            steps = np.diag(STEP * self.perturbed.domain.widths)
            images = self.perturbed.unclipped(np.concatenate([theta[None], theta + steps, theta - steps]))
            images = images.reshape(len(images), -1)
            ahead, back = np.split(images[1:], 2)
            return images[0], (ahead - back) / (2.0 * STEP * self.perturbed.domain.widths[:, None])
        cell = self.perturbed.cell_of(theta)
        image = self.perturbed.x0 + cell.offset + np.tensordot(theta, cell.slope, axes=1)
        return image.ravel(), cell.slope.reshape(len(theta), -1)

    def against_rival(self, logits: np.ndarray) -> np.ndarray:
        """Rows (B, K) that subtract the largest other logit from the label's."""
        label, others, rows = self.question.label, logits.copy(), np.zeros_like(logits)
        others[:, label] = -np.inf
        rows[np.arange(len(logits)), np.argmax(others, axis=1)] = -1.0
        rows[:, label] = 1.0
        return rows

    def batches(self, count: int, rows: int) -> Iterator[slice]:
        """Slices of thetas whose passes fit into memory."""
        widest = max((max(step.sizes) for segment in self.segments for step in segment), default=1)
        size = int(np.clip(NUMBERS // (rows * widest), 1, LARGEST_BATCH))
        return (slice(first, min(first + size, count)) for first in range(0, count, size))
