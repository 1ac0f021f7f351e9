"""Stored results equal the computed ones: the same answers for any δ, the same bytes from another run."""

import json
import shutil
import zipfile
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from steadygaze import load, zoo
from steadygaze.api import verify
from steadygaze.errors import StoreError
from steadygaze.perturbation import Brightness, compose
from steadygaze.properties.nearest import Nearest
from steadygaze.results.store import default_directory, read_seconds, read_summary, save
from support.networks.stored_questions import ALL, run


def assert_same(ours: object, theirs: object, where: str = "") -> None:
    """Equal to the last bit, array types included."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype, where
        np.testing.assert_array_equal(ours, theirs, err_msg=where)
    elif is_dataclass(ours):
        for field in fields(ours):
            assert_same(getattr(ours, field.name), getattr(theirs, field.name), f"{where}.{field.name}")
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs), where
        for key in ours:
            assert_same(ours[key], theirs[key], f"{where}[{key}]")
    else:
        assert ours == theirs, where


@pytest.mark.parametrize("name", ALL)
def test_stored_map_is_rebuilt_to_the_last_bit(results, stored, name):
    ours, theirs = results[name].tiling.answers, load(stored[name]).tiling.answers
    for part in ("regions", "pieces", "curves"):
        assert_same(getattr(ours, part), getattr(theirs, part), part)
    assert_same(results[name].checked, load(stored[name]).checked)
    assert_same(results[name].agreement, load(stored[name]).agreement)


@pytest.mark.parametrize("name", ALL)
def test_every_delta_has_the_same_answer_after_loading(results, stored, name):
    result, again = results[name], load(stored[name])
    assert again.summary() == result.summary()
    for delta in (0.0, 0.7, 3.0, "10%", "33.3%", 500.0):
        ours, theirs = result.with_delta(delta), again.with_delta(delta)
        assert ours.areas == theirs.areas
        assert ours.verdict is theirs.verdict
        assert ours.answer.sets == theirs.answer.sets
        for key, nearest in ours.answer.nearest.items():
            assert isinstance(nearest, Nearest)
            assert_same(nearest, theirs.answer.nearest[key])
    assert again.tiling.answers.enough_delta == result.tiling.answers.enough_delta


def test_questions_have_what_is_hard_to_store(results):
    assert results["keep"].answer.sets["CB"] > 0
    assert results["moving l1"].answer.sets["AB"] > 0
    assert results["moving l2"].answer.sets["AB"] > 0
    assert 0 == len(results["empty"].tiling.answers.regions) < len(results["partial"].tiling.answers.regions)


@pytest.mark.parametrize("name", ["keep", "moving l1", "line"])
def test_a_theta_looks_the_same_after_loading(results, stored, name):
    result, again = results[name], load(stored[name])
    domain = result.tiling.answers.compound.domain
    for share in (0.0, 0.31, 1.0):
        theta = domain.low + share * domain.widths
        assert_same(result.at(theta), again.at(theta))


@pytest.mark.parametrize("name", ["moving l2", "keep"])
def test_another_run_gives_the_same_bytes(stored, name, tmp_path):
    again = save(run(name, threads=2), tmp_path / "again")
    for file in ("result.json", "regions.npz", "image.npy", "image.png"):
        assert (again / file).read_bytes() == (stored[name] / file).read_bytes(), file


def test_files_are_what_they_say(results, stored):
    folder, result = stored["keep"], results["keep"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "image.npy", "image.png", "regions.npz", "result.json", "timings.json",
    ]  # fmt: skip
    content = json.loads((folder / "result.json").read_text())
    assert content["stored"]["model"]["path"] is None
    assert content["stored"]["versions"]["numpy"] == np.__version__
    assert "seconds" not in content
    assert read_seconds(folder) == result.seconds
    assert read_summary(folder).plain() == result.summary() == json.loads(json.dumps(result.summary()))
    with np.load(folder / "regions.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["logits"], result.tiling.answers.regions.logits)
        assert arrays["region_edges"].dtype == np.int32
    with zipfile.ZipFile(folder / "regions.npz") as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    picture = np.asarray(Image.open(folder / "image.png"))
    np.testing.assert_array_equal(picture, np.rint(255 * result.question.perturbed.x0[0]))


def test_unsplit_pieces_are_stored_once(results, stored):
    pieces = results["keep"].tiling.answers.pieces
    with np.load(stored["keep"] / "regions.npz") as arrays:
        parts = len(arrays["part_starts"]) - 1
        assert 0 < parts < len(pieces)
        assert parts == int((arrays["piece_is_whole"] == 0).sum())


def test_timings_may_be_lost(stored, tmp_path):
    folder = Path(shutil.copytree(stored["line"], tmp_path / "copy"))
    (folder / "timings.json").unlink()
    assert load(folder).seconds == {}


@pytest.fixture
def own_model(tmp_path):
    """A result of a model outside of the zoo, with preprocessing, and where the model is."""
    path = tmp_path / "mine" / "net.onnx"
    path.parent.mkdir()
    shutil.copy(zoo.model_path("M-FNN-100"), path)
    result = verify(
        path, "mnist:69991", ["brightness:0..0.05"], threads=1, mean=0.1, std=[0.5], scale=2.0, names=list("abcdefghij")
    )
    return result, save(result, tmp_path / "stored"), path


def test_own_model_is_read_again_with_its_preprocessing(own_model):
    result, folder, path = own_model
    assert json.loads((folder / "result.json").read_text())["stored"]["model"]["path"] == str(path)
    again = load(folder)
    assert again.summary() == result.summary()
    assert_same(result.at([0.01]), again.at([0.01]))
    assert again.question.names == tuple("abcdefghij")


def test_lost_or_changed_model_is_refused_but_the_answer_stays(own_model, tmp_path):
    result, folder, path = own_model
    moved = path.rename(tmp_path / "elsewhere.onnx")
    for change in (
        lambda: None,
        lambda: shutil.copy(zoo.model_path("M-FNN-100-plain"), path),
        lambda: path.write_bytes(b"not a model"),
    ):
        change()
        with pytest.raises(StoreError) as caught:
            load(folder)
        assert str(path) in str(caught.value)
        assert "run the verification again" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert read_summary(folder).plain() == result.summary()
    assert load(folder, model=moved).summary() == result.summary()
    with pytest.raises(StoreError, match="has changed"):
        load(folder, model=path)


def test_directory_is_named_after_the_question(results):
    assert str(default_directory(results["line"].question)) == "M-FNN-100--mnist-69990--translate-dym2"
    name = str(default_directory(results["keep"].question))
    assert name == "M-FNN-100--mnist-69990--brightness-0.9-to-1--patch-x12-y12-w4-h4"


def test_names_are_safe_short_and_different(results):
    question = results["line"].question
    hostile = replace(question, model_name="../../etc/passwd", image_name="-rf ~ \n*ü.PNG")
    assert str(default_directory(hostile)) == "etc-passwd--rf--translate-dym2"
    assert str(default_directory(replace(question, model_name="..", image_name="图.png"))).startswith(
        "unnamed--unnamed--"
    )
    long = {str(default_directory(replace(question, model_name="x" * 300 + end))) for end in "ab"}
    assert len(long) == 2
    assert all(len(name) == 120 for name in long)
    names = {
        str(default_directory(replace(question, perturbed=compose([Brightness(range=ends)], question.perturbed.x0))))
        for ends in ((-0.5, -0.2), (0.2, 0.5), (-0.2, 0.5))
    }
    assert len(names) == 3
