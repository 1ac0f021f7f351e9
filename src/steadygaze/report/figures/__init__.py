"""Figures of results: the request is checked, the module of its kind draws the figure, and its files are written.

`draw_panel` draws one view of a result into axes of the caller.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TypedDict, Unpack, cast
from weakref import WeakKeyDictionary

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from ...errors import OptionError, did_you_mean
from ...labels import Property
from ...results.result import Result
from ...tolerances import MAX_MAP_PARAMETERS
from ..drawing.colours import HATCHED, INK, PHASE, Row, View
from ..drawing.exhibits import MOST_SHOWN
from ..drawing.plane_sections import make_sections
from ..drawing.raster import draw_view, name_axes, pixel_owners
from ..drawing.sheet import drawing_settings, figure_bytes, figure_files, printable, refuse_in_the_way, write_figure
from ..figure_kinds import KINDS, FigureKind
from ..titles import share_not_reached
from .map import make_views, map_figure
from .sections import sections_figure
from .tiling import BY
from .visited import draw_visited, make_search_views, search_figure

PROPERTIES = tuple(one.value for one in Property)


class Wishes(TypedDict, total=False):
    """The options of figures.

    at: thetas (d,): path goes through them, strip fixes the other parameters there, boundary shows them, columns has a
    column for each. along: the parameter of a strip, given by its number, from 1, or the beginning of its name. steps:
    the number of images in path and strip. by: "cr", "ar", "both" or "pattern", the colours of a tiling.
    """

    at: Sequence[ArrayLike]
    along: str | int | None
    steps: int | None
    by: str | None


_DRAWN: WeakKeyDictionary[Result, dict[str, bytes]] = WeakKeyDictionary()
"""The pictures of results, by format: a report shows the one that a run has drawn."""


def result_figure(result: Result) -> Figure:
    """The figure that shows a result: the map, sections of more than three parameters, or the visited regions."""
    if result.tiling.is_search:
        return search_figure(result)
    is_flat = result.question.perturbed.domain.dimension <= MAX_MAP_PARAMETERS
    return map_figure(result) if is_flat else sections_figure(result)


def has_figure(result: Result) -> bool:
    """Whether there is a figure of a result: searches of more than three parameters have none."""
    return not result.tiling.is_search or result.question.perturbed.domain.dimension <= MAX_MAP_PARAMETERS


def draw_result(result: Result, path: str | Path, *, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write the figure of a result to PATH.png and so on, one file for each format; return the files.

    A search of four parameters has no picture: nothing is written or returned.
    """
    if not has_figure(result):
        return []
    return write_figure(lambda: result_figure(result), path, formats=formats, drawn=_DRAWN.setdefault(result, {}))


def plot(
    result: Result,
    path: str | Path | None = None,
    *,
    formats: Sequence[str] = ("png",),
    ax: Axes | None = None,
    by: str | None = None,
) -> list[Path] | Axes | Figure:
    """Write the figure of a result to files, or draw one view of it into axes, or return it; see `Result.plot`."""
    if path is not None and ax is not None:
        raise OptionError("plot writes to a path or draws into axes, not both; leave one out")
    if by is not None and ax is None:
        raise OptionError("by needs ax, whose view it chooses; give axes, or leave by out")
    if path is not None:
        return draw_result(result, path, formats=formats)
    check_drawable("plot", result, MAX_MAP_PARAMETERS)
    if ax is not None:
        return draw_panel(result, ax, by or result.question.property.value)
    with drawing_settings():
        return result_figure(result)


def result_png(result: Result) -> bytes:
    """The figure of a result as PNG; a picture that was written before is not drawn again."""
    drawn = _DRAWN.setdefault(result, {})
    if "png" not in drawn:
        drawn["png"] = figure_bytes(lambda: result_figure(result), "png")
    return drawn["png"]


