"""Help that fits the terminal: nothing is cut off, and narrow terminals get the meaning below each option.

Works on the commands that typer makes, whichever version of click they come from.
"""

import shutil
from functools import cache
from typing import Any

LEAST_WIDTH, NARROW, WIDEST = 24, 60, 80
"""Columns that help needs at least, below which options stand on lines of their own, and that it takes at most."""
INDENTED = 4


def with_readable_help(command: Any) -> Any:
    """The command; its help and that of its subcommands fit the terminal."""
    command.context_class = _context_class(type(command).context_class)
    # Else the list of commands shows the beginning of this sentence, and dots.
    command.short_help = " ".join((command.help or "").strip().partition("\n\n")[0].split())
    for parameter in command.params:
        if isinstance(getattr(parameter, "show_default", None), str):
            # Else the text stands in parentheses, as if it were not the default itself.
            parameter.help = f"{parameter.help}  [default: {parameter.show_default}]"
            parameter.show_default = False
    for inner in getattr(command, "commands", {}).values():
        with_readable_help(inner)
    return command


@cache
def _context_class(base: Any) -> Any:
    formatter = _formatter_class(base.formatter_class)
    return type("FittingContext", (base,), {"formatter_class": formatter})


def _formatter_class(base: Any) -> Any:
    class FittingFormatter(base):
        """Help in the width of the terminal."""

        def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
            columns = min(shutil.get_terminal_size().columns, max_width or WIDEST)
            super().__init__(indent_increment, width or max(columns - 2, LEAST_WIDTH), max_width)

        def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
            """Write names and meanings, side by side if there is room."""
            super().write_dl(rows, INDENTED if self.width < NARROW else col_max, col_spacing)

    return FittingFormatter
