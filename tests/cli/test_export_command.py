"""`export`: a file with rows and columns as documented, and refusals."""

import csv
import json
from pathlib import Path

import pytest

from steadygaze import load
from support.command_line import SMALL, Runner

SQUARE = (*SMALL, "--perturb", "patch:x=12,y=12,w=4,h=4:0..0.1", "--delta", "3.0", "--out", "out")


def read(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="ascii", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def stored(run: Runner) -> str:
    run(*SQUARE)
    return "out"


def test_a_csv_named_after_the_result(run: Runner, stored: str):
    result = run("export", stored)
    rows = read("out-regions.csv")
    assert (result.code, result.err) == (0, "")
    assert result.out == f"{len(rows)} regions written to out-regions.csv\n"
    assert len(rows) == len(load(stored).regions)
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1.0, abs=1e-9)


def test_formats_kinds_and_thresholds(run: Runner, stored: str):
    assert run("export", stored, "--what", "pieces", "--format", "geojson", "--delta", "50%").code == 0
    content = json.loads(Path("out-pieces.geojson").read_text(encoding="ascii"))
    assert content["steadygaze"]["delta"]["text"] == "50%"
    assert len(content["features"]) == len(load(stored).with_delta("50%").answer.joint.pieces)
    assert run("export", stored, "--out", "sub/x.csv").code == 0 and Path("sub/x.csv").exists()


def test_parquet(run: Runner, stored: str):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert run("export", stored, "--format", "parquet", "--out", "x.parquet").code == 0
    assert parquet.read_table("x.parquet").num_rows == len(load(stored).regions)


@pytest.mark.parametrize("method", ["gbs", "refine"])
def test_other_methods(run: Runner, method: str):
    run(*SMALL, "--method", method, "--out", "out")
    assert run("export", "out").code == 0
    shown = run("show", "out", "--json").json
    covered = shown["visited_share"] if method == "gbs" else 1.0
    assert sum(float(row["share"]) for row in read("out-regions.csv")) == pytest.approx(covered, abs=1e-9)
    if method == "gbs":
        for option, words in (("--what=pieces", "labels whole regions"), ("--delta=3.0", "; leave --delta out")):
            refused = run("export", "out", option, "--out", "other.csv")
            assert (refused.code, refused.out) == (2, "") and words in refused.err and not Path("other.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere",), "nowhere: no such directory"),
        (("out", "--format", "xml"), "unknown --format 'xml'; expected csv, geojson, parquet"),
        (("out", "--what", "all"), "unknown --what 'all'; expected regions or pieces"),
        (("out", "--delta", "x"), "not a threshold"),
        (("out", "--out", "out"), "out: is a directory"),
        (("out", "--out", "out/result.json"), "exists already"),
        (("out", "--out", "out/result.json/x.csv"), "is not a directory"),
    ],
)
def test_refusals_are_one_line(run: Runner, stored: str, arguments: tuple[str, ...], words: str):
    before = sorted(Path().rglob("*"))
    result = run("export", *arguments)
    assert (result.code, result.out) == (2, "") and words in result.err and result.err.count("\n") == 1
    assert sorted(Path().rglob("*")) == before


def test_an_existing_file_is_replaced_with_force_alone(run: Runner, stored: str):
    Path("x.csv").write_text("mine", encoding="ascii")
    assert run("export", stored, "--out", "x.csv").code == 2
    assert Path("x.csv").read_text(encoding="ascii") == "mine"
    assert run("export", stored, "--out", "x.csv", "--force").code == 0 and len(read("x.csv")) > 1
