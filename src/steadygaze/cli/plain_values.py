"""The values of options without pydantic, which new versions of typer import to convert texts, for longer than it takes
to answer wrong input. Options of this program are texts, paths, flags, or have a reader of their own.
"""

from pathlib import Path
from typing import Any, get_args


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
