"""The verdict in words for readers who are not experts: sentences that claim no more than was proved.

Turns a summary, and the box around zero in which a property is proved, into text. Ranges and shares are rounded so that
the sentence stays true. Runs no network and knows no HTML.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..attention.measures.distance import DISTANCE
from ..labels import Joint, Kept, Label, Property, Verdict
from ..properties.kept_box import Suspects, kept_box
from ..question_facts import DomainFacts
from ..words import (
    class_text,
    counted,
    is_factor,
    named_theta,
    percent_down,
    percent_up,
    plain_name,
    rounded_down,
    rounded_up,
    share_between,
    shown_value,
    unit_of,
)
from .result import Result
from .summary import StrayedFacts, Summary, ties_sentences

SMALLEST_RANGE = 1e-3
"""A proved box around zero gets no number if it is smaller than this share of the ranges."""
CLEARLY = 1e-9
"""A loss at the unperturbed image that exceeds the limit by less, the rounding of its computation, may be within it."""
NAMED_UNDECIDED = 5e-4
"""A smaller undecided share appears in the small print only."""


@dataclass(frozen=True)
class KeptRange:
    """A box in theta, low and high (d,), around the unperturbed image in which a property is proved to be kept.

    On kinks (`sliver_share`) the attention may not be kept. `is_all`: the box is the whole domain.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    is_all: bool


def find_kept_range(result: Result, wanted: Property) -> KeptRange | None:
    """The box for a property; None if the domain does not contain zero, or nothing around it is proved."""
    compound = result.question.compound
    domain, d = compound.domain, compound.domain.dimension
    if not domain.contains_zero or not (result.is_measured or wanted is Property.CR):
        return None
    if result.tiling.boxes is None and not result.is_complete:
        return None
    suspects = [group for name in _parts(wanted, Label.CR, Label.AR) for group in _suspects(result, name)]
    low, high = kept_box(compound.to_unit(np.zeros((1, d)))[0, :d], suspects)
    if not (high > low).any():
        return None
    is_all = bool((low <= 0.0).all() and (high >= 1.0).all())
    # Rounding may have moved an end by a few units in the last place: never beyond zero or the domain.
    ends = domain.clip(domain.to_theta(np.stack([low, high])))
    first, last = (domain.low, domain.high) if is_all else (np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0))
    return KeptRange(tuple(first.tolist()), tuple(last.tolist()), is_all)


def _suspects(result: Result, name: str) -> Iterator[Suspects]:
    """The boxes and regions that may violate CR, or AR."""
    answer: Any = result.answer
    if result.tiling.boxes is not None:
        codes = answer.label_codes if name == Label.CR else answer.attention_codes
        may_fail = answer.missing > 0.0
        may_fail[answer.bounded] = codes[answer.bounded] != Kept.YES
        yield Suspects(answer.boxes.low[may_fail], answer.boxes.high[may_fail])
    yield from answer.suspects(Label(name))


def _parts(wanted: Property, label: str, attention: str) -> list[str]:
    """The names for label and attention that a property concerns."""
    return [label] * wanted.asks_label + [attention] * wanted.asks_attention


def verdict_sentences(summary: Summary, ranges: Sequence[str] = ()) -> list[str]:
    """The verdict of any method: where the property fails, and how much is undecided.

    `ranges` come first, unless the property holds everywhere; see `range_sentences`.
    """
    if summary.verdict is Verdict.ROBUST:
        return [_robust(summary)]
    if summary.is_search:
        return _search_sentences(summary)
    is_violated = summary.verdict is Verdict.NOT_ROBUST
    found = [*ranges, *(_violations(summary) if is_violated else ["No violation is proved anywhere."])]
    found += _strayed_sentences(summary)
    undecided = undecided_share(summary)
    if undecided >= NAMED_UNDECIDED or (not is_violated and undecided > 0.0):
        found.append(f"Up to {percent_up(undecided)} of the domain is undecided.")
    return [*found, *_stopped(summary, "run")]


def small_print(summary: Summary) -> list[str]:
    """The conditions of the verdict: kinks, strips too close to decide, ties, unmeasured attention."""
    found = [] if summary.contains_zero else ["The domain does not contain the unperturbed image."]
    is_search, kinks = summary.is_search, summary.sliver_share or 0.0
    undecided = 0.0 if is_search else undecided_share(summary)
    if summary.verdict is Verdict.NOT_ROBUST and 0.0 < undecided < NAMED_UNDECIDED:
        share = percent_up(undecided)
        found.append(f"At most {share} of the domain is too close to a threshold to decide; it counts as undecided.")
    if is_search and summary.verdict is not Verdict.ROBUST:
        size = (
            "whose share is not known" if summary.sliver_share is None else f"at most {percent_up(kinks)} of the domain"
        )
        found.append(f"Statements about regions hold except on kinks, narrow strips along their borders, {size}.")
    elif not is_search and kinks > 0.0 and summary.is_measured:
        found.append(
            f"On kinks, the borders between regions (at most {percent_up(kinks)} of the domain), the attention is "
            "undecided; ranges that keep the attention leave them out."
        )
    found += ties_sentences(summary.tie_share)
    return found if summary.is_measured else [*found, "The attention was not measured."]


