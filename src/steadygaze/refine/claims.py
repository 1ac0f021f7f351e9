"""Thetas where a refinement claims a violation: in violated boxes, in exact pieces, and those found by trying."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..attention.maps import pattern_at
from ..attention.single import SingleCurves
from ..properties.joint import Kept
from ..properties.nearest import zero_in_t
from ..results.claim import Claim, Violation
from ..results.piece_claims import TRIES, piece_claims
from ..tolerances import LOGITS
from .merged import MergedAnswer
from .nearest import distances

if TYPE_CHECKING:
    from .outcome import RefineResult


def make_claims(result: "RefineResult", kind: Violation) -> Iterator[Claim]:
    """Claims of a kind, those nearest to zero first; at most `TRIES` from each source."""
    answer = result.answer
    if kind is not Violation.LABEL and not result.is_measured:
        return
    claims = [box_claim(result, theta) for theta in _box_thetas(answer, kind)]
    claims += point_claims(result)
    if answer.exact is not None:
        claims += piece_claims(answer.exact, kind, result.agreement.scale)
    zero = zero_in_t(answer.compound)
    away = [np.linalg.norm(answer.compound.to_unit(claim.theta[None])[0] - zero) for claim in claims]
    yield from (claims[place] for place in np.argsort(away, kind="stable"))


def point_claims(result: "RefineResult") -> list[Claim]:
    """The thetas that the search for violations found, nearest to zero first: they are tried, nothing is proved."""
    compound = result.problem.compound
    if not len(result.points):
        return []
    away = np.linalg.norm(compound.to_unit(result.points) - zero_in_t(compound), axis=1)
    order = np.argsort(away, kind="stable")[:TRIES]
    return [box_claim(result, theta, is_proved=False) for theta in result.points[order]]


def box_claim(result: "RefineResult", theta: np.ndarray, *, is_proved: bool = True) -> Claim:
    """A claim at a theta (d,) of which no region is known; its pattern is that of a plain forward pass."""

    def attention_slack() -> float:
        problem, compound = result.problem, result.problem.compound
        bits = pattern_at(problem.model.chain, problem.perturbed.image(theta).reshape(1, -1))
        packed = b"".join(np.packbits(layer[0]).tobytes() for layer in bits)
        cell = problem.perturbed.cell_of(theta).index
        errors = SingleCurves(compound, problem.attention).of(cell, packed)[1]
        # Twice: for the maps themselves, and for the evaluation that they are compared with.
        return 2.0 * float(errors.of(np.zeros(1, dtype=np.int64))[0])

    slack = 2.0 * LOGITS * (1.0 + result.agreement.scale)
    return Claim(theta, None, slack, attention_slack, is_proved)


def _box_thetas(answer: MergedAnswer, kind: Violation) -> list[np.ndarray]:
    """The centres of the boxes that violate: those nearest to zero, then the deepest one."""
    boxes, bounded = answer.boxes, answer.bounded
    label, attention = answer.label_codes[bounded], answer.attention_codes[bounded]
    chosen = {
        Violation.LABEL: label == Kept.NO,
        Violation.ATTENTION: attention == Kept.NO,
        Violation.EVIDENCE: (label == Kept.YES) & (attention == Kept.NO),
    }[kind]
    fails = bounded[chosen]
    if not len(fails):
        return []
    depth = -boxes.margin[fails, 1] if kind is Violation.LABEL else boxes.inconsistency[fails, 0]
    away = distances(answer.compound, boxes.low[fails], boxes.high[fails])[0]
    tried = np.append(fails[np.argsort(away, kind="stable")[: TRIES - 1]], fails[np.argmax(depth)])
    centres = 0.5 * (boxes.low[tried] + boxes.high[tried])
    return list(answer.compound.to_theta(centres))
