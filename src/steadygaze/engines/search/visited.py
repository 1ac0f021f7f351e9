"""The data that searches collect: visited regions with their labels, and the components of a boundary."""

from dataclasses import dataclass
from enum import Enum

from ... import labels
from ...labels import Label, Property
from .traversal import TraversedRegion

CLASSIFICATIONS, ATTENTIONS = (
    ("", Label.UNDECIDED, *labels.CLASSIFICATIONS),
    ("", Label.UNDECIDED, *labels.ATTENTIONS),
)
"""The labels in the order of their stored codes; "" if the label was not requested."""


class Holds(Enum):
    """Whether a property holds on a region: everywhere, nowhere, in part, or unknown."""

    EVERYWHERE = "everywhere"
    NOWHERE = "nowhere"
    PARTLY = "partly"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Visited:
    """One region with its labels.

    classification is CR, MR, CB or undecided, attention is AR, IR, AB or undecided; "" if not requested. margin
    encloses f_label − (largest other logit) and inconsistency encloses ai, both over the region. `is_following`: the
    search was following a boundary when it reached the region. `is_doubtful`: the pattern is uncertain, so bounds for
    any pattern decide the attention.
    """

    region: TraversedRegion
    classification: str
    attention: str
    margin: tuple[float, float]
    inconsistency: tuple[float, float]
    is_following: bool = False
    is_doubtful: bool = False

    def holds(self, wanted: Property) -> Holds:
        asked = {self.classification if wanted is not Property.AR else Label.CR}
        asked |= {self.attention if wanted is not Property.CR else Label.AR}
        if asked & {Label.MR, Label.IR}:
            return Holds.NOWHERE
        if asked & {"", Label.UNDECIDED}:
            return Holds.UNKNOWN
        return Holds.PARTLY if asked & {Label.CB, Label.AB} else Holds.EVERYWHERE


@dataclass(frozen=True, eq=False)
class BoundaryPart:
    """One component of the outermost boundary: keys of the regions along it, on the reachable side and beyond."""

    inner: frozenset[bytes]
    outer: frozenset[bytes]
