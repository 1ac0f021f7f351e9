"""The words of an answer say no more than the bounds do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.cli.answer_text import bounds_text, enough_text, kept_text, nearest_text, share_text, verdict_text
from steadygaze.results.summary import Summary
from support.stand_ins.made_up_summaries import made_summary

SHARES = st.floats(0.0, 1.0, allow_nan=False)


@given(SHARES)
def test_only_nothing_and_everything_look_like_it(share):
    text = share_text(share)
    assert (text == "0 %") == (share == 0.0)
    assert (text == "100 %") == (share == 1.0)
    if text != "just below 100 %":
        assert abs(float(text.removesuffix(" %")) - 100.0 * share) <= 0.005
        assert (float(text.removesuffix(" %")) == 0.0) == (share == 0.0)


@given(SHARES, SHARES)
def test_bounds_that_read_differently_are_both_shown(first, second):
    low, high = sorted((first, second))
    text = bounds_text([low, high])
    assert (" to " in text) == (share_text(low) != share_text(high))


def summary(**changes: Any) -> Summary:
    """A map of two parameters with δ = 3, where an image is robust for both properties."""
    given = {
        "delta": {"text": "3", "value": 3.0, "map_size": 12.0},
        "ar_at_delta": {"10%": [0.5, 0.5], "25%": [1.0, 1.0], "all": 2.5},
        "domain": {"names": ["brightness", "translation right [px]"], "low": [0.0, 0.0], "high": [1.0, 1.0]},
    }
    return made_summary(**given | changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "The label is kept and the attention maps stay within δ = 3 of the expected ones everywhere in the domain.",
        ),
        ({"property": "cr"}, "The label is kept everywhere in the domain."),
        (
            {"property": "cr", "sliver_share": 1.23e-14},
            "The label is kept everywhere in the domain.",
        ),
        (
            {"property": "ar", "delta": {"text": "25%", "value": 3.0, "map_size": 12.0}},
            "The attention maps stay within δ = 3 (25 % of the original maps) of the expected ones everywhere in the "
            "domain.",
        ),
        (
            {"verdict": "not robust", "area": {"MR": [0.25, 0.25], "IR": [0.0, 0.1]}},
            "The label changes on 25.00 % of the domain.",
        ),
        (
            {"verdict": "not robust", "area": {"MR": [0.0, 0.0], "IR": [0.1, 0.2]}},
            "The attention maps are not within δ = 3 of the expected ones on at least 10.00 % of the domain.",
        ),
        (
            {"verdict": "not robust", "area": {"MR": [1e-9, 1.0], "IR": [0.5, 0.5]}},
            "The label changes on at least 1e-07 % of the domain and the attention maps are not within δ = 3 of the "
            "expected ones on 50.00 % of the domain.",
        ),
        (
            {"verdict": "not robust", "property": "cr", "area": {"MR": [0.5, 0.5], "IR": [0.5, 0.5]}},
            "The label changes on 50.00 % of the domain.",
        ),
        (
            {"verdict": "undecided", "area": {"undecided": [0.5, 0.5]}},
            "No violation is proved, but 50.00 % of the domain is not decided.",
        ),
        (
            {"verdict": "undecided", "property": "cr", "area": {"CR": [0.75, 1.0], "undecided": [0.5, 0.5]}},
            "No violation is proved, but 25.00 % of the domain is not decided.",
        ),
    ],
)
def test_verdict(changes, sentence):
    assert verdict_text(summary(**changes)) == sentence


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (None, None, "none in the domain"),
        (0.25, None, "none is proved; none below distance 0.25"),
        (0.0, None, "none is proved so far"),
        (0.5, 0.5 + 1e-9, "brightness = 0.1, translation right [px] = 2 (distance 0.5)"),
        (0.25, 0.5, "brightness = 0.1, translation right [px] = 2 (distance 0.5; none below distance 0.25)"),
        (0.0, 0.5, "brightness = 0.1, translation right [px] = 2 (distance 0.5; a nearer one is not excluded)"),
    ],
)
def test_nearest_violation(low, high, text):
    found = {"low": low, "high": high, "theta": None if high is None else [0.1, 2.0]}
    assert nearest_text(summary(nearest={"CR": found}), "CR") == text


def test_the_nearest_violation_of_the_attention_leaves_kinks_out():
    none, some = {"low": None, "high": None, "theta": None}, {"low": 0.25, "high": 0.5, "theta": [0.1, 2.0]}
    narrow = summary(nearest={"CR": none, "AR": none}, sliver_share=1e-12)
    assert nearest_text(narrow, "AR") == "none in the domain outside of kinks"
    assert nearest_text(narrow, "CR") == "none in the domain"
    text = nearest_text(summary(nearest={"AR": some}, sliver_share=1e-12), "AR")
    assert text.endswith("(distance 0.5; none below distance 0.25 outside of kinks)")


def test_a_violation_at_a_single_theta_is_named_by_its_witness():
    witness = {
        "kind": "label", "theta": [0.25, 1.0], "label": 7, "label_name": "7", "margin": -1.0, "inconsistency": 0.0,
        "is_deep": True, "logits": [],
        "replay": {"difference": None, "tolerance": None, "label_name": None, "agrees": True},
        "map_check": {
            "is_checkable": False, "classes": [], "checked": 0, "skipped": 0, "difference": None, "tolerance": None,
            "agrees": None,
        },
    }  # fmt: skip
    found = summary(verdict="not robust", property="cr", area={"CR": [0.5, 1.0], "MR": [0.0, 0.5]}, witnesses=[witness])
    where = "brightness = 0.25, translation right [px] = 1"
    assert verdict_text(found) == f"The label changes at {where}; how much of the domain violates is not decided."


def test_other_thresholds():
    assert kept_text(summary()) == "at 10 % 50.00 %; at 25 % 100 % (of the original maps' size, 12)"
    assert enough_text(summary()) == "from δ = 2.5 (20.84 % of the original maps), kinks aside"
    assert enough_text(summary(ar_at_delta={"all": None})) == "not known, as the map is partial"
    assert enough_text(summary(delta={"text": "3", "value": 3.0, "map_size": 0.0})) == "from δ = 2.5, kinks aside"
