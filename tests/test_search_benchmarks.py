"""The benchmarks of the searches: a planted wrong answer fails them, a true one does not.

The stand-in for a search takes its regions from the full map, so its answers are true until a test changes them.
"""

import dataclasses
import json
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import every_search
import gbs
import one_search
import search_check
from paper_problems import Asked
from steadygaze import api
from steadygaze.engines import run
from steadygaze.errors import OptionError
from steadygaze.labels import Property, Verdict

ASKED = Asked("M-FNN-100", "BP", "mnist:69990")


@pytest.fixture(scope="module")
def mapped():
    """A map in which all six labels occur."""
    specs = ("translate:dx=1", "brightness:0..0.8")
    return api.verify("M-FNN-100", "mnist:69992", specs, delta=3.0, threads=1)


def truthful(result, wanted="both", chosen=None):
    """A search that visits regions of a map (by default every other one) and says the truth about them."""
    answer, found = result.answer, result.tiling.answers.regions
    chosen = range(0, len(found), 2) if chosen is None else chosen
    visited = [_visit(result, index) for index in chosen]
    names = {"cr": ("MR", "CB"), "ar": ("IR", "AB"), "both": ("MR", "CB", "IR", "AB")}[wanted]
    is_violated = any(name in (each.classification, each.attention) for each in visited for name in names)
    both = [label for each in visited for label in (each.classification, each.attention)]
    return SimpleNamespace(
        question=dataclasses.replace(result.question, property=Property(wanted)),
        status=SimpleNamespace(value="NotRobust" if is_violated else "Robust"),
        verdict=Verdict.NOT_ROBUST if is_violated else Verdict.UNDECIDED,
        sets={name: both.count(name) for name in answer.sets},
        coverage=sum(each.region.volume for each in visited),
        tiling=SimpleNamespace(visited=visited, face_checks=7, lps=3, failures=[]),
    )


def _visit(result, index):
    answer, polygons = result.answer, result.tiling.answers.regions.polytopes
    points = polygons[index]
    forms = result.tiling.answers.regions.logits[index]
    leads = np.hstack([points, np.ones((len(points), 1))]) @ (forms[:, [result.label]] - forms)
    leads = np.delete(leads, result.label, axis=1)
    region = SimpleNamespace(
        key=int(index).to_bytes(4, "big"), inside=points.mean(axis=0), vertices=points, volume=polygons.volumes[index]
    )
    return SimpleNamespace(
        region=region,
        classification=str(answer.classifications[index]),
        attention=str(answer.attentions[index]),
        margin=(leads.min(), leads.max(axis=0).min()),  # the margin is concave: not all of it is seen from the corners
        inconsistency=tuple(answer.labels.reach[index]),
    )


def contradictions(found, result, samples=30):
    kept = search_check.digest(found, samples)
    return [
        *search_check.own_contradictions(found),
        *search_check.plain_contradictions(kept),
        *search_check.map_contradictions(kept, result),
    ]


@pytest.mark.parametrize("wanted", ["cr", "ar", "both"])
def test_a_truthful_search_is_not_contradicted(mapped, wanted):
    assert min(mapped.answer.sets.values()) > 0
    found = truthful(mapped, wanted)
    rare = [
        each for each in found.tiling.visited if each.classification in ("MR", "CB") or each.attention in ("AR", "AB")
    ]
    assert contradictions(found, mapped) == []
    few = truthful(mapped, wanted, [int.from_bytes(each.region.key, "big") for each in rare])
    assert contradictions(few, mapped, len(rare)) == []


def test_all_of_a_map_is_not_contradicted(mapped):
    everything = truthful(mapped, chosen=range(len(mapped.tiling.answers.regions)))
    kept = search_check.digest(everything, 40)
    assert len(kept.sampled) == 40
    assert kept.visited_share == pytest.approx(1.0)
    assert contradictions(everything, mapped, 40) == []


PLANTED = {
    "label": (lambda each: setattr(each, "classification", "MR" if each.classification == "CR" else "CR"), "margin is"),
    "attention": (lambda each: setattr(each, "attention", "IR" if each.attention == "AR" else "AR"), "in the map"),
    "margin": (lambda each: setattr(each, "margin", tuple(np.add(each.margin, 100.0))), "margin in"),
    "ai": (lambda each: setattr(each, "inconsistency", tuple(np.add(each.inconsistency, 1.0))), "ai in"),
    "volume": (lambda each: setattr(each.region, "volume", 2.0 * each.region.volume), "volume"),
    "place": (lambda each: setattr(each.region, "inside", np.array([0.5, 0.5])), "one region of the map"),
    "undecided": (lambda each: setattr(each, "attention", "undecided"), "left open"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_contradiction_is_found(mapped, planted):
    change, words = PLANTED[planted]
    found = truthful(mapped)
    for each in found.tiling.visited:
        change(each)
    assert any(words in wrong for wrong in contradictions(found, mapped))


def test_one_wrong_label_among_many_is_found_in_the_counts(mapped):
    found = truthful(mapped)
    found.tiling.visited[1].attention = "IR" if found.tiling.visited[1].attention == "AR" else "AR"
    assert len(search_check.own_contradictions(found)) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: found.tiling.visited.append(found.tiling.visited[0]), "visited twice"),
        (lambda found: setattr(found, "coverage", 1.0), "visited share 1"),
        (lambda found: setattr(found, "verdict", Verdict.ROBUST), "verdict robust"),
        (lambda found: setattr(found.status, "value", "Robust" if found.violates else "NotRobust"), "status"),
    ],
)
def test_claims_of_a_search_about_itself_are_checked(mapped, change, words):
    found = truthful(mapped)
    found.violates = found.status.value == "NotRobust"
    change(found)
    assert any(words in wrong for wrong in search_check.own_contradictions(found))


