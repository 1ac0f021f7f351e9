"""Curved borders on maps: against rationals and samples; other thresholds, stored, in chunks; planted errors."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from steadygaze.api import load, verify
from steadygaze.attention import enclosed, polynomial_kernels
from steadygaze.attention.map_errors import MapErrors
from steadygaze.attention.measures import pointing
from steadygaze.attention.options import AttentionOptions
from steadygaze.attention.polynomials import ConvexParts, LocalForms, Monomials, monomials
from steadygaze.budget import Budget, Limits
from steadygaze.engines.map.whole_map import MapTiling
from steadygaze.engines.refine.pointwise import PointPasses
from steadygaze.errors import InternalError
from steadygaze.labels import Kept, Label
from steadygaze.properties import enclosing
from support.networks.chunked_maps import small_chunks
from support.networks.layered_models import ask
from support.oracles.exact_enclosed import ExactEnclosed
from support.readers.piece_labels import attention_at, disagreements

SHIFT = ("shift:dx=1,dy=1,interp=triangle:-0.5..0.75",)
SHIFT_LIGHT = ("brightness:0..0.25", "shift:dx=1,dy=1,interp=triangle:-0.25..0.25")
LINE, PLANE = ("brightness:-0.25..0.5",), ("brightness:-0.25..0.5", "patch:x=1,y=0,w=2,h=3")
CUBE = ("brightness:0..0.25", "patch:x=1,y=0,w=2,h=3", "patch:x=0,y=1,w=2,h=2:0..0.5")
MOVED, MOVED_LIGHT = ("translate:dx=1:-0.5..0.75",), ("translate:dx=1:-0.5..0.75", "brightness:-0.25..0.25")
SHAPE = (1, 4, 5)
MOST = 60
"""Pieces of a map that are compared with rationals, at their centres and near all corners."""
ASKED = {
    "object": {"attention": "object", "tau": 0.5},
    "distance": {"delta": 2.5, "dist": "l2"},
    "alike": {"attention": "alike", "gamma": 0.5},
    "pointing": {"attention": "pointing"},
}
TWICE = {"input-x-gradient": (1.0, 1.0, 0.0), "integrated:steps=1": (2.0, 0.5, 0.0)}


def tiny(asked, method, specs, *, seed=0, classes="all", hidden=(6, 5), **options):
    """A map of a random network of three classes on an image with black and white pixels; and the truth."""
    rng = np.random.default_rng([*SHAPE, seed])
    sizes = [int(np.prod(SHAPE)), *hidden, 3]
    layers = [(np.round(rng.normal(size=(b, a)), 3), np.round(0.3 * rng.normal(size=b), 3)) for a, b in pairwise(sizes)]
    image = rng.choice([0.0, 0.25, 0.75, 1.0], SHAPE)
    given, mask = dict(ASKED[asked]), None
    if asked in ("object", "pointing"):
        mask = (image[0] > 0.5) * rng.choice([0.25, 0.75, 1.0], SHAPE[1:])
        mask[0, 0] = 0.0
        given["mask"] = mask
    result = ask(layers, image, specs, method="map", explain=method, classes=classes, **(given | options))
    chosen, has_factor = result.question.attention.chosen(3).tolist(), method != "gradient"
    copies = [tuple(map(Fraction, TWICE[method] if has_factor else (1, 1, 0)))]
    threshold = Fraction(given.get("tau", given.get("gamma", given.get("delta", 0))))
    perturbed = result.question.perturbed
    return result, ExactEnclosed(
        layers, perturbed, chosen, copies, Fraction(0), threshold, mask, measure=asked, has_factor=has_factor
    )


def cutting(result, truth):
    """The same with a threshold that divides a region: the loss in the middle of one where it changes much."""
    if truth.measure == "pointing":
        return result, truth
    shapes, answer = result.tiling.answers.regions.polytopes, result.answer
    losses = [answer.inconsistency_at(np.full(len(shapes[n]), n), shapes[n]) for n in range(len(shapes))]
    most = np.inf if truth.measure == "distance" else 0.999
    changes = [np.ptp(own) if own.max() < most else 0.0 for own in losses]
    chosen = np.argsort(-np.array(changes) * shapes.volumes, kind="stable")[:1]
    middle = round(float(answer.inconsistency_at(chosen, shapes.centres[chosen])[0]), 9)
    threshold = middle if truth.measure == "distance" else 1.0 - middle
    return result.with_threshold(repr(threshold)), replace(truth, threshold=Fraction(threshold))


CURVED = ("object", "distance", "alike")
"""Their borders are curved where images move."""
CASES = [
    *(("gradient", asked, SHIFT) for asked in CURVED),
    *(("input-x-gradient", asked, specs) for asked in ("distance", "alike") for specs in (LINE, PLANE)),
    ("integrated:steps=1", "alike", PLANE),
    *(("input-x-gradient", asked, specs) for asked in CURVED for specs in (MOVED, MOVED_LIGHT, SHIFT)),
    ("integrated:steps=1", "distance", MOVED_LIGHT),
]


@pytest.mark.parametrize(("method", "asked", "specs"), CASES)
def test_labels_agree_with_rationals(method, asked, specs):
    for seed in range(1 if specs is SHIFT and method != "gradient" else 2):
        result, truth = cutting(*tiny(asked, method, specs, seed=seed))
        assert isinstance(result.tiling, MapTiling) and result.question.encloses_borders
        wrong, decided = disagreements(result, truth, MOST)
        assert not wrong and decided > 1.0 - 1e-6
        assert result.answer.labels.is_mixed.any()
        assert result.areas["undecided"][1] < 1e-6


@pytest.mark.parametrize("method", TWICE)
@pytest.mark.parametrize("specs", [LINE, PLANE, CUBE])
def test_labels_of_pointing_agree_with_rationals(method, specs):
    """Pixels overtake each other within regions."""
    mixed = 0
    for seed in (0, 3, 4, 6):
        result, truth = tiny("pointing", method, specs, seed=seed)
        assert isinstance(result.tiling, MapTiling) and result.question.encloses_borders
        wrong, decided = disagreements(result, truth, MOST)
        assert not wrong and decided > 1.0 - 1e-6
        mixed += result.answer.labels.is_mixed.sum()
    assert mixed or (method, specs) == ("integrated:steps=1", LINE)


@pytest.mark.parametrize("most", [1, 2, 8])
def test_many_pixels_may_be_the_strongest_within_a_region(most, monkeypatch):
    """Three neurons have few regions, and contrast makes all pixels alike in part of them."""
    monkeypatch.setattr(pointing, "STRONGEST", most)
    specs, shares = ("contrast:-1..0.5", "haze:0..0.5"), []
    for seed in (0, 2, 4, 5, 6, 8):
        result, truth = tiny("pointing", "input-x-gradient", specs, seed=seed, hidden=(3,))
        wrong, decided = disagreements(result, truth, MOST)
        assert not wrong
        shares.append(decided)
    assert min(shares) > 1.0 - 1e-6 if most == 8 else min(shares) < 0.99


@pytest.mark.parametrize(
    ("method", "asked", "specs"),
    [("gradient", "distance", SHIFT_LIGHT), ("gradient", "alike", SHIFT_LIGHT), ("gradient", "object", SHIFT_LIGHT),
     ("input-x-gradient", "distance", CUBE), ("input-x-gradient", "object", SHIFT_LIGHT)],
)  # fmt: skip
def test_three_parameters_agree_with_rationals(method, asked, specs, monkeypatch):
    """Fewer parts than usual: the share that is left open is honest."""
    monkeypatch.setattr(enclosing, "MOST_PARTS", 1_500)
    result, truth = cutting(*tiny(asked, method, specs))
    wrong, decided = disagreements(result, truth, MOST)
    assert not wrong and decided > 0.99
    low, high = result.areas[Label.AR]
    assert low < high <= low + 1.01 * (1.0 - decided) + 1e-6 or result.areas["undecided"][1] < 1e-6


def test_predicted_class_filters_and_other_thresholds():
    """A map answers any threshold later, as a new map of that threshold does."""
    for method, specs, filter_word in (("gradient", SHIFT, "abs+mean"), ("input-x-gradient", PLANE, "abs")):
        options = {"classes": "predicted", "seed": 3, "filter": filter_word}
        first, _ = tiny("alike", method, specs, **options)
        second, _ = tiny("alike", method, specs, gamma=0.8, **options)
        assert first.with_threshold("0.8").areas == second.areas


@pytest.mark.parametrize(
    ("specs", "more", "other"),
    [
        (["shift:dx=1,dy=1,interp=triangle:-0.3..0.3"], {"delta": "20%"}, "12%"),
        (["translate:dx=1:0..0.4", "brightness:0..0.05"],
         {"explain": "input-x-gradient", "attention": "object", "mask": "auto:bright=0.2,grow=1", "tau": "95%"}, "97%"),
    ],
)  # fmt: skip
def test_stored_and_chunked_maps_are_the_same(specs, more, other, tmp_path):
    def run():
        return verify("M-FNN-100", "mnist:69990", specs, method="map", threads=1, **more)

    result = run()
    result.save(tmp_path / "whole")
    again, theta = load(tmp_path / "whole"), result.question.perturbed.domain.to_theta(np.full(2, 0.375))
    assert again.areas == result.areas and again.with_threshold(other).areas == result.with_threshold(other).areas
    with small_chunks():
        chunked = run()
        chunked.save(tmp_path / "parts")
        loaded = load(tmp_path / "parts")
        assert "chunks" in loaded.tiling.numbers
        for one in (chunked, loaded):
            for threshold in (str(result.threshold), other):
                areas, whole = one.with_threshold(threshold).areas, result.with_threshold(threshold).areas
                for name in ("CR", "AR", "IR", "CR&AR"):
                    np.testing.assert_allclose(areas[name], whole[name], atol=2e-6)
            assert one.at(theta).inconsistency == pytest.approx(result.at(theta).inconsistency, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "specs", "more"),
    [
        ("M-FNN-100", ["shift:dx=1,dy=1,interp=triangle:-0.4..0.4"], {"delta": "20%"}),
        ("M-FNN-100", ["shift:dx=1,dy=1,interp=triangle:-0.4..0.4"], {"attention": "alike", "gamma": 0.98}),
        ("M-CNN-S", ["shift:dx=1,dy=1,interp=triangle:-0.1..0.1"],
         {"attention": "object", "mask": "auto:bright=0.2,grow=1", "tau": "98%"}),
        ("M-FNN-100", ["brightness:0..0.1", "patch:x=10,y=10,w=8,h=8"],
         {"explain": "input-x-gradient", "attention": "alike", "gamma": 0.9}),
        ("M-CNN-S", ["brightness:0..0.02", "patch:x=10,y=10,w=8,h=8:0..0.1"],
         {"explain": "input-x-gradient", "delta": "20%"}),
        ("M-FNN-100", ["translate:dx=1:-0.2..0.5", "brightness:0..0.1"],
         {"explain": "input-x-gradient", "attention": "object", "mask": "auto:bright=0.2,grow=1", "tau": "95%"}),
        ("M-CNN-S", ["translate:dx=1:0..0.2"], {"explain": "input-x-gradient", "delta": "20%"}),
        ("M-FNN-100", ["darkness:0..0.5", "patch:x=12,y=12,w=4,h=4"],
         {"explain": "integrated:steps=2", "attention": "pointing", "mask": "auto:bright=0.9"}),
        ("M-MAXPOOL", ["darkness:0..0.1", "patch:x=12,y=12,w=4,h=4:0..0.1"],
         {"explain": "input-x-gradient", "attention": "pointing", "mask": "auto:bright=0.9"}),
    ],
)  # fmt: skip
def test_samples_agree_on_bundled_networks(model, specs, more):
    """The passes through single images share no code with the numbers of regions."""
    result = verify(model, "mnist:69990", specs, threads=1, **more)
    assert result.method == "map" and result.question.encloses_borders
    question, limit = result.question, result.answer.delta
    domain = question.perturbed.domain
    thetas = np.random.default_rng(2).uniform(domain.low, domain.high, (300, domain.dimension))
    losses = PointPasses(question).inconsistencies(thetas)
    labels = [attention_at(result, theta) for theta in thetas]
    for theta, loss, label in zip(thetas, losses, labels, strict=True):
        assert result.at(theta).inconsistency == pytest.approx(loss, abs=1e-9)
        if abs(loss - limit) > 1e-9:
            assert label in (Kept.UNKNOWN, Kept.YES if loss <= limit else Kept.NO)
    low, high = result.areas[Label.AR]
    assert high - low < 1e-6 and abs(float(np.mean(losses <= limit)) - low) < 0.1


def test_nearest_violations_lie_on_the_border():
    result, truth = cutting(*tiny("distance", "gradient", SHIFT, seed=1))
    nearest = result.answer.nearest[Label.AR]
    assert nearest.low <= nearest.high and nearest.theta is not None
    assert not truth.is_kept_at([Fraction(float(value)) for value in nearest.theta])
    rng, zero = np.random.default_rng(1), result.question.compound.zero_in_t
    domain = result.question.perturbed.domain
    for point in rng.uniform(-1.0, 1.0, (200, 2)):
        place = zero + 0.999 * nearest.low * point / np.linalg.norm(point) * rng.random()
        if (place >= 0.0).all() and (place <= 1.0).all():
            theta = domain.to_theta(place)
            assert truth.is_kept_at([Fraction(float(value)) for value in theta])


def test_black_images_have_no_attention():
    """Darkness blackens everything beyond 1: no attention there, at any threshold."""
    for asked in ("alike",):
        result, _ = tiny(
            asked, "input-x-gradient", ("darkness:0..1", "patch:x=1,y=0,w=2,h=3:0..0.5"), classes="predicted"
        )
        low, high = result.answer.zero_share
        assert 0.0 <= low <= high
        assert low <= result.areas[Label.IR][1]


def faulty(asked="distance", method="gradient", specs=SHIFT, *, seeds=(0, 1), **options):
    """Whether rationals, or the package's own checks, refute a map."""
    try:
        for seed in seeds:
            result, truth = tiny(asked, method, specs, seed=seed, **options)
            if disagreements(*cutting(result, truth), MOST)[0]:
                return True
    except InternalError:
        return True
    return False


