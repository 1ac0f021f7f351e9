"""The question: a model, an image, perturbations, and the property to prove.

A question parses, describes and stores itself, and lists its differences from another one. It computes the label and
the notes, and checks the model as read against the model file.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import to_builtins

from . import zoo
from .attention.asking import AttentionFacts, asked_attention, attention_differences, restored_attention
from .attention.distances import Distance
from .attention.filters import Filter
from .attention.inconsistency import original_maps
from .attention.masks import MaskLike
from .attention.measures import Measure, find_measures
from .attention.measures.distance import DISTANCE
from .attention.measures.wording import Stated
from .attention.methods import GRADIENT, Method, attended
from .attention.options import AttentionOptions
from .class_names import class_numbers, names_for
from .compound import Compound
from .errors import OptionError
from .image_fit import UNFITTED, ImageFit
from .images import fit_image
from .inputs import ImageLike, ModelLike, PerturbationsLike, given_image, given_model, given_perturbations
from .labels import Property
from .network.graph import Graph, lazy_chain
from .network.layout import ReadOptions
from .network.model import Agreement, Model, check_agreement
from .network.replay import coarse_notes
from .perturbation import Perturbed, compose, parse_specs, without_names
from .question_facts import DomainFacts, ImageFacts, ModelFacts, QuestionFacts
from .question_options import QuestionOption, class_words, flag_option, threshold_option
from .threshold import Threshold
from .unperturbed import Unperturbed


@dataclass(frozen=True, eq=False)
class Question:
    """A verification problem. `names` are words for the classes; `image_name` and `model_name` appear in answers."""

    model: Model
    perturbed: Perturbed
    attention: AttentionOptions
    property: Property
    threshold: Threshold
    names: tuple[str, ...]
    image_name: str
    model_name: str
    image_notes: tuple[str, ...] = ()
    fit: ImageFit = UNFITTED

    def __repr__(self) -> str:
        return f"Question({self.model_name} on {self.image_name}: {', '.join(self.specs)}; {self.property.value})"

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
        return QuestionFacts(
            DomainFacts.of(self.perturbed.domain, self.specs),
            ModelFacts(self.model_name, self.model.sha256, self.model.classes),
            ImageFacts(self.image_name, list(self.perturbed.x0.shape)),
            AttentionFacts.of(self.attention, self.threshold),
            list(self.notes),
        )

    def stored(self, threshold: Threshold) -> dict[str, Any]:
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
            **({} if self.fit == UNFITTED else {"fit": self.fit.text, "colours": self.fit.colours}),
            "delta": threshold.stored(),
        }

    def words(
        self, threshold: Threshold, image: str, model: str = "model.onnx", called: str | None = None
    ) -> list[str]:
        """The words of the command that asks this question, without the method.

        `image` is a name or a file; `model` is the file of a model that has none of its own; `called` replaces every
        name of the model.
        """
        stored, attention, measure = self.stored(threshold)["model"], self.attention, self.attention.measure
        words = ["steadygaze", "verify", called or stored["bundled"] or stored["path"] or model, "--image", image]
        words += self.fit.words
        for spec in self.specs:
            words += ["--perturb", spec]
        words += ["--property", self.property.value]
        words += [] if attention.method == GRADIENT else ["--explain", attention.method.text]
        words += [] if measure == DISTANCE else ["--attention", measure.name]
        text = measure.threshold_text(threshold)
        words += [] if text is None else [f"--{measure.option}", text]
        words += ["--filter", attention.filter.name]
        words += ["--dist", attention.distance.name.lower()] if measure.norm is None else []
        words += [] if attention.mask is None else ["--mask", attention.mask.text]
        words += ["--classes", "all" if attention.classes is None else ",".join(map(str, attention.classes))]
        for name, usual in (("mean", 0.0), ("std", 1.0)):
            values = stored[name] if isinstance(stored[name], list) else [stored[name]]
            if any(value != usual for value in values):
                words += [f"--{name}={','.join(repr(float(value)) for value in values)}"]
        words += [] if stored["scale"] == 1.0 else ["--scale", f"{stored['scale']:g}"]
        return words + ([f"--output={stored['output']}"] if "output" in stored else [])

    @classmethod
    def restore(
        cls,
        content: Mapping[str, Any],
        pixels: np.ndarray,
        model: Model,
        *,
        mask: np.ndarray | None = None,
        arrays: Mapping[str, np.ndarray] | None = None,
        files: Mapping[str, np.ndarray] | None = None,
        notes: Sequence[str] = (),
    ) -> "Question":
        """Restore a question from the content of a `result.json`, its pixels, mask and model; `notes` are added.

        arrays: the arrays of the explanation method. files: contents of the files that perturbations read, by digest.
        """
        stored, attention = content["stored"], content["attention"]
        classes = None if attention["classes"] == "all" else tuple(int(number) for number in attention["classes"])
        names = tuple(str(name) for name in stored["class_names"])
        if len(names) != model.classes or not all(0 <= number < model.classes for number in classes or ()):
            raise ValueError(f"{len(names)} class names and classes {classes} for {model.classes} logits")
        perturbed = compose(parse_specs([str(spec) for spec in content["domain"]["specs"]], files), pixels)
        options = restored_attention(attention, classes, mask, arrays or {}, model.graph)
        return cls(
            model=model,
            perturbed=perturbed,
            attention=options.judged_on(pixels, moves=perturbed.moving_axis is not None),
            property=Property(content["property"]),
            threshold=Threshold.restore(stored["delta"]),
            names=names,
            image_name=str(content["image"]["name"]),
            model_name=str(content["model"]["name"]),
            image_notes=(*(str(note) for note in stored["image_notes"]), *notes),
            fit=ImageFit.of(stored.get("fit"), **dict.fromkeys(filter(None, [stored.get("colours")]), True)),
        )

    def differences(self, content: Mapping[str, Any], pixels: np.ndarray) -> list[str]:
        """The parts of this question that differ from the one in the content of a `result.json` with its pixels."""
        asked, stored = self.describe(), self.stored(self.threshold)
        model, kept = stored["model"], content["stored"]["model"]
        is_prepared = all(model.get(name) == kept.get(name) for name in ("mean", "std", "scale", "output"))
        same = {
            "the model": asked.model.sha256 == content["model"]["sha256"] and is_prepared,
            "the image": np.array_equal(pixels, self.perturbed.x0),
            "the perturbations": _without_names(to_builtins(asked.domain)) == _without_names(content["domain"]),
            "the property": self.property.value == content["property"],
        }
        different = [name for name, is_same in same.items() if not is_same]
        different += attention_differences(asked.attention, content["attention"])
        measure, before = self.attention.measure, Threshold.restore(content["stored"]["delta"])
        if measure == DISTANCE:
            return different + ["δ"] * (self.threshold != before)
        is_same = (self.threshold, asked.attention.threshold) == (before, content["attention"].get("threshold"))
        return different + [measure.option or "the threshold"] * (not is_same)

    @cached_property
    def graph(self) -> Graph:
        """The classifier, with the copies that the explanation method reads."""
        return attended(self.attention.method, self.model.graph)

    @cached_property
    def maps_change_in_regions(self) -> bool:
        """Whether attention maps change within a region, or expected maps change with more than one parameter."""
        return self.attention.method.changes_in_regions or self.perturbed.has_enclosed_maps

    @cached_property
    def measures_regions(self) -> bool:
        """Whether a map can measure the attention of its regions; if not, it answers only `--property cr`."""
        moves = self.perturbed.moving_axis is not None
        is_straight = not self.perturbed.has_enclosed_maps and self.attention.has_straight_borders(moves=moves)
        return is_straight or self.encloses_borders

    @cached_property
    def encloses_borders(self) -> bool:
        """Whether maps enclose curved borders of the attention within regions; labels alone need no borders."""
        moves, moves_twice = self.perturbed.moving_axis is not None, self.perturbed.triangles is not None
        is_known = self.attention.has_enclosed_borders(moves=moves, moves_twice=moves_twice)
        return is_known and self.property.asks_attention and not self.perturbed.is_curved

    @cached_property
    def has_sums(self) -> bool:
        """Whether the curves of regions hold numbers of their own, not the distance (see `AttentionOptions`)."""
        return self.attention.has_sums or self.encloses_borders

    @cached_property
    def unperturbed(self) -> Unperturbed:
        """The facts proved about the unperturbed image."""
        graph, plain = self.graph, self.model.graph
        chain = self.model.chain if graph is plain else lazy_chain(graph, self.model.path.name)
        return Unperturbed(Compound(graph, chain, self.perturbed), self.attention)

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
    def base(self) -> float:
        """The base of relative thresholds: the size of the original maps, or their share of mass on the mask."""
        mask = self.attention.mask
        weights = None if mask is None else mask.weights[None]
        return self.attention.measure.base(self.original, weights, self.attention.distance)

    def stated(self, threshold: Threshold) -> Stated:
        """A threshold for sentences."""
        return AttentionFacts.of(self.attention, threshold).stated(self.limit(threshold), self.base)

    def limit(self, threshold: Threshold) -> float:
        """The largest loss that a threshold allows: the absolute δ for distances; OptionError if it is not known."""
        if threshold.is_relative and not self.attention.measure.uses_expected and self.unperturbed.doubt > 0.0:
            raise OptionError(
                f"{self.attention.measure.option} {threshold} is relative to maps that are uncertain at the "
                "unperturbed image; give an absolute threshold"
            )
        return self.attention.measure.limit(threshold, self.base)

    @cached_property
    def own_loss(self) -> float:
        """The loss at the unperturbed image: 0 for distances, more if the object has little of the maps' mass."""
        mask = self.attention.mask
        return self.attention.loss(self.original, self.original, None if mask is None else mask.weights)

    @cached_property
    def marks(self) -> dict[str, float]:
        """The limits of the thresholds for which every summary gives the share of AR, by their texts."""
        measure = self.attention.measure
        found = {text: measure.parse_threshold(text) for text in measure.marks}
        # A share of no mass is no threshold.
        is_certain = measure.uses_expected or (self.unperturbed.doubt == 0.0 and self.base > 0.0)
        return {text: self.limit(one) for text, one in found.items() if is_certain or not one.is_relative}

    @cached_property
    def own_limit(self) -> float:
        """The largest loss that the question's own threshold allows."""
        return self.limit(self.threshold)

    @cached_property
    def label(self) -> int:
        """The class that the network in real numbers predicts for the unperturbed image; a tie is an error."""
        return self.unperturbed.label(self.image_name, self.names)

    @cached_property
    def agreement(self) -> Agreement:
        """The difference between the model as read and its file; an error if it, or that to a module, is too large."""
        self.model.compare_on(self.perturbed.domain.low, self.perturbed.domain.high, self.perturbed.image)
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
        asks_maps = self.property.asks_attention and self.attention.measure.uses_expected
        return (*notes, *self.unperturbed.notes(self.names, self.label, asks_maps=asks_maps))

    @cached_property
    def original_doubt(self) -> float:
        """The largest error of the unperturbed image's maps that uncertain signs of neurons can cause.

        0 for losses that do not depend on these maps.
        """
        return self.unperturbed.doubt if self.attention.measure.uses_expected else 0.0


