"""Options with settings as texts, `name:key=value,key=value`: reads and writes the settings."""

import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from ..errors import OptionError


def read_settings(text: str, rest: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in the part of a text after the name; `usual` has the known ones with a value of their type each.

    >>> read_settings("a:n=4", "n=4", {"n": 8, "sigma": 0.1})
    {'n': 4}
    """
    found: dict[str, Any] = {}
    for part in rest.split(",") if rest.strip() else []:
        key, is_given, value = (piece.strip() for piece in part.partition("="))
        if not is_given or key not in usual:
            near = get_close_matches(key, usual, n=1)
            guess = f", did you mean {near[0]!r}?" if near and key not in usual else "."
            known = f"Expected {', '.join(f'{name}=…' for name in usual)}" if usual else "It has no settings"
            raise OptionError(f"{text!r}: {part.strip()!r} is not a setting{guess} {known}")
        if key in found:
            raise OptionError(f"{text!r}: {key} is given twice; give it once")
        found[key] = _read(text, key, value, type(usual[key]))
    return found


def _read(text: str, key: str, value: str, kind: type) -> Any:
    if kind is str:
        return value
    try:
        number = kind(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise OptionError(f"{text!r}: {key} is {value!r}; expected a {'whole ' * (kind is int)}number")
    return number


def write_settings(name: str, settings: Mapping[str, Any]) -> str:
    """The text that `read_settings` reads, with all settings and all digits.

    >>> write_settings("a", {"n": 4, "sigma": 0.1, "baseline": 0.0}), write_settings("b", {})
    ('a:n=4,sigma=0.1,baseline=0', 'b')
    """
    parts = [f"{key}={_write(value)}" for key, value in settings.items()]
    return f"{name}:{','.join(parts)}" if parts else name


def _write(value: Any) -> str:
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return str(value)
