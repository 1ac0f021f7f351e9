"""The strip of exhibits: for each theta its image, actual map, expected map, and inconsistency against δ."""

from collections.abc import Sequence

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from ..results.domain_result import DomainResult, Point
from .colours import FAINT_INK, INK, JOINT, KEPT, MAP_SHADES
from .exhibits import Exhibit
from .sheet import Sheet
from .wording import comparison, theta_text

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
    place, words = _shown_class(result)
    if len(result.problem.perturbed.x0) > 1:
        words = (*words, "channels summed")
    # Colour images have one map for each channel; what is shown is their sum.
    maps = [(e.point.actual[place].sum(axis=0), e.point.expected[place].sum(axis=0)) for e in exhibits]
    norm = _common_scale(np.array(maps))
    pitch = min((width - NAMES - COLOUR_BAR) / len(exhibits), WIDEST_PITCH)
    tops = [top + CAPTION + row * (SIDE + GAP) for row in range(4)]
    _write_names(sheet, left, tops, words)
    delta = result.answer.delta
    longest = 1.06 * max([delta, *(exhibit.point.inconsistency for exhibit in exhibits)]) or 1.0
    for column, (exhibit, pair) in enumerate(zip(exhibits, maps, strict=True)):
        x = left + NAMES + column * pitch
        sheet.badge(x + 0.1, top + 0.08, column)
        _write_caption(sheet, result, exhibit, x, top, pitch - 0.08)
        _show_image(sheet, x, tops[0], exhibit.point.image)
        for y, values in zip(tops[1:], pair, strict=False):
            sheet.image(x, y, SIDE, SIDE, values, cmap=MAP_SHADES, norm=norm)
        _draw_gauge(sheet, exhibit.point, delta, longest, x, tops[3], pitch - 0.08)
    right = left + NAMES + (len(exhibits) - 1) * pitch + SIDE
    bar = sheet.axes(right + 0.15, tops[1], 0.11, 2 * SIDE + GAP)
    sheet.figure.colorbar(ScalarMappable(norm=norm, cmap=MAP_SHADES), cax=bar)
    bar.tick_params(labelsize=8, width=0.6, length=2, colors=INK)


def _shown_class(result: DomainResult) -> tuple[int, tuple[str, ...]]:
    """The place of the map that is shown among those compared, and words for the class that it belongs to."""
    problem = result.problem
    chosen = problem.attention.chosen(problem.model.classes).tolist()
    place = chosen.index(result.label) if result.label in chosen else 0
    return place, (f"of class {problem.names[chosen[place]]}",)


def _common_scale(maps: np.ndarray) -> Normalize:
    """One scale for all maps, symmetric around 0; a few extreme pixels may saturate."""
    size = np.abs(maps)
    top = float(np.quantile(size, 0.999)) or float(size.max()) or 1.0
    return Normalize(-top, top)


def _write_names(sheet: Sheet, left: float, tops: Sequence[float], words: Sequence[str]) -> None:
    room = NAMES - 0.1
    sheet.write(left, tops[0] + SIDE / 2, "image", weight="bold", width=room)
    for name, y in zip(("actual map", "expected map"), tops[1:], strict=False):
        sheet.write(left, y + SIDE / 2, name, weight="bold", width=room)
        for line, text in enumerate(words, start=1):
            sheet.write(left, y + SIDE / 2 + 0.16 * line, text, size=8, colour=FAINT_INK, width=room)
    sheet.write(left, tops[3] + 0.1, "inconsistency", weight="bold", width=room)


def _write_caption(sheet: Sheet, result: DomainResult, exhibit: Exhibit, x: float, top: float, width: float) -> None:
    point, names = exhibit.point, result.problem.names
    sheet.write(x + 0.27, top + 0.08, exhibit.title, weight="bold", width=width - 0.27)
    domain = result.problem.compound.domain
    outside = "" if domain.contains(point.theta) else ", outside"
    sheet.write(x, top + 0.3, theta_text(point.theta, domain.widths) + outside, size=8.5, width=width, colour=FAINT_INK)
    is_kept = point.label == result.label
    words = f"predicts {names[point.label]}"
    look = {} if is_kept else {"colour": JOINT["MR&IR"], "weight": "bold"}
    sheet.write(x, top + 0.5, words, size=8.5, width=width, **look)


def _show_image(sheet: Sheet, x: float, y: float, image: np.ndarray) -> None:
    if len(image) == 3:
        sheet.image(x, y, SIDE, SIDE, np.moveaxis(image, 0, 2))
    else:
        sheet.image(x, y, SIDE, SIDE, image.mean(axis=0), cmap="gray", norm=Normalize(0.0, 1.0))


def _draw_gauge(sheet: Sheet, point: Point, delta: float, longest: float, x: float, top: float, width: float) -> None:
    """A bar as long as the inconsistency, with a tick at δ."""
    colour = KEPT if point.inconsistency <= delta else JOINT["CR&IR"]
    sheet.box(x, top + 0.05, SIDE, 0.11, facecolor="white")
    sheet.box(x, top + 0.05, SIDE * point.inconsistency / longest, 0.11, facecolor=colour)
    tick = x + SIDE * delta / longest
    sheet.page.plot([tick, tick], [top + 0.02, top + 0.19], color=INK, linewidth=1.6)
    sheet.write(x, top + 0.3, comparison(point.inconsistency, delta), size=8.5, width=width)
