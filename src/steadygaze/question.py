"""The question: a model, an image, perturbations, and the property asked of them.

A question describes and stores itself, and tells how it differs from another one. It computes the label, the notes, and
whether the model file computes what was read from it.
"""

import math
import os
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import zoo
from .attention.methods import GRADIENT
from .attention.options import AttentionOptions
from .bounds.bounder import Bounder
from .compound import Compound
from .errors import ImageError, ModelError, OptionError
from .labels import Property
from .network.graph import preactivations
from .network.model import Agreement, Model, check_agreement
from .network.replay import coarse_notes
from .network.steps import magnitude, upwards
from .perturbation import Perturbed
from .tolerances import NOISE, TIE


@dataclass(frozen=True)
class Threshold:
    """A threshold: absolute, or relative to the size of the original map. Its text is read as the same threshold.

    >>> Threshold.parse("25%").value(8.0), Threshold.parse("3.0").value(8.0)
    (2.0, 3.0)
    >>> str(Threshold.parse("25%")), str(Threshold.parse("3.0")), str(Threshold.parse(0.1234567891))
    ('25%', '3', '0.1234567891')
    """

    number: float
    is_relative: bool

    @classmethod
    def parse(cls, text: str | float) -> "Threshold":
        """Read `25%` or a number."""
        words = str(text).strip()
        try:
            number = float(words.removesuffix("%"))
        except ValueError:
            number = float("nan")
        if not 0.0 <= number < float("inf"):
            raise OptionError(
                f"delta {words!r} is not a threshold; expected a number such as 3.0, or a share such as 25%"
            )
        return cls(number / 100.0 if words.endswith("%") else number, words.endswith("%"))

    def value(self, size: float) -> float:
        """The absolute threshold for an original map of the given size."""
        return self.number * size if self.is_relative else self.number

    def __str__(self) -> str:
        number, mark = (100.0 * self.number, "%") if self.is_relative else (self.number, "")
        texts = [f"{number:.{digits}g}{mark}" for digits in range(6, 18)]
        return next((text for text in texts if Threshold.parse(text) == self), texts[-1])


