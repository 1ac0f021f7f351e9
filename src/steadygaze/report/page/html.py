"""From a result to HTML: its report, one self-contained file that opens without any network, and cells of a notebook.

Collects the parts of a page and the commands that repeat it, and fills the templates. Nothing is decided here. A cell
is HTML that displays itself, without IPython: the picture with the shares, or the interactive map in a sandboxed frame,
which may contact no address.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ... import zoo
from ...errors import OptionError, SteadygazeError, StoreError, not_writable
from ...images import read_image
from ...labels import Property
from ...question import Question
from ...results.description import find_kept_range, label_text, range_sentences, small_print, verdict_sentences
from ...results.directory import atomic_file, check_file
from ...results.redaction import redacted
from ...results.result import Result
from ...results.store import MODEL, read_origin
from ...results.summary import Summary
from ...tolerances import MAX_MAP_PARAMETERS
from ..drawing.exhibits import ShownMaps
from ..drawing.outlines import HALF, OBJECT, Outline, outline_edges
from ..figures import has_figure, result_png
from ..figures.curve import delta_figure
from ..thresholds import make_delta_curve, make_thresholds
from . import ALLOWED, facts, fill, read_asset
from .cards import describe_boundary, image_uri, inline_svg, make_cards, make_search_cards, png_uri
from .explorer import make_explorer
from .network_data import fits_page

MARK = '<meta name="generator" content="steadygaze '
"""--force replaces only files with this near their beginning."""


def write_report(
    result: Result,
    path: str | Path,
    *,
    force: bool = False,
    directory: str | Path | None = None,
    weights: bool = True,
    redact: bool = False,
) -> Path:
    """Write the report of a result to an HTML file, atomically; returns its path.

    `directory` is where the result is stored: the commands of the report name it, and its versions and date are those
    of the run. Refuses an existing file; with `force`, replaces it if it is a report. See `make_report` for the rest.
    """
    target = check_target(path, force=force)
    text = make_report(result, directory=directory, weights=weights, redact=redact)
    try:
        with atomic_file(target) as new:
            # UTF-8 cannot encode every file name.
            new.write_bytes(text.encode("utf-8", errors="backslashreplace"))
            check_target(target, force=force)
    except OSError as error:
        raise not_writable(path, error) from None
    return Path(path)


def check_target(path: str | Path, *, force: bool = False) -> Path:
    """Return the file that `write_report` will write; StoreError now if it would refuse it."""
    check_file(path, force=force)
    # A link stays; its target is replaced.
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


def make_report(
    result: Result, *, directory: str | Path | None = None, weights: bool = True, redact: bool = False
) -> str:
    """The page as text.

    Without `weights` it shows stored thetas instead of computing them. With `redact` it names no files and no
    directories, and says nothing about the machine and the time of the run.
    """
    place = None if directory is None else Path(directory)
    origin = None if place is None else read_origin(place)
    if redact:
        place, origin, result = None, _public(origin), redacted(result)
    summary = result.described
    own = _search_content(result, summary) if summary.is_search else _domain_content(result, summary, weights)
    common = _common_content(result, summary, place, origin)
    if redact:
        common |= {
            "verify_command": verify_command(result, None, model="MODEL.onnx", image="IMAGE.png"),
            "run": facts.run_rows(summary, {}, None),
        }
    explorer = own["explorer"]
    inside = {"has_weights": explorer is not None and explorer.has_weights, "is_redacted": redact}
    content = {"css": read_asset("report.css"), **common, **own, **inside}
    return fill("report.html.j2", content | {"contents": _contents(content)})


def _contents(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The parts of the page that are there, as anchors with their titles."""
    is_search, symbol = content["is_search"], content["measure"]["symbol"]
    parts = [
        ("question-title", "The question", True),
        ("shares-title", "Shares of the domain", content["shares"]),
        ("sets-title", "The visited regions", content["sets"]),
        ("map-title", "The search" if is_search else "The map", True),
        ("cards-title", "Violations found" if is_search else "Nearest violations", True),
        ("boundary-title", "The outermost boundary", not is_search),
        ("curve-title", f"Attention kept against {symbol}", content["curve"]),
        ("proof-title", "The proof", True),
        ("limits-title", "Limits of the proof", True),
        ("repeat-title", "Repeat the run", True),
    ]
    return [(anchor, title) for anchor, title, is_there in parts if is_there]


def holds_weights(result: Result) -> bool:
    """Whether the report of a result contains the weights of its network, unless they are left out."""
    is_shown = result.question.perturbed.domain.dimension <= MAX_MAP_PARAMETERS
    return not result.described.is_search and is_shown and fits_page(result)


