"""Titles of figures and reports: subject, verdict, threshold, and the extent of a result."""

import numpy as np

from ..attention.measures import Measure
from ..engines.refine.boxes import State
from ..labels import Label, Property, Verdict
from ..question import Question
from ..results.result import Result
from ..words import counted, percent_up, share_text

KEPT_WORDS = {
    Property.CR: "the label is kept",
    Property.AR: "the attention is kept",
    Property.BOTH: "label and attention are kept",
}


def subject_text(question: Question) -> str:
    """Model, image and label."""
    return f"{question.model_name} on {question.image_name}, label {question.names[question.label]}"


def verdict_text(property: Property, verdict: Verdict) -> str:
    """The outcome of a question.

    >>> verdict_text(Property.BOTH, Verdict.NOT_ROBUST)
    'label and attention not robust'
    """
    return f"{property.noun} {'proved robust' if verdict is Verdict.ROBUST else verdict}"


def attention_text(question: Question) -> str:
    """The filter, distance and classes with which attention maps are compared."""
    return question.describe().attention.text(question.names)


def delta_text(result: Result) -> str:
    """The threshold, and its base if it is relative."""
    return result.question.attention.measure.stated_text(result.stated)


def border_text(measure: Measure, *, is_loss: bool = False) -> str:
    """The line between AR and IR, for legends; is_loss: among values of the loss.

    >>> border_text(Measure.parse("distance")), border_text(Measure.parse("object"))
    ('inconsistency = δ', 'mass on the object = τ')
    >>> border_text(Measure.parse("object"), is_loss=True)
    'off the object = 1 − τ'
    """
    if measure.option is None:
        return "AR ends"
    return f"{measure.loss_noun} = {measure.loss_limit}" if is_loss else f"{measure.noun} = {measure.symbol}"


def extent_text(result: Result) -> str:
    """The regions and boxes behind a figure; for a partial result, also the limit that ended it."""
    regions = counted(result.region_count, "region")
    found = result.tiling.boxes
    if found is not None:
        boxes = counted(int(np.isin(found.state, (State.BOUNDED, State.PARTED)).sum()), "box", "boxes")
        exact = f" and {regions}" if result.region_count else ""
        stopped = "" if result.is_complete else f" (ended by {result.stopped})"
        undecided = result.areas[Label.UNDECIDED][0]
        rest = f", {percent_up(undecided)} undecided" if undecided > 0.0 else ""
        return f"refinement{stopped}: {boxes} decided by bounds{exact}{rest}"
    if result.is_complete:
        return f"map of {regions}"
    share = share_text(1.0 - share_not_reached(result))
    return f"partial map ({result.stopped}): {regions} on {share} of the domain"


def share_not_reached(result: Result) -> float:
    """The share of the domain that a partial map does not cover."""
    missing = 1.0 - result.answer.volume
    return missing if missing > 1e-9 and not result.is_complete else 0.0
