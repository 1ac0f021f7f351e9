"""Options of a question as texts, for campaigns: the kinds of options, and which of them may be combined.

`question.OPTIONS` lists the options.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .attention.masks import EXAMPLE
from .attention.measures import Measure
from .errors import OptionError

YES = "yes"
"""The text of a flag that is set."""


@dataclass(frozen=True)
class QuestionOption:
    """An option of the question as a text: its canonical form, its meaning, its value in the paper's runs."""

    parse: Callable[[Any], str]
    meaning: str
    paper: str
    expected: str = "a text, or a list of texts"
    is_number: bool = False
    is_flag: bool = False
    is_in_key: bool = False
    """Whether the key of a problem always holds the value, even if it equals the paper's."""


def threshold_option(attention: str, meaning: str, paper: str = "") -> QuestionOption:
    """The threshold of a property of attention."""
    measure = Measure.parse(attention)
    expected = f"a threshold such as {measure.default}, or a list of them"
    if attention == "distance":
        expected = "a threshold such as 3.0 or 25%, or a list of them"

    def parse(text: Any) -> str:
        if text == "":
            return ""
        found, threshold = measure.with_threshold(text)
        # With all its digits, the same however it is written.
        return found.threshold_text(threshold) or ""

    return QuestionOption(parse, meaning, paper, expected, is_number=True, is_in_key=attention == "distance")


def flag_option(meaning: str) -> QuestionOption:
    """An option that is set or not."""

    def parse(value: Any) -> str:
        return YES if value in (True, YES) else ""

    return QuestionOption(parse, meaning, "", "true or false", is_flag=True)


def class_words(text: Any) -> str:
    """The canonical text of classes; OptionError if it names none."""
    if text == "":
        return ""
    words = [word.strip() for word in str(text).split(",")]
    is_numbers = all(word.isdecimal() for word in words) and len(set(words)) == len(words)
    if words not in (["all"], ["predicted"]) and not is_numbers:
        raise OptionError(f"{text!r} names no classes; expected all, predicted, or different numbers such as 3,8")
    return ",".join(words)


THRESHOLDS = ("delta", "tau", "gamma", "top")


def fitted_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that belong to the property of attention, with its defaults; the others are empty.

    >>> given = {"delta": "3", "tau": "", "gamma": "", "top": "", "mask": "", "dist": "l2", "classes": ""}
    >>> found = fitted_options(given | {"attention": "alike"})
    >>> found["delta"], found["gamma"], found["dist"], found["classes"]
    ('', '0.9', '', 'all')
    """
    measure, found = Measure.parse(options["attention"]), dict(options)
    for name in THRESHOLDS:
        found[name] = (options[name] or measure.default) if name == measure.option else ""
    if measure.needs_mask and not options["mask"]:
        raise OptionError(f"attention {measure.name} needs a mask: give a file, or {EXAMPLE}")
    found["mask"] = options["mask"] if measure.needs_mask else ""
    found["dist"] = options["dist"] if measure.norm is None else ""
    found["classes"] = options["classes"] or measure.classes
    return found


def threshold_of(options: Mapping[str, Any]) -> str:
    """The threshold among options of one question, with its symbol; the name of a property without one.

    >>> threshold_of({"attention": "object", "delta": "", "tau": "0.5", "gamma": "", "top": ""})
    'τ=0.5'
    """
    measure = Measure.parse(options.get("attention") or "distance")
    return measure.name if measure.option is None else f"{measure.symbol}={options[measure.option]}"