def make_question(
    model: ModelLike,
    image: ImageLike,
    perturbations: PerturbationsLike,
    *,
    property: str = "both",
    explain: str = "gradient",
    attention: str = "distance",
    delta: str | float | None = None,
    tau: str | float | None = None,
    gamma: str | float | None = None,
    top: str | None = None,
    mask: MaskLike | None = None,
    filter: str = "identity",
    dist: str | None = None,
    classes: str | Sequence[int] | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    scale: float = 1.0,
    output: str | None = None,
    names: Sequence[str] | None = None,
    fit: str | None = None,
    grey: object = False,
    rgb: object = False,
) -> Question:
    """Read and check all parts of a question; see `steadygaze.verify` for the arguments."""
    parsed = given_perturbations(perturbations)
    wanted, steps, explained = Property.parse(property), Filter.parse(filter), Method.parse(explain)
    thresholds = {"delta": delta, "tau": tau, "gamma": gamma, "top": top}
    asked = asked_attention(attention=attention, thresholds=thresholds, dist=dist, mask=mask, classes=classes)
    fitting = ImageFit.of(fit, grey=grey, rgb=rgb)
    pixels, image_name, notes = given_image(image)
    pixels, recoloured = fitting.prepare(pixels, image_name)
    model = given_model(model, pixels, ReadOptions(mean, std, scale, output), fitting)
    pixels, resized = fitting.finish(pixels, model.input_shape)
    pixels = fit_image(pixels, model.input_shape, image_name)
    perturbed = compose(parsed, pixels)
    chosen_classes = class_numbers(asked.classes, model.classes)
    method = explained.fit(model.graph)
    options = AttentionOptions(
        steps, asked.distance, chosen_classes, method, asked.measure, asked.mask_of(pixels)
    ).judged_on(pixels, moves=perturbed.moving_axis is not None)
    question = Question(
        model=model,
        perturbed=perturbed,
        attention=options,
        property=wanted,
        threshold=asked.threshold,
        names=names_for(names, model.classes),
        image_name=image_name,
        model_name=model.name,
        image_notes=(*notes, *recoloured, *resized),
        fit=fitting,
    )
    if asked.classes == "predicted":
        question = replace(question, attention=replace(options, classes=(question.label,)))
    if wanted.asks_attention and asked.measure != DISTANCE:
        _require_attention(question)
    return question


