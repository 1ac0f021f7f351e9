"""How far computed attention maps, and the inconsistency, can be from those of the real-valued network.

The bound for all patterns (`bounds.coarse_error`) is good for shallow networks. For one pattern, computed from scratch,
its own signed gradients give a bound that is smaller by orders of magnitude on deep ones.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..compound import Compound
from ..network.lower import Chain
from ..regions.pattern import unpack
from ..regions.pattern_table import PatternTable
from ..tolerances import UNIT
from .bounds import allowed_flips, coarse_error, relative_error, total_size
from .inconsistency import Inconsistency, measure_again, original_maps
from .maps import pattern_of, sensitivities
from .options import AttentionOptions

LARGEST = 1 << 22
"""Entries of a matrix from the first layer to another, up to which a pattern gets a bound of its own."""


class Settled(NamedTuple):
    """Curves of some regions (N,) again, with a bound (S,) of the error of each curve."""

    regions: np.ndarray
    curves: Inconsistency
    slack: np.ndarray


class MapErrors:
    """Bounds of the error of ai: one for all curves (`coarse`), and one for each curve computed from scratch.

    Filters do not increase them: the absolute value changes no difference for the worse, and the rows and columns of
    the 3×3 mean sum to at most 1. Moving a map does not either. The map of the unperturbed image counts as well;
    original_doubt is how far it may be off because signs of neurons are not certain there (`Problem.original_doubt`).
    """

    def __init__(
        self,
        compound: Compound,
        patterns: PatternTable,
        curves: Inconsistency,
        options: AttentionOptions,
        original_doubt: float = 0.0,
    ) -> None:
        self.compound, self.patterns, self.curves, self.options = compound, patterns, curves, options
        self.original_doubt = original_doubt
        self.classes = options.chosen(compound.graph.classes)

    def for_curves(self, patterns: PatternTable, curves: Inconsistency) -> "MapErrors":
        """The bounds for other curves of the same compound network; what depends on neither is not computed again."""
        other = MapErrors(self.compound, patterns, curves, self.options, self.original_doubt)
        names = ("original", "chain_error", "known", "scratch_error" if self.is_large else "original_error")
        other.__dict__ |= {name: getattr(self, name) for name in names}
        return other

    @cached_property
    def original(self) -> np.ndarray:
        """The filtered maps of the unperturbed image."""
        return original_maps(self.compound, self.options)

    @cached_property
    def chain_error(self) -> float:
        """A bound for every map, without the sums of its distance from the expected one."""
        flips = allowed_flips(self.compound.chain, self.options, self.original)
        return coarse_error(self.compound.chain, self.options, flips)

    @cached_property
    def coarse(self) -> float:
        """A bound for every curve, however its maps were computed."""
        return 2.0 * self.chain_error + self._summing + self.original_doubt

    @cached_property
    def is_large(self) -> bool:
        """Whether bounds for single patterns would need matrices too large to be worth it."""
        sizes = self.compound.hidden
        return len(sizes) > 1 and sizes[0] * max(sizes[1:]) > LARGEST

    @property
    def finest(self) -> float:
        """Strips narrower than this share of their region are not worth computing its map again."""
        return 1e-3 if self.is_large else 1e-9

    @cached_property
    def scratch_error(self) -> float:
        """A bound for every map that is computed from scratch."""
        return coarse_error(self.compound.chain, self.options, 0)

    def settle(self, chosen: np.ndarray, taus: np.ndarray) -> Settled:
        """The chosen curves (S,), computed from scratch; taus (R, 2) are the ranges of τ of all regions."""
        arguments = (self.patterns, self.curves, taus, self.options, self.original, chosen)
        regions, curves = measure_again(self.compound, *arguments)
        return Settled(regions, curves, np.minimum(self.coarse, self.of(chosen)))

    def of(self, chosen: np.ndarray) -> np.ndarray:
        """A bound for each of the chosen curves (S,), if computed from scratch."""
        if self.is_large:
            return np.full(len(chosen), 2.0 * self.scratch_error + self._summing + self.original_doubt)
        numbers, inverse = np.unique(self.curves.curve_pattern[chosen], return_inverse=True)
        rows = self.patterns[numbers]
        bits, keys = unpack(rows, self.compound.hidden), [row.tobytes() for row in rows]
        for i, key in enumerate(keys):
            if key not in self.known:
                self.known[key] = self._own([layer[i : i + 1] for layer in bits])
        others = self.original_error + self._summing + self.original_doubt
        return np.array([self.known[key] for key in keys])[inverse] + others

    @cached_property
    def known(self) -> dict[bytes, float]:
        """The bounds of single patterns that were asked for before, for whatever δ."""
        return {}

    @cached_property
    def original_error(self) -> float:
        """The bound for the map of the unperturbed image."""
        return self._own(pattern_of(self.compound.graph, self.compound.perturbed.x0.reshape(1, -1)))

    @cached_property
    def _summing(self) -> float:
        """Rounding of the differences and of the sums in the norms: relative to the largest ai and map that occur."""
        curves = self.curves
        largest = float(curves.constant.max(initial=0.0))
        if len(curves.quadratic):
            parts = np.array_split(curves.quadratic, len(curves.quadratic) // 65_536 + 1)  # roots of few at a time
            largest = max(float(np.sqrt(part[:, :, [0, 2]]).sum(axis=(1, 2)).max(initial=0.0)) for part in parts)
        if len(curves.start):
            largest = float((curves.start[:, 0] + np.abs(curves.start[:, 1])).max()) + float(curves.jumps.sum())
        size = sum(self.options.distance.size(part) for part in self.original)
        return 4.0 * (self.compound.perturbed.x0.size + len(self.classes) + 8) * UNIT * (largest + size)

    def _own(self, bits: list[np.ndarray]) -> float:
        """The bound for one pattern: errors of each product, carried on by the signed gradients below it."""
        chain = self.compound.chain
        if not bits:
            return 0.0
        gradients = [part[0][self.classes] for part in sensitivities(chain, bits)]
        errors = [
            relative_error(affine.matrix, 0) * (abs(affine.matrix).T @ np.abs(gradient).T).T
            for affine, gradient in zip(chain.maps, gradients[1:], strict=False)
        ]
        if len(errors) == 1:
            return total_size(errors[0], self.options)
        carried = sum(error @ np.abs(prefix) for error, prefix in zip(errors[1:], _prefixes(chain, bits), strict=True))
        return total_size(errors[0] + (abs(chain.maps[0].matrix).T @ carried.T).T, self.options)


def _prefixes(chain: Chain, bits: list[np.ndarray]) -> list[np.ndarray]:
    """Gradients of the outputs of all ReLU layers but the last with respect to the first one's input, (n_l, n_1)."""
    prefixes = [np.diag(bits[0][0].astype(np.float64))]
    for affine, layer in zip(chain.maps[1:-2], bits[1:], strict=False):
        prefixes.append(np.asarray(affine.matrix @ prefixes[-1]) * layer[0][:, None])
    return prefixes
