"""Checks a refinement before delivery: the tiling of its boxes, and its claims against plain passes at sampled thetas.

Half of the thetas lie anywhere inside boxes and exact pieces, half just beside borders, preferably between two labels.
Each margin and inconsistency must lie in the range that its box or piece claims, up to the rounding of the pass itself
(see `pointwise`). Passes and bounds share the steps of the network, so some passes are repeated with the graph. A
refinement that fails is not delivered. Sampling finds mistakes; it proves nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from ...attention.measures.distance import DISTANCE
from ...budget import Budget, is_over
from ...errors import InternalError
from ...network.doubts import is_on_kink
from ...polytopes import Cut
from ...properties.attention import reaches
from ...question import Question
from ...regions.check import UNEVEN, CheckedMap, PlainPass, check_map, uneven_sides
from ...results.answer import Answers
from ...tolerances import AREA, BESIDE, LOGITS
from .boxes import Boxes, State, attention_codes, label_codes
from .parted_boxes import Parted
from .point_rounding import PROBES, bound_rounding, margin_slack
from .pointwise import PointPasses

# The fewest and the most margins and inconsistencies to compare, and margins to recompute with the graph.
MARGINS, INCONSISTENCIES, BY_GRAPH = (500, 2_000), (50, 200), (100, 200)
EACH = (3.0, 0.3, 0.3)  # how many of each per box with a claim, within these limits
# The fewest and the most exact regions, and edges or facets, to compare: within these limits, a share of all regions.
REGIONS, EDGES, SHARE = (150, 500), (75, 250), 0.1
ALL_REGIONS, ALL_EDGES = 4_000, 1_500  # how many to compare if exact regions cover the whole domain
WORK = 20_000_000_000  # multiplications beyond which fewer thetas are compared: some seconds
WORK_PER_SECOND = 1_000_000_000  # multiplications for each second left
PARTED = 500  # thetas compared on the sides of planes
CLOSE = 1e-3  # how close to a plane thetas are moved: to this share of their distance
FEWEST = 24  # thetas of each kind that are always compared, however large the network
SEED = 20243
FACES_EACH = 8  # box sides drawn for each one used, so that most used ones lie between two labels
FACES_AT_ONCE = 256
MOST_RIVALS = 32  # classes whose gradients are computed at once
CLOSEST = 1e-9  # the least distance of a point from the box side next to it: far above the rounding of theta


class Sampled(NamedTuple):
    """How many margins (inside, and beside borders) and inconsistencies were compared; a sentence per contradiction."""

    inside: int
    beside: int
    inconsistencies: int
    contradictions: tuple[str, ...]


def check_refined(
    question: Question, boxes: Boxes, answers: Answers | None, delta: float, budget: Budget | None = None,
    parted: Parted | None = None,
) -> CheckedMap:  # fmt: skip
    """Check boxes and exact regions (None if there are none); δ is absolute. InternalError if a check fails.

    A run with little time left compares fewer thetas, but at least FEWEST of each kind.
    """
    error = check_tiling(boxes)
    compared, is_exact = CheckedMap(0.0, 0, 0), boxes.state == State.EXACT
    if answers is not None:
        most = [ALL_REGIONS, ALL_EDGES]
        if not is_exact.all():
            most = [int(np.clip(SHARE * len(answers.regions), *ends)) for ends in (REGIONS, EDGES)]
        work, volume = PointPasses(question).work, float(boxes.volumes[is_exact].sum())
        inside, edges = (_affordable(count, work, share=0.1, budget=budget) for count in most)
        compared = check_map(
            question.compound, _without_derived(answers).regions, expected_volume=volume, inside=inside, edges=edges,
            is_late=lambda: is_over(budget),
        )  # fmt: skip
    sampled = Sampled(0, 0, 0, ())
    if not is_exact.all():  # otherwise no box has a claim of its own
        sampled = check_boxes(question, boxes, None if answers is None else _without_derived(answers), delta, budget)
    if parted is not None and len(parted):
        _refuse(
            parted_contradictions(
                question, boxes, parted, _affordable(PARTED, PointPasses(question).work, budget=budget)
            )
        )
    return CheckedMap(
        max(error, compared.tiling_error), compared.inside + sampled.inside, compared.beside + sampled.beside
    )


def _without_derived(answers: Answers) -> Answers:
    """The same answers without arrays derived from polygons, which take much memory for millions of regions."""
    regions = replace(answers.regions, polytopes=answers.regions.polytopes.bare())
    return replace(answers, regions=regions, pieces=replace(answers.pieces, polytopes=answers.pieces.polytopes.bare()))


def check_boxes(
    question: Question, boxes: Boxes, answers: Answers | None, delta: float, budget: Budget | None = None
) -> Sampled:
    """Compare up to 2,000 margins and 200 inconsistencies with the claims; InternalError for a contradiction."""
    work = PointPasses(question).work
    each = work * (1 + len(question.attention.chosen(question.model.classes)))
    claims = int((boxes.state != State.EXACT).sum())
    kinds = zip(EACH, (MARGINS, INCONSISTENCIES, BY_GRAPH), (work, each, work), strict=True)
    counts = [_affordable(int(np.clip(share * claims, *ends)), cost, budget=budget) for share, ends, cost in kinds]
    sampled = sample_contradictions(question, boxes, answers, delta, *counts)
    _refuse(sampled.contradictions)
    return sampled


def _refuse(contradictions: Sequence[str]) -> None:
    """Raise InternalError with the first contradiction, if there is one."""
    if contradictions:
        raise InternalError(
            f"self-check failed: {contradictions[0]}; nothing is delivered, please report this model and image"
        )


def parted_contradictions(question: Question, boxes: Boxes, parted: Parted, count: int) -> list[str]:
    """Compare about `count` thetas, half of them close to a plane, with the claims on their side of it."""
    generator, owners = np.random.default_rng(SEED), np.flatnonzero(boxes.state == State.PARTED)
    row = generator.integers(len(parted), size=count)
    inside = generator.uniform(-1.0, 1.0, (count, parted.slopes.shape[1]))
    # Move towards the plane along its normal, as far as the box allows.
    slopes = parted.slopes[row]
    value = (slopes * inside).sum(axis=1) + parted.offset[row]
    step = value / np.maximum((slopes**2).sum(axis=1), np.finfo(np.float64).tiny)
    close = np.clip(inside - (1.0 - CLOSE) * step[:, None] * slopes, -1.0, 1.0)
    inside[::2] = close[::2]
    side = parted.take(row).sides(inside)
    known, d = np.flatnonzero(side >= 0), parted.slopes.shape[1]
    row, side, box = row[known], side[known], owners[row[known]]
    points = boxes.low[box].copy()
    points[:, :d] += 0.5 * (1.0 + inside[known]) * (boxes.high - boxes.low)[box, :d]
    none = np.zeros(len(row), dtype=bool)
    samples = Samples(points, parted.margin[row, side], parted.inconsistency[row, side], box, none, none)
    passes = PointPasses(question)
    found = _margin_contradictions(passes, samples, 0)
    claims = np.isfinite(samples.inconsistency[:, 1]) | (samples.inconsistency[:, 0] > 0.0)
    return found + _inconsistency_contradictions(passes, samples.take(np.flatnonzero(claims)), None)


def sample_contradictions(
    question: Question, boxes: Boxes, answers: Answers | None, delta: float, margins: int, maps: int, by_graph: int
) -> Sampled:
    """Compare so many margins and inconsistencies with the claims of a refinement, at least half beside borders."""
    passes = PointPasses(question)
    samples = Sampler(boxes, answers, delta, question.perturbed.domain.dimension).draw(margins)
    found = _margin_contradictions(passes, samples, by_graph)
    claims = np.isfinite(samples.inconsistency[:, 1]) | (samples.inconsistency[:, 0] > 0.0)
    measured = samples.take(np.flatnonzero(claims)[:maps])
    found += _inconsistency_contradictions(passes, measured, answers)
    beside = int(samples.is_beside.sum())
    return Sampled(len(samples) - beside, beside, len(measured), tuple(found))


def check_tiling(boxes: Boxes) -> float:
    """How far the volumes' sum is from 1; InternalError unless every cut has two equal sides and every border one."""
    volumes, widths = boxes.volumes, boxes.high - boxes.low
    error = abs(float(volumes.sum()) - 1.0)
    if not (widths > 0.0).all() or not error <= AREA:
        raise InternalError(
            f"the boxes add up to {volumes.sum()!r} of the domain instead of 1: please report this model and image"
        )
    sizes = np.repeat((volumes[:, None] / widths)[:, :, None], 2, axis=2)
    uneven = uneven_sides(boxes.sides, sizes, boxes.cuts)
    worst = int(np.argmax(uneven))
    if uneven[worst] > UNEVEN:
        raise InternalError(f"cut {worst + 1} of the boxes has only one side: please report this model and image")
    return error


