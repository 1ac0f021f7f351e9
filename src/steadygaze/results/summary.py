"""Results and boundaries as plain data: what `--json` prints and `result.json` stores.

The data holds no timing and no path: the same question gives the same bytes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..boundary import Boundary, Component, Enclave
from ..labels import Kept, Label, Status, Verdict
from ..network.model import Agreement
from ..properties.nearest import Nearest
from ..tolerances import AREA
from .answer import round_up, verdict_from
from .arrays import SCHEMA_VERSION
from .claims import Violation
from .result import DomainResult, Result
from .witness import Witness

SINGLE_THETAS = "Single thetas are proved to violate; how much of the domain does is not decided."
"""Part of the guarantee where a violation is proved, but no share of the domain."""


def summarise(result: Result) -> dict[str, Any]:
    """The answer of a map as numbers, texts, lists and dictionaries with texts as keys; infinite numbers are None."""
    return summarise_domain(result, visited_share=_mapped_share(result), guarantee=_guarantee(result))


def summarise_domain(
    result: DomainResult, *, visited_share: float, guarantee: str, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What the answers of all methods that prove something of the whole domain share, as plain data.

    `area`, `ar_at_delta` and `nearest` hold proved bounds (low, high); `guarantee` says what they rest on; `more` is
    what only the one method knows.
    """
    question, answer = result.question, result.answer
    return {
        "schema_version": SCHEMA_VERSION,
        "method": result.method,
        "verdict": result.verdict.value,
        "status": _status(result).value,
        "property": question.property.value,
        "label": result.label,
        "label_name": question.names[result.label],
        "regions": result.region_count,
        "visited": result.region_count,
        "visited_share": visited_share,
        "face_checks": 0,
        "lps": 0,
        "area": {name: list(bounds) for name, bounds in result.areas.items()},
        "nearest": {name: nearest_summary(found) for name, found in result.nearest.items()},
        "delta": {"text": str(result.delta), "value": answer.delta, "map_size": result.map_size},
        "ar_at_delta": _kept_shares(result),
        "sets": dict(answer.sets),
        "tiling_error": result.checked.tiling_error,
        "sliver_share": result.sliver_share,
        "guarantee": guarantee,
        **(more or {}),
        "complete": result.is_complete,
        "stopped": result.stopped,
        **question.describe(),
        "notes": [*question.notes, *result.findings.notes],
        "witnesses": [_witness(witness, question.names) for witness in result.witnesses],
    }


def agreement_text(agreement: Agreement) -> str:
    """One sentence on how well the model file agrees with what was read from it."""
    return agreement.sentence


def kinks_text(share: float) -> str:
    """One sentence on where the attention is undecided between regions; the share is rounded up.

    >>> kinks_text(1.23e-10)
    'On kinks, the borders between regions, the attention is undecided: a share of at most 1.3e-10.'
    """
    return (
        f"On kinks, the borders between regions, the attention is undecided: a share of at most {round_up(share, 2):g}."
    )


def violating_theta(summary: Mapping[str, Any], name: str) -> Sequence[float] | None:
    """A theta where CR, or AR, is proved to be violated: the nearest, or else a witness; None where none is known."""
    chosen = (Violation.LABEL,) if name == Label.CR else (Violation.ATTENTION, Violation.EVIDENCE)
    kinds = [kind.value for kind in chosen]
    others = [witness["theta"] for witness in summary.get("witnesses", ()) if witness["kind"] in kinds]
    return next((theta for theta in (summary["nearest"][name]["theta"], *others) if theta is not None), None)


def _status(result: DomainResult) -> Status:
    """How the run ended, in the words of the searches: a limit comes first, whatever was proved until then."""
    if result.stopped is not None:
        return Status.stopped_by(result.stopped)
    found = {Verdict.ROBUST: Status.ROBUST, Verdict.NOT_ROBUST: Status.NOT_ROBUST}
    return found.get(result.verdict, Status.FAILED)


def _mapped_share(result: Result) -> float:
    total = float(result.answers.regions.polytopes.volumes.sum())
    return 1.0 if abs(total - 1.0) <= AREA else total


def _kept_shares(result: DomainResult) -> dict[str, Any]:
    shares: dict[str, Any] = {name: list(bounds) for name, bounds in result.kept_shares.items()}
    return shares | {"all": result.enough_delta}


