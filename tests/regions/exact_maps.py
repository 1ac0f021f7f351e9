"""Maps as dictionaries from pattern to area and logits: the exact one from rationals, the engine's from its arrays.

Tiny networks and images only. A pattern lists, per pixel, value > 0, then 1 − ReLU(value) > 0, then the classifier's
neurons; a plain network has the last part alone. Areas (or volumes) are shares of the domain, logits (D+1, K) forms
in t.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from oracle import rational, rational_solids
from regions.reading_maps import clip_bits, pattern_bits
from regions.tiny_compounds import FloatLayer, make_compound, on_unit_square, plain_map
from steadygaze.compound import Compound
from steadygaze.perturbation import Perturbation
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide

ExactMap = dict[tuple[int, ...], tuple[Fraction, np.ndarray]]  # (cell, *pattern): share, logits


def assert_plain_map_is_exact(
    layers: Sequence[FloatLayer], low: Sequence[float], high: Sequence[float], **options: object
) -> RegionSet:
    """Subdivide a network from theta to logits on a box and compare everything with the exact map."""
    expected: ExactMap = {}
    _collect(expected, 0, rational_layers(layers), _exact(low), _exact(high), _exact(low), _exact(high))
    regions = plain_map(on_unit_square(layers, np.array(low), np.array(high)), **options)
    hidden = tuple(len(bias) for _, bias in layers[:-1])
    _assert_equal(regions, np.zeros((len(regions), 0), dtype=bool), pattern_bits(regions, hidden), expected)
    return regions


def assert_compound_map_is_exact(
    layers: Sequence[FloatLayer],
    perturbations: Sequence[Perturbation],
    image: np.ndarray,
    *,
    denominator: int = 2**20,
    **options: object,
) -> RegionSet:
    """Subdivide a compound network and compare everything with the exact map.

    Pixels are multiples of 1/denominator, also where their floats (v/255) are not: exactly coincident lines stay so.
    """
    compound = make_compound(layers, perturbations, image)
    expected = exact_compound_map(compound, layers, denominator=denominator)
    regions = subdivide(compound, **options)
    _assert_equal(regions, clip_bits(compound, regions), pattern_bits(regions, compound.hidden), expected)
    return regions


def exact_compound_map(compound: Compound, layers: Sequence[FloatLayer], *, denominator: int = 2**20) -> ExactMap:
    """The exact map of a compound network, knot cell by knot cell."""
    expected: ExactMap = {}
    low, high = _exact(compound.domain.low), _exact(compound.domain.high)
    chain = rational_layers(layers)
    for number, cell in enumerate(compound.cells):
        offset = [on_grid(value, denominator) for value in (compound.perturbed.x0 + cell.offset).ravel()]
        slope = [[on_grid(value, denominator) for value in row] for row in cell.slope.reshape(len(low), -1)]
        whole = rational.compound(offset, slope, chain)
        _collect(expected, number, whole, _exact(cell.low), _exact(cell.high), low, high)
    return expected


def rational_layers(layers: Sequence[FloatLayer]) -> list[rational.Layer]:
    """The layers' floats as rationals, exactly."""
    return [([_exact(row) for row in weight], _exact(bias)) for weight, bias in layers]


def on_grid(value: float, denominator: int) -> Fraction:
    """The multiple of 1/denominator that a float stands for."""
    nearest = Fraction(round(value * denominator), denominator)
    assert abs(nearest - Fraction(float(value))) < Fraction(1, 10**12)
    return nearest


def _exact(values: Sequence[float]) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def _collect(
    expected: ExactMap,
    cell: int,
    layers: Sequence[rational.Layer],
    cell_low: list[Fraction],
    cell_high: list[Fraction],
    low: list[Fraction],
    high: list[Fraction],
) -> None:
    volume = Fraction(1)
    for left, right in zip(low, high, strict=True):
        volume *= right - left
    split = rational_solids.split_regions if len(low) == 3 else rational.split_regions
    for region in split(layers, cell_low, cell_high):
        forms = np.zeros((max(2, len(low)) + 1, len(region.logits)))
        for j, form in enumerate(region.logits):
            for axis in range(len(low)):
                forms[axis, j] = form[axis] * (high[axis] - low[axis])
            forms[-1, j] = rational.evaluate(form, tuple(low))
        key = (cell, *region.pattern)
        assert key not in expected
        expected[key] = (region.area / volume, forms)


def _assert_equal(regions: RegionSet, clip: np.ndarray, pattern: np.ndarray, expected: ExactMap) -> None:
    assert regions.stopped is None
    keys = [(int(cell), *map(int, row)) for cell, row in zip(regions.cell, np.hstack([clip, pattern]), strict=True)]
    assert len(set(keys)) == len(keys), "two regions of a cell share a pattern"
    assert set(keys) == set(expected)
    for number, key in enumerate(keys):
        share, forms = expected[key]
        assert abs(regions.polytopes.volumes[number] - float(share)) <= 1e-9
        assert np.allclose(regions.logits[number], forms, rtol=0, atol=1e-9 * max(1.0, np.abs(forms).max()))
