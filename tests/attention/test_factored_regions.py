"""Maps that contain the image, exact on regions: against rationals and samples; stored, in chunks; planted errors."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from steadygaze import zoo
from steadygaze.api import load, verify
from steadygaze.attention.gradients import allowed_flips, coarse_error
from steadygaze.attention.inconsistency import original_gradients
from steadygaze.attention.measures.object import OnObject
from steadygaze.attention.methods.integrated import Integrated
from steadygaze.attention.options import AttentionOptions
from steadygaze.attention.pixel_forms import PixelLines
from steadygaze.errors import InternalError, OptionError
from steadygaze.images import read_image
from steadygaze.labels import Kept, Label
from support.networks.chunked_maps import small_chunks
from support.networks.layered_models import ask
from support.oracles.exact_factored import ExactFactored
from support.readers.piece_labels import attention_at, disagreements

PLANE = ("brightness:-0.25..0.5", "patch:x=1,y=0,w=2,h=3")
LINE = ("darkness",)
CUBE = ("brightness:0..0.5", "patch:x=1,y=0,w=2,h=3", "darkness:0..0.25")
GREY, COLOUR = (1, 4, 5), (3, 3, 3)
METHODS = ("input-x-gradient", "integrated:steps=2", "integrated:steps=3,baseline=-0.5")
ASKED = {"object": {"attention": "object", "tau": 0.375}, "distance": {"delta": 2.5, "dist": "l1"}}

BUNDLED = ["brightness:0..0.3", "patch:x=12,y=12,w=6,h=6:0..0.3"]
ON_DIGIT = {"attention": "object", "tau": 0.7, "mask": "auto:bright=0.2,grow=1"}


def copies_of(text):
    """Weight, scale and offset of the copies that a method reads, as exact numbers; and its baseline."""
    if text == "input-x-gradient":
        return [(Fraction(1), Fraction(1), Fraction(0))], Fraction(0)
    settings = dict(part.split("=") for part in text.partition(":")[2].split(","))
    steps, baseline = int(settings["steps"]), float(settings.get("baseline", 0.0))
    middles = [(k + 0.5) / steps for k in range(steps)]
    numbers = [(1.0 / (steps * s), s, (1.0 - s) * baseline) for s in middles]
    return [tuple(map(Fraction, row)) for row in numbers], Fraction(baseline)


def tiny(asked, method, specs, *, shape=GREY, seed=0, classes="all", dark=False, **options):
    """A map of a random network of three classes on an image with black, white and equal pixels; and the truth."""
    rng = np.random.default_rng([*shape, seed])
    sizes = [int(np.prod(shape)), 6, 5, 3]
    layers = [(np.round(rng.normal(size=(b, a)), 3), np.round(0.3 * rng.normal(size=b), 3)) for a, b in pairwise(sizes)]
    image = rng.choice([0.0, 0.25, 0.25, 0.5, 0.75], size=shape) if dark else rng.choice([0.0, 0.25, 0.75, 1.0], shape)
    given, mask = dict(ASKED[asked]), None
    if asked == "object":
        mask = (image > 0.5).any(axis=0) * rng.choice([0.25, 0.75, 1.0], image.shape[1:])
        mask[0, 0] = 0.0
        given["mask"] = mask
    result = ask(layers, image, specs, method="map", explain=method, classes=classes, **(given | options))
    chosen = result.question.attention.chosen(3).tolist()
    copies, baseline = copies_of(method)
    threshold = Fraction(given["tau"] if asked == "object" else given["delta"])
    return result, ExactFactored(layers, result.question.perturbed, chosen, copies, baseline, threshold, mask)


def cutting(result, truth):
    """The same with a threshold that divides a region: the loss in the middle of the one where it changes most."""
    reach = result.answer.labels.reach
    is_usable = np.isfinite(reach[:, 1]) if truth.mask is None else reach[:, 1] < 1.5
    middle = float(reach[np.argmax(np.where(is_usable, np.ptp(reach, axis=1), 0.0))].mean())
    threshold = middle if truth.mask is None else 1.0 - middle
    return result.with_threshold(repr(threshold)), replace(truth, threshold=Fraction(threshold))


CASES = [
    *((method, asked, specs) for method in METHODS[:2] for asked in ASKED for specs in (PLANE, LINE)),
    *(("input-x-gradient", asked, CUBE) for asked in ASKED),
    *((METHODS[2], asked, LINE) for asked in ASKED),
]


@pytest.mark.parametrize(("method", "asked", "specs"), CASES)
def test_labels_agree_with_rationals(method, asked, specs):
    # The absolute value changes distances, but no mass.
    for seed, word in enumerate(
        ["identity"] if specs is CUBE else ["identity", "abs" if asked == "object" else "identity"]
    ):
        result, truth = tiny(asked, method, specs, shape=COLOUR if seed else GREY, seed=seed, filter=word)
        result, truth = cutting(result, truth)
        wrong, decided = disagreements(result, truth)
        assert not wrong and decided > 1.0 - 1e-6
        assert result.answer.labels.is_mixed.any()


@pytest.mark.parametrize("asked", ASKED)
def test_predicted_class_and_other_thresholds(asked):
    """A stored map answers any threshold later, as a new map of that threshold does."""
    first, _ = tiny(asked, "input-x-gradient", PLANE, seed=3, classes="predicted")
    name, number = {"object": ("tau", 0.5), "distance": ("delta", 1.5)}[asked]
    second, truth = tiny(asked, "input-x-gradient", PLANE, seed=3, classes="predicted", **{name: number})
    assert disagreements(second, replace(truth, threshold=Fraction(number)))[0] == []
    assert first.with_threshold(repr(number)).areas == second.areas != first.areas


def test_a_baseline_that_pixels_pass_leaves_parts_open():
    """|pixel − baseline| bends on regions where pixels pass the baseline: nothing wrong is claimed there."""
    opened = []
    for seed in range(3):
        result, truth = cutting(*tiny("object", "integrated:steps=2,baseline=0.4", PLANE, seed=seed))
        wrong, decided = disagreements(result, truth)
        assert not wrong
        opened.append(1.0 - decided)
    assert min(opened) > 0.0 and max(opened) < 0.8


def test_black_images_have_no_attention():
    result, truth = tiny("object", "input-x-gradient", ("brightness:-1..0.25",), seed=1, dark=True)
    low, high = result.zero_share
    brightest = float(result.question.perturbed.x0.max())
    assert low == pytest.approx((1.0 - brightest) / 1.25, abs=1e-9) and high < low + 0.02
    assert disagreements(result, truth)[0] == []
    assert result.areas[Label.IR][0] >= low - 1e-9


def test_kinks_are_settled_by_the_patterns_that_meet_there():
    """A threshold that holds everywhere is proved everywhere, kinks included."""
    result, _ = tiny("object", "input-x-gradient", PLANE, seed=0, tau=0.01)
    least = 1.0 - result.tiling.enough_delta
    lax = result.with_threshold(repr(round(0.9 * least, 6)))
    assert least > 0.0 and lax.areas[Label.AR] == (1.0, 1.0)
    assert result.with_threshold(repr(round(least + 1e-4, 6))).areas[Label.AR][0] < 1.0


def test_nearest_violations_and_values_are_those_of_the_truth():
    for seed in range(3):
        result, truth = cutting(*tiny("object", "integrated:steps=2", PLANE, seed=seed))
        found = result.answer.nearest[Label.AR]
        assert found.theta is not None and found.low <= found.high
        assert not truth.is_kept_at([Fraction(float(value)) for value in found.theta])
        domain = result.question.perturbed.domain
        for theta in np.random.default_rng(seed).uniform(domain.low, domain.high, (50, 2)):
            unit = result.question.compound.to_unit(theta[None])
            region = np.array([result.tiling.region_at(theta)])
            assert result.answer.inconsistency_at(region, unit)[0] == pytest.approx(result.at(theta).inconsistency)
            distance = float(np.linalg.norm((theta - 0.0) / domain.widths))
            if distance < found.low - 1e-9:
                assert truth.is_kept_at([Fraction(float(value)) for value in theta])


@pytest.mark.parametrize("specs", [BUNDLED, [*BUNDLED, "darkness:0..0.02"]], ids=["plane", "cube"])
@pytest.mark.parametrize("given", [ON_DIGIT, {"delta": "50%", "dist": "l1"}], ids=["object", "distance"])
def test_stored_and_chunked_maps_are_the_same(given, specs, tmp_path):
    def run():
        return verify("M-FNN-100", "mnist:69990", specs, explain="input-x-gradient", method="map", threads=1, **given)

    def areas(result, threshold):
        found = (result if threshold is None else result.with_threshold(threshold)).areas
        return [*found[Label.AR], *found[Label.IR]]

    result = run()
    result.save(tmp_path / "whole")
    again = load(tmp_path / "whole")
    assert again.areas == result.areas and 0.001 < result.areas[Label.AR][0] < 0.999
    with small_chunks():
        chunked = run()
        chunked.save(tmp_path / "parts")
        loaded = load(tmp_path / "parts")
        assert "chunks" in loaded.tiling.numbers
        theta = result.question.perturbed.domain.to_theta(np.full(len(specs), 0.375))
        for one in (chunked, loaded, again):
            assert one.region_count == result.region_count
            for threshold in (None, "0.6" if "tau" in given else "30%"):
                np.testing.assert_allclose(areas(one, threshold), areas(result, threshold), atol=1e-6)
            assert one.at(theta).inconsistency == result.at(theta).inconsistency


def test_samples_agree_on_a_bundled_network():
    """Labels of a map against plain numpy: one backward pass for each theta."""
    result = verify("M-FNN-100", "mnist:69990", BUNDLED, explain="input-x-gradient", method="map", **ON_DIGIT)
    weights, maps, kept = result.question.attention.mask.weights, result.question.model.chain.maps, 0
    for theta in np.random.default_rng(0).uniform(0.0, 0.3, (2000, 2)):
        image = result.question.perturbed.x0.copy()
        image[0, 12:18, 12:18] += theta[1]
        image = np.clip(image + theta[0], 0.0, 1.0)
        values, bits = image.ravel(), []
        for affine in maps[:-1]:
            values = affine.matrix @ values + affine.bias
            bits.append(values > 0.0)
            values = np.maximum(values, 0.0)
        row = maps[-1].matrix[result.label]
        for affine, active in zip(maps[-2::-1], bits[::-1], strict=True):
            row = (row * active) @ affine.matrix
        mass = np.abs(row.reshape(image.shape) * image)[0]
        share = (mass * weights).sum() / mass.sum()
        if abs(share - 0.7) > 1e-9:
            assert attention_at(result, theta) in (Kept.UNKNOWN, Kept.YES if share >= 0.7 else Kept.NO)
        kept += share >= 0.7
    low, high = result.areas[Label.AR]
    assert high - low < 1e-6 and abs(kept / 2000 - low) < 0.05


def faulty(method, specs=PLANE, **options):
    """Whether rationals, or the package's own checks, refute a map."""
    try:
        found = [tiny("object", method, specs, seed=seed, **options) for seed in range(3)]
        return any(disagreements(*one)[0] for one in found)
    except InternalError:
        return True


