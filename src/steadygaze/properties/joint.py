"""Joins label and attention: splits pieces at ai = δ too, and bounds the shares of the domain.

The winner makes a piece CR or MR, its slab makes it AR or IR. Each piece has two strips: one within the error of the
decision boundary, one within the error of ai = δ. Their volumes count as undecided.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ..labels import Joint, Kept, Label, Property
from ..polytopes import Cut, Polytopes
from ..regions.region import RegionSet
from ..tolerances import AREA, UNIT
from .attention import AttentionLabels
from .classification import Pieces, strip_volumes

OUTSIDE = 4.0
"""Larger than the distance from zero to any point of the unit square or cube, in any direction."""

NOTHING_ELSE = 1.0 - 1e-9
"""A strip that covers at least this share of a piece counts as the whole piece."""


@dataclass(frozen=True, eq=False)
class JointPieces:
    """Pieces with both labels: attention (P,) holds `Kept` codes; the strips (P,) are shares of the domain.

    slabs: where the attention is kept and lost; row (P,) is the row of each piece, None for that of its region.
    """

    pieces: Pieces
    attention: np.ndarray
    label_strip: np.ndarray
    attention_strip: np.ndarray
    slabs: AttentionLabels | None = None
    row: np.ndarray | None = None

    @property
    def rows(self) -> np.ndarray:
        """The rows (P,) of the pieces among the slabs."""
        return self.pieces.region if self.row is None else self.row

    @property
    def polytopes(self) -> Polytopes:
        """The shapes of the pieces."""
        return self.pieces.polytopes

    @property
    def label_codes(self) -> np.ndarray:
        """`Kept` codes of the label (P,); a piece that is all strip is undecided."""
        codes = np.where(self.pieces.keeps_label, Kept.YES, Kept.NO)
        return np.where(self.label_strip >= NOTHING_ELSE * self.polytopes.volumes, Kept.UNKNOWN, codes)

    @property
    def attention_codes(self) -> np.ndarray:
        """`Kept` codes of the attention (P,); a piece that is all strip is undecided."""
        return np.where(self.attention_strip >= NOTHING_ELSE * self.polytopes.volumes, Kept.UNKNOWN, self.attention)

    def kept(self, wanted: Property) -> tuple[np.ndarray, np.ndarray]:
        """`Kept` codes of a property (P,), and the share of the domain within the error of a threshold (P,)."""
        label, attention = self.label_codes, self.attention_codes
        volumes = self.polytopes.volumes
        first, second = np.minimum(self.label_strip, volumes), np.minimum(self.attention_strip, volumes)
        if wanted is Property.CR:
            return label, first
        if wanted is Property.AR:
            return attention, second
        # If one of the two is surely lost, so is the property.
        is_lost = label == Kept.NO, attention == Kept.NO
        cases = [is_lost[0] & is_lost[1], *is_lost]
        strips = np.select(cases, [np.minimum(first, second), first, second], np.minimum(first + second, volumes))
        return np.maximum(label, attention), strips


@dataclass(frozen=True)
class Shares:
    """Shares of the domain: cells[label][attention], each index a `Kept` code; unreached parts are unknown.

    On kinks, with a share of at most `slivers`, the attention may differ from the cells. has_violation: the attention
    is surely lost at a known theta, however small the share around it.
    """

    cells: tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]
    slivers: float = 0.0
    has_violation: bool = False

    def bounds(self, label: Kept | None, attention: Kept | None) -> tuple[float, float]:
        """Lower and upper bound on the share with the given labels; None matches any label."""
        low = high = 0.0
        for i, row in enumerate(self.cells):
            for j, share in enumerate(row):
                if label in (None, i) and attention in (None, j):
                    low += share
                if (label in (None, i) or i == Kept.UNKNOWN) and (attention in (None, j) or j == Kept.UNKNOWN):
                    high += share
        # The whole domain is exactly 1 and an empty part exactly 0, although sums of shares round.
        total = sum(sum(row) for row in self.cells)
        low, high = (1.0 if low == total else min(low, 1.0)), (1.0 if high == total else min(high, 1.0))
        if attention is None:
            return low, high
        return max(0.0, low - self.slivers), min(1.0, high + self.slivers)

    @property
    def undecided(self) -> float:
        """The share where the label or the attention is undecided."""
        is_open = sum(self.cells[Kept.UNKNOWN]) + self.cells[0][Kept.UNKNOWN] + self.cells[2][Kept.UNKNOWN]
        return min(1.0, is_open + self.slivers)

    def named(self) -> dict[str, tuple[float, float]]:
        """All shares by name: CR, MR, AR, IR, CR&AR, CR&IR, MR&AR, MR&IR, undecided."""
        labels = {Label.CR: Kept.YES, Label.MR: Kept.NO}
        attentions = {Label.AR: Kept.YES, Label.IR: Kept.NO}
        shares: dict[str, tuple[float, float]] = {name: self.bounds(code, None) for name, code in labels.items()}
        shares |= {name: self.bounds(None, code) for name, code in attentions.items()}
        for (first, i), (second, j) in product(labels.items(), attentions.items()):
            low, high = self.bounds(i, j)
            shares[Joint.of(first, second)] = low, min(high, shares[first][1], shares[second][1])
        return shares | {Label.UNDECIDED: (self.undecided, self.undecided)}


def join(regions: RegionSet, pieces: Pieces, labels: AttentionLabels, row: np.ndarray | None = None) -> JointPieces:
    """Split the pieces at ai = δ and attach both labels; row (P,): the labels of each piece, None for its region's."""
    if labels.along is None:
        kept = np.where(labels.is_kept, Kept.YES, np.where(labels.is_lost, Kept.NO, Kept.UNKNOWN))
        own = pieces.region if row is None else row
        nothing = np.zeros(len(pieces))
        return JointPieces(pieces, kept[own], strip_volumes(pieces, regions), nothing, labels, row)
    inner, outer = (_beyond_ends(slab, labels.ends) for slab in (labels.inner, labels.outer))
    is_empty = outer[:, :1] > outer[:, 1:]
    is_open = ~is_empty[:, 0] & (inner[:, 0] > inner[:, 1])
    middle = np.where(is_empty, outer, np.where(is_open[:, None], outer, 0.5 * (inner + outer)))
    before = pieces.region if row is None else row
    split, inside, origin = _split(pieces, middle[before], labels.along[before])
    own = before[origin]
    along = labels.along[own]
    attention = np.where(inside, np.where(is_open[own], Kept.UNKNOWN, Kept.YES), Kept.NO)
    width = _strip_widths(split.polytopes, own, attention, inner, outer, along)
    # A region that is decided as a whole has no strip, whatever the rounding of its slab.
    width[(labels.is_kept | labels.is_lost)[own]] = 0.0
    strip = np.zeros(len(split))
    for code, slab in ((Kept.YES, inner), (Kept.NO, outer)):
        chosen = np.flatnonzero((attention == code) & (width > 0.0))
        inside_slab = split.polytopes.slab_volumes(chosen, slab[own[chosen]], along[chosen])
        strip[chosen] = split.polytopes.volumes[chosen] - inside_slab if code == Kept.YES else inside_slab
    # A narrow strip must not vanish by rounding.
    volumes = split.polytopes.volumes
    strip = np.where(width > 0.0, np.clip(strip, UNIT * volumes, volumes), 0.0)
    return JointPieces(split, attention, strip_volumes(split, regions), strip, labels, None if row is None else own)


