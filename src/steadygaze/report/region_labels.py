"""The labels of regions as they are drawn: a colour for each, a hatch where grey print needs one, a row of a table.

One `Kind` for each way to look at regions. Turns labels into colours and rows; draws nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.colors import to_rgba_array

from .colours import FOLLOWED, JOINT, KEPT, MIXED, SEARCHED, UNKNOWN
from .sheet import Row
from .tiles import HATCH
from .wording import percent

OTHER, UNDECIDED = "in part", "undecided"


@dataclass(frozen=True, eq=False)
class Kind:
    """One way to look at regions: a colour for each label and what it means; `hatched` labels have lines over them.

    Labels in `optional` have a row only where they occur.
    """

    title: str
    colours: dict[str, str]
    meanings: dict[str, str]
    hatched: frozenset[str] = frozenset()
    optional: frozenset[str] = field(default=frozenset((OTHER, UNDECIDED)))


CLASSIFICATION = Kind(
    "Classification: is the label kept?",
    {"CR": KEPT, "MR": JOINT["MR&AR"], "CB": MIXED, UNDECIDED: UNKNOWN},
    {"CR": "CR  label kept", "MR": "MR  label changed", "CB": "CB  both occur", UNDECIDED: UNDECIDED},
    hatched=frozenset(("CB", UNDECIDED)),
)
ATTENTION = Kind(
    "Attention: is the map as expected?",
    {"AR": KEPT, "IR": JOINT["CR&IR"], "AB": MIXED, UNDECIDED: UNKNOWN},
    {"AR": "AR  differs by ≤ δ", "IR": "IR  differs by more", "AB": "AB  both occur", UNDECIDED: UNDECIDED},
    hatched=frozenset(("AB", UNDECIDED)),
)
BOTH = Kind(
    "Both together",
    {**JOINT, OTHER: MIXED, UNDECIDED: UNKNOWN},
    {
        "CR&AR": "CR&AR  both kept", "CR&IR": "CR&IR  label kept alone", "MR&AR": "MR&AR  attention kept alone",
        "MR&IR": "MR&IR  neither kept", OTHER: "CB or AB  in part", UNDECIDED: UNDECIDED,
    },
    hatched=frozenset((OTHER, UNDECIDED)),
)  # fmt: skip
PHASE = Kind(
    "Phase: how was it reached?",
    {"searching": SEARCHED, "following": FOLLOWED},
    {"searching": "searching for the boundary", "following": "following the boundary"},
)


@dataclass(frozen=True, eq=False)
class RegionView:
    """A kind with the label of every region (R of them), and the rows of its table."""

    kind: Kind
    labels: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def colours(self) -> np.ndarray:
        """A colour (R, 4) for every region."""
        return to_rgba_array([self.kind.colours[label] for label in self.labels]) if self.labels else np.zeros((0, 4))

    @property
    def is_hatched(self) -> np.ndarray:
        """Which regions (R,) have lines over them."""
        return np.array([label in self.kind.hatched for label in self.labels], dtype=bool)


def make_region_view(
    kind: Kind, labels: Sequence[str], shares: np.ndarray, *, is_counted: np.ndarray | None = None
) -> RegionView:
    """The view of regions with these labels, each covering a share (R,) of the domain: rows count and add them up.

    Only those in `is_counted` (R,), if it is given, are counted.
    """
    counts = Counter(np.array(labels)[is_counted].tolist() if is_counted is not None and len(labels) else labels)
    sums = dict.fromkeys(kind.colours, 0.0)
    for label, share in zip(labels, shares.tolist(), strict=True):
        sums[label] += share
    rows = [
        Row(kind.meanings[name], f"{counts[name]:,} · {percent(min(sums[name], 1.0))}", colour,
            hatch=HATCH if name in kind.hatched else "")
        for name, colour in kind.colours.items()
        if counts[name] or name not in kind.optional
    ]  # fmt: skip
    return RegionView(kind, tuple(labels), tuple(rows))


def joint_label(classification: str, attention: str) -> str:
    """Both labels of a region as one.

    >>> joint_label("CR", "IR"), joint_label("CB", "AR"), joint_label("undecided", "AB")
    ('CR&IR', 'in part', 'undecided')
    """
    labels = classification, attention
    if UNDECIDED in labels:
        return UNDECIDED
    return OTHER if "CB" in labels or "AB" in labels else "&".join(labels)
