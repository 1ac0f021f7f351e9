"""How large is a report, how long does it take to open, and how quickly does its map respond to a click and the slider?

    python benchmarks/report_page.py

Writes the reports of a map of about 20,000 and of one just below 50,000 regions, and opens them from disk in headless
Chromium. Measures the time from a click, or a key on the slider, until the frame with the new picture is painted. The
numbers that the page computes at clicked points are compared with the result; a difference ends the benchmark with exit
code 1.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from steadygaze.api import verify
from steadygaze.report.page.html import write_report
from steadygaze.results.result import Result
from timing import RESULTS, Spread, clock, print_table, write_json

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
PROBLEMS = {
    "20,000 regions": ("M-FNN-800", "mnist:69990", ["translate:dx=1:0..0.8", "brightness"]),
    "50,000 regions": ("M-FNN-800", "mnist:69990", ["translate:dx=2:0..1.96", "brightness"]),
    "convolutions": ("M-CNN-S", "mnist:69990", ["translate:dx=1:0..0.3", "brightness:0..0.3"]),
}
SIZE, OPENING, ANSWER = 15.0, 3.0, 0.1
"""Targets: megabytes and seconds to open for the first report, seconds to answer for all."""

WATCH = """async () => {
  const map = await steadygaze.ready;
  window.answers = [];
  for (const [event, name] of [["pointerup", "select"], ["keydown", "setStep"]]) {
    const own = map[name];
    window.addEventListener(event, () => { window.began = performance.now(); }, true);
    map[name] = (given) => {
      own.call(map, given);
      requestAnimationFrame(() => setTimeout(() => window.answers.push(performance.now() - window.began), 0));
    };
  }
  const { left, top, width, height } = Bokeh.index.find_one(map.figure).el.getBoundingClientRect();
  const { bbox } = Bokeh.index.find_one(map.figure).frame;
  return [left + bbox.left, top + bbox.top, bbox.width, bbox.height];
}"""


def measure(browser: Any, path: Path, repetitions: int) -> tuple[dict[str, Spread], list[dict[str, Any]]]:
    """Seconds to open and to respond to a click and to the slider; and the page's numbers at the clicked points."""
    opening = []
    for _ in range(repetitions):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        seconds, _ = clock(
            lambda page=page: (page.goto(path.as_uri()), page.evaluate("steadygaze.ready.then(() => 1)"))
        )
        opening.append(seconds)
        if len(opening) < repetitions:
            page.close()
    page.locator("#sg-explorer").scroll_into_view_if_needed()
    left, top, width, height = page.evaluate(WATCH)
    points = []
    for share in np.random.default_rng(0).uniform(0.02, 0.98, (4 * repetitions, 2)):
        page.mouse.click(left + share[0] * width, top + share[1] * height)
        page.wait_for_timeout(400)
        points.append(page.evaluate("(({theta}) => (({margin, inconsistency}) => ({theta, margin, inconsistency}))"
                                    "(steadygaze.at(theta)))(steadygaze.state)"))  # fmt: skip
    clicks = page.evaluate("window.answers.splice(0)")
    page.focus("#sg-step")
    for _ in range(4 * repetitions):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(150)
    slides = page.evaluate("window.answers.splice(0)")
    page.close()
    seconds = {"open": opening, "click": [ms / 1000 for ms in clicks], "slider": [ms / 1000 for ms in slides]}
    return {name: Spread.of(values) for name, values in seconds.items()}, points


def largest_difference(result: Result, points: list[dict[str, Any]]) -> float:
    """The largest difference between the page's numbers and the result, over margins and inconsistencies."""
    differences = [0.0]
    for point in points:
        wanted = result.at(point["theta"])
        differences += [abs(point["margin"] - wanted.margin), abs(point["inconsistency"] - wanted.inconsistency)]
    return max(differences)


def _printed(row: dict[str, Any], spreads: dict[str, Spread]) -> dict[str, str]:
    return {
        "map": row["problem"], "regions": f"{row['regions']:,}", "MB": f"{row['megabytes']:.1f}",
        "written in s": f"{row['writing_seconds']:.1f}", "open s": f"{spreads['open']:.2f}",
        "click s": f"{spreads['click']:.3f}", "slider s": f"{spreads['slider']:.3f}",
        "difference": f"{row['difference']:.1e}", "": "" if row["is_met"] else "missed",
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--out", type=Path, default=RESULTS / "report_page.json")
    options = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name in options.problems:
            model, image, specs = PROBLEMS[name]
            result = verify(model, image, specs, method="map")
            path = Path(folder) / "report.html"
            writing, _ = clock(lambda result=result, path=path: write_report(result, path, force=True))
            spreads, points = measure(browser, path, options.repetitions)
            size, difference = path.stat().st_size / 1e6, largest_difference(result, points)
            is_met = size < SIZE and spreads["open"].median < OPENING
            is_met &= spreads["click"].median < ANSWER
            rows.append({"problem": name, "model": model, "regions": result.region_count, "megabytes": size,
                         "writing_seconds": writing, **{key: spread.__dict__ for key, spread in spreads.items()},
                         "difference": difference, "is_met": is_met})  # fmt: skip
            print_table([_printed(rows[-1], spreads)])
        browser.close()
    write_json(options.out, (__doc__ or "").splitlines()[0], repetitions=options.repetitions, rows=rows)
    return 1 if any(row["difference"] > 1e-4 for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
