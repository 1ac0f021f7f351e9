"""From a boundary to its figure: what zero can reach, what it cannot, enclaves, the outermost boundary.

Every statement in the figure is one that the boundary holds; nothing is decided here.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ..boundary import Boundary
from ..results.domain_result import DomainResult
from ..verdict import Property
from .boundary_panels import SECTION_TITLE, area_rows, draw_boundary_panel, line_rows
from .extent import extent_text
from .files import finish, write_figure
from .sections import make_sections
from .sheet import ROW, Sheet
from .titles import HEADER, subject_text, write_header
from .wording import counted, number, percent, theta_text

WIDTH, LEFT = 11.2, 0.85
PANEL, BAND = 5.4, 0.7
GAP = 0.75
TABLE_GAP, TABLE_RIGHT = 0.45, 0.35

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
    rows, lines = area_rows(boundary), line_rows(boundary, compound, "region" if result.method == "map" else "piece")
    table = ROW * (len(rows) + len(lines) + 2) + 0.6
    is_line, is_single = compound.domain.dimension == 1, len(sections) == 1
    width = PANEL if is_single else (WIDTH - LEFT - TABLE_RIGHT - (len(sections) - 1) * GAP) / len(sections)
    height = BAND if is_line else width
    below = HEADER + (0.0 if is_single else SECTION_TITLE) + height + 0.6
    bottom = max(below, HEADER + table) if is_single else below + table
    sheet = Sheet(WIDTH, bottom + 0.15)
    _write_header(sheet, result, boundary)
    for place, section in enumerate(sections):
        corner = LEFT + place * (width + GAP), below - 0.6 - height
        thetas = [np.zeros(compound.domain.dimension), boundary.farthest]
        draw_boundary_panel(sheet, result, boundary, section, corner, (width, height), thetas)
    left, top = (LEFT + PANEL + TABLE_GAP, HEADER) if is_single else (LEFT, below + 0.1)
    width = WIDTH - left - TABLE_RIGHT if is_single else PANEL
    sheet.table(left, top, width, rows)
    top += ROW * len(rows) + 0.2
    sheet.table(left, top, width, lines)
    _write_thetas(sheet, result, boundary, left, top + ROW * len(lines) + 0.25, width)
    return finish(sheet.figure)


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
    facts = [extent_text(result)]
    if boundary.wanted is not Property.CR:
        facts.append(f"δ = {number(result.answer.delta)}")
    facts.append(boundary_text(boundary))
    write_header(sheet, f"{subject_text(result.problem)}: how far {WHAT[boundary.wanted]}", facts)


def boundary_text(boundary: Boundary) -> str:
    """How much the boundary encloses, or why there is none."""
    if boundary.farthest is None:
        return "nothing around θ = 0 is proved to be kept"
    if not boundary.components and not boundary.enclaves:
        return "everything is reachable: there is no boundary"
    if not boundary.is_certain:
        return f"{counted(len(boundary.undecided), 'undecided piece')} beside the boundary"
    return f"{percent(boundary.enclosed_share)} of the domain lies inside the outermost boundary"
