"""Figures of outermost boundaries: one property with a table, or label and attention side by side with images.

Panels show the parts reachable from zero, other parts, enclaves, and the boundary. Every statement comes from the
boundary; nothing is decided here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ...boundary import Boundary
from ...compound import Compound
from ...labels import Kept, Label, Property
from ...results.point import Point
from ...results.result import Result
from ...words import caption_theta, counted, percent_down, percent_up, rounded
from ..drawing.colours import CHANGED_INK, INK, UNKNOWN, WINNERS, Row
from ..drawing.exhibits import CAPTION, Exhibit, checked_thetas, choose_beside, show_image, write_caption
from ..drawing.marks import mark_section
from ..drawing.outlines import image_outlines
from ..drawing.plane_sections import Section, make_sections
from ..drawing.raster import (
    add_lines,
    add_picture,
    all_pixel_owners,
    colour_grid,
    hatch_grid,
    name_axes,
    section_borders,
    set_limits,
)
from ..drawing.sheet import HEADER, ROW, Sheet, write_figure, write_header
from ..titles import KEPT_WORDS, attention_text, delta_text, extent_text, subject_text

LEFT, GAP, AXIS = 0.85, 0.35, 0.6
SECTION_TITLE = 0.2
"""Height in inches of the line that names a section."""
SINGLE_WIDTH, SINGLE_PANEL, SINGLE_BAND, SINGLE_GAP = 11.2, 5.4, 0.7, 0.75
TABLE_GAP, TABLE_RIGHT = 0.45, 0.35
WIDTH, RIGHT, TITLE = 13.0, 0.3, 0.3
PANEL, LOW_PANEL, BAND = 3.72, 2.7, 0.6
SIDE, PITCH, IMAGE_GAP = 1.25, 1.76, 0.33
TICKS = 0.2
"""Room for the numbers on the left of the second panel."""
JUST_INSIDE = 0.01
"""How far a farthest theta is moved into its piece to show that piece, as a share of the way to the centre."""
TITLES = {Property.CR: "How far the label is kept", Property.AR: "How far the attention is kept"}


@dataclass(frozen=True)
class Look:
    """The look and the meaning of a kind of piece."""

    text: str
    colour: str
    hatch: str = ""


LOOKS = (
    Look("kept, reachable from θ = 0", "#a9cbe8"),
    Look("kept, but not reachable", "#cbb8e0", "/////"),
    Look(Label.UNDECIDED, UNKNOWN, "xxxx"),
    Look("not kept, in {enclaves}", "#f0a63c", "\\\\\\\\\\"),
    Look("not kept, outside", "#f3f1ee"),
)
"""By their codes; hatching separates looks that are alike in grey print."""
LINES = (INK, *WINNERS)
"""Colours of the components of the outermost boundary, the longest first; further ones share the last."""
ENCLAVE_LINE = "#8a4b00"


def draw_boundary(
    result: Result, boundary: Boundary, path: str | Path, *, formats: Sequence[str] = ("png",)
) -> list[Path]:
    """Write the figure of a boundary to PATH.png and so on, one file for each format; return the files."""
    return write_figure(lambda: boundary_figure(result, boundary), path, formats=formats)


def boundary_figure(result: Result, boundary: Boundary) -> Figure:
    """The map with the outermost boundary of one property (sections of it with three parameters) and a table."""
    domain, sections = result.question.compound.domain, make_sections(result)
    rows, lines = area_rows(boundary), line_rows(boundary, result.question.compound, _noun(result))
    table = ROW * (len(rows) + len(lines) + 2) + 0.6
    count = len(sections)
    is_single = count == 1
    width = SINGLE_PANEL if is_single else (SINGLE_WIDTH - LEFT - TABLE_RIGHT - (count - 1) * SINGLE_GAP) / count
    height = SINGLE_BAND if domain.dimension == 1 else width
    below = HEADER + (0.0 if is_single else SECTION_TITLE) + height + AXIS
    bottom = max(below, HEADER + table) if is_single else below + table
    sheet = Sheet(SINGLE_WIDTH, bottom + 0.15)
    facts = [extent_text(result)]
    if boundary.wanted is not Property.CR:
        facts.append(delta_text(result))
    title = f"{subject_text(result.question)}: how far {KEPT_WORDS[boundary.wanted]}"
    write_header(sheet, title, [*facts, boundary_text(boundary)])
    thetas = [np.zeros(domain.dimension), boundary.farthest]
    for place, section in enumerate(sections):
        corner = LEFT + place * (width + SINGLE_GAP), below - AXIS - height
        _draw_panel(sheet, boundary, section, corner, (width, height), thetas)
    left, top = (LEFT + SINGLE_PANEL + TABLE_GAP, HEADER) if is_single else (LEFT, below + 0.1)
    width = SINGLE_WIDTH - left - TABLE_RIGHT if is_single else SINGLE_PANEL
    sheet.table(left, top, width, rows)
    top += ROW * len(rows) + 0.2
    sheet.table(left, top, width, lines)
    texts = ["unperturbed image, θ = 0"]
    if boundary.farthest is not None and boundary.distance is not None:
        where = caption_theta(boundary.farthest, domain.widths, domain.names)
        texts.append(f"farthest reachable: {where}, ‖θ‖ = {rounded(boundary.distance, 4)}")
    for place, text in enumerate(texts):
        y = top + ROW * len(lines) + 0.25 + 0.25 * place
        sheet.badge(left + 0.12, y, place)
        sheet.write(left + 0.34, y, text, width=width - 0.34)
    return sheet.figure


def boundary_text(boundary: Boundary) -> str:
    """How much the boundary encloses, or why there is none."""
    if boundary.farthest is None:
        return "nothing is proved to be kept around θ = 0"
    if not boundary.components and not boundary.enclaves:
        return "everything is reachable: there is no boundary"
    if not boundary.is_certain:
        return f"{counted(len(boundary.undecided), 'undecided piece')} beside the boundary"
    inside = percent_down(max(0.0, boundary.enclosed_share - boundary.strip_share))
    return f"{inside} of the domain lies inside the outermost boundary"


def boundaries_figure(result: Result, at: Sequence[ArrayLike] = ()) -> Figure:
    """Both boundaries side by side with images between them, at thetas (d,) or by default at instructive ones."""
    boundaries = {wanted: result.boundary(wanted) for wanted in (Property.CR, Property.AR)}
    given = [result.at(theta) for theta in checked_thetas(result.question.perturbed.domain, at)]
    exhibits = tuple(Exhibit(_title(result, point), point) for point in given) or _chosen(result, boundaries)
    sheet = _draw_both(result, boundaries, exhibits, make_sections(result))
    facts = [extent_text(result), delta_text(result), attention_text(result.question)]
    write_header(sheet, f"{subject_text(result.question)}: the outermost boundaries", facts)
    return sheet.figure


def _chosen(result: Result, boundaries: dict[Property, Boundary]) -> tuple[Exhibit, ...]:
    """Zero, the farthest theta of each boundary (attention first), and others that distinguish them."""
    farthest = [
        (f"farthest {wanted.value.upper()}", _just_inside(result, boundary, boundary.farthest))
        for wanted, boundary in reversed(boundaries.items())
        if boundary.farthest is not None and 0.0 < boundary.reachable_share < 1.0
    ]
    return choose_beside(result, farthest)


def _just_inside(result: Result, boundary: Boundary, theta: np.ndarray) -> np.ndarray:
    """A theta inside a reachable piece, beside the corner theta: on the border itself both sides meet."""
    compound, dimension = result.question.compound, result.question.compound.domain.dimension
    corner = compound.to_unit(theta[None])[0]
    box = np.stack([corner, corner])
    # With one parameter, the second coordinate has no meaning.
    box[:, dimension:] = [[0.0], [1.0]]
    nearest, centre = np.inf, corner
    for block in result.answer.blocks(box):
        polytopes = block.joint.polytopes
        chosen = np.flatnonzero(boundary.reachable[block.piece + polytopes.owner])
        apart = np.abs(polytopes.points[chosen] - corner)[:, :dimension].max(axis=1)
        if apart.min(initial=np.inf) < nearest:
            nearest, centre = apart.min(), polytopes.centres[polytopes.owner[chosen[np.argmin(apart)]]]
    return np.asarray(compound.to_theta((corner + JUST_INSIDE * (centre - corner))[None])[0])


def _title(result: Result, point: Point) -> str:
    if not np.any(point.theta):
        return "unperturbed"
    label, attention = point.label == result.label, point.inconsistency <= result.answer.delta
    return {(True, True): "both kept", (True, False): "other evidence", (False, True): "MR, same evidence"}.get(
        (label, attention), "neither kept"
    )


def _draw_both(
    result: Result, boundaries: dict[Property, Boundary], exhibits: Sequence[Exhibit], sections: Sequence[Section]
) -> Sheet:
    """The label on the left, the attention on the right, the sections of each one below the other.

    The images are between them; with one parameter, whose panels are bands, below them.
    """
    is_line, count = sections[0].domain.dimension == 1, len(sections)
    size = ((WIDTH - LEFT - RIGHT - GAP) / 2, BAND) if is_line else (PANEL, PANEL if count == 1 else LOW_PANEL)
    title = 0.0 if count == 1 else SECTION_TITLE
    pitch = size[1] + AXIS + title
    rows = {wanted: _rows(result, boundary) for wanted, boundary in boundaries.items()}
    panels = HEADER + TITLE + count * pitch
    below = panels + ROW * max(len(part) for part in rows.values())
    middle, line = LEFT + PANEL + GAP, CAPTION + SIDE + IMAGE_GAP
    columns = max(1, int((WIDTH - RIGHT - PANEL - GAP - TICKS - middle + PITCH - SIDE) / PITCH))
    bottom = HEADER + TITLE + -(-len(exhibits) // columns) * line
    sheet = Sheet(WIDTH, below + 0.35 + line + 0.1 if is_line else max(below, bottom) + 0.2)
    thetas = [exhibit.point.theta for exhibit in exhibits]
    for left, (wanted, boundary) in zip((LEFT, WIDTH - RIGHT - size[0]), boundaries.items(), strict=True):
        sheet.write(left, HEADER + 0.05, TITLES[wanted], size=11, weight="bold", width=size[0])
        for row, section in enumerate(sections):
            corner = left, HEADER + TITLE + row * pitch + title
            _draw_panel(sheet, boundary, section, corner, size, thetas, has_name_beside=left == LEFT)
        sheet.table(left, panels, size[0], rows[wanted])
    if is_line:
        _draw_images(sheet, result, exhibits, LEFT, below + 0.3, len(exhibits))
    else:
        _draw_images(sheet, result, exhibits, middle, HEADER + 0.05, columns)
    return sheet


def _noun(result: Result) -> str:
    return "region" if result.method == "map" else "piece"


def _rows(result: Result, boundary: Boundary) -> list[Row]:
    return [*area_rows(boundary), *line_rows(boundary, result.question.compound, _noun(result), is_short=True)]


def _draw_images(
    sheet: Sheet, result: Result, exhibits: Sequence[Exhibit], left: float, top: float, columns: int
) -> None:
    """The images in rows, each with its caption above and its inconsistency below."""
    delta = result.answer.delta
    for place, exhibit in enumerate(exhibits):
        x = left + place % columns * PITCH
        y = top + place // columns * (CAPTION + SIDE + IMAGE_GAP)
        write_caption(sheet, result, place, exhibit, x, y, PITCH - 0.1)
        show_image(sheet, x, y + CAPTION, SIDE, exhibit.point.image, outlines=image_outlines(exhibit.point))
        is_kept = exhibit.point.inconsistency <= delta
        look = {} if is_kept else {"colour": CHANGED_INK, "weight": "bold"}
        words = result.question.attention.measure.compared(exhibit.point.inconsistency, delta)
        sheet.write(x, y + CAPTION + SIDE + 0.1, words, size=8.5, width=PITCH - 0.1, **look)


def _draw_panel(
    sheet: Sheet, boundary: Boundary, section: Section, corner: tuple[float, float], size: tuple[float, float],
    thetas: Sequence[np.ndarray | None], *, has_name_beside: bool = True,
) -> None:  # fmt: skip
    """One panel with its pieces and lines, and numbers at the thetas (d,) it shows; its name is above."""
    left, top = corner
    sheet.write(left, top - SECTION_TITLE, section.place, size=9.5, weight="bold", width=size[0])
    axes = sheet.axes(left, top, *size)
    _draw_pieces(axes, boundary, section)
    name_axes(axes, section, has_name_beside=has_name_beside)
    mark_section(axes, section, thetas, size)


def _draw_pieces(axes: Axes, boundary: Boundary, section: Section) -> None:
    """The pieces as a picture, the frontiers as lines."""
    codes = np.append(piece_codes(boundary), -1)[all_pixel_owners(section)]
    picture = colour_grid(codes, to_rgba_array([look.colour for look in LOOKS]))
    for code, look in enumerate(LOOKS):
        for is_rising, letter in ((True, "/"), (False, "\\")):
            if letter in look.hatch or "x" in look.hatch:
                hatch_grid(picture, codes, np.arange(len(LOOKS)) == code, is_rising=is_rising)
    add_picture(axes, section, picture)
    # Of each piece beyond a frontier, the place of its colour; −1 for all others.
    line = np.full(len(boundary.kept), -1, dtype=np.int8)
    for place, component in enumerate(boundary.components):
        line[component.pieces] = min(place, len(LINES) - 1)
    for enclave in boundary.enclaves:
        line[enclave.pieces] = len(LINES)
    for place, colour in reversed(list(enumerate((*LINES, ENCLAVE_LINE)))):
        sides = np.select([boundary.reachable, line == place], [0, 1], -1)
        (segments,) = section_borders([section], sides, passed_over=-1)
        add_lines(axes, section.positions(segments), colour, 1.9 if colour in LINES else 1.2, zorder=2)
    set_limits(axes, section)


def piece_codes(boundary: Boundary) -> np.ndarray:
    """The code in `LOOKS` of each piece (P,)."""
    is_enclave, satisfies = boundary.enclosed & ~boundary.reachable, boundary.kept == Kept.YES
    is_unknown = boundary.kept == Kept.UNKNOWN
    return np.select([boundary.reachable, satisfies, is_unknown, is_enclave], [0, 1, 2, 3], 4)


def area_rows(boundary: Boundary) -> list[Row]:
    """The colours with their shares: proved for the reachable part, at most for the others, as in the terminal."""
    codes = piece_codes(boundary)
    rows = []
    for code, look in enumerate(LOOKS):
        share = boundary.share(codes == code)
        if share > 0.0 or code == 0:
            text = look.text.format(enclaves=counted(len(boundary.enclaves), "enclave"))
            words = percent_up(share) if code else percent_down(max(0.0, share - boundary.strip_share))
            rows.append(Row(text, words, look.colour, hatch=look.hatch))
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
            rows.append(
                Row(
                    text,
                    caption_theta(theta, compound.domain.widths, compound.domain.names),
                    LINES[place],
                    is_line=True,
                )
            )
        else:
            text += f" (along {counted(len(component.inner), what)})"
            rows.append(Row(text, f"{size} {rounded(component.measure, 3)}", LINES[place], is_line=True))
    rest = boundary.components[len(LINES) :]
    if rest:
        length = f"{size} {rounded(sum(component.measure for component in rest), 3)}"
        rows.append(Row(counted(len(rest), "further component"), length, LINES[-1], is_line=True))
    if boundary.enclaves:
        rows.append(Row("borders of enclaves", colour=ENCLAVE_LINE, is_line=True))
    return rows