def _search_sentences(summary: Summary) -> list[str]:
    """The verdict on a search; it is about the whole domain only if all of it was visited."""
    share = summary.visited_share
    cover = (
        "These regions cover the whole domain, up to tolerances."
        if share == 1.0
        else f"These regions cover {percent_down(share)} of the domain; nothing is proved about the rest."
    )
    if summary.verdict is Verdict.NOT_ROBUST:
        between = "A refinement proves a violation between the visited regions."
        return [*(_search_violations(summary) or [between]), cover, *_stopped(summary, "search")]
    visited = counted(summary.visited, "visited region")
    found = [f"No violation was found on the {visited}, which is no proof for the whole domain.", cover]
    found += _stopped(summary, "search")
    unknown = sum(count or 0 for count in (summary.undecided or {}).values())
    if unknown:
        found.append(f"{counted(unknown, 'label')} could not be decided.")
    if summary.failures:
        words = "region or linear program", "regions or linear programs"
        found.append(f"{counted(summary.failures, *words)} got no answer.")
    if summary.confirmation is not None:
        found.append("A refinement, which covers every theta of the domain, could not confirm that there is none.")
    return found


def undecided_share(summary: Summary) -> float:
    """The share of the domain where the property of the question is undecided."""
    area, wanted = summary.area, summary.property
    if wanted is Property.BOTH:
        return float(area[Label.UNDECIDED][1])
    low, high = area[wanted.share]
    return max(0.0, float(high - low))


def label_text(summary: Summary) -> str:
    """The label by name, and by number if the name differs from it."""
    return class_text(summary.label_name, summary.label)


def range_text(names: Sequence[str], low: Sequence[float], high: Sequence[float]) -> str:
    """A box in theta around zero in words; every end is rounded towards zero.

    >>> range_text(["brightness"], [0.0], [0.31999])
    'brightness up to +0.319'
    >>> range_text(["brightness", "translation right [px]"], [-0.25, 0.0], [0.123456, 1.0])
    'brightness from −0.25 to +0.123 and translation right by up to 1 px'
    >>> range_text(["scale [×]"], [-0.1], [0.01234567])
    'scale from 0.9 to 1.0123'
    """
    parts = []
    for name, first, last in zip(names, low, high, strict=True):
        start, end = _end(first, name, is_low=True), _end(last, name, is_low=False)
        words = (
            f"from {start} to {end}" if first < 0.0 < last else f"down to {start}" if first < 0.0 else f"up to {end}"
        )
        by = "by " * (first >= 0.0 and bool(unit_of(name)))
        parts.append(f"{plain_name(name)} {by}{words}{unit_of(name)}")
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def domain_text(domain: DomainFacts) -> str:
    """The whole domain in words; its ends are rounded inward.

    >>> domain_text(DomainFacts(["brightness"], [0.1], [0.5], []))
    'brightness from +0.1 to +0.5'
    """
    return ", ".join(
        f"{plain_name(name)} from {_end(low, name, is_low=True, digits=6)} to "
        f"{_end(high, name, is_low=False, digits=6)}{unit_of(name)}"
        for name, low, high in zip(domain.names, domain.low, domain.high, strict=True)
    )


def _robust(summary: Summary) -> str:
    text = f"Everywhere in the domain ({domain_text(summary.domain)}) the network keeps {_kept_words(summary)}"
    if summary.property is Property.CR:
        return f"{text}."
    kept = summary.measure.clauses(summary.stated).kept
    if summary.measure == DISTANCE:
        return f"{text}: {kept}."
    where = f"Everywhere in the domain ({domain_text(summary.domain)})"
    return f"{where} {_kept_clause(summary)}."


def _kept_clause(summary: Summary) -> str:
    """A clause that says what the network keeps: the label, the attention, or both, as the question asks."""
    if summary.measure == DISTANCE or not summary.property.asks_attention:
        return f"the network keeps {_kept_words(summary)}"
    kept = summary.measure.clauses(summary.stated).kept
    return f"the network keeps its label {label_text(summary)}, and {kept}" if summary.property.asks_label else kept


def _kept_words(summary: Summary) -> str:
    return " and ".join(_parts(summary.property, f"its label {label_text(summary)}", "its attention"))


