"""The result of a proof over the whole domain: the question, the answer for its δ, and views of single thetas.

Summaries, figures, boundaries and witnesses ask a `DomainResult`, whichever engine ran; `Result` is that of a map.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..attention.gradients import maps_under
from ..attention.inconsistency import expected_maps
from ..boundary import Boundary, find_boundary
from ..errors import PerturbationError
from ..labels import Property, Stop, Verdict
from ..network.graph import preactivations
from ..network.model import Agreement
from ..properties.nearest import Nearest
from ..properties.shapes import Polytopes
from ..question import Question, Threshold
from ..regions.check import CheckedMap
from ..regions.patterns import unpack
from ..regions.polyhedra import Polyhedra
from ..regions.region import Polygons, RegionSet
from .answer import Answer, Answers, DeltaAnswer
from .claims import Claim, Violation, piece_claims
from .view import Regions

OUTSIDE = 1e-9
"""How far outside of a shape a point may lie and still belong to it: the rounding of vertices and of the point."""

SMALLEST_FACET = 1e-18
"""Facets of a smaller area have no direction that could be trusted; they only cut off a corner."""


def deepest(polytopes: Polytopes, point: np.ndarray) -> int | None:
    """The shape in which a point (D,) lies deepest, None if it is outside of all."""
    if not len(polytopes):
        return None
    if isinstance(polytopes, Polyhedra):
        chosen, depth = _depth_in_polyhedra(polytopes, point)
    else:
        chosen, depth = np.arange(len(polytopes)), _depth_in_polygons(polytopes, point)
    if not len(chosen):
        return None
    best = int(np.argmax(depth))
    return int(chosen[best]) if depth[best] >= -OUTSIDE else None


def _depth_in_polygons(polygons: Polygons, point: np.ndarray) -> np.ndarray:
    """The distance (R,) of a point to the nearest edge line of every polygon, negative outside."""
    start, following = polygons.points, polygons.points[polygons.following]
    edge = following - start
    side = edge[:, 0] * (point[1] - start[:, 1]) - edge[:, 1] * (point[0] - start[:, 0])
    depth = side / np.maximum(np.hypot(edge[:, 0], edge[:, 1]), 1e-300)
    return np.minimum.reduceat(depth, polygons.starts[:-1])


def _depth_in_polyhedra(polyhedra: Polyhedra, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The polyhedra (S,) with the point in their bounding box, and its distance (S,) to the nearest facet plane."""
    is_near = np.ones(len(polyhedra), dtype=bool)
    for axis in range(3):
        low, high = polyhedra.extent(axis)
        is_near &= (low - OUTSIDE <= point[axis]) & (point[axis] <= high + OUTSIDE)
    chosen = np.flatnonzero(is_near)
    if not len(chosen):
        return chosen, np.zeros(0)
    near = polyhedra.take(chosen)
    inward = ((near.facet_centres - point) * near.area_vectors).sum(axis=1) / np.maximum(near.areas, SMALLEST_FACET)
    depth = np.where(near.areas > SMALLEST_FACET, inward, np.inf)
    return chosen, np.minimum.reduceat(depth, near.facet_starts[:-1])


if TYPE_CHECKING:
    from .witness import Findings, Witness


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


def view_point(
    question: Question, original: np.ndarray, theta: np.ndarray, bits: list[np.ndarray], *, region: int | None = None
) -> Point:
    """Everything about a theta (d,) of the domain under a pattern `bits` of the classifier, one (1, n) per ReLU layer.

    original: the filtered maps (K', C, H, W) of the unperturbed image.
    """
    image = question.perturbed.image(theta)
    logits = question.model.graph.logits(image[None])[0]
    maps = maps_under(question.model.graph, bits, question.attention.targets(len(logits)))
    actual = question.attention.filter(maps.reshape(-1, *image.shape))
    cell = question.perturbed.cell_of(theta)
    expected, slope = expected_maps(question.compound, cell, original)
    axis = question.perturbed.moving_axis
    if slope is not None and axis is not None:
        expected = expected + (theta[axis] - cell.low[axis]) * slope
    inconsistency = float(sum(question.attention.distance.size(part) for part in actual - expected))
    margin = float(logits[question.label] - np.delete(logits, question.label).max())
    return Point(theta, region, image, logits, int(np.argmax(logits)), margin, actual, expected, inconsistency)