def draw(
    kind: str, results: Result | Sequence[Result], path: str | Path, *, formats: Sequence[str] = ("png",),
    force: bool = False, delta: str | float | None = None, tau: str | float | None = None,
    gamma: str | float | None = None, top: str | None = None, **wishes: Unpack[Wishes],
) -> list[Path]:  # fmt: skip
    """Write a figure to PATH.png and so on, one file for each format; refuses existing files without `force`.

    See `make_figure` for the rest. The same results give the same bytes.
    """
    check_request(kind, path, formats=formats, force=force, **wishes)
    make = lambda: make_figure(kind, results, delta=delta, tau=tau, gamma=gamma, top=top, **wishes)  # noqa: E731
    return write_figure(make, path, formats=formats, force=force)


def make_figure(
    kind: str, results: Result | Sequence[Result], *, delta: str | float | None = None,
    tau: str | float | None = None, gamma: str | float | None = None, top: str | None = None, **wishes: Unpack[Wishes],
) -> Figure:  # fmt: skip
    """A figure of a kind, from one result or, for columns, from several; OptionError if they do not fit.

    delta, tau, gamma, top: another threshold for the property of the question, for maps and refinements. See `Wishes`
    for the others.
    """
    chosen = check_kind(kind)
    _check_wishes(kind, chosen, wishes)
    drawn = [results] if isinstance(results, Result) else list(results)
    if not drawn or (len(drawn) > 1 and not chosen.is_of_several):
        raise OptionError(f"{kind} takes one result, but {len(drawn)} are given; columns takes several")
    for result in drawn:
        _check_result(kind, chosen, result)
    drawn = [result.with_options({"delta": delta, "tau": tau, "gamma": gamma, "top": top}) for result in drawn]
    with drawing_settings():
        make = getattr(import_module(f"{__name__}.{chosen.module}"), chosen.function)
        options = {name: value for name, value in wishes.items() if name in chosen.options and value is not None}
        return cast(Figure, make(drawn if chosen.is_of_several else drawn[0], **options))


def check_request(
    kind: str, path: str | Path, *, formats: Sequence[str], force: bool, **wishes: Unpack[Wishes]
) -> None:
    """Raise the errors of `draw` that do not depend on results, before a large one is read."""
    _check_wishes(kind, check_kind(kind), wishes)
    refuse_in_the_way(figure_files(path, formats), force=force)


def check_kind(kind: str) -> FigureKind:
    """The kind of that name; OptionError if there is none."""
    if kind in KINDS:
        return KINDS[kind]
    raise OptionError(f"unknown figure {kind!r}.{did_you_mean(kind, KINDS)} Expected {', '.join(KINDS)}")


def _check_wishes(kind: str, chosen: FigureKind, wishes: Wishes) -> None:
    by, steps = wishes.get("by"), wishes.get("steps")
    given = {"at": len(wishes.get("at", ())) > 0, "along": wishes.get("along"), "steps": steps, "by": by}
    for name, value in given.items():
        if value not in (None, False) and name not in chosen.options:
            fitting = [other for other, kind_of in KINDS.items() if name in kind_of.options]
            raise OptionError(f"--{name} does not apply to {kind}, only to {', '.join(fitting)}: leave it out")
    if by is not None and by not in BY:
        raise OptionError(f"unknown --by {by!r}; expected {', '.join(BY)}.{did_you_mean(by, BY)}")
    if steps is not None and not 2 <= steps <= MOST_SHOWN:
        raise OptionError(f"--steps is {steps}; expected a whole number from 2 to {MOST_SHOWN}")


def _check_result(kind: str, chosen: FigureKind, result: Result) -> None:
    is_search = result.tiling.is_search
    if is_search and chosen.takes == "map":
        raise OptionError(
            f"{kind} needs a map or a refinement, but the result is a search ({result.method}); use visited or "
            "tiling, or run verify with --method map or refine"
        )
    if not is_search and chosen.takes == "search":
        raise OptionError(
            f"{kind} needs a search, but the result is a {result.tiling.kind}; use tiling, or run verify with "
            "--method gbs"
        )
    check_drawable(kind, result, chosen.most_parameters)


def check_drawable(kind: str, result: Result, most: int | None) -> None:
    """OptionError if a result has more parameters than a kind of figure shows; None stands for any number."""
    count = result.question.perturbed.domain.dimension
    if most is not None and count > most:
        other = "" if result.tiling.is_search else "use sections, path or strip, or "
        raise OptionError(f"{kind} shows up to {most} parameters, but the result has {count}; {other}leave some out")


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
