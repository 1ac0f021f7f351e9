"""Prints the answer of a search for people on stdout: verdict and what it rests on, the six sets, what was visited."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .describe import VERDICT_STYLES, print_places
from .search_wording import boundary_texts, method_text, search_verdict_text, status_text, visited_text, work_text
from .wording import Summary, delta_text, question_text


def describe_search(
    summary: Summary, *, seconds: Mapping[str, float], directory: Path | None = None, pictures: Sequence[Path] = ()
) -> None:
    """Print one answer; the guarantee that it rests on is part of it."""
    console = Console(highlight=False)
    console.print(Text(question_text(summary)))
    verdict = summary["verdict"]
    console.print(Text.assemble((verdict.upper(), VERDICT_STYLES[verdict]), ": ", search_verdict_text(summary)))
    console.print(_set_table(summary))
    console.print(_fact_table(summary, seconds))
    console.print(Text(summary["guarantee"], style="dim"))
    print_places(console, directory, pictures)
    if len(summary["domain"]["names"]) > 3:
        console.print(Text("picture none: searches of up to three parameters are drawn; regions.npz holds the regions"))


def _set_table(summary: Summary) -> Table:
    titles = ("visited regions", "everywhere", "nowhere", "in part", "undecided")
    table = Table(*titles, box=box.SIMPLE_HEAD, padding=(0, 1))
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for title, kind, names in (
        ("label kept", "classification", ("CR", "MR", "CB")),
        ("attention kept", "attention", ("AR", "IR", "AB")),
    ):
        counts = [summary["sets"][name] for name in names]
        if None in counts:
            table.add_row(title, *["not asked"] * 3, "", style="dim")
        else:
            cells = [f"{name} {count:,}" for name, count in zip(names, counts, strict=True)]
            table.add_row(title, *cells, f"{summary['undecided'][kind] or 0:,}")
    return table


def _fact_table(summary: Summary, seconds: Mapping[str, float]) -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_row("method", Text(method_text(summary)))
    if summary["sets"]["AR"] is not None:
        facts.add_row("δ", Text(delta_text(summary)))
    facts.add_row("status", Text(status_text(summary)))
    # The file of timings may be gone; no answer depends on it.
    facts.add_row("visited", Text(visited_text(summary, seconds.get("total"))))
    facts.add_row("work", Text(work_text(summary)))
    for place, line in enumerate(boundary_texts(summary)):
        facts.add_row("outermost boundary" if place == 0 else "", Text(line))
    if summary["failures"]:
        facts.add_row("failures", Text(f"{summary['failures']:,} regions or programs without an answer", "yellow"))
    if summary["stopped"]:
        facts.add_row("stopped", Text(str(summary["stopped"]), style="yellow"))
    return facts
