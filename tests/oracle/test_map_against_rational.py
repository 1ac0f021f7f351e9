"""The subdivision engine against exact rationals: same regions, patterns, areas and affine logits."""

import numpy as np
import pytest

from steadygaze.perturbation import Brightness, Darkness, Patch, Perturbation, Translate
from steadygaze.regions.subdivide import subdivide
from support.networks.hand_solved import IMAGES, NETWORKS, Tiny, TinyImage
from support.networks.layered_networks import crossing_layers, dyadic_layers, make_compound, on_unit_square, plain_map
from support.oracles.exact_maps import rational_layers
from support.oracles.rational_polygons import brute_force_patterns
from support.readers.maps import assert_compound_map_is_exact, assert_plain_map_is_exact, pattern_bits

IMAGE_PERTURBATIONS: dict[str, list[Perturbation]] = {
    "two pixels brighter": [Brightness()],
    "brighter and patched": [Brightness(), Patch(x=0, y=0, w=1, h=1)],
    "patch on white": [Patch(x=0, y=0, w=2, h=1)],
}
SHAPES = ((1, 2, 2), (1, 1, 3), (1, 3, 1), (2, 1, 2), (1, 2, 3))
RANGES = (None, (0.0, 0.5), (-0.5, 0.5), (0.25, 0.75), (-1.0, 0.0), (0.5, 1.0))


@pytest.mark.parametrize("tiny", NETWORKS, ids=lambda tiny: tiny.name)
def test_networks_solved_by_hand(tiny: Tiny) -> None:
    low, high = (np.array(ends, dtype=float) for ends in (tiny.low, tiny.high))
    regions = plain_map(on_unit_square(tiny.floats, low, high))
    bits = pattern_bits(regions, tuple(len(bias) for _, bias in tiny.floats[:-1])).astype(int)
    volume = float(np.prod(high - low))
    found = {tuple(row): area * volume for row, area in zip(bits.tolist(), regions.polytopes.volumes, strict=True)}
    assert found == pytest.approx({pattern: float(area) for pattern, area in tiny.areas.items()}, abs=1e-12)
    assert len(regions) == len(tiny.areas)


@pytest.mark.parametrize("tiny", NETWORKS, ids=lambda tiny: tiny.name)
def test_logits_of_networks_solved_by_hand(tiny: Tiny) -> None:
    assert_plain_map_is_exact(tiny.floats, tiny.low, tiny.high)


@pytest.mark.parametrize("tiny", IMAGES, ids=lambda tiny: tiny.name)
def test_images_solved_by_hand(tiny: TinyImage) -> None:
    image = np.array(tiny.offset, dtype=float).reshape(1, 1, -1)
    perturbations = IMAGE_PERTURBATIONS[tiny.name]
    compound = make_compound(tiny.floats, perturbations, image)
    assert np.array_equal(compound.cells[0].slope.reshape(len(tiny.low), -1), np.array(tiny.slope, dtype=float))
    assert len(subdivide(compound)) == tiny.regions
    assert_compound_map_is_exact(tiny.floats, perturbations, image)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("seed", range(60))
def test_random_plain_networks(seed: int, dimension: int) -> None:
    rng = np.random.default_rng([seed, dimension])
    sizes = [dimension, *rng.integers(2, 6, size=rng.integers(1, 4)), 2]
    low = rng.choice([-2.0, -1.0, 0.0, 0.25], size=dimension)
    width = rng.choice([0.5, 1.0, 2.0, 3.0], size=dimension)
    points = low + width * rng.integers(0, 5, size=(3, dimension)) / 4
    makers = (dyadic_layers(rng, sizes), crossing_layers(rng, sizes, points))
    assert_plain_map_is_exact(makers[seed % 2], low, low + width)


@pytest.mark.parametrize("seed", range(12))
def test_brute_force_over_all_patterns(seed: int) -> None:
    rng = np.random.default_rng([seed, 7])
    dimension = int(rng.integers(1, 3))
    layers = dyadic_layers(rng, [dimension, 3, 3, 2])
    low, high = np.full(dimension, -1.0), np.full(dimension, 1.0)
    regions = plain_map(on_unit_square(layers, low, high))
    found = {tuple(row) for row in pattern_bits(regions, (3, 3)).astype(int).tolist()}
    exact = rational_layers(layers)
    assert found == set(brute_force_patterns(exact, [-1] * dimension, [1] * dimension))


@pytest.mark.parametrize("seed", range(4))
def test_first_layer_with_more_polygons_than_runs(seed: int) -> None:
    """Dozens of polygons after the first layer: several of them follow each other in one walk."""
    rng = np.random.default_rng([seed, 11])
    slopes = rng.integers(-6, 7, size=(16, 2)) + 0.5
    through = rng.integers(1, 16, size=(16, 2)) / 16
    first = (slopes, -(slopes * through).sum(axis=1))
    regions = assert_plain_map_is_exact([first, *dyadic_layers(rng, [16, 2, 2])], [0, 0], [1, 1])
    assert len(regions) > 80


def random_perturbations(rng: np.random.Generator, shape: tuple[int, int, int]) -> list[Perturbation]:
    _, height, width = shape
    x, y = int(rng.integers(width)), int(rng.integers(height))
    where = {"x": x, "y": y, "w": int(rng.integers(1, width - x + 1)), "h": int(rng.integers(1, height - y + 1))}
    key, side = ("dx", width) if width > 1 else ("dy", height)
    length = int(rng.integers(1, side + 1)) * int(rng.choice([-1, 1]))
    families: list[Perturbation] = [
        Brightness(range=RANGES[rng.integers(len(RANGES))]),
        Darkness(range=RANGES[rng.integers(len(RANGES))]),
        Patch(**where, tone=int(rng.choice([-1, 1])), range=RANGES[rng.integers(len(RANGES))]),
        Translate(**{key: length}, range=(None, (-0.5, 1.0), (0.25, 0.75))[rng.integers(3)]),
    ]
    return [families[i] for i in rng.permutation(4)[: 1 + (rng.random() < 0.75)]]


@pytest.mark.parametrize(("levels", "denominator"), [((0.0, 0.0, 0.25, 0.5, 1.0, 1.0), 2**20), (None, 255)])
@pytest.mark.parametrize("seed", range(45))
def test_random_compound_networks(seed: int, levels: tuple[float, ...] | None, denominator: int) -> None:
    """Pixels of quarters, which floats hold exactly, and of 255ths, which they do not."""
    rng = np.random.default_rng([seed, denominator])
    shape = SHAPES[rng.integers(len(SHAPES))]
    grey = levels or tuple(np.array([0, 0, 51, 77, 128, 255, 255]) / 255)
    sizes = [int(np.prod(shape)), *rng.integers(2, 5, size=rng.integers(1, 3)), 3]
    points = rng.integers(0, 5, size=(3, sizes[0])) / 4
    makers = (dyadic_layers(rng, sizes), crossing_layers(rng, sizes, points))
    layers = makers[int(seed % 3 > 0)]
    perturbations = random_perturbations(rng, shape)
    assert_compound_map_is_exact(layers, perturbations, rng.choice(grey, size=shape), denominator=denominator)
