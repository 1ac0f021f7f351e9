"""The outermost boundary of a property on panels: what zero can reach, what it cannot, enclaves, the boundary itself.

Turns a boundary into coloured panels and table rows. Every statement is one that the boundary holds; nothing is decided
here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.image import AxesImage

from ..boundary import Boundary
from ..compound import Compound
from ..properties.joint import Kept
from ..regions.adjacency import touching
from ..results.domain_result import DomainResult
from .colours import INK, UNKNOWN, WINNERS
from .marks import mark_thetas
from .raster import BLOCK, colour_grid, hatch_grid, owners_on_grid
from .sections import Section
from .sheet import Row, Sheet, name_axis
from .tiles import PIXELS, add_lines, set_limits
from .wording import counted, number, percent, theta_text

SECTION_TITLE = 0.2
"""Height in inches of the line that names a section."""


@dataclass(frozen=True)
class Look:
    """How a kind of piece is drawn, and what it means."""

    text: str
    colour: str
    hatch: str = ""


LOOKS = (
    Look("kept, reachable from θ = 0", "#a9cbe8"),
    Look("kept, but not reachable", "#cbb8e0", "/////"),
    Look("undecided", UNKNOWN, "xxxx"),
    Look("not kept, in {enclaves}", "#f0a63c", "\\\\\\\\\\"),
    Look("not kept, outside", "#f3f1ee"),
)
"""By their codes; where grey print would show two of them alike, one is hatched."""

LINES = (INK, *WINNERS)
"""Colours of the components of the outermost boundary, the longest first; further ones share the last."""
ENCLAVE_LINE = "#8a4b00"


def draw_boundary_panel(
    sheet: Sheet, result: DomainResult, boundary: Boundary, section: Section, corner: tuple[float, float],
    size: tuple[float, float], thetas: Sequence[np.ndarray | None], *, has_name_beside: bool = True,
) -> None:  # fmt: skip
    """One panel: the pieces, the lines, and the thetas (d,) that the section shows, with their places as numbers.

    The line that names a section takes `SECTION_TITLE` inches above the corner.
    """
    compound = result.problem.compound
    names = compound.domain.names
    left, top = corner
    if section.held is not None:
        axis, value = section.held
        text = f"at {names[axis]} = {number(value)}"
        sheet.write(left, top - SECTION_TITLE, text, size=9.5, weight="bold", width=size[0])
    axes = sheet.axes(left, top, *size)
    _draw(axes, compound, boundary, section)
    name_axis(axes, names[section.axes[0]], is_below=True)
    shown = [theta if theta is not None and section.shows(theta) else None for theta in thetas]
    if len(names) == 1:
        axes.set_yticks([])
        mark_thetas(axes, [None if theta is None else np.append(theta, 0.5) for theta in shown], size)
        return
    if has_name_beside:
        name_axis(axes, names[section.axes[1]], is_below=False)
    mark_thetas(axes, [None if theta is None else theta[list(section.axes)] for theta in shown], size)


def _draw(axes: Axes, compound: Compound, boundary: Boundary, section: Section) -> None:
    """The pieces as a picture, the frontiers as lines."""
    (left, bottom), (right, top) = section.corners
    image = AxesImage(axes, extent=(left, right, bottom, top), origin="lower", zorder=-4)
    owners = owners_on_grid(section.polygons, BLOCK * PIXELS)
    codes = piece_codes(boundary)[section.piece]
    picture = colour_grid(owners, to_rgba_array([look.colour for look in LOOKS])[codes])
    for code, look in enumerate(LOOKS):
        for is_rising, letter in ((True, "/"), (False, "\\")):
            if letter in look.hatch or "x" in look.hatch:
                hatch_grid(picture, owners, codes == code, is_rising=is_rising)
    image.set_data(picture)
    axes.add_artist(image)
    adjacency = touching(section.polygons)
    first, second = section.piece[adjacency.first], section.piece[adjacency.second]
    is_frontier = boundary.reachable[first] != boundary.reachable[second]
    beyond = np.where(boundary.reachable[first], second, first)
    looks = [(enclave.pieces, ENCLAVE_LINE, 1.2) for enclave in boundary.enclaves]
    for place, component in reversed(list(enumerate(boundary.components))):
        looks.append((component.pieces, LINES[min(place, len(LINES) - 1)], 1.9))
    for pieces, colour, width in looks:
        segments = adjacency.extent[is_frontier & np.isin(beyond, pieces)]
        add_lines(axes, section.positions(segments), colour, width, zorder=2)
    set_limits(axes, section)


def piece_codes(boundary: Boundary) -> np.ndarray:
    """Which of `LOOKS` each piece (P,) has."""
    is_enclave, satisfies = boundary.enclosed & ~boundary.reachable, boundary.kept == Kept.YES
    is_unknown = boundary.kept == Kept.UNKNOWN
    return np.select([boundary.reachable, satisfies, is_unknown, is_enclave], [0, 1, 2, 3], 4)


def area_rows(boundary: Boundary) -> list[Row]:
    """The colours with their shares, which add up to the domain."""
    codes = piece_codes(boundary)
    rows = []
    for code, look in enumerate(LOOKS):
        share = boundary.share(codes == code)
        if share > 0.0 or code == 0:
            text = look.text.format(enclaves=counted(len(boundary.enclaves), "enclave"))
            rows.append(Row(text, percent(share), look.colour, hatch=look.hatch))
    return rows


def line_rows(boundary: Boundary, compound: Compound, what: str = "region", *, is_short: bool = False) -> list[Row]:
    """The components of the outermost boundary with their lengths; `what` runs along them."""
    rows = []
    size = "area" if compound.domain.dimension == 3 else "length"
    is_only = len(boundary.components) == 1
    for place, component in enumerate(boundary.components[: len(LINES)]):
        name, part = ("boundary", f" {place + 1}") if is_short else ("outermost boundary", f", component {place + 1}")
        text = name if is_only else name + part
        if compound.domain.dimension == 1:
            theta = compound.to_theta(boundary.frontier.extent[component.facets[:1], 0])[0]
            rows.append(Row(text, theta_text(theta, compound.domain.widths), LINES[place], is_line=True))
        else:
            text += f" (along {counted(len(component.inner), what)})"
            rows.append(Row(text, f"{size} {number(component.measure, 3)}", LINES[place], is_line=True))
    rest = boundary.components[len(LINES) :]
    if rest:
        length = f"{size} {number(sum(component.measure for component in rest), 3)}"
        rows.append(Row(counted(len(rest), "further component"), length, LINES[-1], is_line=True))
    if boundary.enclaves:
        rows.append(Row("borders of enclaves", colour=ENCLAVE_LINE, is_line=True))
    return rows