def _strip_widths(
    polytopes: Polytopes,
    region: np.ndarray,
    attention: np.ndarray,
    inner: np.ndarray,
    outer: np.ndarray,
    along: np.ndarray,
) -> np.ndarray:
    """The width (P,), in the direction along (P, D), of the part of each piece without a certain label."""
    low, high = polytopes.extent_along(along)
    kept = np.maximum(inner[region, 0] - low, 0.0) + np.maximum(high - inner[region, 1], 0.0)
    lost = np.maximum(np.minimum(high, outer[region, 1]) - np.maximum(low, outer[region, 0]), 0.0)
    return np.where(attention == Kept.YES, kept, np.where(attention == Kept.NO, lost, 0.0))


def piece_cells(joint: JointPieces) -> np.ndarray:
    """The volumes (3, 3) of the pieces by label and attention, both as `Kept` codes."""
    volumes = joint.polytopes.volumes
    label = np.where(joint.pieces.keeps_label, Kept.YES, Kept.NO)
    unknown = np.full(len(volumes), Kept.UNKNOWN)
    first, second = np.minimum(joint.label_strip, volumes), np.minimum(joint.attention_strip, volumes)
    # How much the strips overlap is unknown; where they must overlap, both labels are unknown.
    both = np.maximum(first + second - volumes, 0.0)
    cells = np.zeros((3, 3))
    np.add.at(cells, (label, joint.attention), np.maximum(volumes - first - second + both, 0.0))
    np.add.at(cells, (unknown, joint.attention), first - both)
    np.add.at(cells, (label, unknown), second - both)
    np.add.at(cells, (unknown, unknown), both)
    return cells


