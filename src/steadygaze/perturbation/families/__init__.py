"""The families of perturbations, one file each, and the parser of spec texts: keyword[:key=value,...][:low..high].

A value with a colon or a comma must be in double quotes.

A new family is one new file in this folder; its fields become the keys of its spec. `shift` is the only spec with two
parameters.
"""

import pkgutil
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn, cast

from ...errors import InternalError, PerturbationError
from ..base import FloatArray, Perturbation, field_kinds
from ..fields import Colour, FileArray
from .shift import Shift

WHOLE = re.compile(r"[+-]?\d{1,100}", re.ASCII)
Family = type[Perturbation] | type[Shift]
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def find_families() -> dict[str, type[Perturbation]]:
    """Return every family of this folder by keyword, in alphabetical order.

    >>> list(find_families())
    ['blend', 'blur', 'brightness', 'contrast', 'darkness', 'direction', 'field', 'haze', 'hue', 'kernel', 'motion', \
'occlude', 'overlay', 'patch', 'rotate', 'saturation', 'scale', 'shadow', 'sharpen', 'shear', 'translate']
    """
    found: dict[str, type[Perturbation]] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{module_info.name}")
        for family in vars(module).values():
            if not (isinstance(family, type) and issubclass(family, Perturbation)):
                continue
            # A file may import other families to build on them; only its own classes count.
            if family.__module__ != module.__name__ or family.__abstractmethods__:
                continue
            if family.keyword in found:
                other = found[family.keyword].__module__
                raise InternalError(f"{module.__name__}: the keyword '{family.keyword}' already belongs to {other}")
            found[family.keyword] = family
    return dict(sorted(found.items()))


def parse_spec(text: str, arrays: Mapping[str, FloatArray] | None = None) -> Perturbation:
    """Return the perturbation that a spec describes; raises PerturbationError for a wrong spec.

    `arrays` holds contents of files by digest, as `Perturbation.arrays` returns them: these files are not read again.

    >>> parse_spec("patch:x=1,y=2,w=3,h=4,tone=-1:0..0.5").name
    'dark patch 3×4 at (1, 2)'
    >>> parse_spec("brigtness")
    Traceback (most recent call last):
    steadygaze.errors.PerturbationError: perturbation 'brigtness': unknown keyword 'brigtness', did you mean \
'brightness'? Expected one of blend, blur, brightness, contrast, darkness, direction, field, haze, hue, kernel, \
motion, occlude, overlay, patch, rotate, saturation, scale, shadow, sharpen, shear, shift, \
translate, for example brightness:-0.2..0.5
    """
    found = _parse(text, arrays)
    if isinstance(found, Shift):
        _refuse(text, "a shift has two parameters; read it with parse_specs, or give two translations")
    return found


def parse_specs(
    given: Sequence[str | Perturbation], arrays: Mapping[str, FloatArray] | None = None
) -> list[Perturbation]:
    """Return the perturbations of specs, one for each parameter; perturbations in the list are kept.

    >>> [one.spec for one in parse_specs(["shift:dx=1,dy=2", "brightness:0..0.1"])]
    ['translate:dx=1:-1..1', 'translate:dy=2:-2..2', 'brightness:0..0.1']
    """
    found: list[Perturbation] = []
    for item in given:
        one = _parse(item, arrays) if isinstance(item, str) else item
        found += one.parts if isinstance(one, Shift) else [one]
    return found


def _parse(text: str, arrays: Mapping[str, FloatArray] | None) -> Perturbation | Shift:
    if not isinstance(text, str):
        raise PerturbationError(f"{text!r} is not a text; expected a perturbation such as 'brightness:0..0.5'")
    if text.count('"') % 2:
        _refuse(text, 'a double quote is not closed; write a file name as image="clouds.png"')
    keyword, *parts = (part.strip() for part in _split(text, ":"))
    families: dict[str, Family] = dict(sorted({**find_families(), Shift.keyword: Shift}.items()))
    family = families.get(keyword.lower())
    if family is None:
        _refuse_keyword(text, keyword, families)
    settings, ends = _sort_parts(text, family, parts)
    values = _read_settings(text, family, settings, arrays) if settings is not None else {}
    _require_settings(text, family, values)
    given = None if ends is None else _read_ranges(text, ends) if family is Shift else _read_range(text, ends)
    try:
        found = family(**values, range=given)  # type: ignore[arg-type]
        if isinstance(found, Shift):
            found.check()
        return found
    except PerturbationError as error:
        _refuse(text, str(error).removeprefix(f"{family.keyword}: ").removeprefix("translate: "))


