"""Prints a boundary for people on stdout: what zero can reach, components, enclaves, what the answer rests on."""

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..results.answer import round_up
from ..results.summary import kinks_text
from ..tolerances import TOUCH
from .wording import Summary, delta_text, number_text, question_text, share_text, theta_text

MOST_ROWS = 10
"""Components or enclaves that are listed one by one; --json has them all."""


def describe_boundary(summary: Summary, *, pictures: Sequence[Path] = ()) -> None:
    """Print one boundary; `summary` is what `summarise_boundary` gives."""
    console = Console(highlight=False)
    console.print(Text(question_text(summary)))
    console.print(Text(reach_text(summary), style="bold"))
    console.print(_fact_table(summary))
    if summary["components"]:
        console.print(_component_table(summary))
    if summary["enclaves"]:
        console.print(_enclave_table(summary))
    console.print(Text(certainty_text(summary), style="dim"))
    for picture in pictures:
        console.print(Text(f"{'picture':8}{picture}"), soft_wrap=True)


def reach_text(summary: Summary) -> str:
    """One sentence: how much of the domain can be reached from zero while the property is kept."""
    label = "the label is kept"
    attention = f"the attention maps stay within δ = {delta_text(summary)} of the expected ones"
    kept = {"cr": label, "ar": attention, "both": f"{label} and {attention}"}[summary["property"]]
    if not summary["starts"]:
        return f"Nothing can be reached from theta = 0: no piece around it is proved to be one where {kept}."
    if not summary["components"] and not summary["enclaves"] and summary["verdict"] == "robust":
        return f"All of the domain can be reached from theta = 0 while {kept}: there is no boundary."
    return f"From theta = 0, {share_text(summary['reachable_share'])} of the domain can be reached while {kept}."


def certainty_text(summary: Summary) -> str:
    """What the boundary rests on, and where it could be another one."""
    undecided = summary["undecided"]
    sentences = []
    if summary["starts"] > 1:
        sentences.append(
            f"theta = 0 is where {summary['starts']} components of what satisfies the property meet; all of them count "
            "as reachable."
        )
    if undecided["pieces_beside"]:
        sentences.append(
            f"Certain up to {undecided['pieces_beside']} undecided pieces beside the boundary: if they satisfy the "
            "property, more can be reached."
        )
    strips = undecided["strip_share"]
    if strips > 0.0:
        sentences.append(
            f"Along thresholds a share of at most {round_up(strips, 2):g} of the domain is too close to them to decide."
        )
    kinks = summary["sliver_share"] if summary["property"] != "cr" else 0.0
    if kinks > 0.0:
        sentences.append(kinks_text(kinks))
    what = "the pieces of the map" if summary["method"] == "map" else "boxes and regions"
    if summary["method"] != "map" and undecided["share"] > 0.0:
        sentences.append(f"A share of {round_up(undecided['share'], 2):g} is undecided and counts as not kept.")
    first = f"Rests on {what}; two of them touch where their common side is wider than {TOUCH:g} of the domain."
    return " ".join([first, *sentences])


def _fact_table(summary: Summary) -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    enclaves = len(summary["enclaves"])
    inside = f" (with {enclaves} enclave{'' if enclaves == 1 else 's'})" if enclaves else ""
    facts.add_row("satisfies the property", Text(share_text(summary["satisfying_share"])))
    facts.add_row("reachable from zero", Text(share_text(summary["reachable_share"])))
    facts.add_row("satisfies, not reachable", Text(share_text(summary["unreachable_share"])))
    facts.add_row("inside the boundary", Text(share_text(summary["enclosed_share"]) + inside))
    farthest = summary["farthest"]
    if farthest is not None:
        where = theta_text(farthest["theta"], summary["domain"]["names"])
        facts.add_row("farthest reachable", Text(f"{where} (‖theta‖ = {number_text(farthest['distance'])})"))
    return facts


def _component_table(summary: Summary) -> Table:
    size = {1: "thetas", 2: "length", 3: "area"}.get(len(summary["domain"]["names"]), "measure")
    along = "regions along it" if summary["method"] == "map" else "boxes and regions along it"
    titles = ("outermost boundary", f"{size} (axes scaled to 1)", "reaches the border", along, "beyond it")
    table = _table(titles)
    components = summary["components"]
    for number, component in enumerate(components[:MOST_ROWS], start=1):
        regions = f"{len(component['inner_regions']):,} inside, {len(component['outer_regions']):,} outside"
        border = "yes" if component["touches_border"] else "no"
        measure, beyond = number_text(component["measure"]), share_text(component["share_beyond"])
        table.add_row(f"component {number}", measure, border, regions, beyond)
    return _with_rest(table, components)


def _enclave_table(summary: Summary) -> Table:
    table = _table(("enclaves", "share", "of it satisfying", "regions", "nearest point"))
    enclaves = summary["enclaves"]
    for number, enclave in enumerate(enclaves[:MOST_ROWS], start=1):
        where = ", ".join(number_text(value) for value in enclave["nearest"]["theta"])
        nearest = f"({where}), ‖theta‖ = {number_text(enclave['nearest']['distance'])}"
        shares = share_text(enclave["share"]), share_text(enclave["satisfying_share"])
        table.add_row(f"enclave {number}", *shares, f"{len(enclave['regions']):,}", Text(nearest))
    return _with_rest(table, enclaves)


def _table(titles: Sequence[str]) -> Table:
    table = Table(*titles, box=box.SIMPLE_HEAD, padding=(0, 1))
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _with_rest(table: Table, rows: Sequence[object]) -> Table:
    if len(rows) > MOST_ROWS:
        table.add_row(f"and {len(rows) - MOST_ROWS:,} more", style="dim")
    return table
