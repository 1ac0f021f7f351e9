"""Bounds the share of the domain where the attention depends on the rule for ties (the first of the largest wins).

Entries of a window often tie on whole regions: dead neurons, a constant background, equal channels. Under another rule
the gradient would take another path. The maps stay the same if no gradient arrives at the window, or if all entries
that may tie have the same gradient with respect to the pixels, for instance zero. Regions where neither is proved may
depend on the rule. A region surely depends on it if two entries are equal by construction (`value_numbers`) and moving
the winner changes a map by more than rounding can.

An entry may tie unless its form differs from the winner's at one point by more than the error of computing both. All
ways to break ties are covered together: in the search for paths through the network, every entry that may tie counts as
active, and a window whose entries have different gradients counts as different from everything.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..attention.options import AttentionOptions
from ..budget import OPTIONAL, Budget, is_over
from ..compound import Compound
from ..network.graph import Graph
from ..network.layers import Layer
from ..network.steps import Segment
from ..regions.patterns import unpack
from ..regions.region import RegionSet
from ..tolerances import OWN, gamma
from .pattern_points import PatternPoints, advance, window_starts
from .tie_moves import TieMove
from .value_numbers import ValueNumbers

MOST_WORK = 2_000_000_000
"""The most multiplications to spend on ties, a few seconds; regions left over may depend on the rule."""

FIRST_MOVES, MOST_MOVES = 2, 64
"""The most moves of a winner to try on one region: before gradients are compared by construction, and after."""

PASSES = 4
"""Passes through the network for one region: values, their errors, paths from the pixels, paths to the logits."""

MOVES, MOVE_PASSES = 4, 2
"""How many of the moves that changed maps of earlier regions to try first; passes for each: changes and their sizes."""

BATCH = 64
TINY = 1e-150
"""Differences of maps below this may come from underflow."""


class TieVolumes(NamedTuple):
    """Shares of the domain: where maps surely depend on the rule for ties, and where this is unknown."""

    surely: float
    unknown: float

    def bounds(self, *, missing: float = 0.0, slack: float = 0.0) -> tuple[float, float]:
        """Proved bounds on the share that depends on the rule.

        missing: the share that nothing covers. slack: a bound on the share where patterns may differ (kinks).

        >>> TieVolumes(0.5, 0.125).bounds(missing=0.125, slack=0.0625)
        (0.4375, 0.8125)
        """
        return max(0.0, self.surely - slack), min(1.0, self.surely + self.unknown + missing + slack)


def add_volumes(parts: Iterable[TieVolumes]) -> TieVolumes:
    """The total volumes of several sets of regions or boxes with disjoint interiors."""
    surely, unknown = np.array([tuple(part) for part in parts]).reshape(-1, 2).sum(axis=0)
    return TieVolumes(float(surely), float(unknown))


class PatternedPoints(NamedTuple):
    """B patterns, each with a theta inside its region.

    bits: one boolean array (B, n) per layer. cells (B,): knot cells. clips: for each pattern, the packed bits of the
    clip. thetas (B, d).
    """

    bits: list[np.ndarray]
    cells: np.ndarray
    clips: list[np.ndarray]
    thetas: np.ndarray


def tie_volumes(
    compound: Compound,
    regions: RegionSet,
    options: AttentionOptions,
    uncertain: np.ndarray,
    *,
    part: float = 1.0,
    budget: Budget | None = None,
) -> TieVolumes:
    """The volumes of regions whose maps depend on the rule, and of regions where this is unknown.

    uncertain: the regions without a certain pattern. part: the share of the work that these regions may use.
    """
    volumes = regions.polytopes.volumes
    is_unknown, surely = np.ones(len(regions), dtype=bool), 0.0
    certain = np.setdiff1d(np.arange(len(regions)), uncertain)
    for group, matters in depending(compound, regions, options, certain, part=part, budget=budget):
        is_unknown[group] = matters is None
        surely += float(volumes[group].sum()) if matters else 0.0
    return TieVolumes(surely, float(volumes[is_unknown].sum()))


def depending(
    compound: Compound,
    regions: RegionSet,
    options: AttentionOptions,
    chosen: np.ndarray,
    *,
    part: float = 1.0,
    budget: Budget | None = None,
) -> Iterator[tuple[np.ndarray, bool | None]]:
    """Groups of chosen regions that share one affine function of theta, and whether their maps depend on the rule.

    None means unknown. Large groups come first; once the work or the budget is used up, the rest is left out.
    """
    if not len(chosen):
        return
    triples = np.stack([regions.cell[chosen], regions.clip[chosen], regions.pattern[chosen]], axis=1)
    _, first, inverse = np.unique(triples, axis=0, return_index=True, return_inverse=True)
    groups = [chosen[part] for part in _grouped(inverse.ravel(), len(first))]
    volumes = np.array([regions.polytopes.volumes[group].sum() for group in groups])

    def points(numbers: np.ndarray) -> PatternedPoints:
        own = chosen[first[numbers]]
        return PatternedPoints(
            unpack(regions.patterns[regions.pattern[own]], compound.hidden),
            regions.cell[own],
            [regions.clips[number] for number in regions.clip[own].tolist()],
            compound.to_theta(regions.polytopes.centres[own]),
        )

    for number, matters in decide_ties(compound, options, volumes, points, part=part, budget=budget):
        yield groups[number], matters


def decide_ties(
    compound: Compound,
    options: AttentionOptions,
    volumes: np.ndarray,
    points: Callable[[np.ndarray], PatternedPoints],
    *,
    part: float = 1.0,
    budget: Budget | None = None,
) -> Iterator[tuple[int, bool | None]]:
    """Whether the maps under each of N patterns depend on the rule; None means unknown.

    volumes (N,): those of their regions; large ones come first. points(numbers) returns the patterns. Once the given
    part of the work, or the budget, is used up, the rest is left out.
    """
    order = np.argsort(-volumes, kind="stable")
    ties = _Ties(compound, options, part)
    # A filter, or black pixels of an image that multiplies the gradients, may hide a change of the gradients.
    may_hide = bool(options.filter.steps) or options.method.factor_baseline is not None
    for start in range(0, len(order), BATCH):
        if ties.work_left <= 0 or is_over(budget, OPTIONAL):
            return
        batch = order[start : start + BATCH]
        for number, matters in zip(batch.tolist(), ties.decide(points(batch)), strict=True):
            yield number, None if matters and may_hide else matters


def _grouped(numbers: np.ndarray, count: int) -> list[np.ndarray]:
    """The indices at which each number below `count` occurs."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers, minlength=count))[:-1])


