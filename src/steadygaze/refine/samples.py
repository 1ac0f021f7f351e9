"""Thetas at which a refinement is put to the test, and what it claims there.

Turns boxes and the pieces of exact regions into points: half of them anywhere inside, half just beside borders, those
between labels first. Evaluates nothing. The same refinement gives the same points.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from ..properties.attention import reaches
from ..regions.polyhedra import Polyhedra
from ..regions.region import Cut
from ..results.answer import Answers
from ..tolerances import BESIDE, LOGITS
from .boxes import Boxes, State
from .decide import attention_codes, label_codes

SEED = 20243

FACES_EACH = 8
"""Sides of boxes that are looked at for every one that is used, so that most lie between two labels."""

FACES_AT_ONCE = 256

CLOSEST = 1e-9
"""How far a point beside the side of a box is inside at least: far above the rounding of theta."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Points (N, D) in t, and the ranges (N, 2) that margin and inconsistency are claimed to lie in there.

    place (N,) is the box, or the piece where is_piece (N,) says so; is_beside (N,) marks points beside a border.
    """

    points: np.ndarray
    margin: np.ndarray
    inconsistency: np.ndarray
    place: np.ndarray
    is_piece: np.ndarray
    is_beside: np.ndarray

    def __len__(self) -> int:
        return len(self.points)

    def take(self, chosen: np.ndarray) -> "Samples":
        """The chosen samples in that order."""
        return Samples(*(getattr(self, field.name)[chosen] for field in fields(self)))


class Sampler:
    """Draws samples from boxes and, where there are any, the pieces of the exact regions; δ tells labels apart."""

    def __init__(self, boxes: Boxes, answers: Answers | None, delta: float, dimension: int) -> None:
        self.boxes, self.answers, self.dimension = boxes, answers, dimension
        self.generator = np.random.default_rng(SEED)
        self.bounded = np.flatnonzero(boxes.state != State.EXACT)
        codes = label_codes(boxes.margin), attention_codes(boxes.inconsistency, delta)
        self.codes = np.stack(codes, axis=1)

    def draw(self, count: int) -> Samples:
        """About `count` samples in no order: at least half of them beside borders, if there are borders."""
        pieces = 0 if self.answers is None else len(self.answers.pieces)
        shares = (1.0, 0.0) if not pieces else (0.5, 0.5) if len(self.bounded) else (0.0, 1.0)
        half = -(-count // 2)
        beside = [self._beside_boxes(int(half * shares[0])), self._beside_pieces(int(half * shares[1]))]
        inside = self._inside(max(count - sum(map(len, beside)), 0))
        together = _joined([*beside, *inside])
        return together.take(self.generator.permutation(len(together)))

    def _inside(self, count: int) -> list[Samples]:
        """Points inside, half of them by volume, half of them in boxes and pieces whatever their size."""
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
        """Points on both sides of sides that two boxes share, those between different labels first."""
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
        """The box (F,) beyond points (F, D) on sides with given signed cuts (F,); −1 where there is none."""
        keys = self.boxes.sides[:, : self.dimension].ravel()
        order = np.argsort(keys, kind="stable")
        # In runs, since many boxes may share a cut.
        runs = (slice(first, first + FACES_AT_ONCE) for first in range(0, len(cuts), FACES_AT_ONCE))
        parts = [self._beyond(points[run], cuts[run], axis[run], keys[order], order) for run in runs]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def _beyond(
        self, points: np.ndarray, cuts: np.ndarray, axis: np.ndarray, ranked: np.ndarray, order: np.ndarray
    ) -> np.ndarray:
        """As `_across`, given all signed cuts in ascending order, and the places of their sides in that order."""
        boxes, d = self.boxes, self.dimension
        first, last = np.searchsorted(ranked, -cuts), np.searchsorted(ranked, -cuts, side="right")
        number = np.repeat(np.arange(len(cuts)), last - first)
        ahead = np.repeat(np.cumsum(last - first) - last, last - first)
        owner = order[np.arange(len(number)) - ahead] // (2 * d)
        is_in = (boxes.low[owner] <= points[number]) & (points[number] <= boxes.high[owner])
        # Along the axis itself the point lies on the side that both share.
        is_in[np.arange(len(number)), axis[number]] = True
        touching = np.flatnonzero(is_in.all(axis=1))
        other = np.full(len(cuts), -1)
        other[number[touching]] = owner[touching]
        return other

    def _beside_pieces(self, count: int) -> Samples:
        """Points just inside of pieces beside their edges or facets; borders between classes first."""
        if self.answers is None or not count:
            return self._of_boxes(np.zeros((0, self.boxes.low.shape[1])), np.zeros(0, dtype=np.int64), is_beside=True)
        pieces = self.answers.pieces
        polytopes = pieces.polytopes
        if isinstance(polytopes, Polyhedra):
            cuts, owners, middles = polytopes.facets, polytopes.facet_owner, polytopes.facet_centres
        else:
            cuts, owners = polytopes.edges, polytopes.owner
            middles = 0.5 * (polytopes.points + polytopes.points[polytopes.following])
        kind = pieces.cuts[np.abs(cuts) - 1, 0]
        # Half of them between classes, as far as there are any; the others at neurons, where attention may jump.
        groups = [np.flatnonzero(kind == wanted) for wanted in (Cut.ARGMAX, Cut.NEURON)]
        groups = [group for group in groups if len(group)] or [np.arange(len(cuts))]
        drawn = [group[self.generator.integers(len(group), size=-(-count // len(groups)))] for group in groups]
        sides = np.concatenate(drawn)[:count]
        inward = polytopes.centres[owners[sides]] - middles[sides]
        length = np.maximum(np.linalg.norm(inward, axis=1, keepdims=True), 1e-300)
        depth = BESIDE * 10.0 ** self.generator.uniform(0.0, 4.0, (len(sides), 1))
        points = middles[sides] + inward * np.minimum(0.5, depth / length)
        return self._of_pieces(self.answers, points, owners[sides], is_beside=True)

    def _of_boxes(self, points: np.ndarray, box: np.ndarray, *, is_beside: bool) -> Samples:
        boxes, none = self.boxes, np.zeros(len(box), dtype=bool)
        return Samples(points, boxes.margin[box], boxes.inconsistency[box], box, none, none | is_beside)

    def _of_pieces(self, answers: Answers, points: np.ndarray, piece: np.ndarray, *, is_beside: bool) -> Samples:
        """Exact pieces claim the affine logits of their region and the range of its ai, up to their own slack."""
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
            error = 2.0 * answers.errors.coarse + LOGITS * answers.size
            known = reaches(curves, answers.taus[region]) + np.array([-error, error])
            reach = np.where(answers.regions.doubtful[region, None], reach, known)
        is_piece = np.ones(len(piece), dtype=bool)
        return Samples(points, np.stack([low, high], axis=1), reach, piece, is_piece, is_piece & is_beside)


def _joined(parts: list[Samples]) -> Samples:
    return Samples(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Samples)))