def nearest_summary(found: Nearest) -> dict[str, Any]:
    """A nearest violation as plain data; None stands for infinity, or for no violation."""
    theta = None if found.theta is None else found.theta.tolist()
    return {"low": _finite(found.low), "high": _finite(found.high), "theta": theta}


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _guarantee(result: Result) -> str:
    kinks, undecided = result.sliver_share, result.answer.shares.undecided
    reached = float(result.answers.regions.polytopes.volumes.sum())
    sentences = []
    if not result.is_complete:
        # Rounded down: never more than was mapped.
        share = math.floor(1e4 * min(reached, 1.0)) / 1e2
        sentences.append(
            f"Partial: {share:g}% of the domain was mapped, then the run ended ({result.stopped}); "
            "the rest counts as undecided."
        )
        undecided = max(0.0, undecided - (1.0 - reached))
    sentences.append(
        "Proved for the real-valued network, by float64 arithmetic with error bounds or by exact arithmetic."
    )
    by_shares = verdict_from(result.answer.shares, result.question.property)
    if result.verdict is Verdict.NOT_ROBUST and by_shares is not Verdict.NOT_ROBUST:
        sentences.append(SINGLE_THETAS)
    if kinks > 0.0:
        sentences.append(kinks_text(kinks))
    part = f"A share of {round_up(undecided, 2):g}" if undecided > 0.0 else "Nothing"
    sentences.append(f"{part} is undecided{' where the domain was mapped' if not result.is_complete else ''}.")
    sentences.append(agreement_text(result.agreement))
    return " ".join(sentences)


def _witness(witness: Witness, names: tuple[str, ...]) -> dict[str, Any]:
    point, replay, check = witness.point, witness.replay, witness.map_check
    return {
        "kind": witness.kind.value,
        "theta": point.theta.tolist(),
        "label": point.label,
        "label_name": names[point.label],
        "margin": point.margin,
        "inconsistency": point.inconsistency,
        "is_deep": witness.is_deep,
        "remark": witness.remark,
        "logits": np.asarray(point.logits).tolist(),
        "replay": {
            "difference": replay.difference,
            "tolerance": replay.tolerance,
            "label_name": None if replay.label is None else names[replay.label],
            "agrees": replay.agrees,
        },
        "map_check": {
            "is_checkable": check.is_checkable,
            "classes": list(check.classes),
            "checked": check.checked,
            "skipped": check.skipped,
            "difference": check.difference,
            "tolerance": check.tolerance,
            "agrees": check.agrees,
        },
    }


def summarise_boundary(result: DomainResult, boundary: Boundary) -> dict[str, Any]:
    """A boundary as numbers, texts, lists and dictionaries with texts as keys; `verdict` is that of its property."""
    question = result.question
    return {
        "schema_version": SCHEMA_VERSION,
        "method": result.method,
        "verdict": result.verdict_of(boundary.wanted).value,
        "property": boundary.wanted.value,
        "label": result.label,
        "label_name": question.names[result.label],
        "delta": {"text": str(result.delta), "value": result.answer.delta, "map_size": result.map_size},
        "domain": question.describe()["domain"],
        "model": {"name": question.model_name, "sha256": question.model.sha256, "classes": question.model.classes},
        "image": {"name": question.image_name, "shape": list(question.perturbed.x0.shape)},
        "regions": result.region_count,
        "satisfying_share": boundary.satisfying_share,
        "reachable_share": boundary.reachable_share,
        "unreachable_share": boundary.unreachable_share,
        "enclosed_share": boundary.enclosed_share,
        "farthest": _farthest(boundary),
        "components": [_component(component) for component in boundary.components],
        "enclaves": [_enclave(enclave) for enclave in boundary.enclaves],
        "starts": boundary.starts,
        "sliver_share": result.sliver_share,
        "undecided": {
            "share": boundary.share(boundary.kept == Kept.UNKNOWN),
            "pieces_beside": len(boundary.undecided),
            "strip_share": boundary.strip_share,
        },
    }


def _farthest(boundary: Boundary) -> dict[str, Any] | None:
    if boundary.farthest is None:
        return None
    return {"theta": boundary.farthest.tolist(), "distance": boundary.distance}


def _component(component: Component) -> dict[str, Any]:
    return {
        "measure": component.measure,
        "touches_border": component.touches_border,
        "share_beyond": component.share,
        "inner_regions": component.inner.tolist(),
        "outer_regions": component.outer.tolist(),
    }


def _enclave(enclave: Enclave) -> dict[str, Any]:
    return {
        "share": enclave.share,
        "satisfying_share": enclave.satisfying_share,
        "measure": enclave.measure,
        "nearest": {"theta": enclave.theta.tolist(), "distance": enclave.distance},
        "regions": enclave.regions.tolist(),
        "inner_regions": enclave.inner.tolist(),
        "outer_regions": enclave.outer.tolist(),
    }
