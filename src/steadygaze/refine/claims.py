"""Thetas where a refinement claims a violation: in violated boxes, in exact pieces, and those found by trying."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..properties.joint import Kept
from ..results.claim import Claim, Violation
from ..results.piece_claims import TRIES, piece_claims
from .merged import MergedAnswer
from .nearest import distances

if TYPE_CHECKING:
    from .outcome import RefineResult


def make_claims(result: "RefineResult", kind: Violation) -> Iterator[Claim]:
    """Claims of a kind, those nearest to zero first; at most `TRIES` from each source."""
    answer, domain = result.answer, result.problem.perturbed.domain
    if kind is not Violation.LABEL and not result.is_measured:
        return
    found: list[np.ndarray | Claim] = [*_box_thetas(answer, kind), *_tried_thetas(result, kind)]
    if answer.exact is not None:
        found += piece_claims(answer.exact, kind, result.agreement.scale)
    thetas = [one.theta if isinstance(one, Claim) else one for one in found]
    # Each is measured when it is its turn: the first one is the rule.
    for place in np.argsort([np.linalg.norm(theta / domain.widths) for theta in thetas], kind="stable"):
        one = found[place]
        yield one if isinstance(one, Claim) else _measured_claim(result, one)


def _measured_claim(result: "RefineResult", theta: np.ndarray) -> Claim:
    """A claim at a theta (d,) of which no region is known; its pattern is that of a plain forward pass."""
    measured = result.measuring.at(theta[None], has_attention=result.is_measured)
    slack = float(measured.inconsistency_slack[0])
    return Claim(theta, None, float(measured.margin_slack[0]), lambda: slack)


def _tried_thetas(result: "RefineResult", kind: Violation) -> list[np.ndarray]:
    """The thetas that the search for violations found and that violate by more than rounding."""
    if kind is Violation.EVIDENCE:
        lost = {theta.tobytes() for theta in result.violating["CR"]}
        return [theta for theta in result.violating["AR"] if theta.tobytes() not in lost]
    return list(result.violating["CR" if kind is Violation.LABEL else "AR"])


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
