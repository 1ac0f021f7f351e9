"""The options of verify and those that several commands share: spelling, help, and readers of their values.

Readers raise OptionError, so every error has the same form and quotes the text received, with any version of typer.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from ..engines import METHODS
from ..engines.contract import CORNER, MOST_REGIONS
from ..errors import OptionError, did_you_mean
from ..labels import Property
from ..report import FORMATS
from ..requirement import Requirement

QUESTION, METHOD, CLASSIFIER, LIMITS, OUTPUT = "Question", "Method", "Classifier", "Limits", "Output"

Reader = Callable[[str, str], object]
"""Turns the name of an option and its text into a value, or raises OptionError."""

T = TypeVar("T")


def option(
    spelling: str, help: str, panel: str | None = OUTPUT, *, default: str | None = None, read: Reader | None = None
) -> Any:
    """An option `--name METAVAR`, or a flag `--name`; `default` describes its default in words."""
    name, _, metavar = spelling.partition(" ")
    parser = None if read is None else lambda text: read(name, text)
    return typer.Option(
        name, metavar=metavar or None, help=help, rich_help_panel=panel, show_default=default or True, parser=parser
    )


def whole_number(name: str, text: str) -> int:
    """A whole number above 0.

    >>> whole_number("--threads", "2")
    2
    """
    return _read(name, text, int, lambda value: value > 0, "a whole number above 0")


def number(name: str, text: str) -> float:
    """A finite number above 0.

    >>> number("--timeout", "1e3")
    1000.0
    """
    return _read(name, text, float, lambda value: 0.0 < value < math.inf, "a number above 0")


def share_number(name: str, text: str) -> float:
    """A share of the domain, as a number in 0..1 or a percentage.

    >>> share_number("--fail-if-worse", "1%")
    0.01
    """
    return _read(name, text, _share, lambda value: 0.0 <= value <= 1.0, "a share of the domain, such as 0.01 or 1%")


def numbers(name: str, text: str) -> list[float]:
    """Finite numbers joined by commas.

    >>> numbers("--mean", "0.49, 0.48")
    [0.49, 0.48]
    """
    return _read_list(name, text, "a number such as 0.5, or one for each channel such as 0.49,0.48,0.45")


def theta(name: str, text: str) -> list[float]:
    """One finite number for each parameter, joined by commas."""
    return _read_list(name, text, "a theta: one number for each parameter, joined by commas, such as 0.5,1")


def one_of(*words: str) -> Reader:
    """A reader that accepts one of the words.

    >>> one_of("bfs", "gbs")("--method", "gsb")
    Traceback (most recent call last):
    steadygaze.errors.OptionError: --method is 'gsb'; expected bfs, gbs. Did you mean gbs?
    """

    def read(name: str, text: str) -> str:
        if text in words:
            return text
        guess = did_you_mean(text, words)
        raise OptionError(f"{name} is {text!r}; expected {', '.join(words)}{'.' if guess else ''}{guess}")

    return read


def _read(name: str, text: str, kind: Callable[[str], T], is_valid: Callable[[T], bool], expected: str) -> T:
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not is_valid(value):
        raise OptionError(f"{name} is {text!r}; expected {expected}")
    return value


def _read_list(name: str, text: str, expected: str) -> list[float]:
    def split(text: str) -> list[float]:
        return [float(word) for word in text.split(",")]

    return _read(name, text, split, lambda values: all(math.isfinite(value) for value in values), expected)


def pictures(name: str, text: str) -> tuple[str, ...]:
    """Formats of pictures joined by commas, or `none`.

    >>> pictures("--pictures", "png,SVG,png"), pictures("--pictures", "none")
    (('png', 'svg'), ())
    """
    words = [word.strip().lower() for word in text.split(",")]
    if words == ["none"]:
        return ()
    for word in words:
        if word not in FORMATS:
            guess = did_you_mean(word, (*FORMATS, "none"))
            raise OptionError(
                f"{name} is {text!r}; expected {', '.join(FORMATS)}, several joined by commas, or none"
                f"{'.' if guess else ''}{guess}"
            )
    return tuple(dict.fromkeys(words))


def _measure_name(name: str, text: str) -> str:
    from ..attention.measures import find_measures  # noqa: PLC0415 (slow to import)

    return str(one_of(*find_measures())(name, text))


def _threshold_of(attention: str) -> Reader:
    """A reader of thresholds of a property of attention: it keeps the text."""

    def read(_: str, text: str) -> str:
        from ..attention.measures import Measure  # noqa: PLC0415 (slow to import)

        Measure.parse(attention).with_threshold(text)
        return text

    return read


def _width(name: str, text: str) -> float:
    return _read(name, text, float, lambda value: 0.0 <= value < math.inf, "a number of at least 0")


def until_share(name: str, text: str) -> float | Literal["exact"]:
    """The share of the domain that may stay undecided, as a number or a percentage, or "exact"."""
    if text.strip().lower() == "exact":
        return "exact"
    expected = "the share of the domain that may stay undecided, such as 0.001 or 0.1%, or exact"
    return _read(name, text, _share, lambda value: 0.0 <= value < 1.0, expected)


def _share(text: str) -> float:
    return float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)


def _line(name: str, text: str) -> str | list[float]:
    if text.strip() == CORNER:
        return CORNER
    expected = "corner, or a theta: one number for each parameter, joined by commas, such as 0.5,1"
    return _read_list(name, text, expected)


ModelOption = Annotated[
    str, typer.Argument(metavar="MODEL", help="An .onnx file, or the name of a bundled network such as M-FNN-100.")
]
ImageOption = Annotated[str, option(
    "--image IMAGE", "A PNG, JPEG or NPY file, or a bundled image such as mnist:69990 or fashion:69990.", QUESTION,
)]  # fmt: skip
PerturbOption = Annotated[list[str] | None, option(
    "--perturb SPEC",
    "A perturbation: brightness:-0.2..0.5, contrast, haze, patch:x=12,y=12,w=4,h=4, blur:sigma=1.5, "
    "translate:dx=3:0..1.5 and others (see the guide). Repeat the option to combine several (a map allows up to three, "
    "a search four). Required unless --preset is given.", QUESTION,
)]  # fmt: skip
PresetOption = Annotated[str | None, option(
    "--preset light|weather|camera|dirt",
    "Instead of --perturb: answer a list of questions about light, weather, camera or dirt (see the guide), one after "
    "another. Each result gets its own folder in --out, next to one report that compares them. --timeout limits all of "
    "them together.", QUESTION,
)]  # fmt: skip
PropertyOption = Annotated[str, option(
    "--property cr|ar|both",
    "The property to prove everywhere: the label is kept (cr), the attention is kept (ar), or both.", QUESTION,
)]  # fmt: skip
AttentionOption = Annotated[str, option(
    "--attention NAME",
    "When attention counts as kept. distance: the maps stay close to the expected ones (the paper's property); object: "
    "their mass stays on the object; pointing: their largest value lies on the object; alike: they point the same way "
    "as the expected ones; topk: they keep their strongest pixels.", QUESTION,
    read=_measure_name,
)]  # fmt: skip
DeltaOption = Annotated[str | None, option(
    "--delta NUMBER|PERCENT",
    "For distance: how far the attention maps may be from the expected ones, absolute (3.0) or as a percentage of the "
    "size of the original maps.", QUESTION, default="25%", read=_threshold_of("distance"),
)]  # fmt: skip
TauOption = Annotated[str | None, option(
    "--tau NUMBER|PERCENT",
    "For object: the smallest share of the maps' mass that must lie on the object, absolute (0.5) or as a percentage "
    "of that share for the unperturbed image. Use an absolute value in a gate.", QUESTION, default="90%",
    read=_threshold_of("object"),
)]  # fmt: skip
GammaOption = Annotated[str | None, option(
    "--gamma NUMBER", "For alike: the smallest cosine allowed between actual and expected maps.", QUESTION,
    default="0.9",
    read=_threshold_of("alike"),
)]  # fmt: skip
TopOption = Annotated[str | None, option(
    "--top K:SHARE", "For topk: the smallest share of the K strongest pixels that must stay among the K strongest.",
    QUESTION, default="50:0.8", read=_threshold_of("topk"),
)]  # fmt: skip
MaskOption = Annotated[str | None, option(
    "--mask FILE.png|auto:…",
    "For object and pointing: the pixels of the object. A grey PNG of the image's size (weight = grey/255), or "
    "auto:bright=0.2,grow=1: pixels above 0.2 in any channel, grown by one pixel. The mask moves with the image.",
    QUESTION,
)]  # fmt: skip
ExplainOption = Annotated[str, option(
    "--explain METHOD",
    "The explanation method whose maps are compared: gradient, input-x-gradient (the gradient times the image), "
    "smoothgrad:n=8,sigma=0.1,seed=0 (the mean gradient over n copies of the image with noise of standard deviation "
    "sigma), integrated:steps=8,baseline=0 (integrated gradients by midpoints), gradcam:layer=NAME (Grad-CAM), or "
    "occlusion:window=4,stride=4,baseline=0 (the drop of the logit when a window is blanked).", QUESTION,
)]  # fmt: skip
FilterOption = Annotated[str, option(
    "--filter FILTER",
    "The filter applied to maps before they are compared: identity (none), abs (absolute values), mean (over 3×3 "
    "pixels), or several in sequence, such as abs+mean.", QUESTION,
)]  # fmt: skip
DistOption = Annotated[
    str | None, option("--dist l1|l2", "For distance: the distance between two maps.", QUESTION, default="l2")
]
ClassesOption = Annotated[str | None, option(
    "--classes all|predicted|3,8", "The classes whose maps are judged.", QUESTION,
    default="predicted for object and pointing, else all",
)]  # fmt: skip
RequireOption = Annotated[Requirement | None, option(
    "--require TEXT",
    "Required shares of the domain, such as 'CR&AR>=0.9' or 'CR>=99% and IR<0.5'; or 'robust'. The exit code then "
    "reports whether the requirement is proved, not the verdict.", QUESTION,
    read=lambda _, text: Requirement.parse(text),
)]  # fmt: skip
MethodOption = Annotated[str, option(
    "--method auto|map|refine|bfs|gbs|boundary",
    "Two methods cover the whole domain: map finds all regions and their shares for every δ; refine decides boxes by "
    "bounds first, and region by region if bounds do not suffice (for large networks and many perturbations). Three "
    "visit regions one by one: all of them (bfs), those on a line from zero and near the boundary, as in the paper "
    "(gbs), or only those along the boundary (boundary). gbs and boundary find violations but visit only part of the "
    "domain, so they rarely prove robustness.", METHOD, read=one_of(*METHODS),
    default=f"auto: map if about {MOST_REGIONS:,} regions or fewer are expected, else refine",
)]  # fmt: skip
UntilOption = Annotated[Any, option(
    "--until SHARE|exact",
    "For refine: the share of the domain that may stay undecided, or exact to decide as much as a map does.",
    METHOD, default="0.001", read=until_share,
)]  # fmt: skip
GoalOption = Annotated[Literal["map", "verdict"] | None, option(
    "--goal map|verdict",
    "For refine: bound the shares of the domain (map), or only decide whether the property holds everywhere (verdict), "
    "which stops at the first violation.", METHOD, default="map", read=one_of("map", "verdict"),
)]  # fmt: skip
ResumeOption = Annotated[Path | None, option(
    "--resume DIR",
    "For refine: continue from the stored result of the same question; --until, --goal and the limits may differ. The "
    "new result replaces the one in DIR unless --out names another directory.", METHOD,
)]  # fmt: skip
WDeltaOption = Annotated[float | None, option(
    "--w-delta NUMBER",
    "For gbs: a region counts as near the boundary if its inconsistency differs from δ by at most this much.",
    METHOD, default="0.2", read=_width,
)]  # fmt: skip
LineOption = Annotated[Any, option(
    "--line corner|THETA",
    "For gbs and boundary: the end of the search line from zero, either the farthest corner of the domain or a theta "
    "such as 0.5,1.", METHOD, default=CORNER, read=_line,
)]  # fmt: skip
MeanOption = Annotated[Sequence[float] | None, option(
    "--mean M", "The model expects (pixel·scale − mean)/std: one number, or one for each channel, joined by commas.",
    CLASSIFIER, read=numbers,
)]  # fmt: skip
StdOption = Annotated[
    Sequence[float] | None, option("--std S", "See --mean; takes as many numbers.", CLASSIFIER, read=numbers)
]
ScaleOption = Annotated[float | None, option(
    "--scale 1|255", "See --mean; 255 for a model that expects pixels from 0 to 255.", CLASSIFIER, default="1",
    read=number,
)]  # fmt: skip
OutputOption = Annotated[str | None, option(
    "--output NAME", "The output with the logits; required if the model has several outputs.", CLASSIFIER,
)]  # fmt: skip
FitOption = Annotated[str | None, option(
    "--fit resize|crop|pad",
    "Fit an image of another size to the model's input, with Pillow: stretch it (resize), scale it to cover the input "
    "and cut out its centre (crop), or scale it to lie within the input and pad it with black (pad). A size may "
    "follow, as in resize:28x28.", CLASSIFIER, default="refuse such an image",
)]  # fmt: skip
GreyOption = Annotated[bool, option("--grey", "Convert a colour image to grey, with Pillow.", CLASSIFIER)]
RgbOption = Annotated[bool, option("--rgb", "Give a grey image three equal channels.", CLASSIFIER)]
ClassNamesOption = Annotated[
    Path | None, option("--class-names FILE", "A text file in UTF-8 with one class name on each line.", CLASSIFIER)
]
ExpectOption = Annotated[str | None, option(
    "--expect LABEL",
    "Stop with an error unless the model predicts this label, given by number or name, for the unperturbed image.",
    CLASSIFIER,
)]  # fmt: skip
TimeoutOption = Annotated[float | None, option(
    "--timeout SECONDS", "Stop after this time. A run that reaches this or another limit gives a partial result.",
    LIMITS, read=number,
)]  # fmt: skip
MaxRegionsOption = Annotated[int | None, option(
    "--max-regions N", "Stop after this many regions; a map checks this every few thousand regions.", LIMITS,
    read=whole_number,
)]  # fmt: skip
MemoryOption = Annotated[float | None, option(
    "--memory GIB", "Stop when the process holds this many GiB.", LIMITS, default="80 % of the machine's memory",
    read=number,
)]  # fmt: skip
ThreadsOption = Annotated[int | None, option(
    "--threads N", "Threads for a map or refinement; the answer does not depend on their number.", LIMITS,
    default="one for each processor", read=whole_number,
)]  # fmt: skip
OutOption = Annotated[Path | None, option(
    "--out DIR", "The directory for the result and its pictures.", default="named after the question",
)]  # fmt: skip


def _pictures_option(default: str) -> Any:
    text = "The formats of the pictures (png, svg, pdf), joined by commas, or none."
    return option("--pictures png,svg|none", text, default=default, read=pictures)


PicturesOption = Annotated[Any, _pictures_option("png; none with --json or --quiet")]
BoundaryPicturesOption = Annotated[Any, _pictures_option("png; none with --json")]
QuietOption = Annotated[bool, option("--quiet", "Print only errors, and the JSON object if --json is given.")]

DirectoryOption = Annotated[Path, typer.Argument(metavar="DIR", help="A directory that verify wrote.")]
OtherPropertyOption = Annotated[Property | None, option(
    "--property cr|ar|both", "The property kept inside the boundary: the label (cr), the attention (ar), or both.",
    QUESTION, default="as stored", read=lambda _, text: Property.parse(text),
)]  # fmt: skip


def _other_threshold(spelling: str, attention: str, text: str) -> Any:
    return option(spelling, text, QUESTION, default="as stored", read=_threshold_of(attention))


OtherDeltaOption = Annotated[str | None, _other_threshold(
    "--delta NUMBER|PERCENT", "distance",
    "Answer for another threshold from the stored result, without a new run; boxes of a refinement then give bounds. A "
    "search answers only its own threshold.",
)]  # fmt: skip
OtherTauOption = Annotated[
    str | None, _other_threshold("--tau NUMBER|PERCENT", "object", "The same for the share of mass on the object.")
]
OtherGammaOption = Annotated[str | None, _other_threshold("--gamma NUMBER", "alike", "The same for the cosine.")]
OtherTopOption = Annotated[str | None, _other_threshold(
    "--top K:SHARE", "topk", "The same for the share of the strongest pixels; their number stays.",
)]  # fmt: skip
ForceOption = Annotated[bool, option("--force", "Replace earlier output of steadygaze, and nothing else.")]
ForceFilesOption = Annotated[bool, option("--force", "Replace existing files of the same name.")]
FormatsOption = Annotated[list[str] | None, option(
    "--format png|svg|pdf", "The format; join several by commas, or repeat the option.", default="png",
)]  # fmt: skip
JsonOption = Annotated[bool, option("--json", "Print the answer as one JSON object on stdout instead of a summary.")]
ExitCodeOption = Annotated[bool, option(
    "--exit-code", "Exit with the code of the verdict (0, 10 or 3), as verify does, instead of 0.",
)]  # fmt: skip
DebugOption = Annotated[bool, option("--debug", "Print the traceback of an error before its message.")]
