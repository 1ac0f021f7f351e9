"""From a result to witnesses: for each kind of violation one theta strictly inside it, replayed through the model file.

The claim is tested three times: by the plain definitions in float64, by onnxruntime's logits, and by finite differences
of them for the maps. What a test refutes is a bug of ours and ends in an InternalError, never in an answer.
"""

from dataclasses import dataclass

import numpy as np

from ..attention.maps import pattern_of
from ..errors import InternalError
from ..network.agree import LEAST_SHARE, MOST_SHARE, rounding_effect
from ..tolerances import UNIT
from .claim import Claim, Violation
from .domain_result import DomainResult, Point
from .map_check import MapCheck, check_maps

__all__ = ["LogitReplay", "Violation", "Witness", "find_witnesses"]


@dataclass(frozen=True, eq=False)
class LogitReplay:
    """What onnxruntime gives for the witness's image: logits (K,), and their largest difference to the graph's.

    The tolerance is the estimated effect of rounding in the file's float type (see `network.agree`).
    """

    logits: np.ndarray
    difference: float
    tolerance: float

    @property
    def label(self) -> int:
        """The class that onnxruntime predicts."""
        return int(np.argmax(self.logits))

    @property
    def agrees(self) -> bool:
        """Whether all logits are within the tolerance."""
        return self.difference <= self.tolerance


@dataclass(frozen=True, eq=False)
class Witness:
    """A theta that violates, with everything about it.

    is_deep: its margin exceeds twice the replay tolerance (where the label is part of the claim), and its inconsistency
    exceeds δ by more than the error of the maps would be in the file's float type (where attention is).
    """

    kind: Violation
    point: Point
    is_deep: bool
    replay: LogitReplay
    map_check: MapCheck


@dataclass(frozen=True, eq=False)
class _Candidate:
    point: Point
    bits: list[np.ndarray]
    tolerance: float
    is_deep: bool


def find_witnesses(result: DomainResult) -> tuple[Witness, ...]:
    """One witness for each kind of violation that the result claims, in the order label, attention, both.

    Each is the first of the claims that is deep enough for the float type of the model file; if none of them is, the
    first one, and flagged. Raises InternalError when a test refutes a claim that was proved.
    """
    found = (_find(result, kind) for kind in Violation)
    return tuple(witness for witness in found if witness is not None)


def _find(result: DomainResult, kind: Violation) -> Witness | None:
    best: _Candidate | None = None
    for claim in result.claims(kind):
        candidate = _examine(result, kind, claim)
        if candidate is not None and (best is None or candidate.is_deep):
            best = candidate
            if best.is_deep:
                break
    return None if best is None else _replayed(result, kind, best)


def _examine(result: DomainResult, kind: Violation, claim: Claim) -> _Candidate | None:
    """The theta of a claim, or None where it is too close to a kink or a threshold to tell."""
    point = result.at(claim.theta)
    plain = pattern_of(result.problem.model.graph, point.image.reshape(1, -1))
    if claim.bits is not None and any((here != there).any() for here, there in zip(claim.bits, plain, strict=True)):
        return None
    tolerance = _tolerance(result, point)
    is_deep = True
    if kind is not Violation.ATTENTION:
        excess = -point.margin if kind is Violation.LABEL else point.margin
        if not _is_proved(excess, claim.label_slack, kind, point):
            return None
        is_deep = excess > 2.0 * tolerance
    if kind is not Violation.LABEL:
        excess, slack = point.inconsistency - result.answer.delta, claim.attention_slack()
        if not _is_proved(excess, slack, kind, point):
            return None
        # Error bounds are proportional to the unit roundoff.
        is_deep &= excess > slack * result.problem.model.replay.unit_roundoff / UNIT
    return _Candidate(point, plain, tolerance, is_deep)


def _is_proved(excess: float, slack: float, kind: Violation, point: Point) -> bool:
    if excess < -slack:
        raise InternalError(
            f"the result claims a violation ({kind}) at theta {point.theta.tolist()}, but margin {point.margin:.6g} "
            f"and inconsistency {point.inconsistency:.6g} there refute it; nothing is delivered, please report this "
            "model and image"
        )
    return excess > slack


def _tolerance(result: DomainResult, point: Point) -> float:
    """How far a replayed logit may be off, as for the agreement of graph and file."""
    model = result.problem.model
    unit = model.replay.unit_roundoff
    scale = max(result.agreement.scale, float(np.abs(point.logits).max()))
    effect = rounding_effect(model.graph, point.image.ravel(), unit)
    return float(np.clip(effect, LEAST_SHARE * scale, MOST_SHARE[unit] * scale))


def _replayed(result: DomainResult, kind: Violation, chosen: _Candidate) -> Witness:
    model, point = result.problem.model, chosen.point
    logits = model.replay.logits(point.image[None])[0]
    replay = LogitReplay(logits, float(np.abs(logits - point.logits).max()), chosen.tolerance)
    is_kept = replay.label == result.label
    is_refuted = kind is not Violation.ATTENTION and is_kept != (kind is Violation.EVIDENCE)
    # The tolerance is capped; where rounding may do more than the margin, a replay says nothing about the map.
    effect = float(rounding_effect(model.graph, point.image.ravel(), model.replay.unit_roundoff))
    if chosen.is_deep and is_refuted and abs(point.margin) > 2.0 * effect:
        raise InternalError(
            f"the result claims a violation ({kind}) at theta {point.theta.tolist()}, but onnxruntime predicts "
            f"{result.problem.names[replay.label]} there; nothing is delivered, please report this model and image"
        )
    classes = _compared_classes(result, point)
    check = check_maps(model, point.image, chosen.bits, classes, chosen.tolerance)
    if check.agrees is False:
        raise InternalError(
            f"the attention maps at theta {point.theta.tolist()} differ from finite differences through onnxruntime by "
            f"{check.difference:.3g} (tolerance {check.tolerance:.2g}); nothing is delivered, please report this model "
            "and image"
        )
    return Witness(kind, point, chosen.is_deep, replay, check)


def _compared_classes(result: DomainResult, point: Point) -> np.ndarray:
    """The label and the largest other logit, among the classes whose maps are compared."""
    chosen = result.problem.attention.chosen(len(point.logits))
    order = np.lexsort((-point.logits[chosen], chosen != result.label))
    return chosen[order[:2]]
