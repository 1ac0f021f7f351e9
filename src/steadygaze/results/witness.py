"""Witnesses: for each kind of violation one theta strictly inside it, replayed through the model file.

Proved bounds at the theta, over a box without extent, test each claim; they share nothing with regions, patterns or
their error bounds. A confirmed claim is a violation, even if onnxruntime cannot show it in the file's float type: then
it is flagged. A claim that stays open is skipped. A claim refuted beyond all error bounds means that a proof is false:
it raises InternalError, and there is no answer.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..attention.gradients import pattern_at
from ..attention.methods import GradientMethod
from ..bounds.bounder import Bounder
from ..budget import OPTIONAL, is_over
from ..errors import InternalError, ModelError
from ..labels import Joint, Property, Verdict
from ..network.model import LEAST_SHARE
from ..network.replay import FileRounding, estimate_rounding
from ..properties.hull_proof import TiedPoints
from ..properties.pattern_points import has_windows
from ..question import Question
from ..threshold import Threshold
from ..tolerances import UNIT, UNKNOWN
from .claims import Claim, Violation, Visible
from .map_check import MapCheck, check_losses, check_maps
from .point import Point
from .result import Result


@dataclass(frozen=True)
class Enclosed:
    """Proved bounds (low, high) of the margin and of the inconsistency at a theta; infinite ends bound nothing."""

    margin: tuple[float, float]
    inconsistency: tuple[float, float]


class Enclosing:
    """Encloses single thetas of one problem."""

    def __init__(self, question: Question) -> None:
        self.question = question

    def at(self, theta: np.ndarray, delta: float | None = None) -> Enclosed:
        """Bounds at theta (d,); those of the inconsistency only for an absolute δ that it is compared with."""
        if self._bounder is None:
            return Enclosed(UNKNOWN, UNKNOWN)
        compound = self.question.compound
        # Conversion between theta and t costs a few roundings; the bounds of the pixels allow for more.
        place = compound.domain.to_unit(theta[None])
        cell = self.question.perturbed.cell_of(theta).index
        found = self._bounder.bound(cell, place, place, np.array([delta is not None]))
        inconsistency = _ends(found.inconsistency[0])
        if delta is not None and inconsistency[0] <= delta < inconsistency[1]:
            low, high = self._tied.inconsistency(theta)
            inconsistency = max(inconsistency[0], low), min(inconsistency[1], high)
        return Enclosed(_ends(found.margin[0]), inconsistency)

    @cached_property
    def _bounder(self) -> Bounder | None:
        question = self.question
        try:
            return Bounder(
                question.graph, question.perturbed, question.label, question.attention,
                prove_original=question.compound.prove_original,
            )  # fmt: skip
        except ModelError:  # weights so small that products with them vanish
            return None

    @cached_property
    def _tied(self) -> TiedPoints:
        assert self._bounder is not None
        return TiedPoints(self.question.compound, self._bounder)


def _ends(bounds: np.ndarray) -> tuple[float, float]:
    """Bounds as numbers; infinite if an end is NaN."""
    low, high = (float(end) for end in bounds)
    return (low, high) if low <= high else UNKNOWN


__all__ = [
    "Enclosing",
    "Findings",
    "LogitReplay",
    "Violation",
    "Witness",
    "find_witnesses",
    "is_pattern",
    "reproduction",
]

_NAMES = {
    Violation.LABEL: "the lost label",
    Violation.ATTENTION: "the lost attention",
    Violation.EVIDENCE: "the same label with other evidence",
}


@dataclass(frozen=True, eq=False)
class LogitReplay:
    """The logits (K,) of onnxruntime for the witness's image, and their largest difference from the graph's.

    The tolerance is the estimated effect of rounding in the file's float type (see `network.replay`). Either is
    None if it is not finite. shows_label: whether the replay keeps or loses the label as the witness does, if the label
    is part of the claim.
    """

    logits: np.ndarray
    difference: float | None
    tolerance: float | None
    shows_label: bool

    @property
    def label(self) -> int | None:
        """The class that onnxruntime predicts; None if a logit is not finite."""
        return int(np.argmax(self.logits)) if np.isfinite(self.logits).all() else None

    @property
    def is_explained(self) -> bool:
        """Whether all logits are finite and within the tolerance."""
        return self.difference is not None and self.tolerance is not None and self.difference <= self.tolerance

    @property
    def agrees(self) -> bool:
        """Whether the replay shows the violation, with logits within the tolerance."""
        return self.shows_label and self.is_explained


@dataclass(frozen=True, eq=False)
class Witness:
    """A theta that violates, with everything about it.

    is_deep: its margin exceeds twice the replay tolerance (if the label is part of the claim), and its inconsistency
    exceeds δ by more than the error of the maps in the file's float type (if attention is). remark: how onnxruntime
    differs there, in words; None if it does not.
    """

    kind: Violation
    point: Point
    is_deep: bool
    replay: LogitReplay
    map_check: MapCheck
    remark: str | None = None

    def __repr__(self) -> str:
        return f"Witness({self.kind.value}, {self.point!r})"


class Findings(NamedTuple):
    """The witnesses of a result, and sentences about those that are missing or that onnxruntime does not show."""

    witnesses: tuple[Witness, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Candidate:
    point: Point
    bits: list[np.ndarray]
    rounding: FileRounding
    tolerance: float
    is_deep: bool


def find_witnesses(result: Result) -> Findings:
    """One witness for each kind of violation that the result claims, in the order label, attention, both.

    Each is the first claim that is deep enough for the float type of the model file, else the first confirmed one that
    onnxruntime shows, else the first confirmed one, flagged. Raises InternalError if proved bounds refute a claim. Once
    the run is over, no theta is tried any more.
    """
    enclosing = Enclosing(result.question)
    witnesses, notes = [], []
    for kind in Violation:
        if is_over(result.budget, OPTIONAL):
            if _is_proved(result, kind):
                notes.append(f"there is no witness of {_NAMES[kind]}: the run ended before any theta was tried")
            continue
        candidate, tried = _find(result, kind, enclosing)
        if candidate is not None:
            if kind is not Violation.EVIDENCE and _verdict(result, kind) is Verdict.ROBUST:
                raise InternalError(
                    f"the result claims that the {kind.value} is kept everywhere, but theta "
                    f"{candidate.point.theta.tolist()!r} violates it (margin {candidate.point.margin!r}, inconsistency "
                    f"{candidate.point.inconsistency!r}), as proved bounds confirm. {_reproduction(result)}"
                )
            witness = _replayed(result, kind, candidate)
            witnesses.append(witness)
            if witness.remark is not None:
                notes.append(f"the witness of {_NAMES[kind]} is real, but {witness.remark}")
        elif tried and _is_proved(result, kind):
            notes.append(
                f"there is no witness of {_NAMES[kind]}: each of the {tried} thetas tried is too close to a "
                f"threshold to decide in float64{_ties(result, kind)}"
            )
    return Findings(tuple(witnesses), tuple(notes))


def _find(result: Result, kind: Violation, enclosing: Enclosing) -> tuple[_Candidate | None, int]:
    """The best candidate, and how many thetas were tried."""
    best: _Candidate | None = None
    is_shown = False
    tried = 0
    visible = Visible.through(result.question, result.agreement.scale)
    for claim in result.tiling.claims(result.answer, kind, visible):
        if tried and is_over(result.budget, OPTIONAL):
            break
        if is_shown and not claim.is_visible:
            continue  # it is not deep: the one found is as good
        tried += 1
        candidate = _examine(result, kind, claim, enclosing)
        if candidate is None:
            continue
        if candidate.is_deep:
            return candidate, tried
        # onnxruntime may still show one that is not deep.
        if not is_shown:
            shows = _replay(result, kind, candidate).agrees
            if best is None or shows:
                best, is_shown = candidate, shows
    return best, tried


def _is_proved(result: Result, kind: Violation) -> bool:
    if kind is Violation.EVIDENCE:
        return result.areas[Joint.LABEL_ALONE][0] > 0.0
    return _verdict(result, kind) is Verdict.NOT_ROBUST


def _verdict(result: Result, kind: Violation) -> Verdict:
    return result.verdict_of(Property.CR if kind is Violation.LABEL else Property.AR)


def _ties(result: Result, kind: Violation) -> str:
    """A further reason why the attention at a theta may be open."""
    if kind is Violation.LABEL or not has_windows(result.question.graph):
        return ""
    return ", or entries of a maximum tie there and bounds cannot tell which one counts"


class _Tested(NamedTuple):
    """One part of a claim: proved bounds of a value that must be positive, and the error bound of the claim itself."""

    low: float
    high: float
    slack: float


def _examine(result: Result, kind: Violation, claim: Claim, enclosing: Enclosing) -> _Candidate | None:
    """The theta of a claim, or None if float64 cannot confirm it; InternalError if it is refuted."""
    tests = list(_tests(result, kind, claim, enclosing))
    for test in tests:
        # NaN and infinity refute nothing.
        if test.high < -test.slack:
            raise InternalError(_refutation(result, kind, claim, test))
    if not claim.is_exact and not all(0.0 < test.low < np.inf for test in tests):
        return None
    point = result.at(claim.theta)
    model = result.question.model
    rounding = estimate_rounding(result.question.graph, point.image.ravel(), model.replay.float_type)
    tolerance = _tolerance(rounding, point)
    is_deep = True
    if kind is not Violation.ATTENTION:
        is_deep = abs(point.margin) > 2.0 * tolerance
    if kind is not Violation.LABEL:
        # Error bounds are proportional to the unit roundoff.
        error = claim.attention_slack() * model.replay.float_type.unit / UNIT
        is_deep &= point.inconsistency - result.answer.delta > error
    return _Candidate(
        point, pattern_at(result.question.graph, point.image.reshape(1, -1)), rounding, tolerance, is_deep
    )


def _tests(result: Result, kind: Violation, claim: Claim, enclosing: Enclosing) -> Iterator[_Tested]:
    """The values that must be positive for the claim to hold, as proved bounds at its theta."""
    delta = result.answer.delta
    found = enclosing.at(claim.theta, None if kind is Violation.LABEL else delta)
    low, high = found.margin
    if kind is Violation.LABEL:
        yield _Tested(-high, -low, claim.label_slack)
    if kind is Violation.EVIDENCE:
        yield _Tested(low, high, claim.label_slack)
    if kind is not Violation.LABEL:
        low, high = found.inconsistency
        yield _Tested(
            low - delta, high - delta, claim.attention_slack() if has_pattern(result.question, claim) else np.inf
        )


def has_pattern(question: Question, claim: Claim) -> bool:
    """Whether a plain pass finds the pattern of the claim; the error of the claimed maps holds only for that one."""
    image = question.perturbed.image(claim.theta)
    return is_pattern(claim, pattern_at(question.graph, image.reshape(1, -1)))


def is_pattern(claim: Claim, plain: list[np.ndarray]) -> bool:
    """Whether a claim is about this pattern, given as one array (1, n) of bits per ReLU layer."""
    return claim.bits is None or all((a == b).all() for a, b in zip(claim.bits, plain, strict=True))


def _refutation(result: Result, kind: Violation, claim: Claim, test: _Tested) -> str:
    """The data to reproduce a false claim, in one line."""
    point = result.at(claim.theta)
    return (
        f"the result claims a violation ({kind}) at theta {claim.theta.tolist()!r}, but proved bounds there refute it: "
        f"a value that must be positive, up to an error of {test.slack!r}, lies between {test.low!r} and {test.high!r} "
        f"(a plain evaluation gives margin {point.margin!r} and inconsistency {point.inconsistency!r}). "
        f"{_reproduction(result)}"
    )


def reproduction(question: Question, threshold: Threshold, method: str, options: Sequence[str]) -> str:
    """The facts for a report of a false claim: the command, the hash of the model, and the threshold as a number."""
    command = [*question.words(threshold, question.image_name), "--method", method, *options]
    return (
        f"Nothing is delivered. Please report it with the model and the image: `{shlex.join(command)}` (model SHA-256 "
        f"{question.model.sha256}, label {question.label}, limit {question.limit(threshold)!r})"
    )


def _reproduction(result: Result) -> str:
    return reproduction(result.question, result.threshold, result.method, result.tiling.words())


def _tolerance(rounding: FileRounding, point: Point) -> float:
    """The error of a replayed logit; infinite if a value leaves the range of the file's float type."""
    return max(rounding.effect, LEAST_SHARE * float(np.abs(point.logits).max()))


