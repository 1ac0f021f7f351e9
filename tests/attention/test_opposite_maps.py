"""A map that points the opposite way is not a map that is zero everywhere."""

import numpy as np
import pytest

from steadygaze.results.description import small_print
from steadygaze.results.summary import summarise
from support.networks.layered_models import ask


@pytest.mark.parametrize("method", ["map", "refine"])
def test_opposite_maps_are_no_zero_maps(method):
    # The gradient of the first logit is (1, 1); from brightness 0.125 on it is (−1, −1).
    layers = [([[1.0, 1.0], [1.0, 1.0]], [0.0, -0.5]), ([[1.0, -2.0], [0.0, 0.0]], [0.0, -9.0])]
    image, specs = np.full((1, 1, 2), 0.125), ["brightness:0..0.5"]
    asked = {"property": "ar", "attention": "alike", "gamma": 0.5, "classes": "predicted"}
    result = ask(layers, image, specs, method=method, **asked)
    assert result.areas["IR"][0] > 0.7
    assert result.zero_share[1] < 1e-3
    assert "zero everywhere" not in " ".join(small_print(summarise(result)))
    assert "zero" not in result.question.attention.measure.value_text(2.0)
