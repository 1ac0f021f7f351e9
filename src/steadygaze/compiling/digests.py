"""What the machine code of a function is made of: Python function → digest.

These are its bytecode and constants, the values of the globals that it names, and, for every compiled function that it
calls, the same again. Equal digests give equal machine code, on one version of Python, numba and the processor.
"""

import hashlib
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..errors import InternalError

_PLAIN = (bool, int, float, str, bytes, type(None), np.number, np.bool_)


def function_digest(function: FunctionType, options: dict[str, Any]) -> str:
    """The digest of a function that numba compiles with given options."""
    if function.__closure__ or function.__kwdefaults__:
        raise InternalError(f"{function.__qualname__}: compiled code takes no closures and no keyword defaults")
    content = hashlib.sha256()
    settings = {name: sorted(value) if isinstance(value, set) else value for name, value in options.items()}
    content.update(f"{sorted(settings.items())} {function.__defaults__}".encode())
    for part in _code_parts(function.__code__, function.__doc__):
        content.update(part)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            content.update(f"\n{name} = {_value_text(function, function.__globals__[name])}".encode())
    return content.hexdigest()


def _code_parts(code: CodeType, docstring: str | None = None) -> Iterator[bytes]:
    """Bytecode, names and constants, without docstring and places in the file."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_argcount)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(None if constant == docstring else constant).encode()


def _names(code: CodeType) -> set[str]:
    """All names that the code looks up: globals, and attributes of what they stand for."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _value_text(function: FunctionType, value: Any) -> str:
    """A text that differs if the machine code of the function would."""
    digest = "itself" if getattr(value, "py_func", value) is function else getattr(value, "digest", None)
    if isinstance(digest, str):
        return digest
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(_value_text(function, part) for part in value)})"
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] != __name__.partition(".")[0]:
        return value.__name__
    if isinstance(value, (ModuleType, type)):
        used = sorted(_names(function.__code__) & vars(value).keys())
        parts = (f"{name}={_value_text(function, getattr(value, name))}" for name in used)
        return f"{value.__module__ if isinstance(value, type) else ''}.{value.__name__}({', '.join(parts)})"
    if callable(value) and getattr(value, "__module__", "").partition(".")[0] in ("builtins", "numpy", "math"):
        return f"{value.__module__}.{value.__qualname__}"
    raise InternalError(f"{function.__qualname__}: compiled code uses a {type(value).__name__} of unknown content")
