"""The traversal against exact rationals: the region at a point, the neighbour through every facet, and their data."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from steadygaze.perturbation import Brightness, Patch, Perturbation, parse_spec
from support.networks.hand_solved import IMAGES, NETWORKS, Tiny, TinyImage
from support.networks.layered_networks import crossing_layers, dyadic_layers, make_compound, on_unit_square
from support.oracles.exact_regions import exact_layers, exact_map
from support.readers.checked_traversal import Checked
from support.readers.visited_regions import bits_of


@pytest.mark.parametrize("tiny", NETWORKS, ids=lambda tiny: tiny.name)
def test_networks_solved_by_hand(tiny: Tiny) -> None:
    """Coincident lines, neurons that stay active, dead ones, lines through one point, through corners, along edges."""
    low, high = (np.array(ends, dtype=float) for ends in (tiny.low, tiny.high))
    checked = Checked.of_layers(on_unit_square(tiny.floats, low, high))
    assert len(checked.exact.regions) == len(tiny.areas)
    checked.check_everything()
    checked.check_vertices(most=25)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int, dimension: int) -> None:
    """Few distinct numbers, so lines coincide; every second network has its kinks through the same points."""
    rng = np.random.default_rng([seed, dimension, 21])
    most = {1: 7, 2: 6, 3: 4, 4: 3}[dimension]
    sizes = [dimension, *rng.integers(2, most, size=rng.integers(1, 3)), 2]
    points = rng.integers(0, 5, size=(3, dimension)) / 4
    layers = dyadic_layers(rng, sizes) if seed % 2 else crossing_layers(rng, sizes, points)
    checked = Checked.of_layers(layers)
    checked.check_everything()
    checked.check_vertices()
    for t in rng.random((4, dimension)):
        checked.at(t)


@pytest.mark.parametrize("seed", range(6))
def test_linear_programs_in_the_plane(seed: int) -> None:
    """The way of the higher dimensions, in two."""
    rng = np.random.default_rng([seed, 24])
    points = rng.integers(0, 5, size=(3, 2)) / 4
    layers = dyadic_layers(rng, [2, 4, 3, 2]) if seed % 2 else crossing_layers(rng, [2, 4, 3, 2], points)
    checked = Checked.of_layers(layers, by_programs=True)
    checked.check_everything()
    checked.check_vertices()


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("scale", [1.0, 3.0, -1.0, -0.7])
def test_the_same_line_again(dimension: int, scale: float) -> None:
    """Every neuron of both layers a second time, scaled or turned round: the same number of regions."""
    rng = np.random.default_rng([dimension, 22])
    (first, first_bias), (second, second_bias), (last, last_bias) = dyadic_layers(rng, [dimension, 3, 2, 2])
    single = [(first, first_bias), (second, second_bias), (last, last_bias)]
    twice = [
        (np.vstack([first, scale * first]), np.concatenate([first_bias, scale * first_bias])),
        (
            np.hstack([np.vstack([second, scale * second]), np.zeros((4, 3))]),
            np.hstack([second_bias, scale * second_bias]),
        ),
        (np.hstack([last, np.zeros((2, 2))]), last_bias),
    ]
    checked = Checked.of_layers(twice)
    assert len(checked.exact.regions) == len(exact_map(exact_layers(single), dimension).regions) > 1
    checked.check_everything()
    checked.check_vertices()


def test_a_neuron_that_stays_active_on_both_sides_in_three_dimensions() -> None:
    """h1 = ReLU(t1 − 1/2), h2 = ReLU(1/2 − t1), z = ReLU(h1 + h2): z vanishes on the plane and is active beside it."""
    layers = [
        (np.array([[1.0, 0, 0], [-1.0, 0, 0]]), np.array([-0.5, 0.5])),
        (np.array([[1.0, 1.0]]), np.zeros(1)),
        (np.array([[1.0], [0.0]]), np.array([0.0, 0.25])),
    ]
    checked = Checked.of_layers(layers)
    assert [region.key[3] for region in checked.exact.regions] == [1, 1]
    checked.check_everything()
    checked.at([0.5, 0.5, 0.5])
    checked.at([0.5, 0.0, 1.0])


def test_the_example_that_the_printed_search_gets_wrong() -> None:
    """θ ∈ [0,2]: a = ReLU(θ+1), h = ReLU(θ−1), z = ReLU(2h−a+1.5): four regions of a quarter each, in a row."""
    layers = [
        (np.array([[2.0], [2.0]]), np.array([1.0, -1.0])),
        (np.array([[-1.0, 2.0]]), np.array([1.5])),
        (np.array([[1.0], [0.0]]), np.array([0.0, 0.25])),
    ]
    checked = Checked.of_layers(layers)
    region, volumes, patterns = checked.traversal.region_at(np.zeros(1)), [], []
    while region is not None:
        volumes.append(region.volume)
        patterns.append([int(bit) for bits in bits_of(region, checked.cells[0]) for bit in bits])
        (onwards,) = np.flatnonzero(region.halfspaces[:, 0] < 0)
        region = checked.traversal.cross(region, int(onwards))
    assert volumes == pytest.approx([0.25] * 4, abs=1e-12)
    assert patterns == [[1, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_kinks_at_every_corner(dimension: int) -> None:
    """Each corner is on the kinks of ReLU(±t_i), ReLU(t_i − 1) and of the sum from there: two or one have volume."""
    eye = np.eye(dimension)
    rows = np.vstack([eye, -eye, eye, np.ones((1, dimension))])
    bias = np.concatenate([np.zeros(2 * dimension), -np.ones(dimension), [-0.5 * dimension]])
    layers = [(rows, bias), (np.vstack([np.ones((1, len(rows))), np.zeros((1, len(rows)))]), np.array([0.0, 0.5]))]
    checked = Checked.of_layers(layers)
    assert len(checked.exact.regions) == 2
    checked.check_everything()
    for corner in product((0.0, 1.0), repeat=dimension):
        region, _ = checked.at(corner)
        assert region.volume > 0


def test_dead_neurons_and_constants_make_no_regions() -> None:
    layers = [
        (np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]), np.array([0.0, 1.0, -1.0])),
        (np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), np.array([0.0, 1.0])),
        (np.eye(2), np.zeros(2)),
    ]
    checked = Checked.of_layers(layers)
    assert len(checked.exact.regions) == 1
    checked.check_everything()
    region, _ = checked.at([0.0, 0.0, 0.0])
    assert [checked.traversal.cross(region, facet) for facet in range(6)] == [None] * 6


@pytest.mark.parametrize("tiny", IMAGES, ids=lambda tiny: tiny.name)
def test_images_solved_by_hand(tiny: TinyImage) -> None:
    """At zero black and white pixels sit on their clip kinks."""
    perturbations: dict[str, list[Perturbation]] = {
        "two pixels brighter": [Brightness()],
        "brighter and patched": [Brightness(), Patch(x=0, y=0, w=1, h=1)],
        "patch on white": [Patch(x=0, y=0, w=2, h=1)],
    }
    image = np.array(tiny.offset, dtype=float).reshape(1, 1, -1)
    checked = Checked.of_compound(make_compound(tiny.floats, perturbations[tiny.name], image))
    assert len(checked.exact.regions) == tiny.regions
    checked.check_everything()
    checked.at(np.zeros(checked.dimension))


SPECS = (
    ("brightness",),
    ("translate:dx=2:-0.5..2",),
    ("brightness:-0.5..0.5", "patch:x=0,y=0,w=1,h=2"),
    ("translate:dx=2", "brightness:0..0.5"),
    ("patch:x=1,y=0,w=2,h=1,tone=-1:-1..1", "translate:dx=-1:-1..1"),
    ("translate:dx=1", "patch:x=0,y=1,w=2,h=1", "brightness"),
    ("translate:dx=2:-1..1", "patch:x=0,y=0,w=1,h=1:-0.5..0.5", "brightness:-0.5..0.5"),
)


@pytest.mark.parametrize("specs", SPECS, ids="+".join)
@pytest.mark.parametrize(("grey", "denominator"), [((0, 0, 64, 128, 256), 256), ((0, 0, 51, 128, 255), 255)])
@pytest.mark.parametrize("seed", range(3))
def test_compound_networks(seed: int, grey: tuple[int, ...], denominator: int, specs: tuple[str, ...]) -> None:
    """Pixels that floats hold exactly (quarters) and that they do not (255ths); zero is at a corner or inside."""
    rng = np.random.default_rng([seed, denominator, 23])
    shape = (1, 2, 3) if len(specs) < 3 else (1, 2, 2)
    pixels = int(np.prod(shape))
    points = rng.integers(0, 5, size=(3, pixels)) / 4
    layers = crossing_layers(rng, [pixels, 2, 2], points) if seed % 2 else dyadic_layers(rng, [pixels, 2, 2])
    image = rng.choice(grey, size=shape) / denominator
    compound = make_compound(layers, [parse_spec(spec) for spec in specs], image)
    checked = Checked.of_compound(compound, denominator if denominator == 255 else 2**20)
    if len(checked.exact.regions) < 150:
        checked.check_everything()
    zero = compound.to_unit(np.zeros((1, len(specs))))[0, : len(specs)]
    checked.at(zero)
    checked.check_vertices()


def test_a_point_on_a_knot_is_in_one_of_its_cells() -> None:
    compound = make_compound(
        [(np.eye(2), np.zeros(2)), (np.eye(2), np.zeros(2))], [parse_spec("translate:dx=2")], np.array([[[0.0, 1.0]]])
    )
    checked = Checked.of_compound(compound)
    region, number = checked.at([0.5])
    assert region.cell in (0, 1)
    assert checked.exact.regions[number].polytope.volume <= Fraction(1, 2)
