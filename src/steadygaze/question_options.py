"""The options of a question as texts, for campaigns: how each is read, its meaning, and which of them go together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .attention.distances import Distance
from .attention.filters import Filter
from .attention.masks import EXAMPLE
from .attention.measures import Measure
from .attention.methods import Method
from .errors import OptionError
from .image_fit import ImageFit
from .labels import Property

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


def _threshold(attention: str, meaning: str, paper: str = "") -> QuestionOption:
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


def _flag(meaning: str) -> QuestionOption:
    def parse(value: Any) -> str:
        return YES if value in (True, YES) else ""

    return QuestionOption(parse, meaning, "", "true or false", is_flag=True)


def _class_words(text: Any) -> str:
    if text == "":
        return ""
    words = [word.strip() for word in str(text).split(",")]
    is_numbers = all(word.isdecimal() for word in words) and len(set(words)) == len(words)
    if words not in (["all"], ["predicted"]) and not is_numbers:
        raise OptionError(f"{text!r} names no classes; expected all, predicted, or different numbers such as 3,8")
    return ",".join(words)


OPTIONS = {
    "property": QuestionOption(
        lambda text: Property.parse(text).value, "`cr`, `ar` or `both`", "both", is_in_key=True
    ),
    "attention": QuestionOption(
        lambda text: Measure.parse(text).name,
        "the property of attention: `distance`, `object`, `pointing`, `alike` or `topk`", "distance",
    ),
    "delta": _threshold("distance", "the threshold of `distance` as given, absolute or in percent", "3"),
    "tau": _threshold("object", "the threshold of `object` as given"),
    "gamma": _threshold("alike", "the threshold of `alike`"),
    "top": _threshold("topk", "the threshold of `topk`: pixels and share"),
    "mask": QuestionOption(
        str, "the mask of `object` and `pointing`: a rule such as `auto:bright=0.2,grow=1`, or a file", ""
    ),
    "explain": QuestionOption(
        lambda text: Method.parse(text).text,
        "the explanation method, such as `gradient` or `smoothgrad:n=8`", "gradient",
    ),
    "filter": QuestionOption(
        lambda text: Filter.parse(text).name, "`identity`, `abs`, `mean`, or steps joined by `+`", "identity"
    ),
    "dist": QuestionOption(lambda text: Distance.parse(text).name.lower(), "of `distance`: `l1` or `l2`", "l2"),
    "classes": QuestionOption(
        _class_words, "the classes whose maps are compared: `all`, `predicted`, or their numbers", ""
    ),
    "fit": QuestionOption(
        lambda text: ImageFit.of(text).text, "how images of another size are fitted: `resize`, `crop` or `pad`", ""
    ),
    "grey": _flag("`yes`: colours become grey"),
    "rgb": _flag("`yes`: grey images get three equal channels"),
}  # fmt: skip
"""The options of a question, which campaigns read, store and list beside model, image and perturbations.

An empty text stands for an option that is not given.
"""
THRESHOLDS = ("delta", "tau", "gamma", "top")


def fitted_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that belong to the property of attention, with its defaults; the others are empty.

    >>> given = {name: option.paper for name, option in OPTIONS.items()}
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