def test_planted_errors_are_caught(monkeypatch):
    assert not faulty("object") and not faulty("distance")
    whole = enclosed._in_cell
    with monkeypatch.context() as patch:  # mask and expected maps do not move
        patch.setattr(enclosed, "_in_cell", lambda compound, maps, cell: _unmoved(whole(compound, maps, cell), maps))
        assert faulty("object") and faulty("distance")
    with monkeypatch.context() as patch:  # another class
        usual = AttentionOptions.targets
        patch.setattr(AttentionOptions, "targets", lambda self, count: usual(self, count)[:, ::-1])
        assert faulty("distance", classes="predicted")
    with monkeypatch.context() as patch:  # the term with both parameters is missing
        shifts = Monomials.expanded
        patch.setattr(Monomials, "expanded", lambda self, own, at: shifts(self, _without_mixed(self, own), at))
        assert faulty("distance", "input-x-gradient", PLANE)
    with monkeypatch.context() as patch:  # half of every remainder
        norms = LocalForms._norms
        patch.setattr(LocalForms, "_norms", lambda self, squares, other: _halved(norms(self, squares, other)))
        assert faulty("distance")


def test_planted_errors_of_pointing_are_caught(monkeypatch):
    def is_faulty():
        return faulty("pointing", "input-x-gradient", PLANE, seeds=(3, 4, 6))

    assert not is_faulty()
    add = polynomial_kernels.add_strongest
    with monkeypatch.context() as patch:  # the first function counts as the largest
        patch.setattr(LocalForms, "largest", lambda self: self.one(0))
        assert is_faulty()
    with monkeypatch.context() as patch:  # functions that are not kept do not bound the largest
        patch.setattr(polynomial_kernels, "add_strongest", lambda *given: _unbounded(add, *given))
        patch.setattr(pointing, "STRONGEST", 1)
        assert is_faulty()
    with monkeypatch.context() as patch:
        patch.setattr(pointing, "STRONGEST", 1)
        assert not is_faulty()
    with monkeypatch.context() as patch:  # the strongest pixel on the object is missing
        patch.setattr(polynomial_kernels, "add_strongest", lambda *given: _without_one(add, *given))
        assert is_faulty()


