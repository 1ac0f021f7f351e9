"""docs/ci.md: its script on 60 images of one model, a planted worse model, its overview in a browser, its tests."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from steadygaze import zoo
from steadygaze.images import read_image
from support.browsing import Browser, running_browser
from support.plugin_options import plugin_options

PAGE = (Path(__file__).parents[1] / "docs" / "ci.md").read_text(encoding="utf-8")
PER_DIGIT = 6
COUNT = 10 * PER_DIGIT
SHOWN = "[...document.querySelectorAll('tbody tr')].filter((row) => row.offsetParent !== null).length"


def block(language: str) -> str:
    """The first block of a language on the page."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)[0]


def run_gate(place: Path) -> subprocess.CompletedProcess:
    """Run the script of the page, with this version of steadygaze on the path."""
    programs = place / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "steadygaze").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m steadygaze "$@"\n', encoding="utf-8")
    (programs / "steadygaze").chmod(0o755)
    (place / "gate.sh").write_text(block("sh"), encoding="utf-8")
    (place / "gate.toml").write_text(block("toml"), encoding="utf-8")
    return subprocess.run(
        ["sh", "gate.sh"], cwd=place, capture_output=True, text=True, timeout=600, check=False,
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "300"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def gates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[subprocess.CompletedProcess]]:
    """Images as people have them: the gate with a good model, and then with one that looks away from the digits.

    Ten digits at six brightnesses, some enlarged, some in colour. The worse model gives all of them the right label.
    """
    place = tmp_path_factory.mktemp("ci")
    for number in range(69990, 70000):
        reference = f"mnist:{number}"
        pixels = read_image(zoo.image_path(reference)).pixels[0]
        folder = place / "photos" / str(zoo.true_label(reference))
        folder.mkdir(parents=True, exist_ok=True)
        for step in range(PER_DIGIT):
            grey = np.round(255 * pixels * (1 - 0.03 * step)).astype(np.uint8)
            picture = Image.fromarray(grey)
            picture = picture.resize((56, 56)) if step % 3 == 1 else picture
            picture = picture.convert("RGB") if step % 4 == 1 else picture
            picture.save(folder / f"{number}-{step:02}.png")
    shutil.copy(zoo.model_path("M-FNN-100"), place / "model.onnx")
    good = run_gate(place)
    shutil.copytree(place / "gate-report", place / "good-report")
    shutil.copy(zoo.model_path("M-FNN-100-plain"), place / "model.onnx")
    return place, [good, run_gate(place)]


def test_a_good_model_passes(gates: tuple[Path, list[subprocess.CompletedProcess]]):
    place, (good, _) = gates
    assert good.returncode == 0, good.stderr
    assert f"Required 90% of images meet CR&AR >= 0.9: met ({COUNT} of {COUNT} images meet it)" in good.stdout
    assert (place / "good-report" / "index.html").read_text(encoding="utf-8").count("<tr id=") == COUNT


def test_a_worse_model_fails_and_the_blamed_are_named(gates: tuple[Path, list[subprocess.CompletedProcess]]):
    place, (_, worse) = gates
    assert worse.returncode == 10, worse.stderr
    assert "Required 90% of images meet CR&AR >= 0.9: not met" in worse.stdout
    wrong = re.findall(r"  photos/\d/\d+-\d+.png · light: CR&AR (?:≤ )?[\d.e−]+ % \(0.9 required\)", worse.stdout)
    assert len(wrong) == 20
    assert "more; campaign status DIR --json lists all" in worse.stdout
    root = ElementTree.parse(place / "gate-report" / "junit.xml").getroot()
    met = int(re.findall(rf"not met \((\d+) of {COUNT} images meet it\)", worse.stdout)[0])
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == (str(COUNT + 1), str(COUNT + 1 - met), "0")
    assert len(list((place / "gate-report" / "problems").glob("*.html"))) == 10


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("pages")) as found:
        yield found


def test_the_overview_opens_and_its_links_are_alive(
    gates: tuple[Path, list[subprocess.CompletedProcess]], browser: Browser
):
    place, _ = gates
    overview = place / "gate-report" / "index.html"
    key = re.findall(r'<tr id="([^"]*7-69990-00[^"]*)"', overview.read_text(encoding="utf-8"))[0]
    command = [sys.executable, "-m", "steadygaze", "campaign", "report", "gate", "--out", "gate-report"]
    subprocess.run([*command, "--full", key, "--plan", "gate.toml"], cwd=place, check=True, timeout=300)
    troubles: list[str] = []
    for width, scheme in ((1280, "light"), (390, "dark")):
        page = browser.chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        page.on(
            "request",
            lambda request: None if request.url.startswith(("file:", "data:")) else troubles.append(request.url),
        )
        page.goto(overview.as_uri())
        assert page.evaluate(SHOWN) == COUNT
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("#gate details[open] li").count() == page.locator("tr[data-state=missed]").count() > 20
        page.select_option("#state", "met")
        met = page.locator("tr[data-state=met]").count()
        assert page.evaluate(SHOWN) == met > 20
        assert page.locator("#shown").inner_text() == f"{met} of {COUNT} problems"
        page.select_option("#state", "")
        page.fill("#find", "7-69990-00")
        assert page.evaluate(SHOWN) == 1
        targets = [
            unquote(target) for target in page.eval_on_selector_all("a", "all => all.map(a => a.getAttribute('href'))")
        ]
        assert any(target.startswith("problems/") for target in targets)
        rows = set(page.eval_on_selector_all("tr[id]", "all => all.map(row => row.id)"))
        for target in targets:
            assert target[1:] in rows if target.startswith("#") else (overview.parent / target).exists(), target
        if width == 1280:
            page.locator("tbody tr:visible >> text=full report").click()
            page.wait_for_load_state()
            assert "on" in page.title() and page.locator("h1").count() == 1
        page.close()
    assert troubles == []


def test_the_workflow_is_short_and_runs_the_script():
    lines = block("yaml").splitlines()
    assert len(lines) <= 15 and any("sh gate.sh" in line for line in lines)


def test_the_tests_of_the_page_pass(tmp_path: Path):
    pytest.importorskip("torch")
    for number, text in enumerate(re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)):
        (tmp_path / f"test_page_{number}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", *plugin_options()]
    done = subprocess.run([*command, "."], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
