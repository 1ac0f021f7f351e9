"""Bad input about properties of attention: exit code 2, one line that says how to fix it, and no files."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from steadygaze.attention.measures import find_measures
from support.command_line import SMALL, Runner

MASK = ("--mask", "auto:bright=0.2,grow=1")
OBJECT, POINTING = ("--attention", "object"), ("--attention", "pointing")


@pytest.fixture
def masks(place: Path) -> Path:
    """A directory with masks that do not fit."""
    for name, size, grey in (("wide.png", (32, 20), 255), ("empty.png", (28, 28), 0), ("full.png", (28, 28), 255)):
        Image.new("L", size, grey).save(place / name)
    Image.new("L", (28, 28), 20).save(place / "dark.png")
    Image.new("L", (28, 28), 100).save(place / "faint.png")
    colours = np.zeros((28, 28, 3), dtype=np.uint8)
    colours[:9, :9, 0] = 255
    Image.fromarray(colours).save(place / "colour.png")
    return place


CASES = [
    (("--attention", "objct"), "Did you mean object?"),
    (("--attention", "distant"), f"--attention is 'distant'; expected {', '.join(find_measures())}"),
    ((*OBJECT, "--mask", "wide.png"), "mask wide.png: is 32 × 20, but the image is 28 × 28"),
    ((*OBJECT, "--mask", "empty.png"), "mask empty.png: is empty"),
    ((*OBJECT, "--mask", "full.png"), "mask full.png: is full"),
    ((*OBJECT, "--mask", "colour.png"), "is a colour picture"),
    ((*OBJECT, "--mask", "missing.png"), "missing.png"),
    ((*OBJECT, *MASK, "--image", "dark.png"), "mask auto:bright=0.2,grow=1: is empty"),
    ((*OBJECT, "--mask", "auto:bright=0,grow=30"), "is full"),
    ((*OBJECT, "--mask", "auto:dark=1"), "is not a rule"),
    ((*OBJECT, "--mask", "auto:bright=nan"), "is not a rule"),
    (MASK, "a mask does not go with attention distance"),
    (("--attention", "alike", *MASK), "a mask does not go with attention alike"),
    (OBJECT, "attention object needs a mask"),
    (POINTING, "attention pointing needs a mask"),
    ((*OBJECT, *MASK, "--tau", "nan"), "tau 'nan' is not a threshold"),
    ((*OBJECT, *MASK, "--tau", "0"), "tau '0' is not a threshold"),
    ((*OBJECT, *MASK, "--tau", "1.5"), "tau '1.5' is not a threshold"),
    ((*OBJECT, *MASK, "--tau", "101%"), "tau '101%' is not a threshold"),
    (("--attention", "alike", "--gamma", "nan"), "gamma 'nan' is not a threshold"),
    (("--attention", "alike", "--gamma", "-1"), "gamma '-1' is not a threshold"),
    (("--attention", "alike", "--gamma", "1.01"), "gamma '1.01' is not a threshold"),
    (("--attention", "topk", "--top", "0:0.8"), "top '0:0.8' is not a threshold"),
    (("--attention", "topk", "--top", "785:0.8"), "asks for the 785 strongest pixels, but the image has 784"),
    (("--attention", "topk", "--top", "50:0"), "is not a threshold"),
    (("--attention", "topk", "--top", "50:nan"), "is not a threshold"),
    (("--tau", "0.5"), "tau '0.5' does not go with attention distance: it is the threshold of object; give delta"),
    ((*OBJECT, *MASK, "--delta", "3"), "delta '3' does not go with attention object"),
    ((*POINTING, "--mask", "faint.png"), "mask faint.png: no pixel counts as the object for pointing"),
    ((*POINTING, *MASK, "--tau", "0.5"), "does not go with attention pointing"),
    ((*OBJECT, *MASK, "--dist", "l1"), "dist 'l1' does not go with attention object"),
    (("--explain", "gradcam:layer=conv1"), "gradcam: the network has no convolutions"),
    (("--explain", "occlusion:window=0"), "occlusion: window is 0"),
    (("--explain", "occlusion:stride=0"), "occlusion: stride is 0"),
    (("--explain", "occlusion:window=29,stride=4"), "a window of 29 pixels is larger than the image, which is 28×28"),
    (("--explain", "occlusion:baseline=nan"), "baseline is 'nan'"),
    (("--explain", "smoothgrad:n=0"), "smoothgrad: n is 0"),
    (("--explain", "integrated:steps=0"), "integrated: steps is 0"),
    (("--explain", "occlusion", "--method", "gbs"), "maps of occlusion change within a region"),
    (("--explain", "saliency"), "'saliency' is not known; expected gradcam, gradient, "),
]


@pytest.mark.parametrize(("given", "complaint"), CASES, ids=[" ".join(given)[:60] for given, _ in CASES])
def test_one_line_and_nothing_written(run: Runner, masks: Path, given: tuple[str, ...], complaint: str):
    before = sorted(path.name for path in masks.iterdir())
    result = run(*SMALL, *given)
    assert (result.code, result.out) == (2, ""), result.err
    assert result.err.startswith("steadygaze: ") and result.err.count("\n") == 1 and result.err.endswith("\n")
    assert complaint in result.err
    assert sorted(path.name for path in masks.iterdir()) == before


def test_an_unknown_layer_is_refused_with_the_list(run: Runner):
    given = ("verify", "M-CNN-S", "--image", "mnist:69990", "--perturb", "brightness:0..0.1")
    for text in ("gradcam:layer=conv9", "gradcam"):
        result = run(*given, "--explain", text)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert "expected layer=NAME with one of conv1, relu1, conv2, relu2" in result.err


def test_an_image_without_mass_is_refused(run: Runner, place: Path):
    """Input×gradient of a black image is zero: only the distance has attention to keep."""
    Image.new("L", (28, 28), 0).save(place / "black.png")
    half = np.zeros((28, 28), dtype=np.uint8)
    half[:14] = 255
    Image.fromarray(half).save(place / "half.png")
    model, perturbed = "M-FNN-100", ("--perturb", "brightness:0..0.1")
    for given in ((*OBJECT, "--mask", "half.png"), (*POINTING, "--mask", "half.png"), ("--attention", "alike"),
                  ("--attention", "topk")):  # fmt: skip
        result = run("verify", model, "--image", "black.png", *perturbed, "--explain", "input-x-gradient", *given)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result.err
        assert "zero everywhere, so there is no attention to keep" in result.err


def test_stored_results_answer_thresholds_of_their_own_property_only(run: Runner, place: Path):
    made = run(*SMALL, *OBJECT, *MASK, "--tau", "0.5", "--out", "kept", "--json").json
    assert {"property", "explain", "threshold", "mask", "classes", "filter"} <= set(made["attention"])
    assert (made["attention"]["property"], made["attention"]["threshold"]) == ("object", "0.5")
    assert "ar_at_delta" not in made or made["ar_at_delta"] is None
    assert set(made["at_threshold"]) == {"0.5", "50%", "75%", "90%", "all"}
    for command in (("show", "kept"), ("boundary", "kept"), ("report", "kept"), ("export", "kept"),
                    ("figure", "tiling", "kept"), ("compare", "kept", "kept")):  # fmt: skip
        refused = run(*command, "--delta", "3")
        assert refused.code == 2 and refused.err.count("\n") == 1, refused.err
        assert "does not go with attention object" in refused.err
    shown = run("show", "kept", "--tau", "0.4", "--json").json
    assert shown["attention"]["threshold"] == "0.4" and shown["area"]["AR"][0] >= made["area"]["AR"][0]
    again = run(*SMALL, *OBJECT, *MASK, "--tau", "0.4", "--out", "other", "--json").json
    np.testing.assert_allclose(shown["area"]["AR"], again["area"]["AR"], atol=1e-9)
    plain = run(*SMALL, "--out", "plain", "--json").json
    assert plain["ar_at_delta"] == plain["at_threshold"] and run("show", "plain", "--tau", "0.5").code == 2


def test_resume_with_another_mask_or_property_is_refused(run: Runner, place: Path):
    asked = (*SMALL, "--method", "refine", *OBJECT)
    assert run(*asked, *MASK, "--out", "kept", "--quiet").code in (0, 10, 3)
    for given in (
        (*asked, "--mask", "auto:bright=0.5,grow=1"),
        (*SMALL, "--method", "refine", *POINTING, *MASK),
        (*SMALL, "--method", "refine"),
        (*asked, *MASK, "--explain", "input-x-gradient"),
        (*asked, *MASK, "--explain", "occlusion:window=14,stride=14"),
    ):
        refused = run(*given, "--resume", "kept")
        assert refused.code == 2 and refused.err.count("\n") == 1, refused.err


def test_requirements_are_about_the_property_asked(run: Runner):
    asked = (*SMALL, *OBJECT, *MASK, "--quiet", "--out", "kept", "--force")
    assert run(*asked, "--tau", "0.01", "--require", "CR&AR>=0.9").code == 0
    assert run(*asked, "--tau", "1", "--require", "CR&AR>=0.9").code == 10
