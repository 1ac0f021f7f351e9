"""The summary of a result: one typed record for every method, which `--json` prints and `result.json` stores.

It holds no timings and no paths: the same question gives the same bytes.
"""

import builtins
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec
import numpy as np
from msgspec import Struct

from ..attention.asking import AttentionFacts
from ..attention.measures import Measure
from ..attention.measures.distance import DISTANCE
from ..attention.measures.wording import Stated
from ..errors import StoreError
from ..labels import Label, Property, Status, Verdict
from ..properties.nearest import Nearest
from ..properties.pattern_points import has_windows
from ..question_facts import DomainFacts, ImageFacts, ModelFacts
from ..words import percent_up, share_between
from .arrays import SCHEMA_VERSION
from .claims import Violation
from .result import Result
from .strayed import Strayed, find_strayed
from .witness import Witness

Bounds = tuple[float, float]
SINGLE_THETAS = "Single thetas are proved to violate the property; the violating share of the domain is undecided."
"""Part of the guarantee where a violation is proved, but no share of the domain."""


NAMED_TIES = 5e-4


class ThresholdFacts(Struct, frozen=True):
    """A threshold as given, the largest loss that it allows, and the base of relative thresholds.

    For distances these are δ, δ as a number, and the size of the original maps.
    """

    text: str
    value: float
    map_size: float


class NearestFacts(Struct, frozen=True):
    """A nearest violation; None stands for infinity, or for no violation."""

    low: float | None
    high: float | None
    theta: list[float] | None

    @classmethod
    def of(cls, found: Nearest) -> Self:
        """The facts of a nearest violation."""
        theta = None if found.theta is None else found.theta.tolist()
        return cls(_finite(found.low), _finite(found.high), theta)


class ReplayFacts(Struct, frozen=True):
    """The logits that onnxruntime gives for a witness, against those of the graph."""

    difference: float | None
    tolerance: float | None
    agrees: bool
    label_name: str | None = None


class MapCheckFacts(Struct, frozen=True):
    """The attention maps of a witness against finite differences through onnxruntime."""

    is_checkable: bool
    classes: list[int]
    checked: int
    skipped: int
    difference: float | None
    tolerance: float | None
    agrees: bool | None


class WitnessFacts(Struct, frozen=True):
    """A witness: its kind, theta, values and replays."""

    kind: str
    theta: list[float]
    label: int
    label_name: str
    margin: float
    inconsistency: float
    is_deep: bool
    logits: list[float]
    replay: ReplayFacts
    map_check: MapCheckFacts
    remark: str | None = None

    @classmethod
    def of(cls, witness: Witness, names: Sequence[str]) -> Self:
        """The facts of a witness."""
        point, replay, check = witness.point, witness.replay, witness.map_check
        return cls(
            kind=witness.kind.value, theta=point.theta.tolist(), label=point.label, label_name=names[point.label],
            margin=point.margin, inconsistency=point.inconsistency, is_deep=witness.is_deep, remark=witness.remark,
            logits=np.asarray(point.logits).tolist(),
            replay=ReplayFacts(
                replay.difference, replay.tolerance, replay.agrees,
                None if replay.label is None else names[replay.label],
            ),
            map_check=MapCheckFacts(
                check.is_checkable, [int(number) for number in check.classes], check.checked, check.skipped,
                check.difference, check.tolerance, check.agrees,
            ),
        )  # fmt: skip


class StrayedFacts(Struct, frozen=True):
    """The nearest known theta that loses the attention.

    left: how much attention is left there, in words. place: where the attention is instead, seen from the object;
    pixels: the rows and columns of that place. Both are empty if the property gives no place.
    """

    theta: list[float]
    is_nearest: bool
    loss: float
    loss_before: float | None
    left: str
    place: str
    pixels: list[list[int]]

    @classmethod
    def of(cls, found: Strayed, measure: Measure, stated: Stated) -> Self:
        """The facts of a theta that loses the attention."""
        point, before = found.point, found.before
        return cls(
            theta=point.theta.tolist(), is_nearest=found.is_nearest, loss=point.inconsistency, loss_before=before,
            left=measure.left_text(stated, before, point.inconsistency), place=found.place,
            pixels=[] if found.pixels is None else np.argwhere(found.pixels).tolist(),
        )  # fmt: skip


