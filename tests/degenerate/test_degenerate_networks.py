"""Special networks: dead, linear, a single neuron, lines that meet or (nearly) coincide, extreme weights."""

from fractions import Fraction

import numpy as np
import pytest

from steadygaze.perturbation import Brightness, Patch, Translate
from steadygaze.regions.subdivide import subdivide
from support.networks.layered_networks import FloatLayer, dyadic_layers, make_compound, plain_map
from support.readers.maps import (
    assert_compound_map_is_exact,
    assert_plain_map_is_exact,
    assert_tiles,
    assert_true_map,
    pattern_bits,
)

IMAGE = np.array([0.0, 0.5, 1.0, 0.25]).reshape(1, 2, 2)
ROW = Patch(x=0, y=0, w=2, h=1)
SUM: FloatLayer = (np.ones((2, 1)), np.zeros(2))


def lines(normals: np.ndarray, through: np.ndarray) -> FloatLayer:
    """A layer of neurons n·(t − p), one for each row."""
    return normals, -(normals * through).sum(axis=1)


# Networks without much in them


def test_dead_network_has_the_regions_of_the_clip_alone() -> None:
    layers = [(np.zeros((3, 4)), np.zeros(3)), (np.zeros((2, 3)), np.array([1.0, -1.0]))]
    regions = assert_compound_map_is_exact(layers, [Brightness(), ROW], IMAGE)
    # Pixels 0 and 0.5 saturate at b + p = 1 and 1/2, pixel 0.25 at b = 3/4; 1 and all others never become black.
    assert len(regions) == 5
    assert len(regions.patterns) == 1
    assert np.array_equal(regions.logits[:, 2], np.tile([1.0, -1.0], (5, 1)))


def test_dead_layer_deep_inside() -> None:
    rng = np.random.default_rng(0)
    layers = [*dyadic_layers(rng, [2, 4]), (np.zeros((3, 4)), -np.ones(3)), *dyadic_layers(rng, [3, 4, 2])]
    assert_plain_map_is_exact(layers, [-1, -1], [1, 1])


def test_linear_model_without_any_neuron() -> None:
    layers = dyadic_layers(np.random.default_rng(5), [4, 3])
    for perturbations in ([Brightness()], [Brightness(), ROW], [Translate(dx=2), ROW]):
        regions = assert_compound_map_is_exact(layers, perturbations, IMAGE)
        assert regions.patterns.shape == (1, 0)


def test_pixels_as_logits() -> None:
    layers = [(np.eye(4), np.zeros(4))]
    regions = assert_compound_map_is_exact(layers, [Brightness(range=(-1.0, 1.0))], IMAGE)
    # Kinks at −1, −1/2, −1/4, 0, 1/2, 3/4, 1.
    assert sorted(2 * regions.polytopes.volumes) == pytest.approx([0.25, 0.25, 0.25, 0.25, 0.5, 0.5])


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize(("bias", "regions"), [(-0.5, 2), (0.0, 1), (1.0, 1), (-2.0, 1), (-3.0, 1)])
def test_single_neuron(dimension: int, bias: float, regions: int) -> None:
    weight = np.zeros((1, dimension))
    weight[0, 0] = 1.0
    layers = [(weight, np.array([bias])), SUM]
    assert len(assert_plain_map_is_exact(layers, [0] * dimension, [1] * dimension)) == regions


def test_layers_of_a_single_neuron() -> None:
    narrow = [(np.ones((1, 4)), np.array([-2.0])), (-np.ones((1, 1)), np.array([0.5])), SUM]
    assert_compound_map_is_exact(narrow, [Brightness(), ROW], IMAGE)
    assert_compound_map_is_exact(narrow, [Translate(dy=2)], IMAGE)


# Lines that meet


@pytest.mark.parametrize("centre", [(0.5, 0.5), (1 / 3, 0.7), (0.0, 0.0), (1.0, 0.25)])
def test_all_lines_through_one_point(centre: tuple[float, float]) -> None:
    """n lines through a point inside make 2n sectors; through a corner or the border, those that enter make one more.

    The point is not a float in some cases: the lines then miss it by rounding, and must not make triangles there.
    """
    angles = np.pi * (np.arange(40) + 0.3) / 40
    normals = np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    regions = plain_map([lines(normals, np.array(centre)), (np.ones((1, 40)), np.zeros(1))])
    assert_tiles(regions)
    entering = {(0.0, 0.0): 20 + 1, (1.0, 0.25): 40 + 1}
    assert len(regions) == entering.get(centre, 80)


