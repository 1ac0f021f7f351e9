"""The question: a model, an image, perturbations, and the property asked of them.

A question parses, describes and stores itself, and lists its differences from another one. It computes the label and
the notes, and checks the model as read against the model file.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import UNSET, Struct, UnsetType, to_builtins

from . import zoo
from .attention.filters import Filter
from .attention.inconsistency import original_maps
from .attention.methods import GRADIENT, Method
from .attention.options import AttentionOptions, Distance
from .compound import Compound
from .errors import ImageError, ModelError, OptionError
from .images import fit_image
from .inputs import ImageLike, ModelLike, given_image, given_model
from .labels import Property
from .network.doubts import count_kinks
from .network.model import Agreement, Model, check_agreement
from .network.replay import coarse_notes
from .perturbation import Perturbation, Perturbed, compose, parse_spec, without_names
from .threshold import Threshold
from .unperturbed import Unperturbed

PerturbationsLike = Sequence[Perturbation | str] | Perturbation | str


@dataclass(frozen=True)
class QuestionOption:
    """An option of the question as a text: its canonical form, its meaning, its value in the paper's runs."""

    parse: Callable[[Any], str]
    meaning: str
    paper: str
    expected: str = "a text, or a list of texts"
    is_number: bool = False
    is_in_key: bool = False
    """Whether the key of a problem always holds the value, even if it equals the paper's."""


def _class_words(text: Any) -> str:
    words = [word.strip() for word in str(text).split(",")]
    is_numbers = all(word.isdecimal() for word in words) and len(set(words)) == len(words)
    if words not in (["all"], ["predicted"]) and not is_numbers:
        raise OptionError(f"{text!r} names no classes; expected all, predicted, or different numbers such as 3,8")
    return ",".join(words)


OPTIONS = {
    "property": QuestionOption(
        lambda text: Property.parse(text).value, "`cr`, `ar` or `both`", "both", is_in_key=True
    ),
    "delta": QuestionOption(
        lambda text: str(Threshold.parse(text)),  # with all its digits, the same however it is written
        "the threshold as given, absolute or in percent", "3",
        "a threshold such as 3.0 or 25%, or a list of them", is_number=True, is_in_key=True,
    ),
    "filter": QuestionOption(
        lambda text: Filter.parse(text).name, "`identity`, `abs`, `mean`, or steps joined by `+`", "identity"
    ),
    "dist": QuestionOption(lambda text: Distance.parse(text).name.lower(), "`l1` or `l2`", "l2"),
    "classes": QuestionOption(
        _class_words, "the classes whose maps are compared: `all`, `predicted`, or their numbers", "all"
    ),
}  # fmt: skip
"""The options of a question, which campaigns read, store and list beside model, image and perturbations."""


class DomainFacts(Struct, frozen=True):
    """The domain: names of its parameters, their ranges, and the perturbations as specs."""

    names: list[str]
    low: list[float]
    high: list[float]
    specs: list[str]


class ModelFacts(Struct, frozen=True):
    """The model: its name, the hash of its file, and its number of classes."""

    name: str
    sha256: str
    classes: int


class ImageFacts(Struct, frozen=True):
    """The image: its name and shape (C, H, W)."""

    name: str
    shape: list[int]


class AttentionFacts(Struct, frozen=True):
    """How attention maps are compared. `method` is unset for the gradient, as in older stored forms."""

    filter: str
    distance: str
    classes: str | list[int]
    method: str | UnsetType = UNSET

    def text(self, names: Sequence[str] | None = None) -> str:
        """The comparison in words; `names` has one name for each class.

        >>> AttentionFacts("abs", "l2", "all").text(), AttentionFacts("mean", "l1", [3, 8]).text()
        ('filter abs, distance L2, all classes', 'filter mean, distance L1, classes 3, 8')
        >>> AttentionFacts("abs", "l2", "all", "contrast").text()
        'contrast maps: filter abs, distance L2, all classes'
        """
        words = "all classes"
        if not isinstance(self.classes, str):
            chosen = [str(number) if names is None else names[number] for number in self.classes]
            words = f"class{'' if len(chosen) == 1 else 'es'} {', '.join(chosen)}"
        method = "" if self.method is UNSET else f"{self.method} maps: "
        return f"{method}filter {self.filter}, distance {self.distance.upper()}, {words}"


