"""Machine code on disk: one file for a function and its types, in a folder named after all that the code depends on.

These are the sources of all compiled loops (a function is compiled together with those that it calls), the versions of
Python, numba and llvmlite, and the processor. The folder is `__pycache__/compiled` of this package, or where
NUMBA_CACHE_DIR points, or, if neither can be written, the user's cache. Folders of other sources are removed.
"""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .machine_code import host

SOURCES = (
    "compiling/*.py",
    "tolerances.py",
    "accuracy.py",
    "compound.py",
    "fingerprints.py",
    "polytopes/adjacency.py",
    "**/*kernels.py",
    "regions/*forms.py",
    "regions/patterns.py",
    "attention/rows.py",
    "attention/filters/*.py",
    "network/layers.py",
    "network/windows.py",
    "compare/overlay.py",
)
"""Files whose functions or constants are compiled into others."""

PACKAGE = Path(__file__).parents[1]


def find_code(name: str, types: str) -> bytes | None:
    """The stored code of a function for a list of types, if there is any."""
    try:
        header, _, content = _file(name, types).read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if header == _header(types, content) else None


def keep_code(name: str, types: str, code: bytes) -> None:
    """Store code; if it cannot be written, later processes compile again."""
    with contextlib.suppress(OSError):
        _write(_file(name, types), _header(types, code) + b"\n" + code)


def _header(types: str, code: bytes) -> bytes:
    return f"{types} {hashlib.sha256(code).hexdigest()}".encode()


def _file(name: str, types: str) -> Path:
    return code_folder() / f"{name}-{hashlib.sha256(types.encode()).hexdigest()[:16]}.code"


@cache
def code_folder() -> Path:
    """The folder for the code of this version of the sources on this machine."""
    for parent in _places():
        with contextlib.suppress(OSError):
            parent.mkdir(parents=True, exist_ok=True)
            if os.access(parent, os.W_OK):
                own = sources_digest(PACKAGE, parent)[:16]
                folder = parent / f"{own}-{_machine_digest()[:16]}"
                folder.mkdir(exist_ok=True)
                discard_stale(parent, own)
                return folder
    return Path(tempfile.mkdtemp(prefix="steadygaze-compiled-"))


def discard_stale(parent: Path, own: str) -> None:
    """Remove the folders of other versions of the sources."""
    for folder in parent.iterdir():
        if folder.is_dir() and not folder.name.startswith(f"{own}-"):
            shutil.rmtree(folder, ignore_errors=True)


def sources_digest(package: Path, memory: Path) -> str:
    """The digest of the sources; `memory` remembers it as long as no file has another size or time of change."""
    files = sorted({path for pattern in SOURCES for path in package.glob(pattern)})
    stamp = hashlib.sha256(str(package).encode())
    for path in files:
        facts = path.stat()
        stamp.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    known = memory / "sources"
    with contextlib.suppress(OSError, ValueError):
        seen, digest = known.read_text(encoding="ascii").split()
        if seen == stamp.hexdigest():
            return digest
    content = hashlib.sha256()
    for path in files:
        content.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    with contextlib.suppress(OSError):
        _write(known, f"{stamp.hexdigest()} {content.hexdigest()}\n".encode())
    return content.hexdigest()


def _machine_digest() -> str:
    """The digest of the compiler and the processor."""
    llvm, cpu, features = host()
    found = find_spec("numba")
    version = b"" if found is None or found.origin is None else (Path(found.origin).parent / "_version.py").read_bytes()
    facts = (sys.version, str(llvm.llvm_version_info), cpu, features, llvm.get_process_triple())
    return hashlib.sha256("\0".join(facts).encode() + version).hexdigest()


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