def range_sentences(summary: Summary, kept: KeptRange | None) -> list[str]:
    """How far from the unperturbed image the property is proved to be kept: the box `kept`, None for none."""
    names, low, high = summary.domain.names, summary.domain.low, summary.domain.high
    if not summary.contains_zero or _lost_before(summary) is not None:
        return []
    if kept is None or np.max(np.subtract(kept.high, kept.low) / np.subtract(high, low)) < SMALLEST_RANGE:
        return [_no_range(summary)]
    if len(names) > 1:
        return [f"For every combination of {range_text(names, kept.low, kept.high)} {_kept_clause(summary)}."]
    (name,), (first,), (last,) = names, kept.low, kept.high
    start, end = _end(first, name, is_low=True), _end(last, name, is_low=False)
    if first < 0.0 < last:
        text = f"From {plain_name(name)} {start} to {end}"
    else:
        text = f"Down to {plain_name(name)} {start}" if first < 0.0 else f"Up to {plain_name(name)} {end}"
    return [f"{text}{unit_of(name)} {_kept_clause(summary)}."]


def _no_range(summary: Summary) -> str:
    return f"The proof that {_kept_clause(summary)} covers at most a tiny range around the unperturbed image."


def _failures(summary: Summary) -> tuple[str, str]:
    """The words for a lost label, and for lost attention."""
    return f"the network no longer predicts {label_text(summary)}", summary.measure.clauses(summary.stated).lost


def _violations(summary: Summary) -> list[str]:
    area, wanted = summary.area, summary.property
    lost, differ = _failures(summary)
    found = []
    if wanted is Property.BOTH and area[Joint.LABEL_ALONE][0] > 0.0:
        share, label = share_between(*area[Joint.LABEL_ALONE]), label_text(summary)
        found.append(f"In {share} of the domain the network still predicts {label}, but {differ}.")
    elif wanted.asks_attention and area[Label.IR][0] > 0.0:
        found.append(f"In {share_between(*area[Label.IR])} of the domain {differ}.")
    if wanted.asks_label and area[Label.MR][0] > 0.0:
        found.append(f"In {share_between(*area[Label.MR])} of the domain {lost}.")
    if found:
        return found
    # Only single thetas are proved to violate, no share of the domain.
    for name, words in ((Label.CR, lost), (Label.AR, differ)):
        theta = summary.violating_theta(name) if name in _parts(wanted, Label.CR, Label.AR) else None
        if theta is not None:
            found.append(f"At {named_theta(summary.domain.names, theta)} {words}.")
    return [*found, "The violated share of the domain is undecided."]


def _strayed_sentences(summary: Summary) -> list[str]:
    """The nearest theta that loses the attention: how much is left, and where it went."""
    found = summary.strayed
    if not isinstance(found, StrayedFacts) or not summary.property.asks_attention:
        return []
    if (before := _lost_before(summary)) is not None:
        return [f"Even the unperturbed image violates the attention: {before}."]
    word = "The nearest known" if found.is_nearest else "A known"
    went = ""
    if found.place and found.pixels:
        went = f"; {summary.measure.went_text(found.place)} (marked in the picture)"
    where = named_theta(summary.domain.names, found.theta)
    return [f"{word} violation of the attention is at {where}: {found.left}{went}."]


def _lost_before(summary: Summary) -> str | None:
    """How much attention the unperturbed image has if that is clearly too little; None if it keeps the attention."""
    found = summary.strayed
    if not isinstance(found, StrayedFacts) or found.loss_before is None or not summary.property.asks_attention:
        return None
    if found.loss_before <= summary.delta.value + CLEARLY:
        return None
    return summary.measure.left_text(summary.stated, None, found.loss_before).removesuffix(" there")


def _search_violations(summary: Summary) -> list[str]:
    sets, found = summary.sets, []
    lost, differ = _failures(summary)
    for name, partly, words in ((Label.MR, Label.CB, lost), (Label.IR, Label.AB, differ)):
        everywhere, in_part = sets[name] or 0, sets[partly] or 0
        places = [f"everywhere on {everywhere:,}"] * (everywhere > 0) + [f"on part of {in_part:,}"] * (in_part > 0)
        if places and name in _parts(summary.property, Label.MR, Label.IR):
            which = f"{' and '.join(places)} of the {counted(summary.visited, 'visited region')}"
            found.append(f"{which[0].upper()}{which[1:]} {words}.")
    return found


def _stopped(summary: Summary, what: str) -> list[str]:
    return [f"The {what} stopped early ({summary.stopped})."] if summary.stopped else []


def _end(value: float, name: str, *, is_low: bool, digits: int = 3) -> str:
    """An end of a range, rounded inward, with its sign if it has no unit."""
    if is_factor(name):
        # Three digits of a factor beside 1 would say little.
        factor = shown_value(name, value)
        return rounded_up(factor, digits + 2) if is_low else rounded_down(factor, digits + 2)
    text = rounded_up(value, digits) if is_low else rounded_down(value, digits)
    return f"+{text}" if value > 0.0 and not unit_of(name) else text
