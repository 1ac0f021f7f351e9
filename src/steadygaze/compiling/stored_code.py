"""Machine code on disk: one file for a function and its types, in a folder named after the compiler and the processor.

A file begins with a digest of the function: its bytecode and constants, the values of the globals that it names, and
the same for every compiled function that it calls. Equal digests give equal machine code, on one version of Python,
numba and the processor; code with another digest counts as missing, and is replaced. The folder is in
`__pycache__/compiled` of this package, or where NUMBA_CACHE_DIR points, or, if neither can be written, in the user's
cache.
"""

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..errors import InternalError
from .machine_code import host

PACKAGE = Path(__file__).parents[1]
_ENTRIES = ("building.py", "machine_code.py")
"""The files of this folder that decide how machine code is called."""

_PLAIN = (bool, int, float, str, bytes, type(None), np.number, np.bool_)


def find_code(name: str, types: str, digest: str) -> bytes | None:
    """The stored code of a function for a list of types, if its digest is the same; otherwise None."""
    try:
        header, _, content = _file(name, types).read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if header == _header(types, digest, content) else None


def keep_code(name: str, types: str, digest: str, code: bytes) -> None:
    """Store code; if the file cannot be written, later processes compile again."""
    with contextlib.suppress(OSError):
        _write(_file(name, types), _header(types, digest, code) + b"\n" + code)


def _header(types: str, digest: str, code: bytes) -> bytes:
    return f"{types} {digest} {hashlib.sha256(code).hexdigest()}".encode()


def _file(name: str, types: str) -> Path:
    return code_folder() / f"{name}-{hashlib.sha256(types.encode()).hexdigest()[:16]}.code"


@cache
def code_folder() -> Path:
    """The folder for code that this machine compiles."""
    for parent in _places():
        with contextlib.suppress(OSError):
            folder = parent / _machine_digest()[:16]
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return Path(tempfile.mkdtemp(prefix="steadygaze-compiled-"))


def _machine_digest() -> str:
    """The digest of the compiler, of the code that writes entries, and of the processor."""
    llvm, cpu, features = host()
    found = find_spec("numba")
    version = b"" if found is None or found.origin is None else (Path(found.origin).parent / "_version.py").read_bytes()
    entries = b"".join((Path(__file__).parent / name).read_bytes() for name in _ENTRIES)
    facts = (sys.version, str(llvm.llvm_version_info), cpu, features, llvm.get_process_triple())
    return hashlib.sha256("\0".join(facts).encode() + version + entries).hexdigest()


def _places() -> Iterator[Path]:
    # Several installations may share a folder; none removes the code of another.
    own = f"steadygaze-{hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:8]}"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / own
    yield PACKAGE / "__pycache__" / "compiled"
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / own


def _write(file: Path, content: bytes) -> None:
    """Write a file atomically: other processes see all of it, or nothing."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


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
    """Bytecode, names and constants, without docstring and line numbers."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_argcount)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(None if constant == docstring else constant).encode()


def _names(code: CodeType) -> set[str]:
    """All names that the code looks up: globals and their attributes."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _value_text(function: FunctionType, value: Any) -> str:
    """A text for a value that differs if the machine code of the function would differ."""
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