def _split(text: str, separator: str) -> list[str]:
    """Split a text at separators outside double quotes.

    >>> _split('blend:image="a:b.png":0..1', ":")
    ['blend', 'image="a:b.png"', '0..1']
    """
    parts = [""]
    for number, piece in enumerate(text.split('"')):
        if number % 2:
            parts[-1] += f'"{piece}"'
        else:
            first, *others = piece.split(separator)
            parts[-1] += first
            parts += others
    return parts


def _refuse(text: str, what: str) -> NoReturn:
    raise PerturbationError(f"perturbation {_quote(text)}: {what}") from None


def _quote(text: str, most: int = 80) -> str:
    """Quote a text on one line, short enough for an error message."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def _refuse_keyword(text: str, keyword: str, families: dict[str, Family]) -> NoReturn:
    near = get_close_matches(keyword.lower(), families, n=1)
    guess = f", did you mean '{near[0]}'?" if near else "."
    example = families[near[0]].example if near else "brightness:0..0.5"
    what = f"unknown keyword {_quote(keyword, 40)}{guess}" if keyword else "the keyword is missing."
    _refuse(text, f"{what} Expected one of {', '.join(families)}, for example {example}")


def _sort_parts(text: str, family: Family, parts: list[str]) -> tuple[str | None, str | None]:
    """Return the part with the settings and the part with the range; None for a missing one."""
    settings = [part for part in parts if "=" in part]
    ends = [part for part in parts if "=" not in part and ".." in part]
    strange = [part for part in parts if part not in settings and part not in ends]
    if strange:
        _refuse(text, f"{_quote(strange[0])} is neither key=value nor low..high; expected for example {family.example}")
    if len(settings) > 1 or len(ends) > 1 or (settings and ends and parts[0] == ends[0]):
        _refuse(text, "too many parts, or parts in the wrong order; expected keyword:key=value,key=value:low..high")
    return (settings[0] if settings else None), (ends[0] if ends else None)


def _read_settings(text: str, family: Family, part: str, arrays: Mapping[str, FloatArray] | None) -> dict[str, object]:
    kinds = _kinds(family)
    values: dict[str, object] = {}
    for setting in _split(part, ","):
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
        values[key] = _read_value(text, family, key, value, arrays)
    return values


def _kinds(family: Family) -> dict[str, type]:
    return field_kinds(cast(type, family))


def _read_value(text: str, family: Family, key: str, value: str, arrays: Mapping[str, FloatArray] | None) -> object:
    kind = _kinds(family)[key]
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    if issubclass(kind, FileArray | Colour | str) and not value.strip():
        _refuse(text, f"{key} is empty; expected for example {family.example}")
    if issubclass(kind, FileArray):
        try:
            return kind.of(value, arrays)
        except (ValueError, PerturbationError) as error:
            _refuse(text, f"{key} is {_quote(value)}: {error}")
    if issubclass(kind, Colour | str):
        return value
    if kind is int:
        if not WHOLE.fullmatch(value):
            _refuse(text, f"{key} is {_quote(value)}; expected a whole number, for example {family.example}")
        return int(value)
    return _read_number(text, value, f"{key} is")


def _require_settings(text: str, family: Family, values: dict[str, object]) -> None:
    needed = [field.name for field in fields(family) if field.default is MISSING and field.name not in values]
    if needed:
        is_or_are = "is" if len(needed) == 1 else "are"
        _refuse(text, f"{', '.join(needed)} {is_or_are} missing; expected for example {family.example}")


def _read_range(text: str, part: str) -> tuple[float, float]:
    low, _, high = part.partition("..")
    return _read_number(text, low, "the range starts with"), _read_number(text, high, "the range ends with")


def _read_ranges(text: str, part: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ranges of both parameters of a shift: one for both, or one for each."""
    first, *others = part.split("/")
    if len(others) > 1:
        _refuse(text, f"a shift has two parameters, but {_quote(part)} has {len(others) + 1} ranges; give one or two")
    return _read_range(text, first), _read_range(text, others[0] if others else first)


def _read_number(text: str, value: str, what: str) -> float:
    if not NUMBER.fullmatch(value.strip()):
        _refuse(
            text, f"{what} {_quote(value)}; expected a number such as 0.5, and a range as low..high such as -0.2..0.5"
        )
    return float(value)
