"""Reading an unchanged model again returns the same object."""

import shutil

import numpy as np
import pytest

from steadygaze import zoo
from steadygaze.network.model import RecentModels, forget_models, read_model


@pytest.fixture
def path(tmp_path):
    return shutil.copy(zoo.model_path("M-FNN-100"), tmp_path / "network.onnx")


def test_the_same_bytes_give_the_same_model(path):
    assert read_model(path) is read_model(path)


def test_another_preprocessing_gives_another_model(path):
    plain, shifted = read_model(path), read_model(path, mean=0.5)
    image = np.full((1, *plain.input_shape), 0.25)
    assert not np.array_equal(plain.graph.logits(image), shifted.graph.logits(image))
    assert read_model(path, mean=[0.5], std=1.0) is shifted


def test_other_bytes_at_the_same_place_give_another_model(path):
    before = read_model(path)
    shutil.copy(zoo.model_path("F-FNN-100"), path)
    after = read_model(path)
    assert after.sha256 != before.sha256
    image = np.full((1, *before.input_shape), 0.25)
    assert not np.array_equal(before.graph.logits(image), after.graph.logits(image))


def test_the_name_of_the_file_stays_its_own(path, tmp_path):
    other = shutil.copy(path, tmp_path / "copy.onnx")
    assert (read_model(path).name, read_model(other).name) == ("network", "copy")


def test_only_the_last_models_are_kept(path):
    models = RecentModels(most=2)
    model = read_model(path)
    made = []

    def make(key):
        return models.find(key, lambda: made.append(key) or model)

    for key in ("one", "two", "one", "three", "one", "two"):
        make(key)
    assert made == ["one", "two", "three", "two"]


def test_forgotten_models_are_read_anew(path):
    before = read_model(path)
    forget_models()
    assert read_model(path) is not before
