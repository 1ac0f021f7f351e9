"""A run of tests ends with a list of the skipped tests, and how to run them."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from support.skipped_tests import skipped_line

TESTS = Path(__file__).parent


def report(node: str, reason: str) -> SimpleNamespace:
    return SimpleNamespace(nodeid=node, longrepr=("file", 1, f"Skipped: {reason}"))


def test_reasons_are_counted():
    reports = [report("tests/a.py::test_one", "no browser"), report("tests/b.py::test", "no torch")]
    reports.append(report("tests/a.py::test_two[x]", "no browser"))
    assert skipped_line(reports) == "skipped: 2 (tests/a.py …): no browser; 1 (tests/b.py …): no torch"
    assert skipped_line([]) == "skipped: none"


def test_the_line_is_the_last_one_of_a_run(tmp_path: Path):
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    test = (
        "import pytest\n\ndef test_page():\n    pytest.skip('Chromium is not installed (apt-get install chromium)')\n"
    )
    (folder / "test_it.py").write_text(test, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "tests"]
    done = subprocess.run(
        [*command, "-o", f"pythonpath={TESTS}"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    last = done.stdout.strip().splitlines()[-1]
    assert last == "skipped: 1 (tests/test_it.py …): Chromium is not installed (apt-get install chromium)"