class AnswerFacts(Struct, frozen=True, kw_only=True):
    """The part that results and boundaries share: the question, and how it was answered.

    kind: "map", "refinement" or "search"; earlier versions did not store it.
    """

    schema_version: int
    method: str = "map"
    kind: str
    verdict: Verdict
    property: Property
    label: int
    label_name: str
    delta: ThresholdFacts
    domain: DomainFacts
    model: ModelFacts
    image: ImageFacts
    sliver_share: float | None
    attention: AttentionFacts

    @builtins.property  # a field has that name
    def measure(self) -> Measure:
        """The property of attention in the question."""
        return self.attention.measure()

    @builtins.property  # a field has that name
    def stated(self) -> Stated:
        """The threshold for sentences."""
        # Earlier versions stored the threshold here only.
        found = self.attention.stated(self.delta.value, self.delta.map_size)
        return found if found.text else found._replace(text=self.delta.text)

    def plain(self) -> dict[str, Any]:
        """The facts as JSON has them: numbers, texts, lists and dictionaries."""
        return json.loads(json.dumps(msgspec.to_builtins(self)))


class Summary(AnswerFacts, frozen=True, kw_only=True):
    """The answer of any method. None: the method does not know the fact.

    area: proved bounds of the shares of the domain. ar_at_delta: the share of AR at other thresholds, and under "all"
    the smallest δ known to make everything AR. at_threshold: the same for any property, in the unit of its threshold;
    zero_attention_share: the share of the domain whose maps are zero everywhere (not for distances). sets: regions by
    label, None if the label was not asked for; undecided counts the others. visited_share: the share of the domain
    mapped, decided or visited. Refinements fill boxes, guarantee_shares, until, goal and relaxation; searches following
    to line. strayed: where the attention goes at the nearest known theta that loses it (not for distances). ties: for
    networks with maxima over windows, the share of the domain whose attention depends on the rule that the first of
    equal entries wins.
    """

    status: Status = Status.FAILED
    regions: int = 0
    visited: int = 0
    visited_share: float = 1.0
    face_checks: int = 0
    lps: int = 0
    area: dict[str, Bounds] = {}
    nearest: dict[str, NearestFacts] | None = None
    ar_at_delta: dict[str, Bounds | float | None] | None = None
    at_threshold: dict[str, Bounds | float | None] | None = None
    zero_attention_share: Bounds | msgspec.UnsetType | None = msgspec.UNSET
    sets: dict[str, int | None]
    undecided: dict[str, int | None] | None = None
    tiling_error: float | None = None
    guarantee: str
    measures: list[str] = msgspec.field(default_factory=lambda: ["label", "attention"])
    guarantee_shares: dict[str, float] | None = None
    boxes: dict[str, int] | None = None
    until: float | str | None = None
    goal: str | None = None
    relaxation: str | None = None
    following: int | None = None
    failures: int | None = None
    components: list[dict[str, int]] | None = None
    confirmation: str | None = None
    w_delta: float | None = None
    line: list[float] | None = None
    ties: dict[str, Bounds] | msgspec.UnsetType = msgspec.UNSET
    strayed: StrayedFacts | msgspec.UnsetType | None = msgspec.UNSET
    complete: bool
    stopped: str | None
    notes: list[str]
    witnesses: list[WitnessFacts] = []

    @classmethod
    def read(cls, content: Mapping[str, Any], place: object) -> Self:
        """The summary in the content of a `result.json`; StoreError names the place if it is incomplete."""
        kind = "search" if "area" not in content else "refinement" if content.get("boxes") else "map"
        try:
            return msgspec.convert({"kind": kind} | dict(content), cls)
        except msgspec.ValidationError as error:
            raise StoreError(
                f"{place}: result.json is not complete ({error}); the result is damaged: run the verification again"
            ) from None

    @property
    def is_search(self) -> bool:
        """Whether the method visits regions one by one; the others cover the whole domain."""
        return self.kind == "search"

    @property
    def knows_shares(self) -> bool:
        """Whether `area` bounds shares of the whole domain: always, except for searches of a part of it."""
        return not self.is_search or self.sliver_share is not None

    @property
    def is_measured(self) -> bool:
        """Whether attention was measured."""
        return "attention" in self.measures

    @property
    def contains_zero(self) -> bool:
        """Whether the domain contains the unperturbed image."""
        return all(low <= 0.0 <= high for low, high in zip(self.domain.low, self.domain.high, strict=True))

    @property
    def tie_share(self) -> Bounds | None:
        """The share of the domain whose attention depends on the rule for ties; None without maxima."""
        return self.ties["share"] if isinstance(self.ties, dict) else None

    def violating_theta(self, name: str) -> Sequence[float] | None:
        """A theta proved to violate CR, or AR: the nearest, or else a witness; None if none is known."""
        chosen = (Violation.LABEL,) if name == Label.CR else (Violation.ATTENTION, Violation.EVIDENCE)
        nearest = [] if self.nearest is None else [self.nearest[name].theta]
        thetas = [*nearest, *(witness.theta for witness in self.witnesses if witness.kind in chosen)]
        return next((theta for theta in thetas if theta is not None), None)


