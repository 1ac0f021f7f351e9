"""The stored curves of ai against the definition, at random thetas inside regions: all options, kept and moved maps."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from steadygaze.attention.distances import Distance
from steadygaze.attention.filters import Filter
from steadygaze.attention.inconsistency import Inconsistency, original_maps
from steadygaze.attention.measuring import measure
from steadygaze.attention.options import AttentionOptions
from steadygaze.compound import Compound
from steadygaze.images import read_image
from steadygaze.network.model import read_model
from steadygaze.perturbation import compose, parse_spec
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide
from steadygaze.zoo import image_path, model_path
from support.networks.layered_networks import make_compound
from support.oracles.attention_by_definition import Question, chain_gradients, inconsistency, stored_inconsistency
from support.readers.maps import points_inside

FILTERS = ("identity", "abs", "mean", "abs+mean", "mean+abs")
DISTANCES = ("l1", "l2")
KEPT = (("brightness:-0.3..0.6", "patch:x=1,y=0,w=2,h=3"), ("darkness",), ("patch:x=0,y=1,w=2,h=2,tone=-1:-0.5..1",))
MOVED = (
    ("translate:dx=1", "brightness:-0.25..0.5"),
    ("translate:dx=3",),
    ("patch:x=0,y=0,w=2,h=2", "translate:dy=-2"),
    ("translate:dx=-3:-1.5..2.25", "darkness:0..0.5"),
    ("translate:dy=3:0.25..2.5",),
)
GREY, COLOUR = (1, 4, 5), (3, 4, 3)


@cache
def small_map(shape: tuple[int, int, int], specs: tuple[str, ...]) -> tuple[Compound, RegionSet]:
    """A random network of four classes on a random image with black, white and equal pixels."""
    rng = np.random.default_rng(shape)
    sizes = [int(np.prod(shape)), 7, 6, 4]
    layers = [(rng.normal(size=(b, a)), 0.2 * rng.normal(size=b)) for a, b in pairwise(sizes)]
    image = rng.choice([0.0, 0.2, 0.2, 0.7, 1.0], size=shape)
    compound = make_compound(layers, [parse_spec(spec) for spec in specs], image)
    return compound, subdivide(compound)


@cache
def bundled_map(name: str, reference: str, specs: tuple[str, ...]) -> tuple[Compound, RegionSet]:
    model = read_model(model_path(name))
    perturbed = compose([parse_spec(spec) for spec in specs], read_image(image_path(reference)).pixels)
    compound = Compound(model.graph, model.chain, perturbed)
    return compound, subdivide(compound)


def curves_for(compound: Compound, regions: RegionSet, question: Question, threads: int = 1) -> Inconsistency:
    options = AttentionOptions(Filter.parse(question.filter), Distance.parse(question.dist), question.classes)
    return measure(compound, regions, options, original_maps(compound, options), threads=threads)


def assert_kind(curves: Inconsistency, *, moves: bool, dist: str) -> None:
    """Only what applies is stored."""
    assert curves.moves == moves
    stored = [len(curves.constant) > 0, len(curves.quadratic) > 0, len(curves.start) > 0]
    assert stored == [not moves, moves and dist == "l2", moves and dist == "l1"]


def assert_curves_are_true(
    compound: Compound, regions: RegionSet, question: Question, gradients, *, most: int, relative: float = 1e-11
) -> np.ndarray:
    """Compare at one random theta in each of at most `most` regions, and return the values."""
    curves = curves_for(compound, regions, question)
    assert_kind(curves, moves=compound.perturbed.moving_axis is not None, dist=question.dist)
    rng = np.random.default_rng(5)
    thetas = compound.to_theta(points_inside(regions, rng))
    # A sliver has no point whose plain forward pass is sure to have its pattern.
    thick = np.flatnonzero(regions.polytopes.volumes > 1e-7)
    chosen = thick if len(thick) <= most else rng.choice(thick, size=most, replace=False)
    expected = np.array([inconsistency(gradients, compound.perturbed, thetas[r], question) for r in chosen])
    found = np.array([stored_inconsistency(compound, curves, regions.cell, r, thetas[r]) for r in chosen])
    assert np.abs(found - expected).max() < relative * max(1.0, expected.max())
    return expected


@pytest.mark.parametrize("shape", [GREY, COLOUR], ids=["grey", "colour"])
@pytest.mark.parametrize("specs", [*KEPT, *MOVED], ids="+".join)
@pytest.mark.parametrize("dist", DISTANCES)
@pytest.mark.parametrize("words", FILTERS)
def test_small_networks(words: str, dist: str, specs: tuple[str, ...], shape: tuple[int, int, int]) -> None:
    compound, regions = small_map(shape, specs)
    gradients = chain_gradients(compound.chain, shape)
    label = int(np.argmax(compound.graph.logits(compound.perturbed.x0[None])[0]))
    values = [
        assert_curves_are_true(compound, regions, Question(words, dist, classes), gradients, most=20)
        for classes in (None, (label,), (1, 3))
    ]
    assert np.ptp(values[0]) > 0.1
    assert (values[1] <= values[0] + 1e-12).all() and (values[2] <= values[0] + 1e-12).all()


BUNDLED = (
    ("M-FNN-100", "mnist:69990", ("brightness:0..0.2", "patch:x=12,y=12,w=4,h=4"), Question()),
    ("M-FNN-100", "mnist:69990", ("brightness:0..0.2", "patch:x=12,y=12,w=4,h=4"), Question("abs+mean", "l1")),
    ("M-FNN-100", "mnist:69992", ("translate:dy=1", "brightness:0..0.1"), Question("mean", "l2")),
    ("M-FNN-100", "mnist:69992", ("translate:dy=1", "brightness:0..0.1"), Question("abs", "l1", (3, 8))),
    ("M-FNN-100", "mnist:69991", ("translate:dx=-3:-1.5..2.25",), Question("identity", "l1")),
    ("M-CNN-S", "mnist:69990", ("brightness:0..0.3",), Question("identity", "l1")),
    ("M-CNN-S", "mnist:69990", ("brightness:0..0.3",), Question("mean", "l2", (2,))),
    ("M-CNN-S", "mnist:69994", ("translate:dx=-1:0..0.75",), Question("abs", "l2")),
    ("M-CNN-S", "mnist:69994", ("translate:dx=-1:0..0.75",), Question("abs+mean", "l1")),
)


@pytest.mark.parametrize(("name", "reference", "specs", "question"), BUNDLED)
def test_bundled_networks_with_autograd(name: str, reference: str, specs: tuple[str, ...], question: Question) -> None:
    from support.oracles.torch_gradients import autograd, from_onnx

    compound, regions = bundled_map(name, reference, specs)
    assert len(regions) > 20
    gradients = autograd(from_onnx(model_path(name)))
    values = assert_curves_are_true(compound, regions, question, gradients, most=25)
    assert np.ptp(values) > 0.05


@pytest.mark.parametrize(("name", "reference", "specs", "question"), BUNDLED)
def test_every_pattern_of_bundled_networks(
    name: str, reference: str, specs: tuple[str, ...], question: Question
) -> None:
    """The maps made from one another by flips, against those made from scratch for each pattern."""
    compound, regions = bundled_map(name, reference, specs)
    curves = curves_for(compound, regions, question)
    options = AttentionOptions(Filter.parse(question.filter), Distance.parse(question.dist), question.classes)
    original = original_maps(compound, options)
    thetas = compound.to_theta(regions.polytopes.centres)
    for q in np.linspace(0, curves.curve.max(), 200).astype(int):
        region = int(np.flatnonzero(curves.curve == q)[0])
        alone = one_region(regions, region)
        single = measure(compound, alone, options, original)
        found = stored_inconsistency(compound, curves, regions.cell, region, thetas[region])
        assert found == pytest.approx(
            stored_inconsistency(compound, single, alone.cell, 0, thetas[region]), rel=1e-11, abs=1e-12
        )


def one_region(regions: RegionSet, region: int) -> RegionSet:
    """A map with one of the regions only."""
    chosen = {name: getattr(regions, name)[[region]] for name in ("cell", "pattern", "clip", "logits")}
    return replace(regions, polytopes=regions.polytopes.take(np.array([region])), **chosen)


@pytest.mark.parametrize("question", [Question(), Question("mean", "l1")])
@pytest.mark.parametrize("specs", [("translate:dy=1", "brightness:0..0.1"), ("brightness:0..0.2",)], ids="+".join)
def test_threads_change_nothing(specs: tuple[str, ...], question: Question) -> None:
    compound, regions = bundled_map("M-FNN-100", "mnist:69992", specs)
    first, second = (curves_for(compound, regions, question, threads) for threads in (1, 3))
    for name in ("curve", "curve_cell", "curve_pattern", "constant", "quadratic", "start", "breaks", "places", "jumps"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


def test_regions_that_differ_in_clipped_pixels_share_a_curve() -> None:
    compound, regions = bundled_map("M-FNN-100", "mnist:69990", BUNDLED[0][2])
    curves = curves_for(compound, regions, Question())
    assert len(curves.constant) == len(np.unique(regions.pattern)) < len(regions)
    assert (np.bincount(curves.curve) >= 1).all()


def test_at_the_unperturbed_pattern_kept_maps_do_not_differ() -> None:
    compound, regions = small_map(GREY, ("brightness:-0.3..0.6", "patch:x=1,y=0,w=2,h=3"))
    curves = curves_for(compound, regions, Question())
    least, next_one = np.partition(curves.constant, 1)[:2]
    assert least < 1e-12 and next_one > 1


@pytest.mark.parametrize("dist", DISTANCES)
def test_a_map_that_stays_while_it_should_move(dist: str) -> None:
    """One always active neuron with gradient (1, 2, 4): moved right by τ it should be (1−τ, 2−τ, 4−2τ)."""
    layers = [(np.array([[1.0, 2.0, 4.0]]), np.array([1.0])), (np.array([[1.0], [-0.5]]), np.zeros(2))]
    compound = make_compound(layers, [parse_spec("translate:dx=1")], np.array([[[0.5, 0.25, 0.0]]]))
    regions = subdivide(compound)
    curves = curves_for(compound, regions, Question(dist=dist))
    for tau in (0.0, 0.125, 0.5, 1.0):
        size = 4.0 if dist == "l1" else np.sqrt(6.0)
        owner = next(r for r in range(len(regions)) if np.ptp(regions.polytopes[r][:, 0]) > 0.99)
        assert stored_inconsistency(compound, curves, regions.cell, owner, [tau]) == pytest.approx(1.5 * size * tau)


@pytest.mark.parametrize(
    ("where", "size", "change"), [(0.75, 0.3, 0.225), (0.2, 2.3, 0.46), (1 / 7, 0.1, 0.1 / 7), (0.5, 1.0, 0.5)]
)
def test_a_breakpoint_where_a_region_begins(where: float, size: float, change: float) -> None:
    """x = (1−τ, τ); A = ReLU(x1 + 1), B = ReLU(1 − where − x1); logits (size·A + change·B, −10), change = where·size.

    B becomes active at τ = where and changes the first pixel's gradient from `size` to (1 − where)·size, which is what
    the moved map has there, so |actual − expected| breaks just where the region begins: (τ − where)·size from there on.
    The second pixel adds τ·size.
    """
    layers = [
        (np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 1.0 - where])),
        (np.array([[size, change], [0.0, 0.0]]), np.array([0.0, -10.0])),
    ]
    compound = make_compound(layers, [parse_spec("translate:dx=1")], np.array([[[1.0, 0.0]]]))
    regions = subdivide(compound)
    question = Question(dist="l1", classes=(0,))
    curves = curves_for(compound, regions, question)
    later = int(np.argmax(regions.polytopes.centres[:, 0]))
    assert regions.polytopes[later][:, 0].min() == pytest.approx(where)
    for tau in np.linspace(where, 1.0, 9):
        found = stored_inconsistency(compound, curves, regions.cell, later, [tau])
        assert found == pytest.approx((tau - where) * size + tau * size, abs=1e-9)
