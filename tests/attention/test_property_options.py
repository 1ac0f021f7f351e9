"""Options of properties of attention: accepted values, refusals in one line, storage and comparison."""

import re

import numpy as np
import pytest
from PIL import Image

from steadygaze import load, verify
from steadygaze.attention.masks import Mask
from steadygaze.attention.measures import NO_ATTENTION, find_measures
from steadygaze.attention.measures.wording import Stated
from steadygaze.errors import OptionError, StoreError
from steadygaze.question import make_question
from support.networks.layered_models import make_model

MASK = "auto:bright=0.2,grow=1"
SPECS = ("brightness:0..0.1",)


def ask(**options):
    return make_question("M-FNN-100", "mnist:69990", SPECS, **options)


def png(path, values):
    Image.fromarray(np.asarray(values, dtype=np.uint8)).save(path)
    return str(path)


BAD = {
    "an unknown property": ({"attention": "distant"}, "expected alike, distance, object, pointing, topk"),
    "a mask for the distance": ({"mask": MASK}, "a mask does not go with attention distance"),
    "a mask for alike": ({"attention": "alike", "mask": MASK}, "a mask does not go with attention alike"),
    "an object without a mask": ({"attention": "object"}, "attention object needs a mask"),
    "pointing without a mask": ({"attention": "pointing"}, "attention pointing needs a mask"),
    "a threshold for pointing": ({"attention": "pointing", "mask": MASK, "tau": 0.5}, "it is the threshold of object"),
    "delta for the object": ({"attention": "object", "mask": MASK, "delta": "25%"}, "give tau instead"),
    "gamma for the distance": ({"gamma": 0.9}, "gamma 0.9 does not go with attention distance"),
    "a distance for alike": ({"attention": "alike", "dist": "l1"}, "dist 'l1' does not go with attention alike"),
    "tau of NaN": ({"attention": "object", "mask": MASK, "tau": float("nan")}, "tau 'nan' is not a threshold"),
    "tau of 0": ({"attention": "object", "mask": MASK, "tau": 0}, "tau '0' is not a threshold"),
    "tau above 1": ({"attention": "object", "mask": MASK, "tau": 1.5}, "tau '1.5' is not a threshold"),
    "tau above 100 %": ({"attention": "object", "mask": MASK, "tau": "150%"}, "tau '150%' is not a threshold"),
    "tau in words": ({"attention": "object", "mask": MASK, "tau": "most"}, "tau 'most' is not a threshold"),
    "gamma of 0": ({"attention": "alike", "gamma": 0.0}, "gamma '0.0' is not a threshold"),
    "gamma of NaN": ({"attention": "alike", "gamma": float("nan")}, "gamma 'nan' is not a threshold"),
    "gamma above 1": ({"attention": "alike", "gamma": 1.01}, "gamma '1.01' is not a threshold"),
    "no pixels": ({"attention": "topk", "top": "0:0.8"}, "top '0:0.8' is not a threshold"),
    "too many pixels": (
        {"attention": "topk", "top": "785:0.8"},
        "the 785 strongest pixels, but the image has 784",
    ),
    "a share of 0": ({"attention": "topk", "top": "5:0"}, "top '5:0' is not a threshold"),
    "a share in percent": ({"attention": "topk", "top": "50:80%"}, "top '50:80%' is not a threshold"),
    "no share": ({"attention": "topk", "top": "50:"}, "such as 50:0.8"),
    "pixels alone": ({"attention": "topk", "top": 50}, "such as 50:0.8"),
    "a pair": ({"attention": "topk", "top": (50, 0.8)}, "such as 50:0.8"),
    "no property": ({"attention": None}, "attention None is not known"),
    "pixels in words": ({"attention": "topk", "top": "few:0.8"}, "top 'few:0.8' is not a threshold"),
    "a rule in words": ({"attention": "object", "mask": "auto:bright=much"}, "is not a rule"),
    "a rule with another word": ({"attention": "object", "mask": "auto:dark=0.2"}, "is not a rule"),
    "half a pixel": ({"attention": "object", "mask": "auto:grow=0.5"}, "is not a rule"),
    "a full rule": ({"attention": "object", "mask": "auto:bright=0,grow=28"}, "is full"),
    "a small array": ({"attention": "object", "mask": np.ones((3, 4))}, "is 4 × 3, but the image is 28 × 28"),
    "an empty array": ({"attention": "object", "mask": np.zeros((28, 28))}, "is empty"),
    "weights above 1": ({"attention": "object", "mask": np.full((28, 28), 1.5)}, "has weights outside 0 to 1"),
    "weights of NaN": ({"attention": "object", "mask": np.full((28, 28), np.nan)}, "has weights outside 0 to 1"),
    "no such file": ({"attention": "object", "mask": "nowhere.png"}, "no such file; check the path of the mask"),
    "no array": ({"attention": "object", "mask": {"top": 3}}, "mask: received dict; expected an array (H, W)"),
    "uneven rows": ({"attention": "object", "mask": [[0.0, 1.0], [1.0]]}, "mask: received list; expected an array"),
    "no pixel to point at": (
        {"attention": "pointing", "mask": np.full((28, 28), 0.4)},
        "mask array: no pixel counts as the object for pointing",
    ),
    "nothing but pixels to point at": (
        {"attention": "pointing", "mask": 0.6 + 0.4 * np.eye(28)},
        "mask array: all pixels count as the object for pointing",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_line(case):
    options, words = BAD[case]
    with pytest.raises(OptionError) as caught:
        ask(**options)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros((28, 28)), "is empty"),
        (np.full((28, 28), 255), "is full"),
        (np.full((14, 28), 255), "is 28 × 14, but the image is 28 × 28"),
        (np.arange(28 * 28 * 3).reshape(28, 28, 3) % 255, "is a colour picture"),
    ],
)
def test_bad_pictures_are_refused_in_one_line(values, words, tmp_path):
    with pytest.raises(OptionError) as caught:
        ask(attention="object", mask=png(tmp_path / "mask.png", values))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_maps_without_mass_at_the_unperturbed_image_are_refused():
    layers = [(-np.ones((2, 4)), -np.ones(2)), (np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([0.0, 1.0]))]
    image = np.array([[[0.0, 0.5], [0.5, 1.0]]])
    model = make_model(layers, image.shape)
    for options in ({"attention": "object", "mask": image[0] > 0.7}, {"attention": "alike"}):
        with pytest.raises(OptionError, match="zero everywhere"):
            make_question(model, image, SPECS, **options)
    assert make_question(model, image, SPECS, attention="alike", property="cr").attention.measure.name == "alike"


