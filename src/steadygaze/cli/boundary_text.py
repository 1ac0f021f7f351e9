"""The outermost boundary for the terminal: sentences, facts and tables."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..labels import Property
from ..results.boundary_summary import BoundarySummary, reach_sentence
from ..results.summary import kinks_text
from ..tolerances import TOUCH
from ..words import counted, named_theta, number_text, percent_up, rounded, share_text
from .answer_text import Facts, property_text, question_text
from .printing import numbers_table, print_facts, print_places

MAX_ROWS = 10
"""Components or enclaves listed one by one; --json has them all."""


def describe_boundary(summary: BoundarySummary, *, pictures: Sequence[Path] = ()) -> None:
    """Print a boundary; `summary` comes from `summarise_boundary`."""
    console = Console(highlight=False, emoji=False)
    console.print(Text(question_text(summary)))
    console.print(Text(reach_text(summary), style="bold"))
    print_facts(console, _facts(summary))
    if summary.components:
        console.print(_component_table(summary))
    if summary.enclaves:
        console.print(_enclave_table(summary))
    console.print(Text(certainty_text(summary), style="dim"))
    print_places(console, "picture", pictures)


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


def _facts(summary: BoundarySummary) -> Facts:
    yield "satisfies the property", share_text(summary.satisfying_share)
    yield "reachable from zero", share_text(summary.reachable_share)
    yield "satisfies, not reachable", percent_up(summary.unreachable_share)
    enclaves = f" (with {counted(len(summary.enclaves), 'enclave')})" if summary.enclaves else ""
    yield "inside the boundary", share_text(summary.enclosed_share) + enclaves
    farthest = summary.farthest
    if farthest is not None:
        where = named_theta(summary.domain.names, farthest["theta"])
        yield "farthest reachable", f"{where} (‖theta‖ = {number_text(farthest['distance'])})"


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
