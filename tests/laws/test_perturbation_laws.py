"""Laws of perturbations over random images, ranges and thetas."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.errors import PerturbationError
from steadygaze.perturbation import Brightness, Darkness, Patch, Translate, compose, parse_spec

CHANNELS_HEIGHT_WIDTH = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5))
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def ranges(draw, low, high):
    """A range inside [low, high], or None for the default."""
    ends = sorted(draw(st.tuples(st.floats(low, high), st.floats(low, high))))
    if draw(st.booleans()) or ends[1] - ends[0] < 1e-4:
        return None
    return ends[0], ends[1]


@st.composite
def keeping(draw, shape):
    _, height, width = shape
    family = draw(st.sampled_from([Brightness, Darkness, Patch]))
    if family is not Patch:
        return family(range=draw(ranges(-1.0, 1.0)))
    x, y = draw(st.integers(0, width - 1)), draw(st.integers(0, height - 1))
    w, h = draw(st.integers(1, width - x)), draw(st.integers(1, height - y))
    return Patch(x=x, y=y, w=w, h=h, tone=draw(st.sampled_from([1, -1])), range=draw(ranges(-1.0, 1.0)))


@st.composite
def moving(draw, shape):
    key, side = draw(st.sampled_from([("dy", shape[1]), ("dx", shape[2])]))
    length = draw(st.integers(1, side)) * draw(st.sampled_from([1, -1]))
    return Translate(**{key: length}, range=draw(ranges(-float(abs(length)), float(abs(length)))))


@st.composite
def combinations(draw):
    """An image (C, H, W) of 8-bit pixels, with black and white ones, and one or two perturbations of it."""
    shape = draw(CHANNELS_HEIGHT_WIDTH)
    levels = np.random.default_rng(draw(SEEDS)).choice([0, 0, 1, 51, 128, 200, 255, 255], size=shape)
    first = draw(st.one_of(keeping(shape), moving(shape)))
    chosen = [first]
    if draw(st.booleans()):
        second = draw(st.one_of(keeping(shape), moving(shape)))
        if second != first and not (first.moves and second.moves):
            chosen.append(second)
    return compose(chosen, levels / 255)


def thetas_in(cell, seed, count=8):
    """Random thetas (B, d) of a cell, its two extreme corners among them."""
    shares = np.random.default_rng(seed).random((count, len(cell.low)))
    inside = cell.low + shares * (cell.high - cell.low)
    return np.vstack([cell.low, cell.high, np.clip(inside, cell.low, cell.high)])


@given(combinations(), SEEDS)
@settings(max_examples=150, deadline=None)
def test_affine_pieces_equal_the_images_on_every_cell(perturbed, seed):
    for cell in perturbed.cells:
        thetas = thetas_in(cell, seed)
        affine = perturbed.x0 + cell.offset + np.einsum("bd,dchw->bchw", thetas, cell.slope)
        np.testing.assert_allclose(np.clip(affine, 0, 1), perturbed.images(thetas), rtol=0, atol=1e-14)


@given(combinations())
@settings(max_examples=150, deadline=None)
def test_neighbouring_cells_agree_on_their_knot(perturbed):
    # Only a moving parameter has knots, and there is at most one: neighbours in the tuple are neighbours in theta.
    for before, after in pairwise(perturbed.cells):
        axis = perturbed.moving_axis
        assert before.high[axis] == after.low[axis]
        theta = (after.low + after.high) / 2
        theta[axis] = after.low[axis]
        one, other = (cell.offset + np.tensordot(theta, cell.slope, 1) for cell in (before, after))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)


@given(combinations(), SEEDS)
@settings(max_examples=150, deadline=None)
def test_cells_tile_the_domain(perturbed, seed):
    domain = perturbed.domain
    volume = sum(np.prod(cell.high - cell.low) for cell in perturbed.cells)
    np.testing.assert_allclose(volume, np.prod(domain.widths), rtol=1e-12)
    for cell in perturbed.cells:
        assert perturbed.cells[cell.index] is cell
        assert (cell.low < cell.high).all()
        for theta in thetas_in(cell, seed)[2:]:
            assert domain.contains(theta)
            found = perturbed.cell_of(theta)
            assert ((found.low <= theta) & (theta <= found.high)).all()


@given(combinations())
@settings(max_examples=100, deadline=None)
def test_theta_zero_is_the_original_image(perturbed):
    zero = np.zeros(perturbed.domain.dimension)
    np.testing.assert_array_equal(perturbed.image(zero), perturbed.x0)


@given(combinations(), SEEDS)
@settings(max_examples=100, deadline=None)
def test_a_batch_is_its_images_one_by_one(perturbed, seed):
    thetas = np.vstack([thetas_in(cell, seed, 2) for cell in perturbed.cells])
    one_by_one = np.array([perturbed.image(theta) for theta in thetas])
    np.testing.assert_array_equal(perturbed.images(thetas), one_by_one)


@given(CHANNELS_HEIGHT_WIDTH.flatmap(lambda shape: st.tuples(st.just(shape), moving(shape))), SEEDS)
@settings(max_examples=150, deadline=None)
def test_transported_maps_are_the_maps_moved(shape_and_move, seed):
    shape, move = shape_and_move
    rng = np.random.default_rng(seed)
    maps = rng.normal(size=(2, *shape))
    perturbed = compose([Brightness(), move], rng.random(shape))
    assert perturbed.moving_axis == 1
    sign, axis = (np.sign(move.dx), -1) if move.dx else (np.sign(move.dy), -2)
    side = shape[axis]
    for cell in perturbed.cells:
        offset, slope = perturbed.transport(maps, cell)
        for theta in thetas_in(cell, seed)[:, 1]:
            # Pixel p shows what was at p - sign * theta, interpolated between its two neighbours, zero outside.
            expected = np.zeros(maps.shape)
            for target in range(side):
                source = target - sign * theta
                for neighbour in (int(np.floor(source)), int(np.floor(source)) + 1):
                    if 0 <= neighbour < side:
                        share = 1 - abs(source - neighbour)
                        np.moveaxis(expected, axis, 0)[target] += share * np.moveaxis(maps, axis, 0)[neighbour]
            np.testing.assert_allclose(maps + offset + theta * slope, expected, rtol=0, atol=1e-13)


@given(CHANNELS_HEIGHT_WIDTH.flatmap(lambda shape: st.one_of(keeping(shape), moving(shape))))
@settings(max_examples=300, deadline=None)
def test_specs_round_trip(one):
    again = parse_spec(one.spec)
    assert again == one
    assert hash(again) == hash(one)
    assert (again.spec, again.low, again.high, again.name) == (one.spec, one.low, one.high, one.name)


@given(st.text(alphabet="abdehinprstwxy:=.,-+0123456789 ", max_size=40) | st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text):
    """parse_spec raises only PerturbationError, and its message is one line."""
    try:
        one = parse_spec(text)
    except PerturbationError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert parse_spec(one.spec) == one
