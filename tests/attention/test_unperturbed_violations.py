"""Attention that the unperturbed image already lacks: sentences of the verdict, and pictures of losses."""

import numpy as np
import pytest

from steadygaze.report.drawing.exhibits import ShownMaps
from steadygaze.report.figures.strip import strip_along
from steadygaze.results.description import find_kept_range, range_sentences, verdict_sentences
from steadygaze.results.summary import summarise
from support.networks.layered_models import ask

IMAGE = np.array([[[0.5, 0.25, 0.0]]])
# The gradient of the first logit is (1, 2, 1), and 0 from brightness 0.25 on.
DYING = [([[-1.0, -2.0, -1.0], [0.0, 0.0, 0.0]], [2.0, 0.0]), ([[-1.0, 0.0], [0.0, 0.0]], [0.0, -9.0])]
ASKED = {"attention": "object", "mask": np.array([[1.0, 0.0, 0.0]]), "property": "ar"}


def sentences(result):
    summary = summarise(result)
    return verdict_sentences(summary, range_sentences(summary, find_kept_range(result, summary.property)))


@pytest.mark.parametrize("method", ["map", "refine"])
def test_too_little_attention_from_the_start_is_said_at_once(method):
    found = sentences(ask(DYING, IMAGE, ["brightness:0..0.2"], method=method, tau=0.5, **ASKED))
    assert "Even the unperturbed image violates the attention: 25 % of the gradient's mass is on the object." in found
    assert not any("nearest known" in text or "tiny range" in text for text in found)
    found = sentences(ask(DYING, IMAGE, ["brightness:0..0.8"], method=method, tau=0.2, **ASKED))
    assert not any("Already" in text for text in found) and any("nearest known violation" in text for text in found)


def test_strips_draw_shares_of_at_most_all():
    result = ask(DYING, IMAGE, ["brightness:0..0.8"], method="refine", tau=0.2, **ASKED)
    shown = ShownMaps.of(result.question)
    assert (shown.loss, shown.number) == ("off the object", "mass on the object")
    figure = strip_along(result)
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert {"off the object", "mass on the object"} <= set(texts)
    plots = [axes for axes in figure.axes if axes.get_xlabel().startswith("brightness")]
    assert plots and max(axes.get_ylim()[1] for axes in plots) <= 1.2
