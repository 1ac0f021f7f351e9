"""Patterns as rows of packed bits: which neurons are active, one bit each, every layer starting at a new byte.

Finds the distinct rows among many, so that what depends on the pattern alone is computed once.
"""

import numpy as np

from .pattern_kernels import index_rows


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct rows of a uint8 array (R, bytes) in order of appearance.

    Returns the number of each row (R,) and the first place of each distinct row. Rows are compared byte by byte; the
    hash only says where to look.

    >>> ids, first = distinct_rows(np.array([[7], [3], [7]], dtype=np.uint8))
    >>> ids.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    >>> distinct_rows(np.zeros((2, 0), dtype=np.uint8))[0].tolist()
    [0, 0]
    """
    count = len(rows)
    slots = np.full(1 << max(1, (2 * count).bit_length()), -1, dtype=np.int64)
    ids, first = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    found = index_rows(np.ascontiguousarray(rows), slots, ids, first)
    return ids, first[:found].copy()


def unpack(packed: np.ndarray, sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Bits of packed rows (R, bytes) as one boolean array (R, n) per layer of the given sizes."""
    start, layers = 0, []
    for size in sizes:
        end = start + -(-size // 8)
        layers.append(np.unpackbits(packed[:, start:end], axis=1, count=size).astype(bool))
        start = end
    return layers
