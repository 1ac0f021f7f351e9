"""The subdivision in three dimensions against exact rationals and against linear programs over all patterns."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from steadygaze.perturbation import Brightness, Darkness, Patch, Perturbation, Translate
from support.networks.layered_networks import FloatLayer, crossing_layers, dyadic_layers, plain_map
from support.oracles import rational_solids
from support.readers.maps import assert_compound_map_is_exact, assert_plain_map_is_exact, pattern_bits


def test_exact_volumes_of_a_cube_cut_by_its_diagonals() -> None:
    """ReLU(x − y), ReLU(y − z), ReLU(x − z): six tetrahedra of one sixth."""
    first = [[Fraction(v) for v in row] for row in ([1, -1, 0], [0, 1, -1], [1, 0, -1])]
    layers = [(first, [Fraction(0)] * 3), ([[Fraction(1)] * 3], [Fraction(0)])]
    found = rational_solids.split_regions(layers, [Fraction(0)] * 3, [Fraction(1)] * 3)
    assert [region.area for region in found] == [Fraction(1, 6)] * 6


@pytest.mark.parametrize("seed", range(24))
def test_random_plain_networks_of_three_inputs(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    sizes = [3, *rng.integers(2, 5, size=rng.integers(1, 4)), 2]
    low, width = rng.choice([-2.0, -1.0, 0.0, 0.25], size=3), rng.choice([0.5, 1.0, 2.0], size=3)
    points = low + width * rng.integers(0, 5, size=(3, 3)) / 4
    makers = (dyadic_layers(rng, sizes), crossing_layers(rng, sizes, points))
    assert_plain_map_is_exact(makers[seed % 2], low, low + width)


def test_coincident_planes() -> None:
    """Every plane also as its double and its negative, in both layers."""
    rng = np.random.default_rng(8)
    weight, bias = dyadic_layers(rng, [3, 3])[0]
    inner, inner_bias = dyadic_layers(rng, [9, 2])[0]
    layers = [
        (np.vstack([weight, 2 * weight, -weight]), np.concatenate([bias, 2 * bias, -bias])),
        (np.vstack([inner, 0.5 * inner, -inner]), np.concatenate([inner_bias, 0.5 * inner_bias, -inner_bias])),
        (np.ones((2, 6)), np.zeros(2)),
    ]
    regions = assert_plain_map_is_exact(layers, [-1, -1, -1], [1, 1, 1])
    assert len(regions) > 4


def has_volume(layers: list[FloatLayer], pattern: tuple[int, ...]) -> bool:
    """Whether a ball fits into the part of the unit cube with this pattern."""
    slope, constant, rows, start = np.eye(3), np.zeros(3), [], 0
    for weight, bias in layers[:-1]:
        slope, constant = weight @ slope, weight @ constant + bias
        bits = np.array(pattern[start : start + len(bias)])
        start += len(bias)
        rows.append(np.column_stack([slope, constant]) * np.where(bits, 1.0, -1.0)[:, None])
        slope, constant = slope * bits[:, None], constant * bits
    planes = np.vstack([*rows, np.hstack([np.eye(3), np.zeros((3, 1))]), np.hstack([-np.eye(3), np.ones((3, 1))])])
    norms = np.linalg.norm(planes[:, :3], axis=1)
    found = linprog([0, 0, 0, -1], np.column_stack([-planes[:, :3], norms]), planes[:, 3], bounds=[(None, None)] * 4)
    return bool(found.status == 0 and -found.fun > 1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_linear_programs_over_all_patterns(seed: int) -> None:
    rng = np.random.default_rng([seed, 9])
    weight = rng.normal(size=(4, 3))
    layers = [
        (weight, -weight @ rng.random(3)),
        (rng.normal(size=(3, 4)), 0.1 * rng.normal(size=3)),
        (np.ones((1, 3)), np.zeros(1)),
    ]
    found = {tuple(row) for row in pattern_bits(plain_map(layers), (4, 3)).astype(int).tolist()}
    assert found == {pattern for pattern in product((0, 1), repeat=7) if has_volume(layers, pattern)}


@pytest.mark.parametrize(("levels", "denominator"), [((0.0, 0.0, 0.25, 0.5, 1.0), 2**20), (None, 255)])
@pytest.mark.parametrize("seed", range(7))
def test_random_compounds_of_three_parameters(seed: int, levels: tuple[float, ...] | None, denominator: int) -> None:
    """Pixels of quarters, which floats hold exactly, and of 255ths, which they do not."""
    rng = np.random.default_rng([seed, denominator])
    shape = ((1, 2, 2), (1, 1, 3))[seed % 2]
    grey = levels or tuple(np.array([0, 0, 51, 128, 255]) / 255)
    families: list[Perturbation] = [
        Translate(dx=2 if seed % 3 == 0 else -1),
        Patch(x=0, y=0, w=1, h=1, tone=-1 if seed % 2 else 1),
        (Brightness(), Darkness(range=(0.25, 0.75)), Brightness(range=(-0.5, 0.5)))[seed % 3],
    ]
    order = rng.permutation(3)
    layers = crossing_layers(rng, [int(np.prod(shape)), 3, 2, 2], rng.integers(0, 5, size=(3, int(np.prod(shape)))) / 4)
    image = rng.choice(grey, size=shape)
    assert_compound_map_is_exact(layers, [families[i] for i in order], image, denominator=denominator)
