"""Figures as files in every format; refusals; and no text of a user becomes markup."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import steadygaze
from steadygaze import OptionError, Result, StoreError
from steadygaze.perturbation import Domain
from steadygaze.report.drawing.exhibits import path_thetas
from steadygaze.report.drawing.marks import place_badges
from steadygaze.report.figure_kinds import KINDS
from steadygaze.report.figures import make_figure
from steadygaze.report.figures.strip import line_through

SCRIPT = "</script><script>alert(1)</script>"
PICTURE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def result() -> Result:
    names = [SCRIPT] * 10
    found = steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], threads=1, names=names)
    assert isinstance(found, Result)
    return replace(found, question=replace(found.question, model_name=PICTURE, image_name=PICTURE))


@pytest.fixture(scope="module")
def search() -> Result:
    found = steadygaze.search("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], method="gbs")
    return replace(found, question=replace(found.question, model_name=PICTURE, image_name=PICTURE))


@pytest.fixture(scope="module")
def many() -> Result:
    specs = [f"patch:x={x},y=12,w=2,h=2:0..0.001" for x in (10, 12, 14, 16)]
    found = steadygaze.verify("M-FNN-100", "mnist:69990", specs, property="cr", threads=1, names=[SCRIPT] * 10)
    return replace(found, question=replace(found.question, model_name=PICTURE, image_name=PICTURE))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_every_format_without_markup(
    kind: str, result: Result, search: Result, many: Result, tmp_path: Path
) -> None:
    steps = 2 if kind in ("path", "strip") else None
    source, formats = {"visited": search, "sections": many}.get(kind, result), ["png", "svg", "pdf"]
    drawn = steadygaze.draw(kind, source, tmp_path / "new" / "figure.svg", formats=formats, steps=steps)
    assert [path.name for path in drawn] == ["figure.png", "figure.svg", "figure.pdf"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(path.name for path in drawn)
    with Image.open(drawn[0]) as picture:
        picture.verify()
    tags = {element.tag.rpartition("}")[2] for element in ET.parse(drawn[1]).iter()}
    assert not tags & {"script", "img", "foreignObject", "a"}
    assert b"<script>" not in drawn[1].read_bytes() and b"<img" not in drawn[1].read_bytes()
    assert drawn[2].read_bytes().startswith(b"%PDF-")
    assert b"/JavaScript" not in drawn[2].read_bytes() and b"/URI" not in drawn[2].read_bytes()


def test_no_file_is_replaced_unasked_and_a_pdf_has_the_same_bytes_every_time(result: Result, tmp_path: Path) -> None:
    (first,) = steadygaze.draw("tiling", result, tmp_path / "a", formats=["pdf"])
    before = first.read_bytes()
    first.write_bytes(b"mine")
    with pytest.raises(StoreError, match=r"a\.pdf: exists already"):
        steadygaze.draw("tiling", result, tmp_path / "a.png", formats=["pdf"])
    assert first.read_bytes() == b"mine"
    steadygaze.draw("tiling", result, tmp_path / "a", formats=["pdf"], force=True)
    assert first.read_bytes() == before


def test_stored_results_are_drawn_from_their_directories(tmp_path: Path) -> None:
    made_map = steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], threads=1)
    made_map.save(tmp_path / "map")
    made_search = steadygaze.search("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], method="gbs")
    made_search.save(tmp_path / "search")
    for kind, live, folder in (("tiling", made_map, "map"), ("visited", made_search, "search")):
        (one,) = steadygaze.draw(kind, live, tmp_path / f"{kind}-live")
        (other,) = steadygaze.draw(kind, tmp_path / folder, tmp_path / f"{kind}-stored")
        assert one.read_bytes() == other.read_bytes()
    assert len(steadygaze.draw("columns", [tmp_path / "map", made_map], tmp_path / "columns")) == 1


CASES = [
    ("pth", {}, r"unknown figure 'pth'. Did you mean path\?"),
    ("visited", {}, "visited needs a search, but the result is a map; use tiling"),
    ("path", {"at": [[0.2]]}, r"theta 0.2 is outside the domain \(brightness 0..0.1\); give a theta inside it"),
    ("path", {"at": [[0.0, 0.0]]}, r"theta 0,0 has 2 numbers for 1 parameters \(brightness\); give one for each"),
    ("path", {"at": [["a"]]}, "expected one number for each of"),
    ("path", {"at": [[0.1]] * 30}, "30 thetas given, but a figure shows up to 24"),
    ("path", {"at": [[float("nan")]]}, "outside the domain"),
    ("columns", {"at": [[0.2]]}, "outside the domain"),
    ("boundary", {"at": [[0.2]]}, "outside the domain"),
    ("strip", {"at": [[0.0], [0.1]]}, "strip takes one theta for the other parameters, but 2 are given"),
    ("strip", {"along": "patch"}, r"along 'patch' is not a parameter of this result; expected one of 1 \(brightness\)"),
    ("strip", {"along": "2"}, "is not a parameter"),
    ("strip", {"steps": 1}, "--steps is 1; expected a whole number from 2 to 24"),
    ("map", {"at": [[0.1]]}, "--at does not apply to map, only to path, strip, boundary, columns"),
    ("path", {"by": "cr"}, "--by does not apply to path, only to tiling"),
    ("tiling", {"by": "colour"}, "unknown --by 'colour'; expected cr, ar, both, pattern"),
    ("map", {"delta": "x"}, "delta 'x' is not a threshold"),
    ("map", {"formats": ["gif"]}, "unknown format 'gif'; expected png, svg, pdf"),
    ("map", {"formats": []}, "no format given"),
]


@pytest.mark.parametrize(("kind", "options", "complaint"), CASES)
def test_what_does_not_fit_is_refused(
    kind: str, options: dict[str, object], complaint: str, result: Result, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match=complaint):
        steadygaze.draw(kind, result, tmp_path / "figure", **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_searches_and_several_results_are_refused_where_they_do_not_fit(result: Result, search: Result) -> None:
    for kind in ("map", "path", "strip", "boundary", "columns"):
        with pytest.raises(
            OptionError, match=rf"{kind} needs a map or a refinement, but the result is a search \(gbs\)"
        ):
            make_figure(kind, search)
    with pytest.raises(OptionError, match=r"a search \(gbs\) answers only δ = 25%"):
        make_figure("tiling", search, delta=3.0)
    with pytest.raises(OptionError, match="map takes one result, but 2 are given; columns takes several"):
        make_figure("map", [result, result])
    other = steadygaze.verify("M-FNN-100", "mnist:69991", ["brightness:0..0.01"], threads=1)
    with pytest.raises(OptionError, match="columns compare networks on one image"):
        make_figure("columns", [result, other])


def test_labels_that_were_not_asked_for_are_refused() -> None:
    cr = steadygaze.search("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], method="gbs", property="cr")
    with pytest.raises(OptionError, match=r"this result did not measure the attention of its regions; use --by cr"):
        make_figure("tiling", cr, by="both")


def test_a_boundary_needs_zero_and_a_full_map(tmp_path: Path) -> None:
    away = steadygaze.verify("M-FNN-100", "mnist:69990", ["brightness:0.05..0.1"], threads=1)
    with pytest.raises(OptionError, match="theta = 0, which is not in the domain"):
        make_figure("boundary", away)
    for kind in ("path", "strip", "columns", "tiling"):
        assert make_figure(kind, away)


def test_a_line_through_a_map_of_three_parameters_meets_the_pieces_that_contain_it() -> None:
    specs = ["brightness:0..0.3", "patch:x=10,y=10,w=8,h=8:0..0.3", "translate:dx=1:0..0.3"]
    space = steadygaze.verify("M-FNN-100", "mnist:69995", specs, threads=1)
    assert isinstance(space, Result)
    for axis, theta in ((0, [0.0, 0.11, 0.0]), (1, [0.21, 0.0, 0.07]), (2, [0.05, 0.2, 0.0])):
        line = line_through(space.answer, axis, np.array(theta))
        assert line.low[0] == pytest.approx(0.0) and line.high[-1] == pytest.approx(1.0)
        assert np.allclose(line.high[:-1], line.low[1:])
        for low, high, region in zip(line.low, line.high, line.region, strict=True):
            if high - low > 1e-6:
                middle = space.question.compound.to_theta(line.points(np.array([0.5 * (low + high)])))[0]
                assert space.region_at(middle) == region


def test_paths_that_begin_at_zero_or_outside_of_it() -> None:
    away = Domain(("a", "b"), np.array([0.5, -1.0]), np.array([1.0, 0.25]))
    path = path_thetas(away, [], 3)
    assert path[0].tolist() == [0.5, 0.0] and path[-1].tolist() == [1.0, -1.0]
    start = np.array([0.5, 0.0])
    assert path_thetas(away, [start, np.array([1.0, 0.0])], 2).tolist() == [[0.5, 0.0], [1.0, 0.0]]
    assert path_thetas(away, [start], 5).tolist() == [[0.5, 0.0]]


def test_numbers_of_a_path_keep_off_it() -> None:
    dots = np.linspace([0.0, 0.0], [4.0, 4.0], 8)
    centres = dots + place_badges(dots, np.array([4.0, 4.0]), is_path=True)
    assert (np.abs(centres[:, 0] - centres[:, 1]) / np.sqrt(2.0)).min() > 0.14