@dataclass(frozen=True, eq=False)
class _Passed:
    """A pass over a batch of B patterns, layer by layer.

    possible (B, n): active neurons, and entries that may win. harmful (B, windows): windows that may matter, because
    several entries may win, and a gradient arrives there and continues to the pixels, through entries that may win.
    """

    bits: list[np.ndarray]
    possible: list[np.ndarray]
    harmful: list[np.ndarray]

    @property
    def is_open(self) -> np.ndarray:
        """Which patterns (B,) may depend on the rule."""
        return np.array([any(part[place].any() for part in self.harmful) for place in range(len(self.bits[0]))])


def harmful_windows(
    graph: Graph, targets: np.ndarray, possible: list[np.ndarray], lives: list[np.ndarray]
) -> list[np.ndarray]:
    """The windows (B, windows) of every layer that may matter.

    Layer by layer, possible (B, n): neurons that may be active and entries that may win; lives (B, n): neurons that a
    path from the pixels reaches.
    """
    ways = np.tile((targets != 0.0).any(axis=0).astype(np.float64), (len(possible[0]), 1))
    aimed = (*graph.steps[:-1], graph.aim_steps)
    harmful: list[np.ndarray] = []
    for number in range(len(possible) - 1, -1, -1):
        for step in reversed(aimed[number + 1]):
            ways = (step.backward_abs(ways) > 0.0).astype(np.float64)
        harmful.append(_harmful(graph.layers[number], possible[number], lives[number], ways > 0.0))
        ways = ways * possible[number]
    return harmful[::-1]


