"""Settles cases that float64 leaves open: labels and patterns exactly, attention on kinks by all patterns there.

A neuron whose computed form is mere rounding may be exactly zero (weights often cancel exactly) or have either sign.
A margin below its error bound may be a violation, a tie, or neither. Ordinary networks have almost no such cases.
Cases for which exact arithmetic is too expensive stay open.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..attention.map_errors import SingleCurves
from ..attention.measures.distance import DISTANCE
from ..attention.measuring import needs_shapes
from ..attention.spans import Spans
from ..bounds.bounder import Bounder
from ..budget import OPTIONAL, Budget, is_over
from ..compound import Compound
from ..errors import ModelError
from ..network.layers import ENTRY, RELU
from ..regions.forward_error import pixel_kinks
from ..regions.patterns import bit_places
from ..regions.region import RegionSet
from ..tolerances import SMALLEST, UNIT
from .attention import Doubtful, label_attention, reaches
from .classification import Pieces, classify, piece_coverage, strip_volumes
from .hull_proof import HullProof, vertex_batches
from .pattern_points import PatternPoints, has_windows

if TYPE_CHECKING:
    from ..exact import ExactLabels

MOST_WEIGHTS = 20_000_000
"""The number of weights that exact arithmetic may visit, the whole network for each polytope: about ten seconds."""

MOST_POLYTOPES = 1_000
LIMIT_SECONDS = 10.0
"""Limits on exact settling: the number of polytopes, and the seconds for each."""

WORTH_SETTLING = 1e-7
"""A strip with more than this share of the domain is always worth settling."""

Range = tuple[float, float]

LEAST_SHARE = 1e-6
"""A pattern on less than this share of a region is part of the region's border; its volume counts as a sliver."""


WIDE_KINKS = 1e-6
"""If kinks have a larger share, the patterns of all regions are settled, provided there are few regions."""

MOST_TOGETHER = 8
"""The most neurons that may be uncertain at one vertex; a window counts by its candidates."""

MOST_PATTERNS = 2_000
"""The most patterns to examine beyond those of the regions."""


class Settled(NamedTuple):
    """Regions that stay doubtful, and a bound on the volume where the other regions may have a different pattern."""

    doubtful: Doubtful
    slivers: float


def settle_patterns(
    compound: Compound,
    regions: RegionSet,
    kinks: float,
    curves: SingleCurves,
    proof: HullProof,
    budget: Budget | None = None,
) -> Settled:
    """Find the regions without a certain pattern; `kinks` bounds the share of kinks from the errors of the walk.

    Of the regions that the walk marked as doubtful, those with equal window entries by construction are settled first;
    exact arithmetic settles the rest. If kinks are wide, it settles all regions, and its findings replace the bound.
    """
    is_wide = kinks > WIDE_KINKS and len(regions) <= affordable(compound) and not is_over(budget, OPTIONAL)
    chosen = np.arange(len(regions)) if is_wide else np.flatnonzero(regions.doubtful)
    if is_wide:
        # Gaps between polytopes are as deep as the coverage and as long as the polytopes' sides.
        kinks = 2.0 * compound.coordinates * len(regions) * proof.around
    if curves.options.method.factor_baseline is not None:
        # Patterns do not show where pixels are black.
        kinks = min(1.0, kinks + pixel_kinks(compound, regions.accuracy))
    if not len(chosen):
        return Settled(Doubtful(chosen, np.zeros((0, 2))), kinks)
    bounds, is_open, slivers = np.tile([0.0, np.inf], (len(chosen), 1)), np.ones(len(chosen), dtype=bool), 0.0
    exact = exact_labels(compound, proof.label, budget) if len(chosen) <= affordable(compound) else None
    known: dict[tuple[int, bytes], tuple[float, float]] = {}
    spans = Spans.of_regions(compound, regions, has_shapes=True)
    points = PatternPoints(compound) if has_windows(compound.graph) and not is_wide else None
    numbered = 0 if points is None else points.affordable
    for place, region in enumerate(chosen.tolist()):
        if (
            points is not None
            and place < numbered
            and not is_over(budget, OPTIONAL)
            and points.is_sure(regions, region)
        ):
            is_open[place] = False
            continue
        found = (
            None
            if exact is None or exact.is_over()
            else exact.patterns(regions.polytopes[region], limit_seconds=LIMIT_SECONDS)
        )
        if not found:
            continue
        volume = sum(found.values())
        main = [pattern for pattern, own in found.items() if own >= LEAST_SHARE * volume]
        slivers += float(volume - sum(found[pattern] for pattern in main)) * (1.0 + 1e-9)
        if main == [regions.patterns[regions.pattern[region]].tobytes()]:
            is_open[place] = False
            continue
        cell = int(regions.cell[region])
        if needs_shapes(compound, curves.options):
            own = spans.take(np.full(len(main), region))
            measured, errors = curves.on_shapes(main, own)
            each = reaches(measured, own, errors)
            bounds[place] = each[:, 0].min(), each[:, 1].max()
            continue
        both = [known.setdefault((cell, one), pattern_reach(compound, curves, cell, one)) for one in main]
        bounds[place] = min(low for low, _ in both), max(high for _, high in both)
    unknown = np.flatnonzero(is_open & np.isinf(bounds[:, 1]))
    bounds[unknown] = proof.inconsistencies(regions.polytopes, regions.cell, chosen[unknown])
    return Settled(Doubtful(chosen[is_open], bounds[is_open]), min(1.0, kinks + slivers))


