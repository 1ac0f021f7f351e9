"""Compiled loops over rows of packed bits: equal rows, and differences between rows that follow each other."""

import numpy as np

from ..compiling import compiled

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@compiled
def index_rows(rows, slots, ids, first):
    """Number equal rows (R, bytes) alike: ids (R,), first (R,) the place of each; returns how many there are.

    slots (a power of two, filled with −1) is scratch. The hash only says where to look.
    """
    mask = slots.shape[0] - 1
    found = 0
    for r in range(rows.shape[0]):
        code = np.uint64(1469598103934665603)
        for i in range(rows.shape[1]):
            code = (code ^ np.uint64(rows[r, i])) * _MULTIPLIER
            code ^= code >> np.uint64(29)
        slot = np.int64(code >> np.uint64(1)) & mask
        while True:
            if slots[slot] < 0:
                slots[slot] = found
                first[found] = r
                ids[r] = found
                found += 1
                break
            other = first[slots[slot]]
            same = True
            for i in range(rows.shape[1]):
                if rows[r, i] != rows[other, i]:
                    same = False
                    break
            if same:
                ids[r] = slots[slot]
                break
            slot = (slot + 1) & mask
    return found


@compiled
def count_changes(rows, every, sizes):
    """How many bytes of each row (R, bytes) differ from the row before: sizes (R,); 0 for one row in `every`."""
    for r in range(rows.shape[0]):
        changed = 0
        if r % every != 0:
            for i in range(rows.shape[1]):
                changed += rows[r, i] != rows[r - 1, i]
        sizes[r] = changed


@compiled
def fill_changes(rows, every, starts, places, changed):
    """Where these bytes are, and what they are in the row; both are filled from starts (R+1,) on."""
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
def decode_rows(numbers, key, keys, key_row, starts, places, changed, rows):
    """The rows (N, bytes) of the given numbers, each from its key and all differences since; see `PatternTable`."""
    for n in range(numbers.shape[0]):
        k = key[n]
        for i in range(keys.shape[1]):
            rows[n, i] = keys[k, i]
        for at in range(starts[key_row[k]], starts[numbers[n] + 1]):
            rows[n, places[at]] = changed[at]