def _replay(result: Result, kind: Violation, chosen: _Candidate) -> LogitReplay:
    """The logits of a candidate by onnxruntime, beside its own."""
    logits = result.question.model.replay.logits(chosen.point.image[None])[0]
    is_finite = bool(np.isfinite(logits).all())
    is_kept = is_finite and int(np.argmax(logits)) == result.label
    return LogitReplay(
        logits,
        float(np.abs(logits - chosen.point.logits).max()) if is_finite else None,
        chosen.tolerance if np.isfinite(chosen.tolerance) else None,
        shows_label=is_finite and (kind is Violation.ATTENTION or is_kept == (kind is Violation.EVIDENCE)),
    )


def _replayed(result: Result, kind: Violation, chosen: _Candidate) -> Witness:
    point, replay = chosen.point, _replay(result, kind, chosen)
    check = _check(result, chosen)
    if check.is_refuted:
        raise InternalError(
            f"the attention maps at theta {point.theta.tolist()!r} differ from finite differences by "
            f"{check.difference!r} (tolerance {check.tolerance!r}), and proved bounds in float64 refute them too; "
            "nothing is delivered, please report this model and image"
        )
    return Witness(kind, point, chosen.is_deep, replay, check, _remark(result, replay, check))


def _check(result: Result, chosen: _Candidate) -> MapCheck:
    """The maps of a candidate through the model file, as far as it shows them."""
    point, model, method = chosen.point, result.question.model, result.question.attention.method
    classes, noise = _compared_classes(result, point), _map_tolerance(result, chosen)
    if isinstance(method, GradientMethod):
        neurons = chosen.rounding.neurons
        return check_maps(model, point.image, chosen.bits, classes, noise, neurons=neurons, method=method)
    copies = method.copies(model.input_shape)
    if copies is not None:
        return check_losses(model, point.image, classes, noise, copies)
    # The file gives logits alone: nothing shows values and gradients of a layer in between.
    return MapCheck(tuple(int(number) for number in classes), 0, 0, None, None)


