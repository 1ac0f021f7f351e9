"""Attention methods, one file each: what a method computes from patterns and weights, and how far rounding moves it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...network.graph import AffineMap, Chain, Graph
from ..filters import Intervals
from ..rows import Rows

if TYPE_CHECKING:
    from ..options import AttentionOptions

Bits = list[np.ndarray]
"""Patterns of the classifier: one boolean array (B, n) per ReLU layer."""


@dataclass(frozen=True)
class Method:
    """An attention method in all its forms, before any filter; K' counts the given classes, all if there are none."""

    name: str
    """The word for it in explanations."""
    is_constant: bool
    """Whether a map depends on the pattern alone: then one map holds on a whole region."""
    maps: Callable[[Chain, Bits, np.ndarray | None], np.ndarray]
    """(chain, bits, classes) → maps (B, K', pixels) of many patterns, by matrix products."""
    maps_under: Callable[[Graph, Bits, np.ndarray | None], np.ndarray]
    """(graph, bits, classes) → maps (K', pixels) of one pattern, by linear steps."""
    lay_out: Callable[[tuple[AffineMap, ...], np.ndarray, int], Rows]
    """(maps, classes, flips) → the classifier as the compiled walk from pattern to pattern needs it."""
    allowed_flips: Callable[[Chain, "AttentionOptions", np.ndarray], int]
    """(chain, options, original maps) → up to how many flips the walk may update maps; 0: always from scratch."""
    coarse_error: Callable[[Chain, "AttentionOptions", int], float]
    """(chain, options, flips) → a bound of the rounding error of every map, after the filter, summed over classes."""
    pattern_error: Callable[[Chain, "AttentionOptions", Bits], float]
    """(chain, options, bits) → a bound for the maps of one pattern, computed from scratch."""
    underflow_error: Callable[[Chain, "AttentionOptions"], float]
    """(chain, options) → what underflow can add to either bound."""
    vanishes: Callable[[Chain, "AttentionOptions", Bits], bool]
    """(chain, options, bits) → whether the maps of one pattern are zero for its zeros alone, whatever the rounding."""
    enclose: Callable[[Intervals], Intervals]
    """Enclosures of the maps, given those (B, K', pixels) of the gradients of the logits."""
