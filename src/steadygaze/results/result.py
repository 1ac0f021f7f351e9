"""The result object: the question, the map, the answer for its δ, and views of single thetas."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..attention.inconsistency import expected_maps
from ..attention.maps import gradient_maps
from ..boundary import Boundary, find_boundary
from ..errors import PerturbationError
from ..network.agree import Agreement
from ..problem import Delta, Problem
from ..regions.check import CheckedMap
from ..regions.pattern import unpack
from ..verdict import Property, Verdict
from .answer import Answer, Answers
from .locate import deepest
from .view import Regions

if TYPE_CHECKING:
    from .witness import Witness


@dataclass(frozen=True, eq=False)
class Point:
    """One theta: its region, image, logits, and attention maps.

    image (C, H, W), logits (K,); actual and expected are filtered maps (K', C, H, W) of the classes compared.
    """

    theta: np.ndarray
    region: int | None
    image: np.ndarray
    logits: np.ndarray
    label: int
    margin: float
    actual: np.ndarray
    expected: np.ndarray
    inconsistency: float


@dataclass(frozen=True, eq=False)
class Result:
    """What `verify` returns. Immutable; `with_delta` gives the same map asked for another threshold."""

    problem: Problem
    answers: Answers
    delta: Delta
    original: np.ndarray
    agreement: Agreement
    checked: CheckedMap
    seconds: dict[str, float] = field(default_factory=dict)

    @cached_property
    def answer(self) -> Answer:
        """The answer for this δ."""
        return self.answers.at(self.delta.value(self.answers.size))

    @property
    def verdict(self) -> Verdict:
        """What was proved of the property over the whole domain."""
        return self.answer.verdict(self.problem.property)

    @property
    def label(self) -> int:
        """The predicted class of the unperturbed image."""
        return self.problem.label

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        """Shares of the domain: CR, MR, AR, IR, their combinations and undecided, each as (low, high)."""
        return self.answer.shares.named()

    @cached_property
    def regions(self) -> Regions:
        """The activation regions, one by one, with vertices, pattern, affine logits and labels."""
        return Regions(self.problem, self.answer)

    @property
    def is_complete(self) -> bool:
        """Whether the whole domain was mapped."""
        return self.answers.regions.stopped is None

    @cached_property
    def witnesses(self) -> tuple["Witness", ...]:
        """One replayed witness for each kind of violation."""
        from .witness import find_witnesses  # noqa: PLC0415 (a witness holds points of a result)

        return find_witnesses(self)

    def with_delta(self, delta: str | float) -> "Result":
        """The same map, asked for another δ: absolute (3.0) or relative ("25%")."""
        return replace(self, delta=Delta.parse(delta))

    def region_at(self, theta: ArrayLike) -> int | None:
        """The region that contains theta (d,), or None where a partial map has none."""
        point = self.answers.compound.to_unit(np.asarray(theta, dtype=np.float64)[None])[0]
        return deepest(self.answers.regions.polytopes, point)

    def at(self, theta: ArrayLike) -> Point:
        """Everything about one theta (d,) of the domain, from the plain definitions (a forward and a backward pass).

        Where the value of a neuron is nothing but rounding, its activity is that of theta's region.
        """
        problem, compound = self.problem, self.answers.compound
        where = np.asarray(theta, dtype=np.float64)
        if not compound.domain.contains(where):
            low, high = compound.domain.low.tolist(), compound.domain.high.tolist()
            raise PerturbationError(f"theta {where.tolist()} is outside of the domain from {low} to {high}")
        image = problem.perturbed.image(where)
        logits = problem.model.graph.logits(image[None])[0]
        region = self.region_at(where)
        bits = self._pattern(image, region)
        maps = gradient_maps(problem.model.chain, bits)[0][problem.attention.chosen(len(logits))]
        actual = problem.attention.filter(maps.reshape(-1, *image.shape))
        cell = problem.perturbed.cell_of(where)
        expected, slope = expected_maps(compound, cell, self.original)
        axis = problem.perturbed.moving_axis
        if slope is not None and axis is not None:
            expected = expected + (where[axis] - cell.low[axis]) * slope
        inconsistency = sum(problem.attention.distance.size(part) for part in actual - expected)
        rivals = np.delete(logits, self.label)
        margin = float(logits[self.label] - rivals.max())
        return Point(
            where, region, image, logits, int(np.argmax(logits)), margin, actual, expected,
            float(inconsistency),
        )  # fmt: skip

    def _pattern(self, image: np.ndarray, region: int | None) -> list[np.ndarray]:
        """The classifier's pattern at an image of a region: one boolean array (1, n) per ReLU layer."""
        compound, found = self.answers.compound, self.answers.regions
        values = compound.chain.preactivations(image.reshape(1, -1))[:-1]
        if region is None:
            return [value > 0.0 for value in values]
        settled = unpack(found.patterns[found.pattern[region]][None], compound.hidden)
        return [
            np.where((np.abs(value) > noise) | (value == 0.0), value > 0.0, own)
            for value, noise, own in zip(values, compound.noise, settled, strict=False)
        ]

    def boundary(self, property: str | Property | None = None) -> Boundary:
        """The outermost boundary of a property ("cr", "ar", "both"; that of the question unless given) at this δ.

        Needs a full map of a domain that contains zero.
        """
        wanted = self.problem.property if property is None else Property.parse(property)
        return find_boundary(self.answers.compound, self.answers.regions, self.answer.joint, wanted)

    def summary(self) -> dict[str, Any]:
        """The answer as plain data: what `--json` prints and `result.json` stores, timings apart."""
        from .summary import summarise  # noqa: PLC0415 (a summary describes a result)

        return summarise(self)

    def plot(self, path: str | Path) -> list[Path]:
        """Draw the map: classification, attention and joint; writes PNG and SVG beside each other."""
        from ..report.figures import draw_map  # noqa: PLC0415 (matplotlib is slow to import)

        return draw_map(self, path)

    def save(self, directory: str | Path, *, force: bool = False) -> Path:
        """Store the result in a directory, atomically; an existing one is refused without `force`."""
        from .store import save  # noqa: PLC0415 (stores results)

        return save(self, directory, force=force)
