"""Prints answers and boundaries on stdout, as tables and facts for people or as JSON, and notes on stderr."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..attention.measures.distance import DISTANCE
from ..engines import load
from ..errors import OptionError
from ..labels import ATTENTIONS, CLASSIFICATIONS, Label, Verdict
from ..requirement import Outcome, Requirement
from ..results.boundary_summary import BoundarySummary
from ..results.result import Result
from ..results.summary import Summary
from ..tolerances import MAX_MAP_PARAMETERS
from ..words import number_text, percent_up, share_text
from .answer_text import (
    boundary_facts,
    certainty_text,
    domain_facts,
    question_text,
    reach_text,
    search_facts,
    verdict_text,
)
from .typer_changes import NARROW

if TYPE_CHECKING:
    from ..campaign.set_requirement import Gate

LONG_WORD = 9
"""Letters that a column of a table has room for in a narrow terminal."""

STYLES = {
    Verdict.ROBUST.exit_code: "bold green",
    Verdict.NOT_ROBUST.exit_code: "bold red",
    Verdict.UNDECIDED.exit_code: "bold yellow",
}


def describe(
    summary: Summary,
    *,
    seconds: Mapping[str, float],
    requirement: Requirement | None = None,
    directory: Path | None = None,
    pictures: Sequence[Path] = (),
    reason: str | None = None,
) -> None:
    """Print the answer of any method with its guarantee; `reason` says why the method was chosen."""
    console = Console(highlight=False, emoji=False)
    console.print(Text(question_text(summary)))
    print_verdict(console, summary.verdict, verdict_text(summary))
    if requirement is not None:
        outcome = requirement.judge(summary.area, summary.verdict)
        print_outcome(console, f"Required {requirement.text}: ", outcome)
    if summary.is_search:
        console.print(_set_table(summary))
        facts = [*search_facts(summary, seconds)]
    else:
        console.print(_share_table(summary))
        facts = [*domain_facts(summary, seconds, reason)]
    print_facts(console, [*facts, ("stopped", summary.stopped)] if summary.stopped else facts)
    console.print(Text(summary.guarantee, style="dim"))
    print_places(console, "result", [] if directory is None else [directory])
    print_places(console, "picture", pictures)
    if summary.is_search and len(summary.domain.names) > MAX_MAP_PARAMETERS:
        console.print(
            Text(f"picture none: up to {MAX_MAP_PARAMETERS} parameters are drawn; regions.npz holds the regions")
        )


def print_verdict(console: Console, verdict: Verdict, text: str) -> None:
    """Print the verdict in its colour, then its meaning."""
    console.print(Text.assemble(_styled(verdict, verdict.value.upper()), ": ", text))


def print_outcome(console: Console, text: str, outcome: Outcome, more: str = "") -> None:
    """Print the requirement, then its outcome in its colour."""
    console.print(Text.assemble(text, _styled(outcome, outcome.value), more), soft_wrap=True)


def print_facts(console: Console, facts: Iterable[tuple[str, str]]) -> None:
    """Print names and texts in two columns, or below each other if there is no room; an early end stands out."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    for name, text in facts:
        told = Text(text, style="yellow" if name in ("failures", "stopped") else "")
        if console.width >= NARROW:
            table.add_row(name, told)
        else:
            console.print(Text(name, style="dim"))
            console.print(Padding(told, (0, 0, 0, 2)))
    if table.row_count:
        console.print(table)


def print_places(console: Console, name: str, paths: Iterable[Path]) -> None:
    """Print the paths of files, one line each."""
    for path in paths:
        console.print(Text(f"{name:8}{path}"), soft_wrap=True)