def test_pixels_of_the_other_kind_are_never_left_out():
    """Errors of gradients may turn two nearly equal pixels around, so both must be kept."""
    maps, is_on = np.array([[[1.0, 1.0 + 1e-6]]]), np.array([True, False])
    factor, corners = np.array([[[1.0, 0.0], [1.0, 0.0]]]), np.array([[0.0], [1.0]])
    out = np.zeros((1, 2 * 2 + 2, 3))
    room = np.zeros(2), np.zeros(2, dtype=np.int64)
    starts, owner = np.array([0, 2]), np.zeros(1, dtype=np.int64)
    polynomial_kernels.add_strongest(maps, owner, is_on, factor, np.zeros((1, 2)), 1e-13, corners, starts, *room, out)
    assert out[0, 0, 0] == 1.0 and out[0, 2, 0] == 1.0 + 1e-6


def _unbounded(add, *given):
    add(*given)
    given[-1][:, -2:] = 0.0


def _without_one(add, *given):
    add(*given)
    given[-1][:, 0] = 0.0


def _unmoved(functions, maps):
    found = 0.0 * functions
    found[..., 0] = maps
    return found


def _without_mixed(powers, coefficients):
    found = coefficients.copy()
    found[:, :, [number for number, own in enumerate(powers.powers.tolist()) if own == [1, 1]]] = 0.0
    return found


