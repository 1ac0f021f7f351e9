"""A comparison for the terminal: shares side by side, difference maps in numbers, ranks."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..attention.measures.distance import DISTANCE
from ..compare.comparison import Comparison, Difference, WorseningGate, guarantee, threshold_name
from ..compare.ranking import Rank
from ..labels import Joint, Label
from ..requirement import Outcome
from ..results.result import Result
from ..words import distance_text, number_text, percent_up, share_text
from .printing import numbers_table, print_outcome, print_places

MAX_NAME, MAX_NAMED = 20, 4
"""Longer names, or more of them, do not fit over columns, which then show numbers."""

MAX_CONTRARY = 3
"""Pairs listed in the sentence on contrary rankings."""

SHARES = {
    **{name: f"{name}: {name.sentence}" for name in (Label.CR, Label.AR, *Joint)},
    Label.UNDECIDED: Label.UNDECIDED.sentence,
}
FACTS = ("nearest MR", "nearest IR", "threshold", "property", "verdict")


def describe_comparison(comparison: Comparison, *, files: Sequence[Path] = ()) -> None:
    """Print a comparison: shares side by side, difference maps in numbers, ranks."""
    console = Console(highlight=False, emoji=False)
    names = column_names(comparison.names)
    console.print(Text(_question_text(comparison, names)))
    console.print(_share_table(comparison, names))
    for second in range(1, len(names)):
        found = [one for one in comparison.differences if one.second == second]
        if found:
            console.print(_difference_table(names, found))
    if comparison.rankings:
        console.print(_rank_table(comparison, names))
    if comparison.contrary:
        console.print(Text(contrary_text(comparison.contrary, names), style="bold"))
    console.print(Text(guarantee(comparison), style="dim"))
    print_places(console, "written", files)


def describe_gate(gate: WorseningGate) -> None:
    """Print whether each result is worse than the baseline by more than allowed, and the outcome of all."""
    console = Console(highlight=False, emoji=False)
    for name, bounds, outcome in gate.later:
        words = {Outcome.MET: "not worse", Outcome.NOT_MET: "worse", Outcome.UNDECIDED: "open: the bounds allow both"}
        text = f"{name}: {gate.share} {share_text(*bounds)}, {words[outcome]}"
        console.print(Text(f"{text} (baseline {share_text(*gate.baseline)}, allowed {share_text(gate.allowed)})"))
    print_outcome(console, f"Not worse by more than {share_text(gate.allowed)}: ", gate.outcome)


def column_names(names: Sequence[str]) -> list[str]:
    """The heads of columns: names, or numbers if the names are too long or too many.

    >>> column_names(["A", "B"]), column_names(["A", "a name that is far too long"])
    (['A', 'B'], ['[1]', '[2]'])
    """
    if len(names) <= MAX_NAMED and max(len(name) for name in names) <= MAX_NAME:
        return list(names)
    return [f"[{number}]" for number in range(1, len(names) + 1)]


def _question_text(comparison: Comparison, shown: Sequence[str]) -> str:
    """The compared results, and the parts of their questions that are the same."""
    names, first = comparison.names, comparison.results[0]
    if shown == list(names):
        lines = [f"Compared: {', '.join(names)}"]
    else:
        lines = ["Compared:", *(f"{number} {name}" for number, name in zip(shown, names, strict=True))]
    threshold = _threshold_text(first)
    if any(_threshold_text(result) != threshold for result in comparison.results):
        # A share of each network's own maps: the same text, other numbers.
        threshold = f"δ = {first.stated.text}"
    same = {
        "network": f"network {first.question.model_name}",
        "image": f"image {first.question.image_name}",
        "perturbation": f"perturbation {' + '.join(first.question.specs)}",
        "delta": threshold,
    }
    shared = [text for kind, text in same.items() if kind not in comparison.differs]
    return "\n".join([*lines, f"The same for all: {', '.join(shared)}"] if shared else lines)


def rank_text(rank: Rank) -> str:
    """A rank, or a range of ranks with its reason.

    >>> [rank_text(Rank(0, (0.5, 0.6), *one)) for one in ((2, 2, False), (2, 3, False), (1, 2, True))]
    ['2', '2–3 (order not decided)', '1–2 (tied)']
    """
    if rank.first == rank.last:
        return str(rank.first)
    return f"{rank.first}–{rank.last} ({'tied' if rank.is_tied else 'order not decided'})"


def contrary_text(pairs: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """Which results keep the label on more of the domain while others keep the attention on more."""
    texts = [
        f"{names[first]} keeps the label on more of the domain, {names[second]} the attention"
        for first, second in pairs[:MAX_CONTRARY]
    ]
    more = f"; and {len(pairs) - MAX_CONTRARY} more pairs" if len(pairs) > MAX_CONTRARY else ""
    return f"Label and attention rank the results differently: {'; '.join(texts)}{more}."


def _share_table(comparison: Comparison, names: Sequence[str]) -> Table:
    table = numbers_table("share of domain", *names)
    columns = [_cells(result) for result in comparison.results]
    for title, *row in zip((*SHARES.values(), *FACTS), *columns, strict=True):
        table.add_row(title, *row)
    return table


def _threshold_text(result: Result) -> str:
    """The threshold of a result, absolute for distances, and otherwise as given."""
    if result.question.attention.measure == DISTANCE:
        text = result.stated.text
        return f"δ = {text} ({number_text(result.answer.delta)})" if "%" in text else f"δ = {text}"
    return threshold_name(result)


def _cells(result: Result) -> list[str]:
    area, is_measured = result.areas, result.is_measured
    shares = [
        share_text(*area[name]) if is_measured or name == Label.CR else "not measured"
        for name in SHARES
        if name != Label.UNDECIDED
    ]
    nearest = [result.nearest[name] for name in (Label.CR, Label.AR)]
    distances = [distance_text(one.low, one.high) for one in nearest]
    delta = _threshold_text(result)
    if not is_measured:
        distances[1] = delta = "not measured"
    undecided, wanted = percent_up(area[Label.UNDECIDED][1]), result.question.property.value
    return [*shares, undecided, *distances, delta, wanted, result.verdict.value]


def _difference_table(names: Sequence[str], differences: Sequence[Difference]) -> Table:
    first, second = names[differences[0].first], names[differences[0].second]
    rows = {"both": "both", "first": f"only {first}", "second": f"only {second}", "neither": "neither"}
    rows["undecided"] = "undecided for one of them"
    table = numbers_table(f"{first} and {second}", *(f"{one.property.noun} kept by" for one in differences))
    for name, title in rows.items():
        shares = [one.shares[name] for one in differences]
        if name != "undecided" or any(high > 0.0 for _, high in shares):
            texts = [percent_up(high) if name == "undecided" else share_text(low, high) for low, high in shares]
            table.add_row(Text(title), *texts)
    return table


def _rank_table(comparison: Comparison, names: Sequence[str]) -> Table:
    table = numbers_table("ranks", *names)
    for ranking in comparison.rankings:
        title = f"{'risk' if ranking.is_risk else 'kept'}, by {ranking.measure}, {ranking.order}"
        ranks = {one.result: rank_text(one) for one in ranking.ranks}
        table.add_row(title, *(ranks[place] for place in range(len(names))))
    return table
