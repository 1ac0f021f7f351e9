"""The files in assets/ as text, and templates among them filled with content. Every text of it is escaped.

What is markup already says so in the template. Writes nothing.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from .visible import visible_value


@cache
def read_asset(name: str) -> str:
    """The text of a file in assets/."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def fill(name: str, content: Mapping[str, Any]) -> str:
    """A template of assets/ with its content; a name that the content lacks is an error."""
    return _environment().get_template(name).render(content)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(read_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=visible_value,
    )  # fmt: skip
