"""The flat pictures of a result: the tiling itself for one and two parameters, plane sections through zero for three.

Turns the pieces of a map or a refinement, or the visited regions of a search, into polygons. Decides nothing about
labels; volumes come from the pieces themselves.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from ...labels import Kept
from ...perturbation import Domain
from ...polytopes import Adjacency, Cut, Polygons
from ...polytopes.grid import shapes_on_grid
from ...results.delta_answer import DeltaAnswer
from ...results.label_grid import NOTHING, LabelGrid, held_at
from ...results.result import Result
from ...words import shown_text

GRID = 1800
"""Points along each side of the sections of a map in chunks: the pixels that `raster` looks up."""
NEAR = 1e-4
"""A section shows a theta that is closer to its plane than this share of the domain's width."""
SMALLEST = 1e-15
"""Polygons of a smaller area, as shares of the section, are rounding."""


@dataclass(frozen=True, eq=False)
class Section:
    """A flat part of a tiling: polygons (S of them) in two coordinates of t, and the piece that each belongs to.

    axes are those two coordinates; `held` is the third one and its theta, or None. outlines
    (N, 2, 2) are the borders of regions and boxes. grid: the piece at every point of a grid, −1 for none, if there are
    too many polygons to hold; the section then has no polygons.
    """

    domain: Domain
    axes: tuple[int, int]
    held: tuple[int, float] | None
    polygons: Polygons
    piece: np.ndarray
    outlines: np.ndarray
    grid: np.ndarray | None = None

    @cached_property
    def touching(self) -> Adjacency:
        """The pairs of polygons with a common edge."""
        return self.polygons.touching()

    @property
    def place(self) -> str:
        """The place of the section, such as "at brightness = 0"; empty for a whole tiling."""
        if self.held is None:
            return ""
        name = self.domain.names[self.held[0]]
        return f"at {name} = {shown_text(name, self.held[1], 4)}"

    @property
    def corners(self) -> np.ndarray:
        """The lower left and the upper right corner (2, 2) as drawn."""
        return self.positions(np.array([[0.0, 0.0], [1.0, 1.0]]))

    def positions(self, points: np.ndarray) -> np.ndarray:
        """Points (…, 2) of the section as drawn: thetas; with one parameter the second coordinate stays."""
        drawn = points.copy()
        for place, axis in enumerate(self.axes):
            if axis < self.domain.dimension:
                low, high = self.domain.low[axis], self.domain.high[axis]
                drawn[..., place] = np.clip(low + points[..., place] * self.domain.widths[axis], low, high)
        return drawn

    def shows(self, theta: np.ndarray) -> bool:
        """Whether a theta (d,) lies in the domain and in the plane of the section."""
        if not self.domain.contains(theta):
            return False
        if self.held is None:
            return True
        axis, value = self.held
        return abs(float(theta[axis]) - value) <= NEAR * float(self.domain.widths[axis])


def make_sections(result: Result, *, may_be_grid: bool = False, by_region: bool = False) -> tuple[Section, ...]:
    """The whole tiling, or for three parameters the three sections where one parameter is zero.

    A parameter whose range does not contain zero is held at its low end. Sections of a map in chunks are grids.
    may_be_grid: its pieces are the points of `DeltaAnswer.grid`. by_region: pieces have the numbers of their regions.
    """
    domain = domain_of(result)
    if may_be_grid and result.answer.grid is not None:
        return _grid_sections(domain, result.answer.grid)
    if domain.dimension < 3:
        return (_section(result, domain, (0, 1), None, 0.0, by_region),)
    held = [(axes, 3 - sum(axes)) for axes in combinations(range(3), 2)]
    values = [held_at(domain, axis) for _, axis in held]
    return tuple(
        _section(result, domain, axes, (axis, value), at, by_region)
        for (axes, axis), (value, at) in zip(held, values, strict=True)
    )


def _grid_sections(domain: Domain, grid: LabelGrid) -> tuple[Section, ...]:
    """The planes of a grid; every point is a piece, numbered plane by plane and row by row."""
    sections, first = [], 0
    for plane in grid.planes:
        numbers = first + np.arange(plane.label.size).reshape(plane.label.shape)
        held = None if plane.held is None else plane.held[:2]
        sections.append(_of_grid(domain, plane.axes, held, np.where(plane.label == NOTHING, -1, numbers)))
        first += plane.label.size
    return tuple(sections)


def _of_grid(domain: Domain, axes: tuple[int, int], held: tuple[int, float] | None, grid: np.ndarray) -> Section:
    nothing = Polygons(np.zeros((0, 2)), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64))
    return Section(domain, axes, held, nothing, np.zeros(0, dtype=np.int64), np.zeros((0, 2, 2)), grid)


def _pieces_on_grid(answer: DeltaAnswer, axis: int | None, at: float, *, by_region: bool) -> np.ndarray:
    """The number of the piece or region (GRID, GRID) at the points of a plane t[axis] = at, −1 for none."""
    grid = np.full((GRID, GRID), -1)
    box = np.repeat([[0.0], [1.0]], answer.compound.coordinates, axis=1)
    if axis is not None:
        box[:, axis] = at
    for block in answer.blocks(box):
        piece = shapes_on_grid(block.joint.polytopes, axis, at, GRID)
        is_here = piece >= 0
        found = piece[is_here]
        grid[is_here] = block.region + block.joint.pieces.region[found] if by_region else block.piece + found
    return grid