def test_an_object_without_mass_has_no_relative_threshold():
    layers = [(np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]), np.array([0.0, 1.0]))]
    image = np.array([[[0.25, 0.5], [0.5, 1.0]]])
    options = {"attention": "object", "mask": (image[0] > 0.7).astype(float)}
    with pytest.raises(OptionError, match="no mass on the mask"):
        make_question(make_model(layers, image.shape), image, SPECS, **options)
    assert make_question(make_model(layers, image.shape), image, SPECS, tau=0.5, **options).own_limit == 0.5


def test_shares_of_no_mass_are_left_out():
    layers = [(np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]), np.array([0.0, 1.0]))]
    image = np.array([[[0.25, 0.5], [0.5, 1.0]]])
    asked = {"attention": "object", "tau": 0.5}
    for place, marks in ((0.7, ["0.5"]), (0.3, ["0.5", "50%", "75%", "90%"])):
        question = make_question(make_model(layers, image.shape), image, SPECS, mask=1.0 * (image[0] > place), **asked)
        assert list(question.marks) == marks


def test_advice_about_empty_masks_fits_their_source():
    image = np.zeros((1, 4, 4))
    for given, is_rule in (("auto:bright=0.2", True), (np.zeros((4, 4)), False)):
        with pytest.raises(OptionError, match="is empty") as caught:
            Mask.of(given, image)
        assert ("lower bright" in str(caught.value)) == is_rule


