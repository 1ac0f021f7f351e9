"""`steadygaze campaign`: solves many problems, shows progress, makes tables and figures. Decides nothing."""

import json as json_text
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..campaign import INSIGHTS
from ..errors import OptionError, not_writable
from ..labels import Verdict
from . import command_options as o
from .stored_commands import parse_formats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..campaign.run import Report
    from ..campaign.stored_campaign import Store
    from ..campaign.tables import Record

MAX_REASONS = 20
"""Distinct reasons printed; --json has all problems."""

CampaignOption = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a campaign.")]
PlanOption = Annotated[str | None, o.option(
    "--plan FILE", "The plan of the campaign, which locates the models and images that are not bundled.", None,
)]  # fmt: skip

campaign = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["--help", "-h"]})


@campaign.callback(invoke_without_command=True)
def choose(context: typer.Context) -> int:
    """Solve many problems in one go: models × images × perturbations × methods, within limits, on all processors."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        return OptionError.exit_code
    return 0


@campaign.command()
def run(
    file: Annotated[str, typer.Argument(
        metavar="FILE",
        help="A plan in TOML (see docs/campaign.md), or a bundled one: paper, smoke, filters, perturbations, "
        "networks or object.",
    )],
    out: Annotated[
        Path, o.option("--out DIR", "The directory of the campaign; an interrupted campaign continues there.")
    ],
    workers: Annotated[int | None, o.option(
        "--workers N", "Problems to solve at once on this machine.", o.LIMITS, default="one for each processor",
        read=o.whole_number,
    )] = None,
    scheduler: Annotated[str | None, o.option(
        "--scheduler ADDRESS",
        "Solve the problems on a Dask cluster, given the address of its scheduler, such as tcp://127.0.0.1:8786. Its "
        "workers need this version of steadygaze and the files of the plan.", o.LIMITS,
    )] = None,
    quiet: Annotated[bool, o.option("--quiet", "Print errors only.")] = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Solve the problems of a plan, or the rest of an interrupted run.

    Each problem has limits of time and memory, enforced from outside its process; a problem that is killed, crashes or
    runs out of memory is Failed, with the reason. An interruption (Ctrl-C, a crash) loses no finished problem: run
    again to continue. The plan may have changed since: only new problems are solved. Exit code: 0 when all problems
    have ended, 3 when some have not. With requirements in the plan: 0 when all are met, 10 when one is missed, 3 when
    bounds leave one open or problems are Failed, or Timeout without proved bounds.
    """
    from ..budget import Budget  # noqa: PLC0415 (slow to import)
    from ..campaign import tables  # noqa: PLC0415 (slow to import)
    from ..campaign.plan_file import read_plan  # noqa: PLC0415 (slow to import)
    from ..campaign.run import run_campaign  # noqa: PLC0415 (slow to import)
    from ..campaign.set_requirement import judge_plan  # noqa: PLC0415 (slow to import)
    from ..campaign.stored_campaign import Store  # noqa: PLC0415 (slow to import)
    from .printing import print_gate, print_notes  # noqa: PLC0415 (slow to import)
    from .run_progress import showing_campaign, stopping_on_signals  # noqa: PLC0415 (slow to import)

    plan = read_plan(file)
    if not quiet:
        print_notes(plan.notes)
    budget = Budget()
    with stopping_on_signals(budget):
        with showing_campaign(budget, is_wanted=not quiet) as progress:
            report = run_campaign(
                plan, out, workers=workers, scheduler=scheduler, progress=progress, cancelled=budget.cancelled
            )
        store = Store.open(out)
        records = tables.make_records(store)
        gate = judge_plan(plan, records)
        if not quiet:
            _print_statuses(store, records, report)
            if gate is not None:
                print_gate(gate)
    if gate is not None:
        return gate.outcome.exit_code
    return 0 if report.missing == 0 else Verdict.UNDECIDED.exit_code


