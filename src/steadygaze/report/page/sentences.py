"""The verdict in words for people who are no experts: sentences that claim no more than was proved.

Turns a summary, and the box around zero in which a property is proved, into text. Ranges and shares are rounded in the
direction in which the sentence stays true. Runs no network and knows no HTML.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...properties.joint import Kept
from ...properties.kept_box import Suspects, attention_suspects, kept_box, label_suspects
from ...refine.merged import MergedAnswer
from ...results.answer import Answer
from ...results.domain_result import DomainResult
from ...results.summary import violating_theta
from ...verdict import Property
from ..wording import (
    ALL_DIGITS,
    counted,
    is_exact,
    percent_down,
    percent_up,
    rounded,
    rounded_down,
    rounded_up,
    share_between,
)

Summary = Mapping[str, Any]

SMALLEST_RANGE = 1e-3
"""A proved box around zero that is smaller than this share of the ranges is not worth a number."""
NAMED_UNDECIDED = 5e-4
"""A smaller undecided share stands in the small print, not in the verdict."""


@dataclass(frozen=True)
class KeptRange:
    """A box in theta, low and high (d,), around the unperturbed image in which a property is proved to be kept.

    Of the attention nothing is said on kinks. `is_all` tells that it is the whole domain.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    is_all: bool


def find_kept_range(result: DomainResult, wanted: Property) -> KeptRange | None:
    """The box for a property; None where the domain does not contain zero, or nothing around it is proved.

    The label is kept everywhere in the box, the attention except on kinks (`sliver_share`).
    """
    compound = result.problem.compound
    domain = compound.domain
    if not domain.contains_zero or not (result.is_measured or wanted is Property.CR):
        return None
    answer, d = result.answer, domain.dimension
    if isinstance(answer, Answer) and not result.is_complete:
        return None
    names = {Property.CR: ("CR",), Property.AR: ("AR",), Property.BOTH: ("CR", "AR")}[wanted]
    suspects = [group for name in names for group in _suspects(answer, name)]
    zero = compound.to_unit(np.zeros((1, d)))[0, :d]
    low, high = kept_box(zero, suspects)
    if not (high > low).any():
        return None
    is_all = bool((low <= 0.0).all() and (high >= 1.0).all())
    # Rounding may have moved an end by a few units in the last place: never beyond zero or the domain.
    ends = np.clip(domain.low + np.stack([low, high]) * domain.widths, domain.low, domain.high)
    first, last = (domain.low, domain.high) if is_all else (np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0))
    return KeptRange(tuple(first.tolist()), tuple(last.tolist()), is_all)


def _suspects(answer: object, name: str) -> Sequence[Suspects]:
    if isinstance(answer, Answer):
        regions, compound = answer.answers.regions, answer.compound
        if name == "CR":
            return [label_suspects(regions, answer.joint)]
        return [attention_suspects(compound, regions, answer.joint, answer.labels)]
    assert isinstance(answer, MergedAnswer)
    codes = answer.label_codes if name == "CR" else answer.attention_codes
    may_fail = answer.missing > 0.0
    may_fail[answer.bounded] = codes[answer.bounded] != Kept.YES
    boxes = Suspects(answer.boxes.low[may_fail], answer.boxes.high[may_fail])
    return [boxes] if answer.exact is None else [boxes, *_suspects(answer.exact, name)]


def verdict_sentences(summary: Summary, kept: KeptRange | None) -> list[str]:
    """The verdict on a map or a refinement: how far it is kept, where and how it fails, what is not decided.

    `kept` is the box around zero in which the property of the question is proved, None where there is none.
    """
    if summary["verdict"] == "robust":
        return [_robust(summary)]
    found = [*_range_sentences(summary, kept)]
    if summary["verdict"] == "not robust":
        found += _violations(summary)
    else:
        found.append("No violation is proved anywhere.")
    return [*found, *_open_sentences(summary)]


def small_print(summary: Summary) -> list[str]:
    """What a reader of the verdict must know beside it: kinks, what is too close to decide, what was not looked at."""
    found = [] if _contains_zero(summary) else ["The unperturbed image itself does not belong to the space."]
    undecided = undecided_share(summary) if "area" in summary else 0.0
    if summary["verdict"] == "not robust" and 0.0 < undecided < NAMED_UNDECIDED:
        found.append(
            f"At most {percent_up(undecided)} of the space is too close to a threshold to decide; it counts as "
            "undecided."
        )
    kinks = summary["sliver_share"]
    if "area" not in summary:
        if summary["verdict"] != "robust":
            found.append(
                "What is said of regions holds except on kinks, narrow strips along their borders, whose share a "
                "search does not add up."
            )
    elif kinks > 0.0 and measures_attention(summary):
        found.append(
            f"On kinks, the borders between regions (a share of at most {rounded_up(kinks, 2)}), the attention is "
            "undecided; ranges that keep the attention leave them out."
        )
    if not measures_attention(summary):
        found.append("The attention was not looked at.")
    return found