def _map_tolerance(result: Result, chosen: _Candidate) -> float:
    """The error of a replayed logit of the image, or of any copy that the method reads."""
    model, method = result.question.model, result.question.attention.method
    copies = method.copies(model.input_shape)
    if copies is None:
        return chosen.tolerance
    kind, images = model.replay.float_type, copies.images(chosen.point.image)
    effects = [estimate_rounding(model.graph, image.ravel(), kind).effect for image in images]
    return max(*effects, LEAST_SHARE * float(np.abs(model.graph.logits(images)).max()))


def _remark(result: Result, replay: LogitReplay, check: MapCheck) -> str | None:
    """How the model file differs from the witness, as parts of a sentence."""
    kind, parts = result.question.model.replay.float_type.name, []
    by = f"onnxruntime, in {kind},"
    if replay.label is None:
        parts.append(f"{by} gives NaN or infinite logits there")
    elif not replay.shows_label:
        name, is_kept = result.question.names[replay.label], replay.label == result.label
        what = f"{by} {'still ' if is_kept else ''}predicts {name} there"
        parts.append(f"{what}: the violation is smaller than {kind} can show" if replay.is_explained else what)
    if replay.difference is not None and not replay.is_explained:
        limit = "unknown" if replay.tolerance is None else f"{replay.tolerance:.2g}"
        parts.append(f"{by} gives logits that differ by {replay.difference:.2g}, more than its rounding ({limit})")
    if check.agrees is False:
        parts.append(f"finite differences through onnxruntime, in {kind}, do not show its attention maps")
    return "; ".join(parts) or None


def _compared_classes(result: Result, point: Point) -> np.ndarray:
    """The label and the largest other logit, among the classes whose maps are compared."""
    chosen = result.question.attention.chosen(len(point.logits))
    order = np.lexsort((-point.logits[chosen], chosen != result.label))
    return chosen[order[:2]]
