"""The families against their definitions, worked out by hand on tiny images."""

import sys

import numpy as np
import pytest

from steadygaze import perturbation
from steadygaze.errors import InternalError, PerturbationError
from steadygaze.perturbation import Brightness, Darkness, Patch, Translate, compose, families, parse_spec
from steadygaze.perturbation.families import find_families

# 1 channel, 2 rows, 3 columns.
SMALL = np.array([[[0.0, 0.25, 0.5], [0.75, 1.0, 0.125]]])


def image_at(one, theta, image=SMALL):
    return compose([one], image).image([theta])


def test_brightness_adds_and_clips():
    expected = [[[0.5, 0.75, 1.0], [1.0, 1.0, 0.625]]]
    np.testing.assert_array_equal(image_at(Brightness(), 0.5), expected)
    np.testing.assert_array_equal(image_at(Brightness(range=(-0.5, 0)), -0.5), np.maximum(SMALL - 0.5, 0))


def test_darkness_is_the_papers_relu():
    for theta in (0.0, 0.2, 0.5, 1.0):
        np.testing.assert_array_equal(image_at(Darkness(), theta), np.maximum(SMALL - theta, 0))


def test_patch_counts_columns_and_rows_half_open():
    # x = 1 is the second column, y = 0 the first row; one column wide, two rows high.
    expected = SMALL.copy()
    expected[0, 0, 1] += 0.5
    expected[0, 1, 1] = 1.0  # 1.5 clipped
    np.testing.assert_array_equal(image_at(Patch(x=1, y=0, w=1, h=2), 0.5), expected)
    _, slope = Patch(x=1, y=0, w=2, h=1).change(SMALL, 0, 1)
    np.testing.assert_array_equal(slope, [[[0, 1, 1], [0, 0, 0]]])


def test_dark_patch_subtracts():
    expected = [[[0.0, 0.25, 0.25], [0.75, 1.0, 0.0]]]
    np.testing.assert_array_equal(image_at(Patch(x=2, y=0, w=1, h=2, tone=-1), 0.25), expected)


def test_patch_over_the_whole_image_is_brightness():
    whole = Patch(x=0, y=0, w=3, h=2)
    np.testing.assert_array_equal(whole.change(SMALL, 0, 1)[1], Brightness().change(SMALL, 0, 1)[1])


@pytest.mark.parametrize(
    ("one", "by_one", "name"),
    [
        (Translate(dx=1), [[[0, 0, 0.25], [0, 0.75, 1]]], "translation right [px]"),
        (Translate(dx=-1), [[[0.25, 0.5, 0], [1, 0.125, 0]]], "translation left [px]"),
        (Translate(dy=1), [[[0, 0, 0], [0, 0.25, 0.5]]], "translation down [px]"),
        (Translate(dy=-1), [[[0.75, 1, 0.125], [0, 0, 0]]], "translation up [px]"),
    ],
)
def test_translation_by_one_pixel_is_the_papers_form(one, by_one, name):
    """x0 + theta (shift(x0) - x0), vacated pixels zero."""
    assert one.name == name
    assert one.knots() == ()
    np.testing.assert_array_equal(image_at(one, 1.0), by_one)
    for theta in (0.0, 0.25, 0.5):
        np.testing.assert_allclose(image_at(one, theta), SMALL + theta * (by_one - SMALL), atol=1e-15)
    offset, slope = one.change(SMALL, 0, 1)
    np.testing.assert_array_equal(offset, np.zeros(SMALL.shape))
    np.testing.assert_array_equal(slope, by_one - SMALL)


def test_translation_over_several_pixels_interpolates_between_neighbours():
    row = np.array([[[1.0, 0.5, 0.0, 0.25]]])
    one = Translate(dx=3)
    assert one.knots() == (1.0, 2.0)
    np.testing.assert_array_equal(image_at(one, 2.0, row), [[[0, 0, 1, 0.5]]])
    np.testing.assert_array_equal(image_at(one, 1.5, row), [[[0, 0.5, 0.75, 0.25]]])
    np.testing.assert_array_equal(image_at(Translate(dx=4), 4.0, row), np.zeros((1, 1, 4)))


def test_negative_theta_moves_the_other_way():
    there, back = Translate(dx=2, range=(-2, 2)), Translate(dx=-2, range=(-2, 2))
    for theta in (-2.0, -1.5, -0.25, 0.0, 0.75, 2.0):
        np.testing.assert_array_equal(image_at(there, theta), image_at(back, -theta))


