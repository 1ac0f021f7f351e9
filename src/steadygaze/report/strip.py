"""The strip of exhibits: for each theta its image, actual map, expected map, and inconsistency against δ."""

from collections.abc import Sequence

from ..results.domain_result import DomainResult
from .colours import FAINT_INK
from .exhibits import Exhibit
from .pictures import ShownMaps, common_scale, draw_gauge, show_image, show_map, show_scale, write_prediction
from .sheet import Sheet
from .wording import theta_text

SIDE = 1.38
CAPTION = 0.66
GAP = 0.07
GAUGE = 0.42
NAMES = 1.3
COLOUR_BAR = 0.7
WIDEST_PITCH = 1.85
HEIGHT = CAPTION + 3 * (SIDE + GAP) + GAUGE


def draw_strip(
    sheet: Sheet, result: DomainResult, exhibits: Sequence[Exhibit], left: float, top: float, width: float
) -> None:
    """Draw the exhibits side by side; all maps share one scale around 0."""
    shown = ShownMaps.of(result.problem)
    maps = [shown.pair(exhibit.point) for exhibit in exhibits]
    norm = common_scale([part for pair in maps for part in pair])
    pitch = min((width - NAMES - COLOUR_BAR) / len(exhibits), WIDEST_PITCH)
    side = min(SIDE, pitch - 0.06)
    tops = [top + CAPTION + row * (side + GAP) for row in range(4)]
    _write_names(sheet, left, tops, side, shown.words)
    delta = result.answer.delta
    longest = 1.06 * max([delta, *(exhibit.point.inconsistency for exhibit in exhibits)]) or 1.0
    for column, (exhibit, pair) in enumerate(zip(exhibits, maps, strict=True)):
        x = left + NAMES + column * pitch
        sheet.badge(x + 0.1, top + 0.08, column)
        write_caption(sheet, result, exhibit, x, top, pitch - 0.08)
        show_image(sheet, x, tops[0], side, exhibit.point.image)
        for y, values in zip(tops[1:], pair, strict=False):
            show_map(sheet, x, y, side, values, norm)
        draw_gauge(sheet, exhibit.point, delta, longest, x, tops[3], side, pitch - 0.08)
    right = left + NAMES + (len(exhibits) - 1) * pitch + side
    show_scale(sheet, right + 0.15, tops[1], 2 * side + GAP, norm)


def write_caption(sheet: Sheet, result: DomainResult, exhibit: Exhibit, x: float, top: float, width: float) -> None:
    """Title (beside a badge), theta and prediction of an exhibit, in `CAPTION` inches from the top on."""
    point, domain = exhibit.point, result.problem.perturbed.domain
    sheet.write(x + 0.27, top + 0.08, exhibit.title, weight="bold", width=width - 0.27)
    outside = "" if domain.contains(point.theta) else ", outside"
    sheet.write(x, top + 0.3, theta_text(point.theta, domain.widths) + outside, size=8.5, width=width, colour=FAINT_INK)
    write_prediction(sheet, result.problem, point, x, top + 0.5, width)


def _write_names(sheet: Sheet, left: float, tops: Sequence[float], side: float, words: Sequence[str]) -> None:
    room = NAMES - 0.1
    sheet.write(left, tops[0] + side / 2, "image", weight="bold", width=room)
    for name, y in zip(("actual map", "expected map"), tops[1:], strict=False):
        sheet.write(left, y + side / 2, name, weight="bold", width=room)
        for line, text in enumerate(words, start=1):
            sheet.write(left, y + side / 2 + 0.16 * line, text, size=8, colour=FAINT_INK, width=room)
    sheet.write(left, tops[3] + 0.1, "inconsistency", weight="bold", width=room)
