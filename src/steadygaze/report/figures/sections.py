"""The figure of sections: the effect of each of many parameters alone and of each pair, through zero and a violation.

Colours show proved labels, lines the margins and losses of plain forward passes. Nothing is verified here.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure

from ...engines.refine.boxes import State
from ...engines.refine.merged_answer import MergedAnswer
from ...engines.refine.pointwise import PointPasses
from ...errors import OptionError
from ...labels import Joint, Kept, Label
from ...perturbation import Domain
from ...results.label_grid import beside
from ...results.result import Result
from ...tolerances import MAX_MAP_PARAMETERS
from ...words import caption_theta, percent_up, share_text, shown_text
from ..drawing.colours import CHANGED, DELTA_LINE, FAINT_INK, INK, JOINT, KEPT, UNKNOWN, Row
from ..drawing.exhibits import nearest_to_zero
from ..drawing.sheet import HEADER, ROW, Sheet, write_header
from ..titles import delta_text, extent_text, subject_text, verdict_text

MOST_SHOWN = 6
"""Parameters in one figure; among more, it shows those that alone change margin and attention most."""
WIDTH, LEFT, GAP, TITLE, NAMES, FOOT = 13.0, 0.45, 0.55, 0.42, 0.3, 0.25
ALONG, ACROSS = 120, 72
"""Points along a line, and along each side of a plane."""


class Base(NamedTuple):
    """A theta that sections pass through, and its name."""

    title: str
    theta: np.ndarray


class Line(NamedTuple):
    """The effect of one parameter alone: its values (N,), and margins and losses (N,) there."""

    along: np.ndarray
    margin: np.ndarray
    loss: np.ndarray


def sections_figure(result: Result) -> Figure:
    """Sections of a refinement of more than three parameters; OptionError for other results."""
    answer = result.answer
    if not isinstance(answer, MergedAnswer) or result.question.perturbed.domain.dimension <= MAX_MAP_PARAMETERS:
        raise OptionError(f"sections shows refinements of more than {MAX_MAP_PARAMETERS} parameters; use map")
    domain, bases = result.question.perturbed.domain, _bases(result)
    lines = [_lines(result, base) for base in bases]
    shown = _most_effective(result, lines[0])
    size = (WIDTH - LEFT - 0.3 - GAP) / 2
    pitch = size / len(shown)
    below = HEADER + TITLE + size + NAMES
    rows = _rows(result)
    sheet = Sheet(WIDTH, below + ROW * max(len(rows), 4) + FOOT)
    verdict = verdict_text(result.question.property, result.verdict)
    facts = [extent_text(result), *([delta_text(result)] if result.is_measured else [])]
    write_header(sheet, f"{subject_text(result.question)}: {verdict}", facts)
    for place, (base, own) in enumerate(zip(bases, lines, strict=True)):
        left = LEFT + place * (size + GAP)
        sheet.write(left, HEADER + 0.04, f"Sections through {base.title}", size=11, weight="bold", width=size)
        values = caption_theta(base.theta, domain.widths, domain.names) if domain.dimension <= 8 else ""
        sheet.write(left, HEADER + 0.24, values, size=8.5, colour=FAINT_INK, width=size)
        _draw_matrix(sheet, result, answer, base, own, shown, (left, HEADER + TITLE), pitch)
    sheet.table(LEFT, below, size, rows)
    _explain(sheet, result, len(shown), LEFT + size + GAP, below, size)
    return sheet.figure


def _bases(result: Result) -> list[Base]:
    """Zero, or the theta nearest to it, and the nearest violation of the question's property."""
    domain = result.question.perturbed.domain
    zero = nearest_to_zero(domain)
    title = "the unperturbed image" if domain.contains_zero else "the theta nearest to zero"
    found = [Base(title, zero)]
    asked = [Label.CR] * result.question.property.asks_label + [Label.AR] * result.question.property.asks_attention
    near = [result.nearest[name] for name in asked if result.nearest[name].theta is not None]
    if near:
        first = min(near, key=lambda one: one.high)
        assert first.theta is not None
        found.append(Base("the nearest violation", first.theta))
    return found


