"""The strongest pixels of expected maps: which they surely are, and which may be, on segments of τ in a knot cell."""

from typing import NamedTuple

import numpy as np

from . import Expectation

LEVELS = 10.0 ** np.arange(-9.0, -2.0)
"""Strengths closer than such a share of the largest one count as tied: each level allows for larger errors."""

HALVINGS = 20
"""How often the range of a knot cell is halved to separate the thetas where the strongest expected pixels change."""

BITS = 32
"""Pixels in one number of the sums."""


class Strongest(NamedTuple):
    """The k strongest expected pixels on segments of τ, which cover a knot cell.

    ends (J + 1,): of the segments. sure and likely (J, W): pixels surely among the k strongest, and those that may be,
    packed.
    """

    ends: np.ndarray
    sure: np.ndarray
    likely: np.ndarray


class ExpectedTops:
    """The k strongest expected pixels in one knot cell, for errors of several sizes."""

    def __init__(self, at: Expectation, k: int) -> None:
        self.start = at.maps.reshape(-1, at.maps[0, 0].size)
        self.slope = np.zeros(self.start.shape) if at.slope is None else at.slope.reshape(self.start.shape)
        self.k = k
        self.largest = float((np.abs(self.start) + np.abs(self.slope)).sum(axis=0).max())
        self._found: dict[int, Strongest] = {}

    def levels(self, error: np.ndarray) -> np.ndarray:
        """The level (N,) that allows for errors (N,) of the expected maps; −1 if none does."""
        found = np.searchsorted(0.25 * LEVELS * self.largest, error)
        # NaN and infinity come last.
        return np.where(found < len(LEVELS), found, -1)

    def at(self, level: int) -> Strongest:
        """The strongest pixels with the ties of a level."""
        if level not in self._found:
            self._found[level] = self._separated(LEVELS[level] * self.largest)
        return self._found[level]

    def _separated(self, close: float) -> Strongest:
        speed = np.abs(self.slope).sum(axis=0)
        starts, sure, likely = [], [], []
        low, high = np.zeros(1), np.ones(1)
        for depth in range(HALVINGS + 1):
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            values = np.abs(self.start + middle[:, None, None] * self.slope).sum(axis=1)
            # Half of `close` is for the errors of the maps and for the rounding here.
            reach = half[:, None] * speed + 0.5 * close
            is_in, may_be = ranked(values - reach, values + reach, self.k)
            is_done = (is_in.sum(axis=1) == self.k) | (depth == HALVINGS) | (not speed.any())
            # Bits that are not worth separating further: the pieces are as small as the ties.
            is_done |= 2.0 * half * speed.max() < 0.1 * close
            starts.append(low[is_done])
            sure.append(is_in[is_done])
            likely.append(may_be[is_done])
            low, high, middle = low[~is_done], high[~is_done], middle[~is_done]
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
            if not len(low):
                break
        first = np.concatenate(starts)
        order = np.argsort(first, kind="stable")
        inside, may = np.concatenate(sure)[order], np.concatenate(likely)[order]
        # Neighbours with the same pixels are one segment.
        is_same = (inside[1:] == inside[:-1]).all(axis=1) & (may[1:] == may[:-1]).all(axis=1)
        is_new = np.concatenate([[True], ~is_same])
        borders = np.concatenate([[-np.inf], first[order][is_new][1:], [np.inf]])
        return Strongest(borders, packed(inside[is_new]), packed(may[is_new]))


def ranked(low: np.ndarray, high: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Which numbers between low and high (B, n) are surely among the k largest, and which may be."""
    count = low.shape[1]
    if k >= count:
        return np.ones(low.shape, dtype=bool), np.ones(low.shape, dtype=bool)
    least = np.partition(low, count - k, axis=1)[:, count - k]
    most = np.partition(high, count - k - 1, axis=1)[:, count - k - 1]
    return low > most[:, None], ~(high < least[:, None])


def packed(chosen: np.ndarray) -> np.ndarray:
    """Which pixels (B, n), as numbers (B, W) of `BITS` bits each.

    >>> packed(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    count = -(-chosen.shape[1] // BITS)
    bits = np.zeros((len(chosen), count * BITS), dtype=np.uint64)
    bits[:, : chosen.shape[1]] = chosen
    weights = np.uint64(1) << np.arange(BITS, dtype=np.uint64)
    return (bits.reshape(len(chosen), count, BITS) * weights).sum(axis=2, dtype=np.uint64)
