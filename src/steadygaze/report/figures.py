"""From a result to the figure of its map, as PNG and SVG: classification, attention, joint, and exhibits below.

Every statement in the figure is one that the result holds; nothing is verified here. The same result gives the same
bytes. matplotlib keeps its settings in one place for all threads, so figures are drawn one at a time, with its
defaults (whatever style the caller has set), and the caller's settings are put back.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from ..errors import StoreError
from ..problem import Problem
from ..refine.merged import MOST_DRAWN
from ..results.domain_result import DomainResult
from ..verdict import Property, Verdict
from .colours import FAINT_INK
from .exhibits import Exhibit, choose_exhibits
from .extent import extent_text
from .marks import mark_thetas
from .panels import View, draw_view, make_views, pixel_owners
from .profile import draw_profile, profile_height
from .sections import Section, make_sections
from .sheet import ROW, Sheet, name_axis
from .strip import HEIGHT as STRIP_HEIGHT
from .strip import draw_strip
from .wording import MAIN_FONT, number

WIDTH = 13.0
LEFT, RIGHT = 0.85, 0.3
HEADER = 0.95
PANEL_GAP = 0.5
TITLE, AXIS, SECTION_TITLE = 0.3, 0.6, 0.2
LOW_PANEL = 2.9
PNG_DPI, SVG_DPI = 130, 200

_ONE_AT_A_TIME = threading.Lock()
_SETTINGS = {
    "font.family": MAIN_FONT,
    "svg.hashsalt": "steadygaze",
    "hatch.linewidth": 0.6,
    "image.composite_image": False,
}


def draw_map(result: DomainResult, path: str | Path) -> list[Path]:
    """Write the figure of a map to PATH.png and PATH.svg (a suffix .png or .svg of path is dropped); return both.

    From four parameters on there is no picture, and nothing is written or returned.
    """
    if result.problem.compound.domain.dimension > MOST_DRAWN:
        return []
    return write_figure(lambda: _figure(result), path)


def write_figure(make: Callable[[], Figure], path: str | Path) -> list[Path]:
    """Make a figure with the settings of all figures and write it as PNG and SVG, as `draw_map` does; return both."""
    target = Path(path)
    if target.suffix.lower() in (".png", ".svg"):
        target = target.with_suffix("")
    files = [target.with_name(target.name + suffix) for suffix in (".png", ".svg")]
    with _ONE_AT_A_TIME, style.context(["default", _SETTINGS]):
        figure = make()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(files[0], dpi=PNG_DPI, metadata={"Software": None})
            figure.savefig(files[1], dpi=SVG_DPI, metadata={"Date": None, "Creator": "steadygaze"})
        except OSError as error:
            raise StoreError(
                f"{target}: the figure cannot be written ({error.strerror}); choose another place"
            ) from None
    return files


def map_figure(result: DomainResult) -> Figure:
    """The figure that `draw_map` writes, for notebooks and for changes of one's own."""
    with _ONE_AT_A_TIME, style.context(["default", _SETTINGS]):
        return _figure(result)


def _figure(result: DomainResult) -> Figure:
    sections = make_sections(result)
    views, exhibits = make_views(result, sections), choose_exhibits(result)
    inner = WIDTH - LEFT - RIGHT
    is_line = result.problem.compound.domain.dimension == 1
    upper = profile_height(views) if is_line else _panels_height(views, sections)
    top = HEADER + upper + 0.3
    sheet = Sheet(WIDTH, top + STRIP_HEIGHT + 0.2)
    _write_header(sheet, result)
    if is_line:
        draw_profile(sheet, result, sections[0], views, exhibits, LEFT - 0.45, HEADER, inner + 0.45)
    else:
        _draw_panels(sheet, result, views, sections, exhibits)
    draw_strip(sheet, result, exhibits, LEFT - 0.45, top, inner + 0.45)
    for text in sheet.figure.findobj(Text):
        text.set_parse_math(False)
    return sheet.figure


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
    thetas = [e.point.theta if section.shows(compound, e.point.theta) else None for e in exhibits]
    mark_thetas(axes, [None if theta is None else theta[list(section.axes)] for theta in thetas], size)
    below, beside = (compound.domain.names[axis] for axis in section.axes)
    name_axis(axes, below, is_below=True)
    if is_first:
        name_axis(axes, beside, is_below=False)
    else:
        axes.tick_params(labelleft=False)


def _write_header(sheet: Sheet, result: DomainResult) -> None:
    problem, width = result.problem, WIDTH - 0.8
    sheet.write(0.4, 0.32, title_text(problem, result.verdict), size=15, weight="bold", width=width)
    sheet.write(0.4, 0.66, " · ".join(_facts(result)), size=9.5, colour=FAINT_INK, width=width)


def title_text(problem: Problem, verdict: Verdict) -> str:
    """What was asked of what, and the verdict."""
    what = {Property.CR: "label", Property.AR: "attention", Property.BOTH: "label and attention"}[problem.property]
    outcome = {
        Verdict.ROBUST: f"{what} proved robust",
        Verdict.NOT_ROBUST: f"{what} not robust",
        Verdict.UNDECIDED: f"{what} undecided",
    }[verdict]
    return f"{problem.model_name} on {problem.image_name}, label {problem.names[problem.label]}: {outcome}"


def attention_text(problem: Problem) -> str:
    """How attention maps are compared, and of which classes."""
    options, chosen = problem.attention, problem.attention.classes
    if chosen is None:
        classes = "all classes"
    else:
        classes = f"class{'' if len(chosen) == 1 else 'es'} {', '.join(problem.names[j] for j in chosen)}"
    return f"filter {options.filter.name}, distance {options.distance.name}, {classes}"


def _facts(result: DomainResult) -> list[str]:
    delta = f"δ = {number(result.answer.delta)}"
    if result.delta.is_relative:
        delta += f" ({result.delta} of the original map's size {number(result.map_size)})"
    return [extent_text(result), delta, attention_text(result.problem)] if result.is_measured else [extent_text(result)]