def test_lists_and_tensors_are_masks():
    torch, image, rows = pytest.importorskip("torch"), np.zeros((1, 2, 2)), [[0.0, 1.0], [0.25, 0.5]]
    wanted = Mask.of(np.array(rows), image)
    assert Mask.of(rows, image) == Mask.of(torch.tensor(rows, dtype=torch.bfloat16), image) == wanted


def test_a_map_names_what_it_has_no_borders_for():
    asked = {"method": "map", "explain": "input-x-gradient"}
    for given, words in (
        ({"attention": "topk"}, "no borders for topk there"),
        ({"attention": "alike", "filter": "mean"}, "no borders for filter mean there"),
    ):
        with pytest.raises(OptionError, match=f"{words}, so only bounds can prove attention; use --method refine"):
            verify("M-FNN-100", "mnist:69990", SPECS, **asked, **given)
    for moved in ("translate:dx=1", "shift:dx=1,dy=1,interp=triangle"):
        with pytest.raises(OptionError, match="no borders for pointing on an object that moves there, so only bounds"):
            verify("M-FNN-100", "mnist:69990", moved, attention="pointing", mask=MASK, **asked)


@pytest.mark.parametrize("name", ["alike", "object", "pointing", "topk"])
def test_zero_maps_have_no_number(name):
    words = find_measures()[name].left_text(Stated("0.5", 0.5), 0.25, NO_ATTENTION)
    assert words.endswith(("maps are zero everywhere there", "is zero there")) and not any(map(str.isdigit, words))


def test_a_picture_is_read_as_grey_shares(tmp_path):
    values = np.zeros((28, 28))
    values[3, 4], values[5, 6] = 255, 51
    question = ask(attention="object", mask=png(tmp_path / "mask.png", values))
    weights = question.attention.mask.weights
    assert weights[3, 4] == 1.0 and weights[5, 6] == 51 / 255 and weights.sum() == 1.2


def test_the_rule_grows_in_eight_directions():
    image = np.zeros((2, 6, 7))
    image[1, 2, 3] = 0.3
    assert Mask.of("auto:bright=0.2", image).weights.sum() == 1.0
    assert Mask.of("auto:bright=0.2,grow=2", image).weights.sum() == 25.0
    with pytest.raises(OptionError, match="is empty"):
        Mask.of("auto:bright=0.4", image)
    assert Mask.of("auto", image) == Mask.of("auto:bright=0.2,grow=0", image)


def test_defaults_follow_the_property():
    asked = {name: ask(attention=name, mask=MASK) for name in ("object", "pointing")}
    assert all(question.attention.classes == (7,) for question in asked.values())
    assert str(asked["object"].threshold) == "90%" and asked["pointing"].own_limit == 0.5
    assert ask(attention="alike").attention.classes is None and str(ask(attention="alike").threshold) == "0.9"
    assert ask(attention="topk").describe().attention.threshold == "50:0.8"
    assert str(ask().threshold) == "25%" and ask().attention.distance.name == "L2"
    assert ask(attention="object", mask=MASK, classes="all").attention.classes is None


def test_what_is_asked_is_told_stored_and_restored(tmp_path):
    for name, options in (
        ("object", {"mask": MASK, "tau": "75%"}),
        ("pointing", {"mask": MASK}),
        ("alike", {"gamma": 0.8}),
        ("topk", {"top": "20:0.5"}),
    ):
        result = verify("M-FNN-100", "mnist:69990", SPECS, attention=name, **options)
        told = result.summary()["attention"]
        assert told["property"] == name and told["explain"] == "gradient" and "distance" not in told
        assert told["threshold"] == {"object": "75%", "pointing": None, "alike": "0.8", "topk": "20:0.5"}[name]
        assert (told["mask"] is None) == ("mask" not in options)
        again = load(result.save(tmp_path / name))
        assert again.summary() == result.summary()
        assert again.question.attention == result.question.attention
        words = result.question.words(result.threshold, "mnist:69990")
        assert words[words.index("--attention") + 1] == name


