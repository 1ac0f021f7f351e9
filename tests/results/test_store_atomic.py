"""A crash at any moment leaves the old directory or the new one, whole, and the next run cleans up."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steadygaze.errors import StoreError
from steadygaze.results import directory, store, tiling
from steadygaze.results.directory import atomic_directory
from steadygaze.results.store import read_summary, save


class CrashError(Exception):
    """Stands for anything that can go wrong."""


def crash(*_: object, **__: object) -> None:
    raise CrashError


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def leftovers(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if path.name.startswith(".")]


@pytest.fixture
def old(results, tmp_path) -> Path:
    return save(results["line"], tmp_path / "kept")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (tiling, "write_arrays"), (store, "_picture"), (store, "write_json"), (store, "_machine"),
        (directory, "_flush"), (directory, "_put"),
    ],
)  # fmt: skip
def test_crash_while_writing_leaves_the_old_result(results, old, monkeypatch, module, name):
    before = bytes_of(old)
    with monkeypatch.context() as patched:
        patched.setattr(module, name, crash)
        with pytest.raises(CrashError):
            save(results["robust"], old, force=True)
    assert bytes_of(old) == before
    assert leftovers(old.parent) == []
    save(results["robust"], old, force=True)
    assert read_summary(old).plain() == results["robust"].summary()
    assert leftovers(old.parent) == []


def test_crash_between_the_two_renamings_puts_the_old_result_back(results, old, monkeypatch):
    before, rename = bytes_of(old), Path.rename

    def fail_for_new(path: Path, target: Path) -> Path:
        if "-new-" in path.name:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_for_new)
    with pytest.raises(StoreError, match="No space left on device"):
        save(results["robust"], old, force=True)
    assert bytes_of(old) == before
    assert leftovers(old.parent) == []


def test_new_directory_appears_whole_or_not_at_all(results, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(store, "write_json", crash)
        with pytest.raises(CrashError):
            save(results["line"], tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_place_taken_in_the_meantime_is_not_overwritten(results, tmp_path, monkeypatch):
    place, put = tmp_path / "new", directory._put

    def put_late(*arguments: object, **options: object) -> None:
        place.mkdir()
        (place / "thesis.tex").write_text("years of work")
        put(*arguments, **options)

    monkeypatch.setattr(directory, "_put", put_late)
    with pytest.raises(StoreError):
        save(results["line"], place)
    assert [path.name for path in place.iterdir()] == ["thesis.tex"]
    assert leftovers(tmp_path) == []


def killed(action: Callable[[], None]) -> None:
    """Run an action in a process of its own, which ends without any cleaning up."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(1)
    os.waitpid(child, 0)


def test_leftovers_of_a_killed_run_are_removed_by_the_next(old):
    def write_and_die() -> None:
        with atomic_directory(old, replaces=True) as folder:
            (folder / "half").write_text("x")
            os._exit(1)

    before = bytes_of(old)
    killed(write_and_die)
    assert len(leftovers(old.parent)) == 1
    assert bytes_of(old) == before
    with atomic_directory(old, replaces=True) as folder:
        (folder / "whole").write_text("y")
    assert bytes_of(old) == {"whole": b"y"}
    assert leftovers(old.parent) == []


def test_run_killed_between_the_two_renamings_is_mended_by_the_next(old, monkeypatch):
    before, rename = bytes_of(old), Path.rename

    def die_for_new(path: Path, target: Path) -> Path:
        if "-new-" in path.name:
            os._exit(1)
        return rename(path, target)

    def write_and_die() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", die_for_new)
            with atomic_directory(old, replaces=True) as folder:
                (folder / "whole").write_text("y")

    killed(write_and_die)
    assert not old.exists()
    with pytest.raises(CrashError), atomic_directory(old, replaces=True):
        raise CrashError
    assert bytes_of(old) == before
    assert leftovers(old.parent) == []


def test_a_run_that_is_still_writing_is_left_alone(old):
    with atomic_directory(old, replaces=True) as slow:
        (slow / "slow").write_text("1")
        with atomic_directory(old, replaces=True) as fast:
            (fast / "fast").write_text("2")
        assert bytes_of(old) == {"fast": b"2"}
        assert (slow / "slow").exists()
    assert bytes_of(old) == {"slow": b"1"}
    assert leftovers(old.parent) == []


def test_names_as_long_as_names_can_be(tmp_path):
    place = tmp_path / ("n" * 255)
    with atomic_directory(place, replaces=False) as folder:
        (folder / "x").write_text("x")
    assert bytes_of(place) == {"x": b"x"}