def _halved(forms):
    return replace(forms, high=0.5 * forms.high)


@pytest.mark.parametrize(("dimension", "degree"), [(2, 2), (2, 4), (3, 4)])
def test_forms_enclose_polynomials(dimension, degree):
    """Values at random points of random parts lie between the planes; roots and products of such functions, too."""
    rng, powers = np.random.default_rng([dimension, degree]), monomials(dimension, degree)
    for width in (1e-3, 0.1, 0.5):
        corners = 0.25 + width * rng.random((40, 6, dimension))
        parts = ConvexParts.of(corners.reshape(-1, dimension), 6 * np.arange(41))
        origin = 0.1 * rng.random((40, dimension))
        first, second = (rng.normal(size=(40, 3, len(powers))) for _ in range(2))
        first[:, :, 0] += np.abs(first).sum(axis=2)
        second[:, :, 0] += np.abs(second).sum(axis=2)
        forms = [powers.enclose(one, np.zeros((40, 3)), origin, parts, are_squares=False) for one in (first, second)]
        shares = rng.dirichlet(np.ones(6), (40, 30))
        points = np.einsum("nsv,nvd->nsd", shares, corners)
        owner = np.repeat(np.arange(40), 30)
        values = [powers.values(one, points.reshape(-1, dimension) - origin[owner], owner) for one in (first, second)]
        made = (forms[0], forms[0].roots(), forms[0].roots().times(forms[1].roots()), forms[0].plus(forms[1], -0.7))
        true = (values[0], np.sqrt(values[0]), np.sqrt(values[0] * values[1]), values[0] - 0.7 * values[1])
        along = points.reshape(-1, dimension) - parts.middle[owner]
        for form, value in zip(made, true, strict=True):
            plane = form.value[owner] + np.einsum("nkd,nd->nk", form.slope[owner], along)
            assert (plane + form.low[owner] <= value + 1e-12).all() and (
                value <= plane + form.high[owner] + 1e-12
            ).all()
            assert (form.least[owner] <= value + 1e-12).all() and (value <= form.most[owner] + 1e-12).all()


