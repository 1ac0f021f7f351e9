"""Patterns (which neurons are active) as rows of packed bits, and a compact table of many patterns.

Every layer starts at a new byte. The table stores some rows whole and the others as differences from the row before,
because neighbouring regions differ in a few neurons.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..compiling import compiled, compiled_inline

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def distinct_rows(blocks: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct rows of uint8 arrays (R, bytes), at least one, of one width, in order of appearance.

    Returns the number of each row (R in total,) and the distinct rows. Rows are compared byte by byte; hashes only
    speed up the search.

    >>> ids, rows = distinct_rows([np.array([[7], [3]], dtype=np.uint8), np.array([[7]], dtype=np.uint8)])
    >>> ids.tolist(), rows.tolist()
    ([0, 1, 0], [[7], [3]])
    >>> distinct_rows([np.zeros((2, 0), dtype=np.uint8)])[0].tolist()
    [0, 0]
    """
    count, width = sum([len(rows) for rows in blocks]), blocks[0].shape[1]
    if width == 0:
        return np.zeros(count, dtype=np.int64), np.zeros((min(count, 1), 0), dtype=np.uint8)
    slots = np.empty(1 << max(1, (2 * count).bit_length()), np.int64)
    ids, table = np.empty(count, np.int64), np.empty((count, width), np.uint8)
    done = found = 0
    for rows in blocks:
        found = _index_rows(np.ascontiguousarray(rows), slots, ids[done : done + len(rows)], table, found)
        done += len(rows)
    return ids, table if found == count else table[:found].copy()