class DomainResult(ABC):
    """The question, and what is proved of it over its whole domain. Immutable.

    `stopped` says which limit ended the run. `kept_shares` are the shares of AR at 10, 25, 50 and 100 % of `map_size`,
    the size Σ_j ‖map_j(x0)‖ of the original maps; `enough_delta` is the smallest δ known to make all AR, kinks aside.
    """

    method: ClassVar[str]
    question: Question
    delta: Threshold
    original: np.ndarray
    agreement: Agreement
    checked: CheckedMap
    seconds: dict[str, float]

    @property
    @abstractmethod
    def answer(self) -> DeltaAnswer:
        """The answer for this δ."""

    @property
    @abstractmethod
    def exact_regions(self) -> RegionSet | None:
        """The regions that were found one by one; None where there are none."""

    @property
    @abstractmethod
    def map_size(self) -> float:
        """What relative thresholds refer to."""

    @property
    @abstractmethod
    def kept_shares(self) -> dict[str, tuple[float, float]]:
        """The share of AR at other thresholds."""

    @property
    @abstractmethod
    def enough_delta(self) -> float | None:
        """The smallest δ known to make all of it AR, kinks aside, rounded up; None where that is not known."""

    @property
    @abstractmethod
    def nearest(self) -> dict[str, Nearest]:
        """The nearest violations of CR and of AR."""

    @property
    @abstractmethod
    def stopped(self) -> Stop | None:
        """Which limit ended the run before it was done, None for none."""

    @abstractmethod
    def claims(self, kind: Violation) -> Iterable[Claim]:
        """Thetas where a violation of a kind is claimed, those to be tried first as witnesses first."""

    @abstractmethod
    def verdict_of(self, wanted: Property) -> Verdict:
        """What was proved of a property over the whole domain."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """The answer as plain data: what `--json` prints and `result.json` stores, timings apart."""

    @abstractmethod
    def save(self, directory: str | Path, *, force: bool = False) -> Path:
        """Store the result in a directory, atomically; an existing one is refused without `force`."""

    @cached_property
    def findings(self) -> "Findings":
        """The witnesses, and notes about those that are missing or that onnxruntime does not show."""
        from .witness import find_witnesses  # noqa: PLC0415 (a witness holds points of a result)

        return find_witnesses(self)

    @property
    def witnesses(self) -> tuple["Witness", ...]:
        """One replayed witness for each kind of violation."""
        return self.findings.witnesses

    @property
    def verdict(self) -> Verdict:
        """What was proved of the property over the whole domain."""
        return self.verdict_of(self.question.property)

    @property
    def label(self) -> int:
        """The predicted class of the unperturbed image."""
        return self.question.label

    @property
    def areas(self) -> dict[str, tuple[float, float]]:
        """Shares of the domain: CR, MR, AR, IR, their combinations and undecided, each as (low, high)."""
        return self.answer.shares.named()

    @property
    def is_complete(self) -> bool:
        """Whether no limit ended the run."""
        return self.stopped is None

    @property
    def is_measured(self) -> bool:
        """Whether attention was looked at."""
        return True

    @property
    def region_count(self) -> int:
        """How many regions were found one by one."""
        return 0 if self.exact_regions is None else len(self.exact_regions)

    @property
    def sliver_share(self) -> float:
        """A bound of the share of the domain on kinks, where the attention is undecided."""
        return self.answer.shares.slivers

    def with_delta(self, delta: str | float) -> Self:
        """The same proofs, asked for another δ: absolute (3.0) or relative ("25%")."""
        return replace(self, delta=Threshold.parse(delta))  # type: ignore[type-var]

    def region_at(self, theta: ArrayLike) -> int | None:
        """The region that contains theta (d,), or None where there is none."""
        if self.exact_regions is None:
            return None
        point = self.question.compound.to_unit(np.asarray(theta, dtype=np.float64)[None])[0]
        return deepest(self.exact_regions.polytopes, point)

    def at(self, theta: ArrayLike) -> Point:
        """Everything about one theta (d,) of the domain, from the plain definitions (a forward and a backward pass).

        Where the value of a neuron is nothing but rounding, its activity is that of theta's region.
        """
        compound = self.question.compound
        where = np.asarray(theta, dtype=np.float64)
        if not compound.domain.contains(where):
            low, high = compound.domain.low.tolist(), compound.domain.high.tolist()
            raise PerturbationError(f"theta {where.tolist()} is outside of the domain from {low} to {high}")
        image, region = self.question.perturbed.image(where), self.region_at(where)
        return view_point(self.question, self.original, where, self._pattern(image, region), region=region)

    def _pattern(self, image: np.ndarray, region: int | None) -> list[np.ndarray]:
        """The classifier's pattern at an image of a region: one boolean array (1, n) per ReLU layer."""
        compound, found = self.question.compound, self.exact_regions
        values = preactivations(compound.graph, image.reshape(1, -1))[:-1]
        if region is None or found is None:
            return [value > 0.0 for value in values]
        settled = unpack(found.patterns[found.pattern[region]][None], compound.hidden)
        return [
            np.where((np.abs(value) > noise) | (value == 0.0), value > 0.0, own)
            for value, noise, own in zip(values, compound.noise, settled, strict=False)
        ]

    def boundary(self, property: str | Property | None = None) -> Boundary:
        """The outermost boundary of a property ("cr", "ar", "both"; that of the question unless given) at this δ.

        The domain must contain zero, and a map must be complete. Undecided parts count as not kept.
        """
        wanted = self.question.property if property is None else Property.parse(property)
        return find_boundary(self.question.compound, self.exact_regions, self.answer.joint, wanted)

    def plot(self, path: str | Path) -> list[Path]:
        """Draw the map: classification, attention and joint; writes PNG and SVG beside each other."""
        from ..report.figures import draw_map  # noqa: PLC0415 (matplotlib is slow to import)

        return draw_map(self, path)

    def report(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the report: one HTML file that needs nothing else; an existing report is refused without `force`."""
        from ..report.page.html import write_report  # noqa: PLC0415 (matplotlib is slow to import)

        return write_report(self, path, force=force)


__all__ = ["Point", "Result"]


@dataclass(frozen=True, eq=False)
class Result(DomainResult):
    """What `verify` returns for a map. Immutable; `with_delta` gives the same map asked for another threshold."""

    method: ClassVar[str] = "map"

    question: Question
    answers: Answers
    delta: Threshold
    original: np.ndarray
    agreement: Agreement
    checked: CheckedMap
    seconds: dict[str, float] = field(default_factory=dict)

    @cached_property
    def answer(self) -> Answer:
        """The answer for this δ."""
        return self.answers.at(self.delta.value(self.answers.size))

    @property
    def exact_regions(self) -> RegionSet:
        """All regions that were mapped."""
        return self.answers.regions

    @property
    def map_size(self) -> float:
        """What relative thresholds refer to."""
        return self.answers.size

    @property
    def kept_shares(self) -> dict[str, tuple[float, float]]:
        """The share of AR at other thresholds."""
        return self.answers.kept_shares

    @property
    def enough_delta(self) -> float | None:
        """The smallest δ known to make every region AR, kinks aside, rounded up; None where a map is not certain."""
        return self.answers.enough_delta

    @property
    def nearest(self) -> dict[str, Nearest]:
        """The nearest violations of CR and of AR."""
        return self.answer.nearest

    @property
    def stopped(self) -> Stop | None:
        """Which limit ended the map before it covered the domain, None for none."""
        return self.answers.regions.stopped

    @cached_property
    def regions(self) -> Regions:
        """The activation regions, one by one, with vertices, pattern, affine logits and labels."""
        return Regions(self.question, self.answer)

    def verdict_of(self, wanted: Property) -> Verdict:
        """What was proved of a property over the whole domain."""
        return self.answer.verdict(wanted)

    def claims(self, kind: Violation) -> Iterator[Claim]:
        """The centres of the pieces nearest to zero that violate and may be deep, then of the deepest of all."""
        return piece_claims(self.answer, kind, self.agreement.scale)

    def summary(self) -> dict[str, Any]:
        """The answer as plain data: what `--json` prints and `result.json` stores, timings apart."""
        from .summary import summarise  # noqa: PLC0415 (a summary describes a result)

        return summarise(self)

    def save(self, directory: str | Path, *, force: bool = False) -> Path:
        """Store the result in a directory, atomically; an existing one is refused without `force`."""
        from .store import save  # noqa: PLC0415 (stores results)

        return save(self, directory, force=force)
