"""Several results → one comparison: differences, names, notes, difference maps, rankings, plain data.

Also judges whether a share of a result is worse than that of a baseline. Reads the questions and shares of results.
Solves nothing and draws nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from ..attention.asking import AttentionFacts, GivenThresholds
from ..errors import OptionError, without_controls
from ..labels import Joint, Label, Property
from ..perturbation import without_names
from ..question import Question
from ..requirement import Outcome
from ..results.display import one_line
from ..results.result import Result
from ..results.summary import NearestFacts, kinks_text
from ..words import counted
from .overlay import Bounds, combine, lay_over
from .ranking import Ranking, find_contrary, make_rankings

SCHEMA_VERSION = 1  # grows with every incompatible change
KINDS = ("network", "image", "perturbation", "attention", "delta")  # the parts of a question that may differ
MOST_LAID_OVER = 2  # parameters up to which the pieces of two results are overlaid
KEPT = (Label.CR, Label.AR, Joint.BOTH)  # shares that should be large; all others should be small


@dataclass(frozen=True)
class Difference:
    """Where one of two results (numbered `first` and `second`) keeps a property and the other does not.

    shares: proved bounds of the shares of the domain where both keep it, only the first, only the second, neither, and
    where one of them is undecided. `is_exact`: the pieces were overlaid; otherwise the bounds follow from the results'
    own shares.
    """

    first: int
    second: int
    property: Property
    shares: dict[str, Bounds]
    is_exact: bool


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of results, as `compare` returns it. Immutable.

    names: one for each result; differs: which of `KINDS` differ; notes: limits of the comparison; rankings: by the
    share kept, or by risk. Difference maps compare every result with the first, on one common domain.
    """

    results: tuple[Result, ...]
    names: tuple[str, ...]
    differs: tuple[str, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        differs = ", ".join(self.differs) or "nothing"
        return "\n".join([f"Comparison: {differs} differs", *(f"  {one_line(name)}" for name in self.names)])

    @property
    def areas(self) -> tuple[dict[str, Bounds], ...]:
        """The shares of every result, as in `result.areas`."""
        return tuple(result.areas for result in self.results)

    @cached_property
    def rankings(self) -> tuple[Ranking, ...]:
        """The rankings that suit the differences."""
        return make_rankings(self.results, self.differs)

    @cached_property
    def contrary(self) -> tuple[tuple[int, int], ...]:
        """Pairs of results: the first keeps the label on more of the domain, the second keeps the attention on more."""
        if not self.has_difference_map:
            return ()
        found = {ranking.measure: ranking for ranking in self.rankings}
        return find_contrary(found[Label.CR], found[Label.AR]) if {Label.CR, Label.AR} <= found.keys() else ()

    @property
    def has_difference_map(self) -> bool:
        """Whether all results have the same domain."""
        return all(specs(result) == specs(self.results[0]) for result in self.results)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Every result against the first, for the label, the attention, and both."""
        if not self.has_difference_map:
            return ()
        return tuple(
            _differ(self.results, second, wanted)
            for second in range(1, len(self.results))
            for wanted in Property
            if wanted is Property.CR or (self.results[0].is_measured and self.results[second].is_measured)
        )

    def summary(self) -> dict[str, Any]:
        """The comparison as plain data, as `--json` prints it: infinite numbers are None, results count from 0."""
        return {
            "schema_version": SCHEMA_VERSION,
            "names": list(self.names),
            "differs": list(self.differs),
            "notes": list(self.notes),
            "results": [_result_data(name, one) for name, one in zip(self.names, self.results, strict=True)],
            "differences": [_difference_data(difference) for difference in self.differences],
            "rankings": [_ranking_data(ranking) for ranking in self.rankings],
            "contrary": [list(pair) for pair in self.contrary],
            "guarantee": guarantee(self),
        }

    def plot(self, path: str | Path) -> list[Path]:
        """Draw areas and difference maps: PATH.png, .svg or .pdf by its suffix, or all three without one."""
        from .comparison_figure import draw_comparison  # noqa: PLC0415 (matplotlib is slow to import)

        return draw_comparison(self, path)


def compare_results(results: Sequence[Result], thresholds: GivenThresholds | None = None) -> Comparison:
    """Compare results that bound shares of the whole domain; OptionError for others.

    Each answers for its own threshold unless one is given for all.
    """
    if len(results) < 2:
        raise OptionError(f"compare got {counted(len(results), 'result')}, and needs two or more; give more")
    for place, result in enumerate(results, start=1):
        if not result.knows_shares:
            raise OptionError(
                f"result {place} is a {result.tiling.kind} ({result.method}), which bounds no shares of the whole "
                "domain; verify with --method map, refine or bfs"
            )
    given = tuple(result.with_options(thresholds or {}) for result in results)
    differs = find_differences(given)
    names = name_results(given, differs)
    return Comparison(given, names, differs, make_notes(given, names, differs))


def find_differences(results: Sequence[Result]) -> tuple[str, ...]:
    """Which of `KINDS` are not the same for all results."""
    keys: dict[str, list[Any]] = {
        "network": [_network(result.question) for result in results],
        "image": [(result.question.perturbed.x0.shape, result.question.perturbed.x0.tobytes()) for result in results],
        "perturbation": [specs(result) for result in results],
        "attention": [result.question.attention for result in results],
        "delta": [result.threshold for result in results if result.is_measured],
    }
    return tuple(kind for kind in KINDS if any(key != keys[kind][0] for key in keys[kind][1:]))


def specs(result: Result) -> tuple[str, ...]:
    """The perturbations of a result, as texts: equal ones span the same domain; files count by content."""
    return tuple(without_names(spec) for spec in result.question.specs)


def name_results(results: Sequence[Result], differs: Sequence[str]) -> tuple[str, ...]:
    """A name for each result, made only of the parts that differ; equal names are numbered."""
    shown = [kind for kind in ("network", "image", "perturbation") if kind in differs]
    if not shown:
        shown = [kind for kind in ("attention", "delta") if kind in differs] or ["network"]
    texts = [", ".join(describe(result, kind) for kind in shown) for result in results]
    numbers = [texts[: place + 1].count(text) for place, text in enumerate(texts)]
    return tuple(
        text if texts.count(text) == 1 else f"{text} ({number})" for text, number in zip(texts, numbers, strict=True)
    )


def describe(result: Result, kind: str) -> str:
    """One part of the question of a result, in words."""
    question = result.question
    if kind == "perturbation":
        return " + ".join(question.specs)
    if kind == "attention":
        return question.describe().attention.text()
    text = {"network": question.model_name, "image": question.image_name, "delta": threshold_name(result)}[kind]
    return without_controls(text)


def threshold_name(result: Result) -> str:
    """The threshold as given, with its symbol; the name of a property without one."""
    measure = result.question.attention.measure
    text = measure.threshold_text(result.threshold)
    return measure.name if text is None else f"{measure.symbol} = {text}"


def make_notes(results: Sequence[Result], names: Sequence[str], differs: Sequence[str]) -> tuple[str, ...]:
    """Sentences on the limits of the comparison."""
    notes = []
    first = results[0].question
    is_measured = all(result.is_measured for result in results)
    if len({result.question.property for result in results}) > 1:
        asked = _each(names, [result.question.property.value for result in results])
        notes.append(f"The properties to prove differ ({asked}), so the verdicts mean different things.")
    elif not differs:
        notes.append("All results answer the same question.")
    if any((result.question.label, result.question.names) != (first.label, first.names) for result in results):
        labels = _each(names, [result.question.names[result.label] for result in results])
        notes.append(f"The labels of the unperturbed images differ ({labels}); CR means that each keeps its own.")
    if "delta" in differs:
        deltas, option = _each(names, [threshold_name(result) for result in results]), first.attention.measure.option
        advice = f"; give one for all with --{option}" if _has_one_property(results) else ""
        notes.append(f"The thresholds differ ({deltas}), so AR means different things{advice}.")
    elif results[0].threshold.is_relative and is_measured and ("network" in differs or "image" in differs):
        measure = first.attention.measure
        values = _each(names, [f"{measure.threshold_at(one.answer.delta, one.question.base):.5g}" for one in results])
        notes.append(f"{threshold_name(results[0])} is relative to each result's own original maps ({values}).")
    if "attention" in differs:
        ways = _each(names, [describe(result, "attention") for result in results])
        notes.append(f"The attention maps are compared in different ways ({ways}).")
    if is_measured and not _has_one_property(results):
        notes.append("Each result has its own property of attention, so shares of AR mean different things.")
    if "perturbation" in differs:
        notes.append("The domains differ, so each share refers to its own domain, and there is no difference map.")
        if len({tuple(sorted(specs(result))) for result in results}) == 1:
            notes.append("Only the order of the perturbations differs; verify in the same order for difference maps.")
    for name, result in zip(names, results, strict=True):
        if not result.is_complete:
            notes.append(f"{name}: partial, the run stopped early ({result.stopped}); the rest counts as undecided.")
        if not result.is_measured:
            notes.append(f"{name}: attention was not measured (--property cr).")
    return tuple(notes)


def _has_one_property(results: Sequence[Result]) -> bool:
    return len({result.question.attention.measure.name for result in results}) == 1


def guarantee(comparison: Comparison) -> str:
    """The basis of the comparison, in a few sentences."""
    kinks = min(1.0, sum(result.sliver_share or 0.0 for result in comparison.results))
    sentences = ["Every number follows from the proofs of the results, and holds under the same conditions."]
    if kinks > 0.0:
        sentences.append(kinks_text(kinks))
    if any(not difference.is_exact for difference in comparison.differences):
        sentences.append(
            "Searches, and results with three or more parameters, are not overlaid: shares of difference maps are "
            "bounds that follow from the results' own shares."
        )
    elif comparison.differences:
        sentences.append("Areas of difference maps are those of the overlaid pieces, up to rounding, kinks aside.")
    return " ".join(sentences)


def judge_worsening(
    baseline: Sequence[float], new: Sequence[float], *, allowed: float, share: str = Joint.BOTH
) -> Outcome:
    """Judge proved bounds (low, high) of one share of two results; computed without rounding.

    NOT_MET: whatever the shares are between their bounds, the new one is worse by more than allowed. MET: it is not,
    whatever they are.

    >>> judge_worsening((0.6, 0.61), (0.5, 0.58), allowed=0.01)
    <Outcome.NOT_MET: 'not met'>
    >>> judge_worsening((0.6, 0.61), (0.5, 0.595), allowed=0.01)
    <Outcome.UNDECIDED: 'undecided'>
    >>> judge_worsening((0.1, 0.1), (0.3, 0.3), allowed=0.01, share="MR")
    <Outcome.NOT_MET: 'not met'>
    """
    (base_low, base_high), (new_low, new_high) = ([Fraction(float(end)) for end in ends] for ends in (baseline, new))
    least, most = (base_low - new_high, base_high - new_low)
    if share not in KEPT:
        least, most = (new_low - base_high, new_high - base_low)
    limit = Fraction(allowed)
    if least > limit:
        return Outcome.NOT_MET
    return Outcome.UNDECIDED if most > limit else Outcome.MET


@dataclass(frozen=True)
class WorseningGate:
    """Every later result against the first, the baseline. later: name, proved bounds of the share, outcome of each."""

    share: str
    allowed: float
    baseline: Bounds
    later: tuple[tuple[str, Bounds, Outcome], ...]

    @classmethod
    def of(cls, comparison: Comparison, share: str, allowed: float) -> "WorseningGate":
        """Judge the results of a comparison."""
        (_, baseline), *others = [
            (name, result.areas[share]) for name, result in zip(comparison.names, comparison.results, strict=True)
        ]
        later = [(name, new, judge_worsening(baseline, new, allowed=allowed, share=share)) for name, new in others]
        return cls(share, allowed, baseline, tuple(later))

    @property
    def outcome(self) -> Outcome:
        """The outcome of all."""
        return Outcome.all_of(outcome for _, _, outcome in self.later)

    def plain(self) -> dict[str, Any]:
        """The gate as `--json` prints it."""
        later = [{"name": name, "bounds": list(new), "outcome": outcome.value} for name, new, outcome in self.later]
        facts = {"share": self.share, "allowed": self.allowed, "baseline": list(self.baseline)}
        return facts | {"results": later, "outcome": self.outcome.value}


def _differ(results: Sequence[Result], second: int, wanted: Property) -> Difference:
    own, other = results[0], results[second]
    has_pieces = own.tiling.answers_any_delta and other.tiling.answers_any_delta
    if has_pieces and own.question.compound.domain.dimension <= MOST_LAID_OVER:
        return Difference(0, second, wanted, lay_over(own, other, wanted).shares(), True)
    return Difference(0, second, wanted, combine(own.answer.shares, other.answer.shares, wanted), False)


def _network(question: Question) -> tuple[object, ...]:
    """The identity of a network: its file and its preprocessing."""
    preprocessing = getattr(question.model.replay, "preprocessing", None)
    given = () if preprocessing is None else (preprocessing.mean, preprocessing.std, preprocessing.scale)
    return question.model.sha256, question.model_name, *(str(numbers) for numbers in given)


def _each(names: Sequence[str], texts: Sequence[str]) -> str:
    """One text for each result after its name; a text that equals the name stands alone."""
    return "; ".join(text if text == name else f"{name}: {text}" for name, text in zip(names, texts, strict=True))


def _result_data(name: str, result: Result) -> dict[str, Any]:
    question = result.question
    return {
        "name": name,
        "method": result.method,
        "verdict": result.verdict.value,
        "property": question.property.value,
        "label": result.label,
        "label_name": question.names[result.label],
        "measures": result.measures,
        "regions": result.region_count,
        "area": {share: list(bounds) for share, bounds in result.areas.items()},
        "nearest": {violated: to_builtins(NearestFacts.of(found)) for violated, found in result.nearest.items()},
        "delta": {"text": result.stated.text, "value": result.answer.delta, "map_size": result.question.base},
        "sliver_share": result.sliver_share,
        "complete": result.is_complete,
        "stopped": result.stopped,
        **to_builtins(question.describe()),
        "attention": to_builtins(AttentionFacts.of(question.attention, result.threshold)),
    }


def _difference_data(difference: Difference) -> dict[str, Any]:
    return {
        "first": difference.first,
        "second": difference.second,
        "property": difference.property.value,
        "shares": {name: list(bounds) for name, bounds in difference.shares.items()},
        "exact": difference.is_exact,
    }


def _ranking_data(ranking: Ranking) -> dict[str, Any]:
    ranks = []
    for one in ranking.ranks:
        low, high = (float(bound) if math.isfinite(bound) else None for bound in one.bounds)
        places = {"first": one.first, "last": one.last, "tied": one.is_tied}
        ranks.append({"result": one.result, "low": low, "high": high} | places)
    return {
        "measure": ranking.measure,
        "meaning": ranking.meaning,
        "order": ranking.order,
        "is_risk": ranking.is_risk,
        "ranks": ranks,
    }
