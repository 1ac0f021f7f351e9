"""The traversal: the region with volume at a theta, and the region beyond a facet, in any dimension.

Both are one operation. `traversal_kernels.settle` finds the pattern just beyond a point, layer by layer. The region is
the intersection of all neurons' half-spaces under that pattern, found by comparison in one dimension, by clipping in
two and three, and by rays and linear programs in four. The subdivision shares none of this geometry, so each can check
the other.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial import QhullError

from ...accuracy import Accuracy, WalkMeasures
from ...compound import CLIP_LAYERS, CellProgram, Compound, Program
from ...tolerances import BEYOND, DISTANCE, SHORTEST, SLOW
from . import traversal_kernels as kernels
from .halfspaces import FacetFinder, LinearPrograms, LinearProgramTroubleError
from .measuring_kernels import finish
from .solids import BrokenSolidError, Faces, SolidCutter
from .visited import TraversedRegion, make_key

CLIPS = 256  # the most half-planes that may cut one polygon: bounds the rounding of its vertices
# The fixed point of the unit cube that sets the direction at a theta; no symmetry of the domain contains it.
INWARD = (0.5223, 0.4639, 0.5361, 0.4857)
MOST_WRITTEN = 8  # the most attempts to write a pattern without neurons that are mere rounding on its region


class Shape(NamedTuple):
    """The geometry of a `TraversedRegion`."""

    halfspaces: np.ndarray
    sources: np.ndarray
    centres: np.ndarray
    inside: np.ndarray
    corners: np.ndarray | None = None
    faces: Faces | None = None
    known_volume: float | None = None


class LostRegionError(Exception):
    """No region was found where one must exist: it is thinner than the tolerances, or a linear program failed."""


class Roof(NamedTuple):
    """The largest measures of one knot cell for which an `Accuracy` holds: see `Standing`."""

    peak: np.ndarray
    missed: np.ndarray
    most_drift: np.ndarray

    @classmethod
    def of(cls, standing: kernels.Standing, program: Program, accuracy: Accuracy) -> "Roof":
        end = int(program.offsets[-2])
        first, layers = end - len(accuracy.peaks), accuracy.drift.shape[1]
        found = cls(
            *(np.full(values.shape, np.inf) for values in (standing.peak, standing.missed, standing.most_drift))
        )
        found.peak[first:end], found.missed[first:end] = accuracy.peaks, accuracy.missed
        found.missed[:first] = accuracy.pixels_missed
        found.most_drift[:, found.most_drift.shape[1] - layers :] = accuracy.drift
        return found

    def is_exceeded(self, standing: kernels.Standing) -> bool:
        """Whether a measure is above the roof."""
        return bool(
            (standing.peak > self.peak).any()
            or (standing.missed > self.missed).any()
            or (standing.most_drift > self.most_drift).any()
        )


class Traversal:
    """Finds regions one by one; counts its linear programs, and each crossed facet once (`face_checks`).

    by_programs: use rays and linear programs in any dimension, as the reference for the clipping.
    """

    def __init__(self, cells: Sequence[CellProgram], dimension: int, *, by_programs: bool = False) -> None:
        self.cells, self.dimension = list(cells), dimension
        self.by_programs = by_programs or dimension > 3
        self.programs = LinearPrograms()
        self.face_checks = 0
        self.fallbacks = 0
        self.bent = 0.0
        self.cutter = SolidCutter()
        self._written: dict[bytes, bytes] = {}  # keys with an active neuron that is mere rounding → keys without it
        self._looked: dict[bytes, int] = {}  # by region: one bit for each facet already looked across
        self.finder = FacetFinder(dimension, self.programs)
        self._standings = [kernels.Standing.start(cell.program, cell.root, dimension) for cell in self.cells]
        self._room = np.zeros((5, 64)), np.zeros((2, 64), dtype=np.int64)

    @classmethod
    def of(cls, compound: Compound, *, by_programs: bool = False) -> "Traversal":
        return cls(compound.programs, compound.domain.dimension, by_programs=by_programs)

    def region_at(self, point: np.ndarray) -> TraversedRegion:
        """A region with volume whose closure contains a point (d,) of the unit cube.

        If there are several, the direction from the point to a fixed inner point decides. Raises LostRegionError.
        """
        where = np.asarray(point, dtype=np.float64)
        inward = np.array(INWARD[: self.dimension]) - where
        if np.abs(inward).max() < BEYOND:
            inward = np.eye(self.dimension)[0]
        return self.region_beyond(where, inward)

    def region_beyond(self, point: np.ndarray, direction: np.ndarray) -> TraversedRegion:
        """The region that a point (d,) enters when it moves in a direction, tilted by less than any rounding.

        If that region is thinner than the tolerances, returns the one behind it, within 100 DISTANCE of the point.
        """
        step = direction / max(float(np.abs(direction).max()), 1e-300)
        for moved in (0.0, 10.0, 100.0):
            start = point + moved * DISTANCE * step
            try:
                return self._region(cell_beyond(self.cells, self.dimension, start, direction), start, direction)
            except LostRegionError as error:
                lost = error
        raise lost

    def cross(self, region: TraversedRegion, facet: int) -> TraversedRegion | None:
        """The region beyond a facet; None on the border of the domain. Raises LostRegionError.

        If no region with volume lies beyond the facet's centre, a sliver lies between the two regions: then tries other
        points of the facet and counts a fallback.
        """
        cell = self.cell_across(region, facet)
        if cell is None:
            return None
        self._count(region, facet)
        outward = -region.halfspaces[facet, :-1]
        for attempt, point in enumerate(self._points_on(region, facet)):
            try:
                beyond = self._region(cell, point, outward)
            except LostRegionError:
                continue
            if beyond.key != region.key:
                self.fallbacks += attempt > 0
                return beyond
        raise LostRegionError("no region beyond a facet")

    def key_beyond(self, region: TraversedRegion, facet: int) -> bytes | None:
        """The key of the region beyond a facet, without its geometry; None at the border. Raises LostRegionError.

        It ends with the classifier's packed pattern there.
        """
        cell = self.cell_across(region, facet)
        if cell is None:
            return None
        self._count(region, facet)
        key = make_key(cell, *self._settle(cell, region.centres[facet], -region.halfspaces[facet, :-1]))
        key = self._written.get(key, key)
        if key == region.key:
            raise LostRegionError("the region beyond a facet is the region itself")
        return key

    def _count(self, region: TraversedRegion, facet: int) -> None:
        looked = self._looked.get(region.key, 0)
        self.face_checks += not looked >> facet & 1
        self._looked[region.key] = looked | 1 << facet

    def accuracy(self) -> Accuracy:
        """Bounds on the errors of all regions so far; kinks are not counted for regions found by linear programs."""
        seen = []
        for one in self._standings:
            slivers = float(one.sums[kernels.SLIVERS])
            seen.append(WalkMeasures(one.peak, one.missed, one.beside, one.most_drift, CLIPS, slivers, 0))
        return Accuracy.of(self.cells[0].program, seen)

    def roofs(self, accuracy: Accuracy) -> list["Roof"]:
        """For each knot cell, the largest measures for which an accuracy holds."""
        pairs = zip(self._standings, self.cells, strict=True)
        return [Roof.of(standing, cell.program, accuracy) for standing, cell in pairs]

    def exceeds(self, roofs: Sequence["Roof"]) -> bool:
        """Whether any region so far has a measure above its roof."""
        return any(roof.is_exceeded(standing) for roof, standing in zip(roofs, self._standings, strict=True))

    @property
    def sliver_share(self) -> float:
        """A bound on the share of the domain that tolerances assigned to a neighbour (two and three dimensions)."""
        return float(sum(standing.sums[kernels.SLIVERS] for standing in self._standings))

    def highest(self, region: TraversedRegion, form: np.ndarray) -> float:
        """An upper bound on a form (d+1,) over a region: by its vertices, and in four dimensions by a program."""
        seen = float((region.vertices @ form[:-1] + form[-1]).max())
        return seen if region.corners is not None else max(seen, self.finder.highest(region.halfspaces, form))

    def has_facet_left(self, region: TraversedRegion, facet: int, rows: np.ndarray) -> bool:
        """Whether rows (M, d+1) leave a part of a facet that is larger than rounding; takes one linear program."""
        every = np.concatenate([region.halfspaces, rows])
        return self.finder.facet_centre(every, facet, np.delete(np.arange(len(every)), facet)) is not None

    def cell_across(self, region: TraversedRegion, facet: int) -> int | None:
        """The knot cell beyond a facet; None on the border of the domain."""
        source = int(region.sources[facet])
        if source >= 0:
            return region.cell
        axis, side = divmod(-1 - source, 2)
        cell = self.cells[region.cell]
        # Beyond the line between two halves of a box lies the other half.
        if axis < self.dimension and (cell.high if side else cell.low)[axis] == float(side):
            return None
        return cell_beyond(self.cells, self.dimension, region.centres[facet], -region.halfspaces[facet, :-1])

    def _settle(self, cell: int, point: np.ndarray, direction: np.ndarray) -> tuple[bytes, bytes]:
        """Move to the pattern beyond a point; the packed bits of the clip and of the classifier."""
        program = self.cells[cell].program
        packed = np.empty(program.byte_start[-1], dtype=np.uint8)
        point, direction = np.ascontiguousarray(point), np.ascontiguousarray(direction)
        kernels.settle(program, self._standings[cell], point, direction, packed)
        bits, split = packed.tobytes(), int(program.byte_start[CLIP_LAYERS]) if program.clipped else 0
        return bits[:split], bits[split:]

    def _region(self, cell: int, point: np.ndarray, direction: np.ndarray) -> TraversedRegion:
        standing, first = self._standings[cell], b""
        try:
            for _ in range(MOST_WRITTEN):
                clip, pattern = self._settle(cell, point, direction)
                region = self._shaped(cell, clip, pattern, self._shape(cell, point, direction))
                first = first or region.key
                if not self._finish(region):
                    break
        except QhullError:
            raise LostRegionError("Qhull finds no vertices of a region") from None
        finally:
            standing.off.fill(0)
        if region.key != first:
            self._written[first] = region.key
        return region

    def _finish(self, region: TraversedRegion) -> int:
        """Record a region's measures and its clearance; returns how many neurons must first be written as inactive."""
        program, standing = self.cells[region.cell].program, self._standings[region.cell]
        has_corners, points = region.corners is not None, np.ascontiguousarray(region.vertices)
        assert region.clearance is not None
        return finish(
            program, standing, points, region.volume if has_corners else 0.0, has_corners and self.dimension > 1,
            has_corners, CLIP_LAYERS * program.clipped, self.scales, region.inside, region.clearance,
        )  # fmt: skip

    def _shape(self, cell: int, point: np.ndarray, direction: np.ndarray) -> Shape:
        if not self.by_programs and self.dimension < 3:
            return self._interval(cell) if self.dimension == 1 else self._polygon(cell)
        if not self.by_programs:
            try:
                return self._polyhedron(cell)
            except BrokenSolidError:
                pass  # linear programs are slower, but need no closed surface
        return self._polytope(cell, point, direction)

    def _shaped(self, cell: int, clip: bytes, pattern: bytes, shape: Shape) -> TraversedRegion:
        program = self.cells[cell].program
        logits = self._standings[cell].forms[:, program.offsets[-2] :].copy()
        box = self.cells[cell].low[: self.dimension], self.cells[cell].high[: self.dimension]
        clearance = np.zeros(
            len(self.cells[cell].program.offsets) - 2 - (CLIP_LAYERS if self.cells[cell].program.clipped else 0)
        )
        return TraversedRegion(cell, clip, pattern, *shape[:4], logits, *shape[4:6], box, clearance, shape.known_volume)

    @cached_property
    def scales(self) -> np.ndarray:
        """Positive numbers to which the errors of the classifier's neurons (n,) are roughly proportional."""
        program = self.cells[0].program
        size = int(program.offsets[-2] - program.offsets[CLIP_LAYERS if program.clipped else 0])
        classes = int(program.offsets[-1] - program.offsets[-2])
        noise = np.max([cell.program.noise[-size - classes : -classes] for cell in self.cells], axis=0, initial=0.0)
        return np.where((noise > 0.0) & np.isfinite(noise), noise, 1.0)

    def _polygon(self, cell: int) -> Shape:
        numbers, sources = self._room
        program, standing = self.cells[cell].program, self._standings[cell]
        low, high, sides = self.cells[cell].low, self.cells[cell].high, self.cells[cell].sides
        count = kernels.intersect_halfplanes(
            program, standing, low, high, sides, numbers[:2], numbers[2:4], sources, numbers[4]
        )
        if count < 0:
            self._room = np.zeros((5, 2 * numbers.shape[1])), np.zeros((2, 2 * numbers.shape[1]), dtype=np.int64)
            return self._polygon(cell)
        if count < 3:
            raise LostRegionError("a region without an inside")
        rows, corners, makers = np.empty((count, 5)), np.empty((count, 2)), np.empty(count, dtype=np.int64)
        facets = kernels.outline(numbers[0], numbers[2], sources[0], count, SHORTEST, rows, makers, corners)
        if facets < 3:
            raise LostRegionError("a region smaller than the tolerances")
        return Shape(rows[:facets, :3], makers[:facets], rows[:facets, 3:], corners.sum(axis=0) / count, corners)

    def _polyhedron(self, cell: int) -> Shape:
        found = self.cutter.region(self.cells[cell], self._standings[cell])
        if found is None:
            raise LostRegionError("a region smaller than the tolerances")
        self.bent += found.bent
        return Shape(
            found.halfspaces, found.sources, found.centres, found.inside, found.vertices, found.faces, found.volume
        )

    def _interval(self, cell: int) -> Shape:
        rows, sources = self._rows(cell)
        ends, is_low = -rows[:, 1] / rows[:, 0], rows[:, 0] > 0.0
        low, high = int(np.argmax(np.where(is_low, ends, -np.inf))), int(np.argmin(np.where(is_low, np.inf, ends)))
        if ends[high] - ends[low] <= DISTANCE:
            raise LostRegionError("a region without an inside")
        chosen = np.array([low, high])
        corners = ends[chosen, None]
        return Shape(rows[chosen], sources[chosen], corners, corners.mean(axis=0), corners)

    def _polytope(self, cell: int, point: np.ndarray, direction: np.ndarray) -> Shape:
        rows, sources = self._rows(cell)
        speed, gap = rows[:, :-1] @ direction, rows[:, :-1] @ point + rows[:, -1]
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(speed < 0.0, np.maximum(gap, 0.0) / -speed, np.inf)
        try:
            facets = self.finder.find(rows, point + 0.5 * times.min() * direction)
        except LinearProgramTroubleError as error:
            raise LostRegionError(str(error)) from None
        if facets is None:
            raise LostRegionError("a region without an inside")
        return Shape(rows[facets.places], sources[facets.places], facets.centres, facets.inside)

    def _rows(self, cell: int) -> tuple[np.ndarray, np.ndarray]:
        """The half-spaces of a knot cell and of all neurons that can change sign in it, under the pattern."""
        d, program, standing = self.dimension, self.cells[cell].program, self._standings[cell]
        low, high = self.cells[cell].low[:d], self.cells[cell].high[:d]
        hidden = int(program.offsets[-2])
        signed, noise = self._bounds(program, standing, hidden)
        slopes, largest = signed[:d], np.abs(signed[:d]).max(axis=0)
        # Scaled first: squares may underflow.
        size = largest * np.linalg.norm(slopes / np.where(largest > 0.0, largest, 1.0), axis=0)
        lowest = signed[d] + np.where(slopes > 0.0, low[:, None] * slopes, high[:, None] * slopes).sum(axis=0)
        # A neuron whose values are mere rounding in the whole cell bounds nothing.
        limit = np.maximum(DISTANCE * size, noise)
        chosen = np.flatnonzero((lowest < -limit) & (size > 0.0))
        rows = (signed[:, chosen] / size[chosen]).T
        oblique = self.cells[cell].sides[:, [*range(d), -1]]
        sides = np.concatenate([np.column_stack([np.eye(d), -low]), np.column_stack([-np.eye(d), high]), oblique])
        borders = [-1 - 2 * np.arange(d), -2 - 2 * np.arange(d), -1 - 2 * d - np.arange(len(oblique))]
        return np.concatenate([sides, rows]), np.concatenate([*borders, chosen]).astype(np.int64)

    @staticmethod
    def _bounds(program: Program, standing: kernels.Standing, hidden: int) -> tuple[np.ndarray, np.ndarray]:
        """The half-space (d+1, n) of every neuron under the pattern, and the values (n,) that count as rounding."""
        signed = standing.forms[:, :hidden] * np.where(standing.active[:hidden] == 1, 1.0, -1.0)
        noise, rival = program.noise[:hidden], standing.rival[:hidden]
        if not program.is_plain.all():
            others = np.flatnonzero(rival >= 0)
            signed[:, others] = standing.forms[:, rival[others]] - standing.forms[:, others]
            noise = noise + np.where(rival >= 0, noise[rival], 0.0)
        return signed, noise

    def _points_on(self, region: TraversedRegion, facet: int) -> Iterator[np.ndarray]:
        """Points of a facet at which to cross it: its centre, then the points halfway to its neighbours' centres."""
        centre = region.centres[facet]
        yield centre
        normal, offset = region.halfspaces[facet, :-1], region.halfspaces[facet, -1]
        for other in np.delete(region.centres, facet, axis=0):
            point = 0.5 * (centre + other)
            point -= (normal @ point + offset) * normal
            if region.contains(point, within=0.0):
                yield point


