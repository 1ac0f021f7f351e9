"""Thetas where a result claims a violation, with the data to test the claim, and samples of all labels that it claims.

A map claims violations at the centres of its pieces, nearest to zero first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from ..attention.measures.distance import DISTANCE
from ..labels import Kept
from ..network.model import LEAST_SHARE
from ..properties.attention import reaches
from ..properties.joint import JointPieces
from ..properties.nearest import nearest_points
from ..question import Question
from ..regions.patterns import unpack
from ..tolerances import UNIT
from .answer import Answer


class Violation(StrEnum):
    """Kinds of violations at a theta."""

    LABEL = "label"
    ATTENTION = "attention"
    EVIDENCE = "right label, other evidence"


@dataclass(frozen=True, eq=False)
class Claim:
    """A theta (d,) of a violation.

    bits: the classifier's pattern there, one boolean array (1, n) per ReLU layer; None for that of a plain
    forward pass. label_slack and attention_slack() bound the errors of the claimed margin and inconsistency; infinite
    if the pattern is not certain. A claim is refuted only beyond them. is_exact: exact arithmetic has confirmed the
    claim at this very theta. is_visible: whether the file may show it beyond all rounding.
    """

    theta: np.ndarray
    bits: list[np.ndarray] | None
    label_slack: float
    attention_slack: Callable[[], float]
    is_exact: bool = False
    is_visible: bool = True


class Visible(NamedTuple):
    """What a replay through the model file can show at all.

    margin: no tolerance of the replay is below half of it. coarser: how many times coarser than float64 the file is.
    """

    margin: float
    coarser: float

    @classmethod
    def through(cls, question: Question, scale: float) -> "Visible":
        """The limits for logits of a scale."""
        return cls(2.0 * LEAST_SHARE * scale, question.model.replay.float_type.unit / UNIT)


TRIES = 16
"""Pieces of a kind to examine closely; the last one is the deepest of all."""

BLOCK = 1 << 16

CLEAR = 1e-3
"""By how much a loss that is a share exceeds its limit at a clear violation; others are tried only if none is clear."""


def piece_claims(answer: Answer, kind: Violation, visible: Visible) -> Iterator[Claim]:
    """Claims of a kind: the centres of pieces nearest to zero that may be deep, then of the deepest of all."""
    if kind is Violation.LABEL:
        yield from exact_claims(answer.witnesses)
    pieces, are_visible = _worth_trying(answer, kind, np.flatnonzero(chosen_pieces(answer.joint, kind)), visible)
    for piece in pieces:
        yield replace(piece_claim(answer, int(piece)), is_visible=are_visible)


def exact_claims(witnesses: np.ndarray) -> Iterator[Claim]:
    """Claims of thetas (N, d) where exact arithmetic proved that the label is lost."""
    for theta in witnesses:
        yield Claim(theta, None, np.inf, lambda: np.inf, is_exact=True)


def chosen_pieces(joint: JointPieces, kind: Violation) -> np.ndarray:
    """Which pieces (P,) claim a violation of a kind."""
    is_lost, is_other = ~joint.pieces.keeps_label, joint.attention == Kept.NO
    return {
        Violation.LABEL: is_lost,
        Violation.ATTENTION: is_other,
        Violation.EVIDENCE: ~is_lost & is_other,
    }[kind]


def _worth_trying(answer: Answer, kind: Violation, pieces: np.ndarray, visible: Visible) -> tuple[np.ndarray, bool]:
    """The pieces nearest to zero that may be deep, then the deepest of all; any, and False, if none may be deep."""
    if not len(pieces):
        return pieces, False
    squares = nearest_points(answer.answers.compound, answer.joint.polytopes, pieces)[:, 0]
    order = pieces[np.argsort(squares, kind="stable")]
    is_unmeasured = kind is Violation.ATTENTION
    margins = np.full(len(order), np.inf) if is_unmeasured else np.abs(_margins(answer, order))
    depth = margins if kind is Violation.LABEL else answer.reach[order, 0]
    is_wide = margins > visible.margin
    are_visible = bool(is_wide.any())
    if are_visible:
        order, depth = order[is_wide], depth[is_wide]
    if kind is not Violation.LABEL:
        is_clear = depth > clear_depth(answer, kind, order[:TRIES], visible)
        are_visible &= bool(is_clear.any())
        if is_clear.any():
            order, depth = order[is_clear], depth[is_clear]
    # NaN is the smallest depth.
    deepest = order[np.argmax(np.where(np.isnan(depth), -np.inf, depth))]
    return np.append(order[: TRIES - 1], deepest), are_visible


def clear_depth(answer: Answer, kind: Violation, pieces: np.ndarray, visible: Visible) -> float:
    """The |margin|, or the loss, from which on the file shows a violation; judged by the errors of some pieces."""
    curves, errors = answer.answers.curves, answer.answers.errors
    if kind is Violation.LABEL:
        return visible.margin
    if curves is None or errors is None:
        return answer.delta
    if curves.measure != DISTANCE:
        return answer.delta + CLEAR
    chosen = curves.curve[answer.joint.pieces.region[pieces]]
    return answer.delta + 2.0 * min(errors.coarse, float(errors.of(chosen).min())) * visible.coarser


def _margins(answer: Answer, pieces: np.ndarray) -> np.ndarray:
    """The margins (S,) at the centres of pieces, from the affine logits of their regions."""
    region, centres = answer.joint.pieces.region, answer.joint.polytopes.centres
    blocks = [pieces[start : start + BLOCK] for start in range(0, len(pieces), BLOCK)]
    return np.concatenate([np.zeros(0), *(answer.margin_at(region[block], centres[block]) for block in blocks)])


def piece_claim(answer: Answer, piece: int) -> Claim:
    """The centre of a piece, with the errors of the claimed values."""
    answers, joint = answer.answers, answer.joint
    region = int(joint.pieces.region[piece])
    found = answers.regions

    def attention_slack() -> float:
        # Twice: the point's own maps are computed with the same kind of error as the curve.
        if answers.curves is None or answers.errors is None:
            return np.inf
        curve = answers.curves.curve[region : region + 1]
        error = 2.0 * min(answers.errors.coarse, float(answers.errors.of(curve)[0]))
        if answers.curves.has_shapes:
            own, span = replace(answers.curves, curve=curve), answers.spans.take(np.array([region]))
            wide, narrow = (np.ptp(reaches(own, span, one)[0]) for one in (error, 0.0))
            return float(0.5 * max(wide - narrow, 0.0))
        return answers.curves.measure.slack(answers.curves, int(curve[0]), answers.spans.taus[region], error)

    least, most = joint.pieces.margin[piece]
    # If logits are equal up to rounding, a piece has both signs, and its centre may be on the other side.
    mixed = (-least if joint.pieces.keeps_label[piece] else most) if least < 0.0 < most else 0.0
    return Claim(
        theta=answers.compound.to_theta(joint.polytopes.centres[piece][None])[0],
        bits=unpack(found.patterns[found.pattern[region : region + 1]], answers.compound.hidden),
        label_slack=float(joint.pieces.slack[piece]) + float(mixed),
        attention_slack=attention_slack,
    )


LEAST_SIZE = 1e-6
"""The least volume of a sampled piece, and the least distance of a sample from the facets of a visited region.

