"""`verify`: output, files and exit codes."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from steadygaze import zoo
from steadygaze.words import percent_down
from support.command_line import SMALL, Runner

KEYS = {
    "verdict", "label", "regions", "area", "nearest", "delta", "ar_at_delta", "tiling_error", "sliver_share",
    "guarantee", "seconds", "complete",
}  # fmt: skip
FILES = {"result.json", "regions.npz", "image.npy", "image.png", "timings.json"}


def test_json_is_one_object_and_nothing_else(run: Runner, place: Path):
    result = run(*SMALL, "--delta", "3.0", "--out", "out", "--method", "map", "--json")
    assert result.code == 10
    answer = result.json
    assert set(answer) >= KEYS
    phases = ("start", "read", "check model", "walk", "attention", "labels", "self-check", "summary", "store")
    assert set(answer["seconds"]) >= set(phases)
    assert answer["output"] == {"directory": "out", "pictures": []}
    assert answer["verdict"] == "not robust" and answer["label"] == 7 and answer["complete"] is True
    assert answer["area"]["CR"] == [1.0, 1.0] and 0.0 < answer["area"]["AR"][0] < 1.0
    assert "require" not in answer
    assert {path.name for path in (place / "out").iterdir()} == FILES


def test_the_summary_for_people(run: Runner):
    result = run(*SMALL, "--delta", "3.0", "--out", "out")
    assert result.code == 10 and result.err == ""
    for words in (
        "M-FNN-100 predicts 7 for mnist:69990",
        "Domain: brightness 0..0.2",
        "NOT ROBUST: In ",
        "the network still predicts 7, but the attention maps",
        "CR: label kept",
        "nearest IR",
        "brightness ≈ 0.0",
        "AR at other δ  at 10 %",
        "entirely AR    from δ = ",
        "Proved for the real-valued network",
        "out/map.png",
    ):
        assert words in result.out
    assert "\x1b" not in result.out


def test_the_share_that_people_read_is_the_one_of_the_json(run: Runner):
    told = run(*SMALL, "--delta", "3.0", "--out", "told").out
    low, high = run(*SMALL, "--delta", "3.0", "--out", "json", "--json").json["area"]["AR"]
    assert high - low < 1e-9 and percent_down(low) in told


def test_quiet_prints_nothing(run: Runner, place: Path):
    result = run(*SMALL, "--out", "out", "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert {path.name for path in (place / "out").iterdir()} == FILES


@pytest.mark.parametrize(
    ("options", "endings"),
    [
        ((), ["png"]),
        (("--pictures", "none"), []),
        (("--pictures", "svg"), ["svg"]),
        (("--pictures", "png,svg", "--json"), ["png", "svg"]),
        (("--quiet",), []),
        (("--quiet", "--pictures", "pdf"), ["pdf"]),
    ],
)
def test_pictures_are_drawn_in_the_formats_asked_for(run: Runner, place: Path, options, endings):
    result = run(*SMALL, "--out", "out", *options)
    assert result.code == 0 and result.err == ""
    assert sorted(path.suffix[1:] for path in (place / "out").glob("map.*")) == endings
    assert [f"out/map.{ending}" in result.out for ending in endings] == [result.out != ""] * len(endings)


def test_quiet_json_prints_the_json(run: Runner, place: Path):
    Image.open(zoo.image_path("mnist:69990")).convert("RGBA").convert("LA").save(place / "seven.png")
    question = ("verify", "M-FNN-100", "--image", "seven.png", "--perturb", "brightness:0..0.2", "--json")
    loud, quiet = run(*question, "--out", "loud"), run(*question, "--out", "quiet", "--quiet")
    assert loud.err.startswith("note: ") and quiet.err == ""
    for answer in (first := loud.json, second := quiet.json):
        del answer["seconds"], answer["output"]
    assert first == second


def test_without_out_the_directory_is_named_after_the_question(run: Runner, place: Path):
    assert run(*SMALL).code == 0
    (directory,) = place.iterdir()
    assert directory.name == "M-FNN-100--mnist-69990--brightness-0-to-0.2"
    again = run(*SMALL)
    assert again.code == 2 and "--force" in again.err


def test_force_replaces_a_result(run: Runner, place: Path):
    run(*SMALL, "--out", "out")
    (place / "out" / "result.json").read_text(encoding="utf-8")
    result = run(*SMALL, "--out", "out", "--force", "--delta", "3.0")
    assert result.code == 10
    assert json.loads((place / "out" / "result.json").read_text(encoding="utf-8"))["delta"]["value"] == 3.0


@pytest.mark.parametrize(
    ("require", "code", "outcome"),
    [
        ("CR>=1", 0, "met"),
        ("CR&AR>=99%", 10, "not met"),
        ("CR>=1 and IR<=0.01", 10, "not met"),
        ("IR<1 and MR<=0, undecided<0.1", 0, "met"),
    ],
)
def test_a_requirement_replaces_the_verdict(run: Runner, require: str, code: int, outcome: str):
    result = run(*SMALL, "--delta", "3.0", "--require", require, "--out", "out", "--json")
    assert result.code == code
    assert result.json["require"] == {"text": require, "outcome": outcome}
    assert f"Required {require}: {outcome}" in run(*SMALL, "--delta", "3.0", "--require", require, "--out", "again").out


def test_properties_decide_the_exit_code(run: Runner):
    assert run(*SMALL, "--delta", "3.0", "--property", "cr", "--out", "cr").code == 0
    assert run(*SMALL, "--delta", "3.0", "--property", "ar", "--out", "ar").code == 10
    assert run(*SMALL, "--delta", "0", "--property", "both", "--out", "both").code == 10


def test_a_limit_makes_the_result_partial(run: Runner):
    # A knot cell is small enough to be mapped in one go, so the limit is met between two of them.
    question = ("verify", "M-FNN-100", "--image", "mnist:69990", "--perturb", "translate:dx=9", "--property", "cr")
    result = run(*question, "--threads", "1", "--max-regions", "1", "--out", "out", "--json")
    assert result.code == 3
    answer = result.json
    assert answer["complete"] is False and answer["stopped"] == "limit of 1 region"
    low, high = answer["area"]["CR"]
    assert 0.0 < low < high == 1.0
    told = run("show", "out").out
    assert "UNDECIDED: No violation is proved anywhere." in told and "Partial:" in told


def test_a_timeout_before_the_first_region_is_undecided(run: Runner):
    result = run(*SMALL, "--timeout", "1e-9", "--out", "out", "--json")
    assert result.code == 3, result.err
    assert result.json["complete"] is False and result.json["area"]["CR"] == [0.0, 1.0]


def test_class_names(run: Runner, place: Path):
    names = ["nought", "one", "two", "three", "four", "five", "six", "Seven", "eight", "[b]nine[/b]"]
    (place / "names.txt").write_text("\ufeff" + "\r\n".join(names) + "\r\n\r\n", encoding="utf-8")
    question = (*SMALL, "--class-names", "names.txt", "--expect", "seven")
    assert "M-FNN-100 predicts Seven (class 7) for" in run(*question, "--out", "out").out
    refused = run(*SMALL, "--class-names", "names.txt", "--expect", "Sevn")
    assert refused.code == 2 and "Did you mean Seven?" in refused.err
    refused = run(*SMALL, "--class-names", "names.txt", "--expect", "9")
    assert refused.code == 2 and "--expect is [b]nine[/b] (class 9)" in refused.err
    assert run(*SMALL, "--class-names", "names.txt", "--expect", "7", "--out", "number").code == 0


def test_a_name_that_several_classes_have_is_not_guessed(run: Runner, place: Path):
    (place / "names.txt").write_text("crane\n" * 10, encoding="utf-8")
    refused = run(*SMALL, "--class-names", "names.txt", "--expect", "crane")
    assert refused.code == 2 and "several classes" in refused.err


def test_bundled_images_bring_their_names(run: Runner):
    question = ("verify", "F-FNN-100", "--image", "fashion:69995", "--perturb", "brightness:0..0.01")
    answer = run(*question, "--out", "out", "--json").json
    assert answer["label_name"] == zoo.class_names("fashion")[answer["label"]]
    wrong = run(*question, "--expect", "Bag" if answer["label_name"] != "Bag" else "Coat")
    assert wrong.code == 2 and answer["label_name"] in wrong.err


def test_preprocessing_options_reach_the_model(run: Runner):
    plain = run(*SMALL, "--json", "--out", "plain").json
    same = run(*SMALL, "--json", "--out", "same", "--mean", "0", "--std", "1", "--scale", "1").json
    other = run(*SMALL, "--json", "--out", "other", "--mean", "0.1", "--std", "0.5").json
    assert plain["delta"] == same["delta"]
    assert not np.isclose(plain["delta"]["map_size"], other["delta"]["map_size"])


def test_attention_options_reach_the_answer(run: Runner):
    options = ("--filter", "abs+mean", "--dist", "l1", "--classes", "3,8")
    answer = run(*SMALL, *options, "--json", "--out", "out").json
    assert answer["attention"] == {
        "filter": "abs+mean", "distance": "l1", "classes": [3, 8], "property": "distance", "explain": "gradient",
        "threshold": "25%", "mask": None,
    }  # fmt: skip


def test_an_own_model_and_an_own_image(run: Runner, place: Path):
    (place / "my.onnx").write_bytes(zoo.model_path("M-FNN-100").read_bytes())
    (place / "seven.png").write_bytes(zoo.image_path("mnist:69990").read_bytes())
    question = ("verify", "my.onnx", "--image", "seven.png", "--perturb", "brightness:0..0.2", "--json")
    own, bundled = run(*question).json, run(*SMALL, "--json").json
    assert own["area"] == bundled["area"] and own["model"]["name"] == "my"
    assert own["output"]["directory"] == "my--seven--brightness-0-to-0.2"
