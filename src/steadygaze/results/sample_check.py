"""Compares the labels of units with plain passes at samples inside them; proved bounds settle every difference.

The largest pieces of a map, of the exact part of a refinement, or the regions of a search are sampled, and some others,
and the violations that a search for them found. A label that proved bounds refute beyond its own error means that a
proof is false: it raises InternalError, and there is no answer. Where the errors of both explain the difference, the
unit becomes undecided. Sampling finds mistakes; it proves nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..attention.gradients import pattern_at
from ..errors import InternalError
from ..labels import Kept
from ..question import Question
from .claims import Doubts, Sample
from .point import compared_maps
from .result import Result
from .witness import Enclosing, is_pattern, reproduction

SAMPLES = 64
"""Pieces sampled: half of them the largest, the others at random."""

MEASURED = 32
"""The most samples whose attention is measured."""

WORK = 2_000_000_000
"""Multiplications that the passes may take; large networks are sampled less."""


def confirmed(result: Result) -> Result:
    """The result without the labels that a sample puts in doubt; InternalError if a sample refutes one."""
    doubts = find_doubts(result)
    return replace(result, tiling=result.tiling.without(doubts)) if doubts else result


def find_doubts(result: Result) -> Doubts:
    """The units of a result whose labels samples contradict; InternalError if proved bounds refute one."""
    count = sample_count(result.question)
    return compare_samples(
        result.question,
        list(result.tiling.samples(result.answer, count)) if count else [],
        result.answer.delta,
        lambda: reproduction(result.question, result.threshold, result.method, result.tiling.words()),
    )


def sample_count(question: Question) -> int:
    """How many samples of a whole domain the network is small enough for."""
    return int(min(SAMPLES, WORK // _work(question)))


def _work(question: Question) -> int:
    return max(1, sum(step.work for segment in question.graph.steps for step in segment))


def compare_samples(
    question: Question, samples: Sequence[Sample], delta: float, reproduce: Callable[[], str]
) -> Doubts:
    """The units that a sample contradicts; δ is absolute. InternalError, with `reproduce()`, if bounds refute one."""
    if not samples:
        return Doubts([], [])
    enclosing = Enclosing(question)
    images = question.perturbed.images(np.array([one.claim.theta for one in samples]))
    logits = question.model.graph.logits(images)
    margins = logits[:, question.label] - np.delete(logits, question.label, axis=1).max(axis=1)
    each = _work(question) * (1 + len(question.attention.chosen(question.model.classes)))
    measured = int(min(MEASURED, WORK // each))
    patterns, doubts = pattern_at(question.graph, images.reshape(len(images), -1)), Doubts([], [])
    for number, (one, margin) in enumerate(zip(samples, margins, strict=True)):
        # NaN contradicts every label.
        if (one.label is Kept.YES and not margin > 0.0) or (one.label is Kept.NO and not margin < 0.0):
            low, high = enclosing.at(one.claim.theta).margin
            slack = one.claim.label_slack
            if high < -slack if one.label is Kept.YES else low > slack:
                raise InternalError(_refutation(one, "margin", 0.0, (low, high), slack) + reproduce())
            doubts.label.append(one.unit)
        bits = [layer[number : number + 1] for layer in patterns]
        if number < measured and one.attention is not Kept.UNKNOWN and is_pattern(one.claim, bits):
            value = question.attention.loss(*compared_maps(question, one.claim.theta, bits))
            if (value <= delta) != (one.attention is Kept.YES) or np.isnan(value):
                low, high = enclosing.at(one.claim.theta, delta).inconsistency
                slack = one.claim.attention_slack()
                if low > delta + slack if one.attention is Kept.YES else high < delta - slack:
                    raise InternalError(_refutation(one, "inconsistency", delta, (low, high), slack) + reproduce())
                doubts.attention.append(one.unit)
    return doubts


def _refutation(one: Sample, what: str, threshold: float, bounds: tuple[float, float], slack: float) -> str:
    code, noun = (one.label, "label") if what == "margin" else (one.attention, "attention")
    return (
        f"the result claims that the {noun} is {'kept' if code is Kept.YES else 'lost'} at theta "
        f"{one.claim.theta.tolist()!r}, but proved bounds there refute it: the {what} lies between {bounds[0]!r} and "
        f"{bounds[1]!r} (threshold {threshold!r}, error of the claim {slack!r}). "
    )
