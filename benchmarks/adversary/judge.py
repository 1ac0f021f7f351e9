"""Asks the verifier, and compares its answer with the exact truth: errors in sentences, and violations found."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import steadygaze
from steadygaze.budget import Budget, Limits
from steadygaze.errors import InternalError, SteadygazeError

from .oracle import Oracle, Question, Truth

ENGINES = ("map", "refine", "bfs", "gbs", "boundary")
WHOLE = ("map", "refine")
"""Engines that answer for the whole domain, with shares."""

ROUNDING = Fraction(1, 10**12)
"""Shares are sums of areas in float64; an interval may miss the truth by this much."""


@dataclass(frozen=True)
class Answer:
    """The answer of one engine: verdict (also "refused" and "crashed"), shares, slivers, witnesses (kind, theta)."""

    engine: str
    verdict: str
    seconds: float
    shares: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    sliver_share: float = 0.0
    witnesses: Sequence[tuple[str, tuple[float, ...]]] = ()
    message: str = ""


def ask(path: Path, question: Question, wanted: str, engine: str, *, limit_seconds: float = 30.0) -> Answer:
    """Run one engine on a model file within a budget, including all output of the command line."""
    started = time.perf_counter()
    budget = Budget(Limits(timeout_seconds=limit_seconds, max_regions=200_000))
    options = {"property": wanted, "delta": question.delta, "dist": question.dist, "budget": budget}
    try:
        if engine in WHOLE:
            more = {"until": "exact"} if engine == "refine" else {}
            result = steadygaze.verify(
                path, question.image, question.specs, method=engine, threads=1, **more, **options
            )
        else:
            result = steadygaze.search(path, question.image, question.specs, method=engine, **options)
        summary = result.summary()
    except InternalError as error:
        return Answer(engine, "crashed", time.perf_counter() - started, message=f"InternalError: {error}")
    except SteadygazeError as error:
        return Answer(engine, "refused", time.perf_counter() - started, message=f"{type(error).__name__}: {error}")
    except Exception as error:  # a user would meet any of these
        return Answer(engine, "crashed", time.perf_counter() - started, message=f"{type(error).__name__}: {error}")
    witnesses = [(item["kind"], tuple(item["theta"])) for item in summary.get("witnesses", ())]
    shares = {name: (low, high) for name, (low, high) in summary.get("area", {}).items()}
    slivers = summary.get("sliver_share") or 0.0
    return Answer(engine, summary["verdict"], time.perf_counter() - started, shares, slivers, witnesses)


def complaints(answer: Answer, truth: Truth, wanted: str, oracle: Oracle | None = None) -> list[str]:
    """The errors of an answer: a crash, a false verdict, a share that excludes the truth, a false witness."""
    if answer.verdict == "crashed":
        return [answer.message]
    found = []
    is_violated = truth.is_violated(wanted)
    if answer.verdict == "robust" and is_violated:
        found.append(f"robust, but violated on a share of {float(truth.violated_share(wanted)):.3g}")
    if answer.verdict == "not robust" and is_violated is False:
        found.append("not robust, but never violated")
    found += wrong_shares(answer, truth)
    if oracle is not None:
        found += _wrong_witnesses(answer, oracle)
    return found


def wrong_shares(answer: Answer, truth: Truth) -> list[str]:
    """Shares whose interval excludes the truth."""
    found = []
    slack = ROUNDING
    for name, (low, high) in truth.shares.items():
        if name not in answer.shares:
            continue
        claimed = [Fraction(float(end)) for end in answer.shares[name]]
        # A tie is neither kept nor lost; it may count as lost.
        most = high + (truth.tied if "MR" in name else 0)
        if claimed[0] - slack > most or claimed[1] + slack < low:
            shown = f"[{answer.shares[name][0]!r}, {answer.shares[name][1]!r}]"
            true = f"{float(low)!r}" if low == high else f"[{float(low)!r}, {float(high)!r}]"
            found.append(f"{name} in {shown} with slivers {answer.sliver_share:.2g}, truth {true}")
    return found


def _wrong_witnesses(answer: Answer, oracle: Oracle) -> list[str]:
    found = []
    delta = Fraction(oracle.question.delta)
    for kind, theta in answer.witnesses:
        point = oracle.at(theta)
        if kind == "label" and point.margin > 0:
            found.append(f"witness ({kind}) at {theta}, where the margin is {float(point.margin):.3g}")
        if kind != "label" and point.inconsistency[1] <= delta:
            found.append(f"witness ({kind}) at {theta}, where ai is {float(point.inconsistency[1]):.6g}")
        if kind not in ("label", "attention") and point.margin <= 0:
            found.append(f"witness ({kind}) at {theta}, where the margin is {float(point.margin):.3g}")
    return found


def contradictions(first: Answer, second: Answer) -> list[str]:
    """Contradictions between two answers to the same question about the same function."""
    found = []
    if {first.verdict, second.verdict} == {"robust", "not robust"}:
        found.append(f"{first.verdict} and {second.verdict}")
    slack = 2 * float(ROUNDING)
    for name in first.shares.keys() & second.shares.keys() - {"undecided"}:
        (a, b), (c, d) = first.shares[name], second.shares[name]
        if a > d + slack or c > b + slack:
            found.append(f"{name} in [{a!r}, {b!r}] and in [{c!r}, {d!r}]")
    return found