def _lines(result: Result, base: Base) -> list[Line]:
    """Margins and losses along every parameter, through a theta."""
    passes, domain = PointPasses(result.question, result.question.original), result.question.perturbed.domain
    found = []
    for axis in range(domain.dimension):
        along = domain.low[axis] + (np.arange(ALONG) + 0.5) / ALONG * domain.widths[axis]
        thetas = np.tile(base.theta, (ALONG, 1))
        thetas[:, axis] = along
        loss = passes.inconsistencies(thetas) if result.is_measured else np.zeros(ALONG)
        found.append(Line(along, passes.margins(thetas), loss))
    return found


def _most_effective(result: Result, lines: Sequence[Line]) -> list[int]:
    """Up to MOST_SHOWN parameters, in their order: those that alone change margin and loss most."""
    scale = max(float(np.abs(line.margin).max()) for line in lines) or 1.0
    limit = result.answer.delta or 1.0
    moves = [np.ptp(line.margin) / scale + np.ptp(line.loss) / limit for line in lines]
    return sorted(np.argsort(-np.array(moves), kind="stable")[:MOST_SHOWN].tolist())


def _draw_matrix(
    sheet: Sheet, result: Result, answer: MergedAnswer, base: Base, lines: Sequence[Line], shown: Sequence[int],
    corner: tuple[float, float], pitch: float,
) -> None:  # fmt: skip
    """Parameters alone on the diagonal, pairs below it: the column's parameter to the right, the row's upwards."""
    domain, room = result.question.perturbed.domain, pitch - 0.08
    for row, second in enumerate(shown):
        for column, first in enumerate(shown[: row + 1]):
            left, top = corner[0] + column * pitch, corner[1] + row * pitch
            axes = sheet.axes(left, top, room, room)
            axes.set_xticks([])
            axes.set_yticks([])
            if first == second:
                _draw_line(axes, result, answer, base, lines[first], first)
            else:
                codes = paint_labels(answer, base.theta, (first, second), ACROSS)
                extent = (*_ends(domain, first), *_ends(domain, second))
                picture = _colours(result, *codes).swapaxes(0, 1)
                axes.imshow(picture, origin="lower", extent=extent, aspect="auto", interpolation="nearest")
                axes.plot(*base.theta[[first, second]], marker="o", markersize=3.5, color=INK, clip_on=False)
        name = domain.names[second]
        top = corner[1] + row * pitch + 0.12
        left = corner[0] + (row + 1) * pitch
        low, high = (shown_text(name, end, 3) for end in _ends(domain, second))
        if row + 1 < len(shown):
            sheet.write(left, top, name, size=8.5, weight="bold", width=(len(shown) - row - 1) * pitch)
            sheet.write(left, top + 0.17, f"{low} to {high}", size=8, colour=FAINT_INK)
        else:
            text = f"{name}, {low} to {high}"
            right, below = corner[0] + len(shown) * pitch - 0.08, corner[1] + len(shown) * pitch + 0.08
            sheet.write(right, below, text, size=8.5, weight="bold", width=len(shown) * pitch, across="right")


def paint_labels(
    answer: MergedAnswer, theta: np.ndarray, axes: tuple[int, ...], side: int
) -> tuple[np.ndarray, np.ndarray]:
    """`Kept` codes of label and attention at `side` points along each axis, the others held at theta (d,).

    Points lie in the middle of equal steps. The axes of the arrays are those given, in their order. Every point takes
    the proved codes of the box that holds it, or of its side of the box's plane.
    """
    boxes, d = answer.boxes, answer.compound.domain.dimension
    place = np.array([beside(float(at)) for at in answer.compound.to_unit(theta[None])[0][:d]])
    others = [axis for axis in range(d) if axis not in axes]
    meets = (boxes.low[:, others] <= place[others]) & (place[others] <= boxes.high[:, others])
    label, attention = (np.full((side,) * len(axes), Kept.UNKNOWN) for _ in range(2))
    number_of_plane = np.cumsum(boxes.state == State.PARTED) - 1
    side_codes = answer.parted.codes(answer.delta)
    points = (np.arange(side) + 0.5) / side
    for box in np.flatnonzero(meets.all(axis=1)):
        inside = [np.flatnonzero((boxes.low[box, k] <= points) & (points <= boxes.high[box, k])) for k in axes]
        where = np.ix_(*inside)
        if boxes.state[box] != State.PARTED:
            label[where], attention[where] = answer.label_codes[box], answer.attention_codes[box]
            continue
        at = np.tile(place, (int(np.prod([len(part) for part in inside])), 1))
        at[:, list(axes)] = np.array(list(product(*(points[part] for part in inside)))).reshape(-1, len(axes))
        middle, half = 0.5 * (boxes.low[box] + boxes.high[box])[:d], 0.5 * (boxes.high[box] - boxes.low[box])[:d]
        plane = answer.parted.take(np.full(len(at), number_of_plane[box]))
        sides = plane.sides((at - middle) / half).reshape([len(part) for part in inside])
        for codes, own in zip((label, attention), side_codes, strict=True):
            codes[where] = np.where(sides >= 0, own[number_of_plane[box]][np.maximum(sides, 0)], Kept.UNKNOWN)
    return label, attention


