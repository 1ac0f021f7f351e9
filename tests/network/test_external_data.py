"""Weights outside the model file are read only from its own folder."""

import hashlib

import numpy as np
import onnx
import pytest
from onnx.external_data_helper import convert_model_to_external_data

from steadygaze.errors import ModelError
from steadygaze.network import onnx_file
from steadygaze.network.model import read_model

DIMS = [1, 1, 4, 4]


@pytest.fixture
def external(proto, dense, tmp_path):
    """Save a model with its weights in the file 'location'; returns (path, proto with the weights inside)."""
    nodes, weights = dense(hidden=64)
    folder = tmp_path / "models"
    folder.mkdir()

    def external(location="weights.data", change=None):
        inside = proto(nodes, weights, DIMS)
        outside = proto(nodes, weights, DIMS)
        convert_model_to_external_data(outside, location="weights.data", size_threshold=0)
        path = folder / "model.onnx"
        onnx.save(outside, path)
        saved = onnx.load(path, load_external_data=False)
        for tensor in saved.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = location
                if change is not None and entry.key in change:
                    entry.value = change[entry.key]
        path.write_bytes(saved.SerializeToString())
        return path, inside

    return external


def test_data_inside_of_the_folder(external, tmp_path):
    path, inside = external()
    model = read_model(path)
    whole = tmp_path / "whole.onnx"
    whole.write_bytes(inside.SerializeToString())
    expected = read_model(whole)
    images = np.random.default_rng(0).random((3, *model.input_shape))
    np.testing.assert_array_equal(model.graph.logits(images), expected.graph.logits(images))
    np.testing.assert_array_equal(model.replay.logits(images), expected.replay.logits(images))
    assert model.sha256 != expected.sha256
    assert expected.sha256 == hashlib.sha256(whole.read_bytes()).hexdigest()


def test_the_hash_covers_the_data(external):
    path, _ = external()
    before = read_model(path).sha256
    assert read_model(path).sha256 == before
    data = path.parent / "weights.data"
    changed = bytearray(data.read_bytes())
    changed[0] ^= 1
    data.write_bytes(changed)
    assert read_model(path).sha256 != before


def test_data_in_a_folder_below(external):
    path, _ = external(location="deeper/weights.data")
    (path.parent / "deeper").mkdir()
    (path.parent / "weights.data").rename(path.parent / "deeper" / "weights.data")
    assert read_model(path).classes == 3


@pytest.mark.parametrize("location", ["../weights.data", "deeper/../../weights.data", "C:\\weights.data"])
def test_data_outside_of_the_folder(external, location):
    path, _ = external(location=location)
    (path.parent / "weights.data").rename(path.parent.parent / "weights.data")
    with pytest.raises(ModelError, match="outside the model's folder") as caught:
        read_model(path)
    assert "\n" not in str(caught.value)


def test_an_absolute_location(external, tmp_path):
    path, _ = external(location=str(tmp_path / "models" / "weights.data"))
    with pytest.raises(ModelError, match="outside the model's folder"):
        read_model(path)


def test_a_link_that_leads_outside(external, tmp_path):
    path, _ = external()
    data = path.parent / "weights.data"
    data.rename(tmp_path / "weights.data")
    data.symlink_to(tmp_path / "weights.data")
    with pytest.raises(ModelError, match="outside the model's folder"):
        read_model(path)


def test_missing_data(external):
    path, _ = external()
    (path.parent / "weights.data").unlink()
    with pytest.raises(ModelError, match="missing from the model's folder"):
        read_model(path)


def test_data_that_are_a_directory(external):
    path, _ = external()
    (path.parent / "weights.data").unlink()
    (path.parent / "weights.data").mkdir()
    with pytest.raises(ModelError, match="is a directory"):
        read_model(path)


@pytest.mark.parametrize(
    "change,words",
    [
        ({"offset": "999999"}, "belongs to another model"),
        ({"offset": "-4"}, "belongs to another model"),
        ({"length": "99999999999"}, "belongs to another model"),
        ({"length": "4"}, "but holds 4"),
        ({"length": "four"}, "damaged external offset or length"),
        ({"location": ""}, "names no external data file"),
        ({"location": "a\0b"}, "cannot be found"),
    ],
)
def test_damaged_references(external, change, words):
    path, _ = external(change=change)
    with pytest.raises(ModelError) as caught:
        read_model(path)
    assert "\n" not in str(caught.value)
    assert words in str(caught.value)


def test_many_tensors_on_the_same_bytes_do_not_add_up(external, monkeypatch):
    path, _ = external()
    size = sum(file.stat().st_size for file in path.parent.iterdir())
    monkeypatch.setattr(onnx_file, "MAX_BYTES", size)
    assert read_model(path).classes == 3
    saved = onnx.load(path, load_external_data=False)
    for number in range(3):
        copy = saved.graph.initializer.add()
        copy.CopyFrom(saved.graph.initializer[0])
        copy.name = f"copy{number}"
    path.write_bytes(saved.SerializeToString())
    with pytest.raises(ModelError, match="external data exceed"):
        read_model(path)
