"""The facts of a report as rows of text: the question, shares, the basis of the proof, tolerances, versions.

Turns summaries into words and rounds outward. Knows no HTML, and decides nothing.
"""

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from ... import tolerances
from ...attention.measures.distance import DISTANCE
from ...engines import ENGINES
from ...labels import ATTENTIONS, CLASSIFICATIONS, Joint, Label, Property
from ...results.description import (
    KeptRange,
    domain_text,
    label_text,
    range_text,
    undecided_share,
)
from ...results.store import current_versions
from ...results.summary import MapCheckFacts, ReplayFacts, Summary
from ...words import (
    counted,
    is_factor,
    margin_text,
    percent_down,
    percent_of_up,
    percent_up,
    plain_name,
    rounded,
    rounded_up,
    share_between,
    shown_value,
    spaced_percent,
    total_seconds,
)
from ..drawing.colours import JOINT, KEPT, UNKNOWN

FactRow = tuple[str, str]

STOPPED_EARLY = " The run stopped early."
LABELS = {one: one.sentence for one in Joint} | {
    Joint.LABEL_ALONE: f"{Joint.LABEL_ALONE.sentence}: same label, other evidence"
}

TOLERANCES = (
    ("a line closer to a vertex than this does not split there", tolerances.DISTANCE),
    ("values of a neuron below this times its scale count as rounding", tolerances.NOISE),
)


WHOLE_TOLERANCES = (
    ("allowed difference between the areas of all regions and the whole", tolerances.AREA),
    ("two regions touch if their common side is wider than this", tolerances.TOUCH),
)

SEARCH_TOLERANCES = (
    ("tolerance of linear programs", tolerances.FEASIBILITY),
    ("linear programs ignore sides and regions whose largest inner ball is smaller than this", tolerances.THIN),
)


def _ends(bounds: Sequence[float]) -> tuple[str, str]:
    """Both bounds of a share for a table."""
    return percent_down(bounds[0]), percent_up(bounds[1])


def question_rows(summary: Summary) -> list[FactRow]:
    """The question."""
    attention, measure = summary.attention, summary.measure
    shape = " × ".join(str(side) for side in summary.image.shape)
    rows = [
        ("network", f"{summary.model.name}, {counted(summary.model.classes, 'class', 'classes')}"),
        ("image", f"{summary.image.name} ({shape})"),
        ("label", f"{label_text(summary)}: the network's prediction for the unperturbed image"),
        ("domain", domain_text(summary.domain)),
        ("property", summary.property.sentence),
    ]
    if summary.is_measured:
        method = "gradient maps: " if attention.explain == "gradient" else ""  # the text names any other
        if measure != DISTANCE:
            rows.append(("attention is kept where", measure.clauses(summary.stated).kept))
        if measure.option is not None:
            rows.append((measure.symbol_word, measure.threshold_words(summary.stated)))
        rows += [("attention", f"{method}{attention.text()}")]
    return rows


def share_rows(summary: Summary) -> list[dict[str, Any]]:
    """The shares that add up to the domain: names, proved bounds, and their part of a bar, in thousandths."""
    area, rows, start = summary.area, [], 0.0
    looks: list[tuple[str, str, str]] = [(name, meaning, JOINT[name]) for name, meaning in LABELS.items()]
    if not summary.is_measured:
        colours = {Label.CR: KEPT, Label.MR: JOINT[Joint.ATTENTION_ALONE]}
        looks = [(name, name.sentence, colour) for name, colour in colours.items()]
    chosen = [(*look, _ends(area[look[0]]), area[look[0]][0]) for look in looks]
    undecided = max(0.0, 1.0 - sum(share for *_, share in chosen))
    if undecided > 1e-9 or undecided_share(summary) > 0.0:
        bounds = "", percent_up(area[Label.UNDECIDED][1])
        chosen.append((Label.UNDECIDED, "label or attention undecided", UNKNOWN, bounds, undecided))
    for name, meaning, colour, (low, high), share in chosen:
        row = {"name": name, "meaning": meaning, "low": low, "high": high, "colour": colour}
        rows.append(row | {"start": round(start, 3), "width": round(1000.0 * float(share), 3)})
        start += 1000.0 * float(share)
    return rows


