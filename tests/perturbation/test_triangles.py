"""Shifts interpolated on triangles: the definition in plain numpy, knot cells, enclosures, refusals, planted faults."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.bounds import forms
from steadygaze.bounds.forms import pixels
from steadygaze.errors import PerturbationError
from steadygaze.perturbation import Perturbed, compose, parse_specs, scalar_forms, triangles

IMAGE = np.clip(np.random.default_rng(1).random((2, 6, 7)) * 2 - 0.6, 0.0, 1.0)
LIGHTS = ("brightness:-0.3..0.3", "patch:x=0,y=0,w=1,h=1", "field:kind=xy:-0.5..0.5")
ROUNDING = 1e-12


def moved_by_definition(image: np.ndarray, across: float, down: float) -> np.ndarray:
    """The weighted mean of the three whole shifts at the corners of the triangle of (across, down)."""
    i, j = int(np.floor(across)), int(np.floor(down))
    u, v = across - i, down - j
    if u >= v:
        corners = {(i, j): 1 - u, (i + 1, j): u - v, (i + 1, j + 1): v}
    else:
        corners = {(i, j): 1 - v, (i, j + 1): v - u, (i + 1, j + 1): u}
    total, (height, width) = np.zeros(image.shape), image.shape[-2:]
    for (right, below), weight in corners.items():
        for y in range(max(below, 0), min(height + below, height)):
            for x in range(max(right, 0), min(width + right, width)):
                total[..., y, x] += weight * image[..., y - below, x - right]
    return total


def test_images_and_cells_at_a_thousand_thetas() -> None:
    perturbed = compose(parse_specs(["shift:dx=3,dy=2,interp=triangle", "brightness:-0.2..0.3"]), IMAGE)
    assert not perturbed.is_curved
    thetas = np.random.default_rng(2).uniform(perturbed.domain.low, perturbed.domain.high, (1000, 3))
    thetas[:5, :2] = [[0, 0], [3, -2], [1, 0.5], [-1.25, -1.25], [0.5, 1.5]]
    for theta, image in zip(thetas, perturbed.unclipped(thetas), strict=True):
        wanted = moved_by_definition(IMAGE, theta[0], theta[1]) + theta[2]
        np.testing.assert_allclose(image, wanted, atol=1e-14)
        cell = perturbed.cell_of(theta)
        own = perturbed.x0 + cell.offset + np.tensordot(theta, cell.slope, axes=1)
        np.testing.assert_allclose(own, wanted, atol=1e-13)
        np.testing.assert_allclose(perturbed.expected(IMAGE, theta), wanted - theta[2], atol=1e-14)


def test_beside_zero_the_offset_is_exactly_zero() -> None:
    perturbed = compose(parse_specs(["shift:dx=1,dy=1,interp=triangle"]), IMAGE)
    assert len(perturbed.cells) == 8
    around = [cell for cell in perturbed.cells if not cell.offset.any()]
    # Two triangles of two unit cells touch zero, and one of the other two.
    assert len(around) == 6


def test_along_one_axis_both_interpolations_agree() -> None:
    triangle, linear = (compose(parse_specs([f"translate:dx=2{own}"]), IMAGE) for own in (",interp=triangle", ""))
    thetas = np.linspace(0, 2, 41)[:, None]
    np.testing.assert_array_equal(triangle.images(thetas), linear.images(thetas))
    assert triangle.triangles is None


def excess(perturbed: Perturbed, low: np.ndarray, high: np.ndarray, count: int, seed: int = 0) -> float:
    """How far pixels and moved maps leave their enclosures on a box in t, at most, over random thetas and corners."""
    places = np.random.default_rng(seed).random((count, len(low)))
    places[: count // 10] = np.round(places[: count // 10])
    thetas = perturbed.domain.to_theta(low + places * (high - low))
    cell = perturbed.cell_of(perturbed.domain.to_theta(0.5 * (low + high))).index
    shown = pixels(perturbed, cell, low[None], high[None])
    maps = perturbed.enclose_maps(perturbed.x0 - 0.5, low[None], high[None])
    units = np.hstack([np.ones((count, 1)), 2.0 * places - 1.0])
    off = units @ shown.forms[0] - perturbed.images(thetas).reshape(count, -1)
    moved = np.tensordot(units, maps.coefficients[0], axes=1)
    assert perturbed.triangles is not None
    off_maps = moved - perturbed.triangles.images(perturbed.x0 - 0.5, thetas)
    return max(float((np.abs(off) - shown.remainder[0]).max()), float((np.abs(off_maps) - maps.radius[0]).max()))


def boxes(perturbed: Perturbed, width: float, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random box inside a random box of knots, `width` times as wide."""
    own = perturbed.boxes[generator.integers(len(perturbed.boxes))][0]
    low, high = perturbed.domain.to_unit(own.low), perturbed.domain.to_unit(own.high)
    start = low + generator.random(len(low)) * (1.0 - width) * (high - low)
    return start, start + width * (high - low)