def ways_up(segment: Segment, live: np.ndarray) -> np.ndarray:
    """The values (B, n) after linear steps that a path reaches, given those before, as zeros and ones."""
    for step in segment:
        live = (step.forward_abs(live) > 0.0).astype(np.float64)
    return live


def _harmful(layer: Layer, possible: np.ndarray, live: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """The windows (B, windows) of a layer that may matter; live, reached (B, n): on a path from pixels, to outputs."""
    if not len(layer.entries):
        return np.zeros((len(possible), 0), dtype=bool)
    may_win, live, reached = (part[:, layer.entries] for part in (possible, live, reached))
    several = np.add.reduceat(may_win.astype(np.int64), layer.starts, axis=1) > 1
    goes_on = np.logical_or.reduceat(may_win & live, layer.starts, axis=1)
    return several & goes_on & np.logical_or.reduceat(may_win & reached, layer.starts, axis=1)


class _Ties:
    """Decides whether the maps under patterns of one compound network depend on the rule."""

    def __init__(self, compound: Compound, options: AttentionOptions, part: float) -> None:
        self.compound, self.graph = compound, compound.graph
        self.points = PatternPoints(compound)
        self.left = int(part * self.points.affordable)
        self.work_left = int(part * MOST_WORK)
        self.work = max(1, sum(step.work for segment in self.graph.steps for step in segment))
        self.targets = options.targets(self.graph.classes)
        self.aimed = (*self.graph.steps[:-1], self.graph.aim_steps)
        self.moves: list[TieMove] = []

    def decide(self, points: PatternedPoints) -> list[bool | None]:
        """Whether the maps under each pattern depend on the rule; None if not known."""
        cells = points.cells
        states = np.stack([self.points.states(*one) for one in zip(cells.tolist(), points.clips, strict=True)])
        depends = np.zeros(len(cells), dtype=bool)

        def try_on(moves: Sequence[TieMove], chosen: np.ndarray) -> np.ndarray:
            """Try moves on some patterns; return those whose maps no move changes."""
            for move in moves:
                bits = [layer[chosen] for layer in points.bits]
                depends[chosen] = self._try(move, bits, cells[chosen], states[chosen])
                chosen = chosen[~depends[chosen]]
            return chosen

        rest = try_on(self.moves, np.arange(len(cells)))
        found: list[bool | None] = [None] * len(cells)
        if len(rest):
            self.work_left -= PASSES * self.work * len(rest)
            bits = [layer[rest] for layer in points.bits]
            with np.errstate(over="ignore", invalid="ignore"):
                passed = self._pass(bits, *self.points.pixels(cells[rest], states[rest], points.thetas[rest]))
            is_open = passed.is_open
            for row, place in enumerate(rest.tolist()):
                if depends[place]:
                    continue
                known = self.moves
                found[place] = self._settle(passed, row, int(cells[place]), states[place]) if is_open[row] else False
                if self.moves is not known:
                    later = rest[row + 1 :]
                    try_on(self.moves[:1], later[~depends[later] & is_open[row + 1 :]])
        return [True if depends[place] else found[place] for place in range(len(cells))]

    def _try(self, move: TieMove, bits: list[np.ndarray], cells: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Under which patterns (B,) a move surely changes a compared map."""
        found = move.applies(bits, self.points.same_pixels(move.pixels, cells, states))
        own = np.flatnonzero(found)
        self.work_left -= MOVE_PASSES * self.work * len(own)
        if len(own):
            # Compare one weighted sum of all maps: if the sum changes, so does a map. Powers of two do not round.
            scaled = np.ldexp(self.targets, -np.arange(len(self.targets))[:, None])
            rows, sizes = (np.tile(part.sum(axis=0), (len(own), 1)) for part in (scaled, np.abs(scaled)))
            below = [layer[own] for layer in bits]
            found[own] = self._moved_maps(below, move.layer, move.winner, move.entry, rows, sizes)
        return found

    def _pass(self, bits: list[np.ndarray], values: np.ndarray, error: np.ndarray) -> _Passed:
        """Carry values (B, pixels) with their errors, and paths of nonzero weights, through the layers."""
        live = np.ones(values.shape)
        possible, lives = [], []
        for segment, layer, own in zip(self.graph.steps, self.graph.layers, bits, strict=False):
            live = ways_up(segment, live)
            values, error = advance(segment, values, error)
            possible.append(own | _may_win(layer, own, values, error))
            lives.append(live > 0.0)
            values, error = np.where(own, values, 0.0), np.where(own, error, 0.0)
            live = live * possible[-1]
        return _Passed(bits, possible, harmful_windows(self.graph, self.targets, possible, lives))

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
        if self._is_changed(bits, moves[:FIRST_MOVES]):
            return True
        gradients = self._gradient_numbers(bits, possible)
        if all((gradients[number][own] == gradients[number][own[0]]).all() for number, own in suspects):
            return False
        rest = [move for move in moves[FIRST_MOVES:] if gradients[move[0]][move[1]] != gradients[move[0]][move[2]]]
        return True if self._is_changed(bits, rest[:MOST_MOVES]) else None

    def _is_changed(self, bits: list[np.ndarray], moves: Sequence[tuple[int, np.intp, np.intp]]) -> bool:
        """Whether one of the moves surely changes a compared map; if so, other patterns try this move first."""
        changing = next((move for move in moves if self._changes_maps(bits, *move)), None)
        if changing is None:
            return False
        number, winner, entry = changing
        found = TieMove.between(self.points.numbered, number, int(winner), int(entry))
        if found is not None:
            self.moves = [found, *self.moves][:MOVES]
        return True

    def _gradient_numbers(self, bits: list[np.ndarray], possible: list[np.ndarray]) -> list[np.ndarray]:
        """Numbers (n,) of every layer's inputs; equal numbers mean equal gradients, whichever possible entries win."""
        numbers = ValueNumbers()
        pixels = np.array([numbers.of(("pixel", i)) for i in range(self.compound.perturbed.x0.size)], dtype=np.int64)

        def choose(layer: int, entries: np.ndarray, place: slice) -> np.ndarray:
            starts, may_win = window_starts(self.graph.layers[layer], place), possible[layer][place]
            highest = np.maximum.reduceat(np.where(may_win, entries, -1), starts)
            lowest = np.minimum.reduceat(np.where(may_win, entries, np.iinfo(np.int64).max), starts)
            return np.where(highest == lowest, highest, numbers.fresh(len(starts)))

        return self.points.numbered.number(numbers, pixels, bits, choose, is_gradient=True)

    def _changes_maps(self, bits: list[np.ndarray], number: int, winner: np.intp, entry: np.intp) -> bool:
        """Whether moving the winner of a window of a layer to another entry surely changes a compared map."""
        rows, sizes = self.targets, np.abs(self.targets)
        is_changed = self._moved_maps(bits, number, int(winner), int(entry), rows, sizes).any()
        return bool(is_changed)

    def _moved_maps(
        self, bits: list[np.ndarray], number: int, winner: int, entry: int, rows: np.ndarray, sizes: np.ndarray
    ) -> np.ndarray:
        """Which gradients (B,) of functions `rows` (B, aims) surely change if the winner of a window moves.

        bits: (B, n) or (n,), layer by layer. sizes (B, aims): at least |rows| before any rounding.
        """
        terms = 8 + len(self.targets)
        with np.errstate(over="ignore", invalid="ignore"):
            for layer in range(len(bits), -1, -1):
                for step in reversed(self.aimed[layer]):
                    rows, sizes = step.backward(rows), step.backward_abs(sizes)
                    terms += step.backward_terms + 8
                if layer == number + 1:
                    moved, most = np.zeros_like(rows), np.zeros_like(sizes)
                    moved[:, entry], moved[:, winner] = rows[:, entry], -rows[:, winner]
                    most[:, entry], most[:, winner] = sizes[:, entry], sizes[:, winner]
                    rows, sizes = moved, most
                elif layer:
                    rows, sizes = rows * bits[layer - 1], sizes * bits[layer - 1]
            return (np.abs(rows) > gamma(terms) * sizes * OWN + TINY).any(axis=1)


def _may_win(layer: Layer, bits: np.ndarray, values: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Which entries (B, n) may have the same form as the winner of their window; NaN counts as such."""
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
