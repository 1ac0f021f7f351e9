"""The question about attention: options → `AttentionOptions` and a threshold; both to plain data and back."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET, Struct, UnsetType

from ..errors import OptionError
from ..network.graph import Graph
from ..threshold import Threshold
from .distances import Distance
from .filters import Filter
from .masks import EXAMPLE, Mask, MaskLike
from .measures import Measure, find_measures
from .measures.distance import DISTANCE
from .measures.wording import Stated
from .methods import GRADIENT, Method
from .options import AttentionOptions


class MaskFacts(Struct, frozen=True):
    """A mask: its source, and the hash of its weights."""

    text: str
    sha256: str


class AttentionFacts(Struct, frozen=True):
    """The question about attention as plain data. `distance` is unset for properties without one.

    property, explain and threshold: the property, the explanation method, and the property's threshold as a text (None
    if it has none). Earlier versions did not store these three. explain_sha256: the hash of the method's stored arrays.
    """

    filter: str
    distance: str | UnsetType = UNSET
    classes: str | list[int] = "all"
    property: str = DISTANCE.name
    explain: str = GRADIENT.text
    explain_sha256: str | UnsetType = UNSET
    threshold: str | None = None
    mask: MaskFacts | None = None

    def text(self, names: Sequence[str] | None = None) -> str:
        """The comparison in words; `names` has one name for each class.

        >>> AttentionFacts("abs", "l2", "all").text(), AttentionFacts("mean", "l1", [3, 8]).text()
        ('filter abs, distance L2, all classes', 'filter mean, distance L1, classes 3, 8')
        >>> AttentionFacts("abs", "l2", "all", explain="contrast").text()
        'contrast maps: filter abs, distance L2, all classes'
        >>> AttentionFacts("abs", UNSET, [3], property="object", mask=MaskFacts("digit.png", "")).text()
        'filter abs, property object, mask digit.png, class 3'
        """
        words = "all classes"
        if not isinstance(self.classes, str):
            chosen = [str(number) if names is None else names[number] for number in self.classes]
            words = f"class{'' if len(chosen) == 1 else 'es'} {', '.join(chosen)}"
        method = "" if self.explain == GRADIENT.text else f"{self.explain} maps: "
        asked = f"property {self.property}" if self.distance is UNSET else f"distance {self.distance.upper()}"
        mask = "" if self.mask is None else f", mask {self.mask.text}"
        return f"{method}filter {self.filter}, {asked}{mask}, {words}"

    def measure(self) -> Measure:
        """The property of attention; earlier versions stored no threshold."""
        found = Measure.parse(self.property)
        return found if self.threshold is None else found.with_threshold(self.threshold)[0]

    def stated(self, limit: float, base: float) -> Stated:
        """The threshold for sentences, with the largest loss that it allows and the base of relative thresholds."""
        return Stated(self.threshold or "", limit, base, self.explain)

    @classmethod
    def of(cls, options: AttentionOptions, threshold: Threshold) -> "AttentionFacts":
        """Options and a threshold as plain data."""
        measure, mask = options.measure, options.mask
        return cls(
            filter=options.filter.name,
            distance=options.distance.name.lower() if measure.norm is None else UNSET,
            classes="all" if options.classes is None else [int(number) for number in options.classes],
            property=measure.name,
            explain=options.method.text,
            explain_sha256=options.method.sha256 or UNSET,
            threshold=measure.threshold_text(threshold),
            mask=None if mask is None else MaskFacts(mask.text, mask.sha256),
        )


class AskedAttention(NamedTuple):
    """The requested property of attention: measure, threshold, distance or norm, mask as given, classes as given."""

    measure: Measure
    threshold: Threshold
    distance: Distance
    mask: MaskLike | None
    classes: str | Sequence[int]

    def mask_of(self, image: np.ndarray) -> Mask | None:
        """The mask for an image (C, H, W), or None; OptionError if mask or property do not fit the image."""
        self.measure.check_pixels(image[0].size)
        if self.mask is None:
            return None
        found = Mask.of(self.mask, image)
        self.measure.check_mask(found)
        return found


GivenThresholds = Mapping[str, str | float | None]
"""Thresholds by the name of their option (delta, tau, gamma, top), None if not given."""


def own_threshold(measure: Measure, thresholds: GivenThresholds) -> str | float | None:
    """The threshold given for a property, or None; OptionError if the threshold of another property is given."""
    for name, given in thresholds.items():
        if given is not None and name != measure.option:
            owner = next(one.name for one in find_measures().values() if one.option == name)
            raise OptionError(
                f"{name} {given!r} does not go with attention {measure.name}: it is the threshold of {owner}; "
                f"{'leave it out' if measure.option is None else f'give {measure.option} instead'}"
            )
    return None if measure.option is None else thresholds.get(measure.option)


def asked_attention(
    *,
    attention: str = DISTANCE.name,
    thresholds: GivenThresholds,
    dist: str | None = None,
    mask: MaskLike | None = None,
    classes: str | Sequence[int] | None = None,
) -> AskedAttention:
    """Parse the options about attention, before any file is read; raises OptionError."""
    measure = Measure.parse(attention)
    text = own_threshold(measure, thresholds)
    if dist is not None and measure.norm is not None:
        raise OptionError(
            f"dist {dist!r} does not go with attention {measure.name}; leave it out, or use attention distance"
        )
    if mask is not None and not measure.needs_mask:
        users = " or ".join(one.name for one in find_measures().values() if one.needs_mask)
        raise OptionError(f"a mask does not go with attention {measure.name}; leave it out, or use attention {users}")
    if mask is None and measure.needs_mask:
        raise OptionError(f"attention {measure.name} needs a mask: give a grey PNG of the image's size, or {EXAMPLE}")
    measure, threshold = measure.with_threshold(measure.default if text is None else text)
    return AskedAttention(
        measure,
        threshold,
        measure.norm or Distance.parse("l2" if dist is None else dist),
        mask,
        measure.classes if classes is None else classes,
    )


def restored_attention(
    content: Mapping[str, Any],
    classes: tuple[int, ...] | None,
    weights: np.ndarray | None,
    arrays: Mapping[str, np.ndarray],
    graph: Graph,
) -> AttentionOptions:
    """Restore the options from the attention section of a `result.json`, for a classifier.

    weights (H, W): the stored mask. arrays: those of the explanation method.
    """
    measure = Measure.parse(str(content.get("property", DISTANCE.name)))
    if content.get("threshold") is not None:
        measure, _ = measure.with_threshold(str(content["threshold"]))
    mask = None
    if content.get("mask") is not None:
        if weights is None:
            raise ValueError("its mask is missing")
        mask = Mask(weights, str(content["mask"]["text"]))
        if mask.sha256 != content["mask"]["sha256"]:
            raise ValueError("its mask has changed since it was stored")
    if measure.needs_mask != (mask is not None):
        raise ValueError(f"the property {measure.name} {'needs a mask' if measure.needs_mask else 'takes no mask'}")
    distance = measure.norm or Distance.parse(str(content["distance"]))
    method = Method.parse(str(content.get("explain", GRADIENT.text))).with_arrays(arrays).fit(graph)
    if method.sha256 != content.get("explain_sha256", ""):
        raise ValueError("the arrays of its explanation method have changed since they were stored")
    return AttentionOptions(Filter.parse(content["filter"]), distance, classes, method, measure, mask)


def attention_differences(asked: AttentionFacts, content: Mapping[str, Any]) -> list[str]:
    """The parts of a question about attention that differ from the attention section of a `result.json`."""
    mask, other = None if asked.mask is None else asked.mask.sha256, content.get("mask")
    distance = None if asked.distance is UNSET else asked.distance
    same = {
        "the explanation method": (asked.explain, asked.explain_sha256)
        == (content.get("explain", GRADIENT.text), content.get("explain_sha256", UNSET)),
        "the property of attention": asked.property == content.get("property", DISTANCE.name),
        "the mask": mask == (None if other is None else other["sha256"]),
        "filter, distance or classes": (asked.filter, distance, asked.classes)
        == (content["filter"], content.get("distance"), content["classes"]),
    }
    return [name for name, is_same in same.items() if not is_same]
