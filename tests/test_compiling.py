"""Compiled code on disk follows its sources."""

from pathlib import Path

from steadygaze.compiling import SOURCES, discard_stale_code

PACKAGE = Path(__file__).parents[1] / "src" / "steadygaze"


def test_every_file_with_compiled_loops_that_others_use_is_watched():
    watched = {path for pattern in SOURCES for path in PACKAGE.glob(pattern)}
    loops = {path for path in PACKAGE.rglob("*.py") if "compiling import" in path.read_text(encoding="utf-8")}
    assert loops <= watched
    assert PACKAGE / "tolerances.py" in watched


def test_code_is_discarded_when_a_source_changes(tmp_path):
    for name in ("compiling.py", "tolerances.py"):
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    cache = tmp_path / "regions" / "__pycache__" / "kernels.advance.nbi"
    cache.parent.mkdir(parents=True)
    cache.touch()
    assert discard_stale_code(tmp_path)
    assert not cache.exists()
    cache.touch()
    assert not discard_stale_code(tmp_path)
    assert cache.exists()
    (tmp_path / "tolerances.py").write_text("x = 2\n", encoding="utf-8")
    assert discard_stale_code(tmp_path)
    assert not cache.exists()
