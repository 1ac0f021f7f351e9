"""The program `steadygaze`: turns arguments into an exit code, and every failure into one line on stderr."""

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from ..errors import InternalError, SteadygazeError, without_controls
from ..installed import installed_version
from ..labels import Verdict
from . import ABORTED
from .bundled_commands import demo, models
from .campaign_commands import campaign
from .completion_command import completion
from .stored_commands import boundary, compare, export, figure, report, show
from .typer_changes import read_plainly, with_readable_help
from .verify_command import verify

BAD_INPUT = SteadygazeError.exit_code
BUG = InternalError.exit_code
READER_GONE = 141
"""The exit code of shells for a program that writes to a closed pipe."""

# The base class of usage errors is in typer in new versions, and in click in old ones.
UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for command in (demo, models, verify, show, boundary, figure, compare, export, report, completion):
    app.command()(command)
app.add_typer(campaign, name="campaign")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"steadygaze {installed_version('steadygaze')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def steadygaze(
    context: typer.Context,
    is_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> int:
    """Prove where an image classifier keeps its label and its attention under perturbations of an image."""
    if context.invoked_subcommand is None:
        # An empty command must not look like a proof: its exit code is not 0.
        typer.echo(context.get_help(), err=True)
        return BAD_INPUT
    return 0


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; by default with the arguments of the process."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    is_debug = "--debug" in given
    # Products here are small or run side by side: threads of BLAS would only wait for each other. numpy reads it once.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            if not is_debug and not sys.warnoptions:
                warnings.simplefilter("ignore")  # warnings of libraries: users cannot act on them
            code = with_readable_help(read_plainly(get_command(app))).main(
                given, prog_name="steadygaze", standalone_mode=False
            )
        if sys.stdout is not None:
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        if is_debug:
            traceback.print_exc()
        return _fail(error)
    return _fail(KeyboardInterrupt()) if code == ABORTED else int(code or 0)


def _fail(error: BaseException) -> int:
    """Print the failure in one line; returns the exit code."""
    # typer turns a broken pipe into exit(1), and Ctrl-C into the exit code 130 or, in old versions, into Abort.
    if isinstance(error, BrokenPipeError | SystemExit):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return _say("aborted", ABORTED)
    if isinstance(error, UsageError):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "steadygaze"
        message = error.format_message().rstrip(".")
        return _say(
            f"{message} See {path} --help" if message.endswith("?") else f"{message}; see {path} --help", BAD_INPUT
        )
    if isinstance(error, SteadygazeError) and error.exit_code != BUG:
        return _say(str(error), error.exit_code)
    if isinstance(error, MemoryError):
        limits = "set --memory or --max-regions for a partial result, or use smaller ranges"
        return _say(f"out of memory: nothing is decided; {limits}", Verdict.UNDECIDED.exit_code)
    what = str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
    report = "" if "please report" in what.lower() else "; please report it with the command and the model"
    return _say(f"internal error: {what}{report} (--debug shows where)", BUG)


def _say(text: str, code: int) -> int:
    line = " ".join(without_controls(text).split())
    print(f"steadygaze: {line}", file=sys.stderr)
    return code
