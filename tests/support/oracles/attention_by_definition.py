"""Attention by its definition: ai(θ) = Σ_j dist(filter(∇f_j(g(θ))), transport(θ, filter(∇f_j(x0)))), plainly.

Filters, shifts and distances are plain; gradients come from masks and matrix products, or from torch. The
compiled code is not used. Filters and shifts of arrays of rationals are exact. Perturbed images come from
`Perturbed.images`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

import numpy as np
from flint import fmpq

from steadygaze.attention.inconsistency import Inconsistency
from steadygaze.compound import Compound
from steadygaze.network.graph import Chain
from steadygaze.perturbation import Perturbed, Translate
from support.oracles.movements_by_definition import moved

Gradients = Callable[[np.ndarray], np.ndarray]  # image (C, H, W) -> gradients of the logits (K, C, H, W)


@dataclass(frozen=True)
class Question:
    """The options of an attention question: filter and distance by their words, classes by number."""

    filter: str = "identity"
    dist: str = "l2"
    classes: tuple[int, ...] | None = None

    def of(self, maps: np.ndarray) -> np.ndarray:
        """The chosen classes' maps (K', C, H, W) of maps (K, C, H, W), filtered."""
        chosen = maps if self.classes is None else maps[list(self.classes)]
        return plain_filter(chosen, self.filter)

    def distance(self, difference: np.ndarray) -> float:
        """The sum over the classes of the norm of a difference (K', C, H, W)."""
        rows = np.abs(difference.reshape(len(difference), -1))
        return float(rows.sum() if self.dist == "l1" else np.sqrt((rows**2).sum(axis=1)).sum())


def chain_gradients(chain: Chain, shape: tuple[int, int, int]) -> Gradients:
    """Gradients of a chain by the chain rule: a mask (input > 0) and a product for each layer."""
    matrices = [
        affine.matrix if isinstance(affine.matrix, np.ndarray) else affine.matrix.toarray() for affine in chain.maps
    ]

    def gradients(image: np.ndarray) -> np.ndarray:
        values, jacobian = image.ravel(), np.eye(image.size)
        for number, (matrix, affine) in enumerate(zip(matrices, chain.maps, strict=True)):
            values, jacobian = matrix @ values + affine.bias, matrix @ jacobian
            if number < len(matrices) - 1:
                jacobian = jacobian * (values > 0)[:, None]
                values = np.maximum(values, 0.0)
        return jacobian.reshape(-1, *shape)

    return gradients


def pattern_at(chain: Chain, pixels: np.ndarray) -> list[np.ndarray]:
    """The pattern of a chain at images (B, pixels): active means above zero."""
    return [values > 0.0 for values in chain.preactivations(pixels)[:-1]]


def plain_filter(maps: np.ndarray, words: str) -> np.ndarray:
    """Filter maps (…, H, W) by the words of an option such as `abs+mean`."""
    for word in words.split("+"):
        if word == "abs":
            maps = np.where(maps < 0, -maps, maps)
        elif word == "mean":
            total = 0 * maps  # of the type of its numbers
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    total += shifted(maps, dx, dy)
            maps = total / 9
        else:
            assert word == "identity"
    return maps


def shifted(maps: np.ndarray, dx: int, dy: int) -> np.ndarray:
    """Maps (…, H, W) moved right by dx and down by dy whole pixels, zero where vacated."""
    result = np.zeros(maps.shape, dtype=maps.dtype)
    (to_y, from_y), (to_x, from_x) = (
        _kept(size, int(step)) for size, step in zip(maps.shape[-2:], (dy, dx), strict=True)
    )
    result[..., to_y, to_x] = maps[..., from_y, from_x]
    return result


def _kept(size: int, step: int) -> tuple[slice, slice]:
    """Of the places of an axis, those that a step reaches, and those that it starts from."""
    first, last = min(max(step, 0), size), max(min(size + step, size), 0)
    return slice(first, last), slice(first - step, last - step) if first < last else slice(first, last)


def transported(maps: np.ndarray, perturbed: Perturbed, theta: Sequence[float | Fraction | fmpq]) -> np.ndarray:
    """The expected maps at theta (d,): moved with the image, kept by everything else."""
    if perturbed.is_curved:
        return moved(maps, perturbed.perturbations, [float(value) for value in theta])
    for perturbation, value in zip(perturbed.perturbations, theta, strict=True):
        if isinstance(perturbation, Translate):
            whole = floor(value)
            sign_x, sign_y = int(np.sign(perturbation.dx)), int(np.sign(perturbation.dy))
            before, after = (shifted(maps, step * sign_x, step * sign_y) for step in (whole, whole + 1))
            maps = before + (value - whole) * (after - before)
    return maps


def inconsistency(gradients: Gradients, perturbed: Perturbed, theta: np.ndarray, question: Question) -> float:
    """ai at one theta (d,)."""
    actual = question.of(gradients(perturbed.image(theta)))
    expected = transported(question.of(gradients(perturbed.x0)), perturbed, theta)
    return question.distance(actual - expected)


def stored_inconsistency(
    compound: Compound, curves: Inconsistency, cells: np.ndarray, region: int, theta: Sequence[float]
) -> float:
    """ai of a region at theta (d,) from the stored numbers, by the docstring of `Inconsistency`; cells (R,)."""
    q = curves.curve[region]
    axis = compound.perturbed.moving_axis
    if axis is None:
        return float(curves.constant[q])
    tau = theta[axis] - compound.cells[cells[region]].low[axis]
    return curve_value(curves, int(q), float(tau))


def curve_value(curves: Inconsistency, q: int, tau: float) -> float:
    """The value of curve number q at τ."""
    if len(curves.quadratic):
        alpha, beta, gamma = curves.quadratic[q].T
        return float(np.sqrt(np.maximum(alpha - 2 * beta * tau + gamma * tau**2, 0.0)).sum())
    value, slope, begin = curves.start[q]
    inside = slice(curves.breaks[q], curves.breaks[q + 1])
    places, jumps = curves.places[inside], curves.jumps[inside]
    return float(value + slope * (tau - begin) + (jumps * np.maximum(tau - places, 0.0)).sum())
