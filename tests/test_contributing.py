"""The worked examples of CONTRIBUTING.md work as they stand, in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steadygaze.compiling.stored_code import code_folder

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python (\S+)\n(.*?)```", TEXT, re.DOTALL)

HISTOGRAM = re.search(r'\n( *"histogram": .*\n)', TEXT)[1]
CORNERS = re.search(r'\n( *corners=".*\n)', TEXT)[1]
PLAIN = re.search(r"\n(PlainMethod = .*\n)", TEXT)[1]
ENTRIES = (
    (
        "report/figure_kinds.py",
        "KINDS: dict[str, FigureKind] = {\n",
        "KINDS: dict[str, FigureKind] = {\n" + HISTOGRAM,
    ),
    ("engines/__init__.py", "ENGINES = Engines(\n", f"ENGINES = Engines(\n{CORNERS}"),
    ("engines/__init__.py", 'PlainMethod = Literal["bfs"]\n', PLAIN),
)
"""The lines that the text asks for in files that exist: (file, before, after)."""

SCRIPT = """
from typing import get_args, get_overloads, get_type_hints
import numpy as np, steadygaze
from steadygaze.engines import METHODS
from steadygaze.perturbation import parse_spec
methods = [get_args(get_type_hints(one)["method"]) for one in get_overloads(steadygaze.verify)]
assert sorted(sum(methods, ())) == sorted(METHODS), methods
half = parse_spec("half:0..0.2")
image = np.random.default_rng(1).random((1, 6, 6))
offset, slope = half.change(image, 0.0, 0.2)
assert np.allclose(half.apply(image, np.array([0.1]))[0], image + offset + 0.1 * slope)
found = steadygaze.verify("M-FNN-100", "mnist:69990", "half:0..0.2", method="corners", property="ar", delta=0.5)
assert found.verdict.value == "not robust" and found.status.value == "NotRobust" and found.coverage == 0.0
found.save("stored")
again = steadygaze.load("stored")
assert (again.method, again.verdict, again.witnesses[0].kind.value) == ("corners", found.verdict, "attention")
steadygaze.draw("histogram", steadygaze.verify("M-FNN-100", "mnist:69990", "half:0..0.2"), "histogram")
print("done", steadygaze.__file__)
"""

FILTER = """
import steadygaze
for model, method in (("M-FNN-100", "map"), ("M-CNN-S", "map"), ("M-FNN-100", "refine")):
    asked = dict(method=method, delta=0.5, dist="l1")
    plain, halved = (
        steadygaze.verify(model, "mnist:69990", "half:0..0.02", filter=name, **asked) for name in ("abs", "abs+half")
    )
    assert plain.areas["CR"] == halved.areas["CR"]
    assert plain.with_delta(1.0).areas["AR"] == halved.with_delta(0.5).areas["AR"], (model, method)
print("done", steadygaze.__file__)
"""

METHOD = """
from dataclasses import replace
from pathlib import Path
import numpy as np, steadygaze
from steadygaze.attention.methods import Method
from steadygaze.bounds.bounder import Bounder
from steadygaze.engines import load, run
from steadygaze.engines.refine.pointwise import PointPasses
from steadygaze.network.graph import preactivations
from steadygaze.question import make_question

OPTIONS = {"map": {"threads": 1}, "refine": {"threads": 1}, "bfs": {}, "gbs": {"w_delta": 0.2, "line": "corner"}}

def slope(graph, image, rows, pixel):  # by differences of logits, inside one region
    moved = np.repeat(image.reshape(1, -1), 2, axis=0)
    moved[:, pixel] += (1e-7, -1e-7)
    logits = preactivations(graph, moved)[-1]
    return rows @ (logits[0] - logits[1]) / 2e-7

for model in ("M-FNN-100", "M-CNN-S"):
    shares = set()
    for method, options in OPTIONS.items():
        question = make_question(model, "mnist:69990", ["brightness:0..0.1"], delta="10%", property="ar")
        question = replace(question, attention=replace(question.attention, method=Method.parse("contrast")))
        result = run(question, method, **options)
        folder = Path(f"{model}-{method}")
        result.save(folder)
        loaded = load(folder)
        assert loaded.question.attention.method.name == "contrast"
        assert loaded.summary()["attention"]["explain"] == "contrast"
        loaded.report(folder.with_suffix(".html"))
        assert "contrast maps: filter identity" in folder.with_suffix(".html").read_text(encoding="utf-8")
        if method in ("map", "refine"):
            assert result.witnesses and all(witness.map_check.agrees is not False for witness in result.witnesses)
            shares.add(tuple(round(end, 6) for end in result.areas["AR"]))
            point, rows = loaded.at([0.063]), np.eye(10) - 0.1
            pixel = int(np.argmax(np.abs(point.actual[7])))
            expected = slope(question.model.graph, point.image, rows, pixel)
            assert np.allclose(point.actual.reshape(10, -1)[:, pixel], expected, rtol=1e-4, atol=1e-5)
            assert np.isclose(PointPasses(question).inconsistencies(point.theta[None])[0], point.inconsistency)
            bounder = Bounder(question.model.graph, question.perturbed, question.label, question.attention)
            low, high = bounder.bound(0, np.array([[0.625]]), np.array([[0.635]])).inconsistency[0]
            assert low <= point.inconsistency <= high < 10.0 * point.inconsistency
    assert len(shares) == 1 and 0.0 < shares.pop()[0] < 1.0, shares
print("done", steadygaze.__file__)
"""


def test_there_are_examples():
    assert [name for name, _ in EXAMPLES] == [
        "perturbation/families/half_brightness.py",
        "attention/filters/half.py",
        "attention/methods/contrast.py",
        "report/figures/histogram.py",
        "engines/corners/__init__.py",
    ]


def copied_package(folder: Path, *, has_filter: bool) -> Path:
    """A folder with a copy of the package and the examples, and the machine code on disk: a filter changes some."""
    copy = folder / "steadygaze"
    shutil.copytree(ROOT / "src" / "steadygaze", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, code in EXAMPLES:
        if has_filter or "/filters/" not in name:
            (copy / name).parent.mkdir(exist_ok=True)
            (copy / name).write_text(code, encoding="utf-8")
    for name, old, new in ENTRIES:
        text = (copy / name).read_text(encoding="utf-8")
        assert old in text
        (copy / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    shutil.copytree(code_folder(), copy / "__pycache__" / "compiled" / code_folder().name)
    return folder


@pytest.mark.parametrize("script", [SCRIPT, FILTER, METHOD], ids=["all others", "filter", "attention method"])
def test_the_examples_work(tmp_path, script):
    package = copied_package(tmp_path / "package", has_filter=script is FILTER)
    environment = os.environ | {"PYTHONPATH": str(package)}
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert found.returncode == 0, found.stderr
    assert str(package) in found.stdout


def test_files_that_are_named_exist():
    for name in re.findall(r"`((?:src/steadygaze/)?[a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", TEXT):
        path = name.removeprefix("src/steadygaze/")
        assert (ROOT / "src" / "steadygaze" / path).exists() or (ROOT / name).exists() or name == "demo/", name