def sum_rows(summary: Summary) -> list[tuple[str, str, str, str]]:
    """The shares of the label and of the attention by themselves: name, meaning, bounds."""
    words = [(name, name.sentence) for name in (Label.CR, Label.MR)]
    if summary.is_measured:
        kept, lost = summary.measure.short
        if summary.measure == DISTANCE:
            kept, lost = "inconsistency ≤ δ", "inconsistency > δ"
        words += [(Label.AR, f"{Label.AR.sentence}: {kept}"), (Label.IR, f"{Label.IR.sentence}: {lost}")]
    return [(name, meaning, *_ends(summary.area[name])) for name, meaning in words]


def range_rows(summary: Summary, kept: Mapping[str, KeptRange | None]) -> list[FactRow]:
    """How far all parameters may go at once while a property is kept, for each property."""
    rows = []
    for name, found in kept.items():
        if found is None:
            text = "no range is proved"
        elif found.is_all:
            text = f"the whole domain: {domain_text(summary.domain)}"
        else:
            text = range_text(summary.domain.names, found.low, found.high)
        rows.append((f"{Property(name).noun} kept", text))
    return rows


def delta_rows(summary: Summary) -> list[tuple[str, str, str]]:
    """The share of AR at other thresholds: threshold, bounds."""
    if summary.measure != DISTANCE:
        return _share_threshold_rows(summary)
    size, kept = summary.delta.map_size, dict(summary.ar_at_delta or {})
    needed = kept.pop("all", None)
    rows = [
        (f"{spaced_percent(name)} (δ = {rounded(float(name.removesuffix('%')) / 100 * size)})", *_ends(bounds))
        for name, bounds in kept.items()
        if isinstance(bounds, tuple)
    ]
    if isinstance(needed, float):
        text = f"{percent_of_up(needed, size)} (δ = {rounded_up(needed, 8)}), kinks aside".lstrip()
        rows.append((text, "100 %", "100 %"))
    return rows


def _share_threshold_rows(summary: Summary) -> list[tuple[str, str, str]]:
    """`delta_rows` for properties whose thresholds are shares or cosines."""
    measure, kept = summary.measure, dict(summary.at_threshold or {})
    needed = kept.pop("all", None)
    rows = [(spaced_percent(text), *_ends(share)) for text, share in kept.items() if isinstance(share, tuple)]
    if isinstance(needed, float):
        rows.append((f"{measure.reached_text(needed)}, kinks aside", "100 %", "100 %"))
    return rows


def measure_words(summary: Summary) -> dict[str, str]:
    """The property of attention for headings, columns and the footer of the page."""
    measure = summary.measure
    kept, lost = measure.clauses(summary.stated)
    if measure == DISTANCE:
        base, ends = (
            "δ in percent of the original maps' size",
            "attention maps differ from the expected ones by at most δ, by more than δ",
        )
    else:
        base, ends = measure.threshold_axis, f"{kept}; {lost}"
    return {
        "symbol": measure.symbol_word, "noun": measure.noun, "base": base, "ends": ends,
        "sum": "The inconsistency is the sum of the distances over all compared classes." * (measure == DISTANCE),
    }  # fmt: skip


