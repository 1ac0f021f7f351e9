"""The figure of both outermost boundaries: that of the label, that of the attention, images at chosen thetas between.

Every statement in the figure is one that the boundaries hold; nothing is decided here.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ..boundary import Boundary
from ..results.domain_result import DomainResult, Point
from ..verdict import Property
from .boundary_panels import SECTION_TITLE, area_rows, draw_boundary_panel, line_rows
from .exhibits import Exhibit, choose_beside
from .extent import extent_text
from .files import finish
from .pictures import CHANGED_INK, show_image
from .sections import Section, make_sections
from .sheet import ROW, Row, Sheet
from .strip import CAPTION, write_caption
from .titles import HEADER, attention_text, delta_text, subject_text, write_header
from .wording import comparison

WIDTH, LEFT, RIGHT = 13.0, 0.85, 0.3
TITLE, AXIS, GAP = 0.3, 0.6, 0.35
PANEL, LOW_PANEL, BAND = 3.72, 2.7, 0.6
SIDE, PITCH, IMAGE_GAP = 1.25, 1.76, 0.33
TICKS = 0.2
"""Room for the numbers on the left of the second panel."""
JUST_INSIDE = 0.01
"""How far into its piece a farthest theta is moved, as a share of the way to the centre, to show what holds there."""
TITLES = {Property.CR: "How far the label is kept", Property.AR: "How far the attention is kept"}


def boundaries_figure(result: DomainResult, thetas: Sequence[np.ndarray]) -> Figure:
    """Both boundaries side by side with images at thetas (d,) between them, or at telling ones if none are given."""
    boundaries = {wanted: result.boundary(wanted) for wanted in (Property.CR, Property.AR)}
    given = [result.at(theta) for theta in thetas]
    exhibits = tuple(Exhibit(_title(result, point), point) for point in given) or _chosen(result, boundaries)
    sections = make_sections(result)
    draw = _draw_bands if result.problem.perturbed.domain.dimension == 1 else _draw_sides
    sheet = draw(result, boundaries, exhibits, sections)
    facts = [extent_text(result), delta_text(result), attention_text(result.problem)]
    write_header(sheet, f"{subject_text(result.problem)}: the outermost boundaries", facts)
    return finish(sheet.figure)


def _chosen(result: DomainResult, boundaries: dict[Property, Boundary]) -> tuple[Exhibit, ...]:
    """Zero, the farthest theta of each boundary (that of the attention first), and others that tell them apart."""
    farthest = [
        (f"farthest {wanted.value.upper()}", _just_inside(result, boundary, boundary.farthest))
        for wanted, boundary in reversed(boundaries.items())
        if boundary.farthest is not None and 0.0 < boundary.reachable_share < 1.0
    ]
    return choose_beside(result, farthest)


def _just_inside(result: DomainResult, boundary: Boundary, theta: np.ndarray) -> np.ndarray:
    """A theta beside a corner of what zero can reach, inside of a piece of it: on the border itself both sides meet."""
    compound, polytopes = result.problem.compound, result.answer.joint.polytopes
    owner = np.repeat(np.arange(len(polytopes)), np.diff(polytopes.starts))
    chosen = np.flatnonzero(boundary.reachable[owner])
    corner = compound.to_unit(theta[None])[0]
    apart = np.abs(polytopes.points[chosen] - corner)[:, : compound.domain.dimension].max(axis=1)
    piece = owner[chosen[np.argmin(apart)]]
    return np.asarray(compound.to_theta((corner + JUST_INSIDE * (polytopes.centres[piece] - corner))[None])[0])


def _title(result: DomainResult, point: Point) -> str:
    if not np.any(point.theta):
        return "unperturbed"
    label, attention = point.label == result.label, point.inconsistency <= result.answer.delta
    return {(True, True): "both kept", (True, False): "other evidence", (False, True): "MR, same evidence"}.get(
        (label, attention), "neither kept"
    )


def _draw_sides(
    result: DomainResult, boundaries: dict[Property, Boundary], exhibits: Sequence[Exhibit], sections: Sequence[Section]
) -> Sheet:
    """The label on the left, the attention on the right, the sections of each below each other, images between."""
    is_single = len(sections) == 1
    size = (PANEL, PANEL) if is_single else (PANEL, LOW_PANEL)
    pitch = size[1] + AXIS + (0.0 if is_single else SECTION_TITLE)
    rows = {wanted: _rows(result, boundary) for wanted, boundary in boundaries.items()}
    panels = TITLE + len(sections) * pitch
    table = ROW * max(len(part) for part in rows.values())
    middle = LEFT + PANEL + GAP
    room = WIDTH - RIGHT - PANEL - GAP - TICKS - middle
    columns = max(1, int((room + PITCH - SIDE) / PITCH))
    images = TITLE + -(-len(exhibits) // columns) * (CAPTION + SIDE + IMAGE_GAP)
    sheet = Sheet(WIDTH, HEADER + max(panels + table, images) + 0.2)
    for place, (wanted, boundary) in enumerate(boundaries.items()):
        left = LEFT if place == 0 else WIDTH - RIGHT - PANEL
        sheet.write(left, HEADER + 0.05, TITLES[wanted], size=11, weight="bold", width=PANEL)
        for row, section in enumerate(sections):
            top = HEADER + TITLE + row * pitch + (0.0 if is_single else SECTION_TITLE)
            thetas = [exhibit.point.theta for exhibit in exhibits]
            draw_boundary_panel(sheet, result, boundary, section, (left, top), size, thetas, has_name_beside=place == 0)
        sheet.table(left, HEADER + panels, PANEL, rows[wanted])
    _draw_images(sheet, result, exhibits, middle, HEADER + 0.05, columns)
    return sheet


def _draw_bands(
    result: DomainResult, boundaries: dict[Property, Boundary], exhibits: Sequence[Exhibit], sections: Sequence[Section]
) -> Sheet:
    """The bands of a single parameter side by side, the images below."""
    width = (WIDTH - LEFT - RIGHT - GAP) / 2
    rows = {wanted: _rows(result, boundary) for wanted, boundary in boundaries.items()}
    table = ROW * max(len(part) for part in rows.values())
    top = HEADER + TITLE + BAND + AXIS
    sheet = Sheet(WIDTH, top + table + 0.35 + CAPTION + SIDE + IMAGE_GAP + 0.1)
    for place, (wanted, boundary) in enumerate(boundaries.items()):
        left = LEFT + place * (width + GAP)
        sheet.write(left, HEADER + 0.05, TITLES[wanted], size=11, weight="bold", width=width)
        thetas = [exhibit.point.theta for exhibit in exhibits]
        draw_boundary_panel(sheet, result, boundary, sections[0], (left, HEADER + TITLE), (width, BAND), thetas)
        sheet.table(left, top, width, rows[wanted])
    _draw_images(sheet, result, exhibits, LEFT, top + table + 0.3, len(exhibits))
    return sheet


def _rows(result: DomainResult, boundary: Boundary) -> list[Row]:
    what = "region" if result.method == "map" else "piece"
    return [*area_rows(boundary), *line_rows(boundary, result.problem.compound, what, is_short=True)]


def _draw_images(
    sheet: Sheet, result: DomainResult, exhibits: Sequence[Exhibit], left: float, top: float, columns: int
) -> None:
    """The images in rows, each with its caption above and its inconsistency below."""
    delta = result.answer.delta
    for place, exhibit in enumerate(exhibits):
        x = left + place % columns * PITCH
        y = top + place // columns * (CAPTION + SIDE + IMAGE_GAP)
        sheet.badge(x + 0.1, y + 0.08, place)
        write_caption(sheet, result, exhibit, x, y, PITCH - 0.1)
        show_image(sheet, x, y + CAPTION, SIDE, exhibit.point.image)
        is_kept = exhibit.point.inconsistency <= delta
        look = {} if is_kept else {"colour": CHANGED_INK, "weight": "bold"}
        words = comparison(exhibit.point.inconsistency, delta)
        sheet.write(x, y + CAPTION + SIDE + 0.1, words, size=8.5, width=PITCH - 0.1, **look)
