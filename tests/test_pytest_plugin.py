"""The pytest plugin: requirements in tests, the report of a failing one, and no cost when it is not used."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from support.plugin_options import PLUGIN, plugin_options

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
QUESTION = '"M-FNN-100", "mnist:69990", ["brightness:0..0.02"], delta=3.0, threads=1'


def test_the_package_names_the_plugin():
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    place = content["project"]["entry-points"]["pytest11"]["steadygaze"]
    assert place == PLUGIN and hasattr(import_module(place), "pytest_addoption")


def test_requirements_met_missed_open_and_wrong(pytester: pytest.Pytester):
    pytester.makepyfile(f"""
        import steadygaze as package

        def test_met(steadygaze):
            assert steadygaze.require("CR >= 1", {QUESTION}, expect="7").label == 7

        def test_missed(steadygaze):
            steadygaze.require("CR <= 0.5", {QUESTION})

        def test_open(steadygaze):
            budget = package.Budget(package.Limits(max_regions=1))
            steadygaze.require("CR&AR >= 0.99999", {QUESTION.replace("0.02", "0.5")}, method="map", budget=budget)

        def test_misclassified(steadygaze):
            steadygaze.require("CR >= 1", {QUESTION}, expect="4")

        def test_nonsense(steadygaze):
            steadygaze.require("CX >= 1", {QUESTION})
    """)
    result = pytester.runpytest_subprocess(*plugin_options(), "--steadygaze-reports", "pages", "--junitxml", "out.xml")
    result.assert_outcomes(passed=1, failed=4)
    text = result.stdout.str()
    assert "M-FNN-100 on mnist:69990: required CR <= 0.5: not met" in text and "CR: 100 % of the domain" in text
    assert "misclassified: predicts 7, expected 4" in text and "there is no share 'CX'" in text
    assert "required CR&AR >= 0.99999: " in text
    pages = sorted((pytester.path / "pages").glob("*.html"))
    assert len(pages) == 3 and all("steadygaze" in page.read_text(encoding="utf-8")[:2000] for page in pages)
    properties = (pytester.path / "out.xml").read_text(encoding="utf-8").count('name="steadygaze_report"')
    assert properties == 3


def test_a_report_that_cannot_be_written_hides_no_failure(pytester: pytest.Pytester):
    (pytester.path / "pages").write_text("in the way", encoding="ascii")
    pytester.makepyfile(f"""
        def test_missed(steadygaze):
            steadygaze.require("CR <= 0.5", {QUESTION})
    """)
    result = pytester.runpytest_subprocess(*plugin_options(), "--steadygaze-reports", "pages")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*required CR <= 0.5: not met*", "*no report: *"])


def test_nothing_is_imported_before_it_is_needed():
    script = (
        f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; new = set(sys.modules) - before; "
        f"assert [name for name in new if name.startswith('steadygaze.')] == ['{PLUGIN}'], new; "
        "assert not {'numpy', 'numba', 'onnx', 'msgspec', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