def judged(summary: Summary, requirement: Requirement | None) -> dict[str, Any]:
    """The requirement and its outcome for `--json`; empty without one."""
    if requirement is None:
        return {}
    outcome = requirement.judge(summary.area, summary.verdict)
    return {"require": {"text": requirement.text, "outcome": outcome.value}}


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout."""
    print(json.dumps(content, indent=2, allow_nan=False))


def print_notes(notes: Iterable[str]) -> None:
    """Print notes for the reader on stderr, one line each."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


class _WholeCells(Table):
    """A table that breaks the lines of titles before those of numbers, and never cuts a number.

    If the numbers and the names of the rows do not fit side by side, lines of names break, then lines of numbers.
    """

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*cells, **options)
        for column, cell in zip(self.columns[1:], cells[1:], strict=False):
            column.min_width = max(column.min_width or 0, cell_len(str(cell or "")))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        texts = [[str(column.header), *map(str, column.cells)] for column in self.columns]
        widths = [max(map(cell_len, column)) for column in texts]
        words = [max(map(_longest_word, column)) for column in texts]
        whole = [max(column.min_width or 0, _longest_word(str(column.header))) for column in self.columns]
        name = min(widths[0], 2 * LONG_WORD)
        room = options.max_width - 3 * len(widths) - 1  # beside each cell: two blanks and a border
        if sum(widths) > room:
            for least in ([widths[0], *whole[1:]], [name, *whole[1:]], [name, *words[1:]]):
                while sum(widths) > room and (places := [i for i, width in enumerate(widths) if width > least[i]]):
                    widths[max(places, key=lambda i: widths[i])] -= 1
            for column, width in zip(self.columns, widths, strict=True):
                column.width, column.no_wrap, column.overflow = width, False, "fold"
        return super().__rich_console__(console, options)


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=1)


def numbers_table(*titles: str) -> Table:
    """A table of numbers under titles, each row named in its first column."""
    is_narrow = Console().width < NARROW
    table = (Table if is_narrow else _WholeCells)(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1) if is_narrow else (0, 1))
    for place, title in enumerate(titles):
        justify: Literal["left", "right"] = "right" if place else "left"
        table.add_column(
            Text(title),
            no_wrap=place == 0 and not is_narrow,
            justify=justify,
            min_width=LONG_WORD * is_narrow,
            overflow="fold",
        )
    return table


def _styled(outcome: Verdict | Outcome, text: str) -> tuple[str, str]:
    return text, STYLES[outcome.exit_code]


def _share_table(summary: Summary) -> Table:
    area = summary.area
    table = numbers_table("share of domain", "CR: label kept", "MR: label changed", "all")
    kept, lost = summary.measure.short
    titles = ("attention kept", "not kept") if summary.measure == DISTANCE else (kept, lost)
    pairs = zip((Label.AR, Label.IR), titles, strict=True) if summary.is_measured else ()
    for name, title in ((name, f"{name}: {words}") for name, words in pairs):
        table.add_row(title, *(share_text(*area[key]) for key in (f"CR&{name}", f"MR&{name}", name)))
    table.add_row("all", share_text(*area[Label.CR]), share_text(*area[Label.MR]), "100 %")
    if area[Label.UNDECIDED][1] > 0.0:
        table.add_row(Label.UNDECIDED, "", "", percent_up(area[Label.UNDECIDED][1]), style="dim")
    return table


def _set_table(summary: Summary) -> Table:
    table = numbers_table("visited regions", "everywhere", "nowhere", "in part", Label.UNDECIDED)
    for title, kind, names in (
        ("label kept", "classification", CLASSIFICATIONS),
        ("attention kept", "attention", ATTENTIONS),
    ):
        counts = [summary.sets[name] for name in names]
        if None in counts:
            table.add_row(title, *["not measured"] * 3, "", style="dim")
        else:
            cells = [f"{name} {count:,}" for name, count in zip(names, counts, strict=True)]
            table.add_row(title, *cells, f"{(summary.undecided or {})[kind] or 0:,}")
    return table


MAX_ROWS = 10
"""Components or enclaves listed one by one; --json has them all."""


