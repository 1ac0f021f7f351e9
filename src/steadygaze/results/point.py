"""One theta of the domain: its image, logits and attention maps, from the plain definitions."""

from dataclasses import dataclass

import numpy as np

from ..attention.gradients import maps_under
from ..attention.inconsistency import expected_at
from ..attention.methods import GradientMethod
from ..network.doubts import doubtful_bits, spread_over_windows
from ..network.graph import patterns, preactivations
from ..network.layers import RELU
from ..question import Question
from ..regions.patterns import unpack
from .display import point_text


@dataclass(frozen=True, eq=False)
class Point:
    """One theta: its region, image, logits, and attention maps.

    image (C, H, W), logits (K,); actual and expected are filtered maps (K', C, H, W) of the classes compared.
    inconsistency: the loss of the property asked: ai for distances. weights (H, W): the mask, moved along with the
    image; None without a mask.
    """

    theta: np.ndarray
    region: int | None
    image: np.ndarray
    logits: np.ndarray
    label: int
    margin: float
    actual: np.ndarray
    expected: np.ndarray
    inconsistency: float
    weights: np.ndarray | None = None

    def __repr__(self) -> str:
        return point_text(self)


def view_point(question: Question, theta: np.ndarray, bits: list[np.ndarray], *, region: int | None = None) -> Point:
    """The point of a theta (d,) of the domain under a pattern, one array (1, n) of bits per layer."""
    image = question.perturbed.image(theta)
    logits = question.model.graph.logits(image[None])[0]
    actual, expected, weights = compared_maps(question, theta, bits)
    inconsistency = question.attention.loss(actual, expected, weights)
    margin = float(logits[question.label] - np.delete(logits, question.label).max())
    label = int(np.argmax(logits))
    return Point(theta, region, image, logits, label, margin, actual, expected, inconsistency, weights)


def compared_maps(
    question: Question, theta: np.ndarray, bits: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The filtered maps (K', C, H, W) of a pattern, as for `view_point`; those expected at a theta (d,); and its mask.

    The mask's weights (H, W) are None without a mask.
    """
    options, image = question.attention, question.perturbed.image(theta)
    if isinstance(options.method, GradientMethod):
        maps = maps_under(question.graph, bits, options.targets(question.model.classes))
        actual = options.finish(maps.reshape(-1, *image.shape), image)
    else:
        actual = options.filter(options.explained(question.graph, image))
    return actual, *expected_at(question.compound, theta, question.original, question.attention)


def pattern_at_theta(question: Question, theta: np.ndarray, packed: np.ndarray | None) -> list[np.ndarray]:
    """The classifier's pattern at a theta (d,) of a region: one boolean array (1, n) per layer.

    packed is the pattern of the region, which decides where the value of a neuron is only rounding; None if unknown.
    """
    compound = question.compound
    values = preactivations(compound.graph, question.perturbed.image(theta).reshape(1, -1))[:-1]
    computed = patterns(compound.graph, values)
    if packed is None:
        return computed
    settled = unpack(packed[None], compound.hidden)
    found = []
    for layer, value, bits, noise, own in zip(
        compound.graph.layers, values, computed, compound.noise, settled, strict=False
    ):
        is_noise = doubtful_bits(layer, value, np.broadcast_to(noise, value.shape))
        # A ReLU that is exactly zero is inactive. The bits of a window go together.
        is_noise &= (value != 0.0) | (layer.kind != RELU)
        found.append(np.where(spread_over_windows(layer, is_noise), own, bits))
    return found
