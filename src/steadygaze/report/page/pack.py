"""From arrays to text that a page can hold: one compressed block in base64, and where each array lies in it.

The page reads it back with `unpack` in assets/data.js. Nothing is rounded here; who adds an array chooses its type.
"""

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

KINDS = {"f8": "<f8", "f4": "<f4", "u4": "<u4", "i2": "<i2", "u2": "<u2", "u1": "|u1"}
"""Types that JavaScript has arrays of."""

ALIGNED = 8
"""Every array begins at a multiple of so many bytes: JavaScript refuses others."""


@dataclass(frozen=True)
class Pack:
    """A block in base64 and the places (type, shape, first byte) of the arrays in it."""

    block: str
    places: dict[str, dict[str, Any]]


def pack(arrays: Mapping[str, tuple[str, np.ndarray]]) -> Pack:
    """Pack arrays, each given with the type (see `KINDS`) that it is stored as.

    >>> pack({"a": ("u1", np.array([1, 2, 3])), "b": ("f4", np.array([[0.5]]))}).places["b"]
    {'kind': 'f4', 'shape': [1, 1], 'at': 8}
    """
    parts, places, at = [], {}, 0
    for name, (kind, array) in arrays.items():
        data = np.ascontiguousarray(array, dtype=KINDS[kind]).tobytes()
        data += bytes(-len(data) % ALIGNED)
        places[name] = {"kind": kind, "shape": list(np.shape(array)), "at": at}
        parts.append(data)
        at += len(data)
    return Pack(base64.b64encode(zlib.compress(b"".join(parts), 6)).decode("ascii"), places)


def smallest_kind(array: np.ndarray) -> str:
    """The smaller of f4 and f8 that holds every number exactly.

    >>> smallest_kind(np.array([0.5])), smallest_kind(np.array([0.1]))
    ('f4', 'f8')
    """
    with np.errstate(over="ignore"):
        return "f4" if np.array_equal(np.asarray(array, dtype=np.float32), array, equal_nan=True) else "f8"


def outward(bounds: np.ndarray) -> np.ndarray:
    """Bounds (…, 2) as float32, the first rounded down and the second up.

    >>> low, high = outward(np.array([0.1, 0.1]))
    >>> float(low) < 0.1 < float(high)
    True
    """
    with np.errstate(over="ignore"):
        near = np.asarray(bounds, dtype=np.float32)
    low, high = near[..., 0], near[..., 1]
    low = np.where(low > bounds[..., 0], np.nextafter(low, np.float32(-np.inf)), low)
    high = np.where(high < bounds[..., 1], np.nextafter(high, np.float32(np.inf)), high)
    return np.stack([low, high], axis=-1)