OPTIONS = {
    "property": QuestionOption(
        lambda text: Property.parse(text).value, "`cr`, `ar` or `both`", "both", is_in_key=True
    ),
    "attention": QuestionOption(
        lambda text: Measure.parse(text).name,
        "the property of attention: " + ", ".join(f"`{name}`" for name in find_measures()), "distance",
    ),
    "delta": threshold_option("distance", "the threshold of `distance` as given, absolute or in percent", "3"),
    "tau": threshold_option("object", "the threshold of `object` as given"),
    "gamma": threshold_option("alike", "the threshold of `alike`"),
    "top": threshold_option("topk", "the threshold of `topk`: pixels and share"),
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
        class_words, "the classes whose maps are compared: `all`, `predicted`, or their numbers", ""
    ),
    "fit": QuestionOption(
        lambda text: ImageFit.of(text).text, "how images of another size are fitted: `resize`, `crop` or `pad`", ""
    ),
    "grey": flag_option("`yes`: colours become grey"),
    "rgb": flag_option("`yes`: grey images get three equal channels"),
}  # fmt: skip
"""The options of a question, which campaigns read, store and list beside model, image and perturbations.

An empty text stands for an option that is not given.
"""


def _require_attention(question: Question) -> None:
    """Refuse maps without attention at the unperturbed image: there is nothing to keep."""
    if not question.original.any():
        raise OptionError(
            f"{question.image_name}: the maps of the unperturbed image are zero everywhere, so there is no attention "
            "to keep; choose other classes, or another image"
        )
    if question.threshold.is_relative and question.base <= 0.0:
        raise OptionError(
            f"{question.image_name}: the maps of the unperturbed image have no mass on the mask, so no share of it can "
            f"be kept; give an absolute {question.attention.measure.option}, or another mask"
        )


def _without_names(domain: Mapping[str, Any]) -> dict[str, Any]:
    """A domain whose files count by content: the same file may have moved."""
    return {"specs": [without_names(str(spec)) for spec in domain["specs"]]} | {
        key: domain[key] for key in ("low", "high")
    }
