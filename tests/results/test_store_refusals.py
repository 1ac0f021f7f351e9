"""Damaged, foreign and crafted directories are refused in one line; nothing is lost with --force."""

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from steadygaze import load
from steadygaze.errors import StoreError
from steadygaze.labels import Verdict
from steadygaze.results import array_file
from steadygaze.results.array_file import write_arrays
from steadygaze.results.arrays import NEW_ARRAYS, SHAPES, unpack_map
from steadygaze.results.store import _checksum, _sha256, check_directory, read_summary, save
from support.networks.stored_questions import run


@pytest.fixture
def copy(stored, tmp_path) -> Callable[[str], Path]:
    return lambda name="keep": Path(shutil.copytree(stored[name], tmp_path / "copy"))


def reseal(folder: Path, edit: Callable[[dict], None] = lambda content: None) -> None:
    """Make hashes and checksum right again, as someone who forges a result would."""
    path = folder / "result.json"
    content = json.loads(path.read_text())
    content["stored"]["files"] = {name: _sha256(folder / name) for name in content["stored"]["files"]}
    edit(content)
    content["checksum"] = _checksum(content)
    path.write_text(json.dumps(content))


def arrays_of(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    with np.load(folder / "regions.npz") as file:
        return {name: file[name] for name in file.files}, json.loads((folder / "result.json").read_text())["stored"][
            "map"
        ]


def rewrite(folder: Path, edit: Callable[[dict[str, np.ndarray]], None]) -> None:
    arrays, _ = arrays_of(folder)
    edit(arrays)
    write_arrays(folder / "regions.npz", arrays)
    reseal(folder)


def refused(folder: Path, reader: Callable[[Path], object] = load) -> str:
    with pytest.raises(StoreError) as caught:
        reader(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.exit_code == 2
    return message


def test_resealing_alone_changes_nothing(copy):
    folder = copy()
    rewrite(folder, lambda arrays: None)
    load(folder)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-200]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\xff" + path.read_bytes()[1:]),
        lambda path: path.write_text("[1, 2]"),
        lambda path: path.write_text('{"schema_version": 2}'),
        lambda path: path.write_text(path.read_text().replace("not robust", "robust")),
        lambda path: path.write_text("[" * 100_000),
    ],
)
def test_damaged_answer_is_refused(copy, damage):
    folder = copy()
    damage(folder / "result.json")
    refused(folder)
    refused(folder, read_summary)


@pytest.mark.parametrize("file", ["regions.npz", "image.npy"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:-30] + b"x" + path.read_bytes()[-29:]),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
    ],
)
def test_damaged_file_is_refused_but_the_answer_can_be_read(copy, file, damage):
    folder = copy()
    damage(folder / file)
    assert file in refused(folder)
    assert read_summary(folder).verdict is Verdict.NOT_ROBUST


def test_a_result_of_schema_version_2_is_read_with_a_note(results, copy):
    """It lacks data that was not stored then; its claims are unchanged."""
    folder = copy()
    arrays, numbers = arrays_of(folder)
    write_arrays(folder / "regions.npz", {name: arrays[name] for name in arrays if name not in NEW_ARRAYS})

    def older(content: dict) -> None:
        content["schema_version"] = 2
        content["stored"]["map"] = {name: numbers[name] for name in numbers if name not in ("depth", "skipped")}

    reseal(folder, older)
    loaded = load(folder)
    assert loaded.areas["CR"] == pytest.approx(results["keep"].areas["CR"], abs=1e-9)
    assert loaded.sliver_share == pytest.approx(numbers["sliver_area"], abs=1e-9)
    assert any("earlier version" in note for note in loaded.question.notes)


def test_other_schema_version_is_refused(copy):
    folder = copy()
    reseal(folder, lambda content: content.update(schema_version=1))
    assert "schema version 1" in refused(folder, read_summary)


def test_directories_other_than_results_are_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for place in ("file", "empty", "missing", "n" * 300):
        refused(tmp_path / place)
        refused(tmp_path / place, read_summary)


