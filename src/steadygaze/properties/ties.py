"""The share of the domain where the attention depends on the rule for ties: the first of the largest entries wins.

Entries of a window often tie on whole regions: dead neurons, a constant background, equal channels. Under another rule
the gradient would take another way. The maps stay the same if no gradient arrives at the window, or if all entries that
may tie have the same gradient with respect to the pixels, for instance none. Regions where neither is proved may depend
on the rule. A region surely depends on it if two entries are equal by construction (`value_numbers`) and moving the
winner changes a map by more than rounding can.

An entry may tie unless its form differs from the winner's at one point by more than the error of computing both. All
ways to break ties are covered together: every entry that may tie counts as active when ways through the network are
looked for, and a window whose entries have different gradients counts as different from everything.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..attention.options import AttentionOptions
from ..budget import OPTIONAL, Budget, is_over
from ..compound import Compound
from ..network.layers import Layer
from ..regions.patterns import unpack
from ..regions.region import RegionSet
from ..tolerances import gamma
from .pattern_points import OWN, PatternPoints, advance, window_starts
from .value_numbers import Numbers

MOST_WORK = 20_000_000_000
"""Multiplications that may be spent on ties; what is left then may depend on the rule. About half a minute."""

FIRST_MOVES, MOST_MOVES = 2, 64
"""Moves of a winner that are tried on one region: before gradients are compared by construction, and after."""

PASSES = 4
"""Passes through the network for one region: values, their errors, ways from the pixels, ways to the logits."""

BATCH = 64
TINY = 1e-150
"""Differences of maps below this may come from underflow."""


def tie_share(
    compound: Compound,
    regions: RegionSet,
    options: AttentionOptions,
    uncertain: np.ndarray,
    *,
    missing: float = 0.0,
    slack: float = 0.0,
    budget: Budget | None = None,
) -> tuple[float, float]:
    """Proved bounds on the share of the domain whose maps depend on the rule for ties.

    uncertain: the regions without a certain pattern. missing: the share that no region covers. slack: a bound on the
    share where patterns may be others (kinks).
    """
    volumes = regions.polytopes.volumes
    is_unknown, surely = np.ones(len(regions), dtype=bool), 0.0
    certain = np.setdiff1d(np.arange(len(regions)), uncertain)
    for group, matters in depending(compound, regions, options, certain, budget):
        is_unknown[group] = matters is None
        surely += float(volumes[group].sum()) if matters else 0.0
    most = surely + float(volumes[is_unknown].sum()) + missing
    return max(0.0, surely - slack), min(1.0, most + slack)


def depending(
    compound: Compound,
    regions: RegionSet,
    options: AttentionOptions,
    chosen: np.ndarray,
    budget: Budget | None = None,
) -> Iterator[tuple[np.ndarray, bool | None]]:
    """Groups of the chosen regions with one affine function of theta, and whether their maps depend on the rule.

    None: not known. Large groups come first; once the work or the budget is used up, the rest is left out.
    """
    if not len(chosen):
        return
    triples = np.stack([regions.cell[chosen], regions.clip[chosen], regions.pattern[chosen]], axis=1)
    _, first, inverse = np.unique(triples, axis=0, return_index=True, return_inverse=True)
    groups = [chosen[part] for part in _grouped(inverse.ravel(), len(first))]
    volumes = np.array([regions.polytopes.volumes[group].sum() for group in groups])
    order = np.argsort(-volumes, kind="stable")
    ties = _Ties(compound, options)
    for start in range(0, min(len(order), ties.affordable), BATCH):
        if is_over(budget, OPTIONAL):
            return
        batch = order[start : start + BATCH]
        found = ties.decide(regions, np.array([chosen[first[number]] for number in batch]))
        yield from ((groups[number], matters) for number, matters in zip(batch, found, strict=True))


def _grouped(numbers: np.ndarray, count: int) -> list[np.ndarray]:
    """The places of every number below `count`."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers, minlength=count))[:-1])


