"""How far all parameters may go at once while a property is proved to be kept, from a map or a refinement.

Turns a result into a box around the unperturbed image; runs no network.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...engines.refine.merged_answer import MergedAnswer
from ...properties.joint import Kept
from ...properties.kept_box import Suspects, attention_suspects, kept_box, label_suspects
from ...results.answer import Answer
from ...results.domain_result import DomainResult
from ...verdict import Property


@dataclass(frozen=True)
class KeptRange:
    """A box in theta, low and high (d,), around the unperturbed image in which a property is proved to be kept.

    Of the attention nothing is said on kinks. `is_all` tells that it is the whole domain.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    is_all: bool


def find_kept_range(result: DomainResult, wanted: Property) -> KeptRange | None:
    """The box for a property; None where the domain does not contain zero, or nothing around it is proved.

    The label is kept everywhere in the box, the attention except on kinks (`sliver_share`).
    """
    compound = result.problem.compound
    domain = compound.domain
    if not domain.contains_zero or not (result.is_measured or wanted is Property.CR):
        return None
    answer, d = result.answer, domain.dimension
    if isinstance(answer, Answer) and not result.is_complete:
        return None
    names = {Property.CR: ("CR",), Property.AR: ("AR",), Property.BOTH: ("CR", "AR")}[wanted]
    suspects = [group for name in names for group in _suspects(answer, name)]
    zero = compound.to_unit(np.zeros((1, d)))[0, :d]
    low, high = kept_box(zero, suspects)
    if not (high > low).any():
        return None
    is_all = bool((low <= 0.0).all() and (high >= 1.0).all())
    # Rounding may have moved an end by a few units in the last place: never beyond zero or the domain.
    ends = np.clip(domain.low + np.stack([low, high]) * domain.widths, domain.low, domain.high)
    first, last = (domain.low, domain.high) if is_all else (np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0))
    return KeptRange(tuple(first.tolist()), tuple(last.tolist()), is_all)


def _suspects(answer: object, name: str) -> Sequence[Suspects]:
    if isinstance(answer, Answer):
        regions, compound = answer.answers.regions, answer.compound
        if name == "CR":
            return [label_suspects(regions, answer.joint)]
        return [attention_suspects(compound, regions, answer.joint, answer.labels)]
    assert isinstance(answer, MergedAnswer)
    codes = answer.label_codes if name == "CR" else answer.attention_codes
    may_fail = answer.missing > 0.0
    may_fail[answer.bounded] = codes[answer.bounded] != Kept.YES
    boxes = Suspects(answer.boxes.low[may_fail], answer.boxes.high[may_fail])
    return [boxes] if answer.exact is None else [boxes, *_suspects(answer.exact, name)]
