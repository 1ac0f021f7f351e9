"""Results whose perturbations read files: stored with their contents, loaded and resumed without the files."""

import numpy as np
import pytest

import steadygaze as sg
from steadygaze.errors import SteadygazeError


@pytest.fixture
def field(tmp_path):
    path = tmp_path / "light, left.npy"
    np.save(path, np.linspace(-0.5, 0.5, 28 * 28).reshape(28, 28))
    return path


def verify(path, **options):
    return sg.verify("M-FNN-100", "mnist:69990", f'field:file="{path}":0..0.2', property="cr", **options)


def test_a_result_is_loaded_when_the_file_is_gone(field, tmp_path):
    result = verify(field)
    result.save(tmp_path / "result")
    image = result.question.perturbed.image([0.1])
    field.unlink()
    again = sg.load(tmp_path / "result")
    assert again.summary() == result.summary()
    np.testing.assert_array_equal(again.question.perturbed.image([0.1]), image)
    again.save(tmp_path / "copy")
    assert sg.load(tmp_path / "copy").question.specs == result.question.specs


def test_a_changed_array_is_refused(field, tmp_path):
    verify(field).save(tmp_path / "result")
    (path,) = (tmp_path / "result").glob("perturbations.npz")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(SteadygazeError, match=r"perturbations\.npz|the content has changed"):
        sg.load(tmp_path / "result")
    path.unlink()
    with pytest.raises(SteadygazeError, match=r"perturbations\.npz"):
        sg.load(tmp_path / "result")


def test_a_run_is_resumed_by_the_content_of_its_file(field, tmp_path):
    verify(field, method="refine").save(tmp_path / "result")
    moved = field.rename(tmp_path / "moved.npy")
    assert verify(moved, method="refine", resume=tmp_path / "result").summary()["domain"]["low"] == [0.0]
    np.save(moved, np.full((28, 28), 0.25))
    with pytest.raises(SteadygazeError, match="different: the perturbations"):
        verify(moved, method="refine", resume=tmp_path / "result")