def test_a_robust_part_is_no_proof_and_no_violation(mapped):
    kept = [index for index, name in enumerate(mapped.answer.classifications) if name == "CR"][:5]
    found = truthful(mapped, "cr", kept)
    assert search_check.status_word(found.status) == "robust"
    found.verdict = Verdict.NOT_ROBUST
    assert search_check.own_contradictions(found) == ["verdict not robust, but no visited region violates the property"]


def searching(change=None):
    """A stand-in for `run_search`; the map of each problem is made once."""
    maps = {}

    def visit(question, method, *, timeout):
        assert method in ("gbs", "boundary")
        assert timeout > 0.0
        name = (question.image_name, tuple(spec.spec for spec in question.perturbed.perturbations))
        maps[name] = maps.get(name) or run(question, "map", threads=1)
        part = len(maps[name].tiling.answers.regions) // (2 if method == "gbs" else 4)
        found = truthful(maps[name], question.property.value, range(part))
        if change:
            change(found)
        return found

    return visit


def run_gbs(folder, *properties):
    out = ["--out", str(folder / "gbs.json"), "--seconds", "0", "--repetitions", "1", "--samples", "20"]
    return gbs.main(["--only", str(ASKED), "--properties", *properties, *out])


def test_gbs_compares_with_the_printed_search(tmp_path):
    assert run_gbs(tmp_path, "cr", "both") == 0
    content = json.loads((tmp_path / "gbs.json").read_text())
    assert [row["property"] for row in content["rows"]] == ["cr", "both"]
    row = content["rows"][0]
    assert row["wrong"] == []
    assert row["printed"]["popped"] == 1
    assert 0 < row["visited"] < row["regions"]
    own, printed = row["visited"] / row["seconds"]["median"], 1 / row["printed"]["seconds"]
    assert row["times_printed"] == pytest.approx(own / printed)


def turn_around(found):
    each = found.tiling.visited[0]
    each.classification = "MR" if each.classification == "CR" else "CR"


def test_gbs_fails_on_a_planted_wrong_answer(tmp_path, capsys):
    with mock.patch.object(gbs, "run_search", searching(turn_around)):
        assert run_gbs(tmp_path, "cr") == 1
    assert f"WRONG: {ASKED} cr:" in capsys.readouterr().err


def measured(*searches):
    return one_search.measure_network(
        "M-FNN-100", searches, ["BP mnist:69990"], timeout=60.0, samples=15, shift="dx=1", maps=True
    )


def test_one_search_measures_and_checks():
    network = measured("gbs:cr", "boundary:ar")
    first, second = network["rows"]
    assert [first["search"], second["search"]] == ["gbs:cr", "boundary:ar"]
    assert first["wrong"] == second["wrong"] == []
    assert 0 < first["visited"] < first["regions"] == second["regions"] > second["visited"] > 0
    assert first["failures"] == second["failures"] == 0
    groups = every_search.grouped(network)
    assert [group["asked"] for group in groups] == [[str(ASKED)]] * 2


def planted_attention(found):
    for each in found.tiling.visited:
        each.attention = "IR" if each.attention == "AR" else "AR"
    found.sets["AR"], found.sets["IR"] = found.sets["IR"], found.sets["AR"]


def out_of_time(found):
    found.status = SimpleNamespace(value="Timeout")


@pytest.mark.parametrize(
    ("change", "words"), [(planted_attention, "in the map"), (out_of_time, "did not end: timeout")]
)
def test_one_search_finds_a_planted_wrong_answer(change, words):
    with mock.patch.object(one_search, "run_search", searching(change)):
        network = measured("gbs:ar")
    assert any(words in wrong for wrong in network["rows"][0]["wrong"])
    assert any(wrong.startswith(str(ASKED)) for wrong in every_search.grouped(network)[0]["wrong"])


def test_one_search_reports_errors_of_the_package():
    def refuse(question, method, *, timeout):
        raise OptionError(f"{method} does not know this property")

    with mock.patch.object(one_search, "run_search", refuse):
        network = measured("boundary:both")
    assert network["rows"][0]["wrong"] == ["boundary does not know this property"]


def test_every_search_fails_when_a_process_does(tmp_path, capsys):
    failed = mock.Mock(returncode=-9)
    with mock.patch.object(every_search.subprocess, "run", return_value=failed):
        network = every_search.run_network("M-CNN-M", ["gbs:cr"], every_search.parsed([]))
    (group,) = every_search.grouped(network)
    assert "ended with code -9" in group["wrong"][0]
    assert every_search.shown(group)["ended"] == "0 of 1"
    with mock.patch.object(every_search, "run_network", return_value=network):
        assert every_search.main(["--sizes", "--cnn-m", "--out", str(tmp_path / "out.json")]) == 1
    assert "-9" in capsys.readouterr().err