@pytest.mark.parametrize(
    ("ends", "knots"),
    [
        ((0, 1.5), (1.0,)),
        ((-1, 2), (0.0, 1.0)),
        ((0.25, 0.75), ()),
        ((0, 1), ()),
        ((-0.5, 0.5), (0.0,)),
        ((-3, 3), (-2.0, -1.0, 0.0, 1.0, 2.0)),
        ((0, 30 * 0.1), (1.0, 2.0)),
        ((0, 2 + 1e-8), (1.0,)),
    ],
)
def test_knots_are_the_whole_pixels_strictly_inside(ends, knots):
    assert Translate(dx=3, range=ends).knots() == knots


def test_offset_beside_zero_is_exactly_zero():
    # Large enough that an offset computed from the far end would show rounding errors.
    image = np.random.default_rng(0).integers(0, 256, (1, 28, 28)) / 255
    for low, high in ((-1, 0), (0, 1), (-0.5, 0), (0, 0.5)):
        offset, _ = Translate(dy=2, range=(-2, 2)).change(image, low, high)
        assert not offset.any()


def test_pieces_across_a_knot_are_a_bug():
    with pytest.raises(InternalError, match="not inside one whole pixel"):
        Translate(dx=3).change(SMALL, 0.5, 1.5)


def test_only_translation_moves_the_map():
    maps = np.random.default_rng(0).normal(size=(10, *SMALL.shape))
    for one in (Brightness(), Darkness(), Patch(x=0, y=0, w=1, h=1)):
        assert not one.moves
        assert one.transport(maps, 0, 1) is None
    offset, slope = Translate(dy=1).transport(maps, 0, 1)
    assert Translate.moves
    moved = np.zeros_like(maps)
    moved[..., 1, :] = maps[..., 0, :]
    np.testing.assert_allclose(maps + offset + 1.0 * slope, moved, atol=1e-15)


def test_channels_change_alike():
    image = np.random.default_rng(1).random((3, 4, 5))
    for one, theta in ((Brightness(), 0.3), (Patch(x=1, y=1, w=2, h=3), 0.4), (Translate(dx=-2), 1.25)):
        together = image_at(one, theta, image)
        alone = [image_at(one, theta, image[c : c + 1])[0] for c in range(3)]
        np.testing.assert_array_equal(together, alone)


def test_names():
    assert Brightness().name == "brightness"
    assert Darkness().name == "darkness"
    assert Patch(x=12, y=13, w=4, h=5).name == "patch 4×5 at (12, 13)"
    assert Patch(x=12, y=13, w=4, h=5, tone=-1).name == "dark patch 4×5 at (12, 13)"


