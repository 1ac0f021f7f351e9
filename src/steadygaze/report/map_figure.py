"""From a result to the figure of its map: classification, attention, joint, and exhibits below.

Every statement in the figure is one that the result holds; nothing is verified here.
"""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..results.domain_result import DomainResult
from .exhibits import Exhibit, choose_exhibits
from .extent import extent_text
from .files import finish
from .marks import mark_thetas
from .panels import View, draw_view, make_views
from .profile import draw_profile, profile_height
from .sections import Section, make_sections
from .sheet import ROW, Sheet, name_axis
from .strip import HEIGHT as STRIP_HEIGHT
from .strip import draw_strip
from .tiles import pixel_owners
from .titles import HEADER, attention_text, delta_text, subject_text, verdict_text, write_header
from .wording import number

WIDTH = 13.0
LEFT, RIGHT = 0.85, 0.3
PANEL_GAP = 0.5
TITLE, AXIS, SECTION_TITLE = 0.3, 0.6, 0.2
LOW_PANEL = 2.9


def map_figure(result: DomainResult) -> Figure:
    """The figure of the map of up to three parameters, made with the settings of `files.drawing_settings`."""
    sections = make_sections(result)
    views, exhibits = make_views(result, sections), choose_exhibits(result)
    inner = WIDTH - LEFT - RIGHT
    is_line = result.problem.compound.domain.dimension == 1
    upper = profile_height(views) if is_line else _panels_height(views, sections)
    top = HEADER + upper + 0.3
    sheet = Sheet(WIDTH, top + STRIP_HEIGHT + 0.2)
    facts = [extent_text(result)]
    if result.is_measured:
        facts += [delta_text(result), attention_text(result.problem)]
    write_header(
        sheet, f"{subject_text(result.problem)}: {verdict_text(result.problem.property, result.verdict)}", facts
    )
    if is_line:
        draw_profile(sheet, result, sections[0], views, exhibits, LEFT - 0.45, HEADER, inner + 0.45)
    else:
        _draw_panels(sheet, result, views, sections, exhibits)
    draw_strip(sheet, result, exhibits, LEFT - 0.45, top, inner + 0.45)
    return finish(sheet.figure)


def _panel_size(sections: Sequence[Section]) -> tuple[float, float]:
    """Width and height of a panel: a square for a single section, lower where there are several."""
    width = (WIDTH - LEFT - RIGHT - 2 * PANEL_GAP) / 3
    return width, width if len(sections) == 1 else LOW_PANEL


def _panels_height(views: Sequence[View], sections: Sequence[Section]) -> float:
    titles = len(sections) + 1 if len(sections) > 1 else 0
    panels = len(sections) * (_panel_size(sections)[1] + AXIS) + titles * SECTION_TITLE
    return TITLE + panels + max(len(view.rows) for view in views) * ROW


def _draw_panels(
    sheet: Sheet, result: DomainResult, views: Sequence[View], sections: Sequence[Section], exhibits: Sequence[Exhibit]
) -> None:
    """The views beside each other, the sections of each below each other, its table at the end."""
    width, height = _panel_size(sections)
    lefts = [LEFT + place * (width + PANEL_GAP) for place in range(len(views))]
    for left, view in zip(lefts, views, strict=True):
        sheet.write(left, HEADER + 0.05, view.title, size=11, weight="bold", width=width)
    top = HEADER + TITLE
    for row, section in enumerate(sections):
        if section.held is not None:
            _write_section(sheet, result, section, top)
            top += SECTION_TITLE
        owners = pixel_owners(section)
        for place, (left, view) in enumerate(zip(lefts, views, strict=True)):
            axes = sheet.axes(left, top, width, height)
            draw_view(axes, result, view, section, view.lines[row], owners)
            _name_and_mark(axes, result, section, exhibits, (width, height), is_first=place == 0)
        top += height + AXIS
    if len(sections) > 1:
        sheet.write(LEFT, top - 0.02, "Shares of the whole domain, all parameters at once:", size=9.5)
        top += SECTION_TITLE
    for left, view in zip(lefts, views, strict=True):
        sheet.table(left, top, width, view.rows)


def _write_section(sheet: Sheet, result: DomainResult, section: Section, top: float) -> None:
    """The line above a row of panels: which parameter is held at which value."""
    assert section.held is not None
    axis, value = section.held
    names = result.problem.compound.domain.names
    plane = " and ".join(names[other] for other in section.axes)
    text = f"Section of the map at {names[axis]} = {number(value)}: {plane}"
    sheet.write(LEFT, top + 0.02, text, size=9.5, width=WIDTH - LEFT - RIGHT)


def _name_and_mark(
    axes: Axes, result: DomainResult, section: Section, exhibits: Sequence[Exhibit], size: tuple[float, float], *,
    is_first: bool,
) -> None:  # fmt: skip
    compound = result.problem.compound
    thetas = [e.point.theta if section.shows(e.point.theta) else None for e in exhibits]
    mark_thetas(axes, [None if theta is None else theta[list(section.axes)] for theta in thetas], size)
    below, beside = (compound.domain.names[axis] for axis in section.axes)
    name_axis(axes, below, is_below=True)
    if is_first:
        name_axis(axes, beside, is_below=False)
    else:
        axes.tick_params(labelleft=False)
