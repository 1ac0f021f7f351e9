"""Compiled functions: types are checked, code on disk follows its sources, and loading it needs no numba."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from steadygaze.compiling import compiled, compiled_apart, compiled_fused, stored_code
from steadygaze.compiling.stored_code import SOURCES, discard_stale, sources_digest
from steadygaze.errors import InternalError

PACKAGE = Path(__file__).parents[1] / "src" / "steadygaze"


class Pair(NamedTuple):
    values: np.ndarray
    factor: float


@compiled
def scale(pair, sizes, count):
    """Multiply the first entries; returns values of every kind."""
    total = 0.0
    for i in range(count):
        pair.values[i] *= pair.factor
        total += pair.values[i]
    return total, sizes[1], count > 1, np.uint8(255)


@compiled
def fail(value):
    """Raise an exception in compiled code."""
    if value > 0:
        raise ValueError("too large")


def add_scaled(values, factor, sums):
    """Add scaled values to sums."""
    for i in range(values.shape[0]):
        sums[i] += factor * values[i]


@pytest.mark.parametrize(("decorator", "tests_overlap"), [(compiled_fused, True), (compiled_apart, False)])
def test_loops_over_arrays_apart_do_not_test_for_overlaps(decorator, tests_overlap):
    kernel, sums = decorator(add_scaled), np.ones(9)
    kernel(np.arange(9.0), 2.0, sums)
    assert sums.tolist() == [1.0 + 2.0 * i for i in range(9)]
    kernel.dispatcher(np.arange(9.0), 2.0, sums)
    (code,) = kernel.dispatcher.inspect_llvm().values()
    assert "fmul" in code and ("vector.memcheck" in code) == tests_overlap


def test_numbers_arrays_and_tuples_go_in_and_come_out():
    values = np.arange(4.0)
    assert scale(Pair(values, 2.0), (5, 7), 3) == (6.0, 7, True, 255)
    assert values.tolist() == [0.0, 2.0, 4.0, 3.0]


@pytest.mark.parametrize(
    "values",
    [
        np.ones((3, 2))[:, 1],
        np.ones(3, dtype=np.float32),
        np.ones(3, dtype=np.int64),
        np.frombuffer(b"\0" * 25, dtype=np.uint8)[1:].copy().view(np.float64)[:3] + 1,
    ],
    ids=["strided", "float32", "int64", "copied"],
)
def test_other_types_of_arrays_have_code_of_their_own(values):
    before = scale(Pair(np.ones(3), 2.0), (5, 7), 3)
    assert scale(Pair(values, 2.0), (5, 7), 3) == before
    assert values[:3].tolist() == [2, 2, 2]


def test_numbers_of_numpy_count_as_numbers():
    assert scale(Pair(np.ones(3), np.float64(3)), (np.int32(1), np.int64(2)), np.int64(1))[:2] == (3.0, 2)


@pytest.mark.parametrize("wrong", [None, "1", [1.0], np.array(["a"])])
def test_other_arguments_are_refused(wrong):
    with pytest.raises(InternalError, match="compiled code takes"):
        fail(wrong)


def test_an_exception_in_compiled_code_is_an_internal_error():
    assert fail(0) is None
    with pytest.raises(InternalError, match=r"fail.*exception"):
        fail(1)


def test_a_process_loads_stored_code_without_numba(tmp_path):
    program = (
        "import sys, numpy as np; from steadygaze.polytopes import polygon_kernels;"
        "out = np.zeros(1); polygon_kernels.areas(np.array([0.0, 1, 0]), np.array([0.0, 0, 1]), np.array([0, 3]), out);"
        "print(out[0], 'numba' in sys.modules)"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    told = [
        subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert told == [["0.5", "True"], ["0.5", "False"]]


def test_every_file_with_compiled_loops_that_others_use_is_watched():
    watched = {path for pattern in SOURCES for path in PACKAGE.glob(pattern)}
    loops = {path for path in PACKAGE.rglob("*.py") if "compiling import" in path.read_text(encoding="utf-8")}
    assert loops <= watched
    assert PACKAGE / "tolerances.py" in watched


def test_the_digest_follows_the_content_of_sources_alone(tmp_path):
    package, memory = tmp_path / "package", tmp_path / "memory"
    package.mkdir()
    memory.mkdir()
    source = package / "tolerances.py"
    source.write_text("x = 1\n", encoding="utf-8")
    first = sources_digest(package, memory)
    os.utime(source, (1, 1))
    (package / "other.py").write_text("x = 3\n", encoding="utf-8")
    assert sources_digest(package, memory) == first
    source.write_text("x = 2\n", encoding="utf-8")
    assert sources_digest(package, memory) != first


def test_an_unchanged_source_is_not_read_again(tmp_path, monkeypatch):
    (tmp_path / "tolerances.py").write_text("x = 1\n", encoding="utf-8")
    first = sources_digest(tmp_path, tmp_path)
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
    assert sources_digest(tmp_path, tmp_path) == first


def test_code_of_other_sources_is_removed(tmp_path):
    for name in ("old-machine", "new-machine", "new-other"):
        (tmp_path / name).mkdir()
    discard_stale(tmp_path, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new-machine", "new-other"]


def test_damaged_code_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_code, "code_folder", lambda: tmp_path)
    stored_code.keep_code("kernel", "i,f", b"code")
    assert stored_code.find_code("kernel", "i,f") == b"code"
    assert stored_code.find_code("kernel", "f,f") is None
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-2])
    assert stored_code.find_code("kernel", "i,f") is None
