"""Accepted specs, and refused ones with a remedy."""

import numpy as np
import pytest
from PIL import Image

from steadygaze.errors import PerturbationError
from steadygaze.perturbation import Brightness, Darkness, Patch, Translate, parse_spec
from steadygaze.perturbation.families import find_families


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("brightness", Brightness()),
        ("brightness:-0.2..0.5", Brightness(range=(-0.2, 0.5))),
        ("brightness:-1..1", Brightness(range=(-1, 1))),
        ("brightness:1e-3...5", Brightness(range=(0.001, 0.5))),
        ("darkness", Darkness()),
        ("darkness:0..0.3", Darkness(range=(0, 0.3))),
        ("patch:x=12,y=12,w=4,h=4", Patch(x=12, y=12, w=4, h=4)),
        ("patch:x=1,y=2,w=3,h=4,tone=-1:0..0.5", Patch(x=1, y=2, w=3, h=4, tone=-1, range=(0, 0.5))),
        ("patch:h=4,w=3,y=2,x=1", Patch(x=1, y=2, w=3, h=4)),
        ("translate:dy=1", Translate(dy=1)),
        ("translate:dx=3:0..1.5", Translate(dx=3, range=(0, 1.5))),
        ("translate:dx=-2", Translate(dx=-2)),
        ("translate:dx=+2,dy=0:-1..2", Translate(dx=2, range=(-1, 2))),
        (" Brightness : 0 .. 0.5 ", Brightness(range=(0, 0.5))),
        ("patch: x = 1, y = 2, w = 3, h = 4", Patch(x=1, y=2, w=3, h=4)),
    ],
)
def test_read(text, one):
    assert parse_spec(text) == one
    assert parse_spec(one.spec) == one


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (Brightness(range=(0, 1)), "brightness"),
        (Patch(x=1, y=2, w=3, h=4, tone=1), "patch:x=1,y=2,w=3,h=4"),
        (Patch(x=1, y=2, w=3, h=4, tone=-1, range=(0, 0.5)), "patch:x=1,y=2,w=3,h=4,tone=-1:0..0.5"),
        (Translate(dx=3, range=(-1, 1.5)), "translate:dx=3:-1..1.5"),
        (Translate(dy=-2), "translate:dy=-2"),
        (Darkness(range=(-0.0, 0.3)), "darkness:0..0.3"),
    ],
)
def test_canonical_text(one, text):
    assert one.spec == text


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "keyword is missing.*brightness, contrast, darkness.*translate"),
        (":0..1", "keyword is missing"),
        ("brigtness", "did you mean 'brightness'"),
        ("translation:dx=1", "did you mean 'translate'.*translate:dy=1"),
        ("Patches:x=1", "did you mean 'patch'"),
        ("zzz", r"unknown keyword 'zzz'\. Expected one of"),
        ("brightness:", "neither key=value nor low..high"),
        ("brightness:0.5", "'0.5' is neither .* for example brightness:-0.2..0.5"),
        ("brightness:0-1", "neither"),
        ("brightness:0.5..0.2", "inverted; write the smaller end first: 0.2..0.5"),
        ("brightness:0..0", "empty"),
        ("brightness:0..2", "beyond ±1"),
        ("brightness:nan..1", "starts with 'nan'"),
        ("brightness:0..inf", "ends with 'inf'"),
        ("brightness:0..1e999", "not finite"),
        ("brightness:..", "starts with ''"),
        ("brightness:0..1..2", "ends with '1..2'"),
        ("brightness:0..1_0", "ends with '1_0'"),
        ("darkness:x=3", "unknown key 'x'.*only a range"),
        ("brightness:0..1:0..1", "too many parts"),
        ("patch:0..1:x=1,y=2,w=3,h=4", "wrong order"),
        ("patch:x=1,y=1:w=2,h=2", "too many parts"),
        ("patch", "x, y, w, h are missing.*patch:x=12,y=12,w=4,h=4"),
        ("patch:x=1,y=2,w=3", "h is missing"),
        ("patch:x=1,y=2,width=3,h=4", "unknown key 'width'"),
        ("patch:x=1,y=2,w=3,h=4,tones=1", "did you mean 'tone'"),
        ("patch:x=1,x=2,y=2,w=3,h=4", "x is given twice"),
        ("patch:x=1.5,y=2,w=3,h=4", "x is '1.5'; expected a whole number"),
        ("patch:x=,y=2,w=3,h=4", "x is ''; expected a whole number"),
        ("patch:x=1,,w=3,h=4", "'' is not key=value"),
        ("patch:x=1,y=2,w=3,h=4,tone=2", "tone=.*expected 1"),
        ("patch:x=1,y=2,w=0,h=4", "contains no pixel"),
        ("patch:x=1,y=2,w=3,h=4,range=1", "unknown key 'range'"),
        ("translate", "moves nowhere; give dx or dy"),
        ("translate:dx=0", "moves nowhere"),
        ("translate:dx=1,dy=2", "one axis"),
        ("translate:dx=1.5", "whole number"),
        ("translate:dx=1e3", "whole number"),
        ("translate:dx=99999999999999999999", "at most 1000000"),
        ("translate:dx=3:0..4", "leaves -3..3"),
        ("translate:0..1", "moves nowhere"),
    ],
)
def test_refused(text, what):
    with pytest.raises(PerturbationError, match=what) as caught:
        parse_spec(text)
    message = str(caught.value)
    assert message.startswith(f"perturbation {text!r}: ")
    assert message.count("perturbation '") == 1
    assert caught.value.exit_code == 2


def test_long_and_multi_line_texts_give_one_short_line():
    for text in ("patch:" + "9" * 10_000, "x" * 10_000, "brightness\n:0..3", "patch:x=" + "9" * 10_000):
        with pytest.raises(PerturbationError) as caught:
            parse_spec(text)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400


def test_only_text_is_read():
    with pytest.raises(PerturbationError, match="not a text"):
        parse_spec(None)


def test_examples_in_error_messages_are_valid(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("K.npy", np.full((3, 3), 1.0 / 9.0))
    np.save("D.npy", np.eye(3))
    Image.new("RGB", (3, 3)).save("clouds.png")
    Image.new("RGBA", (3, 3)).save("dirt.png")
    for keyword, family in find_families().items():
        assert isinstance(parse_spec(family.example), family)
        assert family.keyword == keyword == keyword.lower()
