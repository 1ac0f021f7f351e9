"""The answer for one δ, the same for all engines, and the verdict that its shares prove."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..attention.measures import NO_ATTENTION
from ..compound import Compound
from ..labels import Kept, Label, Property, Verdict
from ..properties.joint import JointPieces, Shares
from ..properties.kept_box import Suspects
from ..properties.nearest import Nearest

if TYPE_CHECKING:
    from .answer import Answer
    from .label_grid import LabelGrid


@dataclass(frozen=True, eq=False)
class Block:
    """Some pieces of an answer, whose numbers begin at `piece` in all pieces; those of their regions at `region`."""

    piece: int
    region: int
    joint: JointPieces


class DeltaAnswer(ABC):
    """The answer for one δ, from any engine: shares, counts, nearest violations, and P labelled pieces.

    Pieces tile the reached part of the domain; `joint.pieces.region` has their regions and boxes. joint: the pieces
    with both labels. exact: the answer of the regions found one by one; None if there are none. is_in_chunks: the
    pieces may exceed the memory, so there is no `joint`, but `blocks` and `grid`.
    """

    delta: float
    is_in_chunks = False

    if TYPE_CHECKING:  # fields of some answers, properties of others

        @property
        def exact(self) -> "Answer | None": ...
        @property
        def joint(self) -> JointPieces: ...
        @property
        def shares(self) -> Shares: ...

    @property
    def grid(self) -> "LabelGrid | None":
        """The labels at the points of a grid, for maps in chunks: they have too many pieces to draw."""
        return None

    def blocks(self, box: np.ndarray | None = None) -> Iterator[Block]:
        """The pieces in parts that fit into memory, at least those that touch a box (2, D): its low and high corner."""
        yield Block(0, 0, self.joint)

    @property
    @abstractmethod
    def compound(self) -> Compound:
        """Classifier after perturbation."""

    @property
    @abstractmethod
    def coverage(self) -> float:
        """The share of the domain mapped, decided or visited."""

    @property
    @abstractmethod
    def sets(self) -> Mapping[str, int | None]:
        """Number of regions in CR, MR, CB, AR, IR and AB; None if the label was not asked for."""

    @property
    @abstractmethod
    def undecided_counts(self) -> dict[str, int | None]:
        """Number of regions without a classification, and without an attention label; None if not asked for."""

    @abstractmethod
    def count(self, classification: Label, attention: Label) -> int:
        """Number of regions found one by one that have both labels."""

    @property
    @abstractmethod
    def nearest(self) -> dict[str, Nearest]:
        """The nearest violations of CR and of AR."""

    @property
    @abstractmethod
    def witnesses(self) -> np.ndarray:
        """Thetas (N, d) where exact arithmetic proved that the label is lost."""

    @property
    @abstractmethod
    def inconsistencies(self) -> np.ndarray:
        """The value (P,) of ai that pictures show for each piece."""

    @property
    @abstractmethod
    def reach(self) -> np.ndarray:
        """Bounds (P, 2) of ai over every piece."""

    @abstractmethod
    def margin_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Bounds (N, 2) of the margin at points (N, D) in t of the given regions or boxes (N,)."""

    @abstractmethod
    def inconsistency_bounds_at(self, region: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Bounds (N, 2) of ai at points (N, D) in t of the given regions or boxes (N,)."""

    def suspects(self, name: Label) -> list[Suspects]:
        """Where regions found one by one may violate CR, or AR."""
        return [] if self.exact is None else self.exact.suspects(name)

    @property
    def zero_share(self) -> tuple[float, float] | None:
        """Bounds of the share of the domain whose maps are zero everywhere; None for distances, or if not known."""
        return None

    @property
    def volume(self) -> float:
        """The share of the domain that the pieces cover."""
        return float(self.joint.polytopes.volumes.sum())

    @property
    def winner_shares(self) -> np.ndarray:
        """The shares (K + 1,) of the pieces that each class wins; pieces that an unknown class wins come last."""
        pieces, shares = self.joint.pieces, np.zeros(self.compound.graph.classes + 1)
        # A winner of −1 is unknown.
        np.add.at(shares, pieces.winner, pieces.polytopes.volumes)
        return shares

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        """Shares of the domain by name, each as (low, high)."""
        return self.shares.named()

    @property
    def sliver_share(self) -> float | None:
        """A bound of the share of the domain on kinks, where the attention is undecided; None if unknown."""
        return self.shares.slivers

    def verdict(self, wanted: Property) -> Verdict:
        """The proved verdict on a property over the whole domain, its kinks included."""
        if wanted.asks_label and len(self.witnesses):
            return Verdict.NOT_ROBUST
        return verdict_from(self.shares, wanted)


def zero_volumes(reach: np.ndarray, volumes: np.ndarray) -> np.ndarray:
    """The volumes of units that surely have no attention, and that may have none, by bounds (P, 2) of their losses."""
    return np.array([volumes[reach[:, end] >= NO_ATTENTION].sum() for end in (0, 1)])


def zero_bounds(volumes: np.ndarray, kinks: float, unknown: float) -> tuple[float, float]:
    """Bounds of a share, from the volumes (2,) of `zero_volumes`.

    kinks: the share of the domain where maps may be others; unknown: the share that nobody examined.
    """
    low, high = (float(volume) for volume in volumes)
    return max(0.0, min(low - kinks, 1.0)), min(1.0, high + kinks + max(0.0, unknown))


def verdict_from(shares: Shares, wanted: Property) -> Verdict:
    """The verdict that shares prove for a property over the whole domain."""
    cells = np.array(shares.cells)
    # A violation of the attention counts if its share exceeds that of the kinks.
    label_fails, attention_fails = cells[Kept.NO].sum(), cells[:, Kept.NO].sum() - shares.slivers
    label_open, attention_open = cells[Kept.UNKNOWN].sum(), cells[:, Kept.UNKNOWN].sum() + shares.slivers
    if shares.has_violation:
        attention_fails = 1.0
    if wanted is Property.CR:
        return Verdict.of(violated=label_fails, undecided=label_open)
    if wanted is Property.AR:
        return Verdict.of(violated=attention_fails, undecided=attention_open)
    return Verdict.of(violated=max(label_fails, attention_fails), undecided=max(label_open, attention_open))
