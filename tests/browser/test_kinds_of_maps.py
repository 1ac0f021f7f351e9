"""The interactive map of every kind of result: one and three parameters, boxes, parts, merged areas, stored points."""

from collections.abc import Iterator

import numpy as np
import pytest

from steadygaze.api import verify
from steadygaze.budget import Budget, Limits
from steadygaze.engines.refine.boxes import State
from steadygaze.engines.refine.merged_answer import box_at
from steadygaze.labels import Kept
from steadygaze.report.page import explorer, network_data
from steadygaze.report.page.explorer import make_explorer
from steadygaze.report.thresholds import make_thresholds
from steadygaze.results.result import Result
from support.browsing import Browser, random_thetas, running_browser

BP = ["brightness:0..1", "patch:x=10,y=10,w=5,h=5"]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("pages")) as started:
        yield started


def check_areas(map, result: Result, every: int = 40) -> None:  # type: ignore[no-untyped-def]
    """The shares at some steps of the slider are those of the result."""
    texts = map.ask("return map.facts.texts")
    for step in range(0, len(texts), every):
        map.ask("map.setStep(given)", step)
        areas = map.ask("return map.areas()")
        for name, bounds in result.with_delta(texts[step]).areas.items():
            np.testing.assert_allclose(areas[name], bounds, atol=1e-6)


def test_one_parameter_has_profiles(browser: Browser) -> None:
    result = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.3"])
    with browser.open(result) as map:
        check_areas(map, result)
        map.ask("map.setStep(map.facts.chosen)")
        assert map.ask("return map.model('sg-inconsistency-level').location") == pytest.approx(result.answer.delta)
        map.click_theta([0.26])
        (theta,) = map.ask("return map.state.theta")
        assert theta == pytest.approx(0.26, abs=2e-3)
        assert map.ask("return map.model('sg-margin-at').location") == theta
        assert map.shown("inconsistency") == pytest.approx(result.at([theta]).inconsistency, abs=1e-4)
        map.page.focus("#sg-focus")
        map.page.keyboard.press("ArrowUp")
        assert map.ask("return map.state.theta") == [theta]
        map.page.keyboard.press("ArrowLeft")
        assert map.ask("return map.state.theta")[0] == pytest.approx(theta - 0.003)


def test_three_parameters_have_sections(browser: Browser) -> None:
    result = verify(
        "M-FNN-100", "mnist:69990", ["brightness:0..0.1", "patch:x=10,y=10,w=5,h=5:0..0.1", "translate:dx=1:0..0.1"]
    )
    draw = np.random.default_rng(0)
    with browser.open(result) as map:
        check_areas(map, result)
        planes = map.ask("return map.facts.planes")
        assert {plane["held"]["axis"] for plane in planes} == {0, 1, 2}
        for index in draw.choice(len(planes), 6, replace=False).tolist():
            map.ask("map.setPlane(given); map.setStep(map.facts.chosen)", index)
            held = planes[index]["held"]
            assert map.text("#sg-plane-text").startswith("= ")
            theta = draw.uniform(0.001, 0.099, 3)
            theta[held["axis"]] = result.question.compound.domain.widths[held["axis"]] * held["t"]
            found = map.ask("return map.locate(given)", theta.tolist())
            assert found["unit"] == result.region_at(theta)
            region = result.regions[found["unit"]]
            inside = result.at(theta)
            assert {0: "CR", 1: "undecided", 2: "MR"}[found["label"]] in (region.classification, "CR", "MR")
            assert (found["attention"] == Kept.YES) == (inside.inconsistency <= result.answer.delta)
        # A theta of another plane brings its plane along, and a click stays in the plane.
        map.page.select_option("#sg-held", "0")
        map.click_theta([0.0, 0.05, 0.03])
        assert map.ask("return map.state.theta")[0] == map.ask("return map.facts.planes[map.state.plane].held.value")


def test_boxes_say_that_bounds_proved_them(browser: Browser) -> None:
    result = verify("M-CNN-S", "mnist:69990", BP, method="refine", delta="50%", until=0.02, threads=1)
    with browser.open(result) as map:
        check_areas(map, result)
        map.ask("map.setStep(map.facts.chosen)")
        kinds = set()
        thetas = random_thetas(result, 60)
        said = map.ask("return given.map((theta) => [map.locate(theta), ...map.proved(theta)])", thetas.tolist())
        for theta, (found, first, second) in zip(thetas, said, strict=True):
            box = box_at(result.question.compound, result.tiling.boxes, theta)
            if result.tiling.boxes.state[box] == State.EXACT:
                assert found["unit"] == len(result.tiling.boxes) + result.region_at(theta)
            else:
                assert found["unit"] == box and found["isBox"]
                label = {Kept.YES: "CR", Kept.NO: "MR"}.get(result.answer.label_codes[box], "undecided")
                attention = {Kept.YES: "AR", Kept.NO: "IR"}.get(result.answer.attention_codes[box], "undecided")
                assert (first["label"], second["label"]) == (label, attention)
                assert "exactly" not in first["text"] + second["text"]
            kinds.add(int(result.tiling.boxes.state[box]))
        assert State.BOUNDED in kinds


