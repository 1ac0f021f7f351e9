"""Prints a comparison for people on stdout: areas side by side, difference maps in numbers, ranks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .wording import Summary, bounds_text, measures_attention, number_text

LONGEST_NAME, MOST_NAMED = 20, 4
"""Longer names, or more of them, do not fit over columns; numbers stand for them there."""

MOST_CONTRARY = 3

SHARES = {
    "CR": "CR: label kept",
    "AR": "AR: attention kept",
    "CR&AR": "CR&AR: both kept",
    "CR&IR": "CR&IR: label kept alone",
    "MR&AR": "MR&AR: attention kept alone",
    "MR&IR": "MR&IR: neither kept",
    "undecided": "undecided",
}
FACTS = ("nearest MR", "nearest IR", "δ", "property", "verdict")
PROPERTIES = {"cr": "label kept by", "ar": "attention kept by", "both": "both kept by"}


def describe_comparison(summary: Summary, *, files: Sequence[Path] = ()) -> None:
    """Print one comparison; `summary` is what `summarise_comparison` gives."""
    console = Console(highlight=False)
    names = column_names(summary["names"])
    console.print(Text(question_text(summary)))
    console.print(_area_table(summary, names))
    for second in range(1, len(names)):
        found = [one for one in summary["differences"] if one["second"] == second]
        if found:
            console.print(_difference_table(names, found))
    if summary["rankings"]:
        console.print(_rank_table(summary, names))
    if summary["contrary"]:
        console.print(Text(contrary_text(summary["contrary"], names), style="bold"))
    console.print(Text(summary["guarantee"], style="dim"))
    for path in files:
        console.print(Text(f"{'written':8}{path}"), soft_wrap=True)


def column_names(names: Sequence[str]) -> list[str]:
    """The names as they stand over columns: as they are, or numbers where they are long or many.

    >>> column_names(["A", "B"]), column_names(["A", "a name that is far too long"])
    (['A', 'B'], ['[1]', '[2]'])
    """
    if len(names) <= MOST_NAMED and max(len(name) for name in names) <= LONGEST_NAME:
        return list(names)
    return [f"[{number}]" for number in range(1, len(names) + 1)]


def question_text(summary: Summary) -> str:
    """What is compared, and what all results share."""
    names, differs = summary["names"], summary["differs"]
    shown = column_names(names)
    if shown == list(names):
        lines = [f"Compared: {', '.join(names)}"]
    else:
        lines = ["Compared:", *(f"{number} {name}" for number, name in zip(shown, names, strict=True))]
    first = summary["results"][0]
    same = {
        "network": f"network {first['model']['name']}",
        "image": f"image {first['image']['name']}",
        "perturbation": f"perturbation {' + '.join(first['domain']['specs'])}",
        "delta": f"δ = {first['delta']['text']}",
    }
    shared = [text for kind, text in same.items() if kind not in differs]
    if shared:
        lines.append(f"The same for all: {', '.join(shared)}")
    return "\n".join(lines)


def rank_text(rank: dict[str, Any]) -> str:
    """A rank, and why it is a range where it is one.

    >>> one = {"first": 2, "last": 2, "tied": False}
    >>> rank_text(one), rank_text(one | {"last": 3}), rank_text({"first": 1, "last": 2, "tied": True})
    ('2', '2–3 (order not decided)', '1–2 (tied)')
    """
    if rank["first"] == rank["last"]:
        return str(rank["first"])
    return f"{rank['first']}–{rank['last']} ({'tied' if rank['tied'] else 'order not decided'})"


def contrary_text(pairs: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """That some results keep the label on more of the domain, and others the attention."""
    texts = [f"{names[first]} the label, {names[second]} the attention" for first, second in pairs[:MOST_CONTRARY]]
    more = f"; and {len(pairs) - MOST_CONTRARY} more pairs" if len(pairs) > MOST_CONTRARY else ""
    return f"Label and attention rank differently. Kept on more of the domain: {'; '.join(texts)}{more}."


def distance_text(low: float | None, high: float | None) -> str:
    """Bounds of a distance, where None stands for infinity.

    >>> distance_text(None, None), distance_text(0.25, None), distance_text(0.25, 0.5), distance_text(0.25, 0.25)
    ('none', 'not below 0.25', '0.25 to 0.5', '0.25')
    """
    if low is None:
        return "none"
    if high is None:
        return f"not below {number_text(low)}"
    first, last = number_text(low), number_text(high)
    return first if first == last else f"{first} to {last}"


def _area_table(summary: Summary, names: Sequence[str]) -> Table:
    table = _table("share of domain", names)
    columns = [_cells(result) for result in summary["results"]]
    for place, title in enumerate((*SHARES.values(), *FACTS)):
        table.add_row(title, *(Text(column[place]) for column in columns))
    return table


def _cells(result: dict[str, Any]) -> list[str]:
    is_measured = measures_attention(result)
    area, nearest = result["area"], result["nearest"]
    shares = [
        bounds_text(area[name]) if is_measured or name in ("CR", "undecided") else "not measured" for name in SHARES
    ]
    distances = [distance_text(nearest[name]["low"], nearest[name]["high"]) for name in ("CR", "AR")]
    delta = number_text(result["delta"]["value"])
    if not is_measured:
        distances[1] = delta = "not measured"
    return [*shares, *distances, delta, result["property"], result["verdict"]]


def _difference_table(names: Sequence[str], differences: Sequence[dict[str, Any]]) -> Table:
    first, second = (names[differences[0][which]] for which in ("first", "second"))
    rows = {"both": "both", "first": f"only {first}", "second": f"only {second}", "neither": "neither"}
    rows["undecided"] = "undecided for one of them"
    table = _table(f"{first} and {second}", [PROPERTIES[one["property"]] for one in differences])
    for name, title in rows.items():
        shares = [one["shares"][name] for one in differences]
        if name != "undecided" or any(high > 0.0 for _, high in shares):
            table.add_row(Text(title), *(Text(bounds_text(bounds)) for bounds in shares))
    return table


def _rank_table(summary: Summary, names: Sequence[str]) -> Table:
    table = _table("ranks", names)
    for ranking in summary["rankings"]:
        title = f"{'risk' if ranking['is_risk'] else 'kept'}, by {ranking['measure']}, {ranking['order']}"
        ranks = {one["result"]: rank_text(one) for one in ranking["ranks"]}
        table.add_row(title, *(Text(ranks[place]) for place in range(len(names))))
    return table


def _table(corner: str, titles: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column(Text(corner), no_wrap=True)
    for title in titles:
        table.add_column(Text(title), justify="right")
    return table