@campaign.command()
def status(
    directory: CampaignOption,
    exit_code: Annotated[bool, o.option(
        "--exit-code", "Exit with the code that campaign run gives for the requirements, instead of 0.",
    )] = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Show the progress of a campaign: how many problems have ended, how they ended, and why some failed.

    Also shows whether the requirements of its plan are met, and which problems are to blame.
    """
    from ..campaign import tables  # noqa: PLC0415 (slow to import)
    from ..campaign.set_requirement import judge_plan  # noqa: PLC0415 (slow to import)
    from ..campaign.stored_campaign import Store  # noqa: PLC0415 (slow to import)
    from .printing import print_gate, print_json  # noqa: PLC0415 (slow to import)

    store = Store.open(directory)
    records = tables.make_records(store)
    counts = {name: sum(record["status"] == name for record in records) for name in tables.statuses_of(store.plan)}
    failures = [record for record in records if record["reason"]]
    gate = judge_plan(store.plan, records)
    is_open = len(records) < len(store.plan.tasks)
    code = gate.outcome.exit_code if gate is not None else Verdict.UNDECIDED.exit_code if is_open else 0
    if json:
        content = {
            "name": store.plan.name,
            "commit": store.head.commit,
            "is_running": store.is_held(),
            "problems": len(store.plan.tasks),
            "open": len(store.plan.tasks) - len(records),
            "status": counts,
            "failures": [{key: record[key] for key in ("key", "status", "reason")} for record in failures],
            "require": None if gate is None else gate.plain(),
        }
        print_json(content)
        return code if exit_code else 0
    state = "a run is active" if store.is_held() else "no run is active"
    print(f"{store.plan.name}: {len(records):,} of {len(store.plan.tasks):,} problems have ended; {state}")
    print(tables.to_text([{"status": name, "problems": number} for name, number in counts.items()]), end="")
    reasons = Counter((record["status"], record["reason"]) for record in failures)
    for (name, reason), number in reasons.most_common(MAX_REASONS):
        print(f"{number:,} × {name}: {reason}")
    if gate is not None:
        print_gate(gate)
    return code if exit_code else 0


@campaign.command()
def table(
    directory: CampaignOption,
    format: Annotated[str, o.option(
        "--format text|json|csv|parquet",
        "The table of statuses (text, json), or all results with one line per problem (csv, parquet).",
        read=o.one_of("text", "json", "csv", "parquet"),
    )] = "text",
    out: Annotated[
        Path | None, o.option("--out FILE", "The file to write; required for parquet.", default="stdout")
    ] = None,
    answers: Annotated[bool, o.option(
        "--answers", "Leave out seconds and memory: all runs of a campaign then give the same bytes.",
    )] = False,
    force: o.ForceFilesOption = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Make a table of a campaign: the number of problems with each status (as in the paper), or all results.

    docs/campaign.md describes the columns of the results.
    """
    if format == "parquet" and out is None:
        raise OptionError("--format parquet needs --out FILE")
    from ..campaign import tables  # noqa: PLC0415 (slow to import)
    from ..campaign.stored_campaign import Store  # noqa: PLC0415 (slow to import)
    from ..results.directory import check_file  # noqa: PLC0415 (slow to import)

    if out is not None:
        check_file(out, force=force)
    store = Store.open(directory)
    records = tables.make_records(store)
    if format == "parquet":
        content: str | bytes = tables.to_parquet(records, is_measured=not answers)
    elif format == "csv":
        content = tables.to_csv(records, is_measured=not answers)
    else:
        lines = tables.count_statuses(store.plan, records, is_measured=not answers)
        content = tables.to_text(lines) if format == "text" else json_text.dumps(lines, indent=2) + "\n"
    _put_table(content, out, what=f" ({len(records):,} problems)")
    return 0


@campaign.command()
def figures(
    directory: CampaignOption,
    out: Annotated[
        Path | None, o.option("--out FOLDER", "The folder for the figures.", default="figures in DIR")
    ] = None,
    format: o.FormatsOption = None,
    plan: PlanOption = None,
    force: o.ForceFilesOption = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Draw figures (A) to (G) of the paper's evaluation from a campaign.

    (A), (B): how problems ended, with attention and for the label alone. (C): seconds against neurons. (D): regions by
    combination. (E), (F): seconds against regions and face checks. (G): the regions that a search visited, from a cheap
    gbs problem that is searched again. Figures omit problems that have not ended, or show them as open.
    """
    formats = parse_formats(format, None)
    from ..campaign.plan_file import read_plan  # noqa: PLC0415 (slow to import)
    from ..campaign.stored_campaign import Store  # noqa: PLC0415 (slow to import)

    given = None if plan is None else read_plan(plan)
    store = Store.open(directory)
    from ..campaign.figures import draw_figures  # noqa: PLC0415 (slow to import)
    from .printing import print_json, print_notes  # noqa: PLC0415 (slow to import)

    drawn = draw_figures(store, directory / "figures" if out is None else out, formats=formats, force=force, plan=given)
    if json:
        print_json({"pictures": [str(file) for file in drawn.files], "missing": drawn.missing})
        return 0
    for file in drawn.files:
        print(f"picture {file}")
    print_notes(f"no figure ({letter}): {reason}" for letter, reason in drawn.missing.items())
    return 0


@campaign.command()
def insights(
    directory: CampaignOption,
    table: Annotated[str | None, o.option(
        "--table NAME", f"One of {', '.join(INSIGHTS)}.", None, default="all",
        read=o.one_of(*INSIGHTS),
    )] = None,
    format: Annotated[str, o.option(
        "--format text|json|csv", "The format; csv needs one --table.", read=o.one_of("text", "json", "csv"),
    )] = "text",
    out: Annotated[Path | None, o.option("--out FILE", "The file to write.", default="stdout")] = None,
    force: o.ForceFilesOption = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Make tables of findings that the paper states in words, from the maps and refinements of a campaign.

    collapse: the perturbation that takes most attention away, for each network. silent: how often the label is kept but
    the attention is not (CR and IR). delta: how the share of AR varies with δ. filter: how the share of AR varies with
    filter and distance. ranking: how label and attention rank networks differently. Shares are means over images, with
    proved bounds.
    """
    if format == "csv" and table is None:
        names = ", ".join(INSIGHTS)
        raise OptionError(f"--format csv writes one table; give --table with one of {names}")
    from ..campaign import tables  # noqa: PLC0415 (slow to import)
    from ..campaign.stored_campaign import Store  # noqa: PLC0415 (slow to import)
    from ..results.directory import check_file  # noqa: PLC0415 (slow to import)

    if out is not None:
        check_file(out, force=force)
    found = tables.make_insights(tables.make_records(Store.open(directory)))
    chosen = [one for one in found if table in (None, one.name)]
    if format == "csv":
        content = chosen[0].to_csv()
    elif format == "json":
        lines = [one.as_data() for one in chosen]
        content = json_text.dumps(lines, indent=2, allow_nan=False) + "\n"
    else:
        content = "\n".join(one.to_text() for one in chosen)
    _put_table(content, out)
    return 0


@campaign.command("report")
def report_command(
    directory: CampaignOption,
    out: Annotated[
        Path | None, o.option("--out FOLDER", "The folder for index.html and full reports.", default="report in DIR")
    ] = None,
    full: Annotated[list[str] | None, o.option(
        "--full kept|N|violations|all|none|KEY",
        "The problems that get a full report: those whose result the campaign kept (keep in the plan), the N worst of "
        "these, those that miss a requirement or are not robust, all, none, or the one with this key; repeat the "
        "option for several. Problems without a kept result are solved again.", default="kept",
    )] = None,
    plan: PlanOption = None,
    no_weights: Annotated[bool, o.option(
        "--no-weights", "Leave the weights of networks out of full reports, and delete earlier reports that hold them.",
    )] = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Write one HTML page with all problems of a campaign: small maps, filters, and links to full reports.

    The page is written first, then the full reports, the worst first. Earlier pages of steadygaze are replaced, and
    those of former problems removed; other files are left alone. The exit code is 0.
    """
    from ..campaign.plan_file import read_plan  # noqa: PLC0415 (slow to import)
    from ..campaign.stored_campaign import Store  # noqa: PLC0415 (slow to import)
    from .printing import print_json, print_notes  # noqa: PLC0415 (slow to import)
    from .run_progress import showing_reports  # noqa: PLC0415 (slow to import)

    store = Store.open(directory)
    given = None if plan is None else read_plan(plan)
    from ..campaign.overview import write_overview  # noqa: PLC0415 (slow to import)

    folder = directory / "report" if out is None else out
    with showing_reports(is_wanted=not json) as progress:
        written = write_overview(
            store, folder, full=full or ("kept",), plan=given, weights=not no_weights, progress=progress
        )
    if written.reports and not no_weights:
        written.notes.append("full reports of small networks contain all their weights; --no-weights leaves them out")
    if json:
        reports = [str(page) for page in written.reports]
        print_json({"page": str(written.page), "reports": reports, "notes": written.notes})
        return 0
    print_notes(written.notes)
    print(f"report  {written.page} ({len(written.reports):,} full reports)")
    return 0


@campaign.command()
def junit(
    directory: CampaignOption,
    out: Annotated[Path | None, o.option("--out FILE.xml", "The file to write.", default="stdout")] = None,
    force: o.ForceFilesOption = False,
    debug: o.DebugOption = False,
) -> int:  # fmt: skip
    """Write a campaign as JUnit XML, which CI services show: a test case for each problem and each requirement.

    A missed requirement is a failure; an open requirement, or a problem without an answer, is an error. The exit code
    is 0.
    """
    from ..campaign import tables  # noqa: PLC0415 (slow to import)
    from ..campaign.junit import make_junit  # noqa: PLC0415 (slow to import)
    from ..campaign.stored_campaign import Store  # noqa: PLC0415 (slow to import)
    from ..results.directory import check_file  # noqa: PLC0415 (slow to import)

    if out is not None:
        check_file(out, force=force)
    store = Store.open(directory)
    _put_table(make_junit(store.plan, tables.make_records(store)), out)
    return 0


def _print_statuses(store: "Store", records: "Sequence[Record]", report: "Report") -> None:
    from ..campaign import tables  # noqa: PLC0415 (slow to import)

    print(tables.to_text(tables.count_statuses(store.plan, records)), end="")
    if report.missing:
        print(f"interrupted: {report.missing:,} problems have not ended; run again to continue", file=sys.stderr)


def _put_table(content: str | bytes, out: Path | None, *, what: str = "") -> None:
    """Print a table, or write it to a file atomically and say so."""
    if out is None:
        sys.stdout.write(str(content))
        return
    from ..campaign.stored_campaign import write_whole  # noqa: PLC0415 (slow to import)

    try:
        write_whole(out, content)
    except OSError as error:
        raise not_writable(out, error) from None
    print(f"wrote {out}{what}", file=sys.stderr)
