"""Checks attention maps through the model file: finite differences of onnxruntime's logits, from inside a region.

Inside a region the logits are affine in every pixel as long as no ReLU changes its sign, so a central difference has no
error but the rounding of the file's float type, divided by the step. The largest step that keeps all signs comes from
the linear steps in float64. Compares unfiltered maps; filters and distances are not looked at.
"""

from dataclasses import dataclass

import numpy as np

from ..attention.maps import maps_under
from ..network.graph import Graph
from ..network.model import Model
from ..network.passes import upwards

LARGEST = 12
"""Pixels of each class with the largest gradient."""

RANDOM = 4
"""Further pixels of each class, always the same."""

SEED = 20241

LONGEST_STEP = 0.25
"""Steps need not be longer: rounding grows with the pixels."""

INSIDE = 0.9
"""Share of the way to the nearest kink that a step may go."""

SHARP = 0.25
"""An entry is compared if its tolerance is at most this share of the largest gradient of its class: a wrong sign or a
missing neuron then shows; with more noise agreement would mean little."""


@dataclass(frozen=True)
class MapCheck:
    """Finite differences against gradients, for two classes.

    `checked` entries were compared; `skipped` ones have no step that is short enough for the ReLUs and long enough for
    the rounding. difference and tolerance are those of the entry that comes closest to its tolerance (or exceeds it
    most); they and `agrees` are None where nothing could be compared.
    """

    classes: tuple[int, ...]
    checked: int
    skipped: int
    difference: float | None
    tolerance: float | None

    @property
    def is_checkable(self) -> bool:
        """Whether any entry could be compared."""
        return self.checked > 0

    @property
    def agrees(self) -> bool | None:
        """Whether every compared entry is within its tolerance."""
        if self.difference is None or self.tolerance is None:
            return None
        return self.difference <= self.tolerance


def check_maps(model: Model, image: np.ndarray, bits: list[np.ndarray], classes: np.ndarray, noise: float) -> MapCheck:
    """Compare the gradients under a pattern with finite differences through the model file.

    image (C, H, W) lies inside the region of the pattern; bits: one boolean array (1, n) per ReLU layer; classes (2,).
    `noise` bounds the rounding of a replayed logit, so that an entry's tolerance is noise / step.
    """
    gradients = maps_under(model.graph, bits, classes)
    pixels = _pixels(np.abs(gradients))
    steps = np.minimum(LONGEST_STEP, INSIDE * longest_steps(model.graph, image.ravel(), bits, pixels))
    with np.errstate(divide="ignore"):
        tolerances = np.broadcast_to(noise / steps, (len(classes), len(pixels)))
    is_sharp = tolerances <= SHARP * np.abs(gradients).max(axis=1, keepdims=True)
    usable = is_sharp.any(axis=0)
    names = tuple(int(number) for number in classes)
    skipped = int((~is_sharp).sum())
    if not usable.any():
        return MapCheck(names, 0, skipped, None, None)
    slopes = _finite_differences(model, image, pixels[usable], steps[usable])[:, classes].T
    differences = np.abs(slopes - gradients[:, pixels[usable]])
    ratios = np.where(is_sharp[:, usable], differences / tolerances[:, usable], -1.0)
    worst = np.unravel_index(int(np.argmax(ratios)), ratios.shape)
    return MapCheck(names, int(is_sharp.sum()), skipped, float(differences[worst]), float(tolerances[:, usable][worst]))


def longest_steps(graph: Graph, image: np.ndarray, bits: list[np.ndarray], pixels: np.ndarray) -> np.ndarray:
    """How far each of the given pixels (S,) may move either way before a ReLU changes its sign, (S,); may be infinite.

    image (C·H·W,), bits as in `check_maps`. Exact up to float64 rounding: under one pattern every ReLU's input is
    affine in the pixel.
    """
    steps = np.full(len(pixels), np.inf)
    values, change = image[None], np.zeros((len(pixels), len(image)))
    change[np.arange(len(pixels)), pixels] = 1.0
    for segment, layer in zip(graph.steps[:-1], bits, strict=True):
        values = upwards(segment, values)
        for step in segment:
            change = step.forward(change)
        room = np.full(change.shape, np.inf)
        np.divide(np.abs(values), np.abs(change), out=room, where=change != 0.0)
        steps = np.minimum(steps, room.min(axis=1, initial=np.inf))
        values, change = np.where(layer, values, 0.0), np.where(layer, change, 0.0)
    return steps


def _pixels(sizes: np.ndarray) -> np.ndarray:
    """The pixels to look at, ascending: those with the largest of sizes (classes, pixels), and random ones."""
    generator = np.random.default_rng(SEED)
    count = sizes.shape[1]
    chosen = [np.argsort(-row, kind="stable")[:LARGEST] for row in sizes]
    chosen += [generator.integers(count, size=RANDOM) for _ in sizes]
    return np.unique(np.concatenate(chosen))


def _finite_differences(model: Model, image: np.ndarray, pixels: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Central differences (S, K) of the replayed logits along pixels (S,) with steps (S,)."""
    moved = np.tile(image.reshape(1, 1, -1), (2, len(pixels), 1))
    places = np.arange(len(pixels))
    moved[0, places, pixels] += steps
    moved[1, places, pixels] -= steps
    logits = model.replay.logits(moved.reshape(-1, *image.shape)).reshape(2, len(pixels), -1)
    return (logits[0] - logits[1]) / (2.0 * steps[:, None])