def _public(origin: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The facts about the run that a redacted page states: the versions of the libraries."""
    return None if origin is None else {"versions": dict(origin.get("versions") or {})}


def headline(result: Result) -> list[str]:
    """The verdict in sentences, as at the top of the report."""
    summary = result.described
    kept = None if summary.is_search else find_kept_range(result, result.question.property)
    return verdict_sentences(summary, range_sentences(summary, kept))


def _common_content(
    result: Result, summary: Summary, place: Path | None, origin: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The content that the pages of all methods share."""
    question, is_search = result.question, summary.is_search
    return {
        "allowed": ALLOWED,
        "version": facts.current_versions()["steadygaze"],
        "summary": summary.plain(),
        "label": label_text(summary),
        "is_search": is_search,
        "original": image_uri(question.perturbed.x0, _object_outline(question)),
        "question": facts.question_rows(summary),
        "notes": summary.notes,
        "guarantee": summary.guarantee,
        "small_print": small_print(summary),
        "proof": facts.proof_rows(summary),
        "tolerances": facts.tolerance_rows(is_search=is_search),
        "not_claimed": facts.not_claimed(summary, is_search=is_search),
        "versions": facts.version_rows(origin),
        "has_origin": origin is not None,
        "run": facts.run_rows(summary, result.seconds, origin),
        "verify_command": verify_command(result, place),
        "report_command": report_command(result, place),
        "shown_class": ShownMaps.of(question).name,
        "channels": len(question.perturbed.x0),
        "measure": facts.measure_words(summary),
        "picture": _picture(result),
    }


def _domain_content(result: Result, summary: Summary, weights: bool) -> dict[str, Any]:
    """The content of maps and refinements."""
    asked = [Property.CR, Property.AR, Property.BOTH] if result.is_measured else [Property.CR]
    kept = {wanted.value: find_kept_range(result, wanted) for wanted in asked}
    steps = make_thresholds(result)
    curve = make_delta_curve(result, steps)
    measure = result.question.attention.measure
    curve = None if measure.option is None else curve
    return {
        "verdict": verdict_sentences(summary, range_sentences(summary, kept[summary.property.value])),
        "shares": facts.share_rows(summary),
        "sums": facts.sum_rows(summary),
        "sets": [],
        "ranges": facts.range_rows(summary, kept) if result.question.perturbed.domain.contains_zero else [],
        "explorer": make_explorer(result, steps, weights=weights),
        "cards": make_cards(result, summary),
        "witnesses": facts.witness_rows(summary),
        "boundary": describe_boundary(result),
        "curve": None
        if curve is None
        else inline_svg(lambda: delta_figure(result, curve), f"Share of AR against {measure.symbol_word}"),
        "deltas": facts.delta_rows(summary) if result.is_measured else [],
    }


def _search_content(result: Result, summary: Summary) -> dict[str, Any]:
    """The content of searches."""
    empty: dict[str, Any] = dict.fromkeys(("shares", "sums", "ranges", "witnesses", "deltas"), ())
    return empty | {
        "verdict": verdict_sentences(summary),
        "sets": facts.set_rows(summary),
        "explorer": None,
        "cards": make_search_cards(result, summary),
        "boundary": None,
        "curve": None,
    }


def _object_outline(question: Question) -> tuple[Outline, ...]:
    mask = question.attention.mask
    return () if mask is None else (Outline(outline_edges(mask.weights >= HALF), OBJECT),)


def _picture(result: Result) -> str | None:
    """The figure of the result, if there is one."""
    return png_uri(result_png(result)) if has_figure(result) else None


def verify_command(
    result: Result, directory: Path | None, *, model: str | None = None, image: str | None = None
) -> str:
    """The command that asks the same question again, by the same method and without limits.

    A bundled image is named; for any other image the command names the pixels stored in the directory, and for a torch
    module the exported model there. `model` and `image` replace names that are left out.
    """
    place = str((directory or Path("DIR")) / MODEL)
    words = result.question.words(result.threshold, image or _image(result.question, directory), place, model)
    words += ["--method", result.method, *result.tiling.words()]
    return "".join(f" \\\n    {word}" if word.startswith("--") else f" {word}" for word in map(shlex.quote, words))[1:]


def report_command(result: Result, directory: Path | None) -> str:
    """The command that makes this report again from the stored result."""
    words = ["steadygaze", "report", "DIR" if directory is None else str(directory)]
    if result.threshold != result.question.threshold:
        words += [f"--{result.question.attention.measure.option}", result.stated.text]
    return shlex.join([*words, "--force"])


def _image(question: Question, directory: Path | None) -> str:
    """The name of a bundled image with these pixels (a file may have the same name), or the stored file."""
    if directory is None:
        return question.image_name
    try:
        if zoo.is_reference(question.image_name):
            pixels = read_image(zoo.image_path(question.image_name)).pixels
            if np.array_equal(pixels.ravel(), question.perturbed.x0.ravel()):
                return question.image_name
    except SteadygazeError:
        pass
    return str(directory / "image.npy")


@dataclass(frozen=True)
class Cell:
    """HTML that a notebook displays when it is the last value of a cell."""

    html: str

    def __repr__(self) -> str:
        return f"Cell({len(self.html):,} characters of HTML; a notebook displays them)"

    def _repr_html_(self) -> str:
        return self.html


def result_html(result: Result) -> str:
    """The verdict, the picture of up to three parameters, and the shares or the counts of visited regions."""
    summary = result.described
    is_drawn = result.question.perturbed.domain.dimension <= MAX_MAP_PARAMETERS
    return fill(
        "cell.html.j2",
        {
            "summary": summary,
            "sentences": verdict_sentences(summary),
            "picture": png_uri(result_png(result)) if is_drawn else None,
            "shares": [] if summary.is_search else facts.share_rows(summary),
            "sums": [] if summary.is_search else facts.sum_rows(summary),
            "sets": facts.set_rows(summary) if summary.is_search else [],
        },
    )


def map_cell(result: Result, height: int) -> Cell:
    """The interactive map; OptionError for results that have none."""
    if result.tiling.is_search:
        raise OptionError("a search has no interactive map; use --method map or refine, or plot()")
    explorer = make_explorer(result, make_thresholds(result))
    if explorer is None:
        raise OptionError(
            f"the interactive map shows up to {MAX_MAP_PARAMETERS} parameters; leave some out, or draw a path or strip"
        )
    page = fill("map.html.j2", {"allowed": ALLOWED, "explorer": explorer})
    return Cell(
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" title="Interactive map" width="100%" '
        f'height="{int(height)}" style="border: 0"></iframe>'
    )
