"""The HTML report: one self-contained file. This module reads assets/ and fills templates.

Every text is escaped, unless the template marks it as markup. Invisible direction controls in names from users are
spelled out: they could reorder the sentence around them.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

ALLOWED = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""The content policy of a page: it may use only its own content, and never contacts an address."""

_CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@cache
def read_asset(name: str) -> str:
    """The text of a file in assets/."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def fill(name: str, content: Mapping[str, Any]) -> str:
    """A template of assets/ with its content; a name missing from the content is an error."""
    return _environment().get_template(name).render(content)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(read_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_visible_value,
    )  # fmt: skip


def visible(text: str) -> str:
    r"""The text with escapes instead of direction controls.

    >>> visible("a\u202eb"), visible("été")
    ('a\\u202eb', 'été')
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _visible_value(value: object) -> object:
    """A value of a template: text made visible, markup and other values unchanged."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