@dataclass(frozen=True, eq=False)
class Question:
    """What is verified. `names` are words for the classes; `image_name` and `model_name` appear in answers."""

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
        """The perturbations as canonical texts: equal ones span the same domain."""
        return tuple(perturbation.spec for perturbation in self.perturbed.perturbations)

    def describe(self) -> dict[str, Any]:
        """The question as plain data: the part that all answers share."""
        domain, classes, method = self.perturbed.domain, self.attention.classes, self.attention.method
        return {
            "domain": {
                "names": list(domain.names),
                "low": domain.low.tolist(),
                "high": domain.high.tolist(),
                "specs": list(self.specs),
            },
            "model": {"name": self.model_name, "sha256": self.model.sha256, "classes": self.model.classes},
            "image": {"name": self.image_name, "shape": list(self.perturbed.x0.shape)},
            "attention": {
                "filter": self.attention.filter.name,
                "distance": self.attention.distance.name.lower(),
                "classes": "all" if classes is None else [int(number) for number in classes],
                # The gradient goes without saying, in every version of the stored form.
                **({} if method is GRADIENT else {"method": method.name}),
            },
            "notes": list(self.notes),
        }

    def stored(self, delta: Threshold) -> dict[str, Any]:
        """What restoring the question needs beside `describe` and the pixels, asked for a threshold."""
        # The replay knows what the file expects of its pixels.
        preprocessing = self.model.replay.preprocessing
        place = os.path.realpath(self.model.path)
        bundled = next((model.name for model in zoo.models() if os.path.realpath(model.path) == place), None)
        return {
            "model": {
                "bundled": bundled,
                "path": None if bundled else place,
                "mean": preprocessing.mean.tolist(),
                "std": preprocessing.std.tolist(),
                "scale": float(preprocessing.scale),
            },
            "class_names": list(self.names),
            "image_notes": list(self.image_notes),
            "delta": asdict(delta),
        }

    @cached_property
    def compound(self) -> Compound:
        """The classifier after the perturbations."""
        return Compound(self.model.graph, self.model.chain, self.perturbed)

    @cached_property
    def label(self) -> int:
        """The predicted class of the unperturbed image; a tie is an error."""
        logits = self.model.graph.logits(self.perturbed.x0[None])[0]
        if not np.isfinite(logits).all():
            raise ImageError(f"{self.image_name}: the logits are not finite; check the weights and the preprocessing")
        first, second = np.sort(logits)[::-1][:2]
        slack = TIE * float(np.abs(logits).max())
        if first - second <= slack:
            tied = [self.names[j] for j in np.flatnonzero(logits >= first - slack)]
            raise ImageError(
                f"{self.image_name}: the classes {', '.join(tied)} are tied on the unperturbed image, so there is no "
                "label to keep; choose another image"
            )
        return int(np.argmax(logits))

    @cached_property
    def agreement(self) -> Agreement:
        """How far the model file, run by onnxruntime, is from what was read from it; too far is an error."""
        return check_agreement(self.model, self.perturbed.x0, self._farthest)

    @cached_property
    def _farthest(self) -> list[np.ndarray]:
        """The images at the lower and upper corner of the domain that are not the unperturbed one."""
        ends = (self.perturbed.domain.low, self.perturbed.domain.high)
        return [self.perturbed.image(end) for end in ends if end.any()]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the answer should know."""
        notes = [*self.model.notes, *self.image_notes]
        # Estimated, not replayed: a stored question has the same notes with any version of onnxruntime.
        notes += coarse_notes(self.model.graph, self.perturbed.x0, self._farthest, self.model.replay.float_type)
        close = 0
        values = self.perturbed.x0.reshape(1, -1)
        for segment in self.model.graph.steps[:-1]:
            scale, inputs = magnitude(segment, np.abs(values)), upwards(segment, values)
            close += int((np.abs(inputs) <= NOISE * scale).sum())
            values = np.maximum(inputs, 0.0)
        if close:
            notes.append(
                f"{close} neurons of the classifier are on their kink at the unperturbed image and count as inactive; "
                "the expected maps depend on that choice"
            )
        if self.property is not Property.CR and self.original_doubt > 0.0:
            notes.append(
                "the signs of some neurons at the unperturbed image are not certain in float64, and exact arithmetic "
                "did not settle them: the expected maps, and a δ relative to them, may be others; answers about "
                "attention allow for that"
            )
        return tuple(notes)

    @cached_property
    def original_doubt(self) -> float:
        """How far the maps of the unperturbed image may be off because signs of neurons are not certain there.

        A bound of the sum over classes of the distances; 0 where all signs are proved, by bounds or by exact
        arithmetic, to be those that float64 finds.
        """
        try:
            bounder = Bounder(self.model.graph, self.perturbed, self.label, self.attention)
        except ModelError:  # weights so small that products with them vanish
            return math.inf
        if bounder.is_original_certain or self._has_exact_original():
            return 0.0
        size = float(sum(self.attention.distance.size(part) for part in bounder.original.radius))
        return size * (1.0 + 1e-9) if math.isfinite(size) else math.inf

    def _has_exact_original(self) -> bool:
        """Whether exact arithmetic finds the pattern of float64 at the unperturbed image."""
        if not self.perturbed.domain.contains_zero:
            return False
        from .exact import ExactLabels  # noqa: PLC0415 (python-flint takes time to import)

        try:
            found = ExactLabels(self.compound, self.label).pattern_at(np.zeros(self.perturbed.domain.dimension))
        except ModelError:
            return False
        plain = preactivations(self.model.graph, self.perturbed.x0.reshape(1, -1))[:-1]
        return found is not None and all(
            np.array_equal(exact, values[0] > 0.0) for exact, values in zip(found, plain, strict=True)
        )
