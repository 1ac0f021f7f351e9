"""Machine code → functions to call. Needs llvmlite alone, which places the code in memory.

The code of a kernel has one entry with the calling convention of built-in functions (METH_FASTCALL). It reads data,
shape and strides out of the array objects of numpy, whose layout in memory is part of numpy's binary interface. If an
argument has other types than the code was compiled for, it returns MISMATCH and does nothing. It runs without Python's
lock.
"""

import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from ..errors import InternalError

ENTRY, TABLE = "steadygaze_entry", "steadygaze_table"
"""Symbols: the function, and a table of objects that it compares with and returns."""

MISMATCH, FAILED = object(), object()
"""Returned instead of a value: the arguments have other types; an exception was raised in the code."""

FIXED: dict[str, Any] = {
    "array": np.ndarray, "int": int, "int64": np.int64, "float": float, "bool": bool, "bool_": np.bool_,
    "mismatch": MISMATCH, "failed": FAILED, "none": None,
}  # fmt: skip
"""The first entries of the table. One for each tuple (its class) and array (its dtype) follows."""

TYPE, DATA, DIMENSIONS, SHAPE, STRIDES, DTYPE, FLAGS = 8, 16, 24, 32, 40, 56, 64
"""Offsets of the fields of an array object in bytes (`PyArrayObject_fields`)."""

_FASTCALL = 0x80


class _Method(ctypes.Structure):
    """`PyMethodDef`: the description of a built-in function for Python."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_ALIVE: list[Any] = []
"""The code and the tables that the functions below use. They live as long as the process."""


def load_code(code: bytes, name: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """The function that runs the code of an object file, made for arguments of the types of these."""
    check_layout()
    engine = _place(code)
    entries = [*FIXED.values(), *table_entries(arguments)]
    table = (ctypes.c_void_p * len(entries)).from_address(engine.get_global_value_address(TABLE))
    for place, entry in enumerate(entries):
        table[place] = id(entry)
    method = _Method(name.encode(), engine.get_function_address(ENTRY), _FASTCALL, None)
    _ALIVE.append((engine, entries, method))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return make(ctypes.addressof(method), None, None)


def table_entries(values: tuple[Any, ...]) -> Iterator[Any]:
    """The class of every tuple and the dtype of every array, from left to right, from outside to inside.

    >>> list(table_entries((1, (np.zeros(2), 0.5))))
    [<class 'tuple'>, dtype('float64')]
    """
    for value in values:
        if isinstance(value, tuple):
            yield type(value)
            yield from table_entries(value)
        elif isinstance(value, np.ndarray):
            yield value.dtype


@cache
def check_layout() -> None:
    """Raise InternalError if array objects are not laid out as the code expects."""
    array = np.zeros((2, 3), dtype=np.float32)
    words = (ctypes.c_void_p * 9).from_address(id(array))
    flags = ctypes.c_int.from_address(id(array) + FLAGS).value
    dimensions = ctypes.c_int.from_address(id(array) + DIMENSIONS).value
    found = (words[TYPE // 8], words[DATA // 8], dimensions, words[DTYPE // 8])
    expected = (id(np.ndarray), array.ctypes.data, 2, id(array.dtype))
    if found == expected and flags & 0x501 == 0x501:
        sizes = [tuple((ctypes.c_ssize_t * 2).from_address(words[at // 8] or 0)) for at in (SHAPE, STRIDES)]
        if sizes == [array.shape, array.strides]:
            return
    raise InternalError("arrays of this version of numpy have another layout in memory than expected")


@cache
def host() -> tuple[Any, str, str]:
    """llvmlite's binding, set up for this processor; its name; its features."""
    import llvmlite.binding as llvm  # noqa: PLC0415 (not needed by commands that compute nothing)

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:
        features = ""
    return llvm, llvm.get_host_cpu_name(), features


def _place(content: bytes) -> Any:
    """An engine that holds the object file."""
    llvm, cpu, features = host()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=cpu, features=features, codemodel="jitdefault", jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(content))
    engine.finalize_object()
    return engine
