"""The words above a figure: what was asked of what, the verdict, and what the figure rests on. Draws one header."""

from collections.abc import Sequence

from ..problem import Problem
from ..results.domain_result import DomainResult
from ..verdict import Property, Verdict
from .colours import FAINT_INK
from .sheet import Sheet
from .wording import number

HEADER = 0.95
"""Height of a header in inches."""

PROPERTIES = {Property.CR: "label", Property.AR: "attention", Property.BOTH: "label and attention"}
OUTCOMES = {Verdict.ROBUST: "proved robust", Verdict.NOT_ROBUST: "not robust", Verdict.UNDECIDED: "undecided"}


def write_header(sheet: Sheet, title: str, facts: Sequence[str], *, size: float = 15) -> None:
    """The title and, in one line below, what else a reader has to know."""
    width = sheet.width - 0.8
    sheet.write(0.4, 0.32, title, size=size, weight="bold", width=width)
    sheet.write(0.4, 0.66, " · ".join(facts), size=9.5, colour=FAINT_INK, width=width)


def subject_text(problem: Problem) -> str:
    """Model, image and label."""
    return f"{problem.model_name} on {problem.image_name}, label {problem.names[problem.label]}"


def verdict_text(property: Property, verdict: Verdict) -> str:
    """What came out of a question.

    >>> verdict_text(Property.BOTH, Verdict.NOT_ROBUST)
    'label and attention not robust'
    """
    return f"{PROPERTIES[property]} {OUTCOMES[verdict]}"


def attention_text(problem: Problem) -> str:
    """How attention maps are compared, and of which classes."""
    options, chosen = problem.attention, problem.attention.classes
    names = None if chosen is None else [problem.names[j] for j in chosen]
    return comparison_text(options.filter.name, options.distance.name, names)


def comparison_text(filter: str, distance: str, classes: Sequence[str] | None) -> str:
    """How attention maps are compared; None stands for all classes.

    >>> comparison_text("abs", "l2", None), comparison_text("mean", "l1", ["3", "8"])
    ('filter abs, distance l2, all classes', 'filter mean, distance l1, classes 3, 8')
    """
    words = "all classes" if classes is None else f"class{'' if len(classes) == 1 else 'es'} {', '.join(classes)}"
    return f"filter {filter}, distance {distance}, {words}"


def delta_text(result: DomainResult) -> str:
    """The threshold, and what it refers to where it is relative."""
    delta = f"δ = {number(result.answer.delta)}"
    if result.delta.is_relative:
        delta += f" ({result.delta} of the original map's size {number(result.map_size)})"
    return delta
