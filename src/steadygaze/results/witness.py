"""From a result to witnesses: for each kind of violation one theta strictly inside it, replayed through the model file.

The claim is tested three times: by the plain definitions in float64, by onnxruntime's logits, and by finite differences
of them for the maps. What a test refutes is a bug of ours and ends in an InternalError, never in an answer.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ..attention.maps import pattern_at
from ..errors import InternalError
from ..network.agree import LEAST_SHARE, MOST_SHARE, rounding_effect
from ..properties.joint import Kept
from ..properties.nearest import nearest_points
from ..regions.pattern import unpack
from ..tolerances import UNIT
from .map_check import MapCheck, check_maps
from .result import Point, Result

TRIES = 16
"""Pieces of a kind that are looked at closely; the last one is the deepest of all."""

BLOCK = 1 << 16


class Violation(StrEnum):
    """What goes wrong at a theta."""

    LABEL = "label"
    ATTENTION = "attention"
    EVIDENCE = "right label, other evidence"


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


def find_witnesses(result: Result) -> tuple[Witness, ...]:
    """One witness for each kind of violation that the map has, in the order label, attention, both.

    Each is the centre of the piece nearest to zero that is deep enough for the float type of the model file; if none
    of those looked at is, of the nearest one, and flagged. Raises InternalError when a test refutes a claim.
    """
    joint = result.answer.joint
    is_lost, is_other = ~joint.pieces.keeps_label, joint.attention == Kept.NO
    pieces = {
        Violation.LABEL: is_lost,
        Violation.ATTENTION: is_other,
        Violation.EVIDENCE: ~is_lost & is_other,
    }
    found = (_find(result, kind, np.flatnonzero(chosen)) for kind, chosen in pieces.items())
    return tuple(witness for witness in found if witness is not None)


def _find(result: Result, kind: Violation, pieces: np.ndarray) -> Witness | None:
    best: _Candidate | None = None
    for piece in _worth_trying(result, kind, pieces):
        candidate = _examine(result, kind, int(piece))
        if candidate is not None and (best is None or candidate.is_deep):
            best = candidate
            if best.is_deep:
                break
    return None if best is None else _replayed(result, kind, best)


def _worth_trying(result: Result, kind: Violation, pieces: np.ndarray) -> np.ndarray:
    """The pieces nearest to zero that may be deep, then the deepest of all."""
    if not len(pieces):
        return pieces
    answer = result.answer
    squares = nearest_points(result.answers.compound, answer.joint.polytopes, pieces)[:, 0]
    order = pieces[np.argsort(squares, kind="stable")]
    margins = np.abs(_margins(result, order)) if kind is not Violation.ATTENTION else np.full(len(order), np.inf)
    depth = margins if kind is Violation.LABEL else answer.labels.reach[answer.joint.pieces.region[order], 0]
    # Below this no tolerance of the replay lies; where all margins do, all are tried.
    is_wide = margins > 2.0 * LEAST_SHARE * result.agreement.scale
    if is_wide.any():
        order, depth = order[is_wide], depth[is_wide]
    return np.append(order[: TRIES - 1], order[np.argmax(depth)])


def _margins(result: Result, pieces: np.ndarray) -> np.ndarray:
    """The margins (S,) at the centres of pieces, from the affine logits of their regions."""
    joint, label = result.answer.joint, result.label
    margins = np.zeros(len(pieces))
    for start in range(0, len(pieces), BLOCK):
        part = pieces[start : start + BLOCK]
        points = np.hstack([joint.polytopes.centres[part], np.ones((len(part), 1))])
        logits = np.einsum("bi,bik->bk", points, result.answers.regions.logits[joint.pieces.region[part]])
        margins[start : start + BLOCK] = logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)
    return margins


def _examine(result: Result, kind: Violation, piece: int) -> _Candidate | None:
    """The centre of a piece, or None where it is too close to a kink or a threshold to tell."""
    answers, joint = result.answers, result.answer.joint
    region = int(joint.pieces.region[piece])
    theta = answers.compound.to_theta(joint.polytopes.centres[piece][None])[0]
    point = result.at(theta)
    bits = unpack(
        result.answers.regions.patterns[result.answers.regions.pattern[region : region + 1]],
        result.answers.compound.hidden,
    )
    plain = pattern_at(result.problem.model.chain, point.image.reshape(1, -1))
    if any((here != there).any() for here, there in zip(bits, plain, strict=True)):
        return None
    tolerance = _tolerance(result, point)
    is_deep = True
    if kind is not Violation.ATTENTION:
        excess = -point.margin if kind is Violation.LABEL else point.margin
        if not _is_proved(excess, float(joint.pieces.slack[piece]), kind, point):
            return None
        is_deep = excess > 2.0 * tolerance
    if kind is not Violation.LABEL:
        excess = point.inconsistency - result.answer.delta
        curve = answers.curves.curve[region : region + 1]
        # Twice: the point's own maps are computed with the same kind of error as the curve.
        slack = 2.0 * min(answers.errors.coarse, float(answers.errors.of(curve)[0]))
        if not _is_proved(excess, slack, kind, point):
            return None
        # Error bounds are proportional to the unit roundoff.
        is_deep &= excess > slack * result.problem.model.replay.unit_roundoff / UNIT
    return _Candidate(point, bits, tolerance, is_deep)


def _is_proved(excess: float, slack: float, kind: Violation, point: Point) -> bool:
    if excess < -slack:
        raise InternalError(
            f"the map claims a violation ({kind}) at theta {point.theta.tolist()}, but margin {point.margin:.6g} and "
            f"inconsistency {point.inconsistency:.6g} there refute it; nothing is delivered, please report this model "
            "and image"
        )
    return excess > slack


def _tolerance(result: Result, point: Point) -> float:
    """How far a replayed logit may be off, as for the agreement of graph and file."""
    model = result.problem.model
    unit = model.replay.unit_roundoff
    scale = max(result.agreement.scale, float(np.abs(point.logits).max()))
    effect = rounding_effect(model.graph, point.image.ravel(), unit)
    return float(np.clip(effect, LEAST_SHARE * scale, MOST_SHARE[unit] * scale))


def _replayed(result: Result, kind: Violation, chosen: _Candidate) -> Witness:
    model, point = result.problem.model, chosen.point
    logits = model.replay.logits(point.image[None])[0]
    replay = LogitReplay(logits, float(np.abs(logits - point.logits).max()), chosen.tolerance)
    is_kept = replay.label == result.label
    is_refuted = kind is not Violation.ATTENTION and is_kept != (kind is Violation.EVIDENCE)
    # The tolerance is capped; where rounding may do more than the margin, a replay says nothing about the map.
    effect = float(rounding_effect(model.graph, point.image.ravel(), model.replay.unit_roundoff))
    if chosen.is_deep and is_refuted and abs(point.margin) > 2.0 * effect:
        raise InternalError(
            f"the map claims a violation ({kind}) at theta {point.theta.tolist()}, but onnxruntime predicts "
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


def _compared_classes(result: Result, point: Point) -> np.ndarray:
    """The label and the largest other logit, among the classes whose maps are compared."""
    chosen = result.problem.attention.chosen(len(point.logits))
    order = np.lexsort((-point.logits[chosen], chosen != result.label))
    return chosen[order[:2]]