Rounding may push a sample out of smaller ones."""

LEAST_DEPTH = 1e-9
"""How far a given theta must be from the facets of the piece whose labels it is compared with."""

SEED = 20244


class Sample(NamedTuple):
    """A theta with its errors (`Claim`), the labels claimed for it, and the number of the unit that claims them."""

    claim: Claim
    label: Kept
    attention: Kept
    unit: int


class Doubts(NamedTuple):
    """Units whose label, or whose attention, a sample contradicts within the error bounds of both."""

    label: list[int]
    attention: list[int]

    def __bool__(self) -> bool:
        return bool(self.label or self.attention)


def piece_samples(answer: Answer, count: int) -> Iterator[Sample]:
    """The centres of the largest pieces, and of some others; units are regions."""
    joint = answer.joint
    # Where strips are wide, the centre may lie in one.
    is_clear = np.maximum(joint.label_strip, joint.attention_strip) < 1e-3 * joint.polytopes.volumes
    for piece in chosen_sizes(joint.polytopes.volumes, count):
        if is_clear[piece]:
            yield _sample(answer, int(piece), piece_claim(answer, int(piece)))


def theta_samples(answer: Answer, thetas: np.ndarray) -> Iterator[Sample]:
    """Given thetas (N, d) with the pieces that they lie in; units are regions."""
    polytopes = answer.joint.polytopes
    for theta in thetas:
        point = answer.compound.to_unit(theta[None])[0]
        piece = polytopes.deepest(point)
        if piece is not None:
            centres, outward = polytopes.take(np.array([piece])).facet_planes(slice(None))
            if ((centres - point) * outward).sum(axis=1).min() > LEAST_DEPTH:
                yield _sample(answer, piece, replace(piece_claim(answer, piece), theta=theta))


def _sample(answer: Answer, piece: int, claim: Claim) -> Sample:
    joint = answer.joint
    label, attention = joint.label_codes[piece], joint.attention_codes[piece]
    return Sample(claim, Kept(int(label)), Kept(int(attention)), int(joint.pieces.region[piece]))


def chosen_sizes(sizes: np.ndarray, count: int) -> np.ndarray:
    """The numbers of the largest units, and of some of the others that are large enough."""
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > LEAST_SIZE]
    largest, others = order[: (count + 1) // 2], order[(count + 1) // 2 :]
    return np.concatenate([largest, np.random.default_rng(SEED).permutation(others)[: count // 2]])
