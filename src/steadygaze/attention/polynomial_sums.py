"""Sums over pixels behind a loss, as polynomials: matrix products for gradients alone, compiled loops with a factor.

All write to out (N, k, M+1): the coefficients of every sum, and a bound on its error.
"""

from typing import NamedTuple

import numpy as np

from . import polynomial_kernels as kernels


class MovedMaps(NamedTuple):
    """Expected maps and a mask on a knot cell, affine in t − (its low corner): constants, then D slopes.

    expected (K', pixels, D+1), for every pixel and channel; weights (H · W, D+1), None without a mask. error bounds
    the rounding of moved maps, in the norm of the question.
    """

    expected: np.ndarray
    weights: np.ndarray | None
    error: float


class FactorForms(NamedTuple):
    """The factors of gradients on N regions: affine functions (N, pixels, D+1), constants first.

    off and largest (N, pixels) bound their errors and their sizes.
    """

    functions: np.ndarray
    off: np.ndarray
    largest: np.ndarray


class Sums(NamedTuple):
    """N regions whose sums are wanted: maps (B, K', pixels), numbered by owner (N,); factor: None if they have none.

    table: numbers the products of monomials; share: the relative error of sums. corners (V, D): those of all regions,
    as t − origin; region n has starts[n]:starts[n+1].
    """

    maps: np.ndarray
    owner: np.ndarray
    moved: MovedMaps
    factor: FactorForms | None
    table: np.ndarray
    share: float
    corners: np.ndarray
    starts: np.ndarray

    @property
    def room(self) -> np.ndarray:
        """Room for single terms."""
        return np.zeros((3, len(self.table)))


def add_distances(sums: Sums, out: np.ndarray) -> None:
    """Σ (map − expected)² of every class."""
    maps, owner, moved, factor, table, share, *_ = sums
    if factor is not None:
        kernels.add_distances(maps, owner, moved.expected, *factor, table, share, sums.room, out)
        return
    expected = moved.expected.copy()
    slopes = np.ascontiguousarray(expected[:, :, 1:])
    found = np.zeros((len(maps), *out.shape[1:]))
    own = maps - expected[:, :, 0]
    found[:, :, 0] = np.einsum("bkp,bkp->bk", own, own)
    found[:, :, 1 : 1 + slopes.shape[2]] = -2.0 * np.matmul(own.transpose(1, 0, 2), slopes).transpose(1, 0, 2)
    _add_squares(np.matmul(slopes.transpose(0, 2, 1), slopes), table, found)
    sizes = np.sqrt(found[:, :, 0]) + np.linalg.norm(slopes, axis=1).sum(axis=1)
    found[:, :, -1] = 2.0 * share * sizes**2
    out += found[owner]


def _add_squares(products: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Add products (k, D, D) of slopes to the terms of degree two of k sums in out (N, k, M+1)."""
    for i in range(products.shape[1]):
        for j in range(products.shape[2]):
            out[:, :, table[1 + i, 1 + j]] += products[:, i, j]


def add_cosines(sums: Sums, out: np.ndarray) -> None:
    """Σ map · expected, Σ map² and Σ expected²."""
    maps, owner, moved, factor, table, share, *_ = sums
    if factor is not None:
        kernels.add_cosines(maps, owner, moved.expected, *factor, table, share, sums.room, out)
        return
    expected = moved.expected.reshape(-1, moved.expected.shape[2])
    found, own = np.zeros((len(maps), *out.shape[1:])), maps.reshape(len(maps), -1)
    found[:, 0, : expected.shape[1]] = own @ expected
    found[:, 1, 0] = np.einsum("bi,bi->b", own, own)
    products = expected.T @ expected
    found[:, 2, 0], found[:, 2, 1 : len(products)] = products[0, 0], 2.0 * products[0, 1:]
    _add_squares(products[None, 1:, 1:], table, found[:, 2:])
    ours, theirs = np.sqrt(found[:, 1, 0]), np.linalg.norm(expected, axis=0).sum()
    found[:, :, -1] = 2.0 * share * np.stack([ours * theirs, ours**2, np.full(len(maps), theirs**2)], axis=1)
    out += found[owner]


def add_masses(sums: Sums, outside: np.ndarray, out: np.ndarray) -> None:
    """Σ outside · |map| and Σ |map|; outside (pixels, D+1). Factors are not negative."""
    maps, owner, _, factor, table, share, *_ = sums
    if factor is not None:
        kernels.add_masses(maps, owner, outside, *factor, table, share, sums.room, out)
        return
    mass, found = np.abs(maps).sum(axis=1), np.zeros((len(maps), *out.shape[1:]))
    found[:, 0, : outside.shape[1]] = mass @ outside
    found[:, 1, 0] = mass.sum(axis=1)
    found[:, :, -1] = 2.0 * share * np.stack([mass @ np.abs(outside).sum(axis=1), found[:, 1, 0]], axis=1)
    out += found[owner]


def add_strongest(sums: Sums, is_on: np.ndarray, out: np.ndarray) -> None:
    """The functions |map| · factor that may decide pointing, on the object and off it, and bounds; is_on (pixels,)."""
    maps, owner, _, factor, _, share, corners, starts = sums
    assert factor is not None
    most, candidates = np.empty(len(is_on)), np.empty(len(is_on), dtype=np.int64)
    kernels.add_strongest(
        maps, owner, is_on, factor.functions, factor.off, share, corners, starts, most, candidates, out
    )  # fmt: skip
