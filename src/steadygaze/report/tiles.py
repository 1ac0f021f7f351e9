"""The polygons of a section drawn into axes: as polygons, or as a picture where there are too many; lines over them.

What the colours mean is not known here.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.image import AxesImage
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as MplPath

from .colours import INK
from .raster import BLOCK, colour_grid, hatch_grid, owners_on_grid
from .sections import Section
from .sheet import HATCHED

MOST_VECTOR_PIECES = 1500
"""Sections with more pieces are drawn as a picture, in the SVG too, where each polygon costs 200 bytes."""
PIXELS = 900
HATCH = "/////"
MOST_VECTOR_LINES = 30000
"""More segments become a picture in SVG and PDF."""


def pixel_owners(section: Section) -> np.ndarray | None:
    """The piece of every pixel for sections that are too large to be drawn polygon by polygon, otherwise None."""
    if len(section.polygons) <= MOST_VECTOR_PIECES:
        return None
    return np.append(section.piece, -1)[owners_on_grid(section.polygons, BLOCK * PIXELS)]


def add_pieces(
    axes: Axes, section: Section, colours: np.ndarray, owners: np.ndarray | None, *,
    is_hatched: np.ndarray | None = None,
) -> None:  # fmt: skip
    """Pieces in their colours (P, 4), those in `is_hatched` (P,) with lines over them.

    `owners` are those of `pixel_owners`.
    """
    if owners is not None:
        (left, bottom), (right, top) = section.corners
        image = AxesImage(axes, extent=(left, right, bottom, top), origin="lower", zorder=-4)
        picture = colour_grid(owners, colours)
        if is_hatched is not None:
            hatch_grid(picture, owners, is_hatched, is_rising=True)
        image.set_data(picture)
        axes.add_artist(image)
        return
    shapes, own = polygons_of(section), colours[section.piece]
    # A thin line of its own colour around each polygon closes the seams that antialiasing leaves between neighbours.
    collection = PolyCollection(shapes, facecolors=own, edgecolors=own, linewidths=0.4, zorder=-4)
    axes.add_collection(collection, autolim=False)
    if is_hatched is not None and is_hatched[section.piece].any():
        chosen = [shapes[place] for place in np.flatnonzero(is_hatched[section.piece])]
        lines = PolyCollection(
            chosen, facecolors="none", edgecolors=[to_rgba(INK, 0.55)], linewidths=0.0, hatch=HATCH, zorder=-3.5
        )
        axes.add_collection(lines, autolim=False)


def polygons_of(section: Section) -> list[np.ndarray]:
    """The polygons (V, 2) of a section as drawn."""
    points = section.positions(section.polygons.points)
    return [points[start:end] for start, end in pairwise(section.polygons.starts)]


def add_lines(axes: Axes, segments: np.ndarray, colour: str | Sequence[float], width: float, *, zorder: float) -> None:
    """Draw segments (S, 2, 2), given in theta."""
    if not len(segments):
        return
    # One path for all segments: an SVG would otherwise hold an element with its own style for each.
    codes = np.tile(np.array([MplPath.MOVETO, MplPath.LINETO], dtype=np.uint8), len(segments))
    path = MplPath(segments.reshape(-1, 2), codes)
    patch = PathPatch(path, fill=False, edgecolor=colour, linewidth=width, capstyle="round", zorder=zorder)
    patch.set_rasterized(len(segments) > MOST_VECTOR_LINES)
    axes.add_artist(patch)


def add_not_reached(axes: Axes, section: Section) -> None:
    """Hatch the whole section behind its pieces: what they leave was not reached."""
    corner, end = section.corners
    width, height = end - corner
    axes.add_patch(Rectangle(tuple(corner), width, height, linewidth=0, zorder=-5, **HATCHED))


def set_limits(axes: Axes, section: Section) -> None:
    """The limits of the axes: the whole section."""
    (left, bottom), (right, top) = section.corners
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
