"""The lists of presets: every spec parses and fits images of any size."""

import numpy as np
import pytest

from steadygaze.errors import OptionError, PerturbationError
from steadygaze.perturbation import compose, parse_specs
from steadygaze.presets.lists import PRESETS, find_preset

SHAPES = [(1, 28, 28), (3, 32, 32), (3, 9, 20), (1, 1, 1), (3, 64, 48)]


@pytest.mark.parametrize("name", PRESETS)
def test_names_are_folders_and_questions_have_one_or_two_parameters(name):
    preset = find_preset(name)
    names = [question.name for question in preset.questions]
    assert len(set(names)) == len(names) >= 6
    assert all(question_name.replace("-", "").isalpha() for question_name in names)
    assert all(1 <= len(question.templates) <= 2 for question in preset.questions)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PRESETS)
def test_specs_parse_and_fit(name, shape):
    """Only questions about colour, and rectangles beside each other in a single pixel, do not fit some image."""
    image = np.random.default_rng(1).random(shape)
    for question in find_preset(name).questions:
        parsed = parse_specs(question.specs(*shape[1:]))
        try:
            perturbed = compose(parsed, image)
        except PerturbationError as error:
            needs_colour = shape[0] == 1 and question.name in ("saturation", "low-sun")
            assert needs_colour or shape == (1, 1, 1), f"{question.name}: {error}"
        else:
            assert perturbed.domain.contains_zero


def test_an_unknown_preset_is_refused_with_the_list():
    with pytest.raises(OptionError, match=r"expected light, weather, camera, dirt\. Did you mean camera"):
        find_preset("kamera")
