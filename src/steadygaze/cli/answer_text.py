"""Answers and boundaries for the terminal: the question, the verdict with advice, and facts. Prints nothing."""

from collections.abc import Iterator, Mapping

from ..attention.measures.distance import DISTANCE
from ..engines import ENGINES
from ..labels import ATTENTIONS, CLASSIFICATIONS, Label, Property, Verdict
from ..results.boundary_summary import BoundarySummary, reach_sentence
from ..results.description import NAMED_UNDECIDED, verdict_sentences
from ..results.summary import AnswerFacts, Summary, kinks_text
from ..tolerances import MAX_MAP_PARAMETERS, TOUCH
from ..words import (
    class_text,
    counted,
    named_theta,
    number_text,
    percent_of_up,
    percent_up,
    rounded,
    rounded_down,
    rounded_up,
    sentence,
    share_text,
    shown_value,
    spaced_percent,
    total_seconds,
)

Facts = Iterator[tuple[str, str]]
"""Names of facts with their texts."""


def question_text(summary: AnswerFacts) -> str:
    """Model, image and predicted label on one line, the domain on the next."""
    domain, label = summary.domain, class_text(summary.label_name, summary.label)
    axes = " × ".join(
        f"{name} {number_text(shown_value(name, low))}..{number_text(shown_value(name, high))}"
        for name, low, high in zip(domain.names, domain.low, domain.high, strict=True)
    )
    return f"{summary.model.name} predicts {label} for {summary.image.name}\nDomain: {axes}"


def property_text(summary: AnswerFacts) -> str:
    """The property of the question, as part of a sentence."""
    label, attention = ["the label is kept"], [_attention_text(summary)]
    return " and ".join(label * summary.property.asks_label + attention * summary.property.asks_attention)


def verdict_text(summary: Summary) -> str:
    """The verdict as in reports; if it is undecided for a search, with advice."""
    return " ".join([*verdict_sentences(summary), *_advice(summary)])


def _advice(summary: Summary) -> Iterator[str]:
    if summary.is_search and summary.verdict is Verdict.UNDECIDED:
        is_mappable, is_bfs = len(summary.domain.names) <= MAX_MAP_PARAMETERS, summary.method == "bfs"
        methods = ["map"] * is_mappable + ["bfs"] * (not is_bfs)
        other = f"use --method {' or '.join(methods)}" if methods else "use smaller ranges"
        if summary.stopped or summary.confirmation is not None:
            other = "raise --timeout, --max-regions or --memory, or use smaller ranges"
        yield sentence(f"to decide the rest, {other}")
    if summary.is_search and summary.verdict is Verdict.NOT_ROBUST and not _has_violating_region(summary):
        yield "Use --method refine to see where."


def _has_violating_region(summary: Summary) -> bool:
    return any(summary.sets[name] for name in (*CLASSIFICATIONS[1:], *ATTENTIONS[1:]))


def domain_facts(summary: Summary, seconds: Mapping[str, float], reason: str | None) -> Facts:
    """Facts about a map or refinement: nearest violations, other thresholds, and how it was computed."""
    yield "nearest MR", nearest_text(summary, Label.CR)
    if summary.is_measured:
        yield "nearest IR", nearest_text(summary, Label.AR)
        measure = summary.measure
        if measure.option is not None:
            yield f"AR at other {measure.thresholds_word}", kept_text(summary)
            yield "entirely AR", enough_text(summary)
        zero = summary.zero_attention_share
        if isinstance(zero, tuple) and (zero[0] > 0.0 or zero[1] >= NAMED_UNDECIDED):
            yield "no attention", f"{share_text(*zero)} (maps that are zero everywhere; counts as IR)"
    if reason is not None:
        yield "method", f"{summary.method}: {reason}"
    boxes = summary.boxes
    if boxes is not None:
        exact = f", {boxes['exact']:,} mapped region by region" if boxes["exact"] else ""
        yield "boxes", f"{boxes['bounded']:,} decided by bounds{exact}, {boxes['open']:,} open"
    # The file of timings may be missing; no answer depends on it.
    total = total_seconds(seconds)
    yield "regions", f"{summary.regions:,}" + ("" if total is None else f" in {total:.1f} s")


def search_facts(summary: Summary, seconds: Mapping[str, float]) -> Facts:
    """Facts about a search: method and status, visited regions, the work, components of the boundary, failures."""
    line, width = summary.line, summary.w_delta
    method = [ENGINES[summary.method].sentence.rstrip(".")]
    method += [] if line is None else [f"line to {named_theta(summary.domain.names, line)}"]
    method += [] if width is None else [f"w^δ = {number_text(width)}"]
    yield "method", "; ".join(method)
    if summary.sets[Label.AR] is not None:
        yield summary.measure.symbol_word, delta_text(summary)
    yield "status", f"{summary.status.value}: {summary.status.sentence}"
    visited = f"{counted(summary.visited, 'region')}, {share_text(summary.visited_share)} of the domain"
    if summary.following:
        visited += f", {summary.following:,} of them reached by following the boundary"
    total = total_seconds(seconds)
    yield "visited", visited + ("" if total is None else f", in {total:.1f} s")
    yield "work", f"{counted(summary.face_checks, 'face check')}, {counted(summary.lps, 'linear program')}"
    for place, text in enumerate(_component_texts(summary)):
        yield "" if place else "outermost boundary", text
    if summary.failures:
        yield "failures", f"{summary.failures:,} regions or linear programs without an answer"