def cell_beyond(cells: Sequence[CellProgram], dimension: int, point: np.ndarray, direction: np.ndarray) -> int:
    """The number of the cell that a point (d,) enters when it moves in a direction, tilted by less than any rounding.

    The axes, with the signs of the direction, break ties, as they do for kinks in `traversal_kernels.settle`.
    """
    if len(cells) == 1:
        return 0
    step = direction / max(float(np.abs(direction).max()), 1e-300)
    signs = np.where(direction < 0.0, -1.0, 1.0)
    moved = point + BEYOND * np.where(np.abs(step) < 1e-6, 1e-3 * signs, step)
    low, high = (np.array([getattr(cell, end)[:dimension] for cell in cells]) for end in ("low", "high"))
    outside = np.maximum(low - moved, moved - high).max(axis=1)
    nearest = int(np.argmin(outside))
    is_same_box = (low == low[nearest]).all(axis=1) & (high == high[nearest]).all(axis=1)
    halves = np.flatnonzero(is_same_box).tolist()
    for row in cells[nearest].sides[:, [*range(dimension), -1]]:
        value = float(row[:-1] @ point + row[-1])
        if abs(value) <= DISTANCE * float(np.abs(row[:-1]).sum()):
            ways = [float(row[:-1] @ step), *(row[:-1] * signs)]
            value = next((way for way in ways if abs(way) > SLOW), 1.0)
        if value < 0.0:
            return next((half for half in halves if half != nearest), nearest)
    return nearest
