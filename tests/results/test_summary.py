"""The answer as plain data: complete, honest about partial maps, free of times and paths."""

import json
import math

import numpy as np
import pytest

from steadygaze.results.arrays import SCHEMA_VERSION
from support.networks.stored_questions import ALL

AREAS = ["CR", "MR", "AR", "IR", "CR&AR", "CR&IR", "MR&AR", "MR&IR", "undecided"]


def texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.items() for text in texts(part)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("name", ALL)
def test_summary_is_plain_data_without_paths_or_times(results, name):
    summary = results[name].summary()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["schema_version"] == SCHEMA_VERSION == 3
    assert list(summary["area"]) == AREAS
    assert not any(text.startswith(("/", "~")) or "zoo" in text for text in texts(summary))
    assert not any("second" in text for text in texts(summary))
    for low, high in summary["area"].values():
        assert 0.0 <= low <= high <= 1.0


def test_summary_repeats_the_answer(results):
    result = results["keep"]
    summary = result.summary()
    assert summary["verdict"] == "not robust"
    assert (summary["label"], summary["label_name"], summary["regions"]) == (7, "7", len(result.regions))
    assert summary["area"]["MR"] == list(result.areas["MR"])
    assert summary["delta"] == {"text": "3", "value": 3.0, "map_size": result.tiling.answers.size}
    assert list(summary["ar_at_delta"]) == ["10%", "25%", "50%", "100%", "all"]
    assert result.with_delta(summary["ar_at_delta"]["all"]).areas["AR"] == (1.0, 1.0)
    nearest = summary["nearest"]["CR"]
    assert nearest["low"] <= nearest["high"]
    assert result.at(nearest["theta"]).label != 7
    assert summary["sets"]["CR"] + summary["sets"]["MR"] + summary["sets"]["CB"] == summary["regions"]
    assert summary["domain"]["specs"] == ["brightness:0.9..1", "patch:x=12,y=12,w=4,h=4"]
    assert [found["kind"] for found in summary["witnesses"]] == ["label", "attention", "right label, other evidence"]
    assert "On kinks, the borders between regions, the attention is undecided" in summary["guarantee"]
    assert "run by onnxruntime in float32, gave the same logits on 19 images" in summary["guarantee"]


def test_no_violation_is_null(results):
    summary = results["robust"].summary()
    assert summary["verdict"] == "robust"
    assert summary["nearest"]["AR"] == {"low": None, "high": None, "theta": None}
    assert summary["witnesses"] == []
    assert "Nothing is undecided." in summary["guarantee"]


def test_partial_map_promises_only_what_was_reached(results):
    result = results["partial"]
    summary = result.summary()
    assert summary["complete"] is False
    assert summary["stopped"] == "limit of 1 region"
    assert summary["ar_at_delta"]["all"] is None
    # A violation may lie where nothing was mapped, also beside zero.
    assert [summary["nearest"][name]["low"] for name in ("CR", "AR")] == [0.0, 0.0]
    reached = float(result.tiling.answers.regions.polytopes.volumes.sum())
    claimed = float(summary["guarantee"].split("%")[0].removeprefix("Partial: ")) / 100
    assert 0.0 < claimed <= reached < claimed + 1e-4
    assert summary["area"]["undecided"][0] >= 1.0 - reached - 1e-9


def test_map_that_was_stopped_at_once_promises_nothing(results):
    summary = results["empty"].summary()
    assert (summary["verdict"], summary["regions"], summary["stopped"]) == ("undecided", 0, "interrupted")
    assert summary["area"]["CR"] == [0.0, 1.0]
    assert summary["area"]["undecided"] == [1.0, 1.0]
    assert summary["guarantee"].startswith("Partial: 0 % of the domain was mapped")


def test_chosen_options_are_told(results):
    assert results["moving l1"].summary()["attention"] == {
        "filter": "abs+mean", "distance": "l1", "classes": [3, 7], "property": "distance", "explain": "gradient",
        "threshold": "0.7", "mask": None,
    }  # fmt: skip
    assert results["line"].summary()["attention"]["classes"] == "all"
    assert results["line"].summary()["property"] == "ar"


def test_another_delta_changes_only_what_depends_on_it(results):
    summary, other = results["keep"].summary(), results["keep"].with_delta("100%").summary()
    assert other["delta"]["value"] == pytest.approx(summary["delta"]["map_size"])
    same = ("label", "regions", "sliver_share", "tiling_error", "domain", "model", "image")
    assert all(summary[key] == other[key] for key in same)
    for name in ("10%", "25%", "50%", "100%"):  # bounds of the same share, sharper near the own δ
        assert summary["ar_at_delta"][name] == pytest.approx(other["ar_at_delta"][name], abs=1e-6)
    assert other["ar_at_delta"]["100%"] == pytest.approx(other["area"]["AR"], rel=1e-14)
    assert other["area"]["AR"] != summary["area"]["AR"]
    assert other["area"]["CR"] == pytest.approx(summary["area"]["CR"], abs=1e-12)


def test_shares_in_the_guarantee_are_rounded_up(results):
    guarantee = results["keep"].summary()["guarantee"]
    kinks = float(guarantee.split("is undecided: at most ")[1].split(" %")[0].replace("−", "-")) / 100.0
    assert kinks >= results["keep"].sliver_share
    assert math.isfinite(kinks) and np.isclose(kinks, results["keep"].sliver_share, rtol=0.1)