def test_norms_of_affine_functions_are_enclosed_tightly():
    rng, powers = np.random.default_rng(7), monomials(2, 2)
    rows = rng.normal(size=(40, 3, 5, 3))
    products = np.einsum("nkpi,nkpj->nkij", rows, rows)
    coefficients = np.zeros((40, 3, len(powers)))
    for i in range(3):
        for j in range(3):
            coefficients[:, :, powers.table[i, j]] += products[:, :, i, j]
    for width in (1e-3, 0.3):
        corners = 0.25 + width * rng.random((40, 5, 2))
        parts = ConvexParts.of(corners.reshape(-1, 2), 5 * np.arange(41))
        origin = np.zeros((40, 2))
        form = powers.enclose(coefficients, np.zeros((40, 3)), origin, parts, are_squares=True).roots()
        points = np.einsum("nsv,nvd->nsd", rng.dirichlet(np.ones(5), (40, 30)), corners).reshape(-1, 2)
        owner = np.repeat(np.arange(40), 30)
        value = np.sqrt(powers.values(coefficients, points, owner))
        plane = form.value[owner] + np.einsum("nkd,nd->nk", form.slope[owner], points - parts.middle[owner])
        assert (plane + form.low[owner] <= value + 1e-12).all() and (value <= plane + form.high[owner] + 1e-12).all()
        assert ((form.high - form.low) < 8.0 * width**2 + 1e-10).all()


