"""Merges boxes and exact regions into the answer for one δ: labels, shares, pieces, and the nearest violations.

A box that is not EXACT is a single piece, labelled by its enclosures; exact regions contribute their own pieces. All
pieces carry signed cuts of one table, so adjacency and boundaries work across both kinds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...attention.measures.distance import DISTANCE
from ...compound import Compound
from ...errors import InternalError, OptionError
from ...labels import ATTENTIONS, CLASSIFICATIONS, Kept, Label, Property, Verdict
from ...polytopes import box_polytopes, join_polytopes
from ...properties.classification import Pieces
from ...properties.joint import JointPieces, Shares, shares
from ...properties.nearest import DEPTHS, INSIDE, Nearest, less_rounding
from ...question import Question
from ...results.answer import Answer
from ...results.delta_answer import DeltaAnswer, zero_bounds, zero_volumes
from ...results.witness import Enclosing
from ...tolerances import MAX_MAP_PARAMETERS, UNIT
from .boxes import Boxes, State, attention_codes, label_codes
from .parted_boxes import Parted

LOST = 1e-6  # if regions leave more than this share of an EXACT box uncovered, rounding cannot be the cause
UNKNOWN_WINNER = -1  # the winner of a piece where an unknown class beats the label


@dataclass(frozen=True)
class Units:
    """One numbering for the units of a refinement: unit u is box u if u < `boxes`, otherwise exact region u − boxes.

    >>> units = Units(boxes=5)
    >>> units.of_regions(np.array([0, 1])).tolist(), units.is_box(np.array([4, 5])).tolist()
    ([5, 6], [True, False])
    """

    boxes: int

    def is_box(self, units: np.ndarray) -> np.ndarray:
        """Which units are boxes; such a unit has the number of its box."""
        return units < self.boxes

    def of_regions(self, regions: np.ndarray) -> np.ndarray:
        return self.boxes + regions

    def to_regions(self, units: np.ndarray) -> np.ndarray:
        """The exact regions of units that are not boxes."""
        return units - self.boxes


@dataclass(frozen=True, eq=False)
class MergedAnswer(DeltaAnswer):
    """The answer for one δ; `joint.pieces.region` holds units (see `Units`).

    exact: the answer for the regions in EXACT boxes; box_of (R,): the box of each of these regions. points (N, d):
    violations that the search found; they count once bounds prove them. parted: the planes of the PARTED boxes, in the
    same order.
    """

    question: Question
    boxes: Boxes
    exact: Answer | None
    box_of: np.ndarray
    delta: float
    points: np.ndarray
    parted: Parted

    @property
    def compound(self) -> Compound:
        return self.question.compound

    @property
    def label(self) -> int:
        return self.question.label

    @property
    def is_measured(self) -> bool:
        """Whether attention was measured; False if the question asks only for the label."""
        return self.question.property.asks_attention

    @property
    def units(self) -> Units:
        """The numbering that pieces use for boxes and exact regions."""
        return Units(len(self.boxes))

    @cached_property
    def bounded(self) -> np.ndarray:
        """The boxes (N,) labelled by their enclosures: all that are not EXACT."""
        return np.flatnonzero(self.boxes.state != State.EXACT)

    @cached_property
    def label_codes(self) -> np.ndarray:
        """`Kept` codes of the label (B,) from the enclosures; NaN decides nothing."""
        return label_codes(self.boxes.margin)

    @cached_property
    def attention_codes(self) -> np.ndarray:
        """`Kept` codes of the attention (B,) from the enclosures."""
        return attention_codes(self.boxes.inconsistency, self.delta)

    @cached_property
    def missing(self) -> np.ndarray:
        """Volumes (B,) of the parts of EXACT boxes that no region covers; they are undecided."""
        volumes = self.boxes.volumes
        covered = np.zeros(len(volumes))
        is_partial = False
        if self.exact is not None:
            regions = self.exact.answers.regions
            np.add.at(covered, self.box_of, regions.polytopes.volumes)
            is_partial = regions.stopped is not None or regions.accuracy.skipped > 0
        off = volumes - covered
        missing = np.maximum(off, UNIT * volumes if is_partial else 0.0)
        is_off = missing > LOST * volumes
        if self.boxes.low.shape[1] > 2:
            # If polyhedra do not add up to their box, there are gaps or overlaps: see `properties.joint.shares`.
            count = np.bincount(self.box_of, minlength=len(volumes))
            is_off = np.abs(off) > 64.0 * UNIT * (count + 16) * volumes
            missing = np.where(is_off, np.maximum(missing, np.minimum(volumes, 4.0 * np.abs(off))), missing)
        return np.where((self.boxes.state == State.EXACT) & (is_partial | is_off), missing, 0.0)

    @cached_property
    def exact_cells(self) -> np.ndarray:
        """The shares (3, 3) of EXACT boxes by `Kept` codes of label and attention."""
        cells = np.zeros((3, 3))
        if self.exact is not None:
            cells = np.array(shares(self.exact.joint, holes=self.exact.answers.regions.accuracy.holes).cells)
        cells[Kept.UNKNOWN, Kept.UNKNOWN] += self.missing.sum()
        return cells

    @cached_property
    def bounded_cells(self) -> np.ndarray:
        """The shares (3, 3) of all other boxes by `Kept` codes of label and attention."""
        cells = self.parted.cells(self.boxes.volumes[self.boxes.state == State.PARTED], self.delta)
        chosen = self.bounded[self.boxes.state[self.bounded] != State.PARTED]
        np.add.at(cells, (self.label_codes[chosen], self.attention_codes[chosen]), self.boxes.volumes[chosen])
        return cells

    @cached_property
    def shares(self) -> Shares:
        rows = (tuple(float(share) for share in row) for row in self.bounded_cells + self.exact_cells)
        has_violation = self.exact is not None and self.exact.shares.has_violation
        return Shares(tuple(rows), self.slivers, has_violation)  # type: ignore[arg-type]

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        undecided = undecided_share(np.array(self.shares.cells), self.question.property)
        if self.is_measured:
            undecided = min(1.0, undecided + self.shares.slivers)
        return self.shares.named() | {Label.UNDECIDED: (undecided, undecided)}

    @property
    def coverage(self) -> float:
        state, volumes = self.boxes.state, self.boxes.volumes
        strips = float((self.parted.strips * volumes[state == State.PARTED]).sum())
        return min(1.0, float(volumes[state != State.OPEN].sum()) - strips)

    @cached_property
    def guarantee_shares(self) -> dict[str, float]:
        """The shares of the domain where the property is decided, by kind of proof, and where it is undecided."""
        cells = self.bounded_cells, self.exact_cells
        bounded, exact = (undecided_share(part, self.question.property) for part in cells)
        if self.is_measured:
            exact = min(float(cells[1].sum()), exact + self.slivers)
        proved = [max(0.0, float(part.sum()) - left) for part, left in zip(cells, (bounded, exact), strict=True)]
        if bounded + exact == 0.0:  # the shares must add up to 1 despite rounding
            larger = int(np.argmax(proved))
            proved[larger] = 1.0 - proved[1 - larger]
        return dict(zip(("rounding-sound", "float64 with slack", "undecided"), (*proved, bounded + exact), strict=True))

    def verdict(self, wanted: Property) -> Verdict:
        """The proved verdict on a property: "robust" needs every box; one violating box or theta disproves it."""
        names = [Label.CR] * wanted.asks_label + [Label.AR] * wanted.asks_attention
        is_violated = any(len(self.violating[name]) for name in names)
        return Verdict.NOT_ROBUST if is_violated else super().verdict(wanted)

    @cached_property
    def violating(self) -> dict[str, np.ndarray]:
        """Those of `points` (N, d) where bounds prove a violation of CR, and of AR."""
        thetas = self.points.reshape(-1, self.compound.domain.dimension)
        if not len(thetas):
            return {Label.CR: thetas, Label.AR: thetas}
        enclosing = Enclosing(self.question)
        found = [enclosing.at(theta, self.delta if self.is_measured else None) for theta in thetas]
        is_violated = {
            Label.CR: np.array([one.margin[1] < 0.0 for one in found]),
            Label.AR: np.array([one.inconsistency[0] > self.delta for one in found]),
        }
        return {name: thetas[chosen] for name, chosen in is_violated.items()}

    @cached_property
    def nearest(self) -> dict[str, Nearest]:
        return {name: nearest_violation(self, name, self.violating[name]) for name in (Label.CR, Label.AR)}

    @property
    def witnesses(self) -> np.ndarray:
        return np.zeros((0, 0)) if self.exact is None else self.exact.witnesses

    @property
    def slivers(self) -> float:
        """A bound on the share of the domain on kinks of exact regions, where the attention is uncertain."""
        return 0.0 if self.exact is None or self.exact.answers.curves is None else self.exact.shares.slivers

    @cached_property
    def joint(self) -> JointPieces:
        boxes, chosen = self.boxes, self.bounded
        coordinates = boxes.low.shape[1]
        if coordinates > MAX_MAP_PARAMETERS:
            raise OptionError(
                f"figures and boundaries take up to {MAX_MAP_PARAMETERS} parameters, but this result has "
                f"{coordinates}; verify again with fewer"
            )
        polytopes = box_polytopes(boxes.low[chosen], boxes.high[chosen], boxes.sides[chosen])
        volumes, codes = polytopes.volumes, self.label_codes[chosen]
        pieces = Pieces(
            polytopes=polytopes, region=chosen, winner=np.where(codes == Kept.NO, UNKNOWN_WINNER, self.label),
            cuts=boxes.cuts, label=self.label, margin=boxes.margin[chosen], slack=np.zeros(len(chosen)),
            most_strip=volumes, witnesses=self.witnesses,
        )  # fmt: skip
        strip = np.where(codes == Kept.UNKNOWN, volumes, 0.0)
        own = JointPieces(pieces, self.attention_codes[chosen], strip, np.zeros(len(chosen)))
        return own if self.exact is None else _join(own, self.exact.joint, self.units)

    @property
    def sets(self) -> Mapping[str, int | None]:
        return dict.fromkeys((*CLASSIFICATIONS, *ATTENTIONS), 0) if self.exact is None else self.exact.sets

    def count(self, classification: Label, attention: Label) -> int:
        return 0 if self.exact is None else self.exact.count(classification, attention)

    @property
    def undecided_counts(self) -> dict[str, int | None]:
        return {"classification": 0, "attention": 0} if self.exact is None else self.exact.undecided_counts

    @property
    def zero_share(self) -> tuple[float, float] | None:
        if not self.is_measured or self.question.attention.measure == DISTANCE:
            return None
        boxes = self.bounded
        volumes = zero_volumes(self.boxes.inconsistency[boxes], self.boxes.volumes[boxes])
        unknown = float(self.missing.sum())
        if self.exact is not None:
            volumes = volumes + self.exact.zero_volumes
            unknown += self.exact.answers.regions.accuracy.holes
        return zero_bounds(volumes, self.slivers, unknown)

    @cached_property
    def inconsistencies(self) -> np.ndarray:
        low, high = self.boxes.inconsistency[self.bounded].T
        middle = np.where(np.isfinite(high), 0.5 * (low + np.where(np.isfinite(high), high, 0.0)), low)
        return np.append(middle, np.zeros(0) if self.exact is None else self.exact.inconsistencies)

    @cached_property
    def reach(self) -> np.ndarray:
        own = self.boxes.inconsistency[self.bounded]
        return own if self.exact is None else np.concatenate([own, self.exact.reach])

    def margin_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        return self._bounds_at(self.boxes.margin, Answer.margin_bounds_at, region, points)

    def inconsistency_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        return self._bounds_at(self.boxes.inconsistency, Answer.inconsistency_bounds_at, region, points)

    def _bounds_at(
        self, of_boxes: np.ndarray, of_exact: Callable[..., np.ndarray], units: np.ndarray, points: np.ndarray
    ) -> np.ndarray:
        is_box, bounds = self.units.is_box(units), np.zeros((len(points), 2))
        bounds[is_box] = of_boxes[units[is_box]]
        if self.exact is not None:
            bounds[~is_box] = of_exact(self.exact, self.units.to_regions(units[~is_box]), points[~is_box])
        return bounds


def parted_violations(answer: MergedAnswer, is_violating: Callable[..., np.ndarray]) -> np.ndarray:
    """Thetas (N, d) in PARTED boxes, on the sides whose codes of label and attention satisfy `is_violating`."""
    compound, planes = answer.compound, answer.parted
    if not len(planes):
        return np.zeros((0, compound.domain.dimension))
    owners, d = np.flatnonzero(answer.boxes.state == State.PARTED), compound.domain.dimension
    low, high = answer.boxes.low[owners], answer.boxes.high[owners]
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    near = (np.clip(compound.zero_in_t, low, high) - middle)[:, :d] / half[:, :d]
    label, attention = planes.codes(answer.delta)
    found = [np.zeros((0, d))]
    for side in (0, 1):
        points, is_found = planes.points(side, near)
        chosen = is_found & is_violating(label[:, side], attention[:, side])
        at = middle[chosen].copy()
        at[:, :d] += points[chosen] * half[chosen, :d]
        found.append(compound.to_theta(at))
    return np.concatenate(found)


def box_at(compound: Compound, boxes: Boxes, theta: np.ndarray) -> int | None:
    """The box in which theta (d,) lies deepest; None outside the domain."""
    if not compound.domain.contains(theta):
        return None
    point, d = compound.to_unit(theta[None])[0], compound.domain.dimension
    depth = np.minimum(point - boxes.low, boxes.high - point)[:, :d].min(axis=1)
    return int(np.argmax(depth))


def undecided_share(cells: np.ndarray, wanted: Property) -> float:
    """The sum of the cells (3, 3), by `Kept` codes, where a property (for BOTH, either one) is undecided."""
    is_open = np.zeros((3, 3), dtype=bool)
    if wanted is not Property.AR:
        is_open[Kept.UNKNOWN] = True
    if wanted is not Property.CR:
        is_open[:, Kept.UNKNOWN] = True
    return float(cells[is_open].sum())


def _join(own: JointPieces, exact: JointPieces, units: Units) -> JointPieces:
    """The pieces of boxes, followed by those of exact regions."""
    first, second = own.pieces, exact.pieces
    if not np.array_equal(second.cuts[: len(first.cuts)], first.cuts):
        raise InternalError("boxes and exact regions have different tables of cuts: please report this model and image")
    region = np.concatenate([first.region, units.of_regions(second.region)])
    names = ("winner", "margin", "slack", "most_strip")
    rows: dict[str, Any] = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in names}
    pieces = replace(second, polytopes=join_polytopes([first.polytopes, second.polytopes]), region=region, **rows)
    kinds = ("attention", "label_strip", "attention_strip")
    columns: dict[str, Any] = {name: np.concatenate([getattr(own, name), getattr(exact, name)]) for name in kinds}
    return JointPieces(pieces, **columns)


def nearest_violation(answer: MergedAnswer, name: str, thetas: np.ndarray) -> Nearest:
    """The nearest violation of CR or AR (`name`), given thetas (N, d) proved to violate it.

    Distances are relative to the width of each axis. `low` is proved: no box or piece that may violate lies nearer.
    """
    codes = answer.label_codes if name == Label.CR else answer.attention_codes
    candidates = [_nearest_box(answer, codes)]
    beyond = parted_violations(answer, lambda label, attention: (label if name == Label.CR else attention) == Kept.NO)
    thetas = np.concatenate([thetas, beyond])
    if len(thetas):
        away = [_distance(answer.compound, theta) for theta in thetas]
        first = int(np.argmin(away))
        candidates.append(Nearest(np.inf, away[first], thetas[first], None))
    if answer.exact is not None:
        found = answer.exact.nearest[name]
        candidates.append(replace(found, piece=None if found.piece is None else found.piece + len(answer.bounded)))
    best = min(candidates, key=lambda candidate: candidate.high)
    return replace(best, low=min(candidate.low for candidate in candidates))


def distances(compound: Compound, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances (N,) from zero to boxes low, high (N, D) in t, and the nearest points (N, D) of the boxes."""
    zero = compound.zero_in_t
    points = np.clip(zero, low, high)
    return np.linalg.norm((points - zero)[:, : compound.domain.dimension], axis=1), points