def add_cells(parts: Sequence[np.ndarray], slivers: float = 0.0) -> Shares:
    """Add up the volumes (3, 3) of parts of the domain to shares."""
    rows = (tuple(float(share) for share in row) for row in np.sum(parts, axis=0))
    return Shares(tuple(rows), slivers)  # type: ignore[arg-type]


def missing_cells(volume: float, pieces: int, dimension: int, *, is_partial: bool, holes: float) -> np.ndarray:
    """The volumes (3, 3) of the domain that no piece covers: label and attention are unknown there.

    volume: the total volume of all pieces; `holes` bounds the volume of the gaps between regions.
    """
    cells, missing = np.zeros((3, 3)), 1.0 - volume
    if is_partial:
        # The missing part was never examined, however small it is.
        cells[Kept.UNKNOWN, Kept.UNKNOWN] += max(missing, UNIT)
    elif dimension > 2 and 64.0 * UNIT * (pieces + 16) < abs(missing) <= AREA:
        # Splitting regions into pieces may also leave gaps or overlaps; only their order of magnitude is known.
        # (No map is off by more than AREA. A larger part is missing if the regions fill single boxes only, see
        # `merged_answer`.)
        cells[Kept.UNKNOWN, Kept.UNKNOWN] += min(1.0, 4.0 * abs(missing))
    cells[Kept.UNKNOWN, Kept.UNKNOWN] += holes
    return cells


def shares(joint: JointPieces, *, is_partial: bool = False, holes: float = 0.0) -> Shares:
    """Add up the volumes of the pieces to shares; label and attention are unknown where no piece covers the domain.

    `holes` bounds the volume of the gaps between regions.
    """
    volumes = joint.polytopes.volumes
    missing = missing_cells(
        float(volumes.sum()), len(volumes), joint.polytopes.dimension, is_partial=is_partial, holes=holes
    )
    return add_cells([piece_cells(joint), missing])


def _beyond_ends(slab: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Slabs (R, 2) ready to cut: ends at the region's own ends move outside the domain.

    Without this, rounding would create strips at the ends of regions. An empty slab becomes (OUTSIDE, −OUTSIDE).
    """
    low = np.where(slab[:, 0] <= ends[:, 0], -OUTSIDE, slab[:, 0])
    high = np.where(slab[:, 1] >= ends[:, 1], OUTSIDE, slab[:, 1])
    return np.where(slab[:, :1] > slab[:, 1:], [OUTSIDE, -OUTSIDE], np.stack([low, high], axis=1))


def _split(pieces: Pieces, slab: np.ndarray, along: np.ndarray) -> tuple[Pieces, np.ndarray, np.ndarray]:
    """The parts of pieces (P,) cut by slabs (P, 2), whether each lies inside, and the piece that each is part of."""
    polytopes, origin, inside, made = pieces.polytopes.split_by_slab(slab, along, len(pieces.cuts))
    cuts = np.repeat([[Cut.SLAB, 0, 0]], made, axis=0)
    return parts_of(pieces, polytopes, origin, cuts), inside, origin


def parts_of(pieces: Pieces, polytopes: Polytopes, origin: np.ndarray, cuts: np.ndarray) -> Pieces:
    """Parts of pieces: their shapes, the piece (N,) that each is part of, and the cuts (E, 3) between them."""
    return replace(
        pieces,
        polytopes=polytopes,
        region=pieces.region[origin],
        winner=pieces.winner[origin],
        cuts=np.concatenate([pieces.cuts, cuts]).astype(np.int32),
        margin=pieces.margin[origin],
        slack=pieces.slack[origin],
        most_strip=pieces.most_strip[origin],
    )
