"""From a comparison to its figure: shares of every result as bars with their ranks, and difference maps below.

Every statement in the figure is one that the comparison holds. Where a panel shows who keeps what is looked up pixel by
pixel; the shares beside it are areas.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ..properties.joint import Kept
from ..refine.merged import MOST_DRAWN
from ..report import FORMATS
from ..report.drawing.colours import FAINT_INK, JOINT, KEPT, MIXED, UNKNOWN, Row
from ..report.drawing.raster import BLOCK, colour_grid, hatch_grid, owners_on_grid
from ..report.drawing.sections import Section, make_sections
from ..report.drawing.sheet import ROW, Sheet, finish, name_axis, write_figure
from ..report.figures.map import SMALLEST_SHARE_SHOWN
from ..report.wording import number, percent, percent_between
from ..results.domain_result import DomainResult
from ..verdict import Property
from .bars import HATCH, bars_height, draw_bars
from .outcome import Comparison, Difference
from .question import describe

WIDTH, LEFT, RIGHT = 13.0, 0.85, 0.4
HEADER = 0.95
GAP = 0.5
PANEL_TITLE, SECTION_TITLE, AXIS = 0.28, 0.2, 0.6
LOW_PANEL, BAND = 2.9, 0.6
PAIR_TITLE, NOTE = 0.42, 0.22
PIXELS = 900
MOST_PAIRS = 4
"""Difference maps in one picture; the summary has them all."""

COLOURS = {"both": KEPT, "first": JOINT["CR&IR"], "second": MIXED, "neither": JOINT["MR&IR"], "undecided": UNKNOWN}
TITLES = {
    Property.CR: "Label kept by",
    Property.AR: "Attention kept by",
    Property.BOTH: "Label and attention kept by",
}
NAMES = ("both", "undecided", "first", "undecided", "undecided", "undecided", "second", "undecided", "neither")
"""Who keeps a property, by the `Kept` codes of both results; the code of the first counts three times."""


def draw_comparison(comparison: Comparison, path: str | Path, *, force: bool = True) -> list[Path]:
    """Write the figure to PATH; its suffix .png, .svg or .pdf says which, without one all three are written."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    formats = (suffix,) if suffix in FORMATS else FORMATS
    return write_figure(lambda: comparison_figure(comparison), path, formats=formats, force=force)


def comparison_figure(comparison: Comparison) -> Figure:
    """The figure that `draw_comparison` writes."""
    pairs = _pairs(comparison)
    heights = [_pair_height(comparison, differences) for differences in pairs]
    bars = bars_height(comparison)
    hidden = len(comparison.results) - 1 - len(pairs) if comparison.differences else 0
    notes = list(comparison.notes)
    if hidden:
        notes.append(f"Difference maps that are not shown: {hidden}; --json has their shares.")
    sheet = Sheet(WIDTH, HEADER + bars + sum(heights) + NOTE * len(notes) + 0.15)
    _write_header(sheet, comparison, has_maps=bool(pairs))
    draw_bars(sheet, comparison, 0.4, HEADER, WIDTH - 0.8)
    top = HEADER + bars
    for differences, height in zip(pairs, heights, strict=True):
        _draw_pair(sheet, comparison, differences, top)
        top += height
    for place, note in enumerate(notes):
        sheet.write(0.4, top + (place + 0.4) * NOTE, note, size=8.5, colour=FAINT_INK, width=WIDTH - 0.8)
    return finish(sheet.figure)


def _pairs(comparison: Comparison) -> list[list[Difference]]:
    """The differences to be drawn, those of one pair together."""
    if comparison.results[0].problem.compound.domain.dimension > MOST_DRAWN:
        return []
    seconds = range(1, min(len(comparison.results), MOST_PAIRS + 1))
    found = [[one for one in comparison.differences if one.second == second] for second in seconds]
    return [differences for differences in found if differences]


def _write_header(sheet: Sheet, comparison: Comparison, *, has_maps: bool) -> None:
    words = {"network": "networks", "image": "images", "perturbation": "perturbations"}
    differs = [words[kind] for kind in words if kind in comparison.differs]
    # Two results may share a network where another one differs.
    is_each = len(differs) == 1 and len(set(_texts(comparison))) == len(comparison.results)
    title = f"{len(comparison.results)} {differs[0] if is_each else 'results'} compared"
    same = [kind for kind in words if kind not in comparison.differs]
    facts = [f"{kind} {describe(comparison.results[0], kind)}" for kind in same]
    if any(result.is_measured for result in comparison.results) and "delta" not in comparison.differs:
        facts.append(describe(comparison.results[0], "delta"))
    if has_maps:
        facts.append(f"difference maps against {comparison.names[0]}")
    sheet.write(0.4, 0.32, title, size=15, weight="bold", width=WIDTH - 0.8)
    sheet.write(0.4, 0.66, " · ".join(facts), size=9.5, colour=FAINT_INK, width=WIDTH - 0.8)


def _texts(comparison: Comparison) -> list[tuple[str, ...]]:
    """Network, image and perturbation of every result."""
    kinds = ("network", "image", "perturbation")
    return [tuple(describe(result, kind) for kind in kinds) for result in comparison.results]


