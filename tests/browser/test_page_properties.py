"""The page repeats `Result.at` for every property of attention; the mask of the object moves with the image."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from steadygaze.api import verify
from support.browsing import Browser, running_browser

MOVED = ["brightness:-0.1..0.2", "translate:dx=2:0..1.5"]
TURNED = ["rotate:-5..5", "scale:0.95..1.05"]
SHIFTED = ["shift:dx=2,dy=2,interp=triangle:-1..1.5"]
KEPT = ["brightness:0..0.3", "patch:x=10,y=10,w=5,h=5:0..0.3"]
MASK = "auto:bright=0.2,grow=1"
ASKED: dict[str, dict[str, Any]] = {
    "distance": {"delta": "50%"},
    "object": {"tau": "0.48", "mask": MASK},
    "pointing": {"mask": MASK},
    "alike": {"gamma": 0.9},
    "topk": {"top": "30:0.8"},
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("pages")) as started:
        yield started


@pytest.mark.parametrize("specs", [MOVED, KEPT], ids=["moved", "kept"])
@pytest.mark.parametrize("name", ASKED)
def test_page_repeats_the_definition(browser: Browser, name: str, specs: list[str]) -> None:
    result = verify("M-FNN-100", "mnist:69990", specs, attention=name, **ASKED[name])
    low, high = result.question.perturbed.domain.low, result.question.perturbed.domain.high
    measure = result.question.attention.measure
    with browser.open(result) as map:
        for theta in np.random.default_rng(0).uniform(low, high, (12, 2)):
            point, shown = result.at(theta), map.ask("return map.at(given)", theta.tolist())
            assert shown["inconsistency"] == pytest.approx(point.inconsistency, abs=1e-5)
            assert shown["label"] == point.label
            is_kept = point.inconsistency <= result.answer.delta
            words = [line["label"] for line in map.ask("return map.proved(given)", theta.tolist())]
            assert ("AR" if is_kept else "IR") in words or "undecided" in words
            if point.weights is not None:
                weights = map.ask("return [...map.at(given).weights]", theta.tolist())
                np.testing.assert_allclose(weights, point.weights.ravel(), atol=1e-9)
        texts = map.ask("return map.facts.texts")
        for step in range(0, len(texts), 30):
            map.ask("map.setStep(given)", step)
            other = result.with_threshold(texts[step]) if measure.option else result
            areas = map.ask("return map.areas()")
            for area, bounds in other.areas.items():
                np.testing.assert_allclose(areas[area], bounds, atol=2e-6)
        assert measure.noun in map.text("#sg-numbers")


@pytest.mark.parametrize("specs", [TURNED, SHIFTED], ids=["turned", "shifted"])
def test_masks_move_along_several_parameters(browser: Browser, specs: list[str]) -> None:
    """Image, expected map and mask of a curved movement, and of one on triangles, are computed as `at` does."""
    result = verify("M-FNN-100", "mnist:69990", specs, attention="object", until=0.9, **ASKED["object"])
    domain = result.question.perturbed.domain
    with browser.open(result) as map:
        for theta in np.random.default_rng(0).uniform(domain.low, domain.high, (5, 2)):
            point, shown = result.at(theta), map.ask("return map.at(given)", theta.tolist())
            assert shown["inconsistency"] == pytest.approx(point.inconsistency, abs=1e-5)
            weights = map.ask("return [...map.at(given).weights]", theta.tolist())
            np.testing.assert_allclose(weights, point.weights.ravel(), atol=1e-9)


def test_slider_and_outline(browser: Browser) -> None:
    """No slider without a threshold; with a mask, pictures are enlarged and carry its outline."""
    result = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.2"], attention="pointing", mask=MASK)
    with browser.open(result) as map:
        assert map.page.query_selector("#sg-step") is None
        assert map.page.eval_on_selector("#sg-actual", "canvas => canvas.width") == 8 * 28
        script = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data"
        pixels = np.array(list(map.page.eval_on_selector("#sg-image", f"canvas => [...({script})(canvas)]")))
        assert (pixels.reshape(-1, 4)[:, :3] == [0x0A, 0x9D, 0x4E]).all(axis=1).any()
    plain = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.2"], attention="alike")
    with browser.open(plain) as map:
        assert map.page.eval_on_selector("#sg-actual", "canvas => canvas.width") == 28