class QuestionFacts(Struct, frozen=True):
    """A question as plain data: the part that all answers share."""

    domain: DomainFacts
    model: ModelFacts
    image: ImageFacts
    attention: AttentionFacts
    notes: list[str]


@dataclass(frozen=True, eq=False)
class Question:
    """A verification problem. `names` are words for the classes; `image_name` and `model_name` appear in answers."""

    model: Model
    perturbed: Perturbed
    attention: AttentionOptions
    property: Property
    delta: Threshold
    names: tuple[str, ...]
    image_name: str
    model_name: str
    image_notes: tuple[str, ...] = ()

    @cached_property
    def specs(self) -> tuple[str, ...]:
        """The perturbations as canonical texts: equal ones span the same domain.

        Files count with name and content; `perturbation.without_names` leaves the names out.
        """
        return tuple(perturbation.spec for perturbation in self.perturbed.perturbations)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The contents of the files that the perturbations read, by digest."""
        return {digest: array for one in self.perturbed.perturbations for digest, array in one.arrays.items()}

    def describe(self) -> QuestionFacts:
        """The question as plain data."""
        domain, classes, method = self.perturbed.domain, self.attention.classes, self.attention.method
        return QuestionFacts(
            DomainFacts(list(domain.names), domain.low.tolist(), domain.high.tolist(), list(self.specs)),
            ModelFacts(self.model_name, self.model.sha256, self.model.classes),
            ImageFacts(self.image_name, list(self.perturbed.x0.shape)),
            AttentionFacts(
                self.attention.filter.name,
                self.attention.distance.name.lower(),
                "all" if classes is None else [int(number) for number in classes],
                UNSET if method is GRADIENT else method.name,
            ),
            list(self.notes),
        )

    def stored(self, delta: Threshold) -> dict[str, Any]:
        """The data that `restore` needs beside `describe` and the pixels, for a threshold."""
        # The replay keeps the preprocessing that the file expects.
        preprocessing = self.model.replay.preprocessing
        # Without a file of its own, the model is stored beside the result.
        place = os.path.realpath(self.model.path) if self.model.content is None else None
        bundled = next((model.name for model in zoo.models() if os.path.realpath(model.path) == place), None)
        remarks = {} if self.model.content is None else {"notes": list(self.model.notes)}
        return {
            "model": {
                "bundled": bundled,
                "path": None if bundled else place,
                "mean": preprocessing.mean.tolist(),
                "std": preprocessing.std.tolist(),
                "scale": float(preprocessing.scale),
                **({} if self.model.output is None else {"output": self.model.output}),
            }
            | remarks,
            "class_names": list(self.names),
            "image_notes": list(self.image_notes),
            "delta": delta.stored(),
        }

    def words(self, delta: Threshold, image: str, model: str = "model.onnx") -> list[str]:
        """The words of the command that asks this question, without the method.

        `image` is a name or a file; `model` is the file of a model that has none of its own.
        """
        stored, attention = self.stored(delta)["model"], self.attention
        words = ["steadygaze", "verify", stored["bundled"] or stored["path"] or model, "--image", image]
        for spec in self.specs:
            words += ["--perturb", spec]
        words += ["--property", self.property.value, "--delta", str(delta)]
        words += ["--filter", attention.filter.name, "--dist", attention.distance.name.lower()]
        words += ["--classes", "all" if attention.classes is None else ",".join(map(str, attention.classes))]
        for name, usual in (("mean", 0.0), ("std", 1.0)):
            values = stored[name] if isinstance(stored[name], list) else [stored[name]]
            if any(value != usual for value in values):
                words += [f"--{name}={','.join(repr(float(value)) for value in values)}"]
        words += [] if stored["scale"] == 1.0 else ["--scale", f"{stored['scale']:g}"]
        return words + ([f"--output={stored['output']}"] if "output" in stored else [])

    @classmethod
    def restore(
        cls, content: Mapping[str, Any], pixels: np.ndarray, model: Model, *,
        arrays: Mapping[str, np.ndarray] | None = None, notes: Sequence[str] = (),
    ) -> "Question":  # fmt: skip
        """Restore a question from the content of a `result.json`, its pixels and its model.

        `arrays` are the contents of files by digest; `notes` are added.
        """
        stored, attention = content["stored"], content["attention"]
        classes = None if attention["classes"] == "all" else tuple(int(number) for number in attention["classes"])
        names = tuple(str(name) for name in stored["class_names"])
        if len(names) != model.classes or not all(0 <= number < model.classes for number in classes or ()):
            raise ValueError(f"{len(names)} class names and classes {classes} for {model.classes} logits")
        return cls(
            model=model,
            perturbed=compose([parse_spec(str(spec), arrays) for spec in content["domain"]["specs"]], pixels),
            attention=AttentionOptions(
                Filter.parse(attention["filter"]),
                Distance.parse(str(attention["distance"])),
                classes,
                Method.parse(attention.get("method", GRADIENT.name)),
            ),
            property=Property(content["property"]),
            delta=Threshold.restore(stored["delta"]),
            names=names,
            image_name=str(content["image"]["name"]),
            model_name=str(content["model"]["name"]),
            image_notes=(*(str(note) for note in stored["image_notes"]), *notes),
        )

    def differences(self, content: Mapping[str, Any], pixels: np.ndarray) -> list[str]:
        """The parts of this question that differ from the one in the content of a `result.json` with its pixels."""
        asked, stored = self.describe(), self.stored(self.delta)
        model, kept = stored["model"], content["stored"]["model"]
        is_prepared = all(model.get(name) == kept.get(name) for name in ("mean", "std", "scale", "output"))
        attention, other = to_builtins(asked.attention), dict(content["attention"])
        same = {
            "the model": asked.model.sha256 == content["model"]["sha256"] and is_prepared,
            "the image": np.array_equal(pixels, self.perturbed.x0),
            "the perturbations": _without_names(to_builtins(asked.domain)) == _without_names(content["domain"]),
            "the attention method": attention.pop("method", None) == other.pop("method", None),
            "filter, distance or classes": attention == other,
            "the property": self.property.value == content["property"],
            "δ": self.delta == Threshold.restore(content["stored"]["delta"]),
        }
        return [name for name, is_same in same.items() if not is_same]

    @cached_property
    def unperturbed(self) -> Unperturbed:
        """What is proved about the unperturbed image."""
        return Unperturbed(Compound(self.model.graph, self.model.chain, self.perturbed), self.attention)

    @cached_property
    def compound(self) -> Compound:
        """The classifier after the perturbations."""
        return replace(self.unperturbed.compound, prove_original=lambda: self.unperturbed.pattern)

    @cached_property
    def original(self) -> np.ndarray:
        """The filtered attention maps (K', C, H, W) of the unperturbed image."""
        return original_maps(self.compound, self.attention)

    @cached_property
    def map_size(self) -> float:
        """The size Σ_j ‖map_j(x0)‖ of the original maps; relative thresholds are shares of it."""
        return self.attention.size(self.original)

    @cached_property
    def label(self) -> int:
        """The class that the network in real numbers predicts for the unperturbed image; a tie is an error."""
        if not np.isfinite(self.unperturbed.logits).all():
            raise ImageError(f"{self.image_name}: the logits are not finite; check the weights and the preprocessing")
        try:
            winners = self.unperturbed.winners
        except ModelError as error:
            raise ImageError(
                f"{self.image_name}: float64 cannot decide which class wins on the unperturbed image, and there is no "
                f"exact arithmetic for this network ({error}); choose another image"
            ) from None
        if len(winners) > 1:
            tied = ", ".join(self.names[j] for j in winners)
            raise ImageError(
                f"{self.image_name}: the classes {tied} are tied on the unperturbed image, so there is no label to "
                "keep; choose another image"
            )
        return winners[0]

    @cached_property
    def agreement(self) -> Agreement:
        """The difference between the model as read and its file, run by onnxruntime; too large is an error."""
        return check_agreement(self.model, self.perturbed.x0, self._farthest)

    @cached_property
    def _farthest(self) -> list[np.ndarray]:
        """The images at the lower and upper corner of the domain, without the unperturbed one."""
        ends = (self.perturbed.domain.low, self.perturbed.domain.high)
        return [self.perturbed.image(end) for end in ends if end.any()]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the reader of the answer."""
        notes = [*self.model.notes, *self.image_notes]
        # An estimate, not a replay: the notes must not depend on the version of onnxruntime.
        notes += coarse_notes(self.model.graph, self.perturbed.x0, self._farthest, self.model.replay.float_type)
        close, tied = count_kinks(self.model.graph, self.perturbed.x0.ravel())
        if self.label != self.unperturbed.float_label:
            rounded = self.names[self.unperturbed.float_label]
            notes.append(
                f"the network in real numbers predicts {self.names[self.label]} for the unperturbed image, as exact "
                f"arithmetic shows; float64 arithmetic gives {rounded}, because rounding decides"
            )
        if close:
            one, many = ("neuron", "is on its kink"), ("neurons", "are on their kink")
            noun, verb = one if close == 1 else many
            notes.append(
                f"{close} {noun} of the classifier {verb} at the unperturbed image; a neuron on its kink counts as "
                "inactive, and the expected maps depend on that choice"
            )
        if tied:
            noun, verb = ("window", "has") if tied == 1 else ("windows", "have")
            notes.append(
                f"{tied} {noun} of the classifier {verb} several largest entries at the unperturbed image; the first "
                "of them counts as the winner, and the expected maps depend on that choice"
            )
        if self.property is not Property.CR and self.original_doubt > 0.0:
            notes.append(
                "the signs of some neurons at the unperturbed image are not certain in float64, and exact arithmetic "
                "did not settle them: the expected maps, and a δ relative to them, may be off; answers about attention "
                "allow for that"
            )
        return tuple(notes)

    @cached_property
    def original_doubt(self) -> float:
        """How far the maps of the unperturbed image may be off because signs of its neurons are uncertain."""
        return self.unperturbed.doubt


def make_question(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    property: str = "both",
    delta: str | float = "25%",
    filter: str = "identity",
    dist: str = "l2",
    classes: str | Sequence[int] = "all",
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    scale: float = 1.0,
    output: str | None = None,
    names: Sequence[str] | None = None,
) -> Question:
    """Read and check all parts of a question; see `steadygaze.verify` for the arguments."""
    chosen = [perturbations] if isinstance(perturbations, Perturbation | str) else list(perturbations)
    parsed = [parse_spec(item) if isinstance(item, str) else item for item in chosen]
    wanted, threshold = Property.parse(property), Threshold.parse(delta)
    steps, distance = Filter.parse(filter), Distance.parse(dist)
    pixels, image_name, notes = given_image(image)
    model = given_model(model, pixels, mean=mean, std=std, scale=scale, output=output)
    pixels = fit_image(pixels, model.input_shape, image_name)
    perturbed = compose(parsed, pixels)
    attention = AttentionOptions(steps, distance, _classes(classes, model))
    question = Question(
        model=model,
        perturbed=perturbed,
        attention=attention,
        property=wanted,
        delta=threshold,
        names=_class_names(names, model.classes),
        image_name=image_name,
        model_name=model.name,
        image_notes=notes,
    )
    if classes == "predicted":
        return replace(question, attention=replace(attention, classes=(question.label,)))
    return question


def _without_names(domain: Mapping[str, Any]) -> dict[str, Any]:
    """A domain whose files count by content: the same file may have moved."""
    return {"specs": [without_names(str(spec)) for spec in domain["specs"]]} | {
        key: domain[key] for key in ("low", "high")
    }


def _class_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(number) for number in range(count))
    if len(names) != count:
        raise OptionError(f"{len(names)} class names for {count} classes; give one name for each class")
    return tuple(names)


def _classes(classes: str | Sequence[int], model: Model) -> tuple[int, ...] | None:
    """The classes that inconsistency sums over; None for all, and as long as the predicted one is not known."""
    if classes in ("all", "predicted"):
        return None
    try:
        numbers = [int(word) for word in (classes.split(",") if isinstance(classes, str) else classes)]
    except ValueError:
        numbers = []
    if not numbers or len(set(numbers)) < len(numbers) or not all(0 <= n < model.classes for n in numbers):
        raise OptionError(
            f"no such classes: {classes!r}; expected all, predicted, or different numbers from 0 to "
            f"{model.classes - 1} such as 3,8"
        )
    return tuple(sorted(numbers))
