"""Enclosures of curved images: no sample may leave them, they are tight, and planted faults are caught."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enclosures import ROUNDING, excess
from steadygaze.perturbation import compose, movement, parse_spec
from steadygaze.perturbation.movement import Moved
from steadygaze.perturbation.scalar_forms import Form

GREY = np.clip(np.random.default_rng(5).random((1, 12, 11)) * 2 - 0.6, 0.0, 1.0)
COLOUR = np.random.default_rng(6).random((3, 6, 7))
MOVEMENTS = ["rotate:-60..60", "scale:0.5..1.5", "shear:-0.5..0.5", "shear:axis=y:-0.5..0.5", "translate:dx=2:-2..2"]
LIGHTS = [
    "brightness:-0.3..0.3", "hue:-60..60", "patch:x=1,y=1,w=2,h=2", "contrast:-1..1", "contrast:pivot=mean:-1..1",
    "haze:colour=0.25", "saturation", "field:kind=radial,mode=times:-1..1", "blur:sigma=0.7", "shadow:side=left",
    "occlude:x=1,y=1,w=2,h=2",
]  # fmt: skip


@pytest.mark.parametrize(
    "specs",
    [["rotate:-60..60"], ["scale:0.5..1.5"], ["shear"], ["rotate:border=edge"], ["rotate", "scale"],
     ["translate:dx=2:-2..2", "translate:dy=2:-2..2"], ["rotate", "translate:dx=2", "brightness"],
     ["rotate", "contrast:pivot=mean:-1..1"], ["scale", "blur:sigma=1.5", "haze"], ["translate:dx=2", "contrast"]],
)  # fmt: skip
def test_hundred_thousand_samples_stay_inside(specs: list[str]) -> None:
    perturbed = compose([parse_spec(spec) for spec in specs], GREY)
    generator, d = np.random.default_rng(7), len(specs)
    for width in (0.002, 0.02, 0.2, 1.0):
        for seed in range(5):
            low = generator.random(d) * (1.0 - width)
            assert excess(perturbed, low, low + width, 5_000, seed) <= ROUNDING


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(MOVEMENTS), min_size=0, max_size=2, unique=True),
    st.lists(st.sampled_from(LIGHTS), min_size=1, max_size=2, unique=True),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 1e-9, 1e-3, 0.05, 0.4, 1.0]),
)
def test_any_combination_is_enclosed(movements: list[str], lights: list[str], seed: int, width: float) -> None:
    generator = np.random.default_rng(seed)
    image = generator.integers(0, 3, (3, *generator.integers(1, 6, 2))) / 2.0
    if min(image.shape[1:]) < 3:
        lights = [spec for spec in lights if not spec.startswith(("patch", "occlude"))] or LIGHTS[:1]
    if image.shape[2] < 2:
        movements = [spec for spec in movements if not spec.startswith("translate")]
    perturbed = compose([parse_spec(spec) for spec in movements + lights], image)
    if perturbed.curve is None:
        return
    low = generator.random(perturbed.domain.dimension) * (1.0 - width)
    assert excess(perturbed, low, low + width, 500, seed) <= ROUNDING


@pytest.mark.parametrize("degrees", [0.25, 1.0])
def test_rotated_pixels_have_hardly_more_than_their_range(degrees: float) -> None:
    perturbed = compose([parse_spec("rotate:-30..30")], GREY)
    assert perturbed.curve is not None
    ratios = []
    for first in (-29.0, -7.3, 0.0, 11.6):
        low = perturbed.domain.to_unit(np.array([[first]]))
        found = perturbed.curve.enclose(perturbed.box(low, low + degrees / 60.0))
        images = perturbed.unclipped(np.linspace(first, first + degrees, 201)[:, None]).reshape(201, -1)
        true = images.max(axis=0) - images.min(axis=0)
        own = 2.0 * (np.abs(found.coefficients[0, 1:]).sum(axis=0) + found.radius[0])
        ratios.append((own / np.maximum(true, 1e-9))[true > 0.01])
    assert np.median(np.concatenate(ratios)) < 1.3


def test_remainders_between_knots_shrink_with_the_square() -> None:
    perturbed = compose([parse_spec("rotate:-30..30")], GREY)
    assert perturbed.curve is not None
    low = np.array([[0.61]])
    wide, narrow = (perturbed.curve.enclose(perturbed.box(low, low + width)).radius[0] for width in (4e-4, 2e-4))
    is_smooth = wide > 1e-9
    assert np.median(wide[is_smooth] / narrow[is_smooth]) == pytest.approx(4.0, rel=0.05)


def test_pixels_that_no_box_reaches_are_exactly_zero() -> None:
    image = np.zeros((1, 15, 15))
    image[0, 7, 7] = 1.0
    perturbed = compose([parse_spec("rotate:-30..30")], image)
    assert perturbed.curve is not None
    found = perturbed.curve.enclose(perturbed.box(np.zeros((1, 1)), np.ones((1, 1))))
    assert found.radius.reshape(15, 15)[0, 0] == 0.0
    assert not found.coefficients.reshape(2, 15, 15)[:, 0, 0].any()
    assert found.radius.reshape(15, 15)[7, 8] > 0.0


class TestPlantedFaults:
    """The samples above notice enclosures that are wrong."""

    @staticmethod
    def worst(specs: list[str]) -> float:
        perturbed, generator = compose([parse_spec(spec) for spec in specs], GREY), np.random.default_rng(8)
        d, found = len(specs), []
        for width in (0.02, 0.2):
            low = generator.random(d) * (1.0 - width)
            found.append(excess(perturbed, low, low + width, 2_000))
        return max(found)

    def test_a_halved_remainder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = Moved.enclose

        def halved(self: Moved, pixels: np.ndarray, box: object) -> Form:
            found = whole(self, pixels, box)  # type: ignore[arg-type]
            return Form(found.coefficients, 0.5 * found.radius)

        monkeypatch.setattr(Moved, "enclose", halved)
        assert self.worst(["rotate:-60..60"]) > 1e-6

    def test_a_missed_knot(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def thinned(pixels: np.ndarray, outside: str) -> np.ndarray:
            # As if pixels between whole numbers were those of a coarser grid, with every second knot missing.
            padded = np.pad(pixels, [(0, 0), (1, 1), (1, 1)])
            padded[:, :, 2:-1:2] = (
                0.5 * (padded[:, :, 1:-2:2] + padded[:, :, 3::2])[:, :, : padded[:, :, 2:-1:2].shape[2]]
            )
            return padded

        perturbed = compose([parse_spec("rotate:-60..60")], GREY)
        assert perturbed.curve is not None
        images = perturbed.unclipped(np.array([[3.0]]))
        monkeypatch.setattr(movement, "pad", thinned)
        low = perturbed.domain.to_unit(np.array([[3.0]]))
        found = perturbed.curve.enclose(perturbed.box(low, low))
        assert (np.abs(images.ravel() - found.coefficients[0, 0]) - found.radius[0]).max() > 1e-3

    def test_movements_in_the_other_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = Moved.enclose_source
        monkeypatch.setattr(Moved, "enclose_source", lambda self, box: whole(Moved(self.movements[::-1]), box))
        assert self.worst(["rotate:-60..60", "translate:dx=2"]) > 1e-3
