"""One view of a result drawn into axes that the caller owns: pieces, lines, names of the axes, and a legend."""

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ...errors import OptionError
from ...labels import Property
from ...results.result import Result
from ..drawing.colours import HATCHED, INK, PHASE, Row, View
from ..drawing.plane_sections import make_sections
from ..drawing.raster import draw_view, name_axes, pixel_owners
from ..drawing.sheet import printable
from ..titles import share_not_reached
from .map import make_views
from .visited import draw_visited, make_search_views

PROPERTIES = tuple(one.value for one in Property)


def draw_panel(result: Result, axes: Axes, by: str) -> Axes:
    """Draw the label ("cr"), the attention ("ar") or both; of three parameters the first section."""
    if by not in PROPERTIES:
        raise OptionError(f"unknown by {by!r}; expected {', '.join(PROPERTIES)}")
    is_search = result.tiling.is_search
    section, *others = make_sections(result, may_be_grid=not is_search)
    view = _search_view(result, by) if is_search else _map_view(result, [section, *others], by)
    if is_search:
        draw_visited(axes, result, view, section, pixel_owners(section))
    else:
        draw_view(axes, section, view, pixel_owners(section), is_partial=share_not_reached(result) > 0.0)
    name_axes(axes, section)
    title = f"{view.title} ({section.place})" if section.place else view.title
    axes.set_title(printable(title), fontsize=10, parse_math=False)
    legend = axes.legend(
        handles=[_handle(row) for row in view.rows], loc="upper center", bbox_to_anchor=(0.5, -0.13), fontsize=8,
        frameon=False,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    return axes


def _map_view(result: Result, sections: list, by: str) -> View:
    return dict(zip(PROPERTIES, make_views(result, sections), strict=True))[by]


def _search_view(result: Result, by: str) -> View:
    """The view of a search for a property; OptionError if the search does not answer it."""
    views = [view for view in make_search_views(result) if view.title != PHASE.title]
    asked = [name for name in PROPERTIES if len(views) == len(PROPERTIES) or name == result.question.property.value]
    if by not in asked:
        raise OptionError(f"this search answers only {', '.join(asked)}; leave by out")
    return views[asked.index(by)]


def _handle(row: Row) -> Patch | Line2D:
    """The entry of a legend for a row of a table."""
    text = printable(f"{row.text}  {row.share}".rstrip())
    if row.is_line:
        return Line2D([], [], color=row.colour, linestyle="--" if row.is_dashed else "-", label=text)
    if row.is_hatched:
        return Patch(**HATCHED, label=text)
    colour = row.colour if row.shades is None else row.shades(0.5)
    return Patch(facecolor=colour, edgecolor=INK, linewidth=0.5, hatch=row.hatch, label=text)