def _affordable(most: int, work: int, *, share: float = 1.0, budget: Budget | None = None) -> int:
    """How many thetas fit into a share of the total work: at least FEWEST, at most `most`; work: for one theta."""
    total = WORK if budget is None else min(WORK, WORK_PER_SECOND * budget.seconds_left())
    return int(np.clip(share * total / work, min(FEWEST, most), most))


@dataclass(frozen=True, eq=False)
class Samples:
    """Points (N, D) in t, and the claimed ranges (N, 2) of margin and inconsistency there."""

    points: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray
    place: np.ndarray  # (N,) the box, or the piece
    is_piece: np.ndarray  # (N,)
    is_beside: np.ndarray  # (N,) whether the point lies beside a border

    def __len__(self) -> int:
        return len(self.points)

    def take(self, chosen: np.ndarray) -> "Samples":
        """The chosen samples, in that order."""
        return Samples(*(getattr(self, field.name)[chosen] for field in fields(self)))


def _joined(parts: list[Samples]) -> Samples:
    return Samples(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Samples)))


def _margin_contradictions(passes: PointPasses, samples: Samples, by_graph: int) -> list[str]:
    thetas = passes.question.compound.to_theta(samples.points)
    margins = passes.margins(thetas)
    found = _outside(passes, samples, thetas, margins)
    again = thetas[:by_graph]
    for part in passes.batches(len(again), 1):
        logits = passes.question.model.graph.logits(passes.perturbed.images(again[part]))
        margins[part] = passes.margins_of(logits)
    return found + _outside(passes, samples.take(np.arange(len(again))), again, margins[: len(again)])


