"""Finds boxes of thetas where, by bounds, the attention surely does not depend on the rule for ties.

A window matters only if several entries may share the largest value, and a gradient arrives there and continues to the
pixels (see `ties`). Bounds over a box exclude this for most windows. If a window is left, nothing is known about the
box: only its regions could show whether entries tie on a part with volume.
"""

import numpy as np

from ..bounds.bounder import Bounder
from ..bounds.decisions import OFF, DecidedLayer
from ..bounds.passes import decide_layers
from ..budget import OPTIONAL, Budget, is_over
from ..compound import Compound
from ..network.layers import Layer
from ..tolerances import LEAST, gamma
from .ties import TieVolumes, harmful_windows, ways_up

MOST_BOX_WORK = 4_000_000_000
"""The most multiplications to spend on boxes, a few seconds; boxes left over may depend on the rule."""

PASSES = 6
"""Passes through the network for one box, plus one for every parameter: values, paths from pixels, paths to logits."""


def box_tie_volumes(
    compound: Compound,
    bounder: Bounder,
    cell: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    volumes: np.ndarray,
    budget: Budget | None = None,
) -> TieVolumes:
    """The volume of the boxes that may depend on the rule.

    cell (B,): their knot cells; low and high (B, d): their corners in t.
    """
    work = sum(step.work for segment in compound.graph.steps for step in segment)
    affordable = MOST_BOX_WORK // max(1, (PASSES + low.shape[1]) * work)
    unknown = float(volumes.sum())
    chosen = np.argsort(-volumes, kind="stable")[:affordable]
    for number in np.unique(cell[chosen]).tolist():
        own = chosen[cell[chosen] == number]
        for start in range(0, len(own), bounder.batch):
            if is_over(budget, OPTIONAL):
                break
            part = own[start : start + bounder.batch]
            unknown -= float(volumes[part[free_of_ties(compound, bounder, number, low[part], high[part])]].sum())
    return TieVolumes(0.0, max(0.0, unknown) + gamma(len(volumes) + 8) * float(volumes.sum()))


def free_of_ties(compound: Compound, bounder: Bounder, cell: int, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which boxes (B,) of a knot cell have no window that may matter."""
    graph, targets = compound.graph, bounder.attention.targets(compound.graph.classes)
    if not bounder.attention.method.uses_gradients:
        return np.ones(len(low), dtype=bool)
    live = np.ones((len(low), compound.perturbed.x0.size))
    possible, lives = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        decided = decide_layers(graph.steps, graph.layers, bounder.image(cell, low, high))
        for segment, layer, found in zip(graph.steps, graph.layers, decided, strict=False):
            live = ways_up(segment, live)
            # If maps use values of a layer instead of pixels, every gradient that arrives there counts.
            lives.append((live > 0.0) | (bounder.explained is not None))
            possible.append((found.bits != OFF) | _may_tie(layer, found))
            live = live * possible[-1]
    harmful = harmful_windows(graph, targets, possible, lives)
    return ~np.any([part.any(axis=1) for part in harmful], axis=0)


def _may_tie(layer: Layer, found: DecidedLayer) -> np.ndarray:
    """Which entries (B, n) are not surely below their window's entry with the largest centre; NaN counts as such."""
    may = np.zeros(found.bits.shape, dtype=bool)
    if not len(layer.entries):
        return may
    forms, rest = found.inputs.forms[:, :, layer.entries], found.inputs.rest[:, layer.entries]
    counts = np.diff(layer.starts, append=len(layer.entries))
    largest = np.repeat(np.maximum.reduceat(forms[:, 0], layer.starts, axis=1), counts, axis=1)
    # The first place of the largest centre; if it is NaN, the first entry of the window.
    places = np.where(forms[:, 0] == largest, np.arange(len(layer.entries)), len(layer.entries))
    first = np.minimum.reduceat(places, layer.starts, axis=1)
    first = np.repeat(np.where(first < len(layer.entries), first, layer.starts), counts, axis=1)
    lead = np.take_along_axis(forms, first[:, None], axis=2) - forms
    sizes = np.abs(forms).sum(axis=1) + rest
    error = rest + gamma(forms.shape[1] + 16) * sizes + LEAST
    error = (error + np.take_along_axis(error, first, axis=1)) * (1.0 + 1e-9)
    least = lead[:, 0] - np.abs(lead[:, 1:]).sum(axis=1) - error
    may[:, layer.entries] = ~(least > 0.0)
    return may
