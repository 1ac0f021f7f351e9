"""Results in interactive sessions: short texts, HTML, axes of the caller, tables of other libraries."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import steadygaze
from steadygaze import OptionError, Result, Verdict
from steadygaze.labels import Status
from steadygaze.results.export import make_columns

QUESTION = ("M-FNN-100", "mnist:69990", ["brightness:0..0.3"])


@pytest.fixture(scope="module")
def result() -> Result:
    return steadygaze.verify(*QUESTION)


@pytest.fixture(scope="module")
def found() -> Result:
    return steadygaze.search(*QUESTION, method="gbs")


class TestTexts:
    def test_a_result_is_three_lines(self, result: Result, found: Result):
        for one in (result, found):
            lines = repr(one).splitlines()
            assert len(lines) == 3 and all(len(line) < 200 for line in lines)
            assert "M-FNN-100 predicts 7 for mnist:69990" in lines[0] and "brightness 0..0.3" in lines[1]
        assert repr(result).startswith("Result: NOT ROBUST") and "CR 100 %" in repr(result).splitlines()[2]

    def test_parts_of_a_result_are_short(self, result: Result):
        for part in (result.question, result.question.model, result.at([0.1]), result.witnesses[0]):
            assert len(repr(part)) < 300 and "\n" not in repr(part)
        assert len(repr(steadygaze.compare([result, result.with_delta(3.0)]))) < 300

    def test_names_of_users_stay_on_their_lines(self, result: Result):
        from dataclasses import replace

        named = replace(result, question=replace(result.question, model_name="a\nb" * 200, image_name="\x1b[31m"))
        assert len(repr(named).splitlines()) == 3 and "\x1b" not in repr(named)

    def test_a_threshold_without_an_answer_is_no_error_here(self, result: Result, monkeypatch: pytest.MonkeyPatch):
        def refuse(self: Result) -> None:
            raise OptionError("no answer")

        monkeypatch.setattr(Result, "verdict", property(refuse))
        assert "NO ANSWER" in repr(result.with_delta(3.0))


def test_a_verdict_is_its_word(result: Result):
    for word in ("robust", "not robust", "undecided"):
        verdict = Verdict(word)
        assert str(verdict) == f"{verdict}" == word == verdict and hash(verdict) == hash(word)
        assert {word: 1}[verdict] == 1 and verdict != "Robust"
    assert str(Status.NOT_ROBUST) == "NotRobust" and result.verdict == "not robust"


def test_a_requirement_is_judged_by_proved_bounds(result: Result):
    assert result.judge("CR >= 100%") == "met"
    assert result.judge("CR&AR >= 0.99") == "not met" and result.judge("robust") == "not met"
    with pytest.raises(OptionError, match="requirement 'much'"):
        result.judge("much")


class TestHtml:
    def test_picture_and_shares(self, result: Result):
        html = result._repr_html_()
        assert "data:image/png;base64," in html and "CR&amp;IR" in html and "<script" not in html

    def test_a_search_shows_counts(self, found: Result):
        assert "data:image/png" in found._repr_html_() and "label kept" in found._repr_html_()

    def test_names_are_escaped(self, result: Result):
        from dataclasses import replace

        named = replace(result, question=replace(result.question, model_name="<b>x</b>"))
        assert "<b>x</b>" not in named._repr_html_()

    def test_the_map_is_in_a_frame_that_may_contact_nothing(self, result: Result):
        html = result.show_map(height=500)._repr_html_()
        assert 'height="500"' in html and 'sandbox="allow-scripts"' in html
        assert (
            "default-src &amp;#39;none&amp;#39;" in html and '"' not in html.split('srcdoc="')[1].split('" sandbox')[0]
        )
        assert len(repr(result.show_map())) < 100

    def test_a_search_has_no_map(self, found: Result):
        with pytest.raises(OptionError, match="no interactive map"):
            found.show_map()


class TestAxes:
    @pytest.mark.parametrize("by", ["cr", "ar", "both"])
    def test_a_view_is_drawn_into_the_axes_given(self, result: Result, by: str):
        axes = Figure().add_subplot()
        assert result.plot(ax=axes, by=by) is axes
        assert axes.get_xlim() == (0.0, 0.3) and axes.get_xlabel() == "brightness"
        assert axes.get_legend() is not None and (axes.collections or axes.images)

    def test_the_default_is_the_property_asked(self, found: Result):
        axes = Figure().add_subplot()
        found.plot(ax=axes)
        assert axes.get_title() == "Both together"

    def test_without_a_place_the_figure_is_returned(self, result: Result):
        assert isinstance(result.plot(), Figure)

    def test_wrong_wishes_are_refused(self, result: Result, tmp_path):
        axes = Figure().add_subplot()
        for wishes, words in (
            ({"path": tmp_path / "x", "ax": axes}, "not both"),
            ({"by": "cr"}, "give axes"),
            ({"ax": axes, "by": "pattern"}, "expected cr, ar, both"),
        ):
            with pytest.raises(OptionError, match=words):
                result.plot(**wishes)


class TestTables:
    def test_pandas(self, result: Result):
        pytest.importorskip("pandas")
        frame = result.to_pandas()
        assert list(frame.columns) == [column.name for column in make_columns(1)]
        assert len(frame) == result.region_count and frame["share"].sum() == pytest.approx(1.0)
        assert frame.attrs["steadygaze"]["label"] == 7
        assert set(result.to_pandas("pieces")["attention"]) == {"AR", "IR"}

    def test_arrow_is_the_parquet_file(self, result: Result, tmp_path):
        parquet = pytest.importorskip("pyarrow.parquet")
        steadygaze.export(result, tmp_path / "regions.parquet", format="parquet")
        table, stored = result.to_arrow(), parquet.read_table(tmp_path / "regions.parquet")
        assert table.to_pylist() == stored.to_pylist() and table.schema.names == stored.schema.names
        assert table.schema.metadata[b"steadygaze"] == stored.schema.metadata[b"steadygaze"]

    def test_geopandas(self, result: Result):
        pytest.importorskip("geopandas")
        frame = result.to_geopandas()
        assert frame.geometry.length.sum() == pytest.approx(0.3) and "vertices" not in frame.columns

    @pytest.mark.parametrize(
        ("library", "method", "extra"),
        [("pandas", "to_pandas", "frames"), ("geopandas", "to_geopandas", "frames"), ("pyarrow", "to_arrow", "export")],
    )
    def test_a_missing_library_is_one_line(
        self, result: Result, monkeypatch: pytest.MonkeyPatch, library: str, method: str, extra: str
    ):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(OptionError, match=rf"{library} is not installed.*'\.\[{extra}\]'") as refused:
            getattr(result, method)()
        assert "\n" not in str(refused.value)


class TestOtherObjects:
    @pytest.mark.parametrize(
        ("model", "image", "perturbations", "words"),
        [
            (object(), "mnist:69990", "brightness", "model: received object; expected an .onnx file"),
            ("x" * 100_000, "mnist:69990", "brightness", "no bundled network"),
            ("M-FNN-100", {"a": 1}, "brightness", "image: received dict; expected a PNG"),
            ("M-FNN-100", [[1.0], [1.0, 2.0]], "brightness", "image: received list"),
            ("M-FNN-100", "mnist:69990", 5, "perturbation: received int; expected a spec"),
            ("M-FNN-100", "mnist:69990", [np.zeros(3)], "perturbation: received ndarray"),
        ],
    )
    def test_one_line_says_what_to_do(self, model, image, perturbations, words):
        with pytest.raises(steadygaze.SteadygazeError) as refused:
            steadygaze.verify(model, image, perturbations)
        assert str(refused.value).startswith(words) and "\n" not in str(refused.value)
        assert len(str(refused.value)) < 2000
