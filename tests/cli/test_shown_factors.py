"""A scale is written and read as a factor everywhere, although its theta is the factor minus 1."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import steadygaze
from steadygaze.budget import Budget, Limits
from steadygaze.report.drawing.sheet import name_axis
from steadygaze.report.figures.strip import strip_figure
from steadygaze.report.page.facts import witness_rows
from steadygaze.results.summary import summarise
from steadygaze.words import caption_theta, named_theta
from support.command_line import Runner

SPECS = ["scale:0.75..1.5", "brightness:0..0.125"]
NAMES = ["scale [×]", "brightness"]


@pytest.fixture(scope="module")
def result() -> steadygaze.Result:
    return steadygaze.verify("M-FNN-100", "mnist:69992", SPECS, until=0.5, budget=Budget(Limits(30.0)), property="cr")


def test_thetas_in_words() -> None:
    assert named_theta(NAMES, [-0.25, -0.25]) == "scale = 0.75, brightness = −0.25"
    assert caption_theta(np.array([0.05, 0.1]), np.array([0.2, 0.2]), NAMES) == "θ = (1.05, 0.1)"


def test_domain_verdict_and_json(run: Runner, tmp_path: Path) -> None:
    options = ("--image", "mnist:69992", "--perturb", SPECS[0], "--property", "cr", "--until", "0.5", "--quiet")
    folder = tmp_path / "scaled"
    run("verify", "M-FNN-100", *options, "--out", str(folder))
    shown = run("show", str(folder))
    assert "Domain: scale [×] 0.75..1.5" in shown.out
    assert "factor − 1" not in shown.out
    domain = run("show", str(folder), "--json").json["domain"]
    assert domain["names"] == ["scale [×]"]
    assert (domain["low"], domain["high"], domain["shown_at_zero"]) == ([-0.25], [0.5], [1.0])
    nearest = run("show", str(folder), "--json").json["nearest"]["CR"]["theta"]
    text = named_theta(["scale [×]"], nearest)
    assert text in " ".join(shown.out.split())
    strip = ("figure", "strip", str(folder), "--force", "--out", str(tmp_path / "strip.png"), "--at")
    assert run(*strip, "1.5").code == 0
    refused = run(*strip, "-0.25")
    assert refused.code == 2
    assert "theta -0.25 is outside the domain (scale [×] 0.75..1.5); give a theta inside it; in Python" in refused.err


def test_a_question_without_factors_says_nothing_about_them(run: Runner) -> None:
    small = ("verify", "M-FNN-100", "--image", "mnist:69990", "--perturb", "brightness:0..0.05", "--json")
    assert run(*small).json["domain"]["shown_at_zero"] == []


def test_axes_of_figures_show_factors() -> None:
    axes = Figure().add_subplot()
    axes.set_xlim(-0.25, 0.5)
    name_axis(axes, NAMES[0], is_below=True)
    assert [axes.xaxis.get_major_formatter()(value) for value in (-0.25, 0.0, 0.30000000000000004)] == [
        "0.75", "1", "1.3",
    ]  # fmt: skip


def test_captions_and_witnesses_show_factors(result: steadygaze.Result) -> None:
    texts = [text.get_text() for text in strip_figure(result, 0, np.array([[-0.25, 0.0], [0.5, 0.0]])).findobj(
        lambda artist: hasattr(artist, "get_text"))]  # fmt: skip
    assert {"scale 0.75", "scale 1.5", "θ = (0.75, 0)", "θ = (1.5, 0)"} <= set(texts)
    for row in witness_rows(summarise(result)):
        assert row["theta"].startswith("scale = ")
        assert "(theta = " in row["theta"]
    assert "scale [×] 0.75..1.5" in repr(result)
