"""Splits regions along the argmax into pieces, each with its winner and its margin: where the label is kept.

A piece is decided where its margin exceeds the error bound of the logits. The rest is a strip along the decision
boundary; its volume (area in two dimensions) is stored with the piece.
"""

from dataclasses import dataclass

import numpy as np

from ..attention.options import AttentionOptions
from ..budget import Budget
from ..compound import Compound
from ..polytopes import Cut, Polytopes
from ..regions.forward_error import forward_errors, region_coverage
from ..regions.region import RegionSet
from ..tolerances import UNIT
from .hull_proof import HullProof

MOST_WORK = 4e9
"""The most multiplications to spend on bounds for single pieces; beyond that, one bound serves all regions."""

THIN = 1e-8
"""Strips with at most this share of the domain are left as they are, if a lost label is proved."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of regions on which one class wins.

    region (P,) and winner (P,); cuts (E, 3): the regions' table with the argmax cuts appended. margin (P, 2): the
    smallest f_label − max of the others on the piece, and the largest seen at its vertices and centre; slack (P,)
    bounds their error. If bounds on the piece itself decide it, margin holds these bounds and slack is 0. most_strip
    (P,) bounds the volume of the undecided part for any slack. witnesses (N, d): thetas where exact arithmetic proved
    that the label is lost.
    """

    polytopes: Polytopes
    region: np.ndarray
    winner: np.ndarray
    cuts: np.ndarray
    label: int
    margin: np.ndarray
    slack: np.ndarray
    most_strip: np.ndarray
    witnesses: np.ndarray

    def __len__(self) -> int:
        return len(self.region)

    @property
    def keeps_label(self) -> np.ndarray:
        """Whether the label wins (P,)."""
        return self.winner == self.label

    @property
    def has_strip(self) -> np.ndarray:
        """Whether part of the piece is within the error of the decision boundary (P,)."""
        # NaN decides nothing.
        return ~np.where(self.keeps_label, self.margin[:, 0] > self.slack, self.margin[:, 1] < -self.slack)


def classify(compound: Compound, regions: RegionSet, label: int, budget: Budget | None = None) -> Pieces:
    """Split the regions along the argmax of their logits and bound the margins, with proved errors.

    One error bound for all regions decides most pieces; the others get their own proofs.
    """
    noise = 4.0 * max(float(cell.program.noise[cell.program.offsets[-2] :].max()) for cell in compound.programs)
    polytopes, region, winner, pairs = regions.polytopes.split_by_argmax(regions.logits, noise, len(regions.cuts))
    kind = np.full((len(pairs), 1), Cut.ARGMAX)
    cuts = np.concatenate([regions.cuts, np.hstack([kind, pairs])]).astype(np.int32)
    margin = polytopes.margins(regions.logits, region, label)
    # The split treats logits closer than `noise` as equal; the margin shows which is larger.
    winner = np.where(margin[:, 0] > 0.0, label, winner)
    slack = np.full(len(region), 2.0 * float(forward_errors(compound, regions.accuracy)[-1].max()))
    nothing = np.zeros((0, compound.domain.dimension))
    pieces = Pieces(polytopes, region, winner, cuts, label, margin, slack, polytopes.volumes.copy(), nothing)
    doubtful = np.flatnonzero(pieces.has_strip)
    if 0 < len(doubtful) * hull_work(compound) <= MOST_WORK and not _is_settled(pieces, regions):
        proof = HullProof(compound, label, AttentionOptions(), piece_coverage(compound, regions), budget)
        proved, own = proof.label_errors(polytopes, regions.cell[region], regions.logits, doubtful, region)
        slack[doubtful] = np.minimum(slack[doubtful], own)
        is_decided = np.where(pieces.keeps_label[doubtful], proved[:, 0] > 0.0, proved[:, 1] < 0.0)
        decided = doubtful[is_decided]
        margin[decided], slack[decided] = proved[is_decided], 0.0
    return pieces


def _is_settled(pieces: Pieces, regions: RegionSet) -> bool:
    """Whether a lost label is proved, and strips are so thin that sharper errors would change no answer."""
    strips, volumes = strip_volumes(pieces, regions), pieces.polytopes.volumes
    is_lost = bool((~pieces.keeps_label & (strips < 0.5 * volumes)).any())
    return is_lost and bool(strips.sum() <= THIN * volumes.sum())


def piece_coverage(compound: Compound, regions: RegionSet) -> float:
    """The largest distance from a point to the nearest piece, along every axis; a class cuts a region at most twice."""
    return region_coverage(regions.accuracy, 2 * compound.graph.classes)


def hull_work(compound: Compound) -> int:
    """Multiplications for bounding one piece: a form and its errors through all layers."""
    return (compound.coordinates + 2) * sum(affine.matrix.size for affine in compound.chain.maps)


def strip_volumes(pieces: Pieces, regions: RegionSet) -> np.ndarray:
    """The volume (P,) of the part of each piece that is within the error of the decision boundary."""
    strips = np.zeros(len(pieces))
    chosen = np.flatnonzero(pieces.has_strip)
    decided = pieces.polytopes.decided_volumes(
        regions.logits, pieces.label, pieces.region, pieces.winner, pieces.slack, chosen
    )
    # A strip around one vertex may be smaller than the rounding of the volumes; it still counts.
    volumes = pieces.polytopes.volumes[chosen]
    strips[chosen] = np.maximum(volumes - decided, UNIT * volumes)
    return np.minimum(strips, pieces.most_strip)
