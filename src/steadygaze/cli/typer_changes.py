"""Changes to the commands that typer makes: help that fits the terminal, and values read without pydantic.

Works with every version of click. Nothing in a help text is cut off, and narrow terminals get the meaning below each
option. New versions of typer import pydantic to convert texts, which takes longer than answering wrong input; options
of this program are texts, paths, flags, or have a reader of their own.
"""

import shutil
from functools import cache
from pathlib import Path
from typing import Any, get_args

LEAST_WIDTH, NARROW, WIDEST = 24, 60, 80
"""The least width of the help, the width below which options stand on their own lines, and the largest width."""
INDENTED = 4


def with_readable_help(command: Any) -> Any:
    """The command; its help and that of its subcommands fit the terminal."""
    command.context_class = _context_class(type(command).context_class)
    # Otherwise the list of commands shows this sentence cut short.
    command.short_help = " ".join((command.help or "").strip().partition("\n\n")[0].split())
    for parameter in command.params:
        if isinstance(getattr(parameter, "show_default", None), str):
            # Otherwise the text appears in parentheses, as if it described the default.
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


class PlainValues:
    """Converts the values of one parameter, as typer asks for it."""

    def __init__(self, kind: Any, parser: Any) -> None:
        self.convert = parser or (Path if Path in (kind, *get_args(kind)) else str)

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value, or a list of them for parameters that may be repeated; a default may be missing or converted."""
        if isinstance(value, tuple | list):
            return [self._one(item) for item in value]
        return self._one(value)

    def _one(self, value: Any) -> Any:
        return self.convert(value) if isinstance(value, str) else value


def read_plainly(command: Any) -> Any:
    """The command; its parameters and those of its subcommands convert their values by `PlainValues`."""
    listed = command.get_params

    def get_params(context: Any) -> Any:
        # Among them is --help, which only exists once they are listed.
        parameters = listed(context)
        for parameter in parameters:
            _convert_plainly(parameter)
        return parameters

    command.get_params = get_params
    for inner in getattr(command, "commands", {}).values():
        read_plainly(inner)
    return command


def _convert_plainly(parameter: Any) -> None:
    """Set how typer converts values; in versions that do not ask for it, nothing."""
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is not None and getattr(parameter, "_runtime_param", parameter) is None:
        parser = getattr(descriptor.parameter_info, "parser", None)
        parameter._runtime_param = PlainValues(descriptor.annotation, parser)
