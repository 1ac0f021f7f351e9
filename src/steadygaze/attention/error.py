"""How far computed attention maps, and the inconsistency, can be from those of the real-valued network.

A backward pass multiplies matrices; each product has an error of at most (number of terms) · 2⁻⁵³ · Σ|terms|, which the
remaining matrices carry on. Products of absolute weights bound all patterns at once (good for shallow networks);
for one pattern its own signed gradients give a bound that is smaller by orders of magnitude on deep ones.
"""

from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from ..compound import Compound
from ..network.lower import Chain
from ..regions.pattern import unpack
from ..tolerances import MAX_FLIPS, UNIT
from .distances import Distance
from .inconsistency import AttentionOptions, Inconsistency
from .maps import pattern_at, sensitivities


class MapErrors:
    """Bounds of the error of ai: one for all curves (`coarse`), and one for each curve asked for (`of`).

    Filters do not increase them: the absolute value changes no difference for the worse, and the rows and columns of
    the 3×3 mean sum to at most 1. Moving a map does not either. The map of the unperturbed image counts as well.
    """

    def __init__(
        self, compound: Compound, patterns: np.ndarray, curves: Inconsistency, options: AttentionOptions
    ) -> None:
        self.compound, self.patterns, self.curves, self.options = compound, patterns, curves, options
        self.classes = options.chosen(compound.graph.classes)

    @cached_property
    def coarse(self) -> float:
        """A bound for every pattern."""
        product = abs(_dense(self.compound.chain.maps[-1].matrix)[self.classes])
        terms = 0.0
        for affine in reversed(self.compound.chain.maps[:-1]):
            product = (abs(affine.matrix).T @ product.T).T
            terms += _factor(affine.matrix)
        return 2.0 * self._norm(terms * product) + self._summing

    def of(self, curves: np.ndarray) -> np.ndarray:
        """A bound for each of the given curves (S,)."""
        numbers, inverse = np.unique(self.curves.curve_pattern[curves], return_inverse=True)
        bits = unpack(self.patterns[numbers], self.compound.hidden)
        each = [self._own([layer[i : i + 1] for layer in bits]) for i in range(len(numbers))]
        return np.array(each)[inverse] + self._original + self._summing

    @cached_property
    def _original(self) -> float:
        return self._own(pattern_at(self.compound.chain, self.compound.perturbed.x0.reshape(1, -1)))

    @cached_property
    def _summing(self) -> float:
        """Rounding of the sums in the norms, relative to the largest constant ai; quadratic ones carry their own."""
        largest = float(self.curves.constant.max(initial=0.0))
        return (self.compound.perturbed.x0.size + len(self.classes)) * UNIT * largest

    def _own(self, bits: list[np.ndarray]) -> float:
        """The bound for one pattern: errors of each product, carried on by the signed gradients below it."""
        chain = self.compound.chain
        if not bits:
            return 0.0
        gradients = [part[0][self.classes] for part in sensitivities(chain, bits)]
        errors = [
            _factor(affine.matrix) * (abs(affine.matrix).T @ np.abs(gradient).T).T
            for affine, gradient in zip(chain.maps, gradients[1:], strict=False)
        ]
        if len(errors) == 1:
            return self._norm(errors[0])
        carried = sum(error @ np.abs(prefix) for error, prefix in zip(errors[1:], _prefixes(chain, bits), strict=True))
        return self._norm(errors[0] + (abs(chain.maps[0].matrix).T @ carried.T).T)

    def _norm(self, error: np.ndarray) -> float:
        """The sum over the classes of the norm of an error (K', pixels), rounded up."""
        order = 1 if self.options.distance is Distance.L1 else 2
        return float(np.linalg.norm(error, ord=order, axis=1).sum() * (1.0 + 1e-9))


def _factor(matrix: np.ndarray) -> float:
    return 2.0 * (matrix.shape[0] + MAX_FLIPS + 8) * UNIT


def _prefixes(chain: Chain, bits: list[np.ndarray]) -> list[np.ndarray]:
    """Gradients of the outputs of all ReLU layers but the last with respect to the first one's input, (n_l, n_1)."""
    prefixes = [np.diag(bits[0][0].astype(np.float64))]
    for affine, layer in zip(chain.maps[1:-2], bits[1:], strict=False):
        prefixes.append(np.asarray(affine.matrix @ prefixes[-1]) * layer[0][:, None])
    return prefixes


def _dense(matrix: np.ndarray | csr_array) -> np.ndarray:
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray())