@pytest.mark.parametrize("key", ["model", "class_names", "image_notes", "delta", "agreement", "checked", "map"])
def test_missing_part_of_the_question_is_refused(copy, key):
    folder = copy()
    reseal(folder, lambda content: content["stored"].pop(key))
    refused(folder)


@pytest.mark.parametrize(
    "edit",
    [
        lambda content: content.update(label=3),
        lambda content: content["attention"].update(filter=["abs"]),
        lambda content: content["attention"].update(classes=[10]),
        lambda content: content["domain"].update(specs=["blur"]),
        lambda content: content["domain"].update(specs=["translate:dx=1", "brightness"]),
        lambda content: content["stored"]["model"].update(bundled="M-FNN-1"),
        lambda content: content["stored"]["model"].update(bundled="F-FNN-100"),
        lambda content: content["stored"]["model"].update(mean=[0.5, 0.5]),
        lambda content: content["stored"].update(class_names=["a"]),
        lambda content: content["stored"].update(files=[]),
    ],
)
def test_question_that_does_not_fit_is_refused(copy, edit):
    folder = copy()
    reseal(folder, edit)
    refused(folder)


def set_first(value: float) -> Callable[[np.ndarray], None]:
    def change(array: np.ndarray) -> None:
        array.flat[0] = value

    return change


@pytest.mark.parametrize(
    ("result", "name", "change"),
    [
        ("keep", name, set_first(value))
        for name, value in {
            "region_points": 1.5, "region_starts": -4, "region_edges": 10**6, "cuts": 9, "cell": 1, "pattern": 10**6,
            "clip": -1, "logits": np.nan, "peaks": np.inf, "piece_region": 10**6, "piece_is_whole": 2, "winner": 10,
            "margin": np.nan, "slack": np.inf, "part_points": -1.0, "part_starts": 1, "part_edges": 0, "argmax_cuts": 0,
            "curve": 10**6, "curve_cell": -1, "curve_pattern": 10**6, "constant": np.nan, "breaks": 1,
        }.items()
    ]
    + [("moving l1", "breaks", set_first(5)), ("moving l1", "places", set_first(np.nan))]
    + [("moving l2", "quadratic", set_first(np.nan))],
)  # fmt: skip
def test_map_with_wrong_entries_is_refused(results, stored, result, name, change):
    arrays, numbers = arrays_of(stored[result])
    unpack_map(arrays, numbers, results[result].question)
    change(arrays[name])
    with pytest.raises(StoreError, match=f"the array {name} "):
        unpack_map(arrays, numbers, results[result].question)


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in ("clips", "witnesses")])
def test_map_with_a_wrong_shape_is_refused(results, stored, name):
    arrays, numbers = arrays_of(stored["keep"])
    arrays[name] = arrays[name][:-1] if len(arrays[name]) else np.zeros((3, *arrays[name].shape[1:]))
    with pytest.raises(StoreError, match="the array"):
        unpack_map(arrays, numbers, results["keep"].question)


@pytest.mark.parametrize(
    "edit",
    [
        lambda arrays: arrays.pop("logits"),
        lambda arrays: arrays.update(more=np.zeros(3)),
        lambda arrays: arrays.update(logits=arrays["logits"].astype(np.float32)),
        lambda arrays: arrays.update(cell=arrays["cell"].astype(np.float64)),
        lambda arrays: arrays.update(logits=arrays["logits"][..., None]),
        lambda arrays: set_first(10**6)(arrays["pattern"]),
    ],
)
def test_map_with_other_arrays_is_refused(copy, edit):
    folder = copy()
    rewrite(folder, edit)
    refused(folder)