def _draw_line(axes: Axes, result: Result, answer: MergedAnswer, base: Base, line: Line, axis: int) -> None:
    """Proved labels along a parameter as the background; margin and loss, relative to their scales, as lines."""
    codes = paint_labels(answer, base.theta, (axis,), ALONG)
    low, high = _ends(result.question.perturbed.domain, axis)
    picture = _colours(result, *codes)[None]
    axes.imshow(picture, extent=(low, high, -1.1, 2.1), aspect="auto", interpolation="nearest", alpha=0.75)
    scale = float(np.abs(line.margin).max()) or 1.0
    axes.axhline(0.0, color=FAINT_INK, linewidth=0.5)
    axes.plot(line.along, line.margin / scale, color=INK, linewidth=1.2)
    if result.is_measured:
        axes.plot(
            line.along, np.minimum(line.loss / (result.answer.delta or 1.0), 2.0), color=DELTA_LINE, linewidth=1.2
        )
        axes.axhline(1.0, color=DELTA_LINE, linewidth=0.5, linestyle=(0, (3, 2)))
    axes.axvline(float(base.theta[axis]), color=INK, linewidth=0.6, linestyle=(0, (1, 2)))
    axes.set_xlim(low, high)
    axes.set_ylim(-1.1, 2.1)


def _ends(domain: Domain, axis: int) -> tuple[float, float]:
    return float(domain.low[axis]), float(domain.high[axis])


def _colours(result: Result, label: np.ndarray, attention: np.ndarray) -> np.ndarray:
    """The colours (…, 4) of codes: of both together, or of the label if attention was not measured."""
    if not result.is_measured:
        return to_rgba_array([KEPT, UNKNOWN, CHANGED])[label]
    is_open = (label == Kept.UNKNOWN) | (attention == Kept.UNKNOWN)
    codes = np.where(is_open, 4, 2 * (label != Kept.YES) + (attention != Kept.YES))
    return to_rgba_array([*JOINT.values(), UNKNOWN])[codes]


def _rows(result: Result) -> list[Row]:
    """The legend with the shares of the whole domain."""
    areas, undecided = result.areas, Row(Label.UNDECIDED, percent_up(result.areas[Label.UNDECIDED][1]), UNKNOWN)
    if not result.is_measured:
        kept, changed = (Row(text, share_text(*areas[name]), colour) for text, name, colour in (
            ("CR  label kept", Label.CR, KEPT), ("MR  label changed", Label.MR, CHANGED)
        ))  # fmt: skip
        return [kept, changed, undecided]
    rows = [Row(f"{name}  {name.sentence}", share_text(*areas[name]), JOINT[name]) for name in Joint]
    return [*rows, undecided]


def _explain(sheet: Sheet, result: Result, shown: int, left: float, top: float, width: float) -> None:
    count = result.question.perturbed.domain.dimension
    lines = [
        "Shares refer to the whole domain; colours are proved at the points of the section.",
        "Diagonal: one parameter alone. Below it: two, the column's to the right and the row's upwards.",
        "Black line: margin, relative to its largest size here; the label is kept above 0.",
        "Blue line: loss of attention, relative to its limit (dashed), cut at twice the limit; kept below.",
    ]
    if not result.is_measured:
        lines = lines[:3]
    if shown < count:
        lines.append(
            f"The figure shows {shown} of {count} parameters: those that alone change margin and attention most."
        )
    for place, text in enumerate(lines):
        sheet.write(left, top + 0.1 + place * ROW, text, size=8.5, width=width)