@dataclass(frozen=True, eq=False)
class _Passed:
    """What a batch of B patterns gives, layer by layer.

    possible (B, n): active neurons, and entries that may win. harmful (B, windows): windows that may matter, as several
    entries may win, a gradient arrives there, and one goes on to the pixels, through any entries that may win.
    """

    bits: list[np.ndarray]
    possible: list[np.ndarray]
    harmful: list[np.ndarray]

    @property
    def is_open(self) -> np.ndarray:
        """Which patterns (B,) may depend on the rule."""
        return np.array([any(part[place].any() for part in self.harmful) for place in range(len(self.bits[0]))])


def _harmful(layer: Layer, possible: np.ndarray, live: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """The windows (B, windows) of a layer that may matter; live and reached (B, n): which ways exist."""
    if not len(layer.entries):
        return np.zeros((len(possible), 0), dtype=bool)
    may_win, live, reached = (part[:, layer.entries] for part in (possible, live, reached))
    several = np.add.reduceat(may_win.astype(np.int64), layer.starts, axis=1) > 1
    goes_on = np.logical_or.reduceat(may_win & live, layer.starts, axis=1)
    return several & goes_on & np.logical_or.reduceat(may_win & reached, layer.starts, axis=1)


class _Ties:
    """Decides whether the maps under patterns of one compound network depend on the rule."""

    def __init__(self, compound: Compound, options: AttentionOptions) -> None:
        self.compound, self.graph = compound, compound.graph
        self.points = PatternPoints(compound)
        self.left = self.points.affordable
        self.targets = options.targets(self.graph.classes)

    @property
    def affordable(self) -> int:
        """How many patterns may be looked at."""
        work = sum(step.work for segment in self.graph.steps for step in segment)
        return MOST_WORK // (PASSES * max(1, work))

    def decide(self, regions: RegionSet, chosen: np.ndarray) -> list[bool | None]:
        """Whether the maps of each chosen region depend on the rule; None if not known."""
        bits = unpack(regions.patterns[regions.pattern[chosen]], self.graph.hidden)
        centres = self.compound.to_theta(regions.polytopes.centres[chosen])
        states = np.stack([self.points.states(regions, region) for region in chosen.tolist()])
        with np.errstate(over="ignore", invalid="ignore"):
            passed = self._pass(bits, *self.points.pixels(regions.cell[chosen], states, centres))
        is_open = passed.is_open
        return [
            self._settle(passed, place, int(regions.cell[region]), states[place]) if is_open[place] else False
            for place, region in enumerate(chosen.tolist())
        ]

    def _pass(self, bits: list[np.ndarray], values: np.ndarray, error: np.ndarray) -> _Passed:
        """Carry values (B, pixels) with their errors, and ways of nonzero weights, through the layers."""
        live = np.ones(values.shape)
        possible, lives = [], []
        for segment, layer, own in zip(self.graph.steps, self.graph.layers, bits, strict=False):
            for step in segment:
                live = (step.forward_abs(live) > 0.0).astype(np.float64)
            values, error = advance(segment, values, error)
            possible.append(own | _may_win(layer, own, values, error))
            lives.append(live > 0.0)
            values, error = np.where(own, values, 0.0), np.where(own, error, 0.0)
            live = live * possible[-1]
        ways = np.broadcast_to((self.targets != 0.0).any(axis=0), (len(values), self.graph.classes)).astype(float)
        harmful: list[np.ndarray] = []
        for number in range(len(bits) - 1, -1, -1):
            for step in reversed(self.graph.steps[number + 1]):
                ways = (step.backward_abs(ways) > 0.0).astype(np.float64)
            harmful.append(_harmful(self.graph.layers[number], possible[number], lives[number], ways > 0.0))
            ways = ways * possible[number]
        return _Passed(bits, possible, harmful[::-1])

    def _settle(self, passed: _Passed, place: int, cell: int, states: np.ndarray) -> bool | None:
        """Whether the maps of one pattern of a batch depend on the rule; None if not known."""
        self.left -= 1
        if self.left < 0:
            return None
        bits, possible = ([layer[place] for layer in part] for part in (passed.bits, passed.possible))
        suspects = [
            (number, entries[possible[number][entries]])
            for number, layer in enumerate(self.graph.layers)
            for entries in (_entries(layer, window) for window in np.flatnonzero(passed.harmful[number][place]))
        ]
        values = self.points.value_numbers(bits, cell, states)
        moves = [
            (number, winner, entry)
            for number, own in suspects
            for winner in own[bits[number][own]]
            for entry in own[values[number][own] == values[number][winner]]
            if entry != winner
        ]
        if any(self._changes_maps(bits, *move) for move in moves[:FIRST_MOVES]):
            return True
        gradients = self._gradient_numbers(bits, possible)
        if all((gradients[number][own] == gradients[number][own[0]]).all() for number, own in suspects):
            return False
        rest = [move for move in moves[FIRST_MOVES:] if gradients[move[0]][move[1]] != gradients[move[0]][move[2]]]
        return True if any(self._changes_maps(bits, *move) for move in rest[:MOST_MOVES]) else None

    def _gradient_numbers(self, bits: list[np.ndarray], possible: list[np.ndarray]) -> list[np.ndarray]:
        """Numbers (n,) of every layer's inputs; the same if their gradients are, whichever entries that may win do."""
        numbers = Numbers()
        pixels = np.array([numbers.of(("pixel", i)) for i in range(self.compound.perturbed.x0.size)], dtype=np.int64)

        def choose(layer: int, entries: np.ndarray, place: slice) -> np.ndarray:
            starts, may_win = window_starts(self.graph.layers[layer], place), possible[layer][place]
            highest = np.maximum.reduceat(np.where(may_win, entries, -1), starts)
            lowest = np.minimum.reduceat(np.where(may_win, entries, np.iinfo(np.int64).max), starts)
            return np.where(highest == lowest, highest, numbers.fresh(len(starts)))

        return self.points.numbered.number(numbers, pixels, bits, choose, is_gradient=True)

    def _changes_maps(self, bits: list[np.ndarray], number: int, winner: np.intp, entry: np.intp) -> bool:
        """Whether moving the winner of a window of a layer to another entry surely changes a compared map."""
        rows, sizes, terms = self.targets, np.abs(self.targets), 8
        with np.errstate(over="ignore", invalid="ignore"):
            for layer in range(len(bits), -1, -1):
                for step in reversed(self.graph.steps[layer]):
                    rows, sizes = step.backward(rows), step.backward_abs(sizes)
                    terms += step.backward_terms + 8
                if layer == number + 1:
                    moved, most = np.zeros_like(rows), np.zeros_like(sizes)
                    moved[:, entry], moved[:, winner] = rows[:, entry], -rows[:, winner]
                    most[:, entry], most[:, winner] = sizes[:, entry], sizes[:, winner]
                    rows, sizes = moved, most
                elif layer:
                    rows, sizes = rows * bits[layer - 1], sizes * bits[layer - 1]
            return bool((np.abs(rows) > gamma(terms) * sizes * OWN + TINY).any())


def _may_win(layer: Layer, bits: np.ndarray, values: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Which entries (B, n) may have the same form as the winner of their window; NaN may."""
    found = np.zeros(bits.shape, dtype=bool)
    if len(layer.entries):
        counts = np.diff(layer.starts, append=len(layer.entries))
        own, spread, wins = (part[:, layer.entries] for part in (values, error, bits))
        largest, least = (
            np.repeat(np.add.reduceat(np.where(wins, part, 0.0), layer.starts, axis=1), counts, axis=1)
            for part in (own, spread)
        )
        found[:, layer.entries] = ~(np.abs(largest - own) > (least + spread) * OWN)
    return found


def _entries(layer: Layer, window: np.intp) -> np.ndarray:
    """The neurons of a window of a layer."""
    first = int(layer.entries[layer.starts[window]])
    return np.arange(first, layer.ends[1][first])
