"""Versions of installed packages: those of the standard library, read faster."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from steadygaze.installed import installed_version


@pytest.mark.parametrize("name", ["steadygaze", "numpy", "onnxruntime", "typing-extensions", "Typing.Extensions"])
def test_the_version_is_that_of_the_standard_library(name):
    assert installed_version(name) == version(name)


def test_the_first_place_on_the_path_counts_and_folders_without_a_description_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for place, text in (
        ("a", None),
        ("b", "Metadata-Version: 2.1\nName: my-tool\nVersion: 1!2.0+local\n\nVersion: 9\n"),
    ):
        folder = tmp_path / place / "my_tool-7.dist-info"
        folder.mkdir(parents=True)
        if text is not None:
            (folder / "METADATA").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(tmp_path / "a"), str(tmp_path / "b"), *sys.path])
    assert installed_version("my.tool") == "1!2.0+local"
    assert installed_version("my-other-tool") is None
