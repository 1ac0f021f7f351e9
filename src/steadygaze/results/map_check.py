"""Checks attention maps through the model file: finite differences of onnxruntime's logits, from inside a region.

Inside a region the logits are affine in every pixel as long as no bit of the pattern changes, so a central difference
has no error but the rounding of the file's float type, divided by the step. The largest step that keeps all bits comes
from the linear steps in float64. If map and differences disagree by more, proved bounds of the same differences in
float64 decide whether the map is wrong or the file's arithmetic too coarse. Compares unfiltered maps, without
distances.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..attention.gradients import maps_under
from ..attention.methods import GRADIENT, GradientMethod, attended
from ..bounds.forms import Forms
from ..bounds.passes import Readout, forward
from ..bounds.passes import gradients as enclose_gradients
from ..network.doubts import kink_functions
from ..network.graph import Graph
from ..network.model import Model
from ..network.rewrites import Copies
from ..network.steps import upwards
from ..tolerances import UNIT

LARGEST = 12
"""Pixels of each class with the largest gradient."""

RANDOM = 4
"""Further random pixels of each class, the same in every run."""

SEED = 20241

LONGEST_STEP = 0.25
"""The longest step: rounding grows with the pixels."""

INSIDE = 0.9
"""The longest step as a share of the distance to the nearest kink."""

SHARP = 0.25
"""An entry is compared if its tolerance is at most this share of the largest gradient of its class: a wrong sign or a
missing neuron is then visible; with more noise, agreement would mean little."""


@dataclass(frozen=True)
class MapCheck:
    """Finite differences against gradients, for two classes.

    `checked` entries were compared; `skipped` ones have no step that is short enough for the ReLUs and long enough for
    the rounding. difference and tolerance are those of the entry that comes closest to its tolerance (or exceeds it
    most); they and `agrees` are None if nothing could be compared. is_finite: whether all differences are finite; if
    not, difference and tolerance are None and nothing agrees. is_refuted: whether proved bounds in float64 contradict
    the gradients, too.
    """

    classes: tuple[int, ...]
    checked: int
    skipped: int
    difference: float | None
    tolerance: float | None
    is_finite: bool = True
    is_refuted: bool = False

    @property
    def is_checkable(self) -> bool:
        """Whether any entry could be compared."""
        return self.checked > 0

    @property
    def agrees(self) -> bool | None:
        """Whether every compared entry is within its tolerance."""
        if not self.is_finite:
            return False
        if self.difference is None or self.tolerance is None:
            return None
        return self.difference <= self.tolerance


def check_losses(
    model: Model, image: np.ndarray, classes: np.ndarray, noise: float, copies: Copies
) -> MapCheck:  # fmt: skip
    """Compare how far logits drop if copies (m, C, H, W) replace an image: by the graph, and by the model file.

    classes (2,); `noise` bounds the rounding of a replayed logit.
    """
    images = np.concatenate([image[None], copies.images(image)])
    names, count = tuple(int(number) for number in classes), len(classes) * (len(images) - 1)
    ours, theirs = (
        (logits[:1] - logits[1:])[:, classes] for logits in (model.graph.logits(images), model.replay.logits(images))
    )
    if not np.isfinite(theirs).all():
        return MapCheck(names, count, 0, None, None, is_finite=False)
    return MapCheck(names, count, 0, float(np.abs(ours - theirs).max()), 2.0 * noise)


def check_maps(
    model: Model,
    image: np.ndarray,
    bits: list[np.ndarray],
    classes: np.ndarray,
    noise: float,
    *,
    neurons: Sequence[np.ndarray] | None = None,
    method: GradientMethod = GRADIENT,
) -> MapCheck:
    """Compare the gradients under a pattern with finite differences through the model file.

    image (C, H, W) lies inside the region of the pattern; bits: one boolean array (1, n) per layer; classes (2,).
    `noise` bounds the rounding of a replayed logit, so an entry's tolerance is noise / step; `neurons` has such bounds
    for the inputs of the neurons, (n,) per layer: no step comes closer to a kink. If a method reads several copies of
    the image, the file runs all of them.
    """
    graph, copies = attended(method, model.graph), method.copies(model.input_shape)
    targets = method.targets(model.classes)[classes]
    noise = noise * float(np.abs(targets).sum(axis=1).max())
    gradients = maps_under(graph, bits, targets)
    pixels = _pixels(np.abs(gradients))
    steps = np.minimum(LONGEST_STEP, INSIDE * longest_steps(graph, image.ravel(), bits, pixels, neurons))
    with np.errstate(divide="ignore", invalid="ignore"):
        tolerances = np.broadcast_to(noise / steps, (len(classes), len(pixels)))
    is_sharp = tolerances <= SHARP * np.abs(gradients).max(axis=1, keepdims=True)
    usable = is_sharp.any(axis=0)
    names = tuple(int(number) for number in classes)
    count, skipped = int(is_sharp.sum()), int((~is_sharp).sum())
    if not usable.any():
        return MapCheck(names, 0, skipped, None, None)
    pixels, steps, is_sharp, tolerances = pixels[usable], steps[usable], is_sharp[:, usable], tolerances[:, usable]
    moved = _moved(image, pixels, steps)
    aims = _replayed(model, copies, moved.reshape(-1, *image.shape)).reshape(2, len(pixels), -1) @ targets.T
    if not np.isfinite(aims).all():
        return MapCheck(names, count, skipped, None, None, is_finite=False)
    differences = np.abs(((aims[0] - aims[1]) / (2.0 * steps[:, None])).T - gradients[:, pixels])
    ratios = np.where(is_sharp, differences / tolerances, -1.0)
    worst = np.unravel_index(int(np.argmax(ratios)), ratios.shape)
    difference, tolerance = float(differences[worst]), float(tolerances[worst])
    is_refuted = not difference <= tolerance and _is_refuted(graph, image, moved, pixels, targets, gradients)
    return MapCheck(names, count, skipped, difference, tolerance, is_refuted=is_refuted)


def _replayed(model: Model, copies: Copies | None, images: np.ndarray) -> np.ndarray:
    """The logits (B, m · K) that onnxruntime gives for all copies of images (B, C, H, W)."""
    if copies is None:
        return model.replay.logits(images)
    return np.concatenate(
        [model.replay.logits(scale * images + shift) for scale, shift in zip(*copies, strict=True)], axis=1
    )


def longest_steps(
    graph: Graph,
    image: np.ndarray,
    bits: list[np.ndarray],
    pixels: np.ndarray,
    neurons: Sequence[np.ndarray] | None = None,
) -> np.ndarray:
    """How far each of the given pixels (S,) may move either way before a bit changes, (S,); may be infinite.

    image (C·H·W,), bits and neurons as in `check_maps`. Exact up to float64 rounding: under one pattern the input of
    every neuron is affine in the pixel.
    """
    steps = np.full(len(pixels), np.inf)
    values, change = image[None], np.zeros((len(pixels), len(image)))
    change[np.arange(len(pixels)), pixels] = 1.0
    errors = neurons or [np.zeros(1)] * len(bits)
    for segment, layer, own, error in zip(graph.steps[:-1], graph.layers, bits, errors, strict=True):
        values = upwards(segment, values)
        for step in segment:
            change = step.forward(change)
        distance, off = kink_functions(layer, own, values, np.broadcast_to(error, values.shape))
        speed, _ = kink_functions(layer, own, change, change)
        room = np.full(change.shape, np.inf)
        np.divide(np.maximum(np.abs(distance) - off, 0.0), np.abs(speed), out=room, where=speed != 0.0)
        steps = np.minimum(steps, room.min(axis=1, initial=np.inf))
        values, change = np.where(own, values, 0.0), np.where(own, change, 0.0)
    return steps


def _pixels(sizes: np.ndarray) -> np.ndarray:
    """The pixels to check, ascending: those with the largest of sizes (classes, pixels), and random ones."""
    generator = np.random.default_rng(SEED)
    count = sizes.shape[1]
    chosen = [np.argsort(-row, kind="stable")[:LARGEST] for row in sizes]
    chosen += [generator.integers(count, size=RANDOM) for _ in sizes]
    return np.unique(np.concatenate(chosen))


def _moved(image: np.ndarray, pixels: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Images (2, S, C·H·W) with pixels (S,) moved up, and down, by steps (S,)."""
    moved = np.tile(image.reshape(1, 1, -1), (2, len(pixels), 1))
    places = np.arange(len(pixels))
    moved[0, places, pixels] += steps
    moved[1, places, pixels] -= steps
    return moved


