"""Named arrays in one file, and back. The bytes depend on the arrays alone; reading unpickles nothing."""

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from ..budget import machine_gib
from ..errors import StoreError

STAMP = (1980, 1, 1, 0, 0, 0)
"""The date of every member: the earliest of the zip format."""

COMPRESSION = 1
"""The level of compression: higher ones take several times as long for a tenth of the bytes."""

LEAST_RANDOM = 1 << 12
"""Shorter arrays of numbers are always compressed."""

SAMPLE = 256
"""Numbers of an array that tell whether it is worth compressing."""

HEADER_BYTES = 10_000
KINDS = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.uint8))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays in the given order; whole numbers that fit are stored as int32.

    Numbers with a fraction are not compressed unless they repeat: their digits are random, and compressing them would
    take longer than everything else.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", STAMP)
            member.compress_type = zipfile.ZIP_STORED if _is_random(array) else zipfile.ZIP_DEFLATED
            member._compresslevel = COMPRESSION  # type: ignore[attr-defined]
            member.create_system = 3  # Unix, on every machine
            member.external_attr = 0o644 << 16
            with archive.open(member, "w", force_zip64=True) as stream:
                npy.write_array(stream, np.ascontiguousarray(_narrow(array)), version=(1, 0), allow_pickle=False)


def read_arrays(path: Path, names: list[str], content: bytes | None = None) -> dict[str, np.ndarray]:
    """Read the arrays of exactly these names, from the content of the file if given; StoreError for anything else.

    Unpickles nothing, and allocates only after the sizes in the file fit each other and the machine.
    """
    try:
        with zipfile.ZipFile(path if content is None else io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sorted(member.filename for member in members) != sorted(f"{name}.npy" for name in names):
                raise StoreError(f"{path}: does not hold the arrays of a result; run the verification again")
            room, needed = machine_gib() * 2**30, sum(member.file_size for member in members)
            if needed > room:
                raise StoreError(f"{path}: needs {needed / 2**30:.3g} GiB, this machine has {room / 2**30:.3g}")
            return {name: _read_member(archive, f"{name}.npy", path, content) for name in names}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise StoreError(f"{path}: cannot be read ({reason}); run the verification again") from None


def _is_random(array: np.ndarray) -> bool:
    """Whether an array holds many different numbers with a fraction."""
    if array.dtype.kind != "f" or array.size < LEAST_RANDOM:
        return False
    sample = array.ravel()[:: array.size // SAMPLE]
    return 2 * len(np.unique(sample)) > len(sample)


def _narrow(array: np.ndarray) -> np.ndarray:
    if array.dtype != np.int64 or (array.size and max(-int(array.min()), int(array.max())) > np.iinfo(np.int32).max):
        return array
    return array.astype(np.int32)


def _read_member(archive: zipfile.ZipFile, name: str, path: Path, whole: bytes | None) -> np.ndarray:
    member = archive.getinfo(name)
    is_stored = whole is not None and member.compress_type == zipfile.ZIP_STORED
    content = _stored_bytes(member, memoryview(whole)) if whole is not None and is_stored else archive.read(name)
    stream = io.BytesIO(content[: 10 + HEADER_BYTES])
    if npy.read_magic(stream) != (1, 0):
        raise StoreError(f"{path}: {name} is not in the format of a result; run the verification again")
    shape, is_fortran, kind = npy.read_array_header_1_0(stream, max_header_size=HEADER_BYTES)
    if kind not in KINDS or is_fortran or stream.tell() + math.prod(shape) * kind.itemsize != len(content):
        raise StoreError(f"{path}: {name} claims {shape} of {kind}, but holds something else; run again")
    return np.frombuffer(content, dtype=kind, offset=stream.tell()).reshape(shape).copy()


def _stored_bytes(member: zipfile.ZipInfo, whole: memoryview) -> memoryview:
    """The bytes of a member that is not compressed, without a copy; the caller has checked the hash of the file."""
    # Its local header: 30 bytes, the last four of which are the lengths of the name and of further fields after it.
    lengths = whole[member.header_offset + 26 : member.header_offset + 30]
    start = member.header_offset + 30 + sum(np.frombuffer(lengths, dtype="<u2").tolist())
    return whole[start : start + member.file_size]
