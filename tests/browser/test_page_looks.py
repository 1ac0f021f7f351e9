"""The report in a browser: no request, no overflow on a phone, readable in the dark; the map in a notebook's cell."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import steadygaze
from steadygaze import Result
from support.browsing import Browser, running_browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("pages")) as found:
        yield found


@pytest.fixture(scope="module")
def result() -> Result:
    return steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0..0.3", "patch:x=12,y=12,w=4,h=4"])


@pytest.mark.parametrize("weights", [True, False])
def test_a_phone_shows_the_whole_page(browser: Browser, result: Result, tmp_path: Path, weights: bool):
    page = result.report(tmp_path / "report.html", weights=weights)
    with browser.open(page, width=390) as watched:
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390
        # Wide pictures stay legible: they scroll inside their frame.
        assert watched.page.evaluate("document.querySelector('.wide img').clientWidth") >= 800
        for link in watched.page.locator(".contents a").all():
            assert watched.page.locator(link.get_attribute("href") or "").count() == 1
        watched.ask("map.select([0.1, 0.5])")
        is_stored = "nearest stored theta" in watched.text("#sg-where")
        assert is_stored != weights


def test_the_dark_scheme_is_dark(browser: Browser, result: Result, tmp_path: Path):
    page = result.report(tmp_path / "report.html")
    with browser.open(page) as watched:
        colour = "getComputedStyle(document.body).backgroundColor"
        assert watched.page.evaluate(colour) == "rgb(255, 255, 255)"
        watched.page.emulate_media(color_scheme="dark")
        red, green, blue = (int(n) for n in watched.page.evaluate(colour)[4:-1].split(","))
        assert max(red, green, blue) < 60
        ink = watched.page.evaluate("getComputedStyle(document.body).color")
        assert min(int(n) for n in ink[4:-1].split(",")) > 180


def test_the_map_of_a_cell_works_in_its_frame(browser: Browser, result: Result, tmp_path: Path):
    path = tmp_path / "cell.html"
    path.write_text(
        f"<!doctype html><meta charset='utf-8'><title>cell</title>{result.show_map().html}", encoding="utf-8"
    )
    page = browser.chromium.new_page(viewport={"width": 1100, "height": 1000})
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on(
        "request", lambda request: request.url.startswith(("file:", "data:", "about:")) or troubles.append(request.url)
    )
    page.goto(path.as_uri())
    frame = page.frames[1]
    frame.wait_for_function("window.steadygaze !== undefined")
    told = frame.evaluate("steadygaze.ready.then((map) => { map.select([0.1, 0.5]); return 1; })")
    assert told == 1 and "7" in frame.locator("#sg-numbers").inner_text()
    page.close()
    assert troubles == []