def test_label_alone_shows_no_attention(browser: Browser) -> None:
    result = verify("M-FNN-100", "mnist:69990", BP, method="refine", property="cr", threads=1)
    with browser.open(result) as map:
        assert map.page.locator("#sg-step").count() == 0
        assert map.ask("return [map.state.view, map.views]") == ["classification", ["classification"]]
        map.click_theta([0.3, 0.6])
        assert "not measured" in map.text("#sg-proved") and "inconsistency" not in map.text("#sg-numbers")


def test_unreached_parts_are_reported(browser: Browser) -> None:
    budget = Budget(Limits(max_regions=3000))
    result = verify(
        "M-FNN-100", "mnist:69998", ["translate:dx=1", "brightness"], budget=budget, method="map", threads=1
    )
    assert result.stopped is not None
    with browser.open(result) as map:
        check_areas(map, result)
        missing = [theta for theta in random_thetas(result, 200) if result.region_at(theta) is None]
        assert missing
        map.ask("map.select(given)", missing[0].tolist())
        assert "not reached" in map.text("#sg-proved") and "not reached" in map.text("#sg-legend")
        assert map.shown("margin") == pytest.approx(result.at(missing[0]).margin, abs=1e-4)


@pytest.mark.parametrize("specs", [BP, ["translate:dx=1", "brightness:0..0.3"]])
def test_large_maps_are_merged_and_say_so(browser: Browser, specs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "MOST_UNITS", 100)
    result = verify("M-FNN-100", "mnist:69990", specs, threads=1)
    with browser.open(result) as map:
        assert "merged" in map.text(".sg-note")
        check_areas(map, result)
        texts = map.ask("return map.facts.texts")
        side = map.ask("return map.facts.gridSide")
        aside = np.array([2.0**-0.5, 3.0**-0.5])
        compound = result.question.compound
        draw = np.random.default_rng(1)
        for step in (len(texts) // 4, map.ask("return map.facts.chosen"), len(texts) // 2):
            map.ask("map.setStep(given)", step)
            other = result.with_delta(texts[step])
            # At the points of the grid that were looked at, the label is that of the piece there.
            cells = draw.integers(0, side, (40, 2))
            thetas = compound.to_theta((cells + aside) / side)
            places = map.ask("return given.map((theta) => map.locate(theta))", thetas.tolist())
            for theta, found in zip(thetas, places, strict=True):
                point = other.at(theta)
                if found["label"] != Kept.UNKNOWN:
                    assert (found["label"] == Kept.YES) == (point.label == result.label)
                if found["attention"] != Kept.UNKNOWN:
                    assert (found["attention"] == Kept.YES) == (point.inconsistency <= other.answer.delta)
        map.ask("map.setStep(map.facts.chosen); map.setView('joint')")
        assert map.ask("return map.source('sg-lines').data.x0.length") > 0
        map.click_theta(compound.to_theta(np.array([[0.4, 0.4]]))[0].tolist())
        assert "nearest point of the grid" in map.text("#sg-proved")


def test_large_networks_show_stored_points(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_data, "MOST_BYTES", 1000)
    result = verify("M-FNN-100", "mnist:69990", BP, threads=1)
    with browser.open(result) as map:
        assert "nearest of them" in map.text(".sg-note")
        point = map.ask(
            "const p = map.at([0.26, 0.51]); return { ...p, logits: [...p.logits], actual: [...p.actual[0]] }"
        )
        theta = np.array(point["theta"])
        assert np.abs(theta - [0.25, 0.5]).max() < 0.05
        wanted = result.at(theta)
        np.testing.assert_allclose(point["logits"], wanted.logits)
        assert point["inconsistency"] == pytest.approx(wanted.inconsistency)
        step = np.abs(wanted.actual[result.label].sum(axis=0)).max() / 127
        np.testing.assert_allclose(point["actual"], wanted.actual[result.label].sum(axis=0).ravel(), atol=0.51 * step)
        map.click_theta([0.3, 0.6])
        assert "nearest stored theta" in map.text("#sg-where")
        assert "proved by regions" in map.text("#sg-proved")


def test_hostile_names_do_nothing(browser: Browser) -> None:
    names = [f"{HOSTILE}{number}" for number in range(9)] + ["$$x$$"]
    result = verify("M-FNN-100", "mnist:69990", BP, names=names, threads=1)
    with browser.open(result) as map:
        for view in ("classification", "attention", "joint", "inconsistency"):
            map.ask("map.setView(given)", view)
        map.click_theta([0.3, 0.6])
        assert names[0] in map.page.locator("#sg-class option").all_inner_texts()
        assert names[7] in map.text("#sg-logits")
        assert map.page.locator("#sg-explorer img").count() == 0


def test_a_narrow_window_has_one_column(browser: Browser) -> None:
    result = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1", "patch:x=10,y=10,w=5,h=5"], threads=1)
    with browser.open(result, width=420) as map:
        assert map.page.evaluate("document.documentElement.scrollWidth") <= 420
        map.click_theta([0.05, 0.5])
        assert map.ask("return map.state.theta") == pytest.approx([0.05, 0.5], abs=5e-3)


def test_four_parameters_have_no_map() -> None:
    specs = ["brightness:0..0.01", "patch:x=1,y=1,w=2,h=2:0..0.01", "patch:x=9,y=9,w=2,h=2:0..0.01", "darkness:0..0.01"]
    result = verify("M-FNN-100", "mnist:69990", specs, method="refine", property="cr")
    assert make_explorer(result, make_thresholds(result)) is None
