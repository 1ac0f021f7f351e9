"""The benchmarks of the searches: what they count and compare, and that a planted wrong answer fails them.

The search of the package is replaced by one that takes its regions from the full map: what it says is known to be true.
"""

import dataclasses
import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import paper_problems
import search_check
from as_printed.question import forward
from one_map import printed_problem
from paper_problems import Asked, make_problem, problems_of, restricted, sample, specs
from steadygaze import api
from steadygaze.errors import OptionError
from steadygaze.labels import Property, Verdict
from timing import commit

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ASKED = Asked("M-FNN-100", "BP", "mnist:69990")


def load(name: str) -> ModuleType:
    """A benchmark by its path; the environment that it sets is put back."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(os.environ):
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def benchmark_gbs():
    return load("gbs")


@pytest.fixture(scope="module")
def every_search():
    return load("every_search")


@pytest.fixture(scope="module")
def one_search():
    return load("one_search")


@pytest.fixture(scope="module")
def mapped():
    """A map in which all six labels occur."""
    specs = ("translate:dx=1", "brightness:0..0.8")
    return api.verify("M-FNN-100", "mnist:69992", specs, delta=3.0, threads=1)


def truthful(result, wanted="both", chosen=None):
    """A search that visits regions of a map (by default every other one) and says the truth about them."""
    answer, found = result.answer, result.answers.regions
    chosen = range(0, len(found), 2) if chosen is None else chosen
    visited = [_visit(result, index) for index in chosen]
    names = {"cr": ("MR", "CB"), "ar": ("IR", "AB"), "both": ("MR", "CB", "IR", "AB")}[wanted]
    is_violated = any(name in (each.classification, each.attention) for each in visited for name in names)
    both = [label for each in visited for label in (each.classification, each.attention)]
    return SimpleNamespace(
        question=dataclasses.replace(result.question, property=Property(wanted)),
        status=SimpleNamespace(value="NotRobust" if is_violated else "Robust"),
        verdict=Verdict.NOT_ROBUST if is_violated else Verdict.UNDECIDED,
        visited=visited,
        sets={name: both.count(name) for name in answer.sets},
        visited_share=sum(each.region.volume for each in visited),
        face_checks=7,
        lps=3,
        failures=[],
    )


def _visit(result, index):
    answer, polygons = result.answer, result.answers.regions.polytopes
    points = polygons[index]
    forms = result.answers.regions.logits[index]
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
    rare = [each for each in found.visited if each.classification in ("MR", "CB") or each.attention in ("AR", "AB")]
    assert contradictions(found, mapped) == []
    few = truthful(mapped, wanted, [int.from_bytes(each.region.key, "big") for each in rare])
    assert contradictions(few, mapped, len(rare)) == []


def test_all_of_a_map_is_not_contradicted(mapped):
    everything = truthful(mapped, chosen=range(len(mapped.answers.regions)))
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
    for each in found.visited:
        change(each)
    assert any(words in wrong for wrong in contradictions(found, mapped))


def test_one_wrong_label_among_many_is_found_in_the_counts(mapped):
    found = truthful(mapped)
    found.visited[1].attention = "IR" if found.visited[1].attention == "AR" else "AR"
    assert len(search_check.own_contradictions(found)) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: found.visited.append(found.visited[0]), "visited twice"),
        (lambda found: setattr(found, "visited_share", 1.0), "visited share 1"),
        (lambda found: setattr(found, "verdict", Verdict.ROBUST), "verdict robust"),
        (lambda found: setattr(found.status, "value", "Robust" if found.violates else "NotRobust"), "status"),
    ],
)
def test_what_a_search_says_about_itself_is_checked(mapped, change, words):
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


def test_names_of_the_problems():
    chosen = sample()
    assert len({str(asked) for asked in chosen}) == 12
    assert {(asked.model[2:], asked.domain) for asked in chosen} == {
        (size, domain) for size in paper_problems.SIZES for domain in paper_problems.DOMAINS
    }
    assert {asked.model[0] for asked in chosen} == {"M", "F"}
    assert all(asked.image.startswith("mnist:" if asked.model[0] == "M" else "fashion:") for asked in chosen)
    thirty = problems_of("F-FNN-100")
    assert len(set(thirty)) == 30
    assert len(restricted(thirty, ["BP"])) == 10
    assert restricted(thirty, ["TP fashion:69991", "TB fashion:69991"]) == [thirty[4], thirty[5]]
    assert specs("TP") == ("translate:dy=1", "patch:x=12,y=12,w=4,h=4")
    assert specs("TB", "dx=1") == ("translate:dx=1", "brightness")


@pytest.mark.parametrize("shift", ["dx=1", "dy=1"])
def test_printed_search_moves_the_map_in_the_same_direction(shift):
    question = make_problem(Asked("M-FNN-100", "TB", "mnist:69990"), "ar", shift=shift)
    printed = printed_problem(question)
    theta = np.array([0.3, 0.2])
    logits = question.model.graph.logits(question.perturbed.image(theta)[None])[0]
    np.testing.assert_allclose(forward(printed.layers, theta)[1], logits, rtol=1e-9, atol=1e-9)
    maps = printed.expected.reshape(-1, *question.perturbed.x0.shape)
    offset, slope = question.perturbed.transport(maps, question.perturbed.cells[0])
    source = printed.translation.source
    moved = np.where(source >= 0, printed.expected[:, source], 0.0).reshape(maps.shape)
    np.testing.assert_allclose(maps + offset + slope, moved, atol=1e-12)


def searching(change=None):
    """A stand-in for `run_search`; the map of each problem is made once."""
    maps = {}

    def run(question, method, *, timeout):
        assert method in ("gbs", "boundary")
        assert timeout > 0.0
        name = (question.image_name, tuple(spec.spec for spec in question.perturbed.perturbations))
        maps[name] = maps.get(name) or api.solve(question, threads=1)
        part = len(maps[name].answers.regions) // (2 if method == "gbs" else 4)
        found = truthful(maps[name], question.property.value, range(part))
        if change:
            change(found)
        return found

    return run


def run_gbs(module, folder, *arguments, change=None):
    with mock.patch.object(module, "run_search", searching(change)):
        out = ["--out", str(folder / "gbs.json"), "--seconds", "0", "--repetitions", "1", "--samples", "20"]
        return module.main([*arguments, *out])


def test_gbs_compares_with_the_printed_search(benchmark_gbs, tmp_path, capsys):
    assert run_gbs(benchmark_gbs, tmp_path, "--only", str(ASKED), "--properties", "cr", "both") == 0
    content = json.loads((tmp_path / "gbs.json").read_text())
    assert [row["property"] for row in content["rows"]] == ["cr", "both"]
    row = content["rows"][0]
    assert row["wrong"] == []
    assert row["printed"]["popped"] == 1
    assert row["visited"] == row["regions"] // 2
    own, printed = row["visited"] / row["seconds"]["median"], 1 / row["printed"]["seconds"]
    assert row["times_printed"] == pytest.approx(own / printed)
    assert [found["property"] for found in content["summary"]] == ["cr", "both", "all"]
    assert "times printed" in capsys.readouterr().out
    with mock.patch.object(benchmark_gbs, "measure", side_effect=AssertionError("measured again")):
        assert run_gbs(benchmark_gbs, tmp_path, "--only", str(ASKED), "--properties", "cr", "--resume") == 0
    assert len(json.loads((tmp_path / "gbs.json").read_text())["rows"]) == 2


def turn_around(found):
    each = found.visited[0]
    each.classification = "MR" if each.classification == "CR" else "CR"


def test_gbs_fails_on_a_planted_wrong_answer(benchmark_gbs, tmp_path, capsys):
    assert run_gbs(benchmark_gbs, tmp_path, "--only", str(ASKED), "--properties", "cr", change=turn_around) == 1
    printed = capsys.readouterr()
    assert "WRONG" in printed.out
    assert f"WRONG: {ASKED} cr:" in printed.err


def test_gbs_names_the_problems_that_exist(benchmark_gbs, tmp_path, capsys):
    assert run_gbs(benchmark_gbs, tmp_path, "--only", "M-FNN-9") == 2
    assert "M-FNN-100 BP mnist:69990" in capsys.readouterr().err


def test_gbs_summarises_the_ratios(benchmark_gbs):
    rows = [{"property": name, "times_printed": ratio} for name, ratio in (("cr", 500), ("cr", 3000), ("ar", 100))]
    found = {part["property"]: part for part in benchmark_gbs.summarised([*rows, {"property": "ar"}])}
    assert found["cr"]["times_printed"].median == 1750
    assert found["cr"]["is_met"]
    assert not found["ar"]["is_met"]
    assert (found["all"]["times_printed"].median, found["all"]["times_printed"].low) == (500, 100)


def measured(module, change=None, searches=("gbs:cr", "boundary:ar"), *, maps=True):
    with mock.patch.object(module, "run_search", searching(change)):
        return module.measure_network(
            "M-FNN-100", searches, ["BP mnist:69990"], timeout=9.0, samples=15, shift="dx=1", maps=maps
        )


def test_one_search_measures_and_checks(one_search, every_search):
    network = measured(one_search)
    first, second = network["rows"]
    assert [first["search"], second["search"]] == ["gbs:cr", "boundary:ar"]
    assert first["wrong"] == second["wrong"] == []
    assert first["visited"] == first["regions"] // 2 > second["visited"] == second["regions"] // 4
    assert (first["face_checks"], first["lps"], first["failures"]) == (7, 3, 0)
    assert first["seconds"] > 0.0
    assert network["peak_mib"] > 10.0
    groups = every_search.grouped(network)
    assert [group["asked"] for group in groups] == [[str(ASKED)]] * 2
    assert every_search.shown(groups[0])["of the map"] == f"{100 * first['visited'] / first['regions']:.1f} %"


def planted_attention(found):
    for each in found.visited:
        each.attention = "IR" if each.attention == "AR" else "AR"
    found.sets["AR"], found.sets["IR"] = found.sets["IR"], found.sets["AR"]


def out_of_time(found):
    found.status = SimpleNamespace(value="Timeout")


@pytest.mark.parametrize(
    ("change", "words"), [(planted_attention, "in the map"), (out_of_time, "did not end: timeout")]
)
def test_one_search_finds_a_planted_wrong_answer(one_search, every_search, change, words):
    network = measured(one_search, change, ["gbs:ar"])
    assert any(words in wrong for wrong in network["rows"][0]["wrong"])
    assert any(wrong.startswith(str(ASKED)) for wrong in every_search.grouped(network)[0]["wrong"])


def test_one_search_reports_errors_of_the_package(one_search):
    def refuse(question, method, *, timeout):
        raise OptionError(f"{method} does not know this property")

    with mock.patch.object(one_search, "run_search", refuse):
        network = one_search.measure_network(
            "M-FNN-100", ["boundary:both"], [str(ASKED)], timeout=9.0, samples=5, shift="dx=1", maps=True
        )
    assert network["rows"][0]["wrong"] == ["boundary does not know this property"]


def row_of(asked, search, visited, wrong=(), seconds=1.0, status="robust"):
    return {
        "asked": asked, "search": search, "status": status, "seconds": seconds, "visited": visited, "regions": 100,
        "visited_share": 0.5, "face_checks": 1, "lps": 0, "failures": 0, "wrong": list(wrong),
    }  # fmt: skip


def run_every(module, folder, *arguments, wrong=(), seconds=1.0, peak=300.0):
    asked = []

    def run(model, searches, options):
        asked.append((model, list(searches)))
        rows = [row_of(f"{model} BP {n}", search, 10 * (1 + n), wrong, seconds) for search in searches for n in (0, 1)]
        return {"model": model, "peak_mib": peak, "rows": rows}

    with mock.patch.object(module, "run_network", run):
        code = module.main([*arguments, "--out", str(folder / "every_search.json")])
    return code, asked


def test_every_search_tables_and_resumes(every_search, tmp_path, capsys):
    code, asked = run_every(every_search, tmp_path, "--sizes", "FNN-100", "--cnn-m")
    assert code == 0
    assert asked == [("M-FNN-100", [*every_search.SEARCHES]), ("F-FNN-100", [*every_search.SEARCHES]),
                     ("M-CNN-M", ["gbs:cr"])]  # fmt: skip
    content = json.loads((tmp_path / "every_search.json").read_text())
    assert content["commit"] == commit()
    assert len(content["groups"]) == 11
    assert content["groups"][-1]["is_met"] == {"seconds": True, "peak_mib": True}
    assert [row["property"] for row in content["boundary_against_gbs"]] == ["cr", "ar"]
    assert "boundary/gbs" in capsys.readouterr().out
    code, asked = run_every(every_search, tmp_path, "--sizes", "FNN-100", "FNN-200", "--resume")
    assert code == 0
    assert [model for model, _ in asked] == ["M-FNN-200", "F-FNN-200"]
    _, asked = run_every(every_search, tmp_path, "--sizes", "FNN-100", "--resume", "--timeout", "5")
    assert len(asked) == 2


def test_every_search_fails_on_a_planted_wrong_answer(every_search, tmp_path, capsys):
    assert run_every(every_search, tmp_path, "--sizes", "FNN-100", wrong=["CR, in the map MR"])[0] == 1
    printed = capsys.readouterr()
    assert "WRONG" in printed.out
    assert "WRONG: gbs:cr M-FNN-100 BP 0: CR, in the map MR" in printed.err


def test_every_search_marks_missed_targets_of_the_large_network(every_search, tmp_path, capsys):
    assert run_every(every_search, tmp_path, "--sizes", "--cnn-m", seconds=61.0, peak=5000.0)[0] == 0
    content = json.loads((tmp_path / "every_search.json").read_text())
    assert content["groups"][0]["is_met"] == {"seconds": False, "peak_mib": False}
    assert "5000!" in capsys.readouterr().out


def test_every_search_fails_when_a_process_does(every_search, tmp_path, capsys):
    failed = mock.Mock(returncode=-9)
    with mock.patch.object(every_search.subprocess, "run", return_value=failed):
        network = every_search.run_network("M-CNN-M", ["gbs:cr"], every_search.parsed([]))
    (group,) = every_search.grouped(network)
    assert "ended with code -9" in group["wrong"][0]
    assert every_search.shown(group)["ended"] == "0 of 1"
    with mock.patch.object(every_search, "run_network", return_value=network):
        assert every_search.main(["--sizes", "--cnn-m", "--out", str(tmp_path / "out.json")]) == 1
    assert "-9" in capsys.readouterr().err


def test_every_search_compares_visits_problem_by_problem(every_search):
    groups = [
        {"search": "gbs:ar", "asked": ["a", "b", "c"], "visited": [10, 100, None]},
        {"search": "boundary:ar", "asked": ["b", "a", "c"], "visited": [10, 10, 5]},
        {"search": "boundary:cr", "asked": ["a"], "visited": [3]},
    ]
    (row,) = every_search.against_gbs(groups)
    assert (row["property"], row["problems"]) == ("ar", 2)
    assert row["boundary_per_gbs"].median == pytest.approx(0.55)
    assert (row["gbs"].median, row["boundary"].median) == (55, 10)
