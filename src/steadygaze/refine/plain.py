"""Plain passes at single thetas: margins, their gradients, and inconsistencies of a problem.

One forward pass gives the margin; a backward pass under the pattern found on the way gives the gradient and the maps.
Works on the linear steps of the graph, so that large networks need not be lowered. Proves nothing about other thetas;
how far rounding can have moved a number is said by `rounding`.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..attention.options import Distance
from ..network.steps import downwards, upwards
from ..problem import Problem

NUMBERS = 1 << 19
"""Numbers that one batch may hold in the widest layer: 4 MiB, so that all layers of a deep network stay moderate."""

LARGEST_BATCH = 64
"""Thetas in one batch."""


@dataclass(frozen=True, eq=False)
class Trace:
    """One forward pass of B images: the inputs of all ReLUs, layer by layer (B, n), and the logits (B, K)."""

    pixels: np.ndarray
    values: list[np.ndarray]
    logits: np.ndarray


class Plain:
    """Margins, gradients and inconsistencies at thetas, by float64 passes; counts what it spends.

    original (K', C, H, W): the filtered maps of the unperturbed image; computed here unless given.
    """

    def __init__(self, problem: Problem, original: np.ndarray | None = None) -> None:
        self.problem, self.perturbed, self.domain = problem, problem.perturbed, problem.perturbed.domain
        self.segments = problem.model.graph.steps
        self.classes = problem.attention.chosen(problem.model.classes)
        self.forward_passes = 0
        self.multiplications = 0
        self._given = original
        self._expected: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}

    @cached_property
    def work(self) -> int:
        """Multiplications of one pass with one image, or with one row backward."""
        return max(1, sum(step.work for segment in self.segments for step in segment))

    @cached_property
    def original(self) -> np.ndarray:
        """The filtered maps (K', C, H, W) of the unperturbed image, under the pattern there."""
        return self._filtered(self.maps(self.unperturbed))[0] if self._given is None else self._given

    @cached_property
    def unperturbed(self) -> Trace:
        """The forward pass of the unperturbed image."""
        return self._forward(self.perturbed.x0.reshape(1, -1))

    def to_theta(self, points: np.ndarray) -> np.ndarray:
        """Thetas (B, d) for points (B, ≥ d) of the unit cube."""
        thetas = self.domain.low + points[:, : self.domain.dimension] * self.domain.widths
        return np.clip(thetas, self.domain.low, self.domain.high)

    def trace(self, thetas: np.ndarray) -> Trace:
        """The forward pass at thetas (B, d)."""
        return self._forward(self.perturbed.images(thetas).reshape(len(thetas), -1))

    def margins(self, thetas: np.ndarray) -> np.ndarray:
        """Margins (B,) at thetas (B, d)."""
        parts = [self.margins_of(self.trace(thetas[part]).logits) for part in self.batches(len(thetas), 1)]
        return np.concatenate([np.zeros(0), *parts])

    def margins_of(self, logits: np.ndarray) -> np.ndarray:
        """Margins (B,) of logits (B, K)."""
        return logits[:, self.problem.label] - np.delete(logits, self.problem.label, axis=1).max(axis=1)

    def slopes(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margins (B,) and their gradients (B, d) with respect to the unit cube, on the affine pieces at the thetas."""
        margins, slopes = np.zeros(len(thetas)), np.zeros(thetas.shape)
        for part in self.batches(len(thetas), 1):
            trace = self.trace(thetas[part])
            margins[part] = self.margins_of(trace.logits)
            pixels = self.pixel_gradients(self.against_rival(trace.logits)[:, None], trace)
            for number, theta in enumerate(thetas[part]):
                slope = self._free_slope(theta)
                slopes[part.start + number] = slope @ pixels[number, 0] * self.domain.widths
        return margins, slopes

    def inconsistencies(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margins (B,) and ai (B,) at thetas (B, d)."""
        margins, values = np.zeros(len(thetas)), np.zeros(len(thetas))
        for part in self.batches(len(thetas), len(self.classes)):
            trace = self.trace(thetas[part])
            margins[part] = self.margins_of(trace.logits)
            values[part] = self.distances(thetas[part], self.maps(trace))
        return margins, values

    def distances(self, thetas: np.ndarray, maps: np.ndarray) -> np.ndarray:
        """The inconsistency (B,) of unfiltered maps (B, K', pixels) at thetas (B, d)."""
        expected = self.original[None]
        if self.perturbed.moving_axis is not None:
            expected = np.stack([self._expectation(theta) for theta in thetas])
        return self.size(self._filtered(maps) - expected).sum(axis=1)

    def _forward(self, pixels: np.ndarray) -> Trace:
        values, results = pixels, []
        for segment in self.segments:
            values = upwards(segment, values)
            results.append(values)
            values = np.maximum(values, 0.0)
        self.count(len(pixels))
        self.forward_passes += len(pixels)
        return Trace(pixels, results[:-1], results[-1])

    def backward(self, rows: np.ndarray, trace: Trace) -> Iterator[np.ndarray]:
        """Gradients of rows (B, R, K) times the logits, by the outputs of the ReLUs, the last first; then the pixels.

        Each is (B, R, n); the pattern is that of the trace: active means above zero.
        """
        batch, count = rows.shape[:2]
        self.count(batch * count)
        gradient = rows
        for number, segment in enumerate(reversed(self.segments)):
            gradient = downwards(segment, gradient.reshape(batch * count, -1)).reshape(batch, count, -1)
            yield gradient
            if number < len(trace.values):
                # By floats: numpy converts booleans piece by piece, which takes longer than the product.
                gradient = gradient * (trace.values[-1 - number] > 0.0).astype(np.float64)[:, None]

    def pixel_gradients(self, rows: np.ndarray, trace: Trace) -> np.ndarray:
        """Gradients (B, R, pixels) of rows (B, R, K) times the logits."""
        return deque(self.backward(rows, trace), maxlen=1)[0]

    def maps(self, trace: Trace) -> np.ndarray:
        """Gradients (B, K', pixels) of the chosen logits."""
        return self.pixel_gradients(self.class_rows(len(trace.logits)), trace)

    def class_rows(self, batch: int) -> np.ndarray:
        """Rows (B, K', K) that pick the chosen logits."""
        return np.repeat(np.eye(self.problem.model.classes)[self.classes][None], batch, axis=0)

    def _filtered(self, maps: np.ndarray) -> np.ndarray:
        shaped = maps.reshape(*maps.shape[:2], *self.perturbed.x0.shape)
        return self.problem.attention.filter(shaped)

    def size(self, maps: np.ndarray) -> np.ndarray:
        """Norms of maps: (…, K', C, H, W) to (…, K')."""
        flat = maps.reshape(*maps.shape[:-3], -1)
        if self.problem.attention.distance is Distance.L1:
            return np.abs(flat).sum(axis=-1)
        return np.sqrt((flat * flat).sum(axis=-1))

    def _expectation(self, theta: np.ndarray) -> np.ndarray:
        """The expected maps (K', C, H, W) at a theta (d,)."""
        cell = self.perturbed.cell_of(theta)
        if cell.index not in self._expected:
            moved = self.perturbed.transport(self.original, cell)
            self._expected[cell.index] = (
                (self.original, None) if moved is None else (self.original + moved[0], moved[1])
            )
        expected, slope = self._expected[cell.index]
        return expected if slope is None else expected + theta[self.perturbed.moving_axis] * slope

    def unclipped(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The image (pixels,) before the clip, and its slope (d, pixels)."""
        cell = self.perturbed.cell_of(theta)
        image = self.perturbed.x0 + cell.offset + np.tensordot(theta, cell.slope, axes=1)
        return image.ravel(), cell.slope.reshape(len(theta), -1)

    def _free_slope(self, theta: np.ndarray) -> np.ndarray:
        """The slope (d, pixels) of the image at a theta, 0 where it is clipped."""
        image, slope = self.unclipped(theta)
        return np.where((image > 0.0) & (image < 1.0), slope, 0.0)

    def against_rival(self, logits: np.ndarray) -> np.ndarray:
        """Rows (B, K) that take the largest other logit from that of the label."""
        label = self.problem.label
        others = logits.copy()
        others[:, label] = -np.inf
        rows = np.zeros_like(logits)
        rows[np.arange(len(logits)), np.argmax(others, axis=1)] = -1.0
        rows[:, label] = 1.0
        return rows

    def batches(self, count: int, rows: int) -> Iterator[slice]:
        """Runs of thetas whose passes fit into memory."""
        widest = max((max(step.sizes) for segment in self.segments for step in segment), default=1)
        size = int(np.clip(NUMBERS // (rows * widest), 1, LARGEST_BATCH))
        return (slice(first, min(first + size, count)) for first in range(0, count, size))

    def count(self, passes: int) -> None:
        """Count passes of one image or one row each."""
        self.multiplications += passes * self.work
