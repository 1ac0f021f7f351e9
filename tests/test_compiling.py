"""Compiled functions: types are checked, code on disk follows its sources, and loading it needs no numba."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from steadygaze.budget import Budget
from steadygaze.cli.progress_line import progress_line
from steadygaze.compiling import building, compiled, compiled_apart, compiled_fused, stored_code
from steadygaze.compiling.kernel import _type_text, is_compiling
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
    arguments = np.arange(9.0), 2.0, sums
    kernel(*arguments)
    assert sums.tolist() == [1.0 + 2.0 * i for i in range(9)]
    code = str(building.build_module(kernel.dispatcher, arguments))
    assert "fmul" in code and ("vector.memcheck" in code) == tests_overlap


def signs(values):
    """A sum that numba makes from functions of its own library."""
    return np.sign(values[0]) + np.trunc(values[1]) + divmod(values[2], 1.5)[1]


def test_other_functions_of_numba_still_run():
    values = np.array([1.0, 4.5, 2.0])
    assert compiled(signs)(values) == njit(signs)(values) == njit(signs)(values.astype(np.float32)) == 5.5


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


def kernel_of(source: str, **names: object):
    """The function `found` of a source text as a kernel, with further names for its globals."""
    names["__name__"] = __name__
    exec(source, names)
    return compiled(names["found"])


def test_the_digest_follows_code_constants_and_called_functions():
    source = "def found(x):\n    return inner(x) + LIMIT"
    inner = kernel_of("def found(x):\n    return 2 * x")
    digests = [
        kernel_of(source, inner=inner, LIMIT=1.0).digest,
        kernel_of(source.replace("+", "-"), inner=inner, LIMIT=1.0).digest,
        kernel_of(source, inner=inner, LIMIT=2.0).digest,
        kernel_of(source, inner=kernel_of("def found(x):\n    return 3 * x"), LIMIT=1.0).digest,
        compiled_fused(kernel_of(source, inner=inner, LIMIT=1.0).py_func).digest,
        compiled_apart(kernel_of(source, inner=inner, LIMIT=1.0).py_func).digest,
        kernel_of(source.replace("LIMIT", "module.LIMIT"), inner=inner, module=stored_code).digest,
    ]
    assert len(set(digests)) == len(digests)


def test_the_digest_follows_functions_that_are_called_by_way_of_modules(monkeypatch):
    monkeypatch.setattr(stored_code, "inner", kernel_of("def found(x):\n    return 2 * x"), raising=False)
    before = kernel_of("def found(x):\n    return module.inner(x)", module=stored_code).digest
    monkeypatch.setattr(stored_code, "inner", kernel_of("def found(x):\n    return 3 * x"))
    assert kernel_of("def found(x):\n    return module.inner(x)", module=stored_code).digest != before


def test_the_digest_ignores_docstrings_and_places():
    plain = kernel_of("def found(x):\n    return found(x - 1) if x > 0 else 0")
    moved = kernel_of('\n\ndef found(x):\n    """Count down."""\n    return found(x - 1) if x > 0 else 0')
    assert plain.digest == moved.digest


def test_content_that_no_digest_tells_is_refused():
    with pytest.raises(InternalError, match="unknown content"):
        _ = kernel_of("def found(x):\n    return x + TABLE[0]", TABLE=[1]).digest


def test_tuples_with_other_fields_have_code_of_their_own():
    class Swapped(NamedTuple):
        factor: np.ndarray
        values: float

    Swapped.__qualname__ = Pair.__qualname__
    assert _type_text(Swapped(np.ones(1), 1.0)) != _type_text(Pair(np.ones(1), 1.0))


def test_damaged_code_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_code, "code_folder", lambda: tmp_path)
    stored_code.keep_code("kernel", "i,f", "digest", b"code")
    assert stored_code.find_code("kernel", "i,f", "digest") == b"code"
    assert stored_code.find_code("kernel", "f,f", "digest") is None
    assert stored_code.find_code("kernel", "i,f", "other") is None
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-2])
    assert stored_code.find_code("kernel", "i,f", "digest") is None


def test_the_progress_line_says_that_loops_are_being_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_code, "code_folder", lambda: tmp_path)
    progress, shown, build = progress_line(Budget(), growing=()), [], building.build_code
    progress.add_task("reading", text="")
    (task,) = progress.tasks

    def watched(*arguments):
        shown.append(str(progress.columns[1].render(task)))
        return build(*arguments)

    monkeypatch.setattr(building, "build_code", watched)
    compiled(add_scaled)(np.arange(3.0), 2.0, np.ones(3))
    assert shown == ["compiling loops (in the first run only)"] and not is_compiling()
    assert str(progress.columns[1].render(task)) == "reading"
