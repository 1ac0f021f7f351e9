"""Prints an answer for people on stdout: verdict, table of shares, nearest violations, where everything is."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..tolerances import MAX_MAP_PARAMETERS
from .requirement import Outcome, Requirement
from .wording import (
    Summary,
    bounds_text,
    boxes_text,
    enough_text,
    kept_text,
    measures_attention,
    nearest_text,
    question_text,
    share_text,
    verdict_text,
)

VERDICT_STYLES = {"robust": "bold green", "not robust": "bold red", "undecided": "bold yellow"}
_OUTCOME_STYLES = {Outcome.MET: "bold green", Outcome.NOT_MET: "bold red", Outcome.UNDECIDED: "bold yellow"}


def describe(
    summary: Summary,
    *,
    seconds: Mapping[str, float],
    requirement: Requirement | None = None,
    directory: Path | None = None,
    pictures: Sequence[Path] = (),
    reason: str | None = None,
) -> None:
    """Print one answer; the guarantee that it rests on is part of it. `reason` is why its method was taken."""
    console = Console(highlight=False)
    console.print(Text(question_text(summary)))
    verdict = summary["verdict"]
    console.print(Text.assemble((verdict.upper(), VERDICT_STYLES[verdict]), ": ", verdict_text(summary)))
    if requirement is not None:
        outcome = requirement.judge(summary["area"])
        console.print(Text.assemble(f"Required {requirement.text}: ", (outcome.value, _OUTCOME_STYLES[outcome])))
    console.print(_share_table(summary))
    console.print(_fact_table(summary, seconds, reason))
    console.print(Text(summary["guarantee"], style="dim"))
    print_places(console, directory, pictures)
    if len(summary["domain"]["names"]) > MAX_MAP_PARAMETERS:
        console.print(
            Text(f"picture none: up to {MAX_MAP_PARAMETERS} parameters are drawn; regions.npz holds the boxes")
        )


def print_places(console: Console, directory: Path | None, pictures: Sequence[Path]) -> None:
    """Print where the result and its pictures are, one line each."""
    for name, path in (("result", directory), *(("picture", picture) for picture in pictures)):
        if path is not None:
            console.print(Text(f"{name:8}{path}"), soft_wrap=True)


def _share_table(summary: Summary) -> Table:
    area = summary["area"]
    is_measured = measures_attention(summary)
    table = Table("share of domain", "CR: label kept", "MR: label changed", "all", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for name, title in (("AR", "AR: attention kept"), ("IR", "IR: not kept")) if is_measured else ():
        cells = (area[f"CR&{name}"], area[f"MR&{name}"], area[name])
        table.add_row(title, *(bounds_text(bounds) for bounds in cells))
    table.add_row("all", bounds_text(area["CR"]), bounds_text(area["MR"]), "100 %")
    if area["undecided"][1] > 0.0:
        table.add_row("undecided", "", "", share_text(area["undecided"][1]), style="dim")
    return table


def _fact_table(summary: Summary, seconds: Mapping[str, float], reason: str | None) -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_row("nearest MR", Text(nearest_text(summary, "CR")))
    if measures_attention(summary):
        facts.add_row("nearest IR", Text(nearest_text(summary, "AR")))
        facts.add_row("AR at other δ", Text(kept_text(summary)))
        facts.add_row("all of it AR", Text(enough_text(summary)))
    if reason is not None:
        facts.add_row("method", Text(f"{summary['method']}: {reason}"))
    if summary.get("boxes") is not None:
        facts.add_row("boxes", Text(boxes_text(summary)))
    regions = f"{summary['regions']:,}"
    if {"total", "engine"} <= seconds.keys():  # the file of timings may be gone; no answer depends on it
        regions += f" in {seconds['total']:.1f} s (engine {seconds['engine']:.1f} s)"
    facts.add_row("regions", Text(regions))
    if summary["stopped"]:
        facts.add_row("stopped", Text(str(summary["stopped"]), style="yellow"))
    return facts
