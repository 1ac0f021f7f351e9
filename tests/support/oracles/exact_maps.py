"""Exact maps of tiny networks as dictionaries from pattern to area and logits.

A pattern lists, per pixel, value > 0, then 1 − ReLU(value) > 0, then the classifier's neurons; a plain network has the
last part alone. Areas (or volumes) are shares of the domain, logits (D+1, K) are forms in t.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from steadygaze.compound import Compound
from support.networks.layered_networks import FloatLayer
from support.oracles import rational_polygons, rational_solids
from support.oracles.exact_numbers import on_grid

ExactMap = dict[tuple[int, ...], tuple[Fraction, np.ndarray]]  # (cell, *pattern): share, logits


def exact_plain_map(layers: Sequence[FloatLayer], low: Sequence[float], high: Sequence[float]) -> ExactMap:
    """The exact map of a network from theta to logits on a box."""
    expected: ExactMap = {}
    _collect(expected, 0, rational_layers(layers), _exact(low), _exact(high), _exact(low), _exact(high))
    return expected


def exact_compound_map(compound: Compound, layers: Sequence[FloatLayer], *, denominator: int = 2**20) -> ExactMap:
    """The exact map of a compound network, knot cell by knot cell."""
    expected: ExactMap = {}
    low, high = _exact(compound.domain.low), _exact(compound.domain.high)
    chain = rational_layers(layers)
    for number, cell in enumerate(compound.cells):
        offset = [on_grid(value, denominator) for value in (compound.perturbed.x0 + cell.offset).ravel()]
        slope = [[on_grid(value, denominator) for value in row] for row in cell.slope.reshape(len(low), -1)]
        whole = rational_polygons.compound(offset, slope, chain)
        _collect(expected, number, whole, _exact(cell.low), _exact(cell.high), low, high)
    return expected


def rational_layers(layers: Sequence[FloatLayer]) -> list[rational_polygons.Layer]:
    """The layers' floats as rationals, exactly."""
    return [([_exact(row) for row in weight], _exact(bias)) for weight, bias in layers]


def _exact(values: Sequence[float]) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def _collect(
    expected: ExactMap,
    cell: int,
    layers: Sequence[rational_polygons.Layer],
    cell_low: list[Fraction],
    cell_high: list[Fraction],
    low: list[Fraction],
    high: list[Fraction],
) -> None:
    volume = Fraction(1)
    for left, right in zip(low, high, strict=True):
        volume *= right - left
    split = rational_solids.split_regions if len(low) == 3 else rational_polygons.split_regions
    for region in split(layers, cell_low, cell_high):
        forms = np.zeros((max(2, len(low)) + 1, len(region.logits)))
        for j, form in enumerate(region.logits):
            for axis in range(len(low)):
                forms[axis, j] = form[axis] * (high[axis] - low[axis])
            forms[-1, j] = rational_polygons.evaluate(form, tuple(low))
        key = (cell, *region.pattern)
        assert key not in expected
        expected[key] = (region.area / volume, forms)
