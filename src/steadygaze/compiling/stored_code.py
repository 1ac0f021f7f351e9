"""Machine code on disk: one file for a function and its types, in a folder named after the compiler and the processor.

A file begins with the digest of what the function is made of (`digests`): code of other sources is not found, and gets
replaced. The folder is in `__pycache__/compiled` of this package, or where NUMBA_CACHE_DIR points, or, if neither can
be written, in the user's cache.
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

from .machine_code import host

PACKAGE = Path(__file__).parents[1]
_ENTRIES = ("building.py", "machine_code.py")
"""The files of this folder that decide how machine code is called."""


def find_code(name: str, types: str, digest: str) -> bytes | None:
    """The stored code of a function for a list of types, if there is any that was made of the same."""
    try:
        header, _, content = _file(name, types).read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if header == _header(types, digest, content) else None


def keep_code(name: str, types: str, digest: str, code: bytes) -> None:
    """Store code; if it cannot be written, later processes compile again."""
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
    """The digest of the compiler, of the entries that it writes, and of the processor."""
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
    """Write a file as a whole: other processes see all of it, or nothing."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
