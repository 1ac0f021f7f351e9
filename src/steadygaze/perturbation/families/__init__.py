"""The families of perturbations, one file each, and the parser of spec texts: keyword[:key=value,...][:low..high].

A new family is one new file in this folder; its fields become the keys of its spec.
"""

import pkgutil
import re
from dataclasses import MISSING, fields
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn

from ...errors import InternalError, PerturbationError
from ..base import Perturbation, field_kinds

WHOLE = re.compile(r"[+-]?\d{1,100}", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def find_families() -> dict[str, type[Perturbation]]:
    """Return every family of this folder by keyword, in alphabetical order.

    >>> list(find_families())
    ['brightness', 'darkness', 'hue', 'patch', 'rotate', 'scale', 'shear', 'translate']
    """
    found: dict[str, type[Perturbation]] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{module_info.name}")
        for family in vars(module).values():
            if not (isinstance(family, type) and issubclass(family, Perturbation)):
                continue
            # A file may import another family to build on it; count only the file's own families.
            if family.__module__ != module.__name__ or family.__abstractmethods__:
                continue
            if family.keyword in found:
                other = found[family.keyword].__module__
                raise InternalError(f"{module.__name__}: the keyword '{family.keyword}' already belongs to {other}")
            found[family.keyword] = family
    return dict(sorted(found.items()))


def parse_spec(text: str) -> Perturbation:
    """Return the perturbation that a spec describes; PerturbationError explains a wrong spec.

    >>> parse_spec("patch:x=1,y=2,w=3,h=4,tone=-1:0..0.5").name
    'dark patch 3×4 at (1, 2)'
    >>> parse_spec("brigtness")
    Traceback (most recent call last):
    steadygaze.errors.PerturbationError: perturbation 'brigtness': unknown keyword 'brigtness', did you mean \
'brightness'? Expected one of brightness, darkness, hue, patch, rotate, scale, shear, translate, \
for example brightness:-0.2..0.5
    """
    if not isinstance(text, str):
        raise PerturbationError(f"{text!r} is not a text; expected a perturbation such as 'brightness:0..0.5'")
    keyword, *parts = (part.strip() for part in text.split(":"))
    families = find_families()
    family = families.get(keyword.lower())
    if family is None:
        _refuse_keyword(text, keyword, families)
    settings, ends = _sort_parts(text, family, parts)
    values = _read_settings(text, family, settings) if settings is not None else {}
    _require_settings(text, family, values)
    given_range = _read_range(text, ends) if ends is not None else None
    try:
        return family(**values, range=given_range)
    except PerturbationError as error:
        _refuse(text, str(error).removeprefix(f"{family.keyword}: "))


def _refuse(text: str, what: str) -> NoReturn:
    raise PerturbationError(f"perturbation {_quote(text)}: {what}") from None


def _quote(text: str) -> str:
    """Quote a text on one line, short enough for an error message."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _refuse_keyword(text: str, keyword: str, families: dict[str, type[Perturbation]]) -> NoReturn:
    near = get_close_matches(keyword.lower(), families, n=1)
    guess = f", did you mean '{near[0]}'?" if near else "."
    example = families[near[0]].example if near else "brightness:0..0.5"
    what = f"unknown keyword {_quote(keyword)}{guess}" if keyword else "the keyword is missing."
    _refuse(text, f"{what} Expected one of {', '.join(families)}, for example {example}")


def _sort_parts(text: str, family: type[Perturbation], parts: list[str]) -> tuple[str | None, str | None]:
    """Return the part with the settings and the part with the range; None for a missing one."""
    settings = [part for part in parts if "=" in part]
    ends = [part for part in parts if "=" not in part and ".." in part]
    strange = [part for part in parts if part not in settings and part not in ends]
    if strange:
        _refuse(text, f"{_quote(strange[0])} is neither key=value nor low..high; expected for example {family.example}")
    if len(settings) > 1 or len(ends) > 1 or (settings and ends and parts[0] == ends[0]):
        _refuse(text, "too many parts, or parts in the wrong order; expected keyword:key=value,key=value:low..high")
    return (settings[0] if settings else None), (ends[0] if ends else None)


def _read_settings(text: str, family: type[Perturbation], part: str) -> dict[str, int | float | str]:
    kinds = field_kinds(family)
    values: dict[str, int | float | str] = {}
    for setting in part.split(","):
        key, is_given, value = (piece.strip() for piece in setting.partition("="))
        if not is_given:
            _refuse(text, f"{_quote(setting.strip())} is not key=value; expected for example {family.example}")
        if key not in kinds:
            near = get_close_matches(key, kinds, n=1)
            keys = f"Expected {', '.join(kinds)}" if kinds else f"{family.keyword.capitalize()} has only a range"
            guess = f", did you mean {near[0]!r}?" if near else "."
            example = f"{family.example}; a range low..high comes last, after a colon"
            _refuse(text, f"unknown key {_quote(key)}{guess} {keys}, for example {example}")
        if key in values:
            _refuse(text, f"{key} is given twice; give it once")
        if kinds[key] is int:
            if not WHOLE.fullmatch(value):
                _refuse(text, f"{key} is {_quote(value)}; expected a whole number, for example {family.example}")
            values[key] = int(value)
        elif kinds[key] is str:
            values[key] = value
        else:
            values[key] = _read_number(text, value, f"{key} is")
    return values


def _require_settings(text: str, family: type[Perturbation], values: dict[str, int | float | str]) -> None:
    needed = [field.name for field in fields(family) if field.default is MISSING and field.name not in values]
    if needed:
        is_or_are = "is" if len(needed) == 1 else "are"
        _refuse(text, f"{', '.join(needed)} {is_or_are} missing; expected for example {family.example}")


def _read_range(text: str, part: str) -> tuple[float, float]:
    low, _, high = part.partition("..")
    return _read_number(text, low, "the range starts with"), _read_number(text, high, "the range ends with")


def _read_number(text: str, value: str, what: str) -> float:
    if not NUMBER.fullmatch(value.strip()):
        _refuse(
            text, f"{what} {_quote(value)}; expected a number such as 0.5, and a range as low..high such as -0.2..0.5"
        )
    return float(value)