FLAT = [
    (
        [
            [-0.5, -1.25, -1.5, 0.0, 0.875, -0.25, -0.75, 0.375, 0.75],
            [-0.25, 0.5, 1.0, -0.25, -0.875, 0.375, 0.25, 1.125, -1.25],
            [-0.625, -0.875, -1.75, 0.125, 0.5, -0.75, 1.375, 0.875, 0.625],
        ],
        [0.375, 1.0, -1.375],
    ),
    ([[0.625, 0.625, -1.75], [0.375, -0.25, 0.75]], [-0.5, 0.0]),
]
"""With the image of the test below, the border of the distance has slope 0 in the middle of a large piece."""


def test_a_piece_with_a_flat_border_in_its_middle_is_halved():
    image = np.array([[[0.75, 0.75, 1.0], [0.0, 1.0, 0.0], [0.0, 0.5, 1.0]]])
    specs = ("shift:dx=3,dy=3,interp=triangle:1..3/-3..-1",)
    result = ask(FLAT, image, specs, method="map", explain="input-x-gradient", delta=1.0)
    assert result.areas[Label.UNDECIDED][1] < 2e-6
    assert len(result.answer.joint.polytopes) < 5_000


def test_no_attention_is_lost_attention_wherever_the_expected_map_moves():
    # Between brightness 0.04 and 0.16 both ReLUs are off where no pixel leaves, so the map is zero there.
    layers = [([[1.0] * 9, [-1.0] * 9], [-5.0, 4.0]), ([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])]
    specs = ("shift:dx=1,dy=1,interp=triangle:-0.5..0.5", "brightness:0..0.5")
    result = ask(layers, np.full((1, 3, 3), 0.4), specs, method="map", property="ar", attention="alike", gamma=0.5)
    low, high = result.zero_share
    assert low > 0.1
    assert high - low < 1e-6
    assert result.areas[Label.AR][0] + result.areas[Label.IR][0] > 1.0 - 1e-6


@pytest.mark.parametrize("asked", ["object", "alike", "pointing", "topk"])
@pytest.mark.parametrize("explain", ["gradient", "input-x-gradient"])
def test_a_run_without_regions_is_undecided(asked: str, explain: str):
    options = {"attention": asked} | ({"mask": "auto:bright=0.2,grow=1"} if asked in ("object", "pointing") else {})
    if explain != "gradient" and asked == "topk":
        return
    specs = ["brightness", "patch:x=1,y=0,w=2,h=3" if asked == "pointing" else "translate:dx=1"]
    late = Budget(Limits(timeout_seconds=1e-9))
    result = verify("M-FNN-100", "mnist:69993", specs, method="map", explain=explain, budget=late, **options)
    assert result.region_count == 0
    assert result.areas[Label.UNDECIDED] == (1.0, 1.0)


def test_maps_without_attention_are_counted_by_parts():
    """Whole regions would bound their share by 0.313."""
    rng = np.random.default_rng([3, 9])
    sizes = [(9, 3), (3, 2)]
    layers = [(np.round(rng.normal(size=(b, a)), 3), np.round(0.3 * rng.normal(size=b), 3)) for a, b in sizes]
    image, specs = (
        rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], (1, 3, 3)),
        ["translate:dx=1:-1..1", "brightness:-0.25..0.25"],
    )
    asked = {"explain": "input-x-gradient", "attention": "alike", "gamma": 0.8, "property": "ar"}
    low, high = ask(layers, image, specs, method="map", **asked).zero_share
    assert low == pytest.approx(0.27145285, abs=1e-6) and low <= high < 0.285


def test_a_run_that_is_over_settles_no_maps_and_claims_no_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(MapErrors, "finest", 0.0)  # every strip is wider
    options = {"explain": "input-x-gradient", "attention": "pointing", "mask": "auto:bright=0.2,grow=1"}
    specs = ["brightness:0..0.3", "patch:x=12,y=12,w=4,h=4"]
    answers = verify("M-FNN-100", "mnist:69990", specs, method="map", **options).tiling.answers
    whole, late = answers.at(0.5), Budget(Limits(timeout_seconds=1e-9))
    settled: list[int] = []
    monkeypatch.setattr(MapErrors, "settle", lambda self, chosen, spans: settled.extend(chosen))
    with late.running():
        rest = replace(answers, budget=late).at(0.5)
    assert not settled
    for name in (Label.AR, Label.IR):
        assert rest.areas[name][0] <= whole.areas[name][0] and rest.areas[name][1] >= whole.areas[name][1]
