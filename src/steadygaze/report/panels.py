"""The three views of a map (classification, attention, joint) as coloured polygons with their boundaries.

Turns an answer into colours, lines and table rows, and draws them into axes, for domains of one, two and three
parameters alike: the polygons of a single parameter are bands, those of three are plane sections.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba, to_rgba_array

from ..properties.joint import Kept
from ..results.answer import round_up
from ..results.domain_result import DomainResult
from . import colours as palette
from .borders import borders_between
from .colours import DELTA_LINE, INK, JOINT, KEPT, UNKNOWN
from .extent import share_not_reached
from .sections import Section
from .sheet import Row
from .tiles import HATCH, add_lines, add_not_reached, add_pieces, set_limits
from .wording import number, percent, percent_between

SMALLEST_SHARE_SHOWN = 1e-6
"""Undecided strips along boundaries are smaller than this unless something is worth saying about them."""


NOT_MEASURED = Row("attention was not measured", colour=UNKNOWN)

Lines = tuple[tuple[np.ndarray, str, float], ...]
"""Lines of one picture: segments in t, colour, width."""


@dataclass(frozen=True, eq=False)
class View:
    """One way to look at a map: a colour (P, 4) for every piece, the lines of every section, a table.

    is_open (P,) are the pieces that are not decided, which grey print would not tell from others: they are hatched.
    """

    title: str
    colours: np.ndarray
    is_open: np.ndarray
    lines: tuple[Lines, ...]
    rows: tuple[Row, ...]


def make_views(result: DomainResult, sections: Sequence[Section]) -> tuple[View, View, View]:
    """Classification, attention and joint."""
    joint = result.answer.joint
    label, winner = joint.label_codes, joint.pieces.winner
    # Winners as codes beside those of `Kept`: what is not decided has no border with anything.
    winners = np.where(label == Kept.NO, Kept.NO + 1 + winner, label)
    decision, threshold, between = (
        [
            (borders_between(section.polygons, codes[section.piece], passed_over=Kept.UNKNOWN), colour, width)
            for section in sections
        ]
        for codes, colour, width in (
            (label, INK, 1.3),
            (joint.attention, DELTA_LINE, 1.1),
            (winners, palette.PAPER, 0.7),
        )
    )
    if not result.is_measured:
        classification = _classification(result, tuple(zip(between, decision, strict=True)))
        nothing = View(
            "",
            np.tile(to_rgba(UNKNOWN), (len(label), 1)),
            np.zeros(len(label), dtype=bool),
            tuple(() for _ in sections),
            (NOT_MEASURED,),
        )
        return (
            classification,
            replace(nothing, title="Attention: not asked for"),
            replace(nothing, title="Both together: not asked for"),
        )
    return (
        _classification(result, tuple(zip(between, decision, strict=True))),
        _attention(result, tuple((lines,) for lines in threshold)),
        _joint(result, tuple(zip(threshold, decision, strict=True))),
    )


def draw_view(
    axes: Axes, result: DomainResult, view: View, section: Section, lines: Lines, owners: np.ndarray | None
) -> None:
    """Draw one section of a view and set the limits of the axes; what no piece covers stays hatched."""
    if share_not_reached(result) > 0.0:
        add_not_reached(axes, section)
    add_pieces(axes, section, view.colours, owners, is_hatched=view.is_open)
    if owners is None and section.domain.dimension > 1:
        add_lines(axes, section.positions(section.outlines), to_rgba(INK, 0.16), 0.35, zorder=-3)
    for segments, colour, width in lines:
        add_lines(axes, section.positions(segments), colour, width, zorder=2)
    set_limits(axes, section)


def _classification(result: DomainResult, lines: tuple[Lines, ...]) -> View:
    joint, names, areas = result.answer.joint, result.problem.names, result.areas
    # A winner of −1 is not told, and comes last.
    shares = np.zeros(len(names) + 1)
    np.add.at(shares, joint.pieces.winner, joint.polytopes.volumes)
    shares[result.label] = 0.0
    share, untold = shares[:-1], float(shares[-1])
    ranked = [int(winner) for winner in np.argsort(-share, kind="stable") if share[winner] > 0.0]
    colours = palette.winner_colours(ranked, result.label)
    rows = [Row(f"CR  label kept: {names[result.label]}", percent_between(*areas["CR"]), KEPT)]
    at_least = "" if result.is_complete else "≥ "
    most = len(palette.WINNERS)
    groups = [(names[j], [j]) for j in ranked[:most]]
    if ranked[most:]:
        others = f"{len(ranked) - most} other classes" if len(ranked) > most + 1 else names[ranked[most]]
        groups.append((others, ranked[most:]))
    for name, group in groups:
        part = min(float(share[group].sum()), 1.0)
        rows.append(Row(f"MR  changed to {name}", at_least + percent(part), colours[group[0]]))
    if untold > 0.0:
        rows.append(Row("MR  changed, to one class or several", at_least + percent(min(untold, 1.0)), palette.CHANGED))
    if any(len(section[-1][0]) for section in lines):
        rows.append(Row("decision boundary", colour=INK, is_line=True))
    table = [*(colours.get(winner, KEPT) for winner in range(len(names))), palette.CHANGED]
    rgba = to_rgba_array(table)[joint.pieces.winner]
    is_open = joint.label_codes == Kept.UNKNOWN
    rgba[is_open] = to_rgba(UNKNOWN)
    return View("Classification: is the label kept?", rgba, is_open, lines, (*rows, *_open_rows(result, "label")))


def _attention(result: DomainResult, lines: tuple[Lines, ...]) -> View:
    answer, areas = result.answer, result.areas
    joint, delta = answer.joint, answer.delta
    is_lost = joint.attention == Kept.NO
    reach = answer.reach[is_lost, 1]
    top = float(reach[np.isfinite(reach)].max(initial=delta))
    rgba = palette.attention_colours(
        answer.inconsistencies, joint.attention == Kept.YES, joint.attention == Kept.UNKNOWN, delta, top
    )
    rows = [Row(f"AR  differs by ≤ δ = {number(delta)}", percent_between(*areas["AR"]), shades=palette.AR_SHADES)]
    is_known = is_lost.any() and result.is_complete and areas["undecided"][1] <= SMALLEST_SHARE_SHOWN
    is_known &= bool(np.isfinite(reach).all())
    above = f"by more, up to {number(round_up(top, 4))}" if is_known else "differs by more"
    rows.append(Row(f"IR  {above}", percent_between(*areas["IR"]), shades=palette.IR_SHADES))
    if any(len(section[-1][0]) for section in lines):
        rows.append(Row("inconsistency = δ", colour=DELTA_LINE, is_line=True))
    is_open = joint.attention == Kept.UNKNOWN
    return View("Attention: is the map as expected?", rgba, is_open, lines, (*rows, *_open_rows(result, "attention")))


def _joint(result: DomainResult, lines: tuple[Lines, ...]) -> View:
    joint, areas = result.answer.joint, result.areas
    label, attention = joint.label_codes, joint.attention
    rgba = to_rgba_array([*JOINT.values(), UNKNOWN])
    is_unknown = (label == Kept.UNKNOWN) | (attention == Kept.UNKNOWN)
    code = np.where(is_unknown, 4, 2 * (label != Kept.YES) + (attention != Kept.YES))
    words = ("label and attention kept", "label kept, attention not", "attention kept, label not", "neither kept")
    rows = [
        Row(f"{name}  {meaning}", percent_between(*areas[name]), colour)
        for (name, colour), meaning in zip(JOINT.items(), words, strict=True)
    ]
    return View("Both together", rgba[code], is_unknown, lines, (*rows, *_open_rows(result, "both")))


def _open_rows(result: DomainResult, which: str) -> list[Row]:
    """Rows for what was not reached and for what was reached but is not decided."""
    cells = np.array(result.answer.shares.cells)
    not_reached = share_not_reached(result)
    is_open = np.zeros((3, 3), dtype=bool)
    if which in ("label", "both"):
        is_open[Kept.UNKNOWN] = True
    if which in ("attention", "both"):
        is_open[:, Kept.UNKNOWN] = True
    undecided = float(cells[is_open].sum()) - not_reached
    rows = []
    if undecided > SMALLEST_SHARE_SHOWN:
        rows.append(Row("undecided", percent(undecided), UNKNOWN, hatch=HATCH))
    if not_reached > 0.0:
        rows.append(Row("not reached", percent(not_reached), is_hatched=True))
    return rows
