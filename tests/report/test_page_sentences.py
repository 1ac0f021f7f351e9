"""The verdict in words: no case claims more than was proved."""

import re

import numpy as np
import pytest

import steadygaze
from steadygaze.report.page.html import headline
from steadygaze.results.description import KeptRange, range_sentences, small_print, undecided_share, verdict_sentences
from steadygaze.results.result import Result
from support.stand_ins.made_up_summaries import made_search, made_summary

DIFFER = "the attention maps differ from the expected ones by more than the allowed 25 % of the original maps' size"


NOT_ROBUST = {"verdict": "not robust"}
MIXED = {"CR": [0.96, 0.96], "MR": [0.04, 0.04], "AR": [0.84, 0.84], "IR": [0.16, 0.16], "CR&AR": [0.836, 0.836],
         "CR&IR": [0.124, 0.124], "MR&IR": [0.036, 0.036], "MR&AR": [0.004, 0.004]}  # fmt: skip

CASES = {
    "robust": ({}, None, [
        "Everywhere in the domain (brightness from 0 to +1) the network keeps its label 8 and its attention: the "
        "attention maps differ from the expected ones by at most the allowed 25 % of the original maps' size.",
    ]),
    "robust, label alone": ({"property": "cr"}, None, [
        "Everywhere in the domain (brightness from 0 to +1) the network keeps its label 8.",
    ]),
    "robust, attention alone, absolute": (
        {"property": "ar", "delta": {"text": "3", "value": 3.0, "map_size": 10.0}}, None, [
            "Everywhere in the domain (brightness from 0 to +1) the network keeps its attention: the attention maps "
            "differ from the expected ones by at most the allowed distance of 3.",
        ],
    ),
    "a threshold with many digits": (
        {"property": "ar", "delta": {"text": "1.2345678", "value": 1.2345678, "map_size": 10.0}}, None, [
            "Everywhere in the domain (brightness from 0 to +1) the network keeps its attention: the attention maps "
            "differ from the expected ones by at most the allowed distance of 1.2345678.",
        ],
    ),
    "as in the issue": (NOT_ROBUST | {"area": MIXED}, KeptRange((0.0,), (0.3199,), False), [
        "Up to brightness +0.319 the network keeps its label 8 and its attention.",
        f"In 12.40 % of the domain the network still predicts 8, but {DIFFER}.",
        "In 4.00 % of the domain the network no longer predicts 8.",
    ]),
    "label alone": (NOT_ROBUST | {"property": "cr", "area": MIXED}, KeptRange((0.0,), (0.5,), False), [
        "Up to brightness +0.5 the network keeps its label 8.", "In 4.00 % of the domain the network no longer "
            "predicts 8.",
    ]),
    "attention alone": (NOT_ROBUST | {"property": "ar", "area": MIXED}, KeptRange((0.0,), (0.5,), False), [
        "Up to brightness +0.5 the network keeps its attention.", f"In 16.00 % of the domain {DIFFER}.",
    ]),
    "attention lost only where the label is": (
        NOT_ROBUST | {"area": MIXED | {"CR&IR": [0.0, 0.0]}}, KeptRange((0.0,), (0.5,), False), [
            "Up to brightness +0.5 the network keeps its label 8 and its attention.",
            f"In 16.00 % of the domain {DIFFER}.", "In 4.00 % of the domain the network no longer predicts 8.",
        ],
    ),
    "bounds, undecided, stopped": (
        NOT_ROBUST | {"area": MIXED | {"CR&IR": [0.10, 0.2001], "MR": [0.0, 0.1], "undecided": [0.1, 0.1]},
                      "stopped": "timeout of 10 s"}, None, [
            "The proof that the network keeps its label 8 and its attention covers at most a tiny range around the "
            "unperturbed image.",
            f"In 10.00 to 20.01 % of the domain the network still predicts 8, but {DIFFER}.",
            "Up to 10.00 % of the domain is undecided.",
            "The run stopped early (timeout of 10 s).",
        ],
    ),
    "a single theta": (
        NOT_ROBUST | {"property": "cr", "area": {"CR": [0.5, 1.0], "MR": [0.0, 0.5]},
                      "nearest": {"CR": {"low": 0.5, "high": 0.7, "theta": [0.7]}}},
        KeptRange((0.0,), (0.5,), False), [
            "Up to brightness +0.5 the network keeps its label 8.", "At brightness = 0.7 the network no longer "
                "predicts 8.",
            "The violated share of the domain is undecided.", "Up to 50.00 % of the domain is undecided.",
        ],
    ),
    "undecided by a hair": ({"verdict": "undecided", "area": {"undecided": [1e-9, 1e-9]}}, None, [
        "The proof that the network keeps its label 8 and its attention covers at most a tiny range around the "
        "unperturbed image.",
        "No violation is proved anywhere.", "Up to 1e−7 % of the domain is undecided.",
    ]),
    "zero outside": (
        NOT_ROBUST | {"area": MIXED, "domain": {"names": ["brightness"], "low": [0.1], "high": [1.0]}}, None, [
            f"In 12.40 % of the domain the network still predicts 8, but {DIFFER}.",
            "In 4.00 % of the domain the network no longer predicts 8.",
        ],
    ),
    "two parameters, both directions": (
        NOT_ROBUST | {"property": "cr", "area": MIXED, "label_name": "bag",
                      "domain": {"names": ["brightness", "translation up [px]"], "low": [-1.0, 0.0],
                                 "high": [1.0, 3.0]}},
        KeptRange((-0.12345, 0.0), (0.12345, 0.9999), False), [
            "For every combination of brightness from −0.123 to +0.123 and translation up by up to 0.999 px the "
            "network keeps its label bag (class 8).", "In 4.00 % of the domain the network no longer predicts "
                "bag (class 8).",
        ],
    ),
    "downwards": (
        NOT_ROBUST | {"property": "cr", "area": MIXED,
                      "domain": {"names": ["brightness"], "low": [-1.0], "high": [0.0]}},
        KeptRange((-0.2999,), (0.0,), False), [
            "Down to brightness −0.299 the network keeps its label 8.",
            "In 4.00 % of the domain the network no longer predicts 8.",
        ],
    ),
    "both directions": (
        NOT_ROBUST | {"property": "cr", "area": MIXED,
                      "domain": {"names": ["brightness"], "low": [-1.0], "high": [1.0]}},
        KeptRange((-0.25,), (0.5,), False), [
            "From brightness −0.25 to +0.5 the network keeps its label 8.",
            "In 4.00 % of the domain the network no longer predicts 8.",
        ],
    ),
    "a range too small to name": (NOT_ROBUST | {"property": "cr", "area": MIXED}, KeptRange((0.0,), (1e-5,), False), [
        "The proof that the network keeps its label 8 covers at most a tiny range around the unperturbed image.",
        "In 4.00 % of the domain the network no longer predicts 8.",
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_in_sentences(name: str):
    changes, kept, expected = CASES[name]
    summary = made_summary(**changes)
    assert verdict_sentences(summary, range_sentences(summary, kept)) == expected


def test_the_small_print_names_what_the_verdict_leaves_out():
    close = made_summary(**NOT_ROBUST, area=MIXED | {"undecided": [3e-7, 3e-7]}, sliver_share=1.23e-9)
    assert small_print(close) == [
        "At most 0.00003 % of the domain is too close to a threshold to decide; it counts as undecided.",
        "On kinks, the borders between regions (at most 1.3e−7 % of the domain), the attention is undecided; "
        "ranges that "
        "keep the attention leave them out.",
    ]
    away = made_summary(domain={"names": ["brightness"], "low": [0.1], "high": [1.0]})
    assert small_print(away) == ["The domain does not contain the unperturbed image."]
    unmeasured = made_summary(property="cr", measures=["label"])
    assert small_print(unmeasured) == ["The attention was not measured."]
    assert undecided_share(made_summary(property="ar", area={"AR": [0.25, 0.5]})) == 0.25


SEARCHES = {
    "nothing found": ({}, ["no proof for the whole domain", "25.00 % of the domain; nothing is proved about the rest"]),
    "stopped": ({"stopped": "limit of 9 regions"}, ["no proof", "stopped early (limit of 9 regions)"]),
    "lost": ({"status": "Failed", "failures": 2, "undecided": {"classification": 1, "attention": None}},
             ["2 regions or linear programs got no answer", "1 label could not be decided"]),
    "violated": (
        {"verdict": "not robust", "sets": {"CR": 5, "MR": 3, "CB": 2, "AR": 0, "IR": 12, "AB": 0}},
        ["Everywhere on 3 and on part of 2 of the 12 visited regions the network no longer predicts 8.",
         f"Everywhere on 12 of the 12 visited regions {DIFFER}.", "nothing is proved about the rest"],
    ),
    "all visited": ({"verdict": "robust", "visited_share": 1.0}, ["Everywhere in the domain (brightness from 0 "
        "to +1)"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_speak_of_what_they_visited(name: str):
    changes, expected = SEARCHES[name]
    text = " ".join(verdict_sentences(made_search(**changes)))
    for part in expected:
        assert part in text
    assert name == "all visited" or "Everywhere in the domain" not in text


QUESTIONS = {
    "line": (["brightness:-0.2..0.5"], {}),
    "moving": (["brightness:-0.1..0.4", "translate:dx=1:-0.2..0.6"], {"delta": "40%"}),
    "refined": (["brightness:0..0.3", "patch:x=12,y=12,w=4,h=4"], {"method": "refine", "until": 0.3}),
}


@pytest.fixture(scope="module", params=QUESTIONS)
def result(request: pytest.FixtureRequest) -> Result:
    specs, options = QUESTIONS[request.param]
    return steadygaze.verify("M-FNN-100", "mnist:69990", specs, **options)


def claimed_box(sentence: str, result: Result) -> np.ndarray:
    """Ends (2, d) of the box that the first sentence claims, read from its words."""
    number = r"([+−]?[\d.]+)"
    ends = []
    for name in result.question.perturbed.domain.names:
        found = re.search(
            rf"{re.escape(name.partition(' [')[0])} (?:from |up to |by up to )?{number}(?: to {number})?", sentence
        )
        assert found is not None, sentence
        values = [float(text.replace("−", "-")) for text in found.groups() if text is not None]
        ends.append((0.0, *values) if len(values) == 1 else tuple(values))
    return np.array(ends).T


def test_what_the_sentence_claims_holds_at_sampled_thetas(result: Result):
    sentences = headline(result)
    low, high = claimed_box(sentences[0], result)
    assert (high - low).max() > 0.0 and " keeps its label 7 and its attention." in sentences[0]
    rng = np.random.default_rng(3)
    shares = np.concatenate([rng.random((60, len(low))), rng.integers(0, 2, (20, len(low)))])
    for theta in np.clip(low + shares * (high - low), low, high):
        point = result.at(theta)
        assert point.label == 7 and point.inconsistency <= result.answer.delta


def test_shares_in_the_sentences_are_those_of_samples(result: Result):
    """The share of the same label with other evidence, against thetas drawn evenly from the domain."""
    domain = result.question.perturbed.domain
    sentences = headline(result)
    text = next(sentence for sentence in sentences if "still predicts 7" in sentence)
    claimed = [
        float(number) / 100
        for number in re.findall(r"([\d.]+) %(?! of the original)", text.partition(" the network ")[0])
    ]
    thetas = domain.low + np.random.default_rng(0).random((600, domain.dimension)) * domain.widths
    points = [result.at(theta) for theta in thetas]
    share = np.mean([point.label == 7 and point.inconsistency > result.answer.delta for point in points])
    assert min(claimed) - 0.08 <= share <= max(claimed) + 0.08
