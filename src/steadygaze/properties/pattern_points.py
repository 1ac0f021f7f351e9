"""Evaluates a region's forms at one point, with error bounds, and finds values that are equal by construction.

Settles patterns that rounding leaves in doubt because neurons are exactly zero or entries of a window exactly equal.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..compound import CLIP_LAYERS, Compound
from ..network.graph import Graph, patterns, preactivations
from ..network.layers import RELU, Layer
from ..network.steps import Segment
from ..regions.patterns import unpack
from ..regions.region import RegionSet
from ..tolerances import DOUBT, LEAST, OWN, UNIT, gamma
from .value_numbers import ZERO, NumberedGraph, ValueNumbers

if TYPE_CHECKING:
    from ..exact.exact_pixels import ExactPixels
    from ..exact.network_forms import WholeForms


MOST_NUMBERED = 100_000_000
"""The number of weights that numbering may visit, the whole network for each region: about half a minute."""


class PatternPoints:
    """Values and numbers of the neurons of one compound network under patterns of its regions."""

    def __init__(self, compound: Compound) -> None:
        self.compound, self.graph = compound, compound.graph
        self._keys: dict[int, list[tuple[int, ...]] | None] = {}

    @cached_property
    def numbered(self) -> NumberedGraph:
        """The graph, prepared for numbering."""
        return NumberedGraph(self.graph)

    @cached_property
    def _forms(self) -> "ExactPixels":
        from ..exact.exact_pixels import ExactPixels  # noqa: PLC0415 (rarely needed)

        return ExactPixels(self.compound.perturbed)

    @property
    def affordable(self) -> int:
        """How many regions may be numbered."""
        return int(MOST_NUMBERED // max(1, sum(affine.matrix.size for affine in self.compound.chain.maps)))

    def states(self, number: int, clip: np.ndarray) -> np.ndarray:
        """For every pixel, by the clip's packed bits: −1 if it is clipped to 0, 1 if it is clipped to 1, else 0.

        number: that of the knot cell.
        """
        cell = self.compound.programs[number]
        lines = cell.root.shape[1]
        above_zero, below_one = (bits[0] for bits in unpack(clip[None], (lines,) * CLIP_LAYERS))
        state = np.where(above_zero, np.where(below_one, 0, 1), -1)
        constant = np.where(cell.constant <= 0.0, -1, np.where(cell.constant >= 1.0, 1, 0))
        return np.where(cell.line_of >= 0, state[cell.line_of] if lines else 0, constant)

    def pixels(self, cells: np.ndarray, states: np.ndarray, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The clipped pixels (B, pixels) at thetas, given their states, and bounds on their errors."""
        perturbed, values = self.compound.perturbed, np.empty(states.shape)
        for row, (number, theta) in enumerate(zip(cells.tolist(), thetas, strict=True)):
            cell = perturbed.cells[number]
            values[row] = (perturbed.x0 + cell.offset).ravel() + theta @ cell.slope.reshape(len(theta), -1)
        error = np.broadcast_to(gamma(32) * perturbed.magnitudes * OWN + LEAST, states.shape)
        return np.where(states == 0, values, states > 0), np.where(states == 0, error, 0.0)

    def value_numbers(self, bits: list[np.ndarray], cell: int, states: np.ndarray) -> list[np.ndarray]:
        """Numbers (n,) of every layer's inputs on a region; equal numbers mean equal values."""
        numbers, keys = ValueNumbers(), self._pixel_keys(cell)
        if keys is None:
            inside = numbers.fresh(len(states))
        else:
            inside = np.array([numbers.of(key) if any(key) else ZERO for key in keys], dtype=np.int64)
        pixels = np.where(states < 0, ZERO, np.where(states > 0, numbers.of("one"), inside))
        return self._numbers(numbers, pixels, bits)

    def same_pixels(self, pairs: np.ndarray, cells: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Which pairs (P, 2) of pixels are equal by construction (B, P), for B regions in their knot cells.

        states (B, pixels): as returned by `states`.
        """
        one, two = states[:, pairs[:, 0]], states[:, pairs[:, 1]]
        found = (one == two) & (one != 0)
        for cell in np.unique(cells).tolist():
            keys = self._pixel_keys(cell)
            if keys is not None:
                is_same = np.array([keys[i] == keys[j] for i, j in pairs.tolist()], dtype=bool)
                found[cells == cell] |= is_same & (one == 0)[cells == cell] & (two == 0)[cells == cell]
        return found

    def _numbers(self, numbers: ValueNumbers, pixels: np.ndarray, bits: list[np.ndarray]) -> list[np.ndarray]:
        """Numbers (n,) of every layer's inputs under a pattern, given those of the pixels."""

        def choose(layer: int, entries: np.ndarray, place: slice) -> np.ndarray:
            starts = window_starts(self.graph.layers[layer], place)
            return np.add.reduceat(np.where(bits[layer][place], entries, 0), starts)

        return self.numbered.number(numbers, pixels, bits, choose, is_gradient=False)

    def _pixel_keys(self, cell: int) -> list[tuple[int, ...]] | None:
        """The exact forms of all unclipped pixels on a knot cell; None if they are only enclosed."""
        if cell not in self._keys:
            forms = self._forms.on_cell(self.compound.cells[cell])
            self._keys[cell] = None if forms.radii is not None else [tuple(map(int, row)) for row in forms.rows]
        return self._keys[cell]

    def is_sure(self, regions: RegionSet, region: int) -> bool:
        """Whether every bit of a region is clear at its centre, or exactly known by construction.

        A ReLU is inactive if it is zero by construction; an entry loses if it equals an earlier winner.
        """
        cell = int(regions.cell[region])
        states = self.states(cell, regions.clips[regions.clip[region]])
        bits = [layer[0] for layer in unpack(regions.patterns[regions.pattern[region]][None], self.graph.hidden)]
        theta = self.compound.to_theta(regions.polytopes.centres[region][None])
        values, error = self.pixels(np.array([cell]), states[None], theta)
        noise = [DOUBT * own for own in self.compound.noise[: len(bits)]]
        return self._are_sure(bits, values, error, noise, self.value_numbers(bits, cell, states))

    def at_original(self) -> tuple[np.ndarray, ...] | None:
        """The bits (n,) of every layer at the unperturbed image; None if one is neither clear nor exactly known."""
        return self._at(self._forms.original)

    def at(self, theta: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """The bits (n,) of every layer at a theta (d,); None if one is neither clear nor exactly known.

        The first of the entries that are equal by construction wins. None as well for images that are curved in theta
        or only enclosed.
        """
        if self.compound.perturbed.is_curved:
            return None
        return self._at(self._forms.at(theta))

    def _at(self, forms: "WholeForms") -> tuple[np.ndarray, ...] | None:
        """The bits at an image, given its exact pixels as forms without coordinates."""
        if forms.radii is not None:
            return None
        numbers, whole = ValueNumbers(), int(forms.denominator)
        listed = [min(max(int(number), 0), whole) for number in forms.rows[:, -1]]
        # Each quotient is rounded once; 0 and 1 are exact.
        values = np.array([[number / whole for number in listed]])
        is_exact = np.array([[number in (0, whole) for number in listed]])
        error = np.where(is_exact, 0.0, 1.01 * UNIT * values + LEAST)
        pixels = np.array([numbers.of(number) if number else ZERO for number in listed], dtype=np.int64)
        computed = patterns(self.graph, preactivations(self.graph, values)[:-1])
        given = self._numbers(numbers, pixels, [layer[0] for layer in computed])
        bits = [
            _first_of_equals(layer, own[0], found)
            for layer, own, found in zip(self.graph.layers, computed, given, strict=True)
        ]
        exact = [np.zeros(1)] * len(bits)
        return tuple(bits) if self._are_sure(bits, values, error, exact, given) else None

    def _are_sure(
        self,
        bits: list[np.ndarray],
        values: np.ndarray,
        error: np.ndarray,
        noise: Sequence[np.ndarray],
        numbers: list[np.ndarray],
    ) -> bool:
        """Whether pixels (1, pixels) with errors, or numbers, prove every bit; values within noise prove nothing."""
        parts = zip(self.graph.steps, self.graph.layers, bits, noise, numbers, strict=False)
        with np.errstate(over="ignore", invalid="ignore"):
            for segment, layer, own, least, given in parts:
                values, error = advance(segment, values, error)
                unclear = _unclear(layer, own, values[0], np.maximum(error[0], least))
                if unclear is None or not _is_exact(layer, own, unclear, given):
                    return False
                values, error = np.where(own, values, 0.0), np.where(own, error, 0.0)
        return True


def has_windows(graph: Graph) -> bool:
    """Whether a graph takes maxima over windows."""
    return any(len(layer.entries) for layer in graph.layers)


def advance(segment: Segment, values: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (B, n) and bounds on their errors after linear steps."""
    for step in segment:
        rounding = gamma(step.terms + 8) * (step.forward_abs(np.abs(values) + error) + step.bias_size)
        error = (step.forward_abs(error) + rounding) * OWN + LEAST
        values = step.forward(values) + step.bias
    return values, error


def window_starts(layer: Layer, place: slice) -> np.ndarray:
    """Where windows start among some adjacent entries of a layer."""
    return np.flatnonzero(np.diff(layer.window[place], prepend=-1))


def _unclear(layer: Layer, bits: np.ndarray, values: np.ndarray, limit: np.ndarray) -> np.ndarray | None:
    """Neurons (n,) whose bit is unclear, given values (n,) that may be off by `limit`; None if a clear bit is wrong."""
    # NaN is not clear.
    unclear = ~(np.abs(values) > limit) & (layer.kind == RELU)
    is_wrong = ((values > 0.0) != bits) & ~unclear & (layer.kind == RELU)
    if len(layer.entries):
        winners = np.repeat(layer.entries[bits[layer.entries]], np.diff(layer.starts, append=len(layer.entries)))
        lead = values[winners] - values[layer.entries]
        near = ~(np.abs(lead) > (limit[winners] + limit[layer.entries]) * OWN)
        is_loser = ~bits[layer.entries]
        unclear[layer.entries] = near & is_loser
        is_wrong[layer.entries] = ~near & is_loser & (lead < 0.0)
    return None if is_wrong.any() else unclear


def _first_of_equals(layer: Layer, bits: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The bits (n,) with the winner of every window moved to the first entry with the winner's number."""
    moved = bits.copy()
    if len(layer.entries):
        counts = np.diff(layer.starts, append=len(layer.entries))
        winners = np.repeat(layer.entries[bits[layer.entries]], counts)
        is_same = numbers[layer.entries] == numbers[winners]
        before = np.cumsum(is_same) - is_same
        moved[layer.entries] = is_same & (before == np.repeat(before[layer.starts], counts))
    return moved


def _is_exact(layer: Layer, bits: np.ndarray, unclear: np.ndarray, numbers: np.ndarray) -> bool:
    """Whether the unclear neurons (n,) of a layer have the bits (n,) that their numbers (n,) prove."""
    relus = np.flatnonzero(unclear & (layer.kind == RELU))
    if (numbers[relus] != ZERO).any() or bits[relus].any():
        return False
    for entry in np.flatnonzero(unclear & (layer.kind != RELU)):
        window = np.arange(*(ends[entry] for ends in layer.ends))
        (winner,) = window[bits[window]]
        if numbers[entry] != numbers[winner] or entry < winner:
            return False
    return True
