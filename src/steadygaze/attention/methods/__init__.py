"""Explanation methods, one file each: `find_methods` finds every file of this folder that defines a `Method`.

`Method.maps` defines a method's attention maps at one image. The maps of a `GradientMethod` are gradients of linear
functions of logits, which are constant on every region: passes, updates, error bounds and enclosures serve all such
methods (`gradients`). Maps of other methods change within a region; each method has its own enclosure over boxes
(`bounds.explained`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any, ClassVar, cast

import numpy as np

from ...errors import OptionError, did_you_mean
from ...network.graph import Graph
from ...network.node_gradients import gradients_at, values_of
from ...network.rewrites import Copies, with_copies
from .. import find_kinds


@dataclass(frozen=True)
class Method(ABC):
    """An explanation method; its public fields are the settings of its text, `name:key=value,key=value`."""

    name: ClassVar[str]
    """Its word in questions."""
    uses_gradients: ClassVar[bool] = True
    """Whether maps depend on gradients; if not, they change continuously, and the rule for ties does not matter."""

    @abstractmethod
    def maps(self, graph: Graph, image: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """The attention maps (K', …) of classes (K',) at an image (C, H, W), without filter: the definition."""

    @property
    def changes_in_regions(self) -> bool:
        """Whether maps change within a region."""
        return True

    @property
    def factor_baseline(self) -> float | None:
        """The baseline of maps that are (image − baseline) times a gradient; None for maps without such a factor."""
        return None

    def map_shape(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """The shape of one map, for images of a shape (C, H, W)."""
        return shape

    def copies(self, shape: tuple[int, int, int]) -> Copies | None:
        """The copies of an image of a shape (C, H, W) that the classifier reads besides the image; None if none."""
        return None

    def passes(self, shape: tuple[int, int, int]) -> int:
        """How many images of a shape (C, H, W) the classifier reads for the maps of one image."""
        return 1

    @property
    def text(self) -> str:
        """The method with all its settings: equal texts mean equal maps of the same network.

        >>> Method.parse("smoothgrad:n=4").text
        'smoothgrad:n=4,sigma=0.1,seed=0'
        """
        return write_settings(self.name, self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if not field.name.startswith("_")}

    def fit(self, graph: Graph) -> "Method":
        """The method for one classifier, with all random numbers drawn; OptionError if the classifier does not fit."""
        return self

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """Arrays that the text does not determine: they are stored with a result."""
        return {}

    @property
    def sha256(self) -> str:
        """The hash of the arrays; empty without any."""
        return ""

    def with_arrays(self, arrays: Mapping[str, np.ndarray]) -> "Method":
        """The same method with stored arrays; ValueError if they are not its own."""
        if arrays:
            raise ValueError(f"{self.name} has no arrays")
        return self

    @staticmethod
    def parse(text: str) -> "Method":
        """Read a method and its settings, such as `smoothgrad:n=4`; OptionError explains a wrong text."""
        known = find_methods()
        name, _, rest = str(text).strip().partition(":")
        if name not in known:
            raise OptionError(
                f"explanation {text!r} is not known; expected {', '.join(known)}.{did_you_mean(name, known)}"
            )
        method = known[name]
        return type(method)(**read_settings(str(text), rest, method.settings))


@dataclass(frozen=True)
class GradientMethod(Method):
    """A method whose maps are gradients of linear functions of logits, times (image − baseline) if it has a baseline.

    The logits are those of copies of the classifier that read the scaled and shifted image, by default of the
    classifier itself.
    """

    @abstractmethod
    def targets(self, classes: int) -> np.ndarray:
        """Weights (K, m · K) of the logits of m copies: the map of class c is the gradient of row c times these."""

    @property
    def changes_in_regions(self) -> bool:
        return self.factor_baseline is not None

    def attended(self, graph: Graph) -> Graph:
        """The classifier with its copies: the maps are gradients of `targets` times its aims."""
        copies = self.copies(graph.input_shape)
        return graph if copies is None else with_copies(graph, copies)

    def maps(self, graph: Graph, image: np.ndarray, classes: np.ndarray) -> np.ndarray:
        copies, targets = self.copies(graph.input_shape), self.targets(graph.classes)[classes]
        if copies is None:
            found = gradients_at(graph, values_of(graph, image), targets)
        else:
            parts = np.split(targets, len(copies.scale), axis=1)
            found = sum(
                (
                    scale * gradients_at(graph, values_of(graph, read), part)
                    for scale, read, part in zip(copies.scale, copies.images(image), parts, strict=True)
                ),
                start=np.zeros((len(classes), *image.shape)),
            )
        return found if self.factor_baseline is None else (image - self.factor_baseline) * found


@lru_cache(maxsize=8)
def attended(method: Method, graph: Graph) -> Graph:
    """The classifier with the copies whose gradients a method takes; the last few are cached."""
    return method.attended(graph) if isinstance(method, GradientMethod) else graph


@cache
def find_methods() -> dict[str, Method]:
    """Every method of this folder by its name, with its default settings, in alphabetical order.

    >>> list(find_methods())
    ['gradcam', 'gradient', 'input-x-gradient', 'integrated', 'occlusion', 'smoothgrad']
    """
    return find_kinds(__path__, __name__, Method)  # type: ignore[type-abstract]


GRADIENT = cast(GradientMethod, find_methods()["gradient"])


def read_settings(text: str, rest: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in the part of a text after the name; `usual` has the known settings, each with its default.

    >>> read_settings("a:n=4", "n=4", {"n": 8, "sigma": 0.1})
    {'n': 4}
    """
    found: dict[str, Any] = {}
    for part in rest.split(",") if rest.strip() else []:
        key, is_given, value = (piece.strip() for piece in part.partition("="))
        if not is_given or key not in usual:
            near = get_close_matches(key, usual, n=1)
            guess = f", did you mean {near[0]!r}?" if near and key not in usual else "."
            known = f"Expected {', '.join(f'{name}=…' for name in usual)}" if usual else "It has no settings"
            raise OptionError(f"{text!r}: {part.strip()!r} is not a setting{guess} {known}")
        if key in found:
            raise OptionError(f"{text!r}: {key} is given twice; give it once")
        found[key] = _read(text, key, value, type(usual[key]))
    return found


def _read(text: str, key: str, value: str, kind: type) -> Any:
    if kind is str:
        return value
    try:
        number = kind(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise OptionError(f"{text!r}: {key} is {value!r}; expected a {'whole ' * (kind is int)}number")
    return number


def write_settings(name: str, settings: Mapping[str, Any]) -> str:
    """The text that `read_settings` reads, with all settings and all digits.

    >>> write_settings("a", {"n": 4, "sigma": 0.1, "baseline": 0.0}), write_settings("b", {})
    ('a:n=4,sigma=0.1,baseline=0', 'b')
    """
    parts = [f"{key}={_write(value)}" for key, value in settings.items()]
    return f"{name}:{','.join(parts)}" if parts else name


def _write(value: Any) -> str:
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return str(value)