def describe_boundary(summary: BoundarySummary, *, pictures: Sequence[Path] = ()) -> None:
    """Print a boundary; `summary` comes from `summarise_boundary`."""
    console = Console(highlight=False, emoji=False)
    console.print(Text(question_text(summary)))
    console.print(Text(reach_text(summary), style="bold"))
    print_facts(console, boundary_facts(summary))
    if summary.components:
        console.print(_component_table(summary))
    if summary.enclaves:
        console.print(_enclave_table(summary))
    console.print(Text(certainty_text(summary), style="dim"))
    print_places(console, "picture", pictures)


def _component_table(summary: BoundarySummary) -> Table:
    size = {1: "thetas", 2: "length", 3: "area"}.get(len(summary.domain.names), "measure")
    along = "regions along it" if summary.method == "map" else "boxes and regions along it"
    rows = []
    for component in summary.components:
        regions = f"{len(component['inner_regions']):,} in, {len(component['outer_regions']):,} out"
        border = "yes" if component["touches_border"] else "no"
        rows.append((number_text(component["measure"]), border, regions, percent_up(component["share_beyond"])))
    titles = ("boundary", f"{size} (axes scaled to 1)", "reaches the border", along, "beyond it")
    return _numbered("component", titles, rows)


def _enclave_table(summary: BoundarySummary) -> Table:
    rows = []
    for enclave in summary.enclaves:
        where = ", ".join(number_text(value) for value in enclave["nearest"]["theta"])
        nearest = f"({where}), ‖theta‖ = {number_text(enclave['nearest']['distance'])}"
        shares = percent_up(enclave["share"]), share_text(enclave["satisfying_share"])
        rows.append((*shares, f"{len(enclave['regions']):,}", nearest))
    return _numbered("enclave", ("enclaves", "share", "share satisfying", "regions", "nearest point"), rows)


def _numbered(name: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table with numbered rows, cut after `MAX_ROWS`."""
    table = numbers_table(*titles)
    for number, cells in enumerate(rows[:MAX_ROWS], start=1):
        table.add_row(f"{name} {number}", *cells)
    if len(rows) > MAX_ROWS:
        table.add_row(f"and {len(rows) - MAX_ROWS:,} more", style="dim")
    return table


def load_at(directory: Path, thresholds: Mapping[str, str | None]) -> Result:
    """The stored result, for its own threshold or one of those given by the names of their options."""
    result = load(directory)
    try:
        return result.with_options(thresholds)
    except OptionError as error:
        raise OptionError(f"{directory}: {error}") from None


MOST_BLAMED = 20
"""Problems listed for one requirement; --json of `campaign status` has all."""


def print_gate(gate: "Gate") -> None:
    """Print every requirement with its outcome, the problems to blame, and the outcome of all."""
    console = Console(highlight=False, emoji=False)
    for one in gate.judgements:
        print_outcome(console, f"Required {one.text}: ", one.outcome, f" ({one.found})")
        _print_some(console, [f"{blamed.problem.name}: {blamed.state}" for blamed in one.to_blame])
    if gate.unanswered:
        listed = {blamed.problem.key for one in gate.judgements for blamed in one.to_blame}
        others = [f"{one.name}: {one.status}: {one.reason}" for one in gate.unanswered if one.key not in listed]
        console.print(Text(f"{len(gate.unanswered):,} problems failed, timed out or have not ended"))
        _print_some(console, others)
    if len(gate.judgements) > 1 or gate.unanswered:
        print_outcome(console, "All requirements: ", gate.outcome)


def _print_some(console: Console, lines: list[str]) -> None:
    for line in lines[:MOST_BLAMED]:
        console.print(Text(f"  {line}"), soft_wrap=True)
    if len(lines) > MOST_BLAMED:
        console.print(Text(f"  and {len(lines) - MOST_BLAMED:,} more; campaign status DIR --json lists all"))