def proof_rows(summary: Summary) -> list[FactRow]:
    """The method of the proof, its parts, and how it was checked."""
    is_map, is_stopped = summary.method == "map", summary.stopped is not None
    rows = [("method", ENGINES[summary.method].sentence + STOPPED_EARLY * is_stopped)]
    shares, boxes = summary.guarantee_shares, summary.boxes
    if shares is not None and boxes is not None:
        bounds, exact = (percent_down(shares[name]) for name in ("rounding-sound", "float64 with slack"))
        counts = f"{boxes['bounded']:,} by bounds, {boxes['exact']:,} mapped region by region, {boxes['open']:,} open"
        rows += [
            ("by bounds over boxes, rounding included", f"{bounds} of the domain"),
            ("by regions, in float64 with error bounds or in exact arithmetic", f"{exact} of the domain"),
            ("undecided", f"at most {percent_up(shares['undecided'])} of the domain"),
            ("boxes", counts),
            ("undecided share allowed", str(summary.until)),
        ]
    if not summary.is_search:
        rows.append(("regions found one by one", f"{summary.regions:,}"))
        if is_map and not is_stopped:
            rows.append(("areas add up to the whole within", rounded_up(summary.tiling_error or 0.0, 2)))
    else:
        rows += _search_rows(summary)
    kinks = summary.sliver_share or 0.0
    if summary.is_search and summary.sliver_share is None:
        rows.append(("kinks between the regions", "not known"))
    elif summary.is_measured or summary.is_search:
        known = "none" if kinks == 0.0 else f"at most {percent_up(kinks)} of the domain"
        rows.append(("kinks, where the attention is undecided", known))
    if summary.tie_share is not None:
        is_open = summary.tie_share[0] <= 0.0 and summary.tie_share[1] >= 1.0
        known = "not known" if is_open else share_between(*summary.tie_share)
        rows.append(("attention that depends on how ties of maxima are broken", known))
    return [*rows, ("stopped by a limit", str(summary.stopped or "no"))]


def _search_rows(summary: Summary) -> list[FactRow]:
    rows = [
        ("visited", f"{counted(summary.visited, 'region')}, {percent_down(summary.visited_share)} of the domain"),
        ("reached by following the boundary", f"{summary.following:,}"),
        ("work", f"{counted(summary.face_checks, 'face check')}, {counted(summary.lps, 'linear program')}"),
        ("regions or linear programs without an answer", f"{summary.failures:,}"),
    ]
    parts = summary.components
    if parts is not None:
        inner = ", ".join(f"{part['inner']:,} inside and {part['outer']:,} outside" for part in parts)
        text = counted(len(parts), "component")
        rows.append(("outermost boundary", f"{text} (regions along each: {inner})" if parts else text))
    return rows


def set_rows(summary: Summary) -> list[tuple[str, ...]]:
    """Visited regions of a search by label: title, everywhere, nowhere, in part, undecided."""
    rows = []
    for title, kind, names in (
        ("label kept", "classification", CLASSIFICATIONS),
        ("attention kept", "attention", ATTENTIONS),
    ):
        counts = [summary.sets[name] for name in names]
        if None not in counts:
            cells = [f"{name} {count:,}" for name, count in zip(names, counts, strict=True)]
            rows.append((title, *cells, f"{(summary.undecided or {})[kind] or 0:,}"))
    return rows


def _exact_theta(name: str, theta: float) -> str:
    """A parameter with all digits of its theta."""
    if is_factor(name):
        return f"{plain_name(name)} = {rounded(shown_value(name, theta))} (theta = {theta!r})"
    return f"{plain_name(name)} = {theta!r}"


def witness_rows(summary: Summary) -> list[dict[str, str]]:
    """The witnesses that were replayed through the model file; a theta that violates in several ways is one row."""
    names, rows = summary.domain.names, []
    kinds: dict[tuple[float, ...], list[str]] = {}
    for witness in summary.witnesses:
        kinds.setdefault(tuple(witness.theta), []).append(str(witness.kind))
    first = {tuple(witness.theta): witness for witness in reversed(summary.witnesses)}
    for witness in (first[theta] for theta in kinds):
        replay, check = witness.replay, witness.map_check
        maps = "not possible here"
        if check.is_checkable and check.agrees is not None:
            maps = f"{_difference(check)} at {counted(check.checked, 'pixel')}"
        theta = ", ".join(_exact_theta(name, value) for name, value in zip(names, witness.theta, strict=True))
        depth = "" if witness.is_deep else "too close to a threshold for a replay in the file's float type"
        rows.append(
            {
                "kind": "; ".join(kinds[tuple(witness.theta)]),
                "theta": theta,
                "predicts": str(witness.label_name),
                "margin": margin_text(witness.margin),
                "inconsistency": summary.measure.value_text(witness.inconsistency, 5),
                "replay": _difference(replay),
                "agrees": "yes" if replay.agrees else "no",
                "remark": witness.remark or "",
                "maps": maps,
                "depth": depth,
            }
        )
    return rows


