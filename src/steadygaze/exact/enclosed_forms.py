"""Affine forms in whole numbers, each with a radius: the values of a layer on a part of the domain.

A value of shape S is (numbers · (t, 1) ± radii) / denominator, with numbers (*S, C), C − 1 coordinates of t in [0, 1],
and C = 1 for values at one point. The radii bound the distance to the true value wherever the forms are used; they are
None, meaning zero, unless the network holds a number that is not rational. Nothing is ever rounded to nearest.
"""

from dataclasses import dataclass

import numpy as np
from flint import fmpz, fmpz_mat

from .whole_numbers import Constants


@dataclass(frozen=True, eq=False)
class Forms:
    """Values of a layer; see the module."""

    numbers: np.ndarray
    radii: np.ndarray | None
    denominator: fmpz

    @property
    def rows(self) -> np.ndarray:
        """The numbers as (n, C)."""
        return self.numbers.reshape(-1, self.numbers.shape[-1])

    @property
    def sizes(self) -> np.ndarray:
        """A bound (*S) of |numbers · (t, 1)| on the unit cube."""
        return np.abs(self.numbers).sum(axis=-1)

    def add(self, constants: Constants) -> "Forms":
        """Add constants that broadcast to S."""
        common = self.denominator * constants.denominator // self.denominator.gcd(constants.denominator)
        own, other = common // self.denominator, common // constants.denominator
        numbers = self.numbers * own if own != 1 else self.numbers.copy()
        numbers[..., -1] += constants.numbers * other
        radii = None if self.radii is None else self.radii * own
        if constants.radii is not None:
            added = np.broadcast_to(constants.radii * other, numbers.shape[:-1])
            radii = added.copy() if radii is None else radii + added
        return Forms(numbers, radii, common)

    def gated(self, is_active: np.ndarray, is_silent: np.ndarray) -> "Forms":
        """After a ReLU: zero where not active (n,), without a radius where silent (n,): surely not positive."""
        numbers = self.rows.copy()
        numbers[~is_active] = fmpz(0)
        radii = None
        if self.radii is not None:
            radii = self.radii.copy()
            radii[is_silent.reshape(radii.shape)] = fmpz(0)
        return Forms(numbers.reshape(self.numbers.shape), radii, self.denominator)

    def one_minus(self) -> "Forms":
        """1 − value."""
        numbers = -self.numbers
        numbers[..., -1] += self.denominator
        return Forms(numbers, self.radii, self.denominator)


def to_matrix(rows: np.ndarray) -> fmpz_mat:
    """Whole numbers (n, m) as a matrix."""
    return fmpz_mat(rows.shape[0], rows.shape[1], rows.ravel().tolist())


def multiply(matrix: fmpz_mat, columns: np.ndarray) -> np.ndarray:
    """matrix (n, k) times columns (k, m), exactly."""
    product = matrix * to_matrix(columns)
    result = np.empty(product.nrows() * product.ncols(), dtype=object)
    result[:] = product.entries()
    return result.reshape(product.nrows(), product.ncols())