def unpack(packed: np.ndarray, sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Bits of packed rows (R, bytes) as one boolean array (R, n) per layer of the given sizes."""
    start, layers = 0, []
    for size in sizes:
        end = start + -(-size // 8)
        layers.append(np.unpackbits(packed[:, start:end], axis=1, count=size).astype(bool))
        start = end
    return layers


def bit_places(sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The byte and the mask of every neuron's bit (N,) in a packed row, for layers of the given sizes.

    >>> bit_places((9, 1))[0].tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 2]
    """
    within = np.concatenate([np.arange(0), *(np.arange(size) for size in sizes)])
    first = np.cumsum([0, *(-(-size // 8) for size in sizes)])[:-1]
    return np.repeat(first, sizes) + within // 8, 128 >> within % 8


NARROW = 128
"""Narrower rows, in bytes, are always stored whole: they are small and often read."""

EVERY = 64
"""One in this many wide rows is stored whole; reading any other row applies fewer differences than this."""


@dataclass(frozen=True, eq=False)
class PatternTable:
    """P rows of bytes, read like an array: `table[numbers]` are rows (N, bytes), `table[number]` is one (bytes,).

    keys (K, bytes) are the rows stored whole, key_row (K,) their numbers, ascending from 0. Row r differs from row
    r − 1 at places[starts[r]:starts[r+1]]; the same slice of `bytes` holds its values. Keys have no differences.
    """

    keys: np.ndarray
    key_row: np.ndarray
    starts: np.ndarray
    places: np.ndarray
    bytes: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, *, every: int | None = None) -> "PatternTable":
        """A table of the given rows (P, bytes); stores one in `every` rows whole, by default depending on the width."""
        count, width = rows.shape
        step = every or (1 if width < NARROW else EVERY)
        key_row = np.arange(0, count, step)
        if step == 1:
            return cls(rows, key_row, np.zeros(count + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))
        rows = np.ascontiguousarray(rows)
        sizes = np.zeros(count, dtype=np.int64)
        _count_changes(rows, step, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places, changed = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=np.uint8)
        _fill_changes(rows, step, starts, places, changed)
        return cls(rows[::step].copy(), key_row, starts, places, changed)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and their bytes."""
        return len(self.starts) - 1, self.keys.shape[1]

    @property
    def is_plain(self) -> bool:
        """Whether every row is stored whole."""
        return len(self.keys) == len(self)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, numbers: int | np.integer | np.ndarray) -> np.ndarray:
        if self.is_plain:
            return self.keys[numbers]
        chosen = np.atleast_1d(np.asarray(numbers, dtype=np.int64))
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise IndexError(f"patterns {chosen.min()} to {chosen.max()} of {len(self)}")
        rows = np.empty((len(chosen), self.keys.shape[1]), dtype=np.uint8)
        key = np.searchsorted(self.key_row, chosen, side="right") - 1
        _decode_rows(chosen, key, self.keys, self.key_row, self.starts, self.places, self.bytes, rows)
        return rows[0] if np.ndim(numbers) == 0 else rows

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        rows = self[np.arange(len(self))]
        return rows if dtype is None else rows.astype(dtype)


def join_tables(tables: Sequence[PatternTable]) -> PatternTable:
    """All rows of several tables, one after the other; tables without rows may have any width."""
    filled = [table for table in tables if len(table)] or [tables[0]]
    rows = np.cumsum([0, *(len(table) for table in filled)])
    changes = np.cumsum([0, *(len(table.places) for table in filled)])
    starts = [table.starts[1:] + first for table, first in zip(filled, changes, strict=False)]
    return PatternTable(
        keys=np.concatenate([table.keys for table in filled]),
        key_row=np.concatenate([table.key_row + first for table, first in zip(filled, rows, strict=False)]),
        starts=np.concatenate([np.zeros(1, dtype=np.int64), *starts]),
        places=np.concatenate([table.places for table in filled]),
        bytes=np.concatenate([table.bytes for table in filled]),
    )


@compiled_inline
def _eight_bytes(row: np.ndarray, first: int) -> np.uint64:
    """Eight bytes of a row as one number."""
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(row[first + i]) << np.uint64(8 * i)
    return word


@compiled
def _index_rows(rows: np.ndarray, slots: np.ndarray, ids: np.ndarray, table: np.ndarray, found: int) -> int:
    """Write the number of each row (R, bytes), the same for equal rows, to ids (R,), and append rows that are not among
    the first `found` of the table; return the new number of rows in the table.

    slots (a power of two, −1 for none) finds rows by their hashes; if the table is empty, so are the slots.
    """
    if found == 0:
        for slot in range(slots.shape[0]):
            slots[slot] = -1
    mask = slots.shape[0] - 1
    width = rows.shape[1]
    whole = width & ~7
    for r in range(rows.shape[0]):
        code = np.uint64(1469598103934665603)
        for i in range(0, whole, 8):
            code = (code ^ _eight_bytes(rows[r], i)) * _MULTIPLIER
            code ^= code >> np.uint64(29)
        for i in range(whole, width):
            code = (code ^ np.uint64(rows[r, i])) * _MULTIPLIER
            code ^= code >> np.uint64(29)
        # The low bits of a product do not depend on its factors' high bits: take the slot from the high bits.
        slot = np.int64((code * _MULTIPLIER) >> np.uint64(32)) & mask
        while True:
            if slots[slot] < 0:
                slots[slot] = found
                ids[r] = found
                for i in range(width):
                    table[found, i] = rows[r, i]
                found += 1
                break
            other = slots[slot]
            differs = np.uint8(0)
            for i in range(width):
                differs |= rows[r, i] ^ table[other, i]
            if differs == 0:
                ids[r] = other
                break
            slot = (slot + 1) & mask
    return found


@compiled
def _count_changes(rows: np.ndarray, every: int, sizes: np.ndarray) -> None:
    """Count the bytes of each row (R, bytes) that differ from the row before: sizes (R,); 0 for one in `every` rows."""
    for r in range(rows.shape[0]):
        changed = 0
        if r % every != 0:
            for i in range(rows.shape[1]):
                changed += rows[r, i] != rows[r - 1, i]
        sizes[r] = changed


@compiled
def _fill_changes(rows: np.ndarray, every: int, starts: np.ndarray, places: np.ndarray, changed: np.ndarray) -> None:
    """Write the places and values of the bytes that `_count_changes` counts; row r fills starts[r]:starts[r+1]."""
    for r in range(rows.shape[0]):
        if r % every == 0:
            continue
        at = starts[r]
        for i in range(rows.shape[1]):
            if rows[r, i] != rows[r - 1, i]:
                places[at] = i
                changed[at] = rows[r, i]
                at += 1


@compiled
def _decode_rows(
    numbers: np.ndarray, key: np.ndarray, keys: np.ndarray, key_row: np.ndarray, starts: np.ndarray, places: np.ndarray,
    changed: np.ndarray, rows: np.ndarray,
) -> None:  # fmt: skip
    """Write the rows (N, bytes) with the given numbers, each from its key and all later differences."""
    for n in range(numbers.shape[0]):
        k = key[n]
        for i in range(keys.shape[1]):
            rows[n, i] = keys[k, i]
        for at in range(starts[key_row[k]], starts[numbers[n] + 1]):
            rows[n, places[at]] = changed[at]