@pytest.mark.parametrize("specs", [["shift:dx=2,dy=2,interp=triangle"], ["shift:dx=2,dy=1,interp=triangle", LIGHTS[0]]])
def test_hundred_thousand_samples_stay_inside(specs: list[str]) -> None:
    perturbed, generator = compose(parse_specs(specs), IMAGE), np.random.default_rng(7)
    for width in (0.0, 0.01, 0.1, 0.5, 1.0):
        for seed in range(10):
            assert excess(perturbed, *boxes(perturbed, width, generator), 2_000, seed) <= ROUNDING


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 1e-9, 1e-3, 0.05, 0.4, 1.0]),
    st.lists(st.sampled_from(LIGHTS), max_size=2, unique=True),
    st.sampled_from(["", ":-1..0.5", ":0.25..0.75/-1..1", ":-1..-0.625/0.375..1"]),
    st.booleans(),
)
def test_any_combination_is_enclosed(seed: int, width: float, lights: list[str], ends: str, is_first: bool) -> None:
    generator = np.random.default_rng(seed)
    image = generator.integers(0, 3, (generator.integers(1, 3), *generator.integers(1, 5, 2))) / 2.0
    moved = [f"shift:dx=1,dy=1,interp=triangle{ends}"]
    perturbed = compose(parse_specs(moved + lights if is_first else lights + moved), image)
    assert excess(perturbed, *boxes(perturbed, width, generator), 300, seed) <= ROUNDING
    theta = perturbed.domain.to_theta(generator.random(perturbed.domain.dimension))
    cell = perturbed.cell_of(theta)
    own = perturbed.x0 + cell.offset + np.tensordot(theta, cell.slope, axes=1)
    np.testing.assert_allclose(own, perturbed.unclipped(theta[None])[0], atol=1e-13)


def test_boxes_on_one_side_of_the_diagonal_are_exact() -> None:
    perturbed = compose(parse_specs(["shift:dx=1,dy=1,interp=triangle"]), IMAGE)
    low = perturbed.domain.to_unit(np.array([0.5, 0.125]))[None]
    found = pixels(perturbed, perturbed.cell_of([0.5, 0.125]).index, low, low + 0.0625)
    assert found.remainder.max() < 1e-13


class TestPlantedFaults:
    """The samples notice a remainder across the diagonal that is too small, and a diagonal that runs the other way."""

    @staticmethod
    def worst(width: float) -> float:
        perturbed, generator = (
            compose(parse_specs(["shift:dx=2,dy=2,interp=triangle"]), IMAGE),
            np.random.default_rng(8),
        )
        return max(excess(perturbed, *boxes(perturbed, width, generator), 500, seed) for seed in range(4))

    def test_a_halved_remainder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def halved(low: np.ndarray, high: np.ndarray) -> tuple:
            slope, offset, rest = scalar_forms.fold(low, high)
            return slope, offset, 0.5 * rest

        for place in (forms, triangles):
            with monkeypatch.context() as patch:
                patch.setattr(place, "fold", halved)
                assert self.worst(1.0) > 1e-3

    def test_the_other_diagonal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = triangles.Triangles.images
        other = np.array([1.0, -1.0])

        def turned(self: triangles.Triangles, maps: np.ndarray, thetas: np.ndarray) -> np.ndarray:
            return whole(self, maps[..., ::-1, :], thetas * other)[..., ::-1, :]

        monkeypatch.setattr(triangles.Triangles, "images", turned)
        assert self.worst(0.2) > 1e-3


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        (["shift:dx=2,dy=2,interp=triangle", "rotate"], "leave the other movements out, or give interp=bilinear"),
        (["shift:dx=2,dy=2,interp=triangle", "translate:dx=1"], "leave the other movements out"),
        (["translate:dx=2,interp=triangle", "translate:dx=1,interp=triangle"], "leave the other movements out"),
        (["shift:dx=2,dy=2,interp=triangle", "haze"], "haze, which depends on the pixels"),
        (["shift:dx=2,dy=2,interp=triangle:0.3..1/0.3000000001..1.1"], "beside a diagonal"),
        (["shift:dx=9,dy=2,interp=triangle"], "longer than the image"),
    ],
)
def test_mismatches_are_refused_in_one_line(specs: list[str], words: str) -> None:
    with pytest.raises(PerturbationError, match=words) as refusal:
        compose(parse_specs(specs), IMAGE)
    assert "\n" not in str(refusal.value)


def test_the_half_of_a_theta_beside_a_diagonal_is_exact():
    perturbed = compose(parse_specs(["shift:dx=1,dy=1,interp=triangle"]), np.random.default_rng(1).random((1, 5, 4)))
    theta = (0.13454366714800822, -0.8654563328519917)  # 2.8e-17 below the diagonal; sums in float64 say on it
    side = perturbed.cell_of(theta).side
    assert sum(Fraction(float(a)) * Fraction(x) for a, x in zip(side, (*theta, 1.0), strict=True)) >= 0