def _difference(check: ReplayFacts | MapCheckFacts) -> str:
    if check.difference is None:
        return "not finite"
    if check.tolerance is None:
        return f"differ by {rounded_up(check.difference, 2)} (values leave the file's float type)"
    return f"differ by {rounded_up(check.difference, 2)} (allowed {rounded(check.tolerance, 2)})"


def tolerance_rows(*, is_search: bool) -> list[FactRow]:
    """The tolerances of the computation; lengths are in units of the domain's ranges."""
    chosen = TOLERANCES + (SEARCH_TOLERANCES if is_search else WHOLE_TOLERANCES)
    return [(meaning, rounded(value, 2)) for meaning, value in chosen]


def not_claimed(summary: Summary, *, is_search: bool) -> list[str]:
    """Limits of the proof: statements that a reader might think proved."""
    found = [
        "The report says nothing about other images, other perturbations, or parameters outside the ranges above.",
        "The label is the network's prediction for the unperturbed image. The report does not say whether it is right.",
    ]
    if summary.is_measured:
        found.append(
            f"Attention means {summary.attention.explain} maps of the outputs with respect to the pixels, and one "
            f"property of them: {summary.measure.clauses(summary.stated).kept}. A kept map does not prove a good "
            "reason, and a changed one does not prove a bad one."
        )
    found.append(
        "Tolerances shape the regions, but decide nothing: the error bounds cover their effect. Samples are compared "
        "with the labels to find mistakes; they prove nothing."
    )
    found.append(
        "The proof holds for the network in real numbers. A run in float32 may differ from it by rounding; the "
        "differences found in runs of the model file are stated above."
    )
    if is_search:
        found.append("A search proves statements only about the regions it visited. The rest counts as undecided.")
    elif summary.stopped:
        found.append("The run stopped early. Parts that it did not reach count as undecided.")
    return found


def version_rows(origin: Mapping[str, Any] | None) -> list[FactRow]:
    """The versions that computed the result, and those that wrote the page if they differ."""
    now = {"Python": platform.python_version(), **current_versions()}
    if origin is None:
        return [(name, str(number)) for name, number in now.items() if number is not None]
    machine = origin.get("machine")
    python = machine.get("python") if isinstance(machine, dict) else None
    rows = []
    for name, number in {"Python": python, **(origin.get("versions") or {})}.items():
        text, written = "not recorded" if number is None else str(number), now.get(name)
        rows.append((name, text if written in (None, number) else f"{text} (this page: {written})"))
    return rows


def run_rows(summary: Summary, seconds: Mapping[str, float], origin: Mapping[str, Any] | None) -> list[FactRow]:
    """The time and machine of the run, and the hash of the network."""
    rows = [("SHA-256 of the model file", str(summary.model.sha256))]
    total = total_seconds(seconds)
    if total:
        parts = [f"{name} {value:.1f} s" for name, value in seconds.items() if name != "total" and value >= 0.05]
        rows.append(("time of the run", f"{total:.1f} s" + (f" ({', '.join(parts)})" if parts else "")))
    if origin is not None and origin.get("finished"):
        rows.append(("finished", str(origin["finished"]).replace("T", " ").replace("+00:00", " UTC")))
    machine = (origin or {}).get("machine")
    if isinstance(machine, dict):
        cores, memory = machine.get("cores"), machine.get("memory_gib")
        extent = [f"{cores} processors"] * bool(cores) + [f"{memory:.0f} GiB"] * isinstance(memory, float)
        rows.append(("machine", ", ".join([str(machine.get("system")), *extent])))
    return rows
