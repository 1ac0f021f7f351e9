"""A comparison as a figure and on disk: bars of the shares with their ranks, difference maps below, `comparison.json`.

Every statement in the figure comes from the comparison. A difference map looks up every pixel; the shares beside it are
areas.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ..errors import StoreError, not_writable
from ..labels import Joint, Kept, Label, Property
from ..report import FORMATS
from ..report.drawing.colours import CHANGED, FAINT_INK, JOINT, KEPT, UNKNOWN, Row
from ..report.drawing.plane_sections import Section, make_sections
from ..report.drawing.raster import all_pixel_owners, colour_grid, hatch_grid
from ..report.drawing.sheet import ROW, Sheet, name_axis, write_figure
from ..report.figures.map import SMALLEST_SHARE_SHOWN
from ..results.directory import atomic_directory, atomic_file, check_file, write_json
from ..results.result import Result
from ..tolerances import MAX_MAP_PARAMETERS
from ..words import distance_text, percent_up, share_text, shown_text
from .comparison import Comparison, Difference, describe
from .ranking import Rank, is_distance

NAME, NUMBERS = "comparison", "json"
ENDINGS = (NUMBERS, *FORMATS)
FILES = tuple(f"{NAME}.{ending}" for ending in ENDINGS)  # the files of a comparison

WIDTH, LEFT, RIGHT, MARGIN = 13.0, 0.85, 0.4, 0.4
TEXT_WIDTH = WIDTH - 2 * MARGIN
HEADER, GAP = 0.95, 0.5
PANEL_TITLE, SECTION_TITLE, AXIS = 0.28, 0.2, 0.6
LOW_PANEL, BAND = 2.9, 0.6
PAIR_TITLE, NOTE = 0.42, 0.22
MOST_PAIRS = 4  # difference maps in one figure; the summary has them all
BAR_TITLES, BAR, BAR_PITCH, WIDEST_NAME = 0.42, 0.3, 0.44, 3.1
RANK_WIDTH, MOST_RANKINGS = 0.95, 5
SMALLEST_WRITTEN = 0.07  # smaller parts of a bar have no room for a number
DOTS, HATCH = "....", "/////"
"""Dots distinguish the label alone from label and attention; the hatch marks undecided parts."""

COLOURS = {"both": "#eef3d8", "first": "#76b041", "second": "#2b7f9e", "neither": "#3b3b3b", Label.UNDECIDED: UNKNOWN}
"""The colours of difference maps. None of them has a meaning in the bars, except that of undecided parts."""
OPEN = Label.UNDECIDED
NAMES = ("both", OPEN, "first", OPEN, OPEN, OPEN, "second", OPEN, "neither")
"""Who keeps a property, by the `Kept` codes of both results; the code of the first counts three times."""
PARTS = {
    Joint.BOTH: (Kept.YES, Kept.YES),
    Joint.LABEL_ALONE: (Kept.YES, Kept.NO),
    Joint.ATTENTION_ALONE: (Kept.NO, Kept.YES),
    Joint.NEITHER: (Kept.NO, Kept.NO),
}


def check_place(path: str | Path, *, force: bool = False) -> Path:
    """Return the place, or raise what `save_comparison` would raise, before anything is computed."""
    target = Path(os.path.realpath(path))
    if _ending(target) in ENDINGS:
        return check_file(target, force=force)
    try:
        if target.exists() and not target.is_dir():
            raise StoreError(f"{path}: is a file; name a directory, or a file that ends in .json, .png, .svg or .pdf")
        if target.exists() and not force:
            raise StoreError(f"{path}: exists already; choose another --out, or replace it with --force")
        others = [inside.name for inside in sorted(target.iterdir())] if target.exists() else []
    except OSError as error:
        raise not_writable(path, error) from None
    strangers = [name for name in others if name not in FILES]
    if strangers:
        raise StoreError(
            f"{path}: holds {strangers[0]!r}, which is not part of a comparison and which --force would delete; choose "
            "another --out"
        )
    return target


def save_comparison(comparison: Comparison, path: str | Path, *, force: bool = False) -> list[Path]:
    """Write a file that ends in .json, .png, .svg or .pdf, or all four into a directory; returns the files written."""
    target = check_place(path, force=force)
    try:
        if _ending(target) == NUMBERS:
            with atomic_file(target) as new:
                write_json(new, comparison.summary())
            return [Path(path)]
        if _ending(target) in FORMATS:
            draw_comparison(comparison, target, force=force)
            return [Path(path)]
        with atomic_directory(target, replaces=force) as folder:
            write_json(folder / f"{NAME}.{NUMBERS}", comparison.summary())
            draw_comparison(comparison, folder / NAME)
    except OSError as error:
        raise not_writable(path, error) from None
    return [Path(path) / name for name in FILES]


def draw_comparison(comparison: Comparison, path: str | Path, *, force: bool = True) -> list[Path]:
    """Write the figure to PATH in the format of its suffix .png, .svg or .pdf, or in all three without one."""
    suffix = _ending(Path(path))
    formats = (suffix,) if suffix in FORMATS else FORMATS
    return write_figure(lambda: comparison_figure(comparison), path, formats=formats, force=force)


def comparison_figure(comparison: Comparison) -> Figure:
    """The figure that `draw_comparison` writes."""
    pairs = _pairs(comparison)
    heights = [_pair_height(comparison, differences) for differences in pairs]
    bars = BAR_TITLES + BAR_PITCH * len(comparison.results) + ROW + 0.3
    hidden = len(comparison.results) - 1 - len(pairs) if comparison.differences else 0
    notes = list(comparison.notes)
    if hidden:
        notes.append(f"Difference maps not shown: {hidden}; --json has their shares.")
    sheet = Sheet(WIDTH, HEADER + bars + sum(heights) + NOTE * len(notes) + 0.15)
    _write_header(sheet, comparison, has_maps=bool(pairs))
    _draw_bars(sheet, comparison)
    top = HEADER + bars
    for differences, height in zip(pairs, heights, strict=True):
        _draw_pair(sheet, comparison, differences, top)
        top += height
    for place, note in enumerate(notes):
        sheet.write(MARGIN, top + (place + 0.4) * NOTE, note, size=8.5, colour=FAINT_INK, width=TEXT_WIDTH)
    return sheet.figure


def rank_text(rank: Rank) -> str:
    """A rank, or the range that the bounds leave open.

    >>> rank_text(Rank(0, (0.5, 0.5), 2, 2, False)), rank_text(Rank(0, (0.1, 0.5), 1, 3, False))
    ('2', '1–3')
    """
    return str(rank.first) if rank.first == rank.last else f"{rank.first}–{rank.last}"


def value_text(rank: Rank, measure: str) -> str:
    """The value behind a rank: a share, or a distance with its bounds.

    >>> value_text(Rank(0, (0.5, 0.5), 1, 1, False), "CR"), value_text(Rank(0, (0.02, 0.1), 1, 1, False), "nearest MR")
    ('50.00 %', '0.02 to 0.1')
    """
    low, high = rank.bounds
    if not is_distance(measure):
        return share_text(low, high)
    return distance_text(low, high, 3)


def _write_header(sheet: Sheet, comparison: Comparison, *, has_maps: bool) -> None:
    kinds = ("network", "image", "perturbation")
    differs = [kind for kind in kinds if kind in comparison.differs]
    # Two results may share a network while a third differs.
    texts = {tuple(describe(result, kind) for kind in kinds) for result in comparison.results}
    is_each = len(differs) == 1 and len(texts) == len(comparison.results)
    title = f"{len(comparison.results)} {f'{differs[0]}s' if is_each else 'results'} compared"
    facts = [f"{kind} {describe(comparison.results[0], kind)}" for kind in kinds if kind not in differs]
    if any(result.is_measured for result in comparison.results) and "delta" not in comparison.differs:
        facts.append(describe(comparison.results[0], "delta"))
    if has_maps:
        facts.append(f"difference maps against {comparison.names[0]}")
    sheet.write(MARGIN, 0.32, title, size=15, weight="bold", width=TEXT_WIDTH)
    sheet.write(MARGIN, 0.66, " · ".join(facts), size=9.5, colour=FAINT_INK, width=TEXT_WIDTH)


def _draw_bars(sheet: Sheet, comparison: Comparison) -> None:
    """A bar for every result from its name on the left to its ranks on the right, a legend below."""
    rankings, first = comparison.rankings[:MOST_RANKINGS], HEADER + BAR_TITLES
    columns = [MARGIN + TEXT_WIDTH - RANK_WIDTH * (len(rankings) - place - 0.5) for place in range(len(rankings))]
    texts = [
        sheet.write(MARGIN, first + place * BAR_PITCH + BAR / 2, name, size=9.5, weight="bold", width=WIDEST_NAME)
        for place, name in enumerate(comparison.names)
    ]
    names = max(sheet.measure(text) for text in texts) + 0.2
    start, length = MARGIN + names, TEXT_WIDTH - names - RANK_WIDTH * len(rankings) - 0.25
    sheet.write(start, HEADER + 0.2, "shares of the domain", size=9, colour=FAINT_INK)
    centred: dict[str, Any] = {"across": "center", "width": RANK_WIDTH}
    for at, ranking in zip(columns, rankings, strict=True):
        sheet.write(at, HEADER + 0.05, ranking.measure, size=8.5, weight="bold", **centred)
        words = "rank by risk" if ranking.is_risk else "rank"
        sheet.write(at, HEADER + 0.21, words, size=7.5, colour=FAINT_INK, **centred)
    entries: dict[Row, None] = {}
    for place, result in enumerate(comparison.results):
        y, parts = first + place * BAR_PITCH, _parts(result)
        entries |= dict.fromkeys(row for _, row in parts)
        _draw_bar(sheet, parts, start, y, length)
        for at, ranking in zip(columns, rankings, strict=True):
            found = next(one for one in ranking.ranks if one.result == place)
            sheet.write(at, y + 0.08, rank_text(found), size=9.5, weight="bold", **centred)
            sheet.write(at, y + 0.25, value_text(found, ranking.measure), size=7.5, colour=FAINT_INK, **centred)
    _draw_legend(sheet, list(entries), start, first + BAR_PITCH * len(comparison.results))


def _draw_bar(sheet: Sheet, parts: Sequence[tuple[float, Row]], left: float, top: float, width: float) -> None:
    at = left
    for share, row in parts:
        sheet.box(at, top, share * width, BAR, facecolor=row.colour, linewidth=0.4, hatch=row.hatch)
        if share >= SMALLEST_WRITTEN:
            ink, middle = "white" if row.colour == JOINT[Joint.NEITHER] else "black", at + 0.5 * share * width
            text = sheet.write(middle, top + BAR / 2, share_text(share), size=8, colour=ink, across="center")
            if row.hatch:
                text.set_bbox({"facecolor": row.colour, "linewidth": 0, "pad": 1.5})
        at += share * width
    sheet.box(left, top, width, BAR, facecolor="none", linewidth=0.6)


def _parts(result: Result) -> list[tuple[float, Row]]:
    """The proved shares above 0 of each combination, and the undecided rest; together the whole bar."""
    cells = result.answer.shares.cells
    if result.is_measured:
        parts = [
            (cells[label][attention], Row(f"{name} {name.sentence}", colour=JOINT[name]))
            for name, (label, attention) in PARTS.items()
        ]
    else:
        parts = [
            (sum(cells[Kept.YES]), Row("CR label kept, attention not measured", colour=KEPT, hatch=DOTS)),
            (sum(cells[Kept.NO]), Row("MR label changed, attention not measured", colour=CHANGED, hatch=DOTS)),
        ]
    # The whole domain is exactly 1, although sums of shares round.
    whole = sum(sum(row) for row in cells)
    parts = [(1.0 if share == whole else share, row) for share, row in parts]
    rest = 1.0 - sum(share for share, _ in parts)
    # Rounding errors get no entry in the legend.
    if rest > SMALLEST_SHARE_SHOWN:
        parts.append((rest, Row(Label.UNDECIDED, colour=UNKNOWN, hatch=HATCH)))
    return [(share, row) for share, row in parts if share > 0.0]


def _draw_legend(sheet: Sheet, entries: Sequence[Row], left: float, top: float) -> None:
    """The parts of the bars side by side; further to the left than the bars if there is no room."""
    texts = [sheet.write(0.0, top + ROW / 2, entry.text, size=8.5) for entry in entries]
    widths = [0.24 + sheet.measure(text) + 0.22 for text in texts]
    at = max(MARGIN, min(left, sheet.width - MARGIN - sum(widths)))
    for entry, text, width in zip(entries, texts, widths, strict=True):
        sheet.box(at, top + 0.035, 0.18, ROW - 0.07, facecolor=entry.colour, hatch=entry.hatch)
        text.set_x(at + 0.24)
        at += width


def _pairs(comparison: Comparison) -> list[list[Difference]]:
    """The differences to draw, grouped by pair; searches have no pieces to draw."""
    if comparison.results[0].question.compound.domain.dimension > MAX_MAP_PARAMETERS:
        return []
    seconds = range(1, min(len(comparison.results), MOST_PAIRS + 1))
    found = [[one for one in comparison.differences if one.second == second] for second in seconds]
    has_pieces = [result.tiling.answers_any_delta for result in comparison.results]
    return [differences for differences in found if differences and has_pieces[0] and has_pieces[differences[0].second]]


def _panel_size(comparison: Comparison) -> tuple[float, float]:
    width = (WIDTH - LEFT - RIGHT - 2 * GAP) / 3
    return width, {1: BAND, 2: width, 3: LOW_PANEL}[comparison.results[0].question.compound.domain.dimension]


def _pair_height(comparison: Comparison, differences: Sequence[Difference]) -> float:
    sections = 3 if comparison.results[0].question.compound.domain.dimension == 3 else 1
    rows = max(len(_rows(comparison, one)) for one in differences)
    titles = (sections + 1) * SECTION_TITLE if sections > 1 else 0.0
    panels = sections * (_panel_size(comparison)[1] + AXIS)
    return PAIR_TITLE + PANEL_TITLE + panels + titles + rows * ROW + 0.25


def _draw_pair(sheet: Sheet, comparison: Comparison, differences: Sequence[Difference], top: float) -> None:
    """One difference map: a column for each property, sections below each other, the shares at the end."""
    numbers = differences[0].first, differences[0].second
    own, other = (comparison.results[place] for place in numbers)
    title = " against ".join(comparison.names[place] for place in numbers)
    sheet.write(MARGIN, top + 0.16, title, size=12, weight="bold", width=TEXT_WIDTH)
    top += PAIR_TITLE
    width, height = _panel_size(comparison)
    lefts = [LEFT + place * (width + GAP) for place in range(len(differences))]
    for left, difference in zip(lefts, differences, strict=True):
        sheet.write(
            left, top + 0.05, f"{difference.property.noun.capitalize()} kept by …", size=11, weight="bold", width=width
        )
    top += PANEL_TITLE
    sections = list(zip(make_sections(own), make_sections(other), strict=True))
    codes = [_kept_codes(result, [difference.property for difference in differences]) for result in (own, other)]
    for pair in sections:
        if pair[0].held is not None:
            axis, value = pair[0].held
            name = own.question.compound.domain.names[axis]
            sheet.write(
                LEFT,
                top + 0.05,
                f"Section at {name} = {shown_text(name, value, 4)}",
                size=9.5,
                width=WIDTH - LEFT - RIGHT,
            )
            top += SECTION_TITLE
        owners = [all_pixel_owners(section) for section in pair]
        for place, left in enumerate(lefts):
            axes = sheet.axes(left, top, width, height)
            _draw_panel(axes, pair[0], [part[place][grid] for part, grid in zip(codes, owners, strict=True)])
            _name_axes(axes, own, pair[0], is_first=place == 0)
        top += height + AXIS
    if len(sections) > 1:
        text = "Shares of the whole domain, bounded by the shares of the two results:"
        sheet.write(LEFT, top - 0.02, text, size=9.5)
        top += SECTION_TITLE
    for left, difference in zip(lefts, differences, strict=True):
        sheet.table(left, top, width, _rows(comparison, difference))


def _kept_codes(result: Result, properties: Sequence[Property]) -> np.ndarray:
    """`Kept` codes (N, P + 1) of properties on every piece, and Kept.UNKNOWN for no piece."""
    nothing = np.full((len(properties), 1), Kept.UNKNOWN, dtype=np.uint8)
    parts = [
        np.array([block.joint.kept(wanted)[0] for wanted in properties], dtype=np.uint8)
        for block in result.answer.blocks()
    ]
    return np.concatenate([*parts, nothing], axis=1)


def _draw_panel(axes: Axes, section: Section, codes: Sequence[np.ndarray]) -> None:
    """Who keeps the property, pixel by pixel, by the codes (n, n) of both results."""
    combinations = 3 * codes[0] + codes[1]
    picture = colour_grid(combinations, to_rgba_array([COLOURS[name] for name in NAMES]))
    hatch_grid(picture, combinations, np.array(NAMES) == OPEN, is_rising=True)
    domain = section.domain
    # With one parameter the second coordinate has no meaning.
    ends = [(domain.low[axis], domain.high[axis]) if axis < domain.dimension else (0.0, 1.0) for axis in section.axes]
    image = AxesImage(axes, extent=(*ends[0], *ends[1]), origin="lower", zorder=-4)
    image.set_data(picture)
    axes.add_artist(image)
    axes.set_xlim(*ends[0])
    axes.set_ylim(*ends[1])


def _name_axes(axes: Axes, result: Result, section: Section, *, is_first: bool) -> None:
    names = result.question.compound.domain.names
    name_axis(axes, names[section.axes[0]], is_below=True)
    if len(names) == 1:
        axes.set_yticks([])
    elif is_first:
        name_axis(axes, names[section.axes[1]], is_below=False)
    else:
        axes.tick_params(labelleft=False)


def _rows(comparison: Comparison, difference: Difference) -> list[Row]:
    """The colours with their shares; undecided parts only if they exceed the strips along thresholds."""
    first, second = (comparison.names[place] for place in (difference.first, difference.second))
    words = {"both": "both", "first": f"only {first}", "second": f"only {second}", "neither": "neither"}
    shares = difference.shares
    rows = [Row(text, share_text(*shares[name]), COLOURS[name]) for name, text in words.items()]
    if difference.is_exact and shares[OPEN][1] > SMALLEST_SHARE_SHOWN:
        rows.append(Row("undecided for one of them", percent_up(shares[OPEN][1]), UNKNOWN, hatch=HATCH))
    return rows


def _ending(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")
