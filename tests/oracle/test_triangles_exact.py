"""Shifts interpolated on triangles: all engines against exact rationals on tiny networks, and planted faults."""

from fractions import Fraction

import numpy as np
import pytest

from steadygaze.compound import Compound
from steadygaze.errors import InternalError
from steadygaze.perturbation import Perturbation, compose, parse_specs
from steadygaze.perturbation.triangles import Triangles
from steadygaze.regions.check import check_map
from steadygaze.regions.subdivide import subdivide
from support.networks.layered_networks import crossing_layers, dyadic_layers, make_compound
from support.oracles.exact_regions import exact_compound_map
from support.readers.checked_traversal import Checked
from support.readers.maps import clip_bits, pattern_bits

RANGES = ("", ":-1..0.5", ":0..1", ":-0.75..0.5/-0.25..1", ":0.25..0.75/0.5..1", ":-0.5..0.5/0.625..0.875")
LIGHTS = ("brightness:-0.25..0.5", "patch:x=0,y=0,w=1,h=1", "brightness:0..0.25")


def random_compound(seed: int, *lights: str) -> Compound:
    """A small image of quarters with a network whose lines often coincide."""
    rng = np.random.default_rng([seed, 17])
    shape = ((1, 2, 2), (1, 2, 3), (2, 2, 2))[seed % 3]
    specs = [f"shift:dx=1,dy=1,interp=triangle{RANGES[seed % len(RANGES)]}", *lights]
    order = list(rng.permutation(len(specs)))
    pixels = int(np.prod(shape))
    sizes = [pixels, 3, 2, 2]
    points = rng.integers(0, 5, size=(3, pixels)) / 4
    layers = dyadic_layers(rng, sizes) if seed % 2 else crossing_layers(rng, sizes, points)
    image = rng.choice([0.0, 0.0, 0.25, 0.5, 1.0], size=shape)
    perturbations: list[Perturbation] = parse_specs([specs[i] for i in order])
    return make_compound(layers, perturbations, image)


def assert_map_is_exact(compound: Compound) -> None:
    """The same patterns in the same cells, with the same volumes and logits."""
    regions, exact = subdivide(compound), exact_compound_map(compound)
    check_map(compound, regions)
    bits = np.hstack([clip_bits(compound, regions), pattern_bits(regions, compound.hidden)]).astype(int)
    keys = [(int(cell), *row) for cell, row in zip(regions.cell, bits.tolist(), strict=True)]
    truth = {region.key: region for region in exact.regions}
    assert sorted(keys) == sorted(truth)
    for number, key in enumerate(keys):
        assert regions.polytopes.volumes[number] == pytest.approx(float(truth[key].polytope.volume), abs=1e-13)
        wanted = np.array(truth[key].logits, dtype=float)
        np.testing.assert_allclose(regions.logits[number].T, wanted, atol=1e-12)


@pytest.mark.parametrize("seed", range(24))
def test_maps_of_two_parameters(seed: int) -> None:
    assert_map_is_exact(random_compound(seed))


@pytest.mark.parametrize("seed", range(12))
def test_maps_of_three_parameters(seed: int) -> None:
    assert_map_is_exact(random_compound(seed, LIGHTS[seed % 3]))


@pytest.mark.parametrize("seed", range(18))
def test_traversal_of_two_parameters(seed: int) -> None:
    checked = Checked.of_compound(random_compound(seed))
    checked.check_everything()
    checked.check_vertices()


@pytest.mark.parametrize("seed", range(8))
def test_traversal_of_three_parameters(seed: int) -> None:
    Checked.of_compound(random_compound(seed, LIGHTS[seed % 3])).check_everything()


def test_traversal_of_four_parameters() -> None:
    Checked.of_compound(random_compound(2, "brightness:0..0.25", "patch:x=0,y=0,w=1,h=1:0..0.5")).check_everything()


def test_cells_tile_the_domain() -> None:
    for ends in RANGES:
        compound = make_compound(
            dyadic_layers(np.random.default_rng(1), [6, 2, 2]),
            parse_specs([f"shift:dx=1,dy=1,interp=triangle{ends}"]),
            np.zeros((1, 2, 3)),
        )
        assert sum(region.polytope.volume for region in exact_compound_map(compound).regions) == Fraction(1)


class TestPlantedFaults:
    """A diagonal that runs the other way, halves exchanged, and a diagonal that is left out."""

    compound_of = staticmethod(lambda: random_compound(0))

    def check(self) -> None:
        compound = self.compound_of()
        check_map(compound, subdivide(compound))

    def test_nothing_planted(self) -> None:
        self.check()

    def test_exchanged_halves(self, monkeypatch: pytest.MonkeyPatch) -> None:
        change = Triangles.change
        monkeypatch.setattr(
            Triangles, "change", lambda self, pixels, low, *, is_above: change(self, pixels, low, is_above=not is_above)
        )
        with pytest.raises(InternalError, match="self-check failed"):
            self.check()

    def test_the_other_diagonal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def other(self: Triangles, low: np.ndarray, dimension: int) -> np.ndarray:
            row = np.zeros(dimension + 1)
            row[list(self.axes)] = 1.0
            row[-1] = -np.floor(low[list(self.axes)]).sum() - 1.0
            return row

        monkeypatch.setattr(Triangles, "side", other)
        monkeypatch.setattr(Triangles, "range_of_side", lambda *_: (-1.0, 1.0))
        with pytest.raises(InternalError, match="self-check failed"):
            self.check()

    def test_a_missed_diagonal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Triangles, "range_of_side", lambda *_: (0.0, 1.0))
        with pytest.raises(InternalError, match="self-check failed"):
            self.check()


def test_images_do_not_depend_on_the_planted_faults() -> None:
    """The self-check compares with images that know no cells."""
    perturbed = compose(parse_specs(["shift:dx=1,dy=1,interp=triangle"]), np.eye(2)[None])
    np.testing.assert_allclose(perturbed.image([0.5, 0.25]), [[[0.5, 0.25], [0.0, 0.75]]])
