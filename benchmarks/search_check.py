"""Checks the claims of a search by its own regions, by plain passes, and by the full map.

Turns a search result into a `Digest` (all counts, and a sample of its regions), and the digest into a list of
contradictions. This module times nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadygaze.labels import Property, Verdict
from steadygaze.question import Question
from steadygaze.results.result import Result

KINDS = {
    Property.CR: ("classification",),
    Property.AR: ("attention",),
    Property.BOTH: ("classification", "attention"),
}
NAMES = {"classification": ("CR", "MR", "CB"), "attention": ("AR", "IR", "AB")}
MOST_OPEN = 0.01
"""The share of sampled regions that may be undecided though the map decides them: error bounds differ a little."""


@dataclass(frozen=True, eq=False)
class Seen:
    """One visited region: a theta (d,) inside, more thetas (P, d) of it, its volume, its labels and its ranges."""

    theta: np.ndarray
    others: np.ndarray
    volume: float
    classification: str
    attention: str
    margin: tuple[float, float]
    inconsistency: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Digest:
    """The data kept of a search after its regions are discarded."""

    question: Question
    status: str
    verdict: Verdict
    visited: int
    visited_share: float
    sampled: tuple[Seen, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The labels of the question."""
        return KINDS[self.question.property]


def status_word(status: Any) -> str:
    """The paper's word for how a search ended, in small letters: robust, notrobust, timeout or failed."""
    return "".join(letter for letter in str(getattr(status, "value", status)).lower() if letter.isalpha())


def digest(found: Any, samples: int) -> Digest:
    """Keep the counts of a search and some of its regions, evenly spread over the order of the visits."""
    count = len(found.tiling.visited)
    chosen = np.unique(np.linspace(0, count - 1, min(samples, count)).round().astype(int)) if count else []
    compound = found.question.compound
    return Digest(
        question=found.question,
        status=status_word(found.status),
        verdict=found.verdict,
        visited=count,
        visited_share=float(found.coverage),
        sampled=tuple(_seen(compound, found.tiling.visited[index]) for index in chosen),
    )


def own_contradictions(found: Any) -> list[str]:
    """Claims of a search that its own regions contradict."""
    wrong = []
    visited, kinds = found.tiling.visited, KINDS[found.question.property]
    if len({each.region.key for each in visited}) < len(visited):
        wrong.append("a region was visited twice")
    for kind in kinds:
        for name in NAMES[kind]:
            count = sum(getattr(each, kind) == name for each in visited)
            if (found.sets[name] or 0) != count:
                wrong.append(f"{found.sets[name]} regions in {name}, but {count} of the visited ones")
    volume = sum(each.region.volume for each in visited)
    if abs(volume - found.coverage) > 1e-8:
        wrong.append(f"visited share {found.coverage:.9g}, but the regions have {volume:.9g}")
    is_violated = any(getattr(each, kind) in NAMES[kind][1:] for each in visited for kind in kinds)
    if status_word(found.status) == ("robust" if is_violated else "notrobust"):
        wrong.append(
            f"status {status_word(found.status)}, but a violating region is {'' if is_violated else 'not '}there"
        )
    if found.verdict is Verdict.ROBUST and (is_violated or volume < 1.0 - 1e-8):
        wrong.append(f"verdict robust, but {volume:.9g} of the domain was visited")
    if found.verdict is Verdict.NOT_ROBUST and not is_violated:
        wrong.append("verdict not robust, but no visited region violates the property")
    return wrong


def plain_contradictions(kept: Digest) -> list[str]:
    """Labels and margins that a plain forward pass contradicts, at the sampled regions' thetas."""
    if "classification" not in kept.kinds:
        return []
    wrong = []
    for seen in kept.sampled:
        for theta in (seen.theta, *seen.others):
            wrong += _margin_contradictions(seen, _margin(kept.question, theta), theta)
    return wrong


def map_contradictions(kept: Digest, mapped: Result) -> list[str]:
    """Sampled regions that are not regions of the full map of the same question, or have other labels or ranges."""
    wrong = []
    labels = {"classification": mapped.answer.classifications, "attention": mapped.answer.attentions}
    volumes = mapped.tiling.answers.regions.polytopes.volumes
    owners, still_open = set(), 0
    for seen in kept.sampled:
        point = mapped.at(seen.theta)
        where = seen.theta.tolist()
        if point.region is None or point.region in owners:
            wrong.append(f"{'no' if point.region is None else 'one'} region of the map for theta {where} (and others)")
            continue
        owners.add(point.region)
        volume = float(volumes[point.region])
        if abs(volume - seen.volume) > 1e-9 + 1e-6 * volume:
            wrong.append(f"volume {seen.volume:.9g} at {where}, in the map {volume:.9g}")
        for kind in kept.kinds:
            own, true = getattr(seen, kind), str(labels[kind][point.region])
            if own in NAMES[kind] and true in NAMES[kind] and own != true:
                wrong.append(f"{own} at {where}, in the map {true}")
            still_open += own not in NAMES[kind] and true in NAMES[kind]
        if "attention" in kept.kinds:
            low, high = seen.inconsistency
            slack = 1e-7 * (1.0 + point.inconsistency)
            if not low - slack <= point.inconsistency <= high + slack:
                wrong.append(f"ai in [{low:.6g}, {high:.6g}] at {where}, by a plain pass {point.inconsistency:.6g}")
    if still_open > MOST_OPEN * len(kept.sampled):
        wrong.append(f"{still_open} of {len(kept.sampled)} labels are left open although the map decides them")
    whole = mapped.answer.verdict(kept.question.property)
    if Verdict.UNDECIDED not in (kept.verdict, whole) and kept.verdict is not whole:
        wrong.append(f"verdict {kept.verdict.value}, by the map {whole.value}")
    return wrong


def _seen(compound: Any, each: Any) -> Seen:
    region = each.region
    # Half-way to some corners: still inside, whatever the rounding of the corners.
    corners: Sequence[np.ndarray] = list(region.vertices)[:3]
    points = np.array([region.inside, *(0.5 * (region.inside + corner) for corner in corners)])
    thetas = compound.domain.low + points * compound.domain.widths
    return Seen(
        theta=thetas[0],
        others=thetas[1:],
        volume=float(region.volume),
        classification=each.classification,
        attention=each.attention,
        margin=each.margin,
        inconsistency=each.inconsistency,
    )


def _margin(question: Question, theta: np.ndarray) -> float:
    logits = question.model.graph.logits(question.perturbed.image(theta)[None])[0]
    return float(logits[question.label] - np.delete(logits, question.label).max())


def _margin_contradictions(seen: Seen, margin: float, theta: np.ndarray) -> list[str]:
    low, high = seen.margin
    slack = 1e-7 * (1.0 + abs(margin))
    wrong = []
    if (seen.classification == "CR" and margin < -slack) or (seen.classification == "MR" and margin > slack):
        wrong.append(f"{seen.classification} at {theta.tolist()}, but the margin is {margin:.6g}")
    if not low - slack <= margin <= high + slack:
        wrong.append(f"margin in [{low:.6g}, {high:.6g}] at {theta.tolist()}, by a plain pass {margin:.6g}")
    return wrong
