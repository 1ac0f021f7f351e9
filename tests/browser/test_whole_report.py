"""The whole report in Chromium: opened from disk, with malicious names, and printed."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from steadygaze import verify, zoo
from steadygaze.report.page.html import write_report
from steadygaze.results.result import Result
from support.browsing import Browser, running_browser

EVIL_MODEL = "<img src=x onerror=alert(1)>.onnx"
EVIL_CLASS = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("reports")) as started:
        yield started


@pytest.fixture(scope="module")
def result(browser: Browser) -> Result:
    model = browser.folder / EVIL_MODEL
    shutil.copy(zoo.model_path("M-FNN-100"), model)
    specs = ["brightness:0..0.5", "patch:x=10,y=10,w=5,h=5"]
    return verify(model, "mnist:69990", specs, names=[f"{EVIL_CLASS}{number}" for number in range(10)], threads=1)


@pytest.fixture(scope="module")
def report(browser: Browser, result: Result) -> Path:
    directory = result.save(browser.folder / "<b>stored")
    return write_report(result, browser.folder / "report.html", directory=directory)


def test_a_click_in_the_report_shows_the_numbers_of_the_result(browser: Browser, report: Path, result: Result) -> None:
    with browser.open(report) as page:
        assert EVIL_MODEL.removesuffix(".onnx") in page.text("h1")
        assert page.page.locator("img:not([src^='data:'])").count() == 0
        page.page.locator("#sg-explorer").scroll_into_view_if_needed()
        page.click_theta([0.2, 0.6])
        chosen = page.ask("return map.state.theta")
        assert np.abs(np.array(chosen) - [0.2, 0.6]).max() < 2e-3
        point = result.at(chosen)
        assert page.shown("margin") == pytest.approx(point.margin, abs=1e-4)
        assert page.shown("inconsistency") == pytest.approx(point.inconsistency, abs=1e-4)


def test_the_slider_and_the_tables_of_the_report_agree(browser: Browser, report: Path, result: Result) -> None:
    with browser.open(report) as page:
        low, high = (
            float(page.page.locator(f".sums tr:has(th:text-is('AR')) td:nth-of-type({place})").inner_text().split()[0])
            for place in (2, 3)
        )
        shown = np.array(page.ask("return map.areas()['AR']"))
        assert low <= 100 * shown[0] + 1e-9 and 100 * shown[1] <= high + 1e-9 and high - low < 0.0101
        page.ask("map.setStep(map.facts.texts.indexOf('50%'))")
        np.testing.assert_allclose(
            page.ask("return map.areas()['AR']"), result.with_delta("50%").areas["AR"], atol=1e-6
        )


def test_print_leaves_the_controls_out(browser: Browser, report: Path) -> None:
    with browser.open(report) as page:
        page.page.emulate_media(media="print")
        assert not page.page.locator("#sg-step").is_visible()
        assert page.page.locator("figure.wide img").first.is_visible()
