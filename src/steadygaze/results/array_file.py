"""Named arrays in one file, and back. The bytes depend on the arrays alone; reading unpickles nothing."""

import io
import math
import re
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
"""How many numbers of an array are looked at to decide whether to compress it."""

HEADER_BYTES = 10_000
_USUAL_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<|][a-z][0-9]{1,2})', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,18}(?:, |,|(?=\))))*)\), \} *\n",
    re.DOTALL,
)
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
    content = archive.read(name) if whole is None else _member_bytes(member, memoryview(whole))
    shape, kind, start = _header(content, f"{path}: {name}")
    if kind not in KINDS or start + math.prod(shape) * kind.itemsize != len(content):
        raise StoreError(
            f"{path}: {name} claims {shape} of {kind}, but holds something else; run the verification again"
        )
    return np.frombuffer(content, dtype=kind, offset=start).reshape(shape).copy()


def _header(content: bytes | memoryview, where: str) -> tuple[tuple[int, ...], np.dtype, int]:
    """The shape and the kind of the numbers of an array, and where they start.

    numpy's own reader takes any header that is a Python literal, and as long as reading the numbers of a small array.
    """
    usual = _USUAL_HEADER.match(content[: 10 + HEADER_BYTES])
    if usual is not None and 10 + int.from_bytes(content[8:10], "little") == usual.end():
        sizes = tuple([int(size) for size in usual[2].split(b",") if size])
        return sizes, np.dtype(usual[1].decode("ascii")), usual.end()
    stream = io.BytesIO(content[: 10 + HEADER_BYTES])
    if npy.read_magic(stream) != (1, 0):
        raise StoreError(f"{where} is not in the format of a result; run the verification again")
    shape, is_fortran, kind = npy.read_array_header_1_0(stream, max_header_size=HEADER_BYTES)
    if is_fortran:
        raise StoreError(f"{where} claims {shape} of {kind}, but holds something else; run the verification again")
    return shape, kind, stream.tell()


def _member_bytes(member: zipfile.ZipInfo, whole: memoryview) -> bytes | memoryview:
    """The bytes of a member, taken from the file without a copy if it is not compressed; the caller has checked the
    hash of the file."""
    # Its local header: 30 bytes, the last four of which are the lengths of the name and of further fields after it.
    lengths = whole[member.header_offset + 26 : member.header_offset + 30]
    start = member.header_offset + 30 + sum(np.frombuffer(lengths, dtype="<u2").tolist())
    content = whole[start : start + member.compress_size]
    if member.compress_type == zipfile.ZIP_STORED:
        return content
    if member.compress_type != zipfile.ZIP_DEFLATED:
        raise NotImplementedError(f"compressed by method {member.compress_type}")
    # At most one byte more than it claims: no member fills the memory.
    found = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, member.file_size + 1)
    if zlib.crc32(found) != member.CRC:
        raise zipfile.BadZipFile(f"bad checksum of {member.filename}")
    return found