def search_sentences(summary: Summary) -> list[str]:
    """The verdict on a search, which speaks of the whole space only where all of it was visited."""
    visited = f"{counted(summary['visited'], 'region')} that {'was' if summary['visited'] == 1 else 'were'} visited"
    if summary["verdict"] == "robust":
        return [_robust(summary)]
    share = summary["visited_share"]
    cover = (
        "These regions cover the whole space, up to tolerances."
        if share == 1.0
        else f"These regions cover about {percent_down(share)} of the space; nothing is said of the rest."
    )
    if summary["verdict"] == "not robust":
        between = "A refinement proves a violation between the regions that were visited."
        return [*(_search_violations(summary) or [between]), cover, *_stopped_search(summary)]
    unknown = sum(count or 0 for count in summary["undecided"].values())
    lost = [f"{counted(unknown, 'label')} could not be decided."] if unknown else []
    if summary["failures"]:
        lost.append(f"{counted(summary['failures'], 'region or program', 'regions or programs')} got no answer.")
    first = f"No violation was found on the {visited}, but that is no proof for the whole space."
    if summary.get("confirmation") is not None:
        lost.append("A refinement, which looks at every point of the space, could not confirm it.")
    return [first, cover, *_stopped_search(summary), *lost]


def undecided_share(summary: Summary) -> float:
    """The share of the domain where the property that was asked for is not decided."""
    area, wanted = summary["area"], summary["property"]
    if wanted == "both":
        return float(area["undecided"][1])
    low, high = area[wanted.upper()]
    return max(0.0, float(high - low))


def measures_attention(summary: Summary) -> bool:
    """Whether attention was looked at; searches and refinements do not where the label alone is asked for."""
    return "attention" in summary.get("measures", ("attention",)) and summary["sets"]["AR"] is not None


def allowed_text(summary: Summary) -> str:
    """The threshold as a sentence names it."""
    text = summary["delta"]["text"]
    if text.endswith("%"):
        return f"the allowed {text.removesuffix('%')} % of the original maps' size"
    return f"the allowed distance of {rounded(summary['delta']['value'], ALL_DIGITS)}"


def label_text(summary: Summary) -> str:
    """The label by name, and by number where the name is another one."""
    name, number = str(summary["label_name"]), str(summary["label"])
    return name if name == number else f"{name} (class {number})"


def range_text(names: Sequence[str], low: Sequence[float], high: Sequence[float]) -> str:
    """A box in theta around zero in words; every end is rounded towards zero.

    >>> range_text(["brightness"], [0.0], [0.31999])
    'brightness up to +0.319'
    >>> range_text(["brightness", "translation right [px]"], [-0.25, 0.0], [0.123456, 1.0])
    'brightness from −0.25 to +0.123 and translation right by up to 1 px'
    """
    parts = [_one_range(*axis) for axis in zip(names, low, high, strict=True)]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def domain_text(summary: Summary) -> str:
    """The whole domain in words; its ends are rounded inward.

    >>> domain_text({"domain": {"names": ["brightness"], "low": [0.1], "high": [0.5]}})
    'brightness from +0.1 to +0.5'
    """
    domain = summary["domain"]
    parts = [
        f"{plain_name(name)} from {_end(low, name, is_low=True, digits=6)} to "
        f"{_end(high, name, is_low=False, digits=6)}{_unit(name)}"
        for name, low, high in zip(domain["names"], domain["low"], domain["high"], strict=True)
    ]
    return ", ".join(parts)


def named_theta(summary: Summary, theta: Sequence[float]) -> str:
    """A theta with the names of its parameters, to the nearest of five digits.

    >>> named_theta({"domain": {"names": ["brightness", "translation right [px]"]}}, [-0.25, 1.2345678])
    'brightness = −0.25, translation right ≈ 1.2346 px'
    """
    return ", ".join(
        f"{plain_name(name)} {'=' if is_exact(value) else '≈'} {rounded(value)}{_unit(name)}"
        for name, value in zip(summary["domain"]["names"], theta, strict=True)
    )


def kept_words(summary: Summary) -> str:
    """What the network keeps where the property holds."""
    label, attention = f"its label {label_text(summary)}", "its attention"
    return {"cr": label, "ar": attention, "both": f"{label} and {attention}"}[summary["property"]]


def _robust(summary: Summary) -> str:
    text = f"Everywhere in the space ({domain_text(summary)}) the network keeps {kept_words(summary)}"
    if summary["property"] == "cr":
        return f"{text}."
    return f"{text}: its attention maps differ from the expected ones by at most {allowed_text(summary)}."


