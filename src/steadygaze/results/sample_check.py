"""Compares the labels of regions with plain passes at samples inside them; proved bounds settle every difference.

The largest pieces of a map, of the exact part of a refinement, or the regions of a search are sampled, and some others.
A label that proved bounds refute beyond its own error means that a proof is false: it raises InternalError, and there
is no answer. Sampling finds mistakes; it proves nothing.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ..errors import InternalError
from ..labels import Kept, Label
from .answer import Answer
from .claims import Claim, piece_claim
from .result import Result
from .witness import Enclosing, has_pattern, reproduction

SAMPLES = 64
"""Pieces sampled: half of them the largest, the others at random."""

WORK = 2_000_000_000
"""Multiplications that the passes may take; large networks are sampled less."""

LEAST_SIZE = 1e-6
"""The least volume of a sampled piece, and the least distance of a sample from the facets of a visited region.

Rounding may push a sample out of smaller ones."""

SEED = 20244


class Sample(NamedTuple):
    """A theta with its errors (`Claim`), and the labels claimed for it."""

    claim: Claim
    label: Kept
    attention: Kept


def check_samples(result: Result) -> None:
    """Raise InternalError if proved bounds refute the label of a region at a sample."""
    question = result.question
    work = max(1, sum(step.work for segment in question.model.graph.steps for step in segment))
    samples = list(_samples(result, int(min(SAMPLES, WORK // work))))
    if not samples:
        return
    enclosing = Enclosing(question)
    images = question.perturbed.images(np.array([one.claim.theta for one in samples]))
    logits = question.model.graph.logits(images)
    margins = logits[:, result.label] - np.delete(logits, result.label, axis=1).max(axis=1)
    each = work * (1 + len(question.attention.chosen(question.model.classes)))
    measured = int(min(SAMPLES, WORK // each)) if result.is_measured else 0
    for number, (one, margin) in enumerate(zip(samples, margins, strict=True)):
        if (one.label is Kept.YES and not margin > 0.0) or (one.label is Kept.NO and not margin < 0.0):
            low, high = enclosing.at(one.claim.theta, has_attention=False).margin
            slack = one.claim.label_slack
            if high < -slack if one.label is Kept.YES else low > slack:
                raise InternalError(_refutation(result, one, "margin", 0.0, (low, high), slack))
        if number < measured and one.attention is not Kept.UNKNOWN:
            _check_attention(result, one, enclosing)


def _check_attention(result: Result, one: Sample, enclosing: Enclosing) -> None:
    delta, theta = result.answer.delta, one.claim.theta
    value = result.at(theta).inconsistency
    if (value <= delta) == (one.attention is Kept.YES) or not has_pattern(result, one.claim):
        return
    low, high = enclosing.at(theta, has_attention=True).inconsistency
    slack = one.claim.attention_slack()
    if low > delta + slack if one.attention is Kept.YES else high < delta - slack:
        raise InternalError(_refutation(result, one, "inconsistency", delta, (low, high), slack))


def _refutation(
    result: Result, one: Sample, what: str, threshold: float, bounds: tuple[float, float], slack: float
) -> str:
    code, noun = (one.label, "label") if what == "margin" else (one.attention, "attention")
    return (
        f"the result claims that the {noun} is {'kept' if code is Kept.YES else 'lost'} at theta "
        f"{one.claim.theta.tolist()!r}, but proved bounds there refute it: the {what} lies between {bounds[0]!r} and "
        f"{bounds[1]!r} (threshold {threshold!r}, error of the claim {slack!r}). {reproduction(result)}"
    )


def _samples(result: Result, count: int) -> Iterator[Sample]:
    random = np.random.default_rng(SEED)
    if result.tiling.kind == "search":
        yield from _visited_samples(result, count, random)
    elif result.answer.exact is not None:
        yield from _piece_samples(result.answer.exact, count, random)


def _piece_samples(answer: Answer, count: int, random: np.random.Generator) -> Iterator[Sample]:
    joint = answer.joint
    volumes = joint.polytopes.volumes
    for piece in _chosen(volumes, count, random):
        # Where strips are wide, the centre may lie in one.
        is_clear = max(joint.label_strip[piece], joint.attention_strip[piece]) < 1e-3 * volumes[piece]
        if is_clear:
            label, attention = joint.label_codes[piece], joint.attention_codes[piece]
            yield Sample(piece_claim(answer, int(piece)), Kept(int(label)), Kept(int(attention)))


def _visited_samples(result: Result, count: int, random: np.random.Generator) -> Iterator[Sample]:
    codes: dict[str, Kept] = {Label.CR: Kept.YES, Label.MR: Kept.NO, Label.AR: Kept.YES, Label.IR: Kept.NO}
    visited = list(result.regions)
    # How far the point inside is from the facets: volumes are expensive from three parameters on.
    sizes = np.array([(one.region.halfspaces @ np.append(one.region.inside, 1.0)).min() for one in visited])
    for number in _chosen(sizes, count, random):
        one = visited[int(number)]
        theta = result.question.compound.domain.to_theta(one.region.inside[None])[0]
        attention = Kept.UNKNOWN if one.is_doubtful else codes.get(one.attention, Kept.UNKNOWN)
        # The claimed range of the margin has its error in it.
        claim = Claim(theta, None, 0.0, partial(float, 0.0))
        yield Sample(claim, codes.get(one.classification, Kept.UNKNOWN), attention)


def _chosen(sizes: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """The largest pieces, and some of the others that are large enough."""
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > LEAST_SIZE]
    largest, others = order[: (count + 1) // 2], order[(count + 1) // 2 :]
    return np.concatenate([largest, random.permutation(others)[: count // 2]])
