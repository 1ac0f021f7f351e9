"""From a result to its report: one HTML file with everything inside, which opens from disk and asks for no network.

Gathers what the neighbours say and fills the template, where every text is escaped. Nothing is decided here.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ...engines.search import SearchResult
from ...errors import StoreError
from ...results.directory import check_file, file_written_at_once
from ...results.domain_result import DomainResult
from ...results.store import read_origin
from ...tolerances import MAX_MAP_PARAMETERS
from ...verdict import Property
from ..map_figure import map_figure
from ..pictures import ShownMaps
from ..searches import search_figure
from . import facts
from .boundary_facts import BoundaryFacts, describe_boundary
from .cards import make_cards, make_search_cards
from .commands import report_command, verify_command
from .delta_curve import draw_delta_curve, make_delta_curve
from .explorer import make_explorer
from .filling import fill, read_asset
from .kept_range import find_kept_range
from .pictures import figure_uri, image_uri, inline_svg
from .sentences import Summary, label_text, search_sentences, small_print, verdict_sentences
from .thresholds import make_thresholds

MARK = '<meta name="generator" content="steadygaze '
"""What a file has to hold near its beginning for --force to replace it."""

ALLOWED = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""The page may run what it holds and nothing else: no address is ever asked for anything."""


def write_report(
    result: DomainResult | SearchResult, path: str | Path, *, force: bool = False, directory: str | Path | None = None
) -> Path:
    """Write the report of a result to an HTML file, all or nothing; returns its path.

    `directory` is where the result is stored: the commands of the report name it, and its versions and date are those
    of the run. An existing file is refused; with `force` it is replaced if it is a report.
    """
    target = check_target(path, force=force)
    text = make_report(result, directory=directory)
    try:
        with file_written_at_once(target) as new:
            # A file name that is not text would otherwise not be writable as UTF-8.
            new.write_bytes(text.encode("utf-8", errors="backslashreplace"))
            check_target(target, force=force)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error}); choose another --out") from None
    return Path(path)


def check_target(path: str | Path, *, force: bool = False) -> Path:
    """Refuse now what `write_report` would refuse after its work; returns the file that will be written."""
    check_file(path, force=force)
    # A link stays, and what it leads to is replaced.
    target = Path(os.path.realpath(path))
    try:
        if not target.exists():
            return target
        with target.open("rb") as stream:
            is_report = MARK.encode("ascii") in stream.read(4096)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror or error}); choose another --out") from None
    if not is_report:
        raise StoreError(f"{path}: is not a report of steadygaze, so --force does not replace it; choose another --out")
    return target


def make_report(result: DomainResult | SearchResult, *, directory: str | Path | None = None) -> str:
    """The page as text."""
    place = None if directory is None else Path(directory)
    origin = None if place is None else read_origin(place)
    summary = result.summary()
    own = _search_content(result, summary) if isinstance(result, SearchResult) else _domain_content(result, summary)
    common = _common_content(result, summary, place, origin)
    return fill("report.html.j2", {"css": read_asset("report.css"), **common, **own})


def headline(result: DomainResult | SearchResult) -> list[str]:
    """The verdict in sentences, as it stands at the top of the report."""
    summary = result.summary()
    if isinstance(result, SearchResult):
        return search_sentences(summary)
    return verdict_sentences(summary, find_kept_range(result, result.problem.property))


def _common_content(
    result: DomainResult | SearchResult, summary: Summary, place: Path | None, origin: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What the pages of all methods hold."""
    problem = result.problem
    seconds = {"total": result.seconds} if isinstance(result, SearchResult) else result.seconds
    is_search = isinstance(result, SearchResult)
    return {
        "allowed": ALLOWED,
        "version": facts.current_versions()["steadygaze"],
        "summary": summary,
        "label": label_text(summary),
        "is_search": is_search,
        "original": image_uri(problem.perturbed.x0),
        "question": facts.question_rows(summary),
        "notes": summary["notes"],
        "guarantee": summary["guarantee"],
        "proof": facts.proof_rows(summary),
        "tolerances": facts.tolerance_rows(is_search=is_search),
        "not_claimed": facts.not_claimed(summary, is_search=is_search),
        "versions": facts.version_rows(origin),
        "has_origin": origin is not None,
        "run": facts.run_rows(summary, seconds, origin),
        "verify_command": verify_command(result, place),
        "report_command": report_command(result, place),
        "shown_class": ShownMaps.of(problem).name,
        "channels": len(problem.perturbed.x0),
    }


def _domain_content(result: DomainResult, summary: Summary) -> dict[str, Any]:
    """What only the page of a map or a refinement holds."""
    asked = [Property.CR, Property.AR, Property.BOTH] if result.is_measured else [Property.CR]
    kept = {wanted.value: find_kept_range(result, wanted) for wanted in asked}
    steps = make_thresholds(result)
    curve = make_delta_curve(result, steps)
    has_zero = result.problem.perturbed.domain.contains_zero
    return {
        "verdict": verdict_sentences(summary, kept[summary["property"]]),
        "small_print": small_print(summary),
        "shares": facts.share_rows(summary),
        "sums": facts.sum_rows(summary),
        "sets": [],
        "ranges": facts.range_rows(summary, kept) if has_zero else [],
        "picture": _picture(result, lambda: map_figure(result)),
        "explorer": make_explorer(result, steps),
        "cards": make_cards(result, summary),
        "witnesses": facts.witness_rows(summary),
        "boundary": describe_boundary(result),
        "curve": None if curve is None else inline_svg(draw_delta_curve(result, curve), "Share of AR against δ"),
        "deltas": facts.delta_rows(summary) if result.is_measured else [],
    }


def _search_content(result: SearchResult, summary: Summary) -> dict[str, Any]:
    """What only the page of a search holds."""
    return {
        "verdict": search_sentences(summary),
        "small_print": small_print(summary),
        "shares": [],
        "sums": [],
        "sets": facts.set_rows(summary),
        "ranges": [],
        "picture": _picture(result, lambda: search_figure(result)),
        "explorer": None,
        "cards": make_search_cards(result, summary),
        "witnesses": [],
        "boundary": BoundaryFacts(),
        "curve": None,
        "deltas": [],
    }


def _picture(result: DomainResult | SearchResult, make: Callable[[], Figure]) -> str | None:
    return figure_uri(make) if result.problem.perturbed.domain.dimension <= MAX_MAP_PARAMETERS else None