true_forms = PixelLines.forms


def without_factor(self, shapes, share):
    found = true_forms(self, shapes, share)
    return found._replace(slope=0.0 * found.slope, constant=0.0 * found.slope + 1.0)


def test_planted_errors_are_caught(monkeypatch):
    assert not faulty("integrated:steps=2")
    with monkeypatch.context() as patch:  # the mask is not applied
        patch.setattr(OnObject, "term_weights", lambda self, at: np.ones((2, at.maps[0].size)))
        assert faulty("input-x-gradient")
    with monkeypatch.context() as patch:  # another class
        usual = AttentionOptions.targets
        patch.setattr(AttentionOptions, "targets", lambda self, count: usual(self, count)[:, ::-1])
        assert faulty("input-x-gradient", classes="predicted")
    with monkeypatch.context() as patch:  # no factor
        patch.setattr(PixelLines, "forms", without_factor)
        assert faulty("input-x-gradient")
    with monkeypatch.context() as patch:  # a copy is missing
        targets = Integrated.targets
        patch.setattr(
            Integrated, "targets", lambda self, classes: targets(self, classes) * _all_but_last(self, classes)
        )
        assert faulty("integrated:steps=2")


def _all_but_last(method, classes):
    return np.repeat(np.arange(method.steps) < method.steps - 1, classes)


