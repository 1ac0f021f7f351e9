"""The figure that compares networks by their maps: columns (O), (B), (P), (T), a block of rows for each network.

A column is the unperturbed image, one perturbation at its strongest, or a given theta; a block holds actual maps,
expected maps and inconsistency. Results of one network with different perturbations share a block.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ..errors import OptionError
from ..results.domain_result import DomainResult, Point
from .colours import FAINT_INK
from .exhibits import unperturbed_point
from .files import finish
from .pictures import ShownMaps, common_scale, draw_gauge, show_image, show_map, show_scale, write_prediction
from .sheet import Sheet
from .thetas import checked_thetas, nearest_to_zero
from .titles import HEADER, write_header
from .wording import number

LEFT, RIGHT, NAMES, COLOUR_BAR = 0.4, 0.35, 2.05, 0.75
SIDE, PITCH, GAP = 1.38, 1.85, 0.07
HEADING, CAPTION, GAUGE, BLOCK_GAP = 0.52, 0.24, 0.42, 0.3
NARROWEST = 8.6


@dataclass(frozen=True)
class Column:
    """What a column shows: its letter, what is done to the image, and by how much."""

    letter: str
    text: str
    value: str


ORIGINAL = Column("O", "original", "")


@dataclass(frozen=True, eq=False)
class Block:
    """The rows of one network: a result that stands for it, and its point in every column that it has."""

    result: DomainResult
    points: dict[Column, Point]


def columns_figure(results: Sequence[DomainResult], thetas: Sequence[ArrayLike]) -> Figure:
    """Results of one image under several networks, each perturbation at its strongest, or at given thetas (d,)."""
    blocks = make_blocks(results, thetas)
    columns = order_columns([column for block in blocks for column in block.points])
    width = max(NARROWEST, LEFT + NAMES + len(columns) * PITCH + COLOUR_BAR + RIGHT)
    block_height = CAPTION + 2 * (SIDE + GAP) + GAUGE + BLOCK_GAP
    top = HEADER + HEADING + SIDE + 0.25
    sheet = Sheet(width, top + len(blocks) * block_height + 0.05)
    problem = results[0].problem
    label = problem.names[problem.label] if len({one.label for one in results}) == 1 else "differs"
    facts = [f"label {label}", "maps on one scale for each network", "bars: inconsistency, with a tick at δ"]
    count = "one network" if len(blocks) == 1 else f"{len(blocks)} networks"
    write_header(sheet, f"Attention maps of {count} on {problem.image_name}", facts, size=14)
    for place, column in enumerate(columns):
        x = LEFT + NAMES + place * PITCH
        _write_heading(sheet, column, numbered(column, columns), x)
        show_image(sheet, x, HEADER + HEADING, SIDE, _image(blocks, column))
    sheet.write(LEFT, HEADER + HEADING + SIDE / 2, "image", weight="bold")
    for place, block in enumerate(blocks):
        _draw_block(sheet, block, columns, top + place * block_height)
    return finish(sheet.figure)


def make_blocks(results: Sequence[DomainResult], thetas: Sequence[ArrayLike]) -> list[Block]:
    """One block for each network, in the order in which they are given; OptionError where results do not fit."""
    first = results[0].problem
    for other in results[1:]:
        if not np.array_equal(other.problem.perturbed.x0, first.perturbed.x0):
            raise OptionError(
                f"columns compare networks on one image, but the results are of {first.image_name} and of "
                f"{other.problem.image_name}; give results of the same image"
            )
    found: dict[str, list[DomainResult]] = {}
    for result in results:
        found.setdefault(result.problem.model.sha256, []).append(result)
    blocks = []
    for same in found.values():
        points = {ORIGINAL: unperturbed_point(same[0])}
        for result in same:
            for column, theta in _columns_of(result, thetas):
                if column not in points:
                    points[column] = result.at(theta)
        blocks.append(Block(same[0], points))
    return blocks


def _columns_of(result: DomainResult, thetas: Sequence[ArrayLike]) -> list[tuple[Column, np.ndarray]]:
    """The columns of one result: given thetas, or each parameter at the end of its range that is farther from zero."""
    perturbed = result.problem.perturbed
    domain = perturbed.domain
    if len(thetas):
        return [
            (Column(str(place), ", ".join(domain.names), ", ".join(_number(value) for value in theta)), theta)
            for place, theta in enumerate(checked_thetas(domain, thetas), start=1)
        ]
    found = []
    for axis, perturbation in enumerate(perturbed.perturbations):
        theta = nearest_to_zero(domain)
        low, high = float(domain.low[axis]), float(domain.high[axis])
        theta[axis] = low if abs(low) > abs(high) else high
        held = [
            f"{domain.names[other]} {_number(theta[other])}"
            for other in range(domain.dimension)
            if other != axis and theta[other] != 0.0
        ]
        value = ", ".join([_number(theta[axis]), *held])
        found.append((Column(perturbation.keyword[0].upper(), domain.names[axis], value), theta))
    return found


def order_columns(columns: Sequence[Column]) -> list[Column]:
    """Each column once, those with the same letter beside each other, otherwise in the order in which they come."""
    letters = list(dict.fromkeys(column.letter for column in columns))
    return sorted(dict.fromkeys(columns), key=lambda column: letters.index(column.letter))


def numbered(column: Column, columns: Sequence[Column]) -> str:
    """The letter of a column, with a number where others have the same.

    >>> two = [Column("P", "patch 1×1 at (0, 0)", "1"), Column("P", "patch 1×1 at (2, 0)", "1")]
    >>> numbered(two[1], two), numbered(two[0], two[:1])
    ('P2', 'P')
    """
    same = [other for other in columns if other.letter == column.letter]
    return column.letter if len(same) == 1 else f"{column.letter}{same.index(column) + 1}"


def _number(value: float) -> str:
    return number(float(value), 3).replace("-", "−")


def _image(blocks: Sequence[Block], column: Column) -> np.ndarray:
    return next(block.points[column].image for block in blocks if column in block.points)


def _write_heading(sheet: Sheet, column: Column, letter: str, left: float) -> None:
    offset = 0.1 + sheet.measure(sheet.write(left, HEADER + 0.06, f"({letter})", size=11, weight="bold"))
    sheet.write(left + offset, HEADER + 0.06, column.text, size=8.5, width=PITCH - offset - 0.08)
    sheet.write(left, HEADER + 0.32, column.value and f"θ = {column.value}", size=8.5, colour=FAINT_INK,
                width=PITCH - 0.1)  # fmt: skip


def _draw_block(sheet: Sheet, block: Block, columns: Sequence[Column], top: float) -> None:
    problem, delta = block.result.problem, block.result.answer.delta
    shown = ShownMaps.of(problem)
    pairs = {column: shown.pair(point) for column, point in block.points.items()}
    norm = common_scale([part for pair in pairs.values() for part in pair])
    longest = 1.06 * max([delta, *(point.inconsistency for point in block.points.values())]) or 1.0
    tops = [top + CAPTION, top + CAPTION + SIDE + GAP, top + CAPTION + 2 * (SIDE + GAP)]
    _write_names(sheet, block, shown, top, tops)
    for place, column in enumerate(columns):
        x = LEFT + NAMES + place * PITCH
        point = block.points.get(column)
        if point is None:
            sheet.write(x, tops[0] + SIDE, "not in its results", size=8.5, colour=FAINT_INK, width=PITCH - 0.1)
            continue
        write_prediction(sheet, problem, point, x, top + 0.1, PITCH - 0.1)
        for y, values in zip(tops, pairs[column], strict=False):
            show_map(sheet, x, y, SIDE, values, norm)
        draw_gauge(sheet, point, delta, longest, x, tops[2], SIDE, PITCH - 0.1)
    right = LEFT + NAMES + (len(columns) - 1) * PITCH + SIDE
    show_scale(sheet, right + 0.15, tops[0], 2 * SIDE + GAP, norm)


def _write_names(sheet: Sheet, block: Block, shown: ShownMaps, top: float, tops: Sequence[float]) -> None:
    room = NAMES - 0.12
    sheet.write(LEFT, top + 0.1, block.result.problem.model_name, size=11, weight="bold", width=room)
    for name, y in zip(("actual map", "expected map"), tops, strict=False):
        sheet.write(LEFT, y + SIDE / 2, name, weight="bold", width=room)
        for line, text in enumerate(shown.words, start=1):
            sheet.write(LEFT, y + SIDE / 2 + 0.16 * line, text, size=8, colour=FAINT_INK, width=room)
    sheet.write(LEFT, tops[2] + 0.1, "inconsistency", weight="bold", width=room)
    options = block.result.problem.attention
    words = f"{options.filter.name}, {options.distance.name}"
    sheet.write(LEFT, tops[2] + 0.27, words, size=8, colour=FAINT_INK, width=room)
