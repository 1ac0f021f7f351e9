"""From a boundary to its figure, as PNG and SVG: what zero can reach, what it cannot, enclaves, the outermost boundary.

Every statement in the figure is one that the boundary holds; nothing is decided here.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import PathPatch
from matplotlib.path import Path as MplPath
from matplotlib.text import Text

from ..boundary import Boundary
from ..compound import Compound
from ..properties.joint import Kept
from ..regions.adjacency import touching
from ..results.domain_result import DomainResult
from ..verdict import Property
from .colours import FAINT_INK, INK, UNKNOWN, WINNERS
from .extent import extent_text
from .figures import write_figure
from .marks import mark_thetas
from .panels import PIXELS
from .raster import BLOCK, colour_grid, owners_on_grid
from .sections import Section, make_sections
from .sheet import ROW, Row, Sheet, name_axis
from .wording import counted, number, percent, theta_text

WIDTH, HEADER, LEFT = 11.2, 0.95, 0.85
PANEL, BAND = 5.4, 0.7
GAP, SECTION_TITLE = 0.75, 0.2
TABLE_GAP, TABLE_RIGHT = 0.45, 0.35

REACHED, ENCLAVE, UNREACHED, OUTSIDE = "#a9cbe8", "#f0a63c", "#cbb8e0", "#f3f1ee"
LINES = (INK, *WINNERS)
"""Colours of the components of the outermost boundary, the longest first; further ones share the last."""
ENCLAVE_LINE = "#8a4b00"

WHAT = {
    Property.CR: "the label is kept",
    Property.AR: "the attention is kept",
    Property.BOTH: "label and attention are kept",
}


def draw_boundary(result: DomainResult, boundary: Boundary, path: str | Path) -> list[Path]:
    """Write the figure of a boundary to PATH.png and PATH.svg; return both."""
    return write_figure(lambda: boundary_figure(result, boundary), path)


def boundary_figure(result: DomainResult, boundary: Boundary) -> Figure:
    """The map with its outermost boundary (sections of it with three parameters) and a table."""
    compound, sections = result.problem.compound, make_sections(result)
    rows, lines = _area_rows(boundary), _line_rows(boundary, compound, "region" if result.method == "map" else "piece")
    table = ROW * (len(rows) + len(lines) + 2) + 0.6
    is_line, is_single = compound.domain.dimension == 1, len(sections) == 1
    width = PANEL if is_single else (WIDTH - LEFT - TABLE_RIGHT - (len(sections) - 1) * GAP) / len(sections)
    height = BAND if is_line else width
    below = HEADER + (0.0 if is_single else SECTION_TITLE) + height + 0.6
    bottom = max(below, HEADER + table) if is_single else below + table
    sheet = Sheet(WIDTH, bottom + 0.15)
    _write_header(sheet, result, boundary)
    for place, section in enumerate(sections):
        _draw_section(sheet, result, boundary, section, LEFT + place * (width + GAP), (width, height))
    left, top = (LEFT + PANEL + TABLE_GAP, HEADER) if is_single else (LEFT, below + 0.1)
    width = WIDTH - left - TABLE_RIGHT if is_single else PANEL
    sheet.table(left, top, width, rows)
    top += ROW * len(rows) + 0.2
    sheet.table(left, top, width, lines)
    _write_thetas(sheet, result, boundary, left, top + ROW * len(lines) + 0.25, width)
    for text in sheet.figure.findobj(Text):
        text.set_parse_math(False)
    return sheet.figure


def _draw_section(
    sheet: Sheet, result: DomainResult, boundary: Boundary, section: Section, left: float, size: tuple[float, float]
) -> None:
    """One panel: the pieces, the lines, zero and the farthest theta where the section shows them."""
    compound, top = result.problem.compound, HEADER
    names = compound.domain.names
    if section.held is not None:
        axis, value = section.held
        sheet.write(left, top, f"at {names[axis]} = {number(value)}", size=9.5, weight="bold", width=size[0])
        top += SECTION_TITLE
    axes = sheet.axes(left, top, *size)
    _draw(axes, compound, boundary, section)
    name_axis(axes, names[section.axes[0]], is_below=True)
    thetas = [np.zeros(len(names)), boundary.farthest]
    shown = [theta if theta is not None and section.shows(compound, theta) else None for theta in thetas]
    if len(names) == 1:
        axes.set_yticks([])
        mark_thetas(axes, [None if theta is None else np.append(theta, 0.5) for theta in shown], size)
    else:
        name_axis(axes, names[section.axes[1]], is_below=False)
        mark_thetas(axes, [None if theta is None else theta[list(section.axes)] for theta in shown], size)


def _draw(axes: Axes, compound: Compound, boundary: Boundary, section: Section) -> None:
    """The pieces as a picture, the frontiers as lines."""
    (left, bottom), (right, top) = section.positions(compound, np.array([[0.0, 0.0], [1.0, 1.0]]))
    image = AxesImage(axes, extent=(left, right, bottom, top), origin="lower", zorder=-4)
    owners = owners_on_grid(section.polygons, BLOCK * PIXELS)
    image.set_data(colour_grid(owners, _colours(boundary)[section.piece]))
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
        _add_line(axes, section.positions(compound, segments), colour, width)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)


def _colours(boundary: Boundary) -> np.ndarray:
    """RGBA rows (P, 4) of the pieces."""
    is_enclave, satisfies = boundary.enclosed & ~boundary.reachable, boundary.kept == Kept.YES
    is_unknown = boundary.kept == Kept.UNKNOWN
    code = np.select([boundary.reachable, satisfies, is_unknown, is_enclave], [0, 1, 2, 3], 4)
    return to_rgba_array([REACHED, UNREACHED, UNKNOWN, ENCLAVE, OUTSIDE])[code]


def _add_line(axes: Axes, segments: np.ndarray, colour: str, width: float) -> None:
    """Draw segments (S, 2, 2), given in theta."""
    codes = np.tile(np.array([MplPath.MOVETO, MplPath.LINETO], dtype=np.uint8), len(segments))
    path = MplPath(segments.reshape(-1, 2), codes)
    axes.add_artist(PathPatch(path, fill=False, edgecolor=colour, linewidth=width, capstyle="round", zorder=2))


def _area_rows(boundary: Boundary) -> list[Row]:
    """The colours with their shares, which add up to the domain."""
    satisfies, fails = boundary.kept == Kept.YES, boundary.kept == Kept.NO
    groups = [
        ("kept, reachable from θ = 0", boundary.reachable, REACHED),
        ("kept, but not reachable", satisfies & ~boundary.reachable, UNREACHED),
        ("undecided", boundary.kept == Kept.UNKNOWN, UNKNOWN),
        (f"not kept, in {counted(len(boundary.enclaves), 'enclave')}", fails & boundary.enclosed, ENCLAVE),
        ("not kept, outside", fails & ~boundary.enclosed, OUTSIDE),
    ]
    shares = [(text, boundary.share(chosen), colour) for text, chosen, colour in groups]
    return [Row(text, percent(share), colour) for text, share, colour in shares if share > 0.0 or colour == REACHED]


def _line_rows(boundary: Boundary, compound: Compound, what: str = "region") -> list[Row]:
    rows = []
    size = "area" if compound.domain.dimension == 3 else "length"
    is_only = len(boundary.components) == 1
    for place, component in enumerate(boundary.components[: len(LINES)]):
        text = "outermost boundary" if is_only else f"outermost boundary, component {place + 1}"
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


def _write_thetas(
    sheet: Sheet, result: DomainResult, boundary: Boundary, left: float, top: float, width: float
) -> None:
    lines: Sequence[str] = ["unperturbed image, θ = 0"]
    if boundary.farthest is not None and boundary.distance is not None:
        where = theta_text(boundary.farthest, result.problem.compound.domain.widths)
        lines = [*lines, f"farthest reachable: {where}, ‖θ‖ = {number(boundary.distance)}"]
    for place, text in enumerate(lines):
        y = top + 0.25 * place
        sheet.badge(left + 0.12, y, place)
        sheet.write(left + 0.34, y, text, width=width - 0.34)


def _write_header(sheet: Sheet, result: DomainResult, boundary: Boundary) -> None:
    problem, width = result.problem, WIDTH - 0.8
    title = f"{problem.model_name} on {problem.image_name}, label {problem.names[result.label]}"
    sheet.write(0.4, 0.32, f"{title}: how far {WHAT[boundary.wanted]}", size=15, weight="bold", width=width)
    facts = [extent_text(result)]
    if boundary.wanted is not Property.CR:
        facts.append(f"δ = {number(result.answer.delta)}")
    facts.append(_verdict(boundary))
    sheet.write(0.4, 0.66, " · ".join(facts), size=9.5, colour=FAINT_INK, width=width)


def _verdict(boundary: Boundary) -> str:
    if boundary.farthest is None:
        return "nothing around θ = 0 is proved to be kept"
    if not boundary.components and not boundary.enclaves:
        return "everything is reachable: there is no boundary"
    if not boundary.is_certain:
        return f"{counted(len(boundary.undecided), 'undecided piece')} beside the boundary"
    return f"{percent(boundary.enclosed_share)} of the domain lies inside the outermost boundary"
