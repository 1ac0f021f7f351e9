"""Enclosures of curved images: no sample may leave them, they are tight, and planted faults are caught."""

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enclosures import ROUNDING, excess
from steadygaze.perturbation import compose, movement, moving_kernels, parse_spec, scalar_forms
from steadygaze.perturbation.curved import Curve
from steadygaze.perturbation.families import rotate, scale
from steadygaze.perturbation.movement import Moved
from steadygaze.perturbation.scalar_forms import Box, Form

GREY = np.clip(np.random.default_rng(5).random((1, 12, 11)) * 2 - 0.6, 0.0, 1.0)
SMALL = GREY[:, 2:9, 2:9]  # for kernels that run as plain Python
RAMP = np.tile(np.linspace(0.0, 1.0, 11), (1, 12, 1))
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
def test_twenty_thousand_samples_stay_inside(specs: list[str]) -> None:
    perturbed = compose([parse_spec(spec) for spec in specs], GREY)
    generator, d = np.random.default_rng(7), len(specs)
    for width in (0.002, 0.02, 0.2, 1.0):
        for seed in range(5):
            low = generator.random(d) * (1.0 - width)
            assert excess(perturbed, low, low + width, 1_000, seed) <= ROUNDING


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


KERNEL_FAULTS = {
    "every second knot missed": ("if low < number < high:", "if low < number < high and number % 2:"),
    "all knots missed": ("if low < number < high:", "if low < number < high and number < 0:"),
    "half of the remainder across knots": ("rest = 0.5 * (most - least)", "rest = 0.25 * (most - least)"),
    "half of the remainder in a cell": ("(rest + abs(twist) * mixed)", "0.5 * (rest + abs(twist) * mixed)"),
    "a cell that is left": ("is_one_cell = low_x >= left and high_x <= left + 1", "is_one_cell = low_x >= left"),
    "ranges that are too short": ("(spread_x + far_x) * (1.0 + unit)", "0.9 * (spread_x + far_x)"),
}
"""Lines of the kernels, and what a mistake would make of them."""

SCALAR_FAULTS = {"cosine": (rotate, "rotate:-60..60"), "reciprocal": (scale, "scale:0.5..1.5")}
"""Functions that enclose coordinates: where they are used, and a movement that uses them."""


def plain_kernels(right: str, wrong: str) -> ModuleType:
    """The kernels as plain Python, with one line changed."""
    source = inspect.getsource(moving_kernels)
    assert right in source
    found = ModuleType("planted")
    lines = source.replace("from ..compiling import compiled", "compiled = lambda function: function")
    exec(compile(lines.replace(right, wrong) if right else lines, "planted", "exec"), found.__dict__)
    return found


class TestPlantedFaults:
    """The samples above notice enclosures that are wrong."""

    @staticmethod
    def worst(specs: list[str], image: np.ndarray = GREY) -> float:
        perturbed, generator = compose([parse_spec(spec) for spec in specs], image), np.random.default_rng(8)
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

    @pytest.mark.parametrize("fault", KERNEL_FAULTS)
    def test_a_fault_in_the_kernels(self, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
        monkeypatch.setattr(movement, "kernels", plain_kernels(*KERNEL_FAULTS[fault]))
        assert self.worst(["rotate:-60..60"], SMALL) > 1e-6

    def test_the_same_kernels_without_a_fault(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(movement, "kernels", plain_kernels("", ""))
        assert self.worst(["rotate:-60..60"], SMALL) <= ROUNDING

    @pytest.mark.parametrize("fault", SCALAR_FAULTS)
    def test_a_remainder_of_a_coordinate_left_out(self, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
        whole = getattr(scalar_forms, fault)

        def halved(*given: Any, **options: Any) -> Form:
            found = whole(*given, **options)
            return Form(found.coefficients, 0.5 * found.radius)

        module, spec = SCALAR_FAULTS[fault]
        monkeypatch.setattr(module, fault, halved)
        # One column: pixels are as steep as they can be, and nothing but the coordinates is rounded or bent.
        assert self.worst([spec], RAMP) > 1e-6

    def test_light_before_movement(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def swapped(self: Curve, box: Box) -> Form:
            """The lights are computed from the image before it moves."""
            assert self.moved is not None
            (boxes, d), size = box.middle.shape, self.x0.size
            still = np.zeros((boxes, 1 + d, size))
            still[:, 0] = self.x0.ravel()
            found = self.moved.enclose(self.x0, box)
            total = Form(found.coefficients.reshape(boxes, 1 + d, size), found.radius.reshape(boxes, size))
            for light in self.lights:
                total = total + light.enclose(Form(still, np.zeros((boxes, size))), box)
            return total

        assert self.worst(["rotate:-60..60", "occlude:x=2,y=2,w=4,h=4"]) <= ROUNDING
        monkeypatch.setattr(Curve, "enclose", swapped)
        assert self.worst(["rotate:-60..60", "occlude:x=2,y=2,w=4,h=4"]) > 1e-3

    def test_movements_in_the_other_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = Moved.enclose_source
        monkeypatch.setattr(Moved, "enclose_source", lambda self, box: whole(Moved(self.movements[::-1]), box))
        assert self.worst(["rotate:-60..60", "translate:dx=2"]) > 1e-3