def _range_sentences(summary: Summary, kept: KeptRange | None) -> list[str]:
    domain = summary["domain"]
    names, low, high = domain["names"], domain["low"], domain["high"]
    if not _contains_zero(summary):
        return []
    if kept is not None:
        sizes = [last - first for first, last in zip(kept.low, kept.high, strict=True)]
        share = max(size / (b - a) for size, a, b in zip(sizes, low, high, strict=True))
        if share >= SMALLEST_RANGE:
            text = range_text(names, kept.low, kept.high)
            if len(names) > 1:
                return [f"For every combination of {text} the network keeps {kept_words(summary)}."]
            return [f"{_single_range(names[0], kept.low[0], kept.high[0])} the network keeps {kept_words(summary)}."]
    return [f"No range around the unperturbed image that is worth naming is proved to keep {kept_words(summary)}."]


def _contains_zero(summary: Summary) -> bool:
    domain = summary["domain"]
    return all(low <= 0.0 <= high for low, high in zip(domain["low"], domain["high"], strict=True))


def _violations(summary: Summary) -> list[str]:
    area, wanted, label = summary["area"], summary["property"], label_text(summary)
    differ = f"its attention maps differ from the expected ones by more than {allowed_text(summary)}"
    found = []
    if wanted == "both" and area["CR&IR"][0] > 0.0:
        found.append(f"In {share_between(*area['CR&IR'])} of the space it still says {label}, but {differ}.")
    elif wanted != "cr" and area["IR"][0] > 0.0:
        found.append(f"In {share_between(*area['IR'])} of the space {differ}.")
    if wanted != "ar" and area["MR"][0] > 0.0:
        found.append(f"In {share_between(*area['MR'])} of the space it no longer says {label}.")
    return found or _single_violations(summary, differ)


def _single_violations(summary: Summary, differ: str) -> list[str]:
    """Where single thetas violate, but no share of the domain is proved to."""
    names = {"cr": ("CR",), "ar": ("AR",)}.get(summary["property"], ("CR", "AR"))
    what = {"CR": f"it no longer says {label_text(summary)}", "AR": differ}
    thetas = {name: violating_theta(summary, name) for name in names}
    found = [f"At {named_theta(summary, theta)} {what[name]}." for name, theta in thetas.items() if theta is not None]
    return [*found, "How much of the space violates is not decided."]


def _open_sentences(summary: Summary) -> list[str]:
    undecided, found = undecided_share(summary), []
    if undecided >= NAMED_UNDECIDED or (summary["verdict"] == "undecided" and undecided > 0.0):
        found.append(f"For up to {percent_up(undecided)} of the space this is not decided.")
    if summary["stopped"]:
        found.append(f"The run was stopped ({summary['stopped']}) before it was done.")
    return found


def _search_violations(summary: Summary) -> list[str]:
    sets, found = summary["sets"], []
    what = {
        "MR": ("CB", f"it no longer says {label_text(summary)}"),
        "IR": ("AB", f"its attention maps differ from the expected ones by more than {allowed_text(summary)}"),
    }
    for name in {"cr": ("MR",), "ar": ("IR",)}.get(summary["property"], ("MR", "IR")):
        partly, words = what[name]
        everywhere, in_part = sets[name] or 0, sets[partly] or 0
        places = [f"everywhere on {everywhere:,}"] * (everywhere > 0) + [f"on part of {in_part:,}"] * (in_part > 0)
        if places:
            which = f"{' and '.join(places)} of the {counted(summary['visited'], 'visited region')}"
            found.append(f"{which[0].upper()}{which[1:]} {words}.")
    return found


def _stopped_search(summary: Summary) -> list[str]:
    return [f"The search was stopped ({summary['stopped']}) before it was done."] if summary["stopped"] else []


def plain_name(name: str) -> str:
    """The name of a parameter without its unit."""
    return name.partition(" [")[0] if name.endswith("]") else name


def _unit(name: str) -> str:
    return f" {name.partition(' [')[2].removesuffix(']')}" if " [" in name and name.endswith("]") else ""


def _end(value: float, name: str, *, is_low: bool, digits: int = 3) -> str:
    """An end of a range, rounded inward, with its sign where it has no unit."""
    text = rounded_up(value, digits) if is_low else rounded_down(value, digits)
    return f"+{text}" if value > 0.0 and not _unit(name) else text


def _single_range(name: str, low: float, high: float) -> str:
    """The range of the only parameter, as a sentence begins with it."""
    first, last = _end(low, name, is_low=True), _end(high, name, is_low=False)
    if low < 0.0 < high:
        return f"From {plain_name(name)} {first} to {last}{_unit(name)}"
    start, end = ("Down to", first) if low < 0.0 else ("Up to", last)
    return f"{start} {plain_name(name)} {end}{_unit(name)}"


def _one_range(name: str, low: float, high: float) -> str:
    first, last = _end(low, name, is_low=True), _end(high, name, is_low=False)
    if low < 0.0 < high:
        return f"{plain_name(name)} from {first} to {last}{_unit(name)}"
    if low < 0.0:
        return f"{plain_name(name)} down to {first}{_unit(name)}"
    return f"{plain_name(name)} {'by ' if _unit(name) else ''}up to {last}{_unit(name)}"
