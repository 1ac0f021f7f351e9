"""The number of regions with each label, where a region is a pattern: signs of ReLUs and winners of windows.

Where three entries of a window are equal, several polytopes are parts of one region (`RegionSet.pattern_count`). The
region has a label if all its parts have it. Both values occur in it if both occur in a part, or in two parts.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..labels import ATTENTIONS, CLASSIFICATIONS, Label
from .delta_answer import DeltaAnswer

ROWS, COLUMNS = (*CLASSIFICATIONS, Label.UNDECIDED), (*ATTENTIONS, Label.UNDECIDED)
"""The labels by their numbers: kept, lost, both occur, undecided."""


class CountedAnswer(DeltaAnswer):
    """An answer that counts regions by both labels."""

    @property
    @abstractmethod
    def counts(self) -> np.ndarray:
        """Regions (4, 4) by both labels: CR, MR, CB, undecided, and AR, IR, AB, undecided."""

    @property
    def sets(self) -> dict[str, int]:
        """Number of regions in CR, MR, CB, AR, IR and AB."""
        rows, columns = self.counts.sum(axis=1), self.counts.sum(axis=0)
        found = dict(zip(CLASSIFICATIONS, rows, strict=False)) | dict(zip(ATTENTIONS, columns, strict=False))
        return {name: int(count) for name, count in found.items()}

    @property
    def undecided_counts(self) -> dict[str, int | None]:
        """Number of regions without a classification, and without an attention label."""
        return {"classification": int(self.counts[-1].sum()), "attention": int(self.counts[:, -1].sum())}

    def count(self, classification: Label, attention: Label) -> int:
        """Number of regions that have both labels."""
        return int(self.counts[ROWS.index(classification), COLUMNS.index(attention)])


def count_pairs(classification: np.ndarray, attention: np.ndarray) -> np.ndarray:
    """Counts (4, 4) of pairs of label numbers (N,) each."""
    numbers = len(COLUMNS) * classification + attention
    return np.bincount(numbers, minlength=len(ROWS) * len(COLUMNS)).reshape(len(ROWS), len(COLUMNS))


@dataclass(frozen=True, eq=False)
class PatternLabels:
    """The labels of the parts of every region: 17 bytes a region.

    digests (G, 2): of each region, all different. masks (G,): bit c if a part has classification number c, bit 4 + a
    if one has attention number a.
    """

    digests: np.ndarray
    masks: np.ndarray

    @classmethod
    def of(cls, digests: np.ndarray, classification: np.ndarray, attention: np.ndarray) -> "PatternLabels":
        """From the digests (R, 2) and label numbers (R,) of polytopes.

        >>> one = PatternLabels.of(np.array([[1, 1], [2, 2]]), np.array([0, 1]), np.array([3, 0]))
        >>> other = PatternLabels.of(np.array([[1, 1]]), np.array([1]), np.array([3]))
        >>> PatternLabels.joined([one, other]).counts.tolist()
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
        """
        masks = (1 << classification | 16 << attention).astype(np.uint8)
        return cls.joined([cls(digests, masks)])

    @classmethod
    def joined(cls, parts: Sequence["PatternLabels"]) -> "PatternLabels":
        """The regions of several sets of polytopes, which may hold parts of the same region."""
        digests, masks = (np.concatenate([getattr(part, name) for part in parts]) for name in ("digests", "masks"))
        found, inverse = np.unique(digests, axis=0, return_inverse=True)
        joined = np.zeros(len(found), dtype=np.uint8)
        np.bitwise_or.at(joined, inverse.ravel(), masks)
        return cls(found, joined)

    @property
    def counts(self) -> np.ndarray:
        """Regions (4, 4) by both labels."""
        return count_pairs(_label_of(self.masks & 15), _label_of(self.masks >> 4))


def _label_of(masks: np.ndarray) -> np.ndarray:
    """The label number (N,) of regions, given which numbers their parts have, as bits."""
    return np.select([masks == 1, masks == 2, (masks & 4 > 0) | (masks & 3 == 3)], [0, 1, 2], 3)
