"""Opens interactive maps from disk in a real browser, and records errors, requests and dialogs."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steadygaze.report.page.explorer import make_explorer
from steadygaze.report.thresholds import make_thresholds
from steadygaze.results.result import Result

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""The content policy of a page with an interactive map: only its own scripts and styles."""


class Watched:
    """A page opened from disk, and its errors."""

    def __init__(self, page: Any) -> None:
        self.page, self.troubles = page, []
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.troubles.append(f"dialog: {dialog.message}"))
        page.on("console", self._console)
        page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.troubles.append(f"request: {request.url}")

    def ask(self, script: str, given: object = None) -> Any:
        """Run a script in the page once the map is ready."""
        return self.page.evaluate(f"async (given) => {{ const map = await steadygaze.ready; {script} }}", given)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def shown(self, key: str) -> float:
        """A number of the panel beside the map."""
        return float(self.text(f'#sg-numbers dd[data-key="{key}"]').replace("−", "-"))

    def click_theta(self, theta: list[float]) -> None:
        """Click the map where theta is drawn."""
        x, y = self.ask(
            """
            const view = Bokeh.index.find_one(map.figure), box = view.el.getBoundingClientRect();
            const [x, y] = map.drawnAt(given), { bbox } = view.frame, { x_range: h, y_range: v } = map.figure;
            return [
              box.left + bbox.left + ((x - h.start) / (h.end - h.start)) * bbox.width,
              box.top + bbox.top + ((v.end - y) / (v.end - v.start)) * bbox.height,
            ];
            """,
            theta,
        )
        self.page.mouse.click(x, y)


class Browser:
    """A running browser; pages are written to a folder and opened from there."""

    def __init__(self, chromium: Any, folder: Path) -> None:
        self.chromium, self.folder, self.count = chromium, folder, 0
        self.kept: dict[Path, Watched] = {}

    def write(self, result: Result) -> Path:
        """A small page around the interactive map of a result."""
        explorer = make_explorer(result, make_thresholds(result))
        assert explorer is not None
        self.count += 1
        path = self.folder / f"page{self.count}.html"
        meta = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>map</title>'
        path.write_text(
            f'<!doctype html><html lang="en"><head>{meta}{explorer.head}</head><body>{explorer.html}</body></html>',
            encoding="utf-8",
        )
        return path

    @contextmanager
    def reuse(self, path: Path) -> Iterator[Watched]:
        """A page that stays open from test to test, reset to its initial state."""
        if path not in self.kept:
            self.kept[path] = Watched(self.chromium.new_page(viewport={"width": 1280, "height": 900}))
            self.kept[path].page.goto(path.as_uri())
        watched = self.kept[path]
        watched.page.mouse.move(1, 1)
        watched.ask(
            "map.state.shownClass = null; map.zoom(Infinity); map.setView('joint'); map.setStep(map.facts.chosen);"
            " map.select(map.state.theta.map(() => 0))"
        )
        yield watched
        assert watched.troubles == []

    @contextmanager
    def open(self, result: Result | Path, link: str = "", width: int = 1280) -> Iterator[Watched]:
        """Open the map of a result, or an existing page; any error fails the test."""
        path = result if isinstance(result, Path) else self.write(result)
        page = self.chromium.new_page(viewport={"width": width, "height": 900})
        watched = Watched(page)
        page.goto(path.as_uri() + link)
        watched.ask("return 1")
        yield watched
        page.close()
        assert watched.troubles == []


@contextmanager
def running_browser(folder: Path) -> Iterator[Browser]:
    """Chromium; skips the test if it is not installed."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed (Debian and Ubuntu: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield Browser(chromium, folder)
        chromium.close()


def random_thetas(result: Result, count: int, seed: int = 0) -> np.ndarray:
    """Thetas (count, d) of the domain."""
    domain = result.question.compound.domain
    return np.random.default_rng(seed).uniform(domain.low, domain.high, (count, domain.dimension))
