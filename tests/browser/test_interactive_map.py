"""The interactive map in Chromium: it shows the data of the result; controls, keys and links work."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from steadygaze.api import verify
from steadygaze.labels import Kept
from steadygaze.results.result import Result
from steadygaze.words import share_text
from support.browsing import Browser, random_thetas, running_browser

THETAS = ([0.3, 0.6], [0.02, 0.03], [0.9, 0.5], [0.995, 0.2])


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("pages")) as started:
        yield started


@pytest.fixture(scope="module")
def result() -> Result:
    return verify("M-FNN-100", "mnist:69990", ["brightness:0..1", "patch:x=10,y=10,w=5,h=5"], threads=1)


@pytest.fixture(scope="module")
def moving() -> Result:
    """The expected map moves, so regions are AR in part; δ is not one of the round steps."""
    return verify("M-FNN-100", "mnist:69998", ["translate:dx=2:-1..2", "brightness:0..0.4"], delta=3.0, threads=1)


@pytest.fixture(scope="module")
def page(browser: Browser, result: Result) -> Path:
    return browser.write(result)


@pytest.fixture(scope="module")
def moving_page(browser: Browser, moving: Result) -> Path:
    return browser.write(moving)


def test_a_click_shows_the_numbers_of_the_result(browser: Browser, page: Path, result: Result) -> None:
    with browser.reuse(page) as map:
        for theta in THETAS:
            map.click_theta(theta)
            chosen = np.array(map.ask("return map.state.theta"))
            # A click hits a pixel, so the point is that of the pixel.
            assert np.abs(chosen - theta).max() < 2e-3
            point = result.at(chosen)
            assert map.shown("margin") == pytest.approx(point.margin, abs=1e-4)
            assert map.shown("inconsistency") == pytest.approx(point.inconsistency, abs=1e-4)
            assert map.text('#sg-numbers dd[data-key="label"]').split()[0] == result.question.names[point.label]
            region = map.text("#sg-where").split("region ")[1].split()[0]
            assert int(region) == point.region
            names, values = (map.page.locator(f"#sg-logits {part}").all_inner_texts() for part in ("th", ".sg-value"))
            shown = {name: float(value.replace("−", "-")) for name, value in zip(names, values, strict=True)}
            for number, logit in enumerate(point.logits):
                assert shown[result.question.names[number]] == pytest.approx(logit, abs=1e-3)


def test_bounds_in_words_are_rounded_so_that_they_hold(browser: Browser, page: Path, result: Result) -> None:
    with browser.open(page) as map:
        for theta in random_thetas(result, 40).tolist():
            lines, margin, reach = map.ask(
                "const found = map.locate(given), { margin, reach } = map.arrays, two = (all, n) =>"
                " Array.from(all.slice(2 * n, 2 * n + 2));"
                "return [map.proved(given).map((line) => line.text), two(margin, found.piece), two(reach, found.unit)]",
                theta,
            )
            said = " ".join(lines).replace("−", "-")
            for word, low in re.findall(r"(margin|inconsistency) (?:is )?(?:at least|between) (-?[\d.e-]+\d)", said):
                assert float(low) <= {"margin": margin, "inconsistency": reach}[word][0]
            for high in re.findall(r"margin at most (-?[\d.e-]+\d)", said):
                assert float(high) >= margin[1]
            for high in re.findall(r"between [\d.e-]+ and ([\d.e-]+\d)", said):
                assert float(high) >= reach[1]


def test_a_narrow_window_does_not_scroll_sideways(browser: Browser, page: Path) -> None:
    with browser.open(page, width=320) as map:
        assert map.ask("return document.documentElement.scrollWidth - innerWidth") <= 0


def test_pictures_are_those_of_the_point(browser: Browser, page: Path, result: Result) -> None:
    with browser.reuse(page) as map:
        map.ask("map.select([0.3, 0.6])")
        point = result.at([0.3, 0.6])
        pixels = map.ask(
            "const c = document.getElementById('sg-image'); return [c.width, c.height,"
            " Array.from(c.getContext('2d').getImageData(0, 0, c.width, c.height).data)]"
        )
        grey = np.array(pixels[2]).reshape(pixels[1], pixels[0], 4)[..., 0]
        np.testing.assert_allclose(grey, 255 * point.image[0], atol=0.51)
        # Red where the actual map is large, blue where it is small; another class gives another picture.
        script = (
            "const c = document.getElementById('sg-actual');"
            " return Array.from(c.getContext('2d').getImageData(0, 0, c.width, c.height).data)"
        )
        first = np.array(map.ask(script)).reshape(28, 28, 4).astype(int)
        shown = point.actual[result.label].sum(axis=0)
        red = first[..., 0] - first[..., 2]
        assert red[np.unravel_index(shown.argmax(), shown.shape)] > 50
        assert red[np.unravel_index(shown.argmin(), shown.shape)] < -50
        map.page.select_option("#sg-class", "3")
        assert (np.array(map.ask(script)).reshape(28, 28, 4) != first).any()
        distance = np.linalg.norm(point.actual[3] - point.expected[3])
        assert map.shown("distance") == pytest.approx(distance, abs=1e-4)


@pytest.mark.parametrize("name", ["result", "moving"])
def test_areas_at_every_step_are_those_of_the_result(
    browser: Browser, name: str, request: pytest.FixtureRequest
) -> None:
    result: Result = request.getfixturevalue(name)
    page: Path = request.getfixturevalue("page" if name == "result" else "moving_page")
    with browser.reuse(page) as map:
        texts, deltas = map.ask("return [map.facts.texts, map.facts.deltas]")
        chosen = map.ask("return map.facts.chosen")
        assert texts[chosen] == str(result.threshold) and deltas[chosen] == pytest.approx(result.answer.delta)
        for step in range(0, len(texts), 17):
            map.ask("map.setStep(given)", step)
            areas, wanted = map.ask("return map.areas()"), result.with_delta(texts[step]).areas
            for key, bounds in wanted.items():
                np.testing.assert_allclose(areas[key], bounds, atol=1e-6)
            shown = map.text('[data-area="CR&IR"]')
            assert float(shown.replace("%", "").split(" to ")[0]) == pytest.approx(100 * wanted["CR&IR"][0], abs=0.0101)


def test_the_slider_recolours_the_map(browser: Browser, page: Path, result: Result) -> None:
    with browser.reuse(page) as map:
        map.page.focus("#sg-step")
        before = map.ask("return map.state.step")
        for _ in range(10):
            map.page.keyboard.press("ArrowRight")
        step = map.ask("return map.state.step")
        assert step == before + 10
        assert map.page.get_attribute("#sg-step", "aria-valuetext") == map.text("#sg-delta-text")
        _check_colours(map, result.with_delta(map.ask("return map.facts.texts[map.state.step]")))
        map.page.click("#sg-own-delta")
        _check_colours(map, result)


def test_colours_of_moving_maps_are_those_of_the_pieces(browser: Browser, moving_page: Path, moving: Result) -> None:
    with browser.reuse(moving_page) as map:
        for text in ("3", "50%", "100%"):
            map.ask("map.setStep(map.facts.texts.indexOf(given))", text)
            _check_colours(map, moving.with_delta(text))


def _check_colours(map, result: Result) -> None:  # type: ignore[no-untyped-def]
    """Compare labels at the centres of pieces, and the pixels drawn at the centres of large ones, with the result."""
    joint, compound = result.answer.joint, result.question.compound
    label, attention = joint.label_codes, joint.attention_codes
    chosen = np.argsort(-joint.polytopes.volumes)[:: max(1, len(label) // 200)]
    thetas = compound.to_theta(joint.polytopes.centres[chosen])
    found = map.ask(
        "return given.map((theta) => { const f = map.locate(theta); return [f.label, f.attention]; })", thetas.tolist()
    )
    np.testing.assert_array_equal(found, np.stack([label[chosen], attention[chosen]], axis=1))
    palette = map.ask("return map.facts.palette.named")
    names = ["CR&AR", "CR&IR", "MR&AR", "MR&IR"]
    large = chosen[:8]
    pixels = map.ask(
        """
        map.setView("joint");
        map.state.outlines = false;
        map.draw();
        const { image, x, y, dw, dh } = map.source("sg-picture").data, [h, w] = image[0].shape;
        return given.map((theta) => {
          const [px, py] = map.drawnAt(theta);
          const i = Math.floor(((px - x[0]) / dw[0]) * w), j = Math.floor(((py - y[0]) / dh[0]) * h);
          return image[0][Math.min(j, h - 1) * w + Math.min(i, w - 1)];
        });
        """,
        compound.to_theta(joint.polytopes.centres[large]).tolist(),
    )
    for piece, pixel in zip(large, pixels, strict=True):
        if Kept.UNKNOWN in (label[piece], attention[piece]):
            continue
        colour = palette[names[2 * (label[piece] != Kept.YES) + (attention[piece] != Kept.YES)]]
        rgb = f"#{pixel & 255:02x}{(pixel >> 8) & 255:02x}{(pixel >> 16) & 255:02x}"
        assert rgb == colour


def test_views_switch_and_each_has_its_legend(browser: Browser, page: Path) -> None:
    with browser.reuse(page) as map:
        legends = {}
        for view in ("Classification", "Attention", "Both", "Inconsistency"):
            map.page.get_by_label(view, exact=True).check()
            legends[view] = map.text("#sg-legend")
        assert len(set(legends.values())) == 4
        assert "label kept: 7" in legends["Classification"] and "to 9" in legends["Classification"]
        assert "differs by" in legends["Attention"] and "CR&IR" in legends["Both"]
        # By keyboard: radio buttons move with the arrow keys.
        map.page.get_by_label("Inconsistency", exact=True).focus()
        map.page.keyboard.press("ArrowLeft")
        assert map.ask("return map.state.view") == "joint"


def test_keys_move_the_point_and_zoom(browser: Browser, page: Path) -> None:
    with browser.reuse(page) as map:
        map.page.focus("#sg-focus")
        for key in ("Shift+ArrowRight", "Shift+ArrowRight", "ArrowUp", "ArrowUp", "ArrowDown"):
            map.page.keyboard.press(key)
        assert map.ask("return map.state.theta") == pytest.approx([0.2, 0.01])
        told = map.text("#sg-live")
        assert "brightness 0.2" in told and "predicts" in told and "CR" in told
        map.page.keyboard.press("+")
        low, high = map.ask("return [map.figure.x_range.start, map.figure.x_range.end]")
        assert high - low == pytest.approx(1 / 1.5) and low <= 0.2 <= high
        map.page.keyboard.press("0")
        assert map.ask("return [map.figure.x_range.start, map.figure.x_range.end]") == [0, 1]
        map.page.keyboard.press("Home")
        assert map.ask("return map.state.theta") == [0, 0]
        map.page.keyboard.press("ArrowLeft")
        assert map.ask("return map.state.theta") == [0, 0]


def test_a_link_carries_theta_view_and_threshold(browser: Browser, page: Path) -> None:
    with browser.reuse(page) as map:
        map.ask("map.select([0.25, 0.125]); map.setView('attention'); map.setStep(map.facts.texts.indexOf('40%'))")
        link = map.page.get_attribute("#sg-link", "href")
        assert map.page.evaluate("location.hash") == link
    assert link is not None
    with browser.open(page, link) as map:
        state = map.ask("return map.state")
        assert state["theta"] == [0.25, 0.125] and state["view"] == "attention"
        assert map.text("#sg-delta-text").endswith("(40 % of the original maps' size)")
        assert map.page.get_by_label("Attention", exact=True).is_checked()
        map.page.evaluate("location.hash = '#theta=0.5,0.75'")
        map.page.wait_for_function("steadygaze.state.theta[0] === 0.5")
        map.page.evaluate("location.hash = '#theta=nonsense&view=none&delta=x'")
        assert map.ask("return map.state.theta") == [0.5, 0.75]


def test_theta_can_be_typed_and_is_kept_in_the_domain(browser: Browser, page: Path, result: Result) -> None:
    with browser.reuse(page) as map:
        map.page.fill("#sg-theta input[data-axis='0']", "0.35")
        map.page.keyboard.press("Tab")
        map.page.fill("#sg-theta input[data-axis='1']", "7")
        map.page.keyboard.press("Enter")
        assert map.ask("return map.state.theta") == [0.35, 1]
        assert map.shown("margin") == pytest.approx(result.at([0.35, 1.0]).margin, abs=1e-4)


def test_hovering_shows_a_point_and_leaving_shows_the_selected_one(
    browser: Browser, page: Path, result: Result
) -> None:
    with browser.reuse(page) as map:
        map.click_theta([0.5, 0.5])
        selected = map.text("#sg-proved")
        box = map.page.locator("#sg-figure").bounding_box()
        map.page.mouse.move(box["x"] + 90, box["y"] + 480)
        map.page.wait_for_function("document.getElementById('sg-where').textContent.startsWith('Pointer')")
        hover = map.ask("return map.state.hover")
        assert map.shown("margin") == pytest.approx(result.at(hover).margin, abs=1e-4)
        map.page.mouse.move(5, 5)
        map.page.wait_for_function("document.getElementById('sg-where').textContent.startsWith('Selected')")
        assert map.text("#sg-proved") == selected


def test_what_is_said_to_be_proved_is(browser: Browser, page: Path, result: Result) -> None:
    with browser.reuse(page) as map:
        thetas = random_thetas(result, 40, seed=4)
        said = map.ask("return given.map((theta) => map.proved(theta))", thetas.tolist())
        for theta, (first, second) in zip(thetas, said, strict=True):
            region = result.regions[result.region_at(theta)]
            point = result.at(theta)
            assert first["label"] == ("CR" if point.label == result.label else "MR")
            assert second["label"] == region.attention
            assert "proved by regions" in first["text"] and "proved by regions" in second["text"]


def test_bounds_are_rounded_so_that_they_hold(browser: Browser, page: Path) -> None:
    with browser.open(page) as map:
        draw = np.random.default_rng(5)
        values = [1.0, 99999.6, -0.0999996, *(draw.normal(size=100) * 10.0 ** draw.integers(-8, 8, 100)).tolist()]
        texts = map.ask("return given.map((v) => [SgPanel.bound(v, false, 5), SgPanel.bound(v, true, 5)])", values)
        for value, bounds in zip(values, texts, strict=True):
            low, high = (float(text.replace("−", "-")) for text in bounds)
            assert low <= value <= high and high - low <= 1.01e-4 * abs(value)
        assert texts[0] == ["1", "1"]


def test_shares_read_as_in_the_terminal(browser: Browser, page: Path) -> None:
    draw = np.random.default_rng(6)
    low = draw.random(300) * 10.0 ** draw.integers(-8, 1, 300)
    high = np.minimum(low + draw.random(300) * 10.0 ** draw.integers(-12, 1, 300), 1.0)
    pairs = [[0.12434, 0.124345], [1e-6, 1.5e-6], [0.0, 2e-9], [0.0, 0.0], [1.0, 1.0], [0.9999999, 1.0], [9.98e-6, 0.5]]
    pairs += np.stack([low, high], axis=1).tolist()
    with browser.open(page) as map:
        assert map.ask("return given.map(SgPanel.bounds)", pairs) == [share_text(*pair) for pair in pairs]


def test_zooming_draws_the_part_that_is_shown(browser: Browser, page: Path) -> None:
    with browser.reuse(page) as map:
        size, left, width = map.ask(
            """
            map.select([0.3, 0.5]);
            map.zoom(0.2);
            await new Promise((done) => setTimeout(done, 200));
            const { image, x, dw } = map.source("sg-picture").data, [w, h] = map.frameSize();
            return [[image[0].shape, [Math.round(h), Math.round(w)]], x[0], dw[0]];
            """
        )
        assert size[0] == size[1] and left == pytest.approx(0.2) and width == pytest.approx(0.2)