def label_pieces(
    compound: Compound, regions: RegionSet, label: int, *, share: int = 1, budget: Budget | None = None
) -> Pieces:
    """The regions split along the argmax, with the proved label of each piece.

    Bounds come first (`classify`). Among the pieces that they leave open, exact arithmetic settles those with wide
    strips, or all of them if no piece is surely lost, but at most a `share`-th part of the affordable number. Once the
    budget is over, the rest stays open.
    """
    pieces = classify(compound, regions, label, budget)
    # Lost on at least a part of the piece: most pieces touch the decision boundary.
    is_lost = ~pieces.keeps_label & (pieces.margin[:, 0] < -pieces.slack)
    chosen = np.flatnonzero(pieces.has_strip)
    if not len(chosen):
        return pieces
    strips = strip_volumes(pieces, regions)[chosen]
    if is_lost.any():
        chosen, strips = chosen[strips > WORTH_SETTLING], strips[strips > WORTH_SETTLING]
    chosen = chosen[np.argsort(-strips, kind="stable")][: -(-affordable(compound) // share)]
    exact = exact_labels(compound, pieces.label, budget) if len(chosen) and not is_over(budget, OPTIONAL) else None
    if exact is None:
        return pieces
    from ..exact import LabelOutcome  # noqa: PLC0415 (rarely needed)

    winner, margin, slack = pieces.winner.copy(), pieces.margin.copy(), pieces.slack.copy()
    most_strip = pieces.most_strip.copy()
    witnesses = list(pieces.witnesses)
    for piece in chosen.tolist():
        if exact.is_over():
            break
        vertices = pieces.polytopes[piece]
        found = exact.settle(vertices, piece_coverage(compound, regions), limit_seconds=LIMIT_SECONDS, with_shares=True)
        if found.witness is not None:
            witnesses.append(found.witness)
        if found.outcome in (LabelOutcome.KEPT, LabelOutcome.LOST):
            is_kept, slack[piece] = found.outcome is LabelOutcome.KEPT, 0.0
            # The sign is proved; the size is merely computed.
            margin[piece] = np.maximum(margin[piece], SMALLEST) if is_kept else np.minimum(margin[piece], -SMALLEST)
        elif found.shares is not None:
            kept, lost = found.shares.kept[0], found.shares.lost[0]
            is_kept = kept >= lost
            # Some part is tied or lost, however small.
            volume = float(pieces.polytopes.volumes[piece])
            most_strip[piece] = max(UNIT * volume, volume - max(kept, lost))
        else:
            continue
        winner[piece] = pieces.label if is_kept else _strongest_rival(regions, pieces, piece)
    dimension = compound.domain.dimension
    return replace(
        pieces,
        winner=winner,
        margin=margin,
        slack=slack,
        most_strip=most_strip,
        witnesses=np.array(witnesses).reshape(-1, dimension),
    )


def _strongest_rival(regions: RegionSet, pieces: Pieces, piece: int) -> int:
    """The class other than the label with the largest logit at the centre of a piece."""
    logits = np.append(pieces.polytopes.centres[piece], 1.0) @ regions.logits[pieces.region[piece]]
    logits[pieces.label] = -np.inf
    return int(np.argmax(logits))


def affordable(compound: Compound) -> int:
    """How many polytopes exact arithmetic may settle."""
    return int(min(MOST_POLYTOPES, MOST_WEIGHTS // max(1, sum(affine.matrix.size for affine in compound.chain.maps))))


def exact_labels(compound: Compound, label: int, budget: Budget | None = None) -> "ExactLabels | None":
    """Exact arithmetic for a compound network, until the budget is over; None if the network has no exact form."""
    from ..exact import ExactLabels  # noqa: PLC0415 (rarely needed)

    try:
        return ExactLabels(compound, label, lambda: is_over(budget, OPTIONAL))
    except ModelError:
        return None


def pattern_reach(
    compound: Compound, curves: SingleCurves, cell: int, pattern: bytes, taus: np.ndarray | None = None
) -> tuple[float, float]:
    """Bounds on the inconsistency of a pattern in a knot cell: anywhere, or on a range of τ (2,)."""
    found, errors = curves.of(cell, pattern)
    axis, knots = compound.perturbed.moving_axis, compound.cells[cell]
    width = 0.0 if axis is None else float(knots.high[axis] - knots.low[axis])
    where = np.array([[0.0, width]]) if taus is None else np.clip(taus, 0.0, width)[None]
    low, high = label_attention(found, Spans(where), 0.0, errors).reach[0]
    # NaN bounds nothing.
    return float(low) if low >= 0.0 else 0.0, float(high) if high >= 0.0 else np.inf


def kink_inconsistency(
    compound: Compound,
    regions: RegionSet,
    errors: list[np.ndarray],
    curves: SingleCurves,
    bounder: Bounder,
    budget: Budget | None = None,
) -> float:
    """An upper bound on ai over all kinks with a pattern that belongs to no region; infinite if unknown.

    `errors` bounds the error of every neuron's form. The bound is 0 if only patterns of regions meet at kinks: ai there
    never exceeds ai on the regions. The pattern of a region may still exceed it at another τ, where the expected map
    has moved on; such a pattern counts too.

    With derivatives d_k in [0, 1] for the uncertain ReLUs, the gradient is affine in each d_k, so it is a mean of the
    gradients at the corners d_k ∈ {0, 1}, which are patterns. The derivatives of a window's entries are shares that add
    up to one; each corner has one winner. Distances are convex, so ai is at most its largest value at a corner. This
    fails for nonlinear filters, such as the absolute value. Other losses are not convex: their bound holds for the
    patterns themselves, and every theta has exactly one (active means above 0).

    The vertices show which neurons are uncertain together. On a region every ReLU k has one sign, so its |form| is an
    affine function F_k ≥ 0, up to `missed`; for an entry k, F_k is the winner's form minus its own. Where all neurons
    of a set K are uncertain, Σ F_k ≤ Σ e_k, with the errors of both entries for windows. An affine function has its
    minimum at a vertex, so at some vertex each F_k of the set is at most the sum of all errors.
    """
    moves, measure = compound.perturbed.moving_axis is not None, curves.options.measure
    is_convex = measure != DISTANCE or curves.options.filter.is_linear
    if not is_convex or (moves and not measure.is_quasiconvex):
        return np.inf
    together = error_together(compound, regions, errors)
    taus: list[Range] = [(low, high) for low, high in Spans.of_regions(compound, regions).taus.tolist()]
    known, found = _known_ranges(regions, taus, moves=moves), dict[tuple[int, bytes], Range]()
    corners = PatternCorners(compound)
    for places, vertices in vertex_batches(regions.polytopes, regions.cell, np.arange(len(regions)), bounder.batch):
        if is_over(budget):
            return np.inf
        cell = int(regions.cell[places[0]])
        near = bounder.near_zero(cell, vertices[:, :, : compound.domain.dimension], together)
        rows = regions.patterns[regions.pattern[places]]
        for row, vertex in zip(*np.nonzero(near.any(axis=2)), strict=True):
            choices = corners.choices(rows[row], np.flatnonzero(near[row, vertex]))
            if prod(map(len, choices)) > 2**MOST_TOGETHER:
                return np.inf
            own = taus[places[row]]
            for pattern in corners.patterns(rows[row], choices):
                key = (cell if moves else 0, pattern)
                before = known.get(key)
                if before is None or own[0] < before[0] or own[1] > before[1]:
                    found[key] = _joined(found.get(key, own), own)
            if len(found) > MOST_PATTERNS:
                return np.inf
    around = 16.0 * UNIT * (1.0 + float(compound.domain.widths.max()))
    largest = 0.0
    for (cell, pattern), (low, high) in found.items():
        if is_over(budget):
            return np.inf
        largest = max(
            largest, pattern_reach(compound, curves, cell, pattern, np.array([low - around, high + around]))[1]
        )
    return largest


def _known_ranges(regions: RegionSet, taus: list[Range], *, moves: bool) -> dict[tuple[int, bytes], Range]:
    """For each pattern of a region (per knot cell if maps move): a range of τ where its loss exceeds no region's.

    The loss is a quasiconvex function of τ: between two regions with the same pattern, it is no larger than on them.
    """
    known: dict[tuple[int, bytes], Range] = {}
    rows = regions.patterns[np.arange(len(regions.patterns))]
    for cell, number, own in zip(regions.cell.tolist(), regions.pattern.tolist(), taus, strict=True):
        key = (cell if moves else 0, rows[number].tobytes())
        known[key] = _joined(known.get(key, own), own)
    return known


def _joined(one: Range, other: Range) -> Range:
    return min(one[0], other[0]), max(one[1], other[1])


def error_together(compound: Compound, regions: RegionSet, errors: list[np.ndarray]) -> float:
    """A bound on the sum of the F_k of neurons that are uncertain together: see `kink_inconsistency`.

    Sums the errors of every ReLU, and of every entry together with the winner of its window.
    """
    total = 0.0
    for layer, error in zip(compound.graph.layers, errors, strict=False):
        own = error
        if not layer.is_plain:
            own = np.where(layer.carried, 0.0, error)
            if len(layer.entries):
                largest = np.maximum.reduceat(error[layer.entries], layer.starts)
                own[layer.entries] = 2.0 * np.repeat(largest, np.diff(layer.starts, append=len(layer.entries)))
        total += float(own.sum())
    # Forms vanish up to the sum of the errors; the computed values may be off by the same sum again.
    return 2.0 * total + 2.0 * float(regions.accuracy.missed.sum())


Choice = list[tuple[int, ...]]
"""The possible states of an uncertain ReLU or window, each as the list of its active neurons."""


class PatternCorners:
    """The patterns that meet where some neurons are uncertain."""

    def __init__(self, compound: Compound) -> None:
        self.byte, self.bit = bit_places(compound.hidden)
        starts = np.cumsum([0, *compound.hidden[:-1]])
        # Without hidden layers there is one start and no layer.
        layers = list(zip(compound.graph.layers, starts, strict=False))
        joined = [np.zeros((2, 0), dtype=np.int64)] + [np.stack(layer.ends) + start for layer, start in layers]
        self.first, self.end = np.concatenate(joined, axis=1)
        kinds = [np.zeros(0, dtype=np.uint8)] + [layer.kind for layer, _ in layers]
        self.kind = np.concatenate(kinds)

    def choices(self, row: np.ndarray, uncertain: np.ndarray) -> list[Choice]:
        """The choice for every ReLU or window among the uncertain neurons; row (bytes,) is a packed pattern.

        The pattern's own winner of a window is always a candidate.
        """
        kind = self.kind[uncertain]
        found: list[Choice] = [[(), (neuron,)] for neuron in uncertain[kind == RELU].tolist()]
        entries = uncertain[kind == ENTRY]
        for first in np.unique(self.first[entries]).tolist():
            window = np.arange(first, self.end[first])
            wins = (row[self.byte[window]] & self.bit[window]) != 0
            found.append([(neuron,) for neuron in window[wins | np.isin(window, entries)].tolist()])
        return found

    def patterns(self, row: np.ndarray, choices: list[Choice]) -> Iterator[bytes]:
        """The packed patterns that equal a row (bytes,), apart from any choice for the uncertain ReLUs and windows."""
        inactive = bytearray(row.tobytes())
        for neuron in (neuron for choice in choices for active in choice for neuron in active):
            inactive[self.byte[neuron]] &= ~self.bit[neuron]
        for corner in product(*choices):
            pattern = bytearray(inactive)
            for neuron in (neuron for active in corner for neuron in active):
                pattern[self.byte[neuron]] |= self.bit[neuron]
            yield bytes(pattern)