def _outside(passes: PointPasses, samples: Samples, thetas: np.ndarray, margins: np.ndarray) -> list[str]:
    """Sentences about margins (N,) outside their claimed range by more than their rounding."""
    low, high = samples.margin.T
    # NaN lies in no range. Only margins outside their range need a bound on their rounding.
    outside = np.flatnonzero(~((low <= margins) & (margins <= high)))
    everything, label = np.eye(passes.question.model.classes), passes.question.label
    rivals = everything[label] - np.delete(everything, label, axis=0)
    found = []
    for part in passes.batches(len(outside), max(PROBES, min(len(everything), MOST_RIVALS))):
        chosen = outside[part]
        trace = passes.trace(thetas[chosen])
        rounding = bound_rounding(passes, thetas[chosen], trace)
        slack = np.zeros(len(chosen))
        # Not all rivals at once: their gradients may take much memory.
        for few in np.array_split(rivals, -(-len(rivals) // MOST_RIVALS)) if len(rivals) else ():
            rows = np.repeat(few[None], len(chosen), axis=0)
            slack = np.maximum(slack, margin_slack(passes, trace, rounding, rows).max(axis=1, initial=0.0))
        fits = (low[chosen] <= margins[chosen] + slack) & (margins[chosen] - slack <= high[chosen])
        found += [_sentence(samples, thetas, margins, number, "margin") for number in chosen[~fits]]
    return found


def _inconsistency_contradictions(passes: PointPasses, samples: Samples, answers: Answers | None) -> list[str]:
    thetas = passes.question.compound.to_theta(samples.points)
    values = passes.inconsistencies(thetas)
    low, high = samples.inconsistency.T
    outside = np.flatnonzero(~((low <= values) & (values <= high)))
    measured = passes.measure(thetas[outside], has_attention=True)
    slack = np.where(np.isnan(values[outside]), 0.0, measured.inconsistency_slack)
    fits = (low[outside] <= values[outside] + slack) & (values[outside] - slack <= high[outside])
    return [
        _sentence(samples, thetas, values, number, "inconsistency")
        for number in outside[~fits]
        if answers is None or not samples.is_piece[number] or not _is_on_kink(passes, thetas[number], answers)
    ]


def _is_on_kink(passes: PointPasses, theta: np.ndarray, answers: Answers) -> bool:
    """Whether a theta (d,) of an exact piece lies on a kink, where the piece makes no claim."""
    errors = PlainPass(answers.compound, answers.regions.accuracy).errors[:-1]
    layers = zip(passes.layers, passes.trace(theta[None]).values, errors, strict=True)
    return any(
        bool(is_on_kink(layer, value, np.broadcast_to(error, value.shape)).any()) for layer, value, error in layers
    )


def _sentence(samples: Samples, thetas: np.ndarray, values: np.ndarray, number: int, what: str) -> str:
    low, high = getattr(samples, what)[number]
    owner = f"{'exact piece' if samples.is_piece[number] else 'box'} {samples.place[number]}"
    return (
        f"{owner} claims a{'n' if what[0] == 'i' else ''} {what} from {low:.9g} to {high:.9g}, but a plain pass gives "
        f"{values[number]:.9g} at theta {thetas[number].tolist()}"
    )


class Sampler:
    """Draws samples from boxes and from the pieces of exact regions, if any; labels are those for δ."""

    def __init__(self, boxes: Boxes, answers: Answers | None, delta: float, dimension: int) -> None:
        self.boxes, self.answers, self.dimension = boxes, answers, dimension
        self.generator = np.random.default_rng(SEED)
        self.bounded = np.flatnonzero(boxes.state != State.EXACT)
        self.codes = np.stack([label_codes(boxes.margin), attention_codes(boxes.inconsistency, delta)], axis=1)

    def draw(self, count: int) -> Samples:
        """About `count` samples in random order, at least half of them beside borders, if there are any."""
        pieces = 0 if self.answers is None else len(self.answers.pieces)
        shares = (1.0, 0.0) if not pieces else (0.5, 0.5) if len(self.bounded) else (0.0, 1.0)
        half = -(-count // 2)
        beside = [self._beside_boxes(int(half * shares[0])), self._beside_pieces(int(half * shares[1]))]
        inside = self._inside(max(count - sum(map(len, beside)), 0))
        together = _joined([*beside, *inside])
        return together.take(self.generator.permutation(len(together)))

    def _inside(self, count: int) -> list[Samples]:
        """Points inside boxes and pieces; half of these are drawn by volume, half uniformly."""
        volumes = self.boxes.volumes[self.bounded]
        if self.answers is not None:
            volumes = np.concatenate([volumes, self.answers.pieces.polytopes.volumes])
        ends = np.cumsum(volumes)
        by_volume = np.searchsorted(ends, ends[-1] * self.generator.random(count // 2))
        places = np.concatenate([by_volume, self.generator.integers(len(volumes), size=count - count // 2)])
        places = np.minimum(places, len(volumes) - 1)
        boxes = self.bounded[places[places < len(self.bounded)]]
        low, high = self.boxes.low[boxes], self.boxes.high[boxes]
        found = [self._of_boxes(low + self.generator.random(low.shape) * (high - low), boxes, is_beside=False)]
        if self.answers is not None:
            pieces = places[places >= len(self.bounded)] - len(self.bounded)
            polytopes = self.answers.pieces.polytopes
            sizes = np.diff(polytopes.starts)[pieces]
            corners = polytopes.points[polytopes.starts[pieces] + self.generator.integers(sizes)]
            centres = polytopes.centres[pieces]
            points = centres + self.generator.random((len(pieces), 1)) * 0.99 * (corners - centres)
            found.append(self._of_pieces(self.answers, points, pieces, is_beside=False))
        return found

    def _beside_boxes(self, count: int) -> Samples:
        """Points on both sides of faces between two boxes, preferably between different labels."""
        boxes, d = self.boxes, self.dimension
        faces = self.generator.integers(len(boxes) * d * 2, size=FACES_EACH * count)
        box, axis, side = np.unravel_index(faces, (len(boxes), d, 2))
        low, high, rows = boxes.low[box], boxes.high[box], np.arange(len(box))
        points = low + (0.02 + 0.96 * self.generator.random(low.shape)) * (high - low)
        points[rows, axis] = np.where(side == 0, low[rows, axis], high[rows, axis])
        other = self._across(points, boxes.sides[box, axis, side], axis)
        usable = np.flatnonzero(other >= 0)
        differs = (self.codes[box[usable]] != self.codes[other[usable]]).any(axis=1)
        chosen = usable[np.argsort(~differs, kind="stable")][: -(-count // 2)]
        found = []
        for owners, inward in ((box, np.where(side == 0, 1.0, -1.0)), (other, np.where(side == 0, -1.0, 1.0))):
            own, along, place = owners[chosen], axis[chosen], points[chosen].copy()
            width = boxes.high[own, along] - boxes.low[own, along]
            depth = np.maximum(width * 10.0 ** -self.generator.uniform(2.0, 7.0, len(own)), CLOSEST)
            place[np.arange(len(own)), along] += inward[chosen] * np.minimum(depth, 0.5 * width)
            found.append(self._of_boxes(place, own, is_beside=True))
        return _joined(found).take(np.arange(min(count, 2 * len(chosen))))

    def _across(self, points: np.ndarray, cuts: np.ndarray, axis: np.ndarray) -> np.ndarray:
        """The box (F,) beyond points (F, D) on sides with given signed cuts (F,); −1 if there is none."""
        boxes, d, other = self.boxes, self.dimension, np.full(len(cuts), -1)
        keys = boxes.sides[:, :d].ravel()
        order = np.argsort(keys, kind="stable")
        # In small batches, because many boxes may share a cut.
        for start in range(0, len(cuts), FACES_AT_ONCE):
            wanted = -cuts[start : start + FACES_AT_ONCE]
            first, last = (np.searchsorted(keys, wanted, side, sorter=order) for side in ("left", "right"))
            number = start + np.repeat(np.arange(len(wanted)), last - first)
            ahead = np.repeat(np.cumsum(last - first) - last, last - first)
            owner = order[np.arange(len(number)) - ahead] // (2 * d)
            is_in = (boxes.low[owner] <= points[number]) & (points[number] <= boxes.high[owner])
            # Along the axis itself, the point lies on the shared side.
            is_in[np.arange(len(number)), axis[number]] = True
            touching = np.flatnonzero(is_in.all(axis=1))
            other[number[touching]] = owner[touching]
        return other

    def _beside_pieces(self, count: int) -> Samples:
        """Points just inside pieces, beside their edges or facets."""
        if self.answers is None or not count:
            return self._of_boxes(np.zeros((0, self.boxes.low.shape[1])), np.zeros(0, dtype=np.int64), is_beside=True)
        pieces = self.answers.pieces
        polytopes = pieces.polytopes
        kind = pieces.cuts[np.abs(polytopes.facets) - 1, 0]
        # Half of them lie between classes, if possible; the others lie at neurons, where attention may jump.
        groups = [np.flatnonzero(kind == wanted) for wanted in (Cut.ARGMAX, Cut.NEURON)]
        groups = [group for group in groups if len(group)] or [np.arange(len(kind))]
        drawn = [group[self.generator.integers(len(group), size=-(-count // len(groups)))] for group in groups]
        sides = np.concatenate(drawn)[:count]
        owners, (middles, _) = polytopes.facet_owner[sides], polytopes.facet_planes(sides)
        inward = polytopes.centres[owners] - middles
        length = np.maximum(np.linalg.norm(inward, axis=1, keepdims=True), 1e-300)
        depth = BESIDE * 10.0 ** self.generator.uniform(0.0, 4.0, (len(sides), 1))
        points = middles + inward * np.minimum(0.5, depth / length)
        return self._of_pieces(self.answers, points, owners, is_beside=True)

    def _of_boxes(self, points: np.ndarray, box: np.ndarray, *, is_beside: bool) -> Samples:
        boxes, none = self.boxes, np.zeros(len(box), dtype=bool)
        return Samples(points, boxes.margin[box], boxes.inconsistency[box], box, none, none | is_beside)

    def _of_pieces(self, answers: Answers, points: np.ndarray, piece: np.ndarray, *, is_beside: bool) -> Samples:
        """Samples of exact pieces: they claim the affine logits of their region and the range of its ai, with slack."""
        pieces, region = answers.pieces, answers.pieces.region[piece]
        logits = np.einsum("ni,nik->nk", np.hstack([points, np.ones((len(points), 1))]), answers.regions.logits[region])
        margin = logits[:, pieces.label] - np.delete(logits, pieces.label, axis=1).max(axis=1, initial=-np.inf)
        rounding = LOGITS * (1.0 + np.abs(logits).max(axis=1))
        slack = pieces.slack[piece] + rounding
        around = 2.0 * float(answers.forward_errors[-1].max()) + rounding
        low, high = margin - around, margin + around
        keeps = pieces.keeps_label[piece]
        low, high = np.where(keeps, np.maximum(low, -slack), low), np.where(keeps, high, np.minimum(high, slack))
        reach = np.tile([0.0, np.inf], (len(piece), 1))
        if answers.curves is not None and answers.errors is not None:
            curves = replace(answers.curves, curve=answers.curves.curve[region])
            rounding = LOGITS * (answers.size if curves.measure == DISTANCE else 1.0)
            known = reaches(curves, answers.spans.take(region), 2.0 * answers.errors.coarse)
            known += np.array([-rounding, rounding])
            reach = np.where(answers.regions.doubtful[region, None], reach, known)
        is_piece = np.ones(len(piece), dtype=bool)
        return Samples(points, np.stack([low, high], axis=1), reach, piece, is_piece, is_piece & is_beside)