def test_default_ranges_and_their_equality():
    assert (Brightness().low, Brightness().high) == (0.0, 1.0)
    assert (Translate(dx=-3).low, Translate(dx=-3).high) == (0.0, 3.0)
    assert Brightness(range=(0, 1)) == Brightness()
    assert hash(Translate(dy=2, range=[-0.0, 2])) == hash(Translate(dy=2))
    assert Brightness(range=(-1, 1)) != Brightness()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Brightness(range=(0.5, 0.2)), "inverted; write the smaller end first: 0.2..0.5"),
        (lambda: Brightness(range=(0.5, 0.5)), "empty"),
        (lambda: Brightness(range=(0.5, 0.5 + 1e-9)), "narrower"),
        (lambda: Brightness(range=(float("nan"), 1)), "not finite"),
        (lambda: Darkness(range=(0, float("inf"))), "not finite"),
        (lambda: Darkness(range=(0, 10**400)), "not finite"),
        (lambda: Darkness(range=(0, 1.5)), "beyond ±1"),
        (lambda: Brightness(range=(-1.01, 0)), "beyond ±1"),
        (lambda: Patch(x=0, y=0, w=1, h=1, range=(0, 2)), "beyond ±1"),
        (lambda: Brightness(range=(0, 1, 2)), "not a pair"),
        (lambda: Brightness(range="01"), "not a pair"),
        (lambda: Brightness(range=("0", "1")), "not a pair"),
        (lambda: Brightness(range=0.5), "not a pair"),
        (lambda: Brightness(range=np.array(0.5)), "not a pair"),
        (lambda: Brightness(range=np.zeros((9, 9))), "not a pair"),
        (lambda: Patch(x=0, y=0, w=0, h=1), "contains no pixel"),
        (lambda: Patch(x=0, y=0, w=1, h=-1), "contains no pixel"),
        (lambda: Patch(x=-1, y=0, w=1, h=1), "outside"),
        (lambda: Patch(x=0, y=-1, w=1, h=1), "outside"),
        (lambda: Patch(x=0, y=0, w=1, h=1, tone=0), "tone=.*expected 1"),
        (lambda: Patch(x=0.5, y=0, w=1, h=1), "x is 0.5; expected a whole number"),
        (lambda: Patch(x=True, y=0, w=1, h=1), "whole number"),
        (Translate, "moves nowhere"),
        (lambda: Translate(dx=1, dy=1), "one axis"),
        (lambda: Translate(dx=10**30), "whole number"),
        (lambda: Translate(dx=2, range=(0, 2.5)), "dx=2 bounds"),
        (lambda: Translate(dy=-2, range=(-3, 0)), "dy=-2 bounds"),
    ],
)
def test_refused_by_itself(make, what):
    with pytest.raises(PerturbationError, match=what) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("one", "what"),
    [
        (Patch(x=2, y=0, w=2, h=1), "columns 2 to 3 .* leave the image"),
        (Patch(x=0, y=1, w=1, h=2), "rows 1 to 2 leave the image"),
        (Translate(dx=4), "dx=4 is longer than the image, which is 3 pixels wide"),
        (Translate(dx=-4), "dx=-4 is longer"),
        (Translate(dy=3), "which is 2 pixels high"),
    ],
)
def test_refused_for_an_image(one, what):
    with pytest.raises(PerturbationError, match=what):
        one.check(SMALL.shape)


def test_fits_up_to_the_border():
    for one in (Patch(x=2, y=1, w=1, h=1), Patch(x=0, y=0, w=3, h=2), Translate(dx=3), Translate(dy=-2)):
        one.check(SMALL.shape)


TINT = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steadygaze.perturbation.base import Perturbation
from steadygaze.perturbation.families.brightness import Brightness


@dataclass(frozen=True, kw_only=True)
class Tint(Perturbation):
    keyword: ClassVar[str] = "{keyword}"
    example: ClassVar[str] = "{keyword}:grey=0.5"

    grey: float = 0.5

    @property
    def name(self):
        return "contrast"

    def apply(self, image, thetas):
        return image + thetas[:, None, None, None] * (self.grey - image)

    def change(self, image, low, high):
        return np.zeros(image.shape), self.grey - image
"""


def add_family(monkeypatch, folder, module, keyword):
    (folder / f"{module}.py").write_text(TINT.format(keyword=keyword))
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(folder)])
    # Setting and deleting makes monkeypatch forget the module afterwards, wherever it was imported.
    monkeypatch.setitem(sys.modules, f"{families.__name__}.{module}", None)
    monkeypatch.delitem(sys.modules, f"{families.__name__}.{module}")


def test_a_new_family_is_one_new_file(monkeypatch, tmp_path):
    before = list(find_families())
    assert "tint" not in before
    add_family(monkeypatch, tmp_path, "tint_for_a_test", "tint")
    assert list(find_families()) == sorted([*before, "tint"])
    one = parse_spec("tint:grey=0.25:0..0.5")
    assert (one.grey, one.high) == (0.25, 0.5)
    assert parse_spec(one.spec) == one
    assert perturbation.Tint is type(one)
    np.testing.assert_array_equal(compose([one], SMALL).image([0.5]), (SMALL + 0.25) / 2)
    with pytest.raises(PerturbationError, match="did you mean 'tint'"):
        parse_spec("tints")
    with pytest.raises(PerturbationError, match="grey is 'dark'; expected a number"):
        parse_spec("tint:grey=dark")
    with pytest.raises(PerturbationError, match="grey is nan; expected a finite number"):
        type(one)(grey=float("nan"))


def test_two_families_cannot_share_a_keyword(monkeypatch, tmp_path):
    add_family(monkeypatch, tmp_path, "second_for_a_test", "darkness")
    with pytest.raises(InternalError, match="already belongs to"):
        find_families()


def test_unknown_names_of_the_package_are_attribute_errors():
    with pytest.raises(AttributeError, match="Loudness"):
        perturbation.Loudness  # noqa: B018