def _panel_size(comparison: Comparison) -> tuple[float, float]:
    width = (WIDTH - LEFT - RIGHT - 2 * GAP) / 3
    return width, {1: BAND, 2: width, 3: LOW_PANEL}[comparison.results[0].problem.compound.domain.dimension]


def _pair_height(comparison: Comparison, differences: Sequence[Difference]) -> float:
    dimension = comparison.results[0].problem.compound.domain.dimension
    sections = 3 if dimension == 3 else 1
    rows = max(len(_rows(comparison, one)) for one in differences)
    titles = (sections + 1) * SECTION_TITLE if sections > 1 else 0.0
    panels = sections * (_panel_size(comparison)[1] + AXIS)
    return PAIR_TITLE + PANEL_TITLE + panels + titles + rows * ROW + 0.25


def _draw_pair(sheet: Sheet, comparison: Comparison, differences: Sequence[Difference], top: float) -> None:
    """One difference map: a column for each property, sections below each other, the shares at the end."""
    own, other = (comparison.results[number] for number in (differences[0].first, differences[0].second))
    first, second = (comparison.names[number] for number in (differences[0].first, differences[0].second))
    sheet.write(0.4, top + 0.16, f"{first} against {second}", size=12, weight="bold", width=WIDTH - 0.8)
    top += PAIR_TITLE
    width, height = _panel_size(comparison)
    lefts = [LEFT + place * (width + GAP) for place in range(len(differences))]
    for left, difference in zip(lefts, differences, strict=True):
        sheet.write(left, top + 0.05, f"{TITLES[difference.property]} …", size=11, weight="bold", width=width)
    top += PANEL_TITLE
    sections = list(zip(make_sections(own), make_sections(other), strict=True))
    for pair in sections:
        if pair[0].held is not None:
            axis, value = pair[0].held
            name = own.problem.compound.domain.names[axis]
            sheet.write(LEFT, top + 0.05, f"Section at {name} = {number(value)}", size=9.5, width=WIDTH - LEFT - RIGHT)
            top += SECTION_TITLE
        owners = [_owners(section) for section in pair]
        for place, (left, difference) in enumerate(zip(lefts, differences, strict=True)):
            axes = sheet.axes(left, top, width, height)
            _draw_panel(axes, (own, other), difference, pair[0], owners)
            _name_axes(axes, own, pair[0], is_first=place == 0)
        top += height + AXIS
    if len(sections) > 1:
        text = "Shares of the whole domain, as far as the shares of the two results tell:"
        sheet.write(LEFT, top - 0.02, text, size=9.5)
        top += SECTION_TITLE
    for left, difference in zip(lefts, differences, strict=True):
        sheet.table(left, top, width, _rows(comparison, difference))


def _owners(section: Section) -> np.ndarray:
    """The piece of every pixel, −1 where there is none."""
    return np.append(section.piece, -1)[owners_on_grid(section.polygons, BLOCK * PIXELS)]


def _draw_panel(
    axes: Axes,
    results: tuple[DomainResult, DomainResult],
    difference: Difference,
    section: Section,
    owners: Sequence[np.ndarray],
) -> None:
    """Who keeps the property, pixel by pixel."""
    codes = [
        np.append(result.answer.joint.kept(difference.property)[0], Kept.UNKNOWN)[grid]
        for result, grid in zip(results, owners, strict=True)
    ]
    combinations = 3 * codes[0] + codes[1]
    picture = colour_grid(combinations, to_rgba_array([COLOURS[name] for name in NAMES]))
    hatch_grid(picture, combinations, np.array(NAMES) == "undecided", is_rising=True)
    domain = results[0].problem.compound.domain
    # With one parameter the second coordinate has no meaning.
    ends = [(domain.low[axis], domain.high[axis]) if axis < domain.dimension else (0.0, 1.0) for axis in section.axes]
    image = AxesImage(axes, extent=(*ends[0], *ends[1]), origin="lower", zorder=-4)
    image.set_data(picture)
    axes.add_artist(image)
    axes.set_xlim(*ends[0])
    axes.set_ylim(*ends[1])


def _name_axes(axes: Axes, result: DomainResult, section: Section, *, is_first: bool) -> None:
    names = result.problem.compound.domain.names
    name_axis(axes, names[section.axes[0]], is_below=True)
    if len(names) == 1:
        axes.set_yticks([])
    elif is_first:
        name_axis(axes, names[section.axes[1]], is_below=False)
    else:
        axes.tick_params(labelleft=False)


def _rows(comparison: Comparison, difference: Difference) -> list[Row]:
    """The colours with their shares; undecided only where it is more than the strips along thresholds."""
    first, second = (comparison.names[number] for number in (difference.first, difference.second))
    words = {"both": "both", "first": f"only {first}", "second": f"only {second}", "neither": "neither"}
    shares = difference.shares
    rows = [Row(text, percent_between(*shares[name]), COLOURS[name]) for name, text in words.items()]
    if difference.is_exact and shares["undecided"][1] > SMALLEST_SHARE_SHOWN:
        rows.append(Row("undecided for one of them", percent(shares["undecided"][1]), UNKNOWN, hatch=HATCH))
    return rows
