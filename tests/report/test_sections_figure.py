"""The figure of many parameters: proved labels on lines and planes, and which parameters it shows."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

import steadygaze as sg
from steadygaze.engines.refine.boxes import State
from steadygaze.engines.refine.pointwise import PointPasses
from steadygaze.errors import OptionError
from steadygaze.labels import Kept
from steadygaze.report.figures import make_figure
from steadygaze.report.figures.sections import paint_labels
from support.networks.dense_files import write_dense


def refined(folder, parameters, seed=2, **options):
    random = np.random.default_rng(seed)
    layers = [(random.normal(size=(b, a)), 0.5 * random.normal(size=b)) for a, b in ((10, 2), (2, 2))]
    path, image = write_dense(folder / "net.onnx", layers), random.random((1, 1, 10)) * 0.5
    specs = [f"patch:x={n},y=0,w=1,h=1:0..0.5" for n in range(parameters)]
    return sg.verify(path, image, specs, method="refine", threads=1, **options)


@pytest.fixture(scope="module")
def four(tmp_path_factory) -> sg.Result:
    return refined(tmp_path_factory.mktemp("four"), 4, until=0.01)


@pytest.mark.parametrize("axes", [(0,), (3,), (0, 1), (3, 1)])
def test_painted_labels_are_those_of_plain_passes(four: sg.Result, axes):
    """A planted fault: with the axes swapped, or another theta held, this fails."""
    assert (four.tiling.boxes.state == State.PARTED).any()
    side, held = 24, np.array([0.1, 0.05, 0.2, 0.03])
    label, attention = paint_labels(four.answer, held, axes, side)
    assert label.shape == attention.shape == (side,) * len(axes)
    places = np.stack(np.meshgrid(*[(np.arange(side) + 0.5) / side] * len(axes), indexing="ij"), axis=-1)
    thetas = np.tile(held, (side ** len(axes), 1))
    thetas[:, list(axes)] = 0.5 * places.reshape(-1, len(axes))
    passes = PointPasses(four.question)
    keeps, same = passes.margins(thetas) > 0.0, passes.inconsistencies(thetas) <= four.question.own_limit
    for codes, plain in ((label.ravel(), keeps), (attention.ravel(), same)):
        known = codes != Kept.UNKNOWN
        assert known.mean() > 0.8 and (plain[known] == (codes[known] == Kept.YES)).all()


def test_the_figure_names_its_sections_and_explains_its_lines(four: sg.Result):
    texts = {text.get_text() for text in make_figure("sections", four).findobj(Text)}
    assert {"Sections through the unperturbed image", "Sections through the nearest violation"} <= texts
    assert any(text.startswith("Black line: margin") for text in texts) and "0 to 0.5" in texts
    assert len(make_figure("sections", four).axes) == 1 + 2 * 10


def test_of_many_parameters_the_most_telling_are_shown(tmp_path: Path):
    eight = refined(tmp_path, 8, goal="verdict", property="cr")
    texts = {text.get_text() for text in make_figure("sections", eight).findobj(Text)}
    assert any(text.startswith("The figure shows 6 of 8 parameters") for text in texts)
    assert not any(text.startswith("Blue line") for text in texts)


def test_a_report_has_the_sections(four: sg.Result, tmp_path: Path):
    page = four.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Sections of the domain along each parameter and each pair" in page and "has no picture" not in page


def test_maps_are_shown_as_maps():
    result = sg.verify("M-FNN-100", "mnist:69990", ["brightness:0..0.05"], threads=1)
    with pytest.raises(OptionError, match="more than 3 parameters; use map"):
        make_figure("sections", result)
