"""Margin and inconsistency at given points of given regions, from what a map stores. No pass through the network."""

import numpy as np

from ..attention.curve_kernels import curve_value
from ..attention.inconsistency import Inconsistency
from ..compound import Compound
from ..regions.region import RegionSet


def inconsistency_at(
    compound: Compound, cells: np.ndarray, curves: Inconsistency, region: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """ai (N,) at points (N, D) of the unit square or cube, given with their regions (N,). Exact up to rounding.

    cells (R,) are the knot cells of all regions.
    """
    curve = curves.curve[region]
    axis = compound.perturbed.moving_axis
    if axis is None:
        return curves.constant[curve]
    lows = np.array([cell.low[axis] for cell in compound.cells])[cells[region]]
    tau = compound.domain.low[axis] + points[:, axis] * compound.domain.widths[axis] - lows
    if len(curves.quadratic):
        alpha, beta, gamma = np.moveaxis(curves.quadratic[curve], 2, 0)
        squares = alpha - 2.0 * beta * tau[:, None] + gamma * tau[:, None] ** 2
        return np.sqrt(np.maximum(squares, 0.0)).sum(axis=1)
    none = np.zeros((0, 3))
    values = np.empty(len(tau))
    for place, (number, at) in enumerate(zip(curve, tau, strict=True)):
        part = slice(curves.breaks[number], curves.breaks[number + 1])
        values[place] = curve_value(
            none, curves.start[number], curves.places[part], curves.jumps[part], at, curves.rounding
        )[0]
    return values


def margin_at(regions: RegionSet, label: int, region: np.ndarray, points: np.ndarray) -> np.ndarray:
    """f_label − max of the other logits (N,) at points (N, D) of the unit square or cube in the given regions (N,)."""
    logits = np.einsum("nd,ndk->nk", np.hstack([points, np.ones((len(points), 1))]), regions.logits[region])
    return logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)