def delta_text(summary: AnswerFacts) -> str:
    """The threshold, absolute, and as a percentage if it was given as one."""
    text, value = summary.delta.text, number_text(summary.delta.value)
    if summary.measure != DISTANCE:
        return summary.measure.threshold_words(summary.stated, 5)
    return f"{value} ({spaced_percent(text)} of the original maps' size)" if text.endswith("%") else value


def nearest_text(summary: Summary, name: str) -> str:
    """The nearest violation of CR or AR, or its absence; for AR, without kinks."""
    found = (summary.nearest or {})[name]
    low, high = found.low, found.high
    aside = " outside of kinks" if name == Label.AR and summary.sliver_share else ""
    if high is None and low is None:
        return f"none in the domain{aside}"
    below = f"none below distance {rounded_down(low, 5)}{aside}" if low else "a nearer one may exist"
    if high is None or low is None or found.theta is None:
        return f"none proved; {below}" if low else "none proved so far"
    where = f"{named_theta(summary.domain.names, found.theta)} (distance {rounded(high)}"
    return f"{where})" if high - low <= 1e-5 * high else f"{where}; {below})"


def kept_text(summary: Summary) -> str:
    """The share of AR at other thresholds; those of distances are relative to the size of the original maps."""
    if summary.measure != DISTANCE:
        found = {text: share for text, share in (summary.at_threshold or {}).items() if isinstance(share, tuple)}
        return "; ".join(f"at {spaced_percent(text)}: {share_text(*share)}" for text, share in found.items())
    kept = {name: bounds for name, bounds in (summary.ar_at_delta or {}).items() if isinstance(bounds, tuple)}
    if all(bounds == (0.0, 1.0) for bounds in kept.values()):
        return "not known"
    shares = "; ".join(f"at {spaced_percent(name)}: {share_text(*bounds)}" for name, bounds in kept.items())
    return f"{shares} (of the original maps' size, {number_text(summary.delta.map_size)})"


def enough_text(summary: Summary) -> str:
    """The strictest known threshold at which the whole domain is AR, kinks aside."""
    if summary.measure != DISTANCE:
        reached = (summary.at_threshold or {}).get("all")
        if not isinstance(reached, float):
            return "at no known threshold"
        return f"up to {summary.measure.reached_text(reached)}, kinks aside"
    enough, size, is_map = (summary.ar_at_delta or {})["all"], summary.delta.map_size, summary.boxes is None
    if not isinstance(enough, float):
        return f"unknown: {'the map is partial' if is_map else 'not proved'}"
    percent = percent_of_up(enough, size)
    share = f" ({percent} of the original maps' size)" if percent else ""
    # Boxes have wide bounds if these suffice for the question.
    return f"{'from' if is_map else 'from at most'} δ = {rounded_up(enough, 8)}{share}, kinks aside"


def _attention_text(summary: AnswerFacts) -> str:
    if summary.measure == DISTANCE:
        return f"the attention maps stay within δ = {delta_text(summary)} of the expected ones"
    return summary.measure.clauses(summary.stated).kept


def _component_texts(summary: Summary) -> Iterator[str]:
    """The components of the outermost boundary, one line each; none for other methods."""
    parts = summary.components
    if parts is None:
        if summary.method == "boundary":
            yield "unknown: the search stopped early"
        return
    found = f"{counted(len(parts), 'component')}{'' if parts else ': none that touches the border was found'}"
    yield found + (" found; others may be missing because regions were lost" if summary.failures else "")
    for place, part in enumerate(parts, start=1):
        inner = counted(part["inner"], "region")
        yield f"component {place}: {inner} along its inner side, {part['outer']:,} along the outer"


def reach_text(summary: BoundarySummary) -> str:
    """One sentence: how much of the domain can be reached from zero while the property is kept."""
    return reach_sentence(summary, property_text(summary))


def certainty_text(summary: BoundarySummary) -> str:
    """The basis of the boundary, and its uncertain parts."""
    return " ".join(_certainty(summary))


def _certainty(summary: BoundarySummary) -> Iterator[str]:
    undecided, is_map = summary.undecided, summary.method == "map"
    what = "the pieces of the map" if is_map else "boxes and regions"
    yield f"Based on {what}; two of them touch if their common side is wider than {rounded(TOUCH, 2)} of the domain."
    if summary.starts > 1:
        yield (
            f"At theta = 0, {summary.starts} components that satisfy the property meet; all of them count as reachable."
        )
    if undecided["pieces_beside"]:
        yield (
            f"{counted(undecided['pieces_beside'], 'undecided piece')} beside the boundary: more can be reached if any "
            "of them satisfies the property."
        )
    strips = undecided["strip_share"]
    if strips > 0.0:
        yield f"At most {percent_up(strips)} of the domain is too close to thresholds to decide."
    if summary.property is not Property.CR and summary.sliver_share:
        yield kinks_text(summary.sliver_share)
    if not is_map and undecided["share"] > 0.0:
        yield f"At most {percent_up(undecided['share'])} of the domain is undecided and counts as not kept."


def boundary_facts(summary: BoundarySummary) -> Facts:
    """Facts about a boundary: shares that satisfy the property, are reachable or enclosed, and the farthest theta."""
    yield "satisfies the property", share_text(summary.satisfying_share)
    yield "reachable from zero", share_text(summary.reachable_share)
    yield "satisfies, not reachable", percent_up(summary.unreachable_share)
    enclaves = f" (with {counted(len(summary.enclaves), 'enclave')})" if summary.enclaves else ""
    yield "inside the boundary", share_text(summary.enclosed_share) + enclaves
    farthest = summary.farthest
    if farthest is not None:
        where = named_theta(summary.domain.names, farthest["theta"])
        yield "farthest reachable", f"{where} (‖theta‖ = {number_text(farthest['distance'])})"
