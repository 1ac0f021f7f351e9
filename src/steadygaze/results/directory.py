"""Atomic writes of directories and files: a crash leaves either the old one or the new one.

The next write to the same place removes the leftovers of killed runs.
"""

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import StoreError, not_writable

try:
    import fcntl
except ImportError:  # without such locks leftovers stay; nothing else changes
    fcntl = None  # type: ignore[assignment]


@contextmanager
def atomic_directory(target: Path, *, replaces: bool) -> Iterator[Path]:
    """Yield an empty sibling directory, which becomes `target` when the block ends without an error.

    With `replaces`, it then replaces an existing target; otherwise an existing target is an OSError. After an error
    everything is as before.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent):
        _sweep(target)
    new = target.parent / f"{_prefix(target)}new-{uuid.uuid4().hex}"
    new.mkdir()
    try:
        with _locked(new):
            yield new
            _flush(new)
            with _locked(target.parent):
                _put(new, target, replaces=replaces)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    _flush_folder(target.parent)


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """Yield a path beside `target` for a file that replaces it when the block ends without an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.parent / f"{_prefix(target)}new-{uuid.uuid4().hex}"
    try:
        yield new
        with new.open("rb+") as stream:
            os.fsync(stream.fileno())
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
    _flush_folder(target.parent)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write one JSON object."""
    # ASCII only: UTF-8 cannot encode every file name.
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="ascii")


def check_file(path: str | Path, *, force: bool = False) -> Path:
    """Return the place of a file to write; StoreError, before anything is computed, if something is in the way."""
    target = Path(path)
    try:
        if target.is_dir():
            raise StoreError(f"{path}: is a directory; name a file with --out")
        if not force and target.exists():
            raise StoreError(f"{path}: exists already; choose another --out, or replace it with --force")
        above = next((folder for folder in target.absolute().parents if folder.exists()), target.parent)
        if not above.is_dir():
            raise StoreError(f"{path}: cannot be written: {above} is not a directory; choose another --out")
        if not os.access(above, os.W_OK):
            raise StoreError(f"{path}: cannot be written (Permission denied); choose another --out")
    except OSError as error:
        raise not_writable(path, error) from None
    return target


def _put(new: Path, target: Path, *, replaces: bool) -> None:
    if not (replaces and target.exists()):
        new.rename(target)
        return
    old = target.parent / f"{_prefix(target)}old-{uuid.uuid4().hex}"
    target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sweep(target: Path) -> None:
    """Remove the leftovers of killed runs beside the target; restore an old target that was moved away."""
    for old in target.parent.glob(f"{_prefix(target)}old-*"):
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(target)
    for new in target.parent.glob(f"{_prefix(target)}new-*"):
        if _is_abandoned(new):
            shutil.rmtree(new, ignore_errors=True)


def _prefix(target: Path) -> str:
    # A digest: the name itself may already have the maximal length, and may hold wildcards.
    return f".steadygaze-{sha256(os.fsencode(target.name)).hexdigest()[:16]}-"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a directory; the system releases it even when the process is killed."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_abandoned(folder: Path) -> bool:
    if fcntl is None:
        return False
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _flush(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb+") as stream:
            os.fsync(stream.fileno())
    _flush_folder(folder)


def _flush_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system can; the renaming itself is safe without it
            os.fsync(handle)
    finally:
        os.close(handle)