def _nearest_box(answer: MergedAnswer, codes: np.ndarray) -> Nearest:
    boxes, bounded, compound = answer.boxes, answer.bounded, answer.compound
    away, points = distances(compound, boxes.low, boxes.high)
    may_fail = answer.missing > 0.0
    may_fail[bounded] = codes[bounded] != Kept.YES
    if len(answer.parted):
        is_parted, d = boxes.state == State.PARTED, compound.domain.dimension
        half = 0.5 * (boxes.high - boxes.low)[is_parted, :d]
        zero = (compound.zero_in_t - 0.5 * (boxes.low + boxes.high)[is_parted])[:, :d] / half
        label, attention = answer.parted.codes(answer.delta)
        may_violate = (label if codes is answer.label_codes else attention) != Kept.YES
        away[is_parted] = np.maximum(away[is_parted], answer.parted.distances(zero, half, may_violate))
    low = less_rounding(float(away[may_fail].min(initial=np.inf)))
    fails = bounded[codes[bounded] == Kept.NO]
    if not len(fails):
        return Nearest(low, np.inf, None, None)
    first = int(fails[np.argmin(away[fails])])
    border, centre = points[first], 0.5 * (boxes.low[first] + boxes.high[first])
    for depth in DEPTHS:
        point = border + depth * (centre - border)
        if np.abs(point - border)[: compound.domain.dimension].max() >= INSIDE:
            break
    theta = compound.to_theta(point[None])[0]
    return Nearest(low, _distance(compound, theta), theta, int(np.searchsorted(bounded, first)))


def _distance(compound: Compound, theta: np.ndarray) -> float:
    """The distance from a theta (d,) to zero, rounded up."""
    offset = compound.domain.to_unit(theta) - compound.domain.zero_in_t
    return float(np.linalg.norm(offset)) * (1 + 1e-12)
