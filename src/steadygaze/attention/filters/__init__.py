"""Filters on attention maps, one file per step: `find_steps` finds every file here that defines a `FilterStep`.

A step has several forms: values, enclosures, compiled code, a Lipschitz bound for errors, and the script for the
report's page. Using a form that a step lacks raises OptionError.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod
from types import FunctionType
from typing import Any, ClassVar, NoReturn

import numpy as np

from ...compiling import compiled
from ...errors import OptionError, did_you_mean
from ...tolerances import gamma, up
from .. import find_kinds


@dataclass(frozen=True, eq=False)
class Intervals:
    """Numbers known up to a radius; both (..., n)."""

    centre: np.ndarray
    radius: np.ndarray

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Proved lower and upper ends."""
        slack = gamma(2) * (np.abs(self.centre) + self.radius)
        return self.centre - self.radius - slack, self.centre + self.radius + slack

    @classmethod
    def between(cls, low: np.ndarray, high: np.ndarray) -> "Intervals":
        """The smallest intervals that contain low and high."""
        centre = 0.5 * (low + high)
        return cls(centre, np.maximum(high - centre, centre - low) * up(1))

    def reshape(self, *shape: int) -> "Intervals":
        """The same intervals in another shape."""
        return Intervals(self.centre.reshape(shape), self.radius.reshape(shape))


class FilterStep(ABC):
    """One step of a filter. Only `value` is required; a missing form fails on use."""

    name: ClassVar[str]
    """Its word in `--filter`."""
    is_linear: ClassVar[bool] = False
    """Whether the filter of a sum is the sum of the filtered maps."""

    is_pixelwise: ClassVar[bool] = False
    """Whether |filtered f · a| is |f| · |filtered a| for any factors f of pixels."""

    @abstractmethod
    def value(self, maps: np.ndarray) -> np.ndarray:
        """Filter maps (…, C, H, W): the definition, and the reference for every other form."""

    def enclose(self, maps: Intervals) -> Intervals:
        """Enclose the filtered maps (…, C, H, W) of all maps in the intervals, including rounding."""
        self.lack("enclosure, which refinements and proofs on hulls need")

    @property
    def kernel(self) -> Callable[[np.ndarray, np.ndarray, tuple[int, ...]], None]:
        """A compiled function (map, scratch, (C, H, W)) that filters a flattened map (C·H·W,) in place."""
        self.lack("compiled code, which maps of networks with convolutions need")

    def lipschitz(self, order: int) -> float:
        """The largest ‖filtered a − filtered b‖ / ‖a − b‖ in the norm of an order (1 or 2).

        Values may be rounded up to 16 times, relative to the sums of their absolute terms.
        """
        self.lack("Lipschitz bound, without which rounding errors of its maps are unknown")

    def script(self) -> str:
        """A JavaScript function expression (map, [channels, height, width]) → filtered map, both Float64Array."""
        self.lack("script, without which a report cannot compute its maps")

    def lack(self, form: str) -> NoReturn:
        """Raise OptionError: this step lacks a form."""
        raise OptionError(f"filter {self.name} has no {form}; choose another filter, or add that form to its file")


@cache
def find_steps() -> dict[str, FilterStep]:
    """Every step of this folder by its name, in alphabetical order.

    >>> {"abs", "mean"} <= set(find_steps())
    True
    """
    return find_kinds(__path__, __name__, FilterStep)  # type: ignore[type-abstract]


@dataclass(frozen=True)
class Filter:
    """A composition of steps, applied from left to right: `abs+mean` computes absolute values, then means.

    >>> Filter.parse("abs+mean").steps
    ('abs', 'mean')
    >>> Filter.parse("identity")(np.array([[[-1.0]]]))
    array([[[-1.]]])
    """

    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Filter":
        """Read `identity`, the name of a step, or steps joined by `+`."""
        known = find_steps()
        steps = () if text == "identity" else tuple(text.split("+"))
        if not all(step in known for step in steps):
            names, unknown = ", ".join(["identity", *known]), next(step for step in steps if step not in known)
            raise OptionError(
                f"filter {text!r} is not known; expected {names} or several joined by +, such as abs+mean"
                f".{did_you_mean(unknown, ['identity', *known])}"
            )
        return cls(steps)

    @property
    def name(self) -> str:
        """The text that `parse` reads."""
        return "+".join(self.steps) or "identity"

    @property
    def parts(self) -> list[FilterStep]:
        """The steps themselves, in order."""
        return [find_steps()[step] for step in self.steps]

    @property
    def is_linear(self) -> bool:
        """Whether the filter of a sum is the sum of the filtered maps."""
        return all(step.is_linear for step in self.parts)

    @property
    def is_pixelwise(self) -> bool:
        """Whether |filtered f · a| is |f| · |filtered a| for any factors f of pixels."""
        return all(step.is_pixelwise for step in self.parts)

    def __call__(self, maps: np.ndarray) -> np.ndarray:
        """Filter maps (…, C, H, W)."""
        for step in self.parts:
            maps = step.value(maps)
        return maps

    def enclose(self, maps: Intervals) -> Intervals:
        """Enclose filtered maps (…, C, H, W)."""
        for step in self.parts:
            maps = step.enclose(maps)
        return maps

    @property
    def codes(self) -> np.ndarray:
        """The numbers of the steps in `apply_step`."""
        return np.array([KERNELS.index(step.kernel) for step in self.parts], dtype=np.int64)

    def lipschitz(self, order: int) -> float:
        """The largest factor by which the filter enlarges a difference of two maps, in a norm of order 1 or 2."""
        return prod((step.lipschitz(order) for step in self.parts), start=1.0)

    @property
    def script(self) -> str:
        """A script that defines `SgFilters`: the function of every step, by name."""
        entries = ",\n".join(f'  "{step.name}": {step.script()}' for step in dict.fromkeys(self.parts))
        return f"const SgFilters = {{\n{entries}\n}};"


IDENTITY = Filter(())


@compiled
def _nothing(code: int, target: np.ndarray, other: np.ndarray, shape: tuple[int, ...]) -> None:
    pass


def _choose(code: int, target: np.ndarray, other: np.ndarray, shape: tuple[int, ...]) -> None:
    if code == NUMBER:  # type: ignore[name-defined]  # noqa: F821 (see `_chain_kernels`)
        KERNEL(target, other, shape)  # type: ignore[name-defined]  # noqa: F821
    else:
        REST(code, target, other, shape)  # type: ignore[name-defined]  # noqa: F821


def _chain_kernels(kernels: list[Any]) -> Any:
    """One compiled function that applies the kernel of a number: a copy of `_choose` for each, with its own globals.

    Copies instead of closures, because numba cannot store compiled closures on disk. Each needs its own name there.
    """
    apply = _nothing
    for number, kernel in enumerate(kernels):
        names = {"NUMBER": number, "KERNEL": kernel, "REST": apply, "__name__": __name__}
        copied = FunctionType(_choose.__code__, names, f"_choose_{number}")
        copied.__qualname__ = copied.__name__
        apply = compiled(copied)
    return apply


KERNELS = [step.kernel for step in find_steps().values() if type(step).kernel is not FilterStep.kernel]
apply_step = _chain_kernels(KERNELS)
"""Compiled: (number of a kernel, flattened map, scratch, (C, H, W)) filters the map in place."""