def test_second_layer_through_the_same_point() -> None:
    first = lines(np.array([[1.0, 0], [0, 1.0], [1.0, 1.0], [1.0, -1.0]]), np.array([0.5, 0.5]))
    second = (np.array([[1.0, -2.0, 0, 0], [0, 1.0, -1.0, 3.0], [1.0, 1.0, -1.0, -1.0]]), np.zeros(3))
    assert_plain_map_is_exact([first, second, (np.ones((2, 3)), np.zeros(2))], [0, 0], [1, 1])


def test_hundred_coincident_lines() -> None:
    """Copies of x + 2y = 1 scaled by factors that are no powers of two, half of them the other way round."""
    factors = np.linspace(-3.1, 3.1, 100)
    layers = [(factors[:, None] * [1.0, 2.0], -factors), (np.ones((2, 100)) / 7, np.zeros(2))]
    regions = plain_map(layers)
    assert len(regions) == 2
    assert sorted(regions.polytopes.volumes) == pytest.approx([0.25, 0.75])
    bits = pattern_bits(regions, (100,))
    assert (bits[0] != bits[1]).all()


def test_hundred_coincident_lines_of_a_second_layer() -> None:
    factors = np.linspace(0.1, 3.1, 100)[:, None]
    layers = [
        (np.eye(2), np.zeros(2)),
        (factors * [1 / 3, -0.7], np.zeros(100)),
        (np.ones((1, 100)), np.zeros(1)),
    ]
    regions = plain_map(layers)
    # t1/3 = 0.7·t2 cuts off the triangle below t2 = t1/2.1.
    assert sorted(regions.polytopes.volumes) == pytest.approx([1 / 4.2, 1 - 1 / 4.2])


def test_zero_by_cancellation_is_never_active() -> None:
    """z = 0.1·h − 0.1·h' with h = h' is zero, whatever rounding says; so is (0.1 + 0.2)·h − 0.3·h'."""
    first = (np.array([[1.0, 3.0], [1.0, 3.0], [7.0, -1.0]]), np.array([-0.7, -0.7, 0.3]))
    second = (np.array([[0.1, -0.1, 0.0], [0.1 + 0.2, -0.3, 0.0], [-1.0, 0.0, 1.0]]), np.zeros(3))
    regions = plain_map([first, second, (np.ones((2, 3)), np.zeros(2))])
    assert_tiles(regions)
    assert not pattern_bits(regions, (3, 3))[:, 3:5].any()


# Lines that nearly coincide


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("gap", [1e-12, 3e-11])
def test_parts_left_unsplit_by_the_tolerance_are_reported(gap: float, dimension: int) -> None:
    weight = np.zeros((2, dimension))
    weight[:, 0] = 1.0
    regions = plain_map([(weight, -np.array([0.5, 0.5 + gap])), (np.ones((1, 2)), np.zeros(1))])
    assert len(regions) == 2
    assert_tiles(regions)
    assert 0.999 * gap <= regions.accuracy.slivers <= 10 * gap


@pytest.mark.parametrize("gap", [2.0**-30, 2.0**-20])
def test_lines_farther_apart_than_the_tolerance_are_split(gap: float) -> None:
    layers = [(np.array([[1.0, 0.0], [1.0, 0.0]]), -np.array([0.5, 0.5 + gap])), (np.ones((1, 2)), np.zeros(1))]
    regions = assert_plain_map_is_exact(layers, [0, 0], [1, 1])
    assert sorted(regions.polytopes.volumes)[0] == pytest.approx(gap, rel=1e-6)
    assert regions.accuracy.slivers == 0


def test_a_stack_of_close_lines_does_not_swallow_what_lies_between() -> None:
    """A thousand lines 3e-11 apart cover 3e-8: unsplit parts stay within the reported share."""
    places = 0.5 + 3e-11 * np.arange(1000)
    regions = plain_map([(np.tile([1.0, 0.0], (1000, 1)), -places), (np.ones((1, 1000)), np.zeros(1))])
    assert_tiles(regions)
    found = np.sort(np.unique(regions.polytopes.points[:, 0]))
    missed = np.abs(found[:, None] - places).min(axis=0).max()
    assert missed <= 1.01e-10
    assert 1e-11 < regions.accuracy.slivers < 1e-6


def test_nearly_parallel_lines_cross_where_they_should() -> None:
    """Slopes differ by 2⁻²⁰, so the thin wedges beside the crossing have an area of 2⁻²³ each."""
    tilt = 2.0**-20
    layers = [
        (np.array([[0.0, 1.0], [tilt, 1.0]]), np.array([-0.5, -0.5 - tilt / 2])),
        (np.ones((1, 2)), np.zeros(1)),
    ]
    regions = assert_plain_map_is_exact(layers, [0, 0], [1, 1])
    assert sorted(regions.polytopes.volumes)[:2] == pytest.approx([2.0**-23, 2.0**-23], rel=1e-6)


