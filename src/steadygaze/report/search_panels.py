"""The views of a search (classification, attention, joint): visited regions in the colour of their labels.

Turns the regions of a search into colours and table rows, and draws them into axes; what was not visited stays blank.
For one and two parameters: the regions of a single parameter are bands.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.image import AxesImage

from ..regions.region import Polygons
from ..search import SearchResult, Visited
from ..search.summary import line_end
from .colours import INK, JOINT, KEPT, MIXED, PAPER, UNKNOWN
from .marks import mark_thetas
from .panels import MOST_VECTOR_PIECES, PIXELS
from .raster import BLOCK, colour_grid, owners_on_grid
from .sheet import DASHES, Row
from .wording import percent

MOST_MARKED = 6
"""Components of a boundary that get a number on the panels."""
FRAME = 1.1
OTHER, UNDECIDED = "in part", "undecided"


@dataclass(frozen=True, eq=False)
class Kind:
    """One way to look at visited regions: a name for each label, its colour, and what it means."""

    title: str
    colours: dict[str, str]
    meanings: dict[str, str]


CLASSIFICATION = Kind(
    "Classification: is the label kept?",
    {"CR": KEPT, "MR": JOINT["MR&AR"], "CB": MIXED, UNDECIDED: UNKNOWN},
    {"CR": "CR  label kept", "MR": "MR  label changed", "CB": "CB  both occur", UNDECIDED: UNDECIDED},
)
ATTENTION = Kind(
    "Attention: is the map as expected?",
    {"AR": KEPT, "IR": JOINT["CR&IR"], "AB": MIXED, UNDECIDED: UNKNOWN},
    {"AR": "AR  differs by ≤ δ", "IR": "IR  differs by more", "AB": "AB  both occur", UNDECIDED: UNDECIDED},
)
BOTH = Kind(
    "Both together",
    {**JOINT, OTHER: MIXED, UNDECIDED: UNKNOWN},
    {
        "CR&AR": "CR&AR  both kept", "CR&IR": "CR&IR  label kept alone", "MR&AR": "MR&AR  attention kept alone",
        "MR&IR": "MR&IR  neither kept", OTHER: "CB or AB  in part", UNDECIDED: UNDECIDED,
    },
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SearchView:
    """A kind with the label of every visited region, and the rows of its table."""

    kind: Kind
    labels: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def colours(self) -> np.ndarray:
        """A colour (R, 4) for every region."""
        return to_rgba_array([self.kind.colours[label] for label in self.labels]) if self.labels else np.zeros((0, 4))


def make_search_views(result: SearchResult) -> tuple[SearchView, ...]:
    """One view for each label that the search asked for, and a joint one where it asked for both."""
    classification = tuple(one.classification for one in result.visited)
    attention = tuple(one.attention for one in result.visited)
    found = []
    if any(classification) or not any(attention):
        found.append(_view(result, CLASSIFICATION, tuple(label or UNDECIDED for label in classification)))
    if any(attention):
        found.append(_view(result, ATTENTION, attention))
    if any(classification) and any(attention):
        found.append(_view(result, BOTH, tuple(_joint_label(one) for one in result.visited)))
    return tuple(found)


def common_rows(result: SearchResult) -> tuple[Row, ...]:
    """What all views show beside the labels: outlines, the line, and what was not visited."""
    rows = []
    if result.components is not None and result.stopped is None:
        parts = len(result.components)
        share = f"{parts} component{'' if parts == 1 else 's'}"
        rows.append(Row("along the outermost boundary", share, PAPER, frame=2 * FRAME))
    elif any(one.is_following for one in result.visited):
        count = sum(one.is_following for one in result.visited)
        rows.append(Row("reached by following", f"{count:,}", PAPER, frame=2 * FRAME))
    if result.line is not None:
        name = "search line from zero" + " (0)" * (result.problem.perturbed.domain.dimension == 2)
        rows.append(Row(name, colour=INK, is_line=True, is_dashed=True))
    if result.visited_share < 1.0:
        rows.append(Row("not visited", percent(max(0.0, 1.0 - result.visited_share)), PAPER))
    return tuple(rows)


def outlined(result: SearchResult) -> np.ndarray:
    """Which regions (R,) are outlined: those along the outermost boundary, or those reached by following."""
    if result.components is not None:
        along = {key for part in result.components for key in (*part.inner, *part.outer)}
        return np.array([one.region.key in along for one in result.visited], dtype=bool)
    return np.array([one.is_following for one in result.visited], dtype=bool)


def draw_search_view(axes: Axes, result: SearchResult, view: SearchView, size: tuple[float, float]) -> None:
    """Draw one view on a panel of the given size in inches: regions, outlines, line, zero; sets the limits."""
    polygons = region_polygons(result)
    is_outlined = outlined(result)
    low, high = _corners(result)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    if len(polygons) > MOST_VECTOR_PIECES and result.problem.perturbed.domain.dimension == 2:
        _draw_pixels(axes, polygons, view.colours, is_outlined, (low, high))
    else:
        _draw_polygons(axes, polygons, view.colours, is_outlined, (low, high))
    theta = line_end(result)
    if theta is None:
        return
    is_flat = result.problem.perturbed.domain.dimension == 1
    start, end = (np.array([0.0, 0.5]), np.append(theta, 0.5)) if is_flat else (np.zeros(2), theta)
    for colour, width in ((PAPER, 2.6), (INK, 1.2)):
        dashes = DASHES if colour == INK else "-"
        axes.plot([start[0], end[0]], [start[1], end[1]], linestyle=dashes, color=colour, linewidth=width, zorder=4)
    if is_flat:
        axes.plot(*start, "o", markersize=5, color="white", markeredgecolor=INK, clip_on=False, zorder=5)
    else:
        mark_thetas(axes, [start, *_component_thetas(result)], size)


def region_polygons(result: SearchResult) -> Polygons:
    """The visited regions as polygons of the unit square; those of a single parameter are bands."""
    shapes = [one.region.vertices for one in result.visited]
    if result.problem.perturbed.domain.dimension == 1:
        shapes = [_band(float(shape.min()), float(shape.max())) for shape in shapes]
    starts = np.concatenate([[0], np.cumsum([len(shape) for shape in shapes])]).astype(np.int64)
    points = np.concatenate([np.zeros((0, 2)), *shapes])
    return Polygons(points, starts, np.arange(1, len(points) + 1))


def _band(left: float, right: float) -> np.ndarray:
    return np.array([[left, 0.0], [right, 0.0], [right, 1.0], [left, 1.0]])


def _corners(result: SearchResult) -> tuple[np.ndarray, np.ndarray]:
    """The lower left and the upper right corner of the panel, as drawn."""
    domain = result.problem.perturbed.domain
    return np.append(domain.low, 0.0)[:2], np.append(domain.high, 1.0)[:2]


def _draw_polygons(
    axes: Axes, polygons: Polygons, colours: np.ndarray, is_outlined: np.ndarray, ends: tuple[np.ndarray, np.ndarray]
) -> None:
    shapes = [ends[0] + polygons[place] * (ends[1] - ends[0]) for place in range(len(polygons))]
    axes.add_collection(
        PolyCollection(shapes, facecolors=colours, edgecolors=colours, linewidths=0.4, zorder=-4), autolim=False
    )
    for chosen, colour, width in ((~is_outlined, to_rgba(INK, 0.25), 0.35), (is_outlined, INK, 0.8)):
        edges = [shapes[place] for place in np.flatnonzero(chosen)]
        if edges:
            lines = PolyCollection(edges, facecolors="none", edgecolors=[colour], linewidths=width, zorder=2)
            axes.add_collection(lines, autolim=False)


def _draw_pixels(
    axes: Axes, polygons: Polygons, colours: np.ndarray, is_outlined: np.ndarray, ends: tuple[np.ndarray, np.ndarray]
) -> None:
    """The same as a picture, where there are too many regions: then what is outlined has one outline together."""
    owners = owners_on_grid(polygons, BLOCK * PIXELS)
    inside = np.append(is_outlined, False)[owners]
    is_line = np.zeros_like(inside)
    for axis in (0, 1):
        differs = np.diff(inside.astype(np.int8), axis=axis) != 0
        first = (slice(None), slice(0, -1)) if axis else (slice(0, -1), slice(None))
        second = (slice(None), slice(1, None)) if axis else (slice(1, None), slice(None))
        is_line[first] |= differs
        is_line[second] |= differs
    table = np.vstack([colours, to_rgba(INK), np.zeros(4)])
    owners = np.where(is_line, len(colours), np.where(owners < 0, len(colours) + 1, owners))
    extent = (ends[0][0], ends[1][0], ends[0][1], ends[1][1])
    image = AxesImage(axes, extent=extent, origin="lower", zorder=-4)
    image.set_data(colour_grid(owners, table))
    axes.add_artist(image)


def _component_thetas(result: SearchResult) -> list[np.ndarray]:
    """A theta on each component of the boundary, near the middle of the regions along its inner side."""
    if result.components is None or len(result.components) > MOST_MARKED:
        return []
    domain = result.problem.perturbed.domain
    inside = {one.region.key: one.region.inside for one in result.visited}
    thetas = []
    for part in result.components:
        points = np.array([inside[key] for key in sorted(part.inner) if key in inside])
        if len(points):
            middle = points[np.argmin(np.abs(points - points.mean(axis=0)).sum(axis=1))]
            thetas.append(domain.low + middle * domain.widths)
    return thetas


def _view(result: SearchResult, kind: Kind, labels: Sequence[str]) -> SearchView:
    counts = Counter(labels)
    shares = {name: 0.0 for name in kind.colours}
    for one, label in zip(result.visited, labels, strict=True):
        shares[label] += one.region.volume
    rows = [
        Row(kind.meanings[name], f"{counts[name]:,} · {percent(min(shares[name], 1.0))}", colour)
        for name, colour in kind.colours.items()
        if counts[name] or name not in (OTHER, UNDECIDED)
    ]
    return SearchView(kind, tuple(labels), tuple(rows))


def _joint_label(one: Visited) -> str:
    labels = one.classification, one.attention
    if UNDECIDED in labels:
        return UNDECIDED
    return OTHER if "CB" in labels or "AB" in labels else "&".join(labels)
