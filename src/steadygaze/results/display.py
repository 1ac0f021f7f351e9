"""Results and their parts as short texts for an interactive session: `repr` computes nothing new that takes long.

Names from users are shown on one line, without characters that cannot be printed.
"""

from typing import TYPE_CHECKING

import numpy as np

from ..errors import SteadygazeError, without_controls
from ..labels import Joint, Label
from ..words import class_text, counted, number_text, percent_up, share_text, shown_value

if TYPE_CHECKING:
    from ..question import Question
    from .point import Point
    from .result import Result

MOST_LETTERS = 60
"""Longer names are shortened in their middle."""
SHOWN = (Label.CR, Label.AR, Joint.BOTH, Joint.LABEL_ALONE, Label.UNDECIDED)
"""The shares in the last line of a result."""


def result_text(result: "Result") -> str:
    """A result in three lines: the verdict and the subject, the domain, the shares."""
    question = result.question
    try:
        label = class_text(one_line(question.names[question.label]), question.label)
        verdict, shares = result.verdict.upper(), _shares_text(result)
    except SteadygazeError as error:  # a threshold without an answer, or an image without a label
        verdict, label, shares = "NO ANSWER", "?", one_line(str(error), 2 * MOST_LETTERS)
    model, image = one_line(question.model_name), one_line(question.image_name)
    stopped = "" if result.stopped is None else f", stopped ({result.stopped})"
    found = f"{result.method} of {counted(result.region_count, 'region')}{stopped}"
    return (
        f"Result: {verdict} ({question.property.value}). {model} predicts {label} for {image}\n"
        f"  domain: {domain_text(question)}; {found}\n"
        f"  {shares}"
    )


def point_text(point: "Point") -> str:
    """A theta in one line."""
    numbers = ", ".join(number_text(value) for value in point.theta.tolist())
    shape = "×".join(str(side) for side in np.shape(point.image))
    return (
        f"Point(theta=[{numbers}], region={point.region}, label={point.label}, margin={number_text(point.margin)}, "
        f"inconsistency={number_text(point.inconsistency)}, image {shape}, "
        f"maps of {counted(len(point.actual), 'class', 'classes')})"
    )


def domain_text(question: "Question") -> str:
    """The parameters with their ranges."""
    domain = question.perturbed.domain
    ends = zip(domain.names, domain.low.tolist(), domain.high.tolist(), strict=True)
    return " × ".join(
        f"{one_line(name)} {number_text(shown_value(name, low))}..{number_text(shown_value(name, high))}"
        for name, low, high in ends
    )


def _shares_text(result: "Result") -> str:
    areas = result.areas
    if result.tiling.is_search:
        counts = ", ".join(f"{name} {count:,}" for name, count in result.sets.items() if count)
        return f"visited: {share_text(result.coverage)} of the domain; regions: {counts or 'none'}"
    names = SHOWN if result.is_measured else (Label.CR, Label.MR, Label.UNDECIDED)
    texts = {name: share_text(*areas[name]) for name in names if name in areas}
    if Label.UNDECIDED in texts:
        texts[Label.UNDECIDED] = percent_up(areas[Label.UNDECIDED][1])
    return "shares: " + ", ".join(f"{name} {text}" for name, text in texts.items())


def one_line(text: str, most: int = MOST_LETTERS) -> str:
    """A name on one line, shortened in its middle.

    >>> one_line("a\\nb"), one_line("x" * 99, 9)
    ('a b', 'xxxx…xxxx')
    """
    line = " ".join(without_controls(text).split())
    half = (most - 1) // 2
    return line if len(line) <= most else f"{line[:half]}…{line[-half:]}"
