"""From boxes and exact regions to one answer for a δ: labels of boxes, shares, and pieces that tile the domain.

A box that is not EXACT is a piece of its own, labelled by its enclosures; the pieces of exact regions stand beside
them. All carry signed cuts of one table, so that adjacency and boundaries work across both kinds.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..compound import Compound
from ..errors import InternalError, OptionError
from ..properties.classification import Pieces
from ..properties.joint import JointPieces, Kept, Shares, shares
from ..regions.polyhedra import Polyhedra, joined
from ..regions.region import Polygons, Polytopes, box_polytopes
from ..results.answer import Answer
from ..tolerances import UNIT
from ..verdict import Property
from .boxes import Boxes, State
from .decide import attention_codes, label_codes

MOST_DRAWN = 3
"""Parameters up to which boxes and regions become pieces."""

LOST = 1e-6
"""A share of an EXACT box that its regions do not cover and that is more than rounding."""

UNTOLD = -1
"""The winner of a piece where the label is lost: to which class is not known."""


@dataclass(frozen=True, eq=False)
class MergedAnswer:
    """The answer for one δ; `exact` is that of the regions in EXACT boxes, box_of (R,) the box of each of them.

    `joint.pieces.region` counts boxes first, then regions.
    """

    compound: Compound
    boxes: Boxes
    exact: Answer | None
    box_of: np.ndarray
    delta: float
    label: int

    @cached_property
    def bounded(self) -> np.ndarray:
        """The boxes (N,) that are not EXACT: what is known of them stands in their enclosures."""
        return np.flatnonzero(self.boxes.state != State.EXACT)

    @cached_property
    def label_codes(self) -> np.ndarray:
        """`Kept` codes of the label (B,) by the enclosures; NaN decides nothing."""
        return label_codes(self.boxes.margin)

    @cached_property
    def attention_codes(self) -> np.ndarray:
        """`Kept` codes of the attention (B,) by the enclosures."""
        return attention_codes(self.boxes.inconsistency, self.delta)

    @cached_property
    def missing(self) -> np.ndarray:
        """Volumes (B,) of the parts of EXACT boxes that no region covers: nothing is known there."""
        volumes = self.boxes.volumes
        covered = np.zeros(len(volumes))
        is_partial = False
        if self.exact is not None:
            regions = self.exact.answers.regions
            np.add.at(covered, self.box_of, regions.polytopes.volumes)
            is_partial = regions.stopped is not None or regions.accuracy.skipped > 0
        off = volumes - covered
        missing = np.maximum(off, UNIT * volumes if is_partial else 0.0)
        is_exact = self.boxes.state == State.EXACT
        if self.boxes.low.shape[1] > 2:
            # Polyhedra that do not add up to their box leave gaps, or overlap; see `properties.joint.shares`.
            count = np.bincount(self.box_of, minlength=len(volumes))
            is_off = np.abs(off) > 64.0 * UNIT * (count + 16) * volumes
            missing = np.where(is_off, np.maximum(missing, np.minimum(volumes, 4.0 * np.abs(off))), missing)
            return np.where(is_exact & (is_partial | is_off), missing, 0.0)
        return np.where(is_exact & (is_partial | (missing > LOST * volumes)), missing, 0.0)

    @cached_property
    def exact_cells(self) -> np.ndarray:
        """Shares (3, 3) of label and attention in EXACT boxes, `Kept` codes."""
        if self.exact is None:
            cells = np.zeros((3, 3))
        else:
            holes = self.exact.answers.regions.accuracy.holes
            cells = np.array(shares(self.exact.joint, holes=holes).cells)
        cells[Kept.UNKNOWN, Kept.UNKNOWN] += self.missing.sum()
        return cells

    @cached_property
    def bounded_cells(self) -> np.ndarray:
        """Shares (3, 3) of label and attention in all other boxes."""
        cells, chosen = np.zeros((3, 3)), self.bounded
        np.add.at(cells, (self.label_codes[chosen], self.attention_codes[chosen]), self.boxes.volumes[chosen])
        return cells

    @cached_property
    def shares(self) -> Shares:
        """Shares of the domain."""
        rows = (tuple(float(share) for share in row) for row in self.bounded_cells + self.exact_cells)
        has_violation = self.exact is not None and self.exact.shares.has_violation
        return Shares(tuple(rows), self.slivers, has_violation)  # type: ignore[arg-type]

    @property
    def witnesses(self) -> np.ndarray:
        """Thetas (N, d) where exact arithmetic proved that the label is lost."""
        return np.zeros((0, 0)) if self.exact is None else self.exact.witnesses

    @property
    def slivers(self) -> float:
        """A bound of the share of the domain on kinks of exact regions, where the attention may be another one."""
        return 0.0 if self.exact is None or self.exact.answers.curves is None else self.exact.shares.slivers

    def guarantee_shares(self, wanted: Property) -> dict[str, float]:
        """The shares of the domain where a property is decided, by what that rests on, and where it is not."""
        bounded, exact = (undecided_share(cells, wanted) for cells in (self.bounded_cells, self.exact_cells))
        if wanted is not Property.CR:
            exact = min(float(self.exact_cells.sum()), exact + self.slivers)
        return {
            "rounding-sound": max(0.0, float(self.bounded_cells.sum()) - bounded),
            "float64 with slack": max(0.0, float(self.exact_cells.sum()) - exact),
            "undecided": bounded + exact,
        }

    @cached_property
    def joint(self) -> JointPieces:
        """All pieces: boxes first, then those of exact regions."""
        boxes, chosen = self.boxes, self.bounded
        coordinates = boxes.low.shape[1]
        if coordinates > MOST_DRAWN:
            raise OptionError(
                f"boxes of {coordinates} parameters are not made into pieces, which figures and boundaries need; leave "
                "parameters out"
            )
        polytopes = box_polytopes(boxes.low[chosen], boxes.high[chosen], boxes.sides[chosen])
        volumes, lost = polytopes.volumes, self.label_codes[chosen] == Kept.NO
        pieces = Pieces(
            polytopes=polytopes,
            region=chosen,
            winner=np.where(lost, UNTOLD, self.label),
            cuts=boxes.cuts,
            label=self.label,
            margin=boxes.margin[chosen],
            slack=np.zeros(len(chosen)),
            most_strip=volumes,
            witnesses=self.witnesses,
        )
        strip = np.where(self.label_codes[chosen] == Kept.UNKNOWN, volumes, 0.0)
        own = JointPieces(pieces, self.attention_codes[chosen], strip, np.zeros(len(chosen)))
        return own if self.exact is None else _join(own, self.exact.joint, len(boxes))

    @property
    def sets(self) -> dict[str, int]:
        """Number of exact regions in CR, MR, CB and AR, IR, AB."""
        return dict.fromkeys(("CR", "MR", "CB", "AR", "IR", "AB"), 0) if self.exact is None else self.exact.sets

    @cached_property
    def inconsistencies(self) -> np.ndarray:
        """ai (P,) at the centres of exact pieces; of boxes the middle of the enclosure, or its finite end."""
        low, high = self.boxes.inconsistency[self.bounded].T
        middle = np.where(np.isfinite(high), 0.5 * (low + np.where(np.isfinite(high), high, 0.0)), low)
        return np.append(middle, np.zeros(0) if self.exact is None else self.exact.inconsistencies)

    @cached_property
    def reach(self) -> np.ndarray:
        """Bounds (P, 2) of ai over every piece."""
        own = self.boxes.inconsistency[self.bounded]
        return own if self.exact is None else np.concatenate([own, self.exact.reach])

    def margin_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Bounds (N, 2) of the margin at points (N, D) in t, given with their boxes or regions (N,)."""
        bounds = self.boxes.margin[np.minimum(region, len(self.boxes) - 1)]
        return bounds if self.exact is None else self._with_exact(bounds, region, points, self.exact.margin_bounds_at)

    def inconsistency_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Bounds (N, 2) of ai at points (N, D) in t, given with their boxes or regions (N,)."""
        bounds = self.boxes.inconsistency[np.minimum(region, len(self.boxes) - 1)]
        find = None if self.exact is None else self.exact.inconsistency_bounds_at
        return bounds if find is None else self._with_exact(bounds, region, points, find)

    def _with_exact(self, bounds, region, points, find) -> np.ndarray:  # type: ignore[no-untyped-def]
        chosen = np.flatnonzero(region >= len(self.boxes))
        bounds[chosen] = find(region[chosen] - len(self.boxes), points[chosen])
        return bounds


def undecided_share(cells: np.ndarray, wanted: Property) -> float:
    """The share among cells (3, 3) of `Kept` codes where a property, or one of both, is not decided."""
    is_open = np.zeros((3, 3), dtype=bool)
    if wanted is not Property.AR:
        is_open[Kept.UNKNOWN] = True
    if wanted is not Property.CR:
        is_open[:, Kept.UNKNOWN] = True
    return float(cells[is_open].sum())


def _join(own: JointPieces, exact: JointPieces, boxes: int) -> JointPieces:
    """The pieces of boxes, then those of exact regions, whose numbers begin after those of all boxes."""
    shared = len(own.pieces.cuts)
    if not np.array_equal(exact.pieces.cuts[:shared], own.pieces.cuts):
        raise InternalError(
            "boxes and exact regions do not share one table of cuts: please report this model and image"
        )
    first, second = own.pieces, exact.pieces
    pieces = replace(
        second,
        polytopes=_joined(first.polytopes, second.polytopes),
        region=np.concatenate([first.region, boxes + second.region]),
        winner=np.concatenate([first.winner, second.winner]),
        margin=np.concatenate([first.margin, second.margin]),
        slack=np.concatenate([first.slack, second.slack]),
        most_strip=np.concatenate([first.most_strip, second.most_strip]),
    )
    names = ("attention", "label_strip", "attention_strip")
    return JointPieces(pieces, *(np.concatenate([getattr(own, name), getattr(exact, name)]) for name in names))


def _joined(first: Polytopes, second: Polytopes) -> Polytopes:
    if isinstance(first, Polyhedra) and isinstance(second, Polyhedra):
        return joined([first, second])
    assert isinstance(first, Polygons) and isinstance(second, Polygons)
    return Polygons(
        np.concatenate([first.points, second.points]),
        np.concatenate([first.starts, first.starts[-1] + second.starts[1:]]),
        np.concatenate([first.edges, second.edges]),
    )