@dataclass(frozen=True, eq=False)
class DrawnPieces:
    """The pieces of a result that pictures show, (P,) each: `Kept` codes, winners (−1: unknown), and ai.

    winner_shares: by class, that of unknown classes last. top: the largest finite bound of ai where the attention is
    lost; is_bounded: all of them are finite.
    """

    label: np.ndarray
    attention: np.ndarray
    winner: np.ndarray
    inconsistency: np.ndarray
    winner_shares: np.ndarray
    top: float
    is_bounded: bool


def drawn_pieces(result: Result) -> DrawnPieces:
    """The pieces of a result, or the points of its grid."""
    answer = result.answer
    if answer.grid is not None:
        grid = answer.grid
        label, attention, winner, inconsistency = (
            np.concatenate([getattr(plane, name).ravel() for plane in grid.planes])
            for name in ("label", "attention", "winner", "inconsistency")
        )
        return DrawnPieces(
            np.where(label == NOTHING, np.uint8(Kept.UNKNOWN), label),
            np.where(attention == NOTHING, np.uint8(Kept.UNKNOWN), attention),
            winner,
            inconsistency,
            answer.winner_shares,
            grid.top,
            True,
        )
    joint = answer.joint
    reach = answer.reach[joint.attention == Kept.NO, 1]
    is_finite = np.isfinite(reach)
    return DrawnPieces(
        joint.label_codes,
        joint.attention,
        joint.pieces.winner,
        answer.inconsistencies,
        answer.winner_shares,
        float(reach[is_finite].max(initial=answer.delta)),
        bool(is_finite.all()),
    )


def domain_of(result: Result) -> Domain:
    """The domain of any result."""
    return result.question.perturbed.domain


def _section(
    result: Result,
    domain: Domain,
    axes: tuple[int, int],
    held: tuple[int, float] | None,
    at: float,
    by_region: bool,
) -> Section:
    axis = None if held is None else held[0]
    if result.tiling.is_search:
        polygons, piece = _visited_polygons(result, domain, axes, axis, at)
        return Section(domain, axes, held, polygons, piece, edge_segments(polygons))
    if result.answer.is_in_chunks:
        return _of_grid(domain, axes, held, _pieces_on_grid(result.answer, axis, at, by_region=by_region))
    pieces, polytopes = result.answer.joint.pieces, result.answer.joint.polytopes
    polygons, piece = polytopes.section(axis, at)
    # The borders between regions and boxes, each once, without the border of the domain.
    kind = pieces.cuts[np.abs(polygons.facets) - 1, 0]
    chosen = (polygons.facets > 0) & np.isin(kind, (Cut.NEURON, Cut.KNOT, Cut.SPLIT))
    numbers = pieces.region[piece] if by_region else piece
    return Section(domain, axes, held, polygons, numbers, edge_segments(polygons)[chosen])


def edge_segments(polygons: Polygons) -> np.ndarray:
    """All edges (V, 2, 2) of polygons."""
    return np.stack([polygons.points, polygons.points[polygons.following]], axis=1)


def _visited_polygons(
    found: Result, domain: Domain, axes: tuple[int, int], held: int | None, at: float
) -> tuple[Polygons, np.ndarray]:
    """The polygons in which visited regions meet a plane, and the region (S,) of each."""
    # In t: n·(low + widths t) + c = (n widths)·t + (c + n·low).
    rows = found.tiling.arrays()["halfspaces"]
    forms, constants = rows[:, :-1] * domain.widths, rows[:, -1] + rows[:, :-1] @ domain.low
    if held is not None:
        constants = constants + forms[:, held] * at
    second = forms[:, axes[1]] if domain.dimension > 1 else np.zeros(len(forms))
    lines = np.stack([forms[:, axes[0]], second, constants], axis=1).tolist()
    shapes = [clipped(lines[start:end]) for start, end in pairwise(found.tiling.arrays()["starts"].tolist())]
    region = np.array([r for r, shape in enumerate(shapes) if _area(shape) > SMALLEST], dtype=np.int64)
    corners = [shapes[r] for r in region]
    points = np.array([corner for shape in corners for corner in shape]).reshape(-1, 2)
    starts = np.concatenate([[0], np.cumsum([len(shape) for shape in corners])]).astype(np.int64)
    return Polygons(points, starts, np.arange(1, len(points) + 1)), region


def clipped(lines: list[list[float]]) -> list[tuple[float, float]]:
    """The corners of the part of the unit square where a x + b y + c ≥ 0 for all lines (a, b, c), counter-clockwise.

    >>> clipped([[-1.0, -1.0, 1.0]]), clipped([[1.0, 0.0, -2.0]])
    ([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)], [])
    """
    corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    for a, b, c in lines:
        values = [a * x + b * y + c for x, y in corners]
        if min(values, default=0.0) >= 0.0:
            continue
        kept: list[tuple[float, float]] = []
        for place, (corner, value) in enumerate(zip(corners, values, strict=True)):
            (x, y), (next_x, next_y) = corner, corners[(place + 1) % len(corners)]
            following = values[(place + 1) % len(corners)]
            if value >= 0.0:
                kept.append(corner)
            if min(value, following) < 0.0 < max(value, following):
                share = value / (value - following)
                kept.append((x + share * (next_x - x), y + share * (next_y - y)))
        corners = kept
    return corners


def _area(shape: list[tuple[float, float]]) -> float:
    if len(shape) < 3:
        return 0.0
    (x0, y0), *rest = shape
    return 0.5 * sum((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0) for (x1, y1), (x2, y2) in pairwise(rest))
