"""A comparison for the terminal: shares side by side, difference maps in numbers, ranks."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..attention.measures import Measure
from ..attention.measures.distance import DISTANCE
from ..compare.worsening import WorseningGate
from ..labels import Label
from ..requirement import Outcome
from ..words import distance_text, number_text, percent_up, share_text
from .printing import numbers_table, print_outcome, print_places

MAX_NAME, MAX_NAMED = 20, 4
"""Longer names, or more of them, do not fit over columns, which then show numbers."""

MAX_CONTRARY = 3
"""Pairs listed in the sentence on contrary rankings."""

SHARES = {
    Label.CR: "CR: label kept",
    Label.AR: "AR: attention kept",
    "CR&AR": "CR&AR: both kept",
    "CR&IR": "CR&IR: label kept alone",
    "MR&AR": "MR&AR: attention kept alone",
    "MR&IR": "MR&IR: neither kept",
    "undecided": "undecided",
}
FACTS = ("nearest MR", "nearest IR", "threshold", "property", "verdict")
PROPERTIES = {"cr": "label kept by", "ar": "attention kept by", "both": "both kept by"}


def describe_comparison(summary: Mapping[str, Any], *, files: Sequence[Path] = ()) -> None:
    """Print a comparison: shares side by side, difference maps in numbers, ranks."""
    console = Console(highlight=False, emoji=False)
    names = column_names(summary["names"])
    console.print(Text(_question_text(summary, names)))
    console.print(_share_table(summary, names))
    for second in range(1, len(names)):
        found = [one for one in summary["differences"] if one["second"] == second]
        if found:
            console.print(_difference_table(names, found))
    if summary["rankings"]:
        console.print(_rank_table(summary, names))
    if summary["contrary"]:
        console.print(Text(contrary_text(summary["contrary"], names), style="bold"))
    console.print(Text(summary["guarantee"], style="dim"))
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


def _question_text(summary: Mapping[str, Any], shown: Sequence[str]) -> str:
    """The compared results, and the parts of their questions that are the same."""
    names, first = summary["names"], summary["results"][0]
    if shown == list(names):
        lines = [f"Compared: {', '.join(names)}"]
    else:
        lines = ["Compared:", *(f"{number} {name}" for number, name in zip(shown, names, strict=True))]
    threshold = _threshold_text(first)
    if any(_threshold_text(result) != threshold for result in summary["results"]):
        # A share of each network's own maps: the same text, other numbers.
        threshold = f"δ = {first['delta']['text']}"
    same = {
        "network": f"network {first['model']['name']}",
        "image": f"image {first['image']['name']}",
        "perturbation": f"perturbation {' + '.join(first['domain']['specs'])}",
        "delta": threshold,
    }
    shared = [text for kind, text in same.items() if kind not in summary["differs"]]
    return "\n".join([*lines, f"The same for all: {', '.join(shared)}"] if shared else lines)


def rank_text(rank: dict[str, Any]) -> str:
    """A rank, or a range of ranks with its reason.

    >>> one = {"first": 2, "last": 2, "tied": False}
    >>> rank_text(one), rank_text(one | {"last": 3}), rank_text({"first": 1, "last": 2, "tied": True})
    ('2', '2–3 (order not decided)', '1–2 (tied)')
    """
    if rank["first"] == rank["last"]:
        return str(rank["first"])
    return f"{rank['first']}–{rank['last']} ({'tied' if rank['tied'] else 'order not decided'})"


def contrary_text(pairs: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """Which results keep the label on more of the domain while others keep the attention on more."""
    texts = [
        f"{names[first]} keeps the label on more of the domain, {names[second]} the attention"
        for first, second in pairs[:MAX_CONTRARY]
    ]
    more = f"; and {len(pairs) - MAX_CONTRARY} more pairs" if len(pairs) > MAX_CONTRARY else ""
    return f"Label and attention rank the results differently: {'; '.join(texts)}{more}."


def _share_table(summary: Mapping[str, Any], names: Sequence[str]) -> Table:
    table = numbers_table("share of domain", *names)
    columns = [_cells(result) for result in summary["results"]]
    for title, *row in zip((*SHARES.values(), *FACTS), *columns, strict=True):
        table.add_row(title, *row)
    return table


def _threshold_text(result: Mapping[str, Any]) -> str:
    """The threshold of a result, absolute for distances, and otherwise as given."""
    facts, delta = result["attention"], result["delta"]
    measure = Measure.parse(facts["property"])
    if measure == DISTANCE:
        return (
            f"δ = {delta['text']} ({number_text(delta['value'])})" if "%" in delta["text"] else f"δ = {delta['text']}"
        )
    return measure.name if facts["threshold"] is None else f"{measure.symbol} = {facts['threshold']}"


def _cells(result: dict[str, Any]) -> list[str]:
    is_measured = "attention" in result["measures"]
    area, nearest = result["area"], result["nearest"]
    shares = [
        share_text(*area[name]) if is_measured or name == Label.CR else "not measured"
        for name in SHARES
        if name != Label.UNDECIDED
    ]
    ends = [
        [math.inf if nearest[name][end] is None else nearest[name][end] for end in ("low", "high")]
        for name in (Label.CR, Label.AR)
    ]
    distances = [distance_text(low, high) for low, high in ends]
    delta = _threshold_text(result)
    if not is_measured:
        distances[1] = delta = "not measured"
    return [*shares, percent_up(area[Label.UNDECIDED][1]), *distances, delta, result["property"], result["verdict"]]


def _difference_table(names: Sequence[str], differences: Sequence[dict[str, Any]]) -> Table:
    first, second = (names[differences[0][which]] for which in ("first", "second"))
    rows = {"both": "both", "first": f"only {first}", "second": f"only {second}", "neither": "neither"}
    rows["undecided"] = "undecided for one of them"
    table = numbers_table(f"{first} and {second}", *(PROPERTIES[one["property"]] for one in differences))
    for name, title in rows.items():
        shares = [one["shares"][name] for one in differences]
        if name != "undecided" or any(high > 0.0 for _, high in shares):
            texts = [percent_up(high) if name == "undecided" else share_text(low, high) for low, high in shares]
            table.add_row(Text(title), *texts)
    return table


def _rank_table(summary: Mapping[str, Any], names: Sequence[str]) -> Table:
    table = numbers_table("ranks", *names)
    for ranking in summary["rankings"]:
        title = f"{'risk' if ranking['is_risk'] else 'kept'}, by {ranking['measure']}, {ranking['order']}"
        ranks = {one["result"]: rank_text(one) for one in ranking["ranks"]}
        table.add_row(title, *(ranks[place] for place in range(len(names))))
    return table
