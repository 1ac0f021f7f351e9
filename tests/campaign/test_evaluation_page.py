"""docs/make_evaluation.py: the page depends only on a campaign and on the paper's table."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steadygaze.campaign import stored_campaign as stores
from steadygaze.campaign.stored_campaign import Task
from support.stand_ins.made_up_campaigns import made_up, shares, visited

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_evaluation", DOCS / "make_evaluation.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(task: Task) -> dict[str, Any]:
    if task.method == "map":
        return shares(0.9, 0.25) | {"seconds": 1.0}
    if task.method == "bfs" and task.combination == "P":
        return {"status": "Timeout", "reason": "time limit of 60 s", "seconds": 60.0}
    return visited(9)


def test_the_papers_table_is_whole():
    paper = json.loads((DOCS / "paper_statuses.json").read_text(encoding="utf-8"))
    assert len(paper["rows"]) == 20 and all(sum(row[2:]) == paper["problems"] == 60 for row in paper["rows"])
    # What the paper says of it: 25 of 60 bfs runs on the smallest network time out, CNN-M fails 56 of 60 times.
    assert ["bfs", 100, 13, 22, 25, 0] in paper["rows"]
    assert [row[0] for row in paper["rows"] if row[5] == 56 and row[1] == 14824] == ["gbs-CR", "gbs-AR", "gbs-CRAR"]


def test_both_tables_stand_beside_each_other(maker: ModuleType, tmp_path: Path):
    store = made_up(tmp_path, answer)
    page = maker.make_page(store, machine="two cores of something")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    assert ["bfs", "100", "0", "2", "2", "0", "30", "60", "13", "22", "25", "0"] in rows
    assert ["map", "200", "0", "4", "0", "0", "1", "1", "", "", "", ""] in rows
    assert ["gbs-AR", "800", "", "", "", "", "", "", "28", "3", "28", "1"] in rows
    # gbs-CR and gbs-AR on 100 and 200 neurons, bfs on 100.
    assert "2 of 20 problems ended as Timeout or Failed here, and 50 of 300 in the paper." in page
    assert "two cores of something" in page and "60 s and 4 GiB" in page and "Timeout, time limit of 60 s" in page
    assert "gbs-CR on 14,824 neurons" in page and "In 8 of 8 problems a part of the domain" in page
    assert str(store.head.commit) in page


def test_a_campaign_that_has_not_ended_is_refused(
    maker: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    made_up(tmp_path, lambda task: None if task.method == "bfs" else answer(task))
    assert maker.main([str(tmp_path / "out"), "--out", str(tmp_path / "page.md")]) == 2
    assert capsys.readouterr().err == (
        "make_evaluation: 4 problems have not ended; run the campaign to its end first\n"
    )
    assert maker.main([str(tmp_path / "none"), "--out", str(tmp_path / "page.md")]) == 2
    assert not (tmp_path / "page.md").exists()


def test_pictures_are_beside_the_page(maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from matplotlib.figure import Figure
    from pyarrow import parquet

    from steadygaze.campaign import figures

    monkeypatch.setattr(figures, "_draw_example", lambda *_: Figure())
    monkeypatch.setattr(stores, "commit", lambda: "0123456")
    store = made_up(tmp_path, answer)
    assert maker.main([str(tmp_path / "out"), "--out", str(tmp_path / "page.md")]) == 0
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    places = [part.partition(")")[0] for part in page.split("](")[1:] if part.startswith("images/")]
    assert len(places) == 7 and all((tmp_path / place).stat().st_size < 200_000 for place in places)
    assert parquet.read_table(tmp_path / "page.parquet").num_rows == len(store.plan.tasks)


def test_a_campaign_of_no_commit_is_refused(
    maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(stores, "commit", lambda: "0123456+changes")
    made_up(tmp_path, answer)
    assert maker.main([str(tmp_path / "out"), "--out", str(tmp_path / "page.md")]) == 2
    assert "was run with changes that are in no commit" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()


def test_a_problem_without_an_answer_counts_as_undecided(maker: ModuleType, tmp_path: Path):
    def mostly_failed(task: Task) -> dict[str, Any]:
        if task.method == "map" and task.image != "mnist:69990":
            return {"status": "Failed", "reason": "memory limit of 4 GiB"}
        return answer(task)

    page = maker.make_page(made_up(tmp_path, mostly_failed))
    (line,) = [line for line in page.splitlines() if line.startswith("| map | 8 |")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert float(cells[4]) == 0.5 and [float(cell) for cell in cells[5:8:2]] == [1.0, 1.0]


def test_other_settings_do_not_stand_beside_the_papers(maker: ModuleType, tmp_path: Path):
    runs = '[[runs]]\nmethod = "bfs"\nmodels = "M-FNN-100"\ndelta = [3.0, "25%"]\n'
    page = maker.make_page(made_up(tmp_path, lambda task: visited(9), runs))
    beside = [line for line in page.splitlines() if line.startswith("| bfs, ")]
    assert [line.endswith("| 13 | 22 | 25 | 0 |") for line in beside] == [True, False]
    assert "and 25 of 60 in the paper." in page


def test_the_sentence_of_the_perturbations_counts_what_was_compared(maker: ModuleType, tmp_path: Path):
    (tmp_path / "single").mkdir()
    runs = '[[runs]]\nmethod = "map"\n'

    def lost(task: Task) -> dict[str, Any] | None:
        if task.model == "M-FNN-200" and task.combination == "P":
            return {"status": "Failed", "reason": "memory limit of 4 GiB"}
        return shares(0.9, 0.2 if task.combination == "B" else 0.5)

    page = maker.make_page(made_up(tmp_path, answer), others={"collapse": made_up(tmp_path / "single", lost, runs)})
    assert page.count("takes most attention away, for every network") == 2
    assert "Of 1 networks with all combinations: B takes most attention away in 1. (1 were not answered" in page


def test_filters_come_from_a_campaign_of_their_own(maker: ModuleType, tmp_path: Path):
    (tmp_path / "filters").mkdir()
    runs = '[[runs]]\nmethod = "map"\nfilter = ["identity", "mean"]\n'
    filters = made_up(tmp_path / "filters", lambda task: shares(0.9, 0.5), runs)
    page = maker.make_page(made_up(tmp_path, answer), others={"filter": filters})
    assert page.count("varies with filter and distance") == 1 and "campaign `made up` at commit" in page
    assert "| M-FNN-100 | mean | l2 | 4 | 10.00 % |" in page


def test_networks_that_are_not_chains_have_a_section(maker: ModuleType, tmp_path: Path):
    store = made_up(tmp_path, lambda task: answer(task) | {"regions": 7} if task.method == "map" else answer(task))
    assert "max pooling" not in maker.make_page(store)
    page = maker.make_page(store, networks=store)
    section = page.split("## Networks with max pooling and residual blocks")[1].split("## ")[0]
    lines = [line for line in section.splitlines() if "| 2 of 2" in line]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len(rows) == 4
    assert {tuple(row[3:9]) for row in rows} == {("7", "7", "1", "1", "90.00 %", "25.00 %")}


def test_networks_on_the_object_have_a_section_with_a_picture(maker: ModuleType, tmp_path: Path):
    def shown(task: Task) -> dict[str, Any]:
        return shares(0.9, 0.25 if "100" in task.model else 0.75) | {"seconds": 1.0}

    store = made_up(tmp_path, shown)
    page = maker.make_page(store, on_object=store)
    assert "## Networks that look at the object" in page and "images/evaluation/object.png" in page
    assert "by at least 50 percentage points on" in page
    found = maker.proved_shares(maker.make_records(store))
    assert {share for own in found.values() for share in own} == {0.25, 0.75}
    assert maker.object_picture(found, tmp_path / "pictures").stat().st_size > 1000
