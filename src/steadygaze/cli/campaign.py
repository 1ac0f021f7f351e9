"""`steadygaze campaign`: run many problems, see how far they are, and make tables of them. Decides nothing."""

import json as json_text
import sys
from collections import Counter
from typing import Any

import typer

from ..budget import Budget
from ..campaign import tables
from ..campaign.plan_file import read_plan
from ..campaign.run import Report, run_campaign
from ..campaign.stored_campaign import Store
from ..errors import OptionError
from ..verdict import Verdict
from . import campaign_options as o
from .campaign_insights import figures, insights
from .campaign_progress import showing_campaign
from .interrupt import stopping_on_signals
from .numbers import whole_number
from .options import DebugOption, JsonOption
from .table_files import put_table, refuse_existing

FORMATS = ("text", "json", "csv", "parquet")
MOST_REASONS = 20
"""So many different reasons are told; json has all problems."""

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
    file: o.PlanOption,
    out: o.RunOutOption,
    workers: o.WorkersOption = None,
    scheduler: o.SchedulerOption = None,
    quiet: o.QuietOption = False,
    debug: DebugOption = False,
) -> int:
    """Solve the problems of a plan, or those that an interrupted run has left.

    Time and memory of every problem are limited from outside its process; one that is killed, crashes or runs out of
    memory is Failed, with the reason. Ctrl-C, or any other end, loses no problem that has ended:
    run again to go on. Exit code: 0 when all problems have ended, whatever their status, 3 when some have not.
    """
    count = whole_number("workers", workers)
    plan = read_plan(file)
    budget = Budget()
    with stopping_on_signals(budget):
        with showing_campaign(budget, is_wanted=not quiet) as progress:
            report = run_campaign(
                plan, out, workers=count, scheduler=scheduler, progress=progress, cancelled=budget.cancelled
            )
        if not quiet:
            _tell(Store.open(out), report)
    return 0 if report.missing == 0 else Verdict.UNDECIDED.exit_code


@campaign.command()
def status(directory: o.CampaignOption, json: JsonOption = False, debug: DebugOption = False) -> int:
    """Say how far a campaign is: how many problems have ended and how, and why problems failed."""
    store = Store.open(directory)
    records = tables.make_records(store)
    counts = {name: sum(record["status"] == name for record in records) for name in tables.STATUSES}
    open_count = len(store.plan.tasks) - len(records)
    reasons = Counter((record["status"], record["reason"]) for record in records if record["reason"])
    if json:
        keys = ("key", "status", "reason")
        content: dict[str, Any] = {
            "name": store.plan.name,
            "commit": store.head.commit,
            "is_running": store.is_held(),
            "problems": len(store.plan.tasks),
            "open": open_count,
            "status": counts,
            "failures": [{key: record[key] for key in keys} for record in records if record["reason"]],
        }
        print(json_text.dumps(content, indent=2))
        return 0
    state = "a run is going on" if store.is_held() else "no run is going on"
    print(f"{store.plan.name}: {len(records):,} of {len(store.plan.tasks):,} problems have ended; {state}")
    print(tables.to_text([{"status": name, "problems": number} for name, number in counts.items()]), end="")
    for (name, reason), number in reasons.most_common(MOST_REASONS):
        print(f"{number:,} × {name}: {reason}")
    return 0


@campaign.command()
def table(
    directory: o.CampaignOption,
    format: o.FormatOption = "text",
    out: o.TableOutOption = None,
    answers: o.AnswersOption = False,
    force: o.ReplaceOption = False,
    debug: DebugOption = False,
) -> int:
    """Make a table of a campaign: how many problems ended how (as in the paper), or all results.

    The columns of the results are described in docs/campaign.md.
    """
    if format not in FORMATS:
        raise OptionError(f"--format is {format!r}; expected {', '.join(FORMATS)}")
    if format == "parquet" and out is None:
        raise OptionError("--format parquet is not for the terminal; give --out FILE")
    refuse_existing(out, force=force)
    store = Store.open(directory)
    records = tables.make_records(store)
    if format == "parquet":
        content: str | bytes = tables.to_parquet(records, is_measured=not answers)
    elif format == "csv":
        content = tables.to_csv(records, is_measured=not answers)
    else:
        lines = tables.count_statuses(store.plan, records, is_measured=not answers)
        content = tables.to_text(lines) if format == "text" else json_text.dumps(lines, indent=2) + "\n"
    put_table(content, out, what=f" ({len(records):,} problems)")
    return 0


campaign.command()(figures)
campaign.command()(insights)


def _tell(store: Store, report: Report) -> None:
    records = tables.make_records(store)
    print(tables.to_text(tables.count_statuses(store.plan, records)), end="")
    if report.missing:
        print(f"interrupted: {report.missing:,} problems have not ended; run again to go on", file=sys.stderr)