def test_curved_borders_are_refused_with_the_method_that_works():
    for specs, more in (
        (["translate:dx=1", "brightness:0..0.1"], {"delta": "25%", "filter": "abs"}),
        (["shift:dx=1,dy=1,interp=triangle"], {"delta": "25%", "dist": "l1"}),
        (["brightness:0..0.1"], {"attention": "topk", "top": "20:0.8"}),
        (["translate:dx=1:0..0.1"], {"attention": "pointing", "mask": "auto:bright=0.2,grow=1"}),
        (["brightness:0..0.1"], {"attention": "object", "mask": "auto:bright=0.2,grow=1", "filter": "mean"}),
    ):
        with pytest.raises(OptionError, match="use --method refine"):
            verify("M-FNN-100", "mnist:69990", specs, explain="input-x-gradient", method="map", **more)


@pytest.mark.parametrize("size", [1e-30, 1e-17, 1e-15])
def test_tiny_pixels_are_not_taken_for_black_ones(tmp_path, size):
    """Their sizes lie within the errors of the walk: nothing may be claimed that does not hold."""
    rng = np.random.default_rng(3)
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise([20, 6, 3])]
    np.save(tmp_path / "direction.npy", np.full(GREY[1:], size))
    specs = [f'direction:file="{tmp_path / "direction.npy"}":0..1']
    mask = np.zeros(GREY[1:])
    mask[1:3] = 1.0
    asked = {"attention": "object", "tau": 0.375, "mask": mask, "explain": "input-x-gradient", "property": "ar"}
    result = ask(layers, np.full(GREY, size), specs, method="map", **asked)
    is_kept = [bool(result.at([theta]).inconsistency <= result.answer.delta) for theta in (0.0, 0.5, 1.0)]
    low, high = result.areas[Label.AR]
    assert high > 0.0 if any(is_kept) else low < 1.0
    assert result.answer.zero_share[0] == 0.0


def test_errors_hold_for_as_many_flips_as_were_followed():
    """A dark image makes the maps small, not the gradients that flips update."""
    image = 0.003 * read_image(zoo.image_path("mnist:69990")).pixels
    asked = {"explain": "input-x-gradient", "dist": "l1", "classes": "predicted", "delta": 1.0}
    result = verify("M-CNN-S", image, ["brightness:0..0.01"], method="map", **asked)
    errors, options = result.tiling.answers.errors, result.question.attention
    gradients = options.filter(original_gradients(result.question.compound, options))
    flips = allowed_flips(errors.chain, options, gradients)
    assert flips > allowed_flips(errors.chain, options, result.question.original)
    assert errors.chain_error >= coarse_error(errors.chain, options, flips)
