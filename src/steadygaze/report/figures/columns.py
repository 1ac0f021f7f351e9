"""The figure that compares networks by their maps: columns (O), (B), (P), (T), and rows for each network.

A column is the unperturbed image, one perturbation at its strongest, or a given theta; the rows of a network are actual
maps, expected maps and inconsistency. Results of one network with different perturbations share rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ...attention.measures.distance import DISTANCE
from ...errors import OptionError
from ...perturbation import Domain
from ...question import Question
from ...results.point import Point
from ...results.result import Result
from ...words import shown_text
from ..drawing import exhibits
from ..drawing.colours import FAINT_INK
from ..drawing.sheet import HEADER, Sheet, write_header

LEFT, RIGHT, NAMES, COLOUR_BAR = 0.4, 0.35, 2.05, 0.75

SIDE, PITCH, GAP = 1.38, 1.85, 0.07

HEADING, CAPTION, GAUGE, BLOCK_GAP = 0.52, 0.24, 0.42, 0.3

NARROWEST = 8.6


@dataclass(frozen=True)
class MapColumn:
    """A column of the figure: its letter, the change of the image, and its size."""

    letter: str
    text: str
    value: str


ORIGINAL = MapColumn("O", "original", "")


@dataclass(frozen=True, eq=False)
class NetworkRows:
    """The rows of one network: one of its results, and its point in every column that it has."""

    result: Result
    points: dict[MapColumn, Point]


def columns_figure(results: Sequence[Result], at: Sequence[ArrayLike] = ()) -> Figure:
    """Results of one image under several networks, each perturbation at its strongest, or at given thetas (d,)."""
    networks = group_networks(results, at)
    columns = order_columns([column for network in networks for column in network.points])
    width = max(NARROWEST, LEFT + NAMES + len(columns) * PITCH + COLOUR_BAR + RIGHT)
    pitch = CAPTION + 2 * (SIDE + GAP) + GAUGE + BLOCK_GAP
    top = HEADER + HEADING + SIDE + 0.25
    sheet = Sheet(width, top + len(networks) * pitch + 0.05)
    question = results[0].question
    label = question.names[question.label] if len({one.label for one in results}) == 1 else "differs"
    facts = [f"label {label}", "maps on one scale for each network", _bars_text(question)]
    count = "one network" if len(networks) == 1 else f"{len(networks)} networks"
    write_header(sheet, f"Attention maps of {count} on {question.image_name}", facts, size=14)
    for place, column in enumerate(columns):
        x = LEFT + NAMES + place * PITCH
        _write_heading(sheet, column, numbered(column, columns), x)
        image = next(network.points[column].image for network in networks if column in network.points)
        exhibits.show_image(sheet, x, HEADER + HEADING, SIDE, image)
    sheet.write(LEFT, HEADER + HEADING + SIDE / 2, "image", weight="bold")
    for place, network in enumerate(networks):
        _draw_network(sheet, network, columns, top + place * pitch)
    return sheet.figure


def _bars_text(question: Question) -> str:
    measure = question.attention.measure
    return f"bars: {measure.loss_noun}, with a tick at {measure.loss_limit}"


def group_networks(results: Sequence[Result], thetas: Sequence[ArrayLike]) -> list[NetworkRows]:
    """The rows of each network, in the order given; OptionError if the images differ."""
    first = results[0].question
    found: dict[str, list[Result]] = {}
    for result in results:
        if not np.array_equal(result.question.perturbed.x0, first.perturbed.x0):
            raise OptionError(
                f"columns compare networks on one image, but the results are of {first.image_name} and of "
                f"{result.question.image_name}; give results of the same image"
            )
        found.setdefault(result.question.model.sha256, []).append(result)
    networks = []
    for same in found.values():
        points = {ORIGINAL: exhibits.unperturbed_point(same[0])}
        for result in same:
            for column, theta in _columns_of(result, thetas):
                if column not in points:
                    points[column] = result.at(theta)
        networks.append(NetworkRows(same[0], points))
    return networks


def _columns_of(result: Result, thetas: Sequence[ArrayLike]) -> list[tuple[MapColumn, np.ndarray]]:
    """The columns of one result: given thetas, or each parameter at the end of its range that is farther from zero."""
    perturbed = result.question.perturbed
    domain = perturbed.domain
    if len(thetas):
        return [
            (MapColumn(str(place), ", ".join(domain.names), ", ".join(_shown(domain, theta))), theta)
            for place, theta in enumerate(exhibits.checked_thetas(domain, thetas), start=1)
        ]
    found = []
    for axis, perturbation in enumerate(perturbed.perturbations):
        theta = exhibits.nearest_to_zero(domain)
        held = [
            f"{domain.names[other]} {_shown(domain, theta)[other]}"
            for other in range(domain.dimension)
            if other != axis and theta[other] != 0.0
        ]
        low, high = float(domain.low[axis]), float(domain.high[axis])
        theta[axis] = low if abs(low) > abs(high) else high
        value = ", ".join([_shown(domain, theta)[axis], *held])
        found.append((MapColumn(perturbation.keyword[0].upper(), domain.names[axis], value), theta))
    return found


def order_columns(columns: Sequence[MapColumn]) -> list[MapColumn]:
    """Each column once, columns with the same letter side by side, otherwise in their order."""
    letters = list(dict.fromkeys(column.letter for column in columns))
    return sorted(dict.fromkeys(columns), key=lambda column: letters.index(column.letter))


def numbered(column: MapColumn, columns: Sequence[MapColumn]) -> str:
    """The letter of a column, with a number if others share it.

    >>> two = [MapColumn("P", "patch 1×1 at (0, 0)", "1"), MapColumn("P", "patch 1×1 at (2, 0)", "1")]
    >>> numbered(two[1], two), numbered(two[0], two[:1])
    ('P2', 'P')
    """
    same = [other for other in columns if other.letter == column.letter]
    return column.letter if len(same) == 1 else f"{column.letter}{same.index(column) + 1}"


def _write_heading(sheet: Sheet, column: MapColumn, letter: str, left: float) -> None:
    offset = 0.1 + sheet.measure(sheet.write(left, HEADER + 0.06, f"({letter})", size=11, weight="bold"))
    sheet.write(left + offset, HEADER + 0.06, column.text, size=8.5, width=PITCH - offset - 0.08)
    value = column.value and f"θ = {column.value}"
    sheet.write(left, HEADER + 0.32, value, size=8.5, colour=FAINT_INK, width=PITCH - 0.1)


def _draw_network(sheet: Sheet, network: NetworkRows, columns: Sequence[MapColumn], top: float) -> None:
    question, delta, room = network.result.question, network.result.answer.delta, NAMES - 0.12
    measure = question.attention.measure
    shown = exhibits.ShownMaps.of(question)
    norm = exhibits.common_scale([part for point in network.points.values() for part in shown.pair(point)])
    longest = exhibits.longest_gauge(list(network.points.values()), delta)
    tops = [top + CAPTION + row * (SIDE + GAP) for row in range(3)]
    sheet.write(LEFT, top + 0.1, question.model_name, size=11, weight="bold", width=room)
    exhibits.write_map_names(sheet, LEFT, tops, SIDE, shown, room)
    compared = question.attention.distance.name if measure == DISTANCE else measure.name
    words = f"{question.attention.filter.name}, {compared}"
    sheet.write(LEFT, tops[2] + 0.27, words, size=8, colour=FAINT_INK, width=room)
    for place, column in enumerate(columns):
        x = LEFT + NAMES + place * PITCH
        point = network.points.get(column)
        if point is None:
            sheet.write(x, tops[0] + SIDE, "not in its results", size=8.5, colour=FAINT_INK, width=PITCH - 0.1)
            continue
        exhibits.write_prediction(sheet, question, point, x, top + 0.1, PITCH - 0.1)
        exhibits.show_pair(sheet, network.result, point, x, tops, SIDE, norm)
        exhibits.draw_gauge(sheet, measure, point, delta, longest, x, tops[2], SIDE, PITCH - 0.1)
    right = LEFT + NAMES + (len(columns) - 1) * PITCH + SIDE
    exhibits.show_scale(sheet, right + 0.15, tops[0], 2 * SIDE + GAP, norm)


def _shown(domain: Domain, theta: np.ndarray) -> list[str]:
    """The numbers of a theta (d,), as people read them."""
    return [shown_text(name, float(value), 3) for name, value in zip(domain.names, theta, strict=True)]