# Sizes of numbers


@pytest.mark.parametrize("scales", [(2.0**20, 1, 1), (1, 2.0**20, 2.0**-20), (2.0**-20, 2.0**20, 1), (2.0**20,) * 3])
@pytest.mark.parametrize("seed", range(3))
def test_weights_of_millions_and_millionths(seed: int, scales: tuple[float, float, float]) -> None:
    layers = dyadic_layers(np.random.default_rng(seed), [2, 4, 4, 2])
    # Biases follow the size of what flows in, so that the lines stay inside the domain.
    flow = np.cumprod(scales)
    scaled = [(weight * scale, bias * size) for (weight, bias), scale, size in zip(layers, scales, flow, strict=True)]
    assert_plain_map_is_exact(scaled, [-1, -1], [1, 1])


@pytest.mark.parametrize("size", [1e6, 1e-6])
def test_scales_that_are_no_powers_of_two(size: float) -> None:
    """Large or small rows, undone by the next layer: the regions are those of the plain network."""
    layers = dyadic_layers(np.random.default_rng(12), [4, 4, 3, 2])
    scaled = [(layers[0][0] * size, layers[0][1] * size), (layers[1][0] / size, layers[1][1]), layers[2]]
    compound = make_compound(scaled, [Brightness(), ROW], IMAGE)
    plain = subdivide(make_compound(layers, [Brightness(), ROW], IMAGE))
    regions = subdivide(compound)
    assert len(regions) == len(plain)
    assert np.allclose(np.sort(regions.polytopes.volumes), np.sort(plain.polytopes.volumes), rtol=0, atol=1e-9)
    assert_true_map(compound, regions)


def test_small_slope_beside_a_large_constant() -> None:
    """z = 2⁻²⁰·t1 + (1 − 1 − 2⁻²¹): the line t1 = 1/2 survives the cancellation."""
    first = (np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([0.0, 1.0]))
    second = (np.array([[2.0**-20, 1.0]]), np.array([-1.0 - 2.0**-21]))
    regions = assert_plain_map_is_exact([first, second, (np.ones((1, 1)), np.zeros(1))], [0, 0], [1, 1])
    assert sorted(regions.polytopes.volumes) == pytest.approx([0.5, 0.5])


# Many


def test_polygon_with_hundreds_of_vertices() -> None:
    """n tangents of a circle: the region around it is a regular n-gon of area n·tan(π/n)·r², and a line halves it."""
    n, radius = 150, 0.4
    angles = 2 * np.pi * (np.arange(n) + 0.25) / n
    normals = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    weight, bias = lines(normals, 0.5 + radius * normals)
    weight, bias = np.vstack([weight, np.eye(2)]), np.append(bias, [0.0, 0.0])
    bend = np.zeros((1, n + 2))
    bend[0, n:] = (1.0, -1.0)
    regions = plain_map([(weight, bias), (bend, np.zeros(1)), (np.ones((1, 1)), np.zeros(1))])
    assert_tiles(regions)
    bits = pattern_bits(regions, (n + 2, 1))
    inner = ~bits[:, :n].any(axis=1)
    assert inner.sum() == 2
    assert regions.polytopes.volumes[inner].sum() == pytest.approx(n * np.tan(np.pi / n) * radius**2)
    assert regions.polytopes.volumes[inner][0] == pytest.approx(regions.polytopes.volumes[inner][1])


def test_grid_with_more_regions_than_one_buffer() -> None:
    """64 lines across each axis: 65² rectangles, each with its own pattern."""
    places = (np.arange(64) + 1) / 65
    weight = np.repeat(np.eye(2), 64, axis=0)
    regions = plain_map([(weight, -np.tile(places, 2)), (np.ones((2, 128)), np.zeros(2))])
    assert len(regions) == len(regions.patterns) == 65**2
    assert np.allclose(regions.polytopes.volumes, float(Fraction(1, 65**2)), rtol=1e-9)
    # Logits are Σ ReLU(t − place): at the centre of each rectangle by definition.
    centres = regions.polytopes.centres
    expected = np.maximum(centres[:, :, None] - places, 0).sum(axis=(1, 2))
    found = np.einsum("rik,ri->rk", regions.logits, np.hstack([centres, np.ones((len(centres), 1))]))
    assert np.allclose(found, expected[:, None], rtol=0, atol=1e-10)
