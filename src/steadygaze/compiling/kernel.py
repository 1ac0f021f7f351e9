"""Compiled functions as Python calls them: arguments → the machine code for their types, loaded or compiled.

Every argument is a number, an array, or a (named) tuple of these. Machine code checks their types itself, so a call
with known types costs little.
"""

import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InternalError
from .machine_code import FAILED, MISMATCH, load_code
from .stored_code import find_code, function_digest, keep_code

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_COMPILING = threading.RLock()
_building: list[str] = []
"""The names of functions that are being compiled."""


class Decorator:
    """Compiles functions with the given options of numba; `apart`: no two of their arrays share memory."""

    def __init__(self, *, apart: bool = False, **options: Any) -> None:
        self.apart, self.options = apart, _OPTIONS | options

    def __call__(self, function: Callable[..., Any]) -> Any:
        """The compiled function, which is called the same way; type checkers do not see its arguments."""
        return CompiledFunction(function, self.options, apart=self.apart)


class CompiledFunction:
    """A function that numba compiles for the types of its arguments, or whose machine code is on disk."""

    def __init__(self, function: Any, options: dict[str, Any], *, apart: bool = False) -> None:
        self.py_func = function
        self.options, self.apart = options, apart
        self.name = f"{function.__module__.partition('.')[2]}.{function.__qualname__}"
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self.__wrapped__ = function
        self._codes: list[Callable[..., Any]] = []
        self._by_types: dict[str, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code for these arguments."""
        for code in self._codes:
            value = code(*arguments)
            if value is not MISMATCH:
                break
        else:
            value = self._run_first(arguments)
        if value is FAILED:
            raise InternalError(f"{self.name}: an exception was raised in compiled code")
        return value

    def __repr__(self) -> str:
        """The name, for messages of numba."""
        return f"<kernel {self.name}>"

    @cached_property
    def digest(self) -> str:
        """The digest of everything that its machine code depends on, except types, compiler and processor."""
        return function_digest(self.py_func, self.options | {"apart": self.apart})

    @cached_property
    def dispatcher(self) -> Any:
        """The dispatcher of numba for this function."""
        from numba import njit  # noqa: PLC0415 (slow to import; needed only if machine code is missing)

        found: Any = njit(self.py_func, **self.options)
        if self.apart:
            # numba has this flag, but no option for it.
            customize = found._compiler._customize_flags
            found._compiler._customize_flags = lambda flags: _with_apart(customize(flags))
        return found

    @property
    def _numba_type_(self) -> Any:
        """The type of this kernel inside other kernels: a call becomes part of their code."""
        return self.dispatcher._numba_type_

    def _run_first(self, arguments: tuple[Any, ...]) -> Any:
        """Load or compile the code for new types, and run it."""
        plain = tuple(_plain(value) for value in arguments)
        types = ",".join(_type_text(value) for value in plain)
        with _COMPILING:
            code = self._by_types.get(types)
            if code is None:
                code = self._by_types[types] = load_code(self._find(types, plain), self.name, plain)
                self._codes.append(code)
        value = code(*plain)
        if value is MISMATCH:
            raise InternalError(f"{self.name}: compiled code does not take arguments of types {types}")
        return value

    def _find(self, types: str, arguments: tuple[Any, ...]) -> bytes:
        found = find_code(self.name, types, self.digest)
        if found is None:
            from .building import build_code  # noqa: PLC0415 (imports numba)

            _building.append(self.name)
            try:
                found = build_code(self.dispatcher, arguments)
            finally:
                _building.pop()
            keep_code(self.name, types, self.digest, found)
        return found


def is_compiling() -> bool:
    """Whether a function is being compiled at this moment, in any thread: its code was missing on disk."""
    return bool(_building)


def _with_apart(flags: Any) -> Any:
    """Add the flag of numba that promises its compiler that no two arrays share memory."""
    flags.noalias = True
    return flags


def _plain(value: Any) -> Any:
    """Convert numpy numbers to Python numbers, and give arrays the one dtype instance that machine code knows."""
    if isinstance(value, tuple):
        parts = [_plain(part) for part in value]
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if isinstance(value, np.ndarray):
        standard = np.dtype(value.dtype.str)
        return value if value.dtype is standard else value.view(standard)
    return value.item() if isinstance(value, np.generic) else value


def _type_text(value: Any) -> str:
    """The types that machine code depends on: of numbers; dtype, dimensions and layout of arrays; fields of tuples.

    >>> _type_text((1, 0.5, np.zeros((2, 3))[:, 1]))
    'tuple(i,f,<f81Aw)'
    """
    if isinstance(value, tuple):
        name = f"{type(value).__qualname__}{getattr(value, '_fields', '')}"
        return f"{name}({','.join(_type_text(part) for part in value)})"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        order = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "A"
        return f"{value.dtype.str}{value.ndim}{order}{'w' if value.flags.writeable else 'r'}"
    kind = {bool: "b", int: "i", float: "f"}.get(type(value))
    if kind is None:
        raise InternalError(f"compiled code takes numbers, arrays and tuples of these, not {type(value).__name__}")
    return kind
