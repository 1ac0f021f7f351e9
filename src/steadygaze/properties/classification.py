"""Where the label is kept: regions split along the argmax into pieces, each with its winner and its margin.

A piece counts as decided where its margin exceeds the error bound of the logits; the rest of it is a strip along the
decision boundary whose volume is kept beside it (the area, in two dimensions).
"""

from dataclasses import dataclass

import numpy as np

from ..compound import Compound
from ..regions.region import Cut, RegionSet
from ..tolerances import UNIT
from . import shapes
from .logit_error import coarse_logit_error, logit_errors
from .shapes import Polytopes

MOST_WORK = 4e9
"""Multiplications that finer bounds of the logits' error may cost; beyond that the one for all regions has to do."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of regions on which one class wins.

    region (P,) and winner (P,); cuts (E, 3) is the regions' table with the argmax cuts appended. margin (P, 2) is the
    smallest f_label − max of the others on the piece and the largest seen at its vertices and centre, slack (P,) the
    bound of its error.
    """

    polytopes: Polytopes
    region: np.ndarray
    winner: np.ndarray
    cuts: np.ndarray
    label: int
    margin: np.ndarray
    slack: np.ndarray

    def __len__(self) -> int:
        return len(self.region)

    @property
    def keeps_label(self) -> np.ndarray:
        """Whether the label wins (P,)."""
        return self.winner == self.label

    @property
    def has_strip(self) -> np.ndarray:
        """Whether part of the piece is within the error of the decision boundary (P,)."""
        return np.where(self.keeps_label, self.margin[:, 0] <= self.slack, self.margin[:, 1] >= -self.slack)


def classify(compound: Compound, regions: RegionSet, label: int) -> Pieces:
    """Split the regions along the argmax of their logits and bound the margins. Exact up to the tolerances."""
    noise = 4.0 * max(float(cell.program.noise[cell.program.offsets[-2] :].max()) for cell in compound.programs)
    polytopes, region, winner, pairs = shapes.split_by_argmax(
        regions.polytopes, regions.logits, noise, len(regions.cuts)
    )
    kind = np.full((len(pairs), 1), Cut.ARGMAX)
    cuts = np.concatenate([regions.cuts, np.hstack([kind, pairs])]).astype(np.int32)
    margin = shapes.margins(polytopes, regions.logits, region, label)
    slack = np.full(len(region), 2.0 * coarse_logit_error(compound, regions))
    pieces = Pieces(polytopes, region, winner, cuts, label, margin, slack)
    doubtful = np.flatnonzero(pieces.has_strip)
    chosen = np.unique(regions.pattern[region[doubtful]])
    work = sum(affine.matrix.size for affine in compound.chain.maps)
    if 0 < len(chosen) * work <= MOST_WORK:
        # Two logits, and twice the largest bound: an error displaces the border of a region, so that in a strip beside
        # it the form of the neighbour holds.
        slack[doubtful] = np.minimum(slack[doubtful], 4.0 * logit_errors(compound, regions, chosen).max())
    return pieces


def strip_volumes(pieces: Pieces, regions: RegionSet) -> np.ndarray:
    """Volumes (P,) of the parts of the pieces that are within the error of the decision boundary."""
    strips = np.zeros(len(pieces))
    chosen = np.flatnonzero(pieces.has_strip)
    decided = shapes.decided_volumes(
        pieces.polytopes, regions.logits, pieces.label, pieces.region, pieces.winner, pieces.slack, chosen
    )
    # A strip around one vertex may be smaller than the rounding of the volumes; it is there all the same.
    volumes = pieces.polytopes.volumes[chosen]
    strips[chosen] = np.maximum(volumes - decided, UNIT * volumes)
    return strips
