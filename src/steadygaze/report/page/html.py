"""From a result to its report: one HTML file with everything inside, which opens from disk and asks for no network.

Gathers what the neighbours say and fills the template, where every text is escaped. Nothing is decided here.
"""

import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ...errors import StoreError
from ...results.domain_result import DomainResult
from ...results.store import read_origin
from ...search import SearchResult
from ...verdict import Property
from .. import figures, searches
from . import facts
from .boundary_facts import BoundaryFacts, describe_boundary
from .cards import make_cards, make_search_cards, shown_class
from .commands import report_command, verify_command
from .delta_curve import draw_delta_curve, make_delta_curve
from .explorer import Explorer, make_explorer
from .kept_range import find_kept_range
from .pictures import figure_uri, image_uri, inline_svg
from .sentences import Summary, label_text, search_sentences, small_print, verdict_sentences
from .visible import visible_value

MARK = '<meta name="generator" content="steadygaze '
"""What a file has to hold near its beginning for --force to replace it."""

MOST_EXPLORED = 3
"""Parameters up to which there is an interactive map."""

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
    draft = target.with_name(f".steadygaze-{uuid.uuid4().hex}.html")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # A file name that is not text would otherwise not be writable as UTF-8.
        draft.write_bytes(text.encode("utf-8", errors="backslashreplace"))
        check_target(target, force=force)
        draft.replace(target)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error}); choose another --out") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return Path(path)


def check_target(path: str | Path, *, force: bool = False) -> Path:
    """Refuse now what `write_report` would refuse after its work; returns the file that will be written."""
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise StoreError(f"{path}: is a directory; give a file such as {Path(path) / 'report.html'}")
        parent = next(place for place in target.parents if place.exists())
        if not parent.is_dir():
            raise StoreError(f"{path}: {parent} is a file; choose another --out")
        if not os.access(parent, os.W_OK):
            raise StoreError(f"{path}: cannot be written (Permission denied); choose another --out")
        if not target.exists():
            return target
        if not force:
            raise StoreError(f"{path}: exists already; choose another --out, or replace it with --force")
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
    environment = Environment(
        loader=PackageLoader("steadygaze", "report/page/assets"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=visible_value,
    )  # fmt: skip
    css = environment.get_template("report.css").render()
    content = _common_content(result, summary, place, origin) | own
    return environment.get_template("report.html.j2").render(content | {"css": css})


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
        "specs": summary["domain"]["specs"],
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
        "shown_class": shown_class(problem)[1],
        "channels": len(problem.perturbed.x0),
    }


def _domain_content(result: DomainResult, summary: Summary) -> dict[str, Any]:
    """What only the page of a map or a refinement holds."""
    dimension = result.problem.perturbed.domain.dimension
    asked = [Property.CR, Property.AR, Property.BOTH] if result.is_measured else [Property.CR]
    kept = {wanted.value: find_kept_range(result, wanted) for wanted in asked}
    curve = make_delta_curve(result)
    has_zero = result.problem.perturbed.domain.contains_zero
    return {
        "verdict": verdict_sentences(summary, kept[summary["property"]]),
        "small_print": small_print(summary),
        "shares": facts.share_rows(summary),
        "sums": facts.sum_rows(summary),
        "sets": [],
        "ranges": facts.range_rows(summary, kept) if has_zero else [],
        "picture": figure_uri(lambda path: figures.draw_map(result, path)),
        "explorer": make_explorer(result) if dimension <= MOST_EXPLORED else None,
        "cards": make_cards(result, summary),
        "witnesses": facts.witness_rows(summary),
        "boundary": describe_boundary(result),
        "curve": None if curve is None else inline_svg(draw_delta_curve(result, curve), "Share of AR against δ"),
        "deltas": facts.delta_rows(summary) if result.is_measured else [],
    }


def _search_content(result: SearchResult, summary: Summary) -> dict[str, Any]:
    """What only the page of a search holds."""
    no_explorer: Explorer | None = None
    return {
        "verdict": search_sentences(summary),
        "small_print": small_print(summary),
        "shares": [],
        "sums": [],
        "sets": facts.set_rows(summary),
        "ranges": [],
        "picture": figure_uri(lambda path: searches.draw_search(result, path)),
        "explorer": no_explorer,
        "cards": make_search_cards(result, summary),
        "witnesses": [],
        "boundary": BoundaryFacts(),
        "curve": None,
        "deltas": [],
    }