def _is_refuted(
    graph: Graph,
    image: np.ndarray,
    moved: np.ndarray,
    pixels: np.ndarray,
    targets: np.ndarray,
    gradients: np.ndarray,
) -> bool:
    """Whether proved bounds of the differences between moved images (2, S, C·H·W) contradict gradients (2, C·H·W).

    Uncertain bits leave the gradient open and contradict nothing, nor does NaN.
    """
    rows = Readout.of(graph.aim_steps, targets)
    flat = moved.reshape(-1, 1, moved.shape[2])
    with np.errstate(over="ignore", invalid="ignore"):
        exact = Forms(flat, np.zeros((len(flat), flat.shape[2])))
        low, high = rows.bounds(forward(graph.steps, graph.layers, exact).last)
        low, high = (ends.reshape(2, len(pixels), -1) for ends in (low, high))
        places = np.arange(len(pixels))
        widths = (moved[0, places, pixels] - moved[1, places, pixels])[:, None]
        slack = 16.0 * UNIT * (np.abs(low).max(axis=0) + np.abs(high).max(axis=0))
        least, most = (low[0] - high[1] - slack) / widths, (high[0] - low[1] + slack) / widths
        here = Forms(image.reshape(1, 1, -1), np.zeros((1, image.size)))
        radius = enclose_gradients(graph.steps, forward(graph.steps, graph.layers, here), rows).radius[0][:, pixels].T
        chosen = gradients[:, pixels].T
        return bool(((chosen + 2.0 * radius < least) | (chosen - 2.0 * radius > most)).any())