def summarise(result: Result) -> Summary:
    """The summary of a result."""
    question, answer, tiling = result.question, result.answer, result.tiling
    facts = question.describe()
    more: dict[str, Any] = {
        "regions": result.region_count,
        "visited": result.region_count,
        "sets": dict(answer.sets),
        "undecided": answer.undecided_counts,
        "measures": result.measures,
        "tiling_error": None if result.checked is None else result.checked.tiling_error,
    }
    told = question.attention.measure.relative_notes(result.stated) if question.property.asks_attention else ()
    notes = [*facts.notes, *told]
    if tiling.answers_any_delta:
        if result.skips_other_deltas and question.attention.measure.option is not None:
            others = f"at other {question.attention.measure.thresholds_word}"
            notes.append(f"the shares {others} are left out: the run ended before they were computed")
        shares: dict[str, Bounds | float | None] = dict(result.kept_shares)
        measure, enough = question.attention.measure, result.enough_delta
        reached = None if enough is None else measure.threshold_at(enough, question.base)
        more["at_threshold"] = shares | {"all": reached if reached is None or reached > 0.0 else None}
        if measure == DISTANCE:
            more["at_threshold"]["all"] = enough
            more["ar_at_delta"] = more["at_threshold"]
        more["nearest"] = {str(name): NearestFacts.of(found) for name, found in result.nearest.items()}
        more["witnesses"] = [WitnessFacts.of(witness, question.names) for witness in result.witnesses]
    if question.attention.measure != DISTANCE:
        found = find_strayed(result)
        more["zero_attention_share"] = result.zero_share
        more["strayed"] = None if found is None else StrayedFacts.of(found, question.attention.measure, result.stated)
    if result.tie_share is not None:
        more["ties"] = {"share": result.tie_share}
    more |= {
        "status": result.status,
        "visited_share": answer.coverage,
        "area": {str(name): bounds for name, bounds in result.areas.items()},
        "guarantee": tiling.guarantee(result) + (FINGERPRINTS if has_windows(result.question.model.graph) else ""),
        "complete": result.is_complete,
        "stopped": None if result.stopped is None else str(result.stopped),
        "notes": [*notes, *result.findings.notes],
    }
    return Summary(**common_facts(result, result.verdict, question.property) | more | tiling.facts(answer))


def common_facts(result: Result, verdict: Verdict, wanted: Property) -> dict[str, Any]:
    """The fields of `AnswerFacts` for a result, and a verdict on a property."""
    question = result.question
    facts = question.describe()
    return {
        "schema_version": SCHEMA_VERSION,
        "method": result.method,
        "kind": result.tiling.kind,
        "verdict": verdict,
        "property": wanted,
        "label": result.label,
        "label_name": question.names[result.label],
        "delta": _threshold(result),
        "domain": facts.domain,
        "model": facts.model,
        "image": facts.image,
        "sliver_share": result.sliver_share,
        "attention": AttentionFacts.of(question.attention, result.threshold),
    }


def _threshold(result: Result) -> ThresholdFacts:
    text = result.question.attention.measure.threshold_text(result.threshold)
    return ThresholdFacts(text or "", result.answer.delta, result.question.base)


def kinks_text(share: float) -> str:
    """One sentence on kinks, where the attention is undecided; the share is rounded up.

    >>> kinks_text(1.23e-10)
    'On kinks, the borders between regions, the attention is undecided: at most 1.3e−8 % of the domain.'
    """
    most = percent_up(share)
    return f"On kinks, the borders between regions, the attention is undecided: at most {most} of the domain."


FINGERPRINTS = (
    " Attention relies on one step that is not a proof: fingerprints decide which entries of a maximum are equal on a "
    "whole region, and mistake an unequal pair for equal with a probability of about 2⁻⁶¹."
)


TIE_RULE = "the attention depends on the rule (the first one wins)."


def ties_sentences(share: Bounds | None) -> list[str]:
    """A sentence on the share of the domain whose attention depends on the rule for ties, unless it is none.

    A share of less than `NAMED_TIES` that is not proved to be above zero is left out.

    >>> ties_sentences((0.25, 0.25))
    ['In 25.00 % of the domain entries of a maximum tie, and the attention depends on the rule (the first one wins).']
    >>> ties_sentences((0.0, 1e-9)), ties_sentences(None)
    ([], [])
    >>> ties_sentences((0.0, 1.0))
    ['It is not known where entries of a maximum tie and the attention depends on the rule (the first one wins).']
    """
    if share is None or (share[0] <= 0.0 and share[1] < NAMED_TIES):
        return []
    if share[0] <= 0.0 and share[1] >= 1.0:
        return [f"It is not known where entries of a maximum tie and {TIE_RULE}"]
    return [f"In {share_between(*share)} of the domain entries of a maximum tie, and {TIE_RULE}"]


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
