"""The property of attention as plain data for the interactive map: its words, and those of every step of the slider."""

from typing import Any

from ...attention.measures import NO_ATTENTION
from ...attention.measures.distance import DISTANCE
from ...results.result import Result
from ..thresholds import Thresholds
from ..wording import border_text


def describe_measure(result: Result, steps: Thresholds) -> dict[str, Any]:
    """The property of attention in words; for each step of the slider those that name its threshold."""
    question = result.question
    measure, before = question.attention.measure, result.stated
    is_curve = question.perturbed.domain.dimension == 1  # the line lies across a curve of the loss
    stated = [
        before._replace(text=text, limit=float(limit)) for text, limit in zip(steps.texts, steps.deltas, strict=True)
    ]
    found: dict[str, Any] = {
        "form": measure.page_form, "symbol": measure.symbol_word, "noun": measure.noun, "lossNoun": measure.loss_noun,
        "border": border_text(measure, is_loss=is_curve), "lossBorder": border_text(measure, is_loss=True),
        "k": getattr(measure, "k", 0), "noAttention": NO_ATTENTION,
    }  # fmt: skip
    if measure != DISTANCE:
        found |= {
            "words": [measure.threshold_words(one, 5) if measure.option else "" for one in stated],
            "kept": [measure.clauses(one).kept for one in stated],
            "lost": [measure.clauses(one).lost for one in stated],
            "keptRows": [measure.kept_row(one) for one in stated],
            "lostRow": measure.short.lost,
        }
    return found
