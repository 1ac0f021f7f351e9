"""The tables of a plan file as types: the keys and values of each, and the errors for mistakes."""

import re
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta, Struct

from ..errors import did_you_mean
from ..question import OPTIONS
from ..question_options import QuestionOption
from .stored_campaign import METHODS

MOST = sys.float_info.max
Finite = Annotated[float, Meta(ge=-MOST, le=MOST)]
Number = Annotated[float, Meta(ge=0.0, le=MOST, description="a number of at least 0")]
Limit = Annotated[Annotated[float, Meta(gt=0.0, le=MOST)] | None, Meta(description="a number above 0")]
Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[Text | Annotated[list[Text], Meta(min_length=1)], Meta(description="a text, or a list of texts")]
Channels = Annotated[
    Finite | Annotated[list[Finite], Meta(min_length=1)] | None, Meta(description="a number, or one for each channel")
]

Requirements = Annotated[
    Text | list[Text] | None, Meta(description="a requirement such as 'CR&AR >= 0.9', or a list of them")
]
KEEP = ("all", "violations", "none")


def _choices(option: QuestionOption) -> Any:
    """The type of an option of the question: a value, or a list of values."""
    value = int | float | str if option.is_number else bool | str if option.is_flag else str
    several = Annotated[list[value], Meta(min_length=1)]  # type: ignore[valid-type]
    return Annotated[value | several, Meta(description=option.expected)]


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a plan file."""


class _Campaign(_Table, frozen=True):
    name: Annotated[str | None, Meta(description="a text")] = None
    require: Requirements = None
    keep: Annotated[Literal[KEEP], Meta(description=f"one of {', '.join(KEEP)}")] = "none"  # type: ignore[valid-type]


class _Limits(_Table, frozen=True):
    seconds: Limit = None
    memory_gib: Limit = None


class _Used(_Table, frozen=True):
    use: Texts
    group: Annotated[str, Meta(description="a text")] = ""


class _Images(_Used, frozen=True):
    expect: Annotated[Text | None, Meta(description="folder, a CSV file, or a label")] = None


class _Models(_Used, frozen=True):
    mean: Channels = None
    std: Channels = None
    scale: Number = 1.0
    output: Annotated[str | None, Meta(description="a text")] = None
    class_names: Annotated[Text | None, Meta(description="a text file with one class name on each line")] = None


_OPTIONS = [(name, _choices(option), option.paper) for name, option in OPTIONS.items()]
_Options = msgspec.defstruct("_Options", _OPTIONS, bases=(_Limits,), frozen=True, forbid_unknown_fields=True)


class RunTable(_Options, frozen=True, kw_only=True):  # type: ignore[valid-type, misc, call-arg]
    """Defaults are those of the paper's runs; `until` is 0.001 unless given, `w_delta` 0.2."""

    method: Annotated[Literal[METHODS], Meta(description=f"one of {', '.join(METHODS)}")]  # type: ignore[valid-type]
    models: Texts = "*"
    combinations: Texts = "*"
    until: Annotated[
        Annotated[float, Meta(ge=0.0, lt=1.0)] | Literal["exact"] | None,
        Meta(description="a share such as 0.001, or exact"),
    ] = None
    w_delta: Annotated[Number | None, Meta(description="a number of at least 0")] = None
    goal: Annotated[Literal["map", "verdict"] | None, Meta(description="map or verdict")] = None
    require: Requirements = None

    def __post_init__(self) -> None:
        for key, owner in (("until", "refine"), ("goal", "refine"), ("w_delta", "gbs")):
            if getattr(self, key) is not None and self.method != owner:
                raise ValueError(f"{key} belongs to method {owner}, not {self.method}; leave it out")


def _several(table: str) -> Meta:
    return Meta(min_length=1, description=f"at least one table [[{table}]]; docs/campaign.md has an example")


COMBINATIONS = 'a table of perturbations by name, such as BP = ["brightness"]'


class PlanFile(_Table, frozen=True, kw_only=True):
    """A whole plan file."""

    campaign: Annotated[_Campaign, Meta(description="a table [campaign]")] = _Campaign()
    limits: Annotated[_Limits, Meta(description="a table [limits]")] = _Limits()
    models: Annotated[list[_Models], _several("models")]
    images: Annotated[list[_Images], _several("images")]
    combinations: Annotated[Annotated[dict[str, Any], Meta(min_length=1)] | None, Meta(description=COMBINATIONS)] = None
    preset: Annotated[Texts | None, Meta(description="light, weather, camera or dirt, or a list of such names")] = None
    runs: Annotated[list[RunTable], _several("runs")]


_FLAGS = "|".join(name for name, option in OPTIONS.items() if option.is_flag)
_KEYS = "|".join({*RunTable.__struct_fields__, *_Models.__struct_fields__})


def plan_words(text: str) -> str:
    """A message about options of the command line, reworded for plans.

    >>> plan_words("convert it with --grey; --fit resize does it; --fit is 'x'")
    "convert it with grey = true; fit = resize does it; fit is 'x'"
    """
    text = re.sub(rf"--({_FLAGS})\b", r"\1 = true", text)
    return re.sub(rf"--({_KEYS})(?= is\b| has\b)", r"\1", re.sub(rf"--({_KEYS}) (?!is\b|has\b)", r"\1 = ", text))


TABLES = {"campaign": _Campaign, "limits": _Limits, "models": _Models, "images": _Images, "runs": RunTable}


def parse_tables(content: Mapping[str, Any]) -> PlanFile:
    """The tables of a plan; ValueError names the place, the value and the expected value."""
    try:
        return msgspec.convert(content, PlanFile)
    except msgspec.ValidationError as error:
        raise ValueError(_explain(str(error), content)) from None


def _explain(error: str, content: Mapping[str, Any]) -> str:
    """An error of msgspec for users: the place and the value in the file, and the expected value."""
    text, _, path = error.partition(" - at `$")
    steps = re.findall(r"\.(\w+)(?:\[(\d+)\])?", path)
    kind: Any = PlanFile
    place, dot = "the file", ""
    if steps and (len(steps) > 1 or not text.startswith("Expected")):
        (table, number), *steps = steps
        kind, content = TABLES[table], content[table][int(number)] if number else content[table]
        place = f"{table} {int(number) + 1}" if number else f"[{table}]"
        dot = f"{place.strip('[]')}."
    key = re.fullmatch("Object (contains unknown|missing required) field `(.*)`", text)
    if key is not None and key[1] == "contains unknown":
        known = kind.__struct_fields__
        return f"{place} has an unknown key {key[2]!r}.{did_you_mean(key[2], known)} Expected {', '.join(known)}"
    if key is None and not steps:
        return dot + text  # from __post_init__
    name = steps[0][0] if key is None else key[2]
    expected = get_type_hints(kind, include_extras=True)[name].__metadata__[0].description
    return (
        f"{place} has no {name}; expected {expected}"
        if key
        else f"{dot}{name} is {content[name]!r}; expected {expected}"
    )
