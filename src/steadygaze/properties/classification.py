"""Where the label is kept: regions split along the argmax into pieces, each with its winner and its margin.

A piece counts as decided where its margin exceeds the error bound of the logits; the rest of it is a strip along the
decision boundary whose area is kept beside it.
"""

from dataclasses import dataclass

import numpy as np

from ..compound import Compound
from ..errors import InternalError
from ..regions.region import Cut, Polygons, RegionSet
from . import kernels
from .logit_error import coarse_logit_error, logit_errors


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of regions on which one class wins.

    region (P,) and winner (P,); cuts (E, 3) is the regions' table with the argmax cuts appended. margin (P, 2) is the
    smallest and largest f_label − max of the others on the piece, slack (P,) the bound of its error.
    """

    polytopes: Polygons
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
    polygons, region, winner, pairs = _split(regions, noise)
    kind = np.full((len(pairs), 1), Cut.ARGMAX)
    cuts = np.concatenate([regions.cuts, np.hstack([kind, pairs])]).astype(np.int32)
    margin = np.zeros((len(region), 2))
    x, y = np.ascontiguousarray(polygons.points.T)
    kernels.margins(regions.logits, label, x, y, polygons.starts, region, margin)
    slack = np.full(len(region), 2.0 * coarse_logit_error(compound, regions))
    pieces = Pieces(polygons, region, winner, cuts, label, margin, slack)
    doubtful = np.flatnonzero(pieces.has_strip)
    chosen = np.unique(regions.pattern[region[doubtful]])
    if len(chosen):
        # Two logits, and twice the largest bound: an error displaces the border of a region, so that in a strip beside
        # it the form of the neighbour holds.
        slack[doubtful] = np.minimum(slack[doubtful], 4.0 * logit_errors(compound, regions, chosen).max())
    return pieces


def strip_areas(pieces: Pieces, regions: RegionSet) -> np.ndarray:
    """Areas (P,) of the parts of the pieces that are within the error of the decision boundary."""
    strips = np.zeros(len(pieces))
    chosen = np.flatnonzero(pieces.has_strip)
    decided = np.zeros(len(chosen))
    x, y = np.ascontiguousarray(pieces.polytopes.points.T)
    room = 4 * (int(np.diff(pieces.polytopes.starts).max(initial=0)) + regions.logits.shape[2] + 8)
    kernels.decided_areas(
        regions.logits, pieces.label, x, y, pieces.polytopes.starts, pieces.region, pieces.winner, pieces.slack,
        chosen, np.zeros((3, room)), np.zeros(room, dtype=np.int64), np.zeros((3, room)), decided,
    )  # fmt: skip
    strips[chosen] = np.maximum(pieces.polytopes.volumes[chosen] - decided, 0.0)
    return strips


def _split(regions: RegionSet, noise: float) -> tuple[Polygons, np.ndarray, np.ndarray, np.ndarray]:
    polygons = regions.polytopes
    x, y = np.ascontiguousarray(polygons.points.T)
    base = len(regions.cuts)
    widest = int(np.diff(polygons.starts).max(initial=4))
    for growth in (2, 8, 64, 512):
        count = len(regions) + growth * 1024 + growth * len(regions) // 8
        vertices = len(polygons.points) + 8 * (count - len(regions))
        side = 64 * (widest + 64)
        room = (
            np.zeros(side), np.zeros(side), np.zeros(side, dtype=np.int64), np.zeros(side),
            np.zeros((4096, 2), dtype=np.int64), np.zeros(side), np.zeros(side), np.zeros(side, dtype=np.int64),
        )  # fmt: skip
        out_x, out_y, out_edge = np.zeros(vertices), np.zeros(vertices), np.zeros(vertices, dtype=np.int64)
        starts = np.zeros(count + 1, dtype=np.int64)
        origin, winner = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        pairs = np.zeros((count, 2), dtype=np.int64)
        pieces, cuts = kernels.split_by_argmax(
            regions.logits, noise, x, y, polygons.edges, polygons.starts, base, room,
            out_x, out_y, out_edge, starts, origin, winner, pairs,
        )  # fmt: skip
        if pieces >= 0:
            used = starts[pieces]
            points = np.stack([out_x[:used], out_y[:used]], axis=1)
            found = Polygons(points, starts[: pieces + 1].copy(), out_edge[:used].copy())
            return found, origin[:pieces].copy(), winner[:pieces].copy(), pairs[:cuts].copy()
    raise InternalError("a region has more argmax pieces than there is room for: please report the model")