def test_a_stored_map_answers_other_thresholds(tmp_path):
    result = verify("M-FNN-100", "mnist:69990", SPECS, attention="object", mask=MASK)
    again = load(result.save(tmp_path / "result"))
    for tau in ("0.3", "0.5", "100%"):
        fresh = verify("M-FNN-100", "mnist:69990", SPECS, attention="object", mask=MASK, tau=tau)
        assert again.with_threshold(tau).areas == fresh.areas
    with pytest.raises(OptionError, match="does not go with attention object"):
        again.with_delta(3.0)
    with pytest.raises(OptionError, match="tau '2' is not a threshold"):
        again.with_threshold(2)
    top = verify("M-FNN-100", "mnist:69990", SPECS, attention="topk", top="20:0.5")
    assert top.with_threshold("20:0.9").answer.delta < top.answer.delta
    with pytest.raises(OptionError, match="needs other numbers"):
        top.with_threshold("21:0.9")


def test_refinements_resume_only_with_the_same_mask_and_property(tmp_path):
    options = {"attention": "object", "method": "refine", "tau": 0.5}
    first = verify("M-FNN-100", "mnist:69990", SPECS, mask=MASK, until=0.5, **options)
    place = first.save(tmp_path / "result")
    resumed = verify("M-FNN-100", "mnist:69990", SPECS, mask=MASK, resume=place, **options)
    assert resumed.areas["undecided"][0] <= first.areas["undecided"][0]
    for changed, words in (
        ({"mask": "auto:bright=0.3"}, "the mask"),
        ({"mask": MASK, "tau": 0.6}, "tau"),
        ({"mask": MASK, "tau": None, "attention": "pointing"}, "the property of attention"),
        ({"mask": MASK, "classes": "all"}, "filter, distance or classes"),
    ):
        with pytest.raises(OptionError, match=words):
            verify("M-FNN-100", "mnist:69990", SPECS, resume=place, **options | changed)


def test_a_damaged_mask_is_refused(tmp_path):
    place = verify("M-FNN-100", "mnist:69990", SPECS, attention="pointing", mask=MASK).save(tmp_path / "result")
    weights = np.load(place / "mask.npy")
    weights[0, 0] = 0.5
    np.save(place / "mask.npy", weights)
    with pytest.raises(StoreError, match=r"mask\.npy"):
        load(place)
    (place / "mask.npy").unlink()
    with pytest.raises(StoreError, match=r"mask\.npy"):
        load(place)


def test_the_mask_moves_with_the_image():
    result = verify("M-FNN-100", "mnist:69990", ("translate:dx=2",), attention="object", mask=MASK)
    before, after = result.at([0.0]).weights, result.at([2.0]).weights
    assert np.array_equal(after[:, 2:], before[:, :-2]) and not after[:, :2].any()
    half = result.at([0.5]).weights
    assert np.allclose(half[:, 1:], 0.5 * (before[:, 1:] + before[:, :-1]))


def test_a_relative_tau_is_told_as_an_absolute_one():
    def notes(result):
        return [one for one in result.summary()["notes"] if "unperturbed" in one]

    result = verify("M-FNN-100", "mnist:69990", SPECS, attention="object", mask=MASK)
    base = result.question.base
    for told, share in (("90 %", 0.9), ("50 %", 0.5)):
        (note,) = notes(result.with_threshold(told.replace(" ", "")))
        found = re.fullmatch(rf"([\d.]+) % of the gradient's mass .* τ = {told} requires at least ([\d.]+) %;.*", note)
        assert found is not None, note
        assert [float(text) for text in found.groups()] == pytest.approx([100 * base, 100 * share * base], rel=5e-3)
    assert notes(result.with_threshold(0.3)) == []
    assert notes(verify("M-FNN-100", "mnist:69990", SPECS, property="cr", attention="object", mask=MASK)) == []