def member_bytes(array: np.ndarray, *, claimed: tuple[int, ...] | None = None) -> bytes:
    """One member of an npz file; its header may claim another shape."""
    stream = io.BytesIO()
    if claimed is None:
        np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=True)
    else:
        header = {"descr": "<f8", "fortran_order": False, "shape": claimed}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(array.tobytes())
    return stream.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        member_bytes(np.array([{"a": 1}], dtype=object)),
        member_bytes(np.zeros(4), claimed=(10**9, 3, 10)),
        member_bytes(np.zeros(4), claimed=(-2, -2)),
        member_bytes(np.zeros(4))[:-8],
        b"no array",
    ],
)
def test_forged_array_is_refused(copy, content):
    folder = copy()
    with zipfile.ZipFile(folder / "regions.npz") as source:
        members = {name: source.read(name) for name in source.namelist()}
    with zipfile.ZipFile(folder / "regions.npz", "w") as target:
        for name, own in members.items():
            target.writestr(name, content if name == "logits.npy" else own)
    reseal(folder)
    assert "regions.npz" in refused(folder)


def test_truncated_map_is_refused_even_with_the_right_hash(copy):
    folder = copy()
    path = folder / "regions.npz"
    path.write_bytes(path.read_bytes()[:-500])
    reseal(folder)
    assert "regions.npz" in refused(folder)


def test_map_that_does_not_fit_the_machine_is_refused(copy, monkeypatch):
    folder = copy()
    monkeypatch.setattr(array_file, "machine_gib", lambda: 1e-6)
    assert "GiB" in refused(folder)


@pytest.mark.parametrize(
    "pixels",
    [
        np.full((1, 28, 28), np.nan),
        np.full((1, 28, 28), 2.0),
        np.zeros((1, 14, 14)),
        np.zeros((28, 28)),
        np.zeros((1, 28, 28), dtype=np.float32),
    ],
)
def test_image_that_does_not_fit_is_refused(copy, pixels):
    folder = copy()
    np.save(folder / "image.npy", pixels)
    reseal(folder)
    refused(folder)


def test_pickled_image_is_refused(copy):
    folder = copy()
    np.save(folder / "image.npy", np.array([print], dtype=object), allow_pickle=True)
    reseal(folder)
    refused(folder)


def test_existing_place_is_refused_without_force(results, stored, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for place, force in ((stored["line"], False), (tmp_path / "empty", False), (tmp_path / "file", True)):
        refused(place, lambda path, force=force: save(results["line"], path, force=force))
        refused(place, lambda path, force=force: check_directory(path, force=force))
    assert (tmp_path / "file").read_text() == "x"


def test_force_replaces_a_result_and_its_pictures(results, copy):
    folder = copy()
    (folder / "map.svg").write_text("<svg/>")
    save(run("line"), folder, force=True)
    assert read_summary(folder).plain() == results["line"].summary()
    assert not (folder / "map.svg").exists()


def test_force_takes_an_empty_directory_and_makes_parents(results, tmp_path):
    (tmp_path / "empty").mkdir()
    for place in ("empty", "new/deep/er"):
        assert save(results["line"], tmp_path / place, force=True) == tmp_path / place
        load(tmp_path / place)


def test_force_replaces_what_a_link_points_to(results, copy, tmp_path):
    folder = copy()
    link = tmp_path / "link"
    link.symlink_to(folder)
    save(results["line"], link, force=True)
    assert link.is_symlink()
    assert read_summary(folder).plain() == results["line"].summary()


@pytest.mark.parametrize(
    "add",
    [
        lambda folder: (folder / "notes.txt").write_text("mine"),
        lambda folder: (folder / "sub").mkdir(),
        lambda folder: (folder / "map.png").symlink_to("/"),
        lambda folder: (folder / "result.json").unlink(),
        lambda folder: (folder / "result.json").write_text("{}"),
    ],
)
def test_force_refuses_what_is_not_only_a_result(results, copy, add):
    folder = copy()
    add(folder)
    before = sorted(path.name for path in folder.iterdir())
    refused(folder, lambda path: save(results["line"], path, force=True))
    assert sorted(path.name for path in folder.iterdir()) == before


def test_force_refuses_a_home_directory(results, tmp_path, monkeypatch):
    (tmp_path / "thesis.tex").write_text("years of work")
    monkeypatch.chdir(tmp_path)
    for place in (".", tmp_path, f"{tmp_path}/../{tmp_path.name}/"):
        refused(Path(place), lambda path: save(results["line"], path, force=True))
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
