"""Every option of a question is stored, restored, part of the repeating command, and compared when a run resumes."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from steadygaze import load, verify
from steadygaze.question import OPTIONS, make_question

OBJECT = {"attention": "object", "mask": "auto:bright=0.2,grow=1"}
TRIED = {
    "property": ("ar", {}),
    "attention": ("alike", {}),
    "delta": ("40%", {}),
    "tau": ("0.25", OBJECT),
    "gamma": ("0.5", {"attention": "alike"}),
    "top": ("20:0.5", {"attention": "topk"}),
    "mask": ("auto:bright=0.4,grow=2", OBJECT),
    "explain": ("smoothgrad:n=2", {}),
    "filter": ("abs+mean", {}),
    "dist": ("l1", {}),
    "classes": ("3,7", {}),
    "fit": ("pad", {}),
    "grey": (True, {}),
    "rgb": (True, {}),
}
"""For every option a value other than its default, and the options that it goes with."""
SPEC = "brightness:0..0.004"


def test_every_option_is_tried():
    assert list(TRIED) == list(OPTIONS)


@pytest.mark.parametrize("name", TRIED)
def test_an_option_is_kept_and_noticed(tmp_path: Path, name: str):
    value, others = TRIED[name]
    others = {key: text for key, text in others.items() if key != name}
    model, image = ("C-RESNET", "mnist:69990") if name == "rgb" else ("M-FNN-100", "mnist:69990")
    if name in ("fit", "grey"):
        image = tmp_path / "photo.png"
        size, mode = ((30, 26), "L") if name == "fit" else ((28, 28), "RGB")
        shades = np.random.default_rng(5).integers(0, 256, (size[1], size[0], len(mode)), dtype=np.uint8)
        Image.fromarray(shades.squeeze(), mode).save(image)
    method = "map" if name != "rgb" else "refine"
    result = verify(model, image, SPEC, method=method, **others, **{name: value})
    result.save(tmp_path / "kept")
    again, asked = load(tmp_path / "kept").question, result.question
    assert again.words(again.threshold, "image.png") == asked.words(asked.threshold, "image.png")
    assert f"--{name}" in again.words(again.threshold, "image.png")
    content = json.loads((tmp_path / "kept" / "result.json").read_text(encoding="utf-8"))
    assert asked.differences(content, asked.perturbed.x0) == []
    if name not in ("fit", "grey", "rgb"):  # without them, other pixels or no question
        companions = {} if name == "attention" else others
        other = make_question(model, image, SPEC, **(OBJECT if name == "mask" else companions))
        assert other.differences(content, other.perturbed.x0)
