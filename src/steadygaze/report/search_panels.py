"""The views of a search (phase, classification, attention, joint): visited regions in the colour of their labels.

Turns the regions of a search into colours and table rows, and draws them into axes; what was not visited stays blank.
The regions of a single parameter are bands, those of three are plane sections.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.image import AxesImage

from ..engines.search import SearchResult
from .colours import INK, PAPER
from .marks import mark_thetas
from .raster import BLOCK, colour_grid, hatch_grid, owners_on_grid
from .region_labels import ATTENTION, BOTH, CLASSIFICATION, PHASE, UNDECIDED, RegionView, joint_label, make_region_view
from .search_sections import search_domain
from .sections import Section
from .sheet import DASHES, Row
from .tiles import MOST_VECTOR_PIECES, PIXELS, add_pieces, polygons_of, set_limits
from .wording import counted, percent

MOST_MARKED = 6
"""Components of a boundary that get a number on the panels."""
FRAME = 1.1


def make_search_views(found: SearchResult) -> tuple[RegionView, ...]:
    """One view for each label that the search asked for, a joint one where it asked for both, the phase before them."""
    classification, attention, shares = found.classification, found.attention, found.arrays["volume"]
    views = []
    if has_phases(found):
        words = np.where(found.arrays["is_following"] == 1, "following", "searching").tolist()
        views.append(make_region_view(PHASE, words, shares))
    if any(classification) or not any(attention):
        views.append(make_region_view(CLASSIFICATION, [label or UNDECIDED for label in classification], shares))
    if any(attention):
        views.append(make_region_view(ATTENTION, attention, shares))
    if any(classification) and any(attention):
        joint = [joint_label(*pair) for pair in zip(classification, attention, strict=True)]
        views.append(make_region_view(BOTH, joint, shares))
    return tuple(views)


def has_phases(found: SearchResult) -> bool:
    """Whether a search goes along a line first and then follows a boundary."""
    return found.summary()["method"] != "bfs"


def common_rows(found: SearchResult) -> tuple[Row, ...]:
    """What all views show beside the labels: outlines, the line, and what was not visited."""
    rows, summary = [], found.summary()
    if summary["components"] is not None:
        parts = counted(len(summary["components"]), "component")
        rows.append(Row("outermost boundary", parts, PAPER, frame=2 * FRAME))
    elif summary["following"]:
        rows.append(Row("reached by following", f"{summary['following']:,}", PAPER, frame=2 * FRAME))
    if summary["line"] is not None:
        name = "search line from zero" + " (0)" * (len(summary["domain"]["names"]) > 1)
        rows.append(Row(name, colour=INK, is_line=True, is_dashed=True))
    if summary["visited_share"] < 1.0:
        rows.append(Row("not visited", percent(max(0.0, 1.0 - summary["visited_share"])), PAPER))
    return tuple(rows)


def outlined(found: SearchResult) -> np.ndarray:
    """Which regions (R,) are outlined: those along the outermost boundary, or those reached by following."""
    if found.summary()["components"] is None:
        return found.arrays["is_following"] == 1
    along = np.zeros(len(found), dtype=bool)
    along[found.arrays["component_region"]] = True
    return along


def draw_search_view(
    axes: Axes, found: SearchResult, view: RegionView, section: Section, size: tuple[float, float]
) -> None:
    """Draw one view of a section on a panel of the given size in inches: regions, outlines, line, zero."""
    is_outlined = outlined(found)
    set_limits(axes, section)
    if len(section.polygons) > MOST_VECTOR_PIECES and section.domain.dimension > 1:
        _draw_pixels(axes, section, view, is_outlined)
    else:
        _draw_polygons(axes, section, view, is_outlined)
    if found.summary()["line"] is not None:
        _draw_line(axes, found, section, size)


def _draw_line(axes: Axes, found: SearchResult, section: Section, size: tuple[float, float]) -> None:
    """The search line where the section shows it, and the thetas on it and on the boundary that have a number."""
    end = np.array(found.summary()["line"])
    zero = np.zeros(len(end))
    if section.domain.dimension == 1:
        start, end = np.array([0.0, 0.5]), np.append(end, 0.5)
        _add_dashes(axes, start, end)
        axes.plot(*start, "o", markersize=5, color="white", markeredgecolor=INK, clip_on=False, zorder=5)
        return
    chosen = list(section.axes)
    if section.shows(zero) and section.shows(end):
        _add_dashes(axes, zero[chosen], end[chosen])
    thetas = [theta if section.shows(theta) else None for theta in (zero, *_component_thetas(found))]
    mark_thetas(axes, [None if theta is None else theta[chosen] for theta in thetas], size)


def _add_dashes(axes: Axes, start: np.ndarray, end: np.ndarray) -> None:
    for colour, width in ((PAPER, 2.6), (INK, 1.2)):
        dashes = DASHES if colour == INK else "-"
        axes.plot([start[0], end[0]], [start[1], end[1]], linestyle=dashes, color=colour, linewidth=width, zorder=4)


def _draw_polygons(axes: Axes, section: Section, view: RegionView, is_outlined: np.ndarray) -> None:
    add_pieces(axes, section, view.colours, None, is_hatched=view.is_hatched)
    shapes, is_framed = polygons_of(section), is_outlined[section.piece]
    for chosen, colour, width in ((~is_framed, to_rgba(INK, 0.25), 0.35), (is_framed, INK, 0.8)):
        edges = [shapes[place] for place in np.flatnonzero(chosen)]
        if edges:
            lines = PolyCollection(edges, facecolors="none", edgecolors=[colour], linewidths=width, zorder=2)
            axes.add_collection(lines, autolim=False)


def _draw_pixels(axes: Axes, section: Section, view: RegionView, is_outlined: np.ndarray) -> None:
    """The same as a picture, where there are too many regions: then what is outlined has one outline together."""
    owners = np.append(section.piece, -1)[owners_on_grid(section.polygons, BLOCK * PIXELS)]
    inside = np.append(is_outlined, False)[owners]
    is_line = np.zeros_like(inside)
    for axis in (0, 1):
        differs = np.diff(inside.astype(np.int8), axis=axis) != 0
        first = (slice(None), slice(0, -1)) if axis else (slice(0, -1), slice(None))
        second = (slice(None), slice(1, None)) if axis else (slice(1, None), slice(None))
        is_line[first] |= differs
        is_line[second] |= differs
    colours = view.colours
    table = np.vstack([colours, to_rgba(INK), np.zeros(4)])
    owners = np.where(is_line, len(colours), np.where(owners < 0, len(colours) + 1, owners))
    picture = colour_grid(owners, table)
    hatch_grid(picture, owners, np.append(view.is_hatched, [False, False]), is_rising=True)
    (left, bottom), (right, top) = section.corners
    image = AxesImage(axes, extent=(left, right, bottom, top), origin="lower", zorder=-4)
    image.set_data(picture)
    axes.add_artist(image)


def _component_thetas(found: SearchResult) -> list[np.ndarray]:
    """A theta on each component of the boundary, near the middle of the regions along its inner side."""
    arrays, domain = found.arrays, search_domain(found)
    count = len(found.summary()["components"] or ())
    if count > MOST_MARKED:
        return []
    thetas = []
    for number in range(count):
        chosen = (arrays["component"] == number) & (arrays["component_is_inner"] == 1)
        points = (arrays["inside"][arrays["component_region"][chosen]] - domain.low) / domain.widths
        if len(points):
            middle = points[np.argmin(np.abs(points - points.mean(axis=0)).sum(axis=1))]
            thetas.append(domain.low + middle * domain.widths)
    return thetas
