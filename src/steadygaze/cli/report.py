"""`steadygaze report`: a stored result as one HTML file to hand over. Computes no map."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from .. import api
from ..engines.search import SearchResult
from ..engines.search.search_files import load_search
from ..errors import OptionError
from ..problem import Delta
from ..results import store
from ..results.domain_result import DomainResult
from . import options as o
from .describe import VERDICT_STYLES

PAGE = "report.html"
"""Name of the report inside a result's directory."""


def report(
    directory: o.DirectoryOption,
    out: o.ReportOutOption = None,
    delta: o.OtherDeltaOption = None,
    force: o.ReportForceOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Write a stored result as one HTML file that holds everything and needs no network.

    It tells the verdict in sentences, shares with bounds, nearest violations with images and maps, the map (also
    interactive), the boundary, other thresholds, what was proved and by what, and the command to repeat it. The exit
    code is that of the verdict, as for show.
    """
    from ..report.page.html import check_target, headline, write_report  # noqa: PLC0415 (matplotlib is slow to import)

    target = directory / PAGE if out is None else out
    if delta is not None:
        Delta.parse(delta)  # refused before a large map is read
    summary = store.read_summary(directory)
    check_target(target, force=force)
    result = _load(directory, delta, is_search=store.is_search(summary), method=str(summary.get("method")))
    page = write_report(result, target, force=force, directory=directory)
    console = Console(highlight=False)
    verdict = result.verdict.value
    sentences = " ".join(headline(result))
    console.print(Text.assemble((verdict.upper(), VERDICT_STYLES[verdict]), ": ", sentences))
    console.print(Text(f"{'report':8}{page}"), soft_wrap=True)
    return result.verdict.exit_code


def _load(directory: Path, delta: str | None, *, is_search: bool, method: str) -> DomainResult | SearchResult:
    if not is_search:
        result = api.load(directory)
        return result if delta is None else result.with_delta(delta)
    if delta is not None:
        raise OptionError(
            f"{directory}: holds a search ({method}), which answers one threshold alone; leave --delta out, or run "
            "verify with another --delta or with --method map"
        )
    return load_search(directory)
