"""Commands on stored results: `show`, `report`, `export`, `figure`, `compare` and `boundary`. They compute no map."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError, StoreError, did_you_mean
from ..labels import Joint
from ..report import FORMATS
from ..requirement import NAMES, read_share
from ..words import read_value
from . import command_options as o
from .quick_drawing import import_matplotlib
from .verify_command import choose_formats, picture_name
from .verify_command import exit_code as answer_code

if TYPE_CHECKING:
    from ..boundary import Boundary
    from ..results.result import Result

PAGE = "report.html"
"""Name of the report inside a result's directory."""

WEIGHTS_INSIDE = "the report contains all weights of the network; --no-weights leaves them out"

FIGURE = "Figure"
"""Heading of the options for figures only."""

OTHER_FORMATS = ("bmp", "eps", "gif", "jpeg", "jpg", "ps", "tif", "tiff", "webp")
"""Suffixes of formats that cannot be written; any other suffix is part of a name."""


def show(
    directory: o.DirectoryOption,
    delta: o.OtherDeltaOption = None,
    tau: o.OtherTauOption = None,
    gamma: o.OtherGammaOption = None,
    top: o.OtherTopOption = None,
    require: o.RequireOption = None,
    exit_code: o.ExitCodeOption = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Show a stored answer; for a map or a refinement, also at another threshold.

    The exit code is 0. With --require it reports whether the requirement is met, with --exit-code the verdict, both as
    for verify.
    """
    from ..results import store  # noqa: PLC0415 (slow to import)
    from .printing import describe, judged, load_at, print_json, print_notes  # noqa: PLC0415 (slow to import)

    summary, seconds = store.read_summary(directory), store.read_seconds(directory)
    given = {"delta": delta, "tau": tau, "gamma": gamma, "top": top}
    if require is not None and require.needs_shares and not summary.knows_shares:
        raise OptionError(
            f"{directory}: --require needs shares of the domain, which this search ({summary.method}) does not bound; "
            "verify with --method map, refine or bfs"
        )
    is_own = all(one is None for one in given.values())
    if not is_own:
        result = load_at(directory, given)
        summary, seconds = result.described, result.seconds
    elif summary.is_search:
        store.read_checked(directory)  # the answer of a search depends on its regions only
    if json:
        print_json({**summary.plain(), "seconds": seconds} | judged(summary, require))
    else:
        print_notes(summary.notes)
        # The pictures show the threshold of the run.
        pictures = sorted(directory.glob(f"{picture_name(summary)}.*")) if is_own else []
        describe(summary, seconds=seconds, requirement=require, directory=directory, pictures=pictures)
    return answer_code(summary, require) if exit_code or require is not None else 0


def report(
    directory: o.DirectoryOption,
    out: Annotated[
        Path | None, o.option("--out FILE.html", "The file for the report.", default="report.html in DIR")
    ] = None,
    delta: o.OtherDeltaOption = None,
    tau: o.OtherTauOption = None,
    gamma: o.OtherGammaOption = None,
    top: o.OtherTopOption = None,
    no_weights: Annotated[bool, o.option(
        "--no-weights",
        "Leave out the weights of the network. The page then shows images and maps at stored thetas only, as it does "
        "for large networks, instead of computing them at any theta.",
    )] = False,
    redact: Annotated[bool, o.option(
        "--redact", "Leave out names of files, directories and users, and facts about the machine and the run.",
    )] = False,
    force: o.ForceOption = False,
    exit_code: o.ExitCodeOption = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Write a stored result as one self-contained HTML file.

    The report contains the verdict in sentences, shares with bounds, nearest violations with images and maps, the map
    (also interactive), the boundary, other thresholds, the guarantee, and the command that repeats the run. The exit
    code is 0, or that of the verdict with --exit-code.
    """
    from ..results import store  # noqa: PLC0415 (slow to import)

    target = directory / PAGE if out is None else out
    store.read_summary(directory)  # refuses a directory without a result first
    from rich.console import Console  # noqa: PLC0415 (slow to import)

    import_matplotlib()
    from ..report.page.html import check_target, headline, holds_weights, write_report  # noqa: PLC0415 (slow to import)
    from .printing import load_at, print_notes, print_places, print_verdict  # noqa: PLC0415 (slow to import)

    check_target(target, force=force)
    result = load_at(directory, {"delta": delta, "tau": tau, "gamma": gamma, "top": top})
    page = write_report(result, target, force=force, directory=directory, weights=not no_weights, redact=redact)
    console = Console(highlight=False, emoji=False)
    print_verdict(console, result.verdict, " ".join(headline(result)))
    print_places(console, "report", [page])
    if not no_weights and holds_weights(result):
        print_notes([WEIGHTS_INSIDE])
    return result.verdict.exit_code if exit_code else 0


def export(
    directory: o.DirectoryOption,
    format: Annotated[str, o.option(
        "--format csv|geojson|parquet",
        "The format of the file. GeoJSON holds one or two parameters; Parquet needs pyarrow.",
    )] = "csv",
    what: Annotated[str, o.option(
        "--what regions|pieces",
        "A row for each activation region and box (regions), or for each of their parts with a single label (pieces).",
    )] = "regions",
    delta: o.OtherDeltaOption = None,
    tau: o.OtherTauOption = None,
    gamma: o.OtherGammaOption = None,
    top: o.OtherTopOption = None,
    out: Annotated[
        Path | None, o.option("--out FILE", "The file to write.", default="named after DIR, in this directory")
    ] = None,
    force: o.ForceFilesOption = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Write the regions of a stored result with labels, bounds and shares to a file.

    For a map: all regions, or their pieces. For a refinement: boxes decided by bounds, and the regions of the others.
    For a search: the visited regions. docs/export.md lists the columns. The exit code is 0.
    """
    from .. import api  # noqa: PLC0415 (slow to import)
    from ..results import store  # noqa: PLC0415 (slow to import)
    from ..results.directory import check_file  # noqa: PLC0415 (slow to import)
    from ..results.export import ENDINGS, check_format, check_what  # noqa: PLC0415 (slow to import)

    check_what(what)
    check_format(format, len(store.read_summary(directory).domain.names))
    name = directory.resolve().name or "result"
    path = Path(f"{name}-{what}{ENDINGS[format]}") if out is None else out
    check_file(path, force=force)
    count = api.export(
        directory, path, format=format, what=what, delta=delta, tau=tau, gamma=gamma, top=top, force=force
    )
    print(f"{count:,} {what} written to {path}")
    return 0


def figure(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="map, path, strip, sections, boundary, curve, columns, tiling, visited; see above."
        ),
    ],
    directories: Annotated[list[Path], typer.Argument(
        metavar="DIR...", help="A directory that verify wrote; for columns, one or more for each network.",
    )],
    at: Annotated[list[str] | None, o.option(
        "--at THETA",
        "A theta such as 0.5,1; scale is given by its factor. Repeat the option for several: path goes through them, "
        "boundary shows them, columns has one column for each. strip takes a single theta, and fixes the other "
        "parameters there.",
        FIGURE, default="chosen by the kind",
    )] = None,
    along: Annotated[str | None, o.option(
        "--along PARAMETER",
        "For strip: the parameter that varies, given by its number, from 1, or the beginning of its name.",
        FIGURE, default="the first",
    )] = None,
    steps: Annotated[int | None, o.option(
        "--steps N", "For path and strip: the number of images, up to 24.", FIGURE, default="8 and 6",
        read=o.whole_number,
    )] = None,
    by: Annotated[str | None, o.option(
        "--by cr|ar|both|pattern",
        "For tiling: colour regions by the label (cr), the attention (ar), both, or the classifier's activation "
        "pattern.", FIGURE, default="the property of the question",
    )] = None,
    delta: o.OtherDeltaOption = None,
    tau: o.OtherTauOption = None,
    gamma: o.OtherGammaOption = None,
    top: o.OtherTopOption = None,
    out: Annotated[Path | None, o.option(
        "--out FILE",
        "The file to write; its ending selects the format unless --format is given. If FILE is a directory, the figure "
        "is figure-KIND in it.",
        default="figure-KIND in DIR",
    )] = None,
    format: o.FormatsOption = None,
    force: o.ForceFilesOption = False,
    exit_code: o.ExitCodeOption = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Draw a figure from stored results.

    map: classification, attention and both, with example images. path: images and predictions along a path of
    combinations. strip: images, actual and expected maps and inconsistency along one parameter. boundary: the outermost
    boundaries of label and attention side by side, with images. curve: the share that keeps its attention against every
    threshold, with proved bounds. sections: the effect of each parameter alone and of each pair, for more than three
    parameters. columns: maps of several networks, original (O) and under brightness (B), patch (P), translation (T).
    tiling: all regions with their edges (of maps, refinements and searches). visited: the regions that a search
    visited, by phase and label. The exit code is 0, or with --exit-code that of the worst verdict.
    """
    thetas = [o.theta("--at", text) for text in at or ()]
    formats = parse_formats(format, out)
    from .. import api  # noqa: PLC0415 (slow to import)
    from ..requirement import Outcome  # noqa: PLC0415 (slow to import)
    from .printing import load_at, print_json  # noqa: PLC0415 (slow to import)

    folder = directories[0] if out is None else out
    # `out.is_dir()` fails for a name that is too long; `api.draw` refuses such a name.
    path = folder / f"figure-{kind}" if out is None or os.path.isdir(out) else out  # noqa: PTH112
    drawn: list[Any] = directories
    if thetas:
        drawn = [api.load(directory) for directory in directories]
        names = drawn[0].question.perturbed.domain.names
        thetas = [
            [read_value(*pair) for pair in zip(names, t, strict=True)] if len(t) == len(names) else t for t in thetas
        ]
    files = api.draw(
        kind, drawn, path, formats=formats, force=force, delta=delta, tau=tau, gamma=gamma, top=top, at=thetas,
        along=along, steps=steps, by=by,
    )  # fmt: skip
    if json:
        print_json({"kind": kind, "pictures": [str(file) for file in files]})
    else:
        for file in files:
            print(f"picture {file}")
    if not exit_code:
        return 0
    given = {"delta": delta, "tau": tau, "gamma": gamma, "top": top}
    return Outcome.all_of(Outcome.of(load_at(directory, given).verdict) for directory in directories).exit_code


def parse_formats(given: list[str] | None, out: Path | None) -> tuple[str, ...]:
    """The formats as given, else the suffix of the file, else PNG.

    >>> parse_formats(["png,SVG", "pdf"], None), parse_formats(None, Path("a.pdf")), parse_formats(None, Path("a"))
    (('png', 'svg', 'pdf'), ('pdf',), ('png',))
    """
    if given is None:
        suffix = "" if out is None else out.suffix.lower().removeprefix(".")
        if suffix in OTHER_FORMATS:
            raise OptionError(f"--out {out}: cannot write {suffix}; expected {', '.join(FORMATS)}")
        return (suffix if suffix in FORMATS else "png",)
    words = [word.strip().lower() for text in given for word in text.split(",")]
    for word in words:
        if word not in FORMATS:
            guess = did_you_mean(word, FORMATS)
            raise OptionError(f"unknown --format {word!r}; expected {', '.join(FORMATS)}, or several: png,pdf.{guess}")
    return tuple(words)


def compare(
    directories: Annotated[list[Path], typer.Argument(
        metavar="DIR1 DIR2 ...",
        help="Two or more directories that verify wrote; difference maps compare each with the first.",
    )],
    delta: o.OtherDeltaOption = None,
    tau: o.OtherTauOption = None,
    gamma: o.OtherGammaOption = None,
    top: o.OtherTopOption = None,
    fail_if_worse: Annotated[float | None, o.option(
        "--fail-if-worse NUMBER",
        "Exit with code 10 if the share of a later result is proved to be worse than that of the first, the baseline, "
        "by more than this number, and with code 3 if the bounds leave it open.", o.QUESTION, read=o.share_number,
    )] = None,
    share: Annotated[str | None, o.option(
        "--share NAME",
        f"With --fail-if-worse: the share to compare, one of {', '.join(NAMES)}. A smaller share is worse for CR, AR "
        "and CR&AR, a larger one for the others.", o.QUESTION, default=Joint.BOTH, read=read_share,
    )] = None,
    out: Annotated[Path | None, o.option(
        "--out DIR|FILE", "A directory for comparison.json, .png, .svg and .pdf, or a file with one of these endings.",
        default="nothing is written",
    )] = None,
    force: o.ForceFilesOption = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Compare stored results: several networks, images or perturbations side by side.

    Shows the shares of each result, ranks networks by how much they keep, and perturbations by their risk. If all
    results have the same domain, it also shows where the first keeps label and attention and another does not. A given
    threshold applies to all results; otherwise each keeps its own. A search can be compared if it bounds shares of the
    whole domain, as bfs does. The exit code is 0, unless --fail-if-worse is given.
    """
    if len(directories) < 2:
        raise OptionError("compare got one directory, and needs two or more; give another one")
    if share is not None and fail_if_worse is None:
        raise OptionError("--share needs --fail-if-worse NUMBER; give both, or leave --share out")
    from .. import api  # noqa: PLC0415 (slow to import)
    from ..compare.comparison import WorseningGate  # noqa: PLC0415 (slow to import)
    from ..results import store  # noqa: PLC0415 (slow to import)
    from .comparison_text import describe_comparison, describe_gate  # noqa: PLC0415 (slow to import)
    from .printing import print_json, print_notes  # noqa: PLC0415 (slow to import)

    for directory in directories:
        stored = store.read_summary(directory)
        if not stored.knows_shares:
            raise OptionError(
                f"{directory}: holds a search ({stored.method}), which bounds no shares of the whole domain; verify "
                "with --method map, refine or bfs"
            )
    if out is not None:
        from ..compare.comparison_figure import check_place, save_comparison  # noqa: PLC0415 (slow to import)

        check_place(out, force=force)
    comparison = api.compare(directories, delta=delta, tau=tau, gamma=gamma, top=top)
    files = [] if out is None else save_comparison(comparison, out, force=force)
    gate = None if fail_if_worse is None else WorseningGate.of(comparison, share or Joint.BOTH, fail_if_worse)
    if json:
        judged = {} if gate is None else {"fail_if_worse": gate.plain()}
        print_json(comparison.summary() | judged | {"output": {"files": [str(path) for path in files]}})
    else:
        print_notes(comparison.notes)
        describe_comparison(comparison, files=files)
        if gate is not None:
            describe_gate(gate)
    return 0 if gate is None else gate.outcome.exit_code


PICTURES = "boundary"
"""Name of the pictures inside a result's directory, without ending."""


def boundary(
    directory: o.DirectoryOption,
    property: o.OtherPropertyOption = None,
    delta: o.OtherDeltaOption = None,
    tau: o.OtherTauOption = None,
    gamma: o.OtherGammaOption = None,
    top: o.OtherTopOption = None,
    pictures: o.BoundaryPicturesOption = None,
    exit_code: o.ExitCodeOption = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Find the outermost boundary of a stored map or refinement: how far from zero a property is kept.

    Shows how much of the domain can be reached from the unperturbed image while the property is kept, and which parts
    the boundary encloses (enclaves). Draws boundary.png beside the map. The domain must contain zero, and a map must be
    complete; undecided boxes of a refinement count as not kept. The exit code is 0, or with --exit-code that of the
    verdict for this property.
    """
    from ..results.boundary_summary import summarise_boundary  # noqa: PLC0415 (slow to import)
    from .printing import describe_boundary, load_at, print_json  # noqa: PLC0415 (slow to import)

    result = load_at(directory, {"delta": delta, "tau": tau, "gamma": gamma, "top": top})
    try:
        found = result.boundary(property)
    except OptionError as error:
        raise OptionError(f"{directory}: {error}") from None
    drawn = _draw(result, found, directory, choose_formats(pictures, is_read=not json))
    summary = summarise_boundary(result, found)
    if json:
        print_json(summary.plain() | {"output": {"pictures": [str(path) for path in drawn]}})
    else:
        describe_boundary(summary, pictures=drawn)
    return summary.verdict.exit_code if exit_code else 0


def _draw(result: "Result", found: "Boundary", directory: Path, formats: Sequence[str]) -> list[Path]:
    """Draw the boundary; if it cannot be drawn, the answer is printed all the same."""
    if not formats:
        return []
    import_matplotlib()
    from ..report.figures.boundary import draw_boundary  # noqa: PLC0415 (slow to import)
    from .printing import print_notes  # noqa: PLC0415 (slow to import)

    try:
        return draw_boundary(result, found, directory / PICTURES, formats=formats)
    except (OptionError, StoreError) as error:
        print_notes([str(error)])
        return []
