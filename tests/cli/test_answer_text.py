"""The words of an answer say no more than the bounds do."""

import io
from typing import Any

import pytest
from rich.console import Console

from steadygaze.cli.answer_text import enough_text, kept_text, nearest_text, verdict_text
from steadygaze.cli.printing import numbers_table
from steadygaze.results.summary import Summary
from support.stand_ins.made_up_summaries import made_search, made_summary


def summary(**changes: Any) -> Summary:
    """A map of two parameters with δ = 3, where an image is robust for both properties."""
    given = {
        "delta": {"text": "3", "value": 3.0, "map_size": 12.0},
        "ar_at_delta": {"10%": [0.5, 0.5], "25%": [1.0, 1.0], "all": 2.5},
        "domain": {"names": ["brightness", "translation right [px]"], "low": [0.0, 0.0], "high": [1.0, 1.0]},
    }
    return made_summary(**given | changes)


def test_numbers_keep_their_unit_beside_them(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    table = numbers_table("share of domain", "CR: label kept", "MR: label changed", "all")
    table.add_row("IR: mass on the object < τ", "99.99 to 100 %", "0 %", "99.99 to 100 %")
    console = Console(width=80, file=io.StringIO())
    console.print(table)
    assert console.file.getvalue().count("99.99 to 100 %") == 2


@pytest.mark.parametrize("width", [58, 70, 80, 100])
def test_numbers_are_never_cut(monkeypatch, width):
    """Long names of rows break first, then shares between their words."""
    monkeypatch.setenv("COLUMNS", str(width))
    table = numbers_table("camera", "verdict", "CR", "AR", "CR&AR")
    cells = ["undecided", "22.65 to 26.96 %", "0 to 100 %", "23.16 to 23.27 %"]
    table.add_row("aimed-to-the-left-and-brighter", *cells)
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    for word in {word for cell in cells for word in cell.split()} | {"CR&AR", "camera"}:
        assert any(word in line.split() for line in lines), word
    assert "".join(line.split()[0] for line in lines[3:-1] if line[2:3].strip()) == "aimed-to-the-left-and-brighter"


def test_a_verdict_reads_as_in_the_report_without_a_range():
    """`tests/report/test_page_sentences.py` has the sentences."""
    found = summary(verdict="not robust", area={"MR": [0.25, 0.25], "IR": [0.0, 0.1], "CR&IR": [0.0, 0.1]})
    assert verdict_text(found) == "In 25.00 % of the domain the network no longer predicts 8."


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({}, "To decide the rest, use --method map or bfs."),
        ({"method": "bfs"}, "To decide the rest, use --method map."),
        (
            {"stopped": "timeout of 1 s"},
            "To decide the rest, raise --timeout, --max-regions or --memory, or use smaller ranges.",
        ),
        ({"verdict": "robust"}, ""),
    ],
)
def test_a_search_that_proves_nothing_says_what_to_do(changes, advice):
    text = verdict_text(made_search(**changes))
    assert text.endswith(advice) and ("To decide" in text) == bool(advice)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (None, None, "none in the domain"),
        (0.25, None, "none proved; none below distance 0.25"),
        (0.0, None, "none proved so far"),
        (0.5, 0.5 + 1e-9, "brightness = 0.1, translation right = 2 px (distance 0.5)"),
        (0.25, 0.5, "brightness = 0.1, translation right = 2 px (distance 0.5; none below distance 0.25)"),
        (0.0, 0.5, "brightness = 0.1, translation right = 2 px (distance 0.5; a nearer one may exist)"),
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
    where = "brightness = 0.25, translation right = 1 px"
    assert verdict_text(found).startswith(f"At {where} the network no longer predicts 8. The violated share")


def test_other_thresholds():
    assert kept_text(summary()) == "at 10 %: 50.00 %; at 25 %: 100 % (of the original maps' size, 12)"
    assert enough_text(summary()) == "from δ = 2.5 (20.84 % of the original maps' size), kinks aside"
    assert enough_text(summary(ar_at_delta={"all": None})) == "unknown: the map is partial"
    assert enough_text(summary(delta={"text": "3", "value": 3.0, "map_size": 0.0})) == "from δ = 2.5, kinks aside"
