"""The command line: parses options, calls the api, prints. `main` is the entry point, `app` holds the commands."""

import atexit
import gc
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .entry_point import app

__all__ = ["ABORTED", "app", "main"]

ABORTED = 130
"""The exit code of shells for a program ended by Ctrl-C."""

NEW_OBJECTS = 300_000
"""New objects between two searches for unreachable cycles: more than a small command makes, which uses its objects
until it ends. Python's own 700 would search everything that is imported several times: a seventh of the time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; by default with the arguments of the process."""
    usual = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *usual[1:])
    # When the process ends, the system takes its memory: Python need not search all of it for cycles first.
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    try:
        from .entry_point import run_command  # noqa: PLC0415 (Ctrl-C while this is imported shows no traceback)
    except KeyboardInterrupt:
        print("steadygaze: aborted", file=sys.stderr)
        return ABORTED
    else:
        return run_command(arguments)
    finally:
        # With the arguments of the process, it ends now: the usual number would start a search.
        if arguments is not None:
            gc.set_threshold(*usual)


def __getattr__(name: str) -> Any:
    """The commands, when they are asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .entry_point import app  # noqa: PLC0415 (see `main`)

    return app
