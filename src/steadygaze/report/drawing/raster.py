"""Sections drawn into axes: coloured pieces as polygons, or as a picture if there are too many; lines over them.

Drawing tens of thousands of polygons is slow, and antialiasing leaves seams between neighbours. Colours looked up pixel
by pixel and averaged over blocks avoid both. Areas still come from the polygons.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.image import AxesImage
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as MplPath

from ...compiling import compiled
from ...polytopes import Adjacency
from ...polytopes.grid import owners_on_grid
from .colours import HATCH, HATCHED, INK, View
from .plane_sections import Section
from .sheet import name_axis

MOST_VECTOR_PIECES = 1500
"""Sections with more pieces become a picture, also in SVG, where each polygon costs 200 bytes."""
MOST_VECTOR_LINES = 30000
"""More segments become a picture in SVG and PDF."""
PIXELS = 900
"""Pixels along each side of a picture."""
BLOCK = 2
"""Pixels along each side of a block that is averaged into one pixel of the picture."""

HATCH_PERIOD, HATCH_WIDTH, HATCH_DARKENING = 16, 3, 0.55
"""Distance and width of hatching lines in pixels of the picture, and how much they darken it."""


@compiled
def average_colours(owners: np.ndarray, table: np.ndarray, block: int, picture: np.ndarray) -> None:
    """Write the mean colour of every block of pixels into `picture` (n, n, 4); the last row of `table` is for −1.

    Colours of the table are multiplied by their opacity; those of the picture are not.
    """
    none = table.shape[0] - 1
    count = float(block * block)
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            for channel in range(4):
                picture[row, column, channel] = 0.0
            for y in range(block):
                for x in range(block):
                    owner = owners[row * block + y, column * block + x]
                    for channel in range(4):
                        picture[row, column, channel] += table[owner if owner >= 0 else none, channel]
            for channel in range(4):
                picture[row, column, channel] /= count
            opacity = max(picture[row, column, 3], 1e-9)
            for channel in range(3):
                picture[row, column, channel] = min(max(picture[row, column, channel] / opacity, 0.0), 1.0)
            picture[row, column, 3] = min(max(picture[row, column, 3], 0.0), 1.0)


class TilePatches(PolyCollection):
    """Polygons with paths that exist already (see `section_paths`)."""

    def set_verts(self, verts: Any, closed: bool = True) -> None:
        """Take the paths as they are."""
        self._paths, self.stale = verts, True


def draw_view(
    axes: Axes, section: Section, view: View, owners: np.ndarray | None, *, row: int = 0, is_partial: bool = False
) -> None:
    """Draw section number `row` of a view, given its `pixel_owners`; `is_partial` hatches parts without a piece."""
    if is_partial:
        add_not_reached(axes, section)
    add_pieces(axes, section, view, owners)
    if owners is None and section.domain.dimension > 1:
        add_lines(axes, section.positions(section.outlines), to_rgba(INK, 0.16), 0.35, zorder=-3)
    for segments, colour, width in view.lines[row]:
        add_lines(axes, section.positions(segments), colour, width, zorder=2)
    set_limits(axes, section)


def pixel_owners(section: Section) -> np.ndarray | None:
    """The piece of every pixel for sections with too many polygons to draw, otherwise None.

    BLOCK · PIXELS of them along each side; for a grid, its own points, PIXELS or fewer.
    """
    if section.grid is not None:
        return section.grid
    return None if len(section.polygons) <= MOST_VECTOR_PIECES else all_pixel_owners(section)


def section_borders(sections: Sequence[Section], codes: np.ndarray, *, passed_over: int) -> list[np.ndarray]:
    """For each section: segments (S, 2, 2) in t where pieces of different codes (P,) touch."""
    return [
        borders_between(section.touching, codes[section.piece], passed_over=passed_over)
        if section.grid is None
        else grid_borders(section.grid, codes, passed_over=passed_over)
        for section in sections
    ]


def grid_borders(grid: np.ndarray, codes: np.ndarray, *, passed_over: int) -> np.ndarray:
    """Segments (S, 2, 2) in t between neighbouring points of a grid whose pieces have different codes.

    >>> grid_borders(np.array([[0, 1]]), np.array([5, 7]), passed_over=9).tolist()
    [[[0.5, 0.0], [0.5, 1.0]]]
    """
    drawn = np.append(codes, passed_over)[grid]
    is_known = drawn != passed_over
    height, width = grid.shape
    row, column = np.nonzero((drawn[:, 1:] != drawn[:, :-1]) & is_known[:, 1:] & is_known[:, :-1])
    x = (column + 1.0) / width
    upright = np.stack([np.stack([x, row / height], axis=1), np.stack([x, (row + 1.0) / height], axis=1)], axis=1)
    row, column = np.nonzero((drawn[1:] != drawn[:-1]) & is_known[1:] & is_known[:-1])
    y = (row + 1.0) / height
    level = np.stack([np.stack([column / width, y], axis=1), np.stack([(column + 1.0) / width, y], axis=1)], axis=1)
    return np.concatenate([upright, level])


def all_pixel_owners(section: Section) -> np.ndarray:
    """The piece of every pixel (BLOCK · PIXELS of them along each side), −1 for none."""
    if section.grid is None:
        return np.append(section.piece, -1)[owners_on_grid(section.polygons, BLOCK * PIXELS)]
    times = BLOCK * PIXELS // len(section.grid)
    return np.repeat(np.repeat(section.grid, times, axis=0), times, axis=1)


def add_pieces(axes: Axes, section: Section, view: View, owners: np.ndarray | None) -> None:
    """Draw pieces in the colours of a view, as polygons, or as a picture if `owners` (see `pixel_owners`) is given."""
    if owners is not None:
        block = BLOCK if section.grid is None else 1
        picture = colour_grid(owners, view.colours, block)
        hatch_grid(picture, owners, view.is_hatched, block, is_rising=True)
        add_picture(axes, section, picture)
        return
    shapes, own, is_hatched = section_paths(section), view.colours[section.piece], view.is_hatched[section.piece]
    # A thin line of its own colour around each polygon closes the seams that antialiasing leaves between neighbours.
    collection = TilePatches(shapes, facecolors=own, edgecolors=own, linewidths=0.4, zorder=-4)
    axes.add_collection(collection, autolim=False)
    if is_hatched.any():
        chosen = [shapes[place] for place in np.flatnonzero(is_hatched)]
        lines = TilePatches(
            chosen, facecolors="none", edgecolors=[to_rgba(INK, 0.55)], linewidths=0.0, hatch=HATCH, zorder=-3.5
        )
        axes.add_collection(lines, autolim=False)


def add_picture(axes: Axes, section: Section, picture: np.ndarray) -> None:
    """Draw a picture (n, n, 4) that covers the section."""
    (left, bottom), (right, top) = section.corners
    image = AxesImage(axes, extent=(left, right, bottom, top), origin="lower", zorder=-4)
    image.set_data(picture)
    axes.add_artist(image)


def section_paths(section: Section) -> list[Any]:
    """The closed outlines of the polygons of a section as drawn; the views of one section share them."""
    if section not in _PATHS:
        paths = []
        for shape in polygons_of(section):
            codes = np.full(len(shape) + 1, MplPath.LINETO, dtype=MplPath.code_type)
            codes[0], codes[-1] = MplPath.MOVETO, MplPath.CLOSEPOLY
            paths.append(MplPath(np.concatenate([shape, shape[:1]]), codes))
        _PATHS[section] = paths
    return _PATHS[section]


_PATHS: WeakKeyDictionary[Section, list[Any]] = WeakKeyDictionary()


def polygons_of(section: Section) -> list[np.ndarray]:
    """The polygons (V, 2) of a section as drawn."""
    points = section.positions(section.polygons.points)
    return [points[start:end] for start, end in pairwise(section.polygons.starts)]


def add_lines(axes: Axes, segments: np.ndarray, colour: str | Sequence[float], width: float, *, zorder: float) -> None:
    """Draw segments (S, 2, 2), given in theta."""
    if not len(segments):
        return
    # One path for all segments: otherwise an SVG has an element with its own style for each.
    codes = np.tile(np.array([MplPath.MOVETO, MplPath.LINETO], dtype=np.uint8), len(segments))
    path = MplPath(segments.reshape(-1, 2), codes)
    patch = PathPatch(path, fill=False, edgecolor=colour, linewidth=width, capstyle="round", zorder=zorder)
    patch.set_rasterized(len(segments) > MOST_VECTOR_LINES)
    axes.add_artist(patch)


def add_not_reached(axes: Axes, section: Section) -> None:
    """Hatch the whole section behind its pieces: the gaps they leave were not reached."""
    corner, end = section.corners
    width, height = end - corner
    axes.add_patch(Rectangle(tuple(corner), width, height, linewidth=0, zorder=-5, **HATCHED))


def set_limits(axes: Axes, section: Section) -> None:
    """The limits of the axes: the whole section."""
    (left, bottom), (right, top) = section.corners
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)


def name_axes(axes: Axes, section: Section, *, has_name_beside: bool = True, has_ticks_beside: bool = True) -> None:
    """Name the parameters of a section below and on the left; a single parameter has no name on the left."""
    names = section.domain.names
    name_axis(axes, names[section.axes[0]], is_below=True)
    if len(names) == 1:
        axes.set_yticks([])
    elif has_name_beside:
        name_axis(axes, names[section.axes[1]], is_below=False)
    elif not has_ticks_beside:
        axes.tick_params(labelleft=False)


def colour_grid(owners: np.ndarray, colours: np.ndarray, block: int = BLOCK) -> np.ndarray:
    """RGBA (n, n, 4) of a grid of owners (n · block, …), averaged over blocks; colours (P, 4), transparent for −1."""
    table = np.vstack([colours, np.zeros((1, 4))])
    if block == 1:
        return table[owners]
    table[:, :3] *= table[:, 3:]
    side = len(owners) // block
    picture = np.empty((side, side, 4))
    average_colours(np.ascontiguousarray(owners, dtype=np.int64), table, block, picture)
    return picture


def hatch_grid(
    picture: np.ndarray, owners: np.ndarray, chosen: np.ndarray, block: int = BLOCK, *, is_rising: bool
) -> None:
    """Lay thin dark lines, rising or falling, over the chosen polygons (P,) of a picture from `colour_grid`."""
    inside = np.append(chosen, False)[owners[::block, ::block]]
    row, column = np.indices(inside.shape)
    is_line = inside & ((column - row if is_rising else column + row) % HATCH_PERIOD < HATCH_WIDTH)
    picture[is_line, :3] *= HATCH_DARKENING


def borders_between(common: Adjacency, codes: np.ndarray, *, passed_over: int = -1) -> np.ndarray:
    """Segments (S, 2, 2) in t where polygons of different codes (P,) touch; none around the code `passed_over`.

    >>> from steadygaze.polytopes import Polygons
    >>> points = np.array([[0, 0], [0.5, 0], [0.5, 1], [0, 1], [0.5, 0], [1, 0], [1, 1], [0.5, 1.0]])
    >>> halves = Polygons(points, np.array([0, 4, 8]), np.array([1, 5, 3, 4, 1, 2, 3, -5])).touching()
    >>> borders_between(halves, np.array([0, 1])).tolist(), len(borders_between(halves, np.array([7, 7])))
    ([[[0.5, 1.0], [0.5, 0.0]]], 0)
    """
    first, second = codes[common.first], codes[common.second]
    return common.extent[(first != second) & (first != passed_over) & (second != passed_over)]
