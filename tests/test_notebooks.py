"""The notebooks of docs/notebooks run from top to bottom, and are stored without outputs."""

from pathlib import Path

import matplotlib as mpl
import pytest

from support.notebooks import read_cells, run_cells

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture(autouse=True)
def without_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Figures are drawn and not shown; files go to a folder of the test."""
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["first-look", "own-torch-network"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_not_stored(path: Path):
    for cell in read_cells(path):
        assert cell["cell_type"] in ("markdown", "code") and cell["id"]
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


def test_the_first_look_shows_picture_table_and_map():
    pytest.importorskip("pandas")
    names, shown = run_cells(FOLDER / "first-look.ipynb")
    assert "<img" in shown[0] and "CR&amp;AR" in shown[0]
    assert shown[-1].startswith("<iframe srcdoc=") and "sandbox=" in shown[-1]
    assert names["regions"]["share"].sum() == pytest.approx(1.0)


def test_the_own_network_passes_its_gate_and_misses_a_stricter_one():
    pytest.importorskip("torch")
    names, shown = run_cells(FOLDER / "own-torch-network.ipynb")
    assert names["result"].judge(names["REQUIREMENT"]) == "met"
    assert names["result"].judge(names["STRICTER"]) == "not met"
    assert "result.json" in shown[-1] and "model.onnx" in shown[-1]
    assert (names["folder"] / "report.html").stat().st_size > 100_000
