"""The shares of every result of a comparison as one bar each, its ranks beside it. Decides nothing."""

from collections.abc import Sequence

from ..properties.joint import Kept
from ..report.drawing.colours import CHANGED, FAINT_INK, JOINT, KEPT, UNKNOWN, Row
from ..report.drawing.sheet import ROW, Sheet
from ..report.figures.map import SMALLEST_SHARE_SHOWN
from ..report.wording import number, percent, percent_between
from ..results.domain_result import DomainResult
from .outcome import Comparison
from .rank import Rank, is_distance

WIDEST_NAME = 3.1
TITLES = 0.42
BAR, PITCH = 0.3, 0.44
COLUMN = 0.95
MOST_COLUMNS = 5
LEGEND_WORDS = {
    "CR&AR": "label and attention kept",
    "CR&IR": "label kept, attention not",
    "MR&AR": "attention kept, label not",
    "MR&IR": "neither kept",
}
DOTS, HATCH = "....", "/////"
"""Over the label alone, so that it does not look like label and attention together; and over what is undecided."""
SMALLEST_WRITTEN = 0.07
"""Parts of a bar that are smaller have no room for a number."""


def bars_height(comparison: Comparison) -> float:
    """Height in inches that `draw_bars` needs."""
    return TITLES + PITCH * len(comparison.results) + ROW + 0.3


def draw_bars(sheet: Sheet, comparison: Comparison, left: float, top: float, width: float) -> None:
    """A bar for every result from its name on the left to its ranks on the right, a legend below."""
    rankings = comparison.rankings[:MOST_COLUMNS]
    columns = [left + width - COLUMN * (len(rankings) - place - 0.5) for place in range(len(rankings))]
    names = _write_names(sheet, comparison.names, left, top + TITLES)
    start, length = left + names, width - names - COLUMN * len(rankings) - 0.25
    sheet.write(start, top + 0.2, "shares of the domain", size=9, colour=FAINT_INK)
    for at, ranking in zip(columns, rankings, strict=True):
        sheet.write(at, top + 0.05, ranking.measure, size=8.5, weight="bold", across="center", width=COLUMN)
        words = "rank by risk" if ranking.is_risk else "rank"
        sheet.write(at, top + 0.21, words, size=7.5, colour=FAINT_INK, across="center", width=COLUMN)
    for place, result in enumerate(comparison.results):
        y = top + TITLES + place * PITCH
        _draw_bar(sheet, _parts(result), start, y, length)
        for at, ranking in zip(columns, rankings, strict=True):
            found = next(one for one in ranking.ranks if one.result == place)
            sheet.write(at, y + 0.08, rank_text(found), size=9.5, weight="bold", across="center", width=COLUMN)
            value = value_text(found, ranking.measure)
            sheet.write(at, y + 0.25, value, size=7.5, colour=FAINT_INK, across="center", width=COLUMN)
    _draw_legend(sheet, comparison, start, top + TITLES + PITCH * len(comparison.results), left)


def rank_text(rank: Rank) -> str:
    """A rank, or the range that the bounds leave open.

    >>> rank_text(Rank(0, (0.5, 0.5), 2, 2, False)), rank_text(Rank(0, (0.1, 0.5), 1, 3, False))
    ('2', '1–3')
    """
    return str(rank.first) if rank.first == rank.last else f"{rank.first}–{rank.last}"


def value_text(rank: Rank, measure: str) -> str:
    """What a rank rests on: a share, or a distance with its bounds.

    >>> value_text(Rank(0, (0.5, 0.5), 1, 1, False), "CR"), value_text(Rank(0, (0.02, 0.1), 1, 1, False), "nearest MR")
    ('50.0 %', '0.02 to 0.1')
    """
    low, high = rank.bounds
    if not is_distance(measure):
        return percent_between(low, high)
    if low == float("inf"):
        return "none"
    first, last = number(low, 3), "?" if high == float("inf") else number(high, 3)
    return first if first == last else f"{first} to {last}"


def _write_names(sheet: Sheet, names: Sequence[str], left: float, top: float) -> float:
    """The names below each other; returns the width that they take."""
    texts = [
        sheet.write(left, top + place * PITCH + BAR / 2, name, size=9.5, weight="bold", width=WIDEST_NAME)
        for place, name in enumerate(names)
    ]
    return max(sheet.measure(text) for text in texts) + 0.2


def _draw_bar(sheet: Sheet, parts: Sequence[tuple[float, Row]], left: float, top: float, width: float) -> None:
    at = left
    for share, row in parts:
        if share <= 0.0:
            continue
        sheet.box(at, top, share * width, BAR, facecolor=row.colour, linewidth=0.4, hatch=row.hatch)
        if share >= SMALLEST_WRITTEN:
            ink = "white" if row.colour == JOINT["MR&IR"] else "black"
            text = sheet.write(
                at + 0.5 * share * width, top + BAR / 2, percent(share), size=8, colour=ink, across="center"
            )
            if row.hatch:
                text.set_bbox({"facecolor": row.colour, "linewidth": 0, "pad": 1.5})
        at += share * width
    sheet.box(left, top, width, BAR, facecolor="none", linewidth=0.6)


def _parts(result: DomainResult) -> list[tuple[float, Row]]:
    """What is proved of each combination, and the rest; together the whole bar."""
    cells = result.answer.shares.cells
    if result.is_measured:
        codes = [(Kept.YES, Kept.YES), (Kept.YES, Kept.NO), (Kept.NO, Kept.YES), (Kept.NO, Kept.NO)]
        shares = [cells[i][j] for i, j in codes]
        rows = [Row(f"{name} {words}", colour=JOINT[name]) for name, words in LEGEND_WORDS.items()]
    else:
        shares = [sum(cells[Kept.YES]), sum(cells[Kept.NO])]
        rows = [
            Row("CR label kept, attention not measured", colour=KEPT, hatch=DOTS),
            Row("MR label changed, likewise", colour=CHANGED, hatch=DOTS),
        ]
    rest = max(0.0, 1.0 - sum(shares))
    # What rounding leaves of a sum is not worth an entry of the legend.
    return [
        *zip(shares, rows, strict=True),
        (rest if rest > SMALLEST_SHARE_SHOWN else 0.0, Row("undecided", colour=UNKNOWN, hatch=HATCH)),
    ]


def _draw_legend(sheet: Sheet, comparison: Comparison, left: float, top: float, leftmost: float) -> None:
    """What occurs in the bars, side by side; further to the left than the bars where there is no room."""
    found = [row for result in comparison.results for share, row in _parts(result) if share > 0.0]
    entries = list(dict.fromkeys(found))
    texts = [sheet.write(0.0, top + ROW / 2, entry.text, size=8.5) for entry in entries]
    widths = [0.24 + sheet.measure(text) + 0.22 for text in texts]
    at = max(leftmost, min(left, sheet.width - leftmost - sum(widths)))
    for entry, text, width in zip(entries, texts, widths, strict=True):
        sheet.box(at, top + 0.035, 0.18, ROW - 0.07, facecolor=entry.colour, hatch=entry.hatch)
        text.set_x(at + 0.24)
        at += width
