"""Exhibits: the thetas that a figure shows, given or chosen, and their pictures: image, attention maps, captions.

Given thetas are checked; others are chosen along a path, along a parameter, or as instructive: zero, nearest
violations, pieces where label and attention disagree, corners.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from numpy.typing import ArrayLike

from ...attention.measures import Measure
from ...attention.methods.gradcam import upsample
from ...errors import OptionError
from ...labels import Joint, Kept, Label
from ...perturbation import Domain
from ...question import Question
from ...results.point import Point
from ...results.result import Result
from ...words import caption_theta, is_factor, plain_name, shown_value
from .colours import CHANGED_INK, FAINT_INK, INK, JOINT, KEPT, MAP_SHADES
from .outlines import Outline, image_outlines, map_outlines
from .sheet import Sheet

MOST_SHOWN = 24
"""Thetas that one figure may show with their images."""
MOST = 6
"""Thetas that a figure chooses."""
CLOSEST_VIOLATION, CLOSEST_OTHER = 0.003, 0.05
"""Thetas closer than these shares of the domain's widths look the same: a figure shows one of them."""
NEARER = 0.003
"""Figures say "nearest found" if a violation may be nearer by more than this, in widths of the domain."""
CAPTION = 0.66
"""Height of a caption in inches."""

Wish = tuple[float, str, np.ndarray]
"""A theta that a figure may show: its distance from others, the reason, and the theta."""


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A theta to show: the reason, and its point."""

    title: str
    point: Point


def choose_exhibits(result: Result) -> tuple[Exhibit, ...]:
    """At most six thetas in a fixed order, the unperturbed image first (even if zero is outside the domain)."""
    return _chosen(result, [*_nearest(result), *_disagreements(result), *_corners(result)])


def choose_beside(result: Result, farthest: Sequence[tuple[str, np.ndarray]]) -> tuple[Exhibit, ...]:
    """At most six thetas that distinguish two boundaries: zero, given farthest thetas, instructive and nearest ones."""
    wishes = [(CLOSEST_VIOLATION, *wish) for wish in farthest]
    return _chosen(result, [*wishes, *_disagreements(result), *_nearest(result), *_corners(result)])


def _chosen(result: Result, wishes: Sequence[Wish]) -> tuple[Exhibit, ...]:
    widths = result.question.compound.domain.widths
    chosen = [Exhibit("unperturbed", unperturbed_point(result))]
    for closest, title, theta in wishes:
        if len(chosen) < MOST and is_apart(theta, [other.point.theta for other in chosen], widths, closest):
            chosen.append(Exhibit(title, result.at(theta)))
    return tuple(chosen)


def is_apart(theta: np.ndarray, others: Sequence[np.ndarray], widths: np.ndarray, closest: float) -> bool:
    """Whether a theta is farther than `closest` from all others, along some parameter, in widths of the domain."""
    return all(float((np.abs(theta - other) / widths).max()) > closest for other in others)


def unperturbed_point(result: Result) -> Point:
    """The point of the unperturbed image, even if zero is outside the domain."""
    question = result.question
    theta = np.zeros(question.perturbed.domain.dimension)
    if question.perturbed.domain.contains_zero:
        return result.at(theta)
    logits = question.model.graph.logits(question.perturbed.x0[None])[0]
    margin = float(logits[result.label] - np.delete(logits, result.label).max())
    return Point(
        theta,
        None,
        question.perturbed.x0,
        logits,
        result.label,
        margin,
        result.question.original,
        result.question.original,
        0.0,
    )


def _nearest(result: Result) -> list[Wish]:
    found = [(Label.IR, result.nearest[Label.AR]), (Label.MR, result.nearest[Label.CR])]
    words = ["nearest" if near.high - near.low < NEARER else "nearest found" for _, near in found]
    return [
        (CLOSEST_VIOLATION, f"{word} {name}", near.theta)
        for word, (name, near) in zip(words, found, strict=True)
        if near.theta is not None
    ]


def _disagreements(result: Result) -> list[Wish]:
    """Thetas inside pieces where label and attention disagree: the label kept with other evidence, and the reverse."""
    compound, found = result.question.compound, []
    if result.answer.grid is not None:
        label, attention, ai, centres = result.answer.grid.points(compound.coordinates)
        sizes = np.ones(len(label))
    else:
        joint = result.answer.joint
        label, attention, ai = joint.label_codes, joint.attention, result.answer.inconsistencies
        centres, sizes = joint.polytopes.centres, joint.polytopes.volumes
    other_reason = np.flatnonzero((label == Kept.YES) & (attention == Kept.NO))
    if len(other_reason):
        found.append(("other evidence", centres[other_reason[np.argmax(ai[other_reason])]]))
    same_reason = np.flatnonzero((label == Kept.NO) & (attention == Kept.YES))
    if len(same_reason):
        found.append(("MR, same evidence", centres[same_reason[np.argmax(sizes[same_reason])]]))
    return [(CLOSEST_OTHER, title, compound.to_theta(centre[None])[0]) for title, centre in found]


def _corners(result: Result) -> list[Wish]:
    """The corners of the domain, the one farthest from zero first, then thetas between them."""
    domain = result.question.compound.domain
    word, shares = ("end", (0.5, 0.25, 0.75)) if domain.dimension == 1 else ("corner", (0.5,))
    corners = [np.array(corner) for corner in product(*zip(domain.low, domain.high, strict=True))]
    corners.sort(key=lambda corner: -float(np.abs(corner / domain.widths).sum()))
    between = [(CLOSEST_OTHER, "in between", domain.low + share * domain.widths) for share in shares]
    return [(CLOSEST_OTHER, word, corner) for corner in corners] + between


def checked_thetas(domain: Domain, given: Sequence[ArrayLike]) -> list[np.ndarray]:
    """Thetas (d,) of the domain; OptionError for any other.

    >>> unit = Domain(("brightness",), np.zeros(1), np.ones(1))
    >>> checked_thetas(unit, [0.5, [1]])
    [array([0.5]), array([1.])]
    """
    if len(given) > MOST_SHOWN:
        raise OptionError(f"{len(given)} thetas given, but a figure shows up to {MOST_SHOWN}: leave some out")
    return [_checked(domain, theta) for theta in given]


def _checked(domain: Domain, given: Any) -> np.ndarray:
    try:
        theta = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        raise OptionError(f"theta {given!r}: expected one number for each of {', '.join(domain.names)}") from None
    words = ",".join(f"{value:g}" for value in theta.ravel()[:8])
    if theta.shape != domain.low.shape:
        raise OptionError(
            f"theta {words} has {theta.size} numbers for {domain.dimension} parameters ({', '.join(domain.names)}); "
            "give one for each, joined by commas"
        )
    if not domain.contains(theta):
        names = domain.names
        ends = ", ".join(
            f"{name} {shown_value(name, low):g}..{shown_value(name, high):g}"
            for name, low, high in zip(names, domain.low, domain.high, strict=True)
        )
        words = ",".join(f"{shown_value(*pair):g}" for pair in list(zip(names, theta.tolist(), strict=True))[:8])
        factors = [plain_name(name) for name in names if is_factor(name)]
        meaning = f"; in Python, theta of {', '.join(factors)} is the factor minus 1" if factors else ""
        raise OptionError(f"theta {words} is outside the domain ({ends}); give a theta inside it{meaning}")
    return theta


def nearest_to_zero(domain: Domain) -> np.ndarray:
    """The theta (d,) of the domain that is nearest to zero, along each axis."""
    return np.clip(np.zeros(domain.dimension), domain.low, domain.high)


def path_thetas(domain: Domain, through: Sequence[np.ndarray], steps: int) -> np.ndarray:
    """Thetas (N, d) on the path from zero through given thetas (to the farthest corner if there are none).

    The given ones are among them; the others divide the legs between them evenly. N is `steps`, or more if more are
    given. A domain without zero is entered at its theta nearest to zero.

    >>> unit = Domain(("a", "b"), np.zeros(2), np.ones(2))
    >>> path_thetas(unit, [np.array([1.0, 0.0]), np.array([1.0, 0.5])], 4).tolist()
    [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [1.0, 0.5]]
    """
    farthest = np.where(np.abs(domain.low) > np.abs(domain.high), domain.low, domain.high)
    stops = [nearest_to_zero(domain), *(through or [farthest])]
    if len(stops) > 1 and np.array_equal(stops[0], stops[1]):
        stops = stops[1:]
    lengths = np.array([float(np.linalg.norm((b - a) / domain.widths)) for a, b in pairwise(stops)])
    parts = np.ones(len(lengths), dtype=np.int64)
    for _ in range(steps - len(stops)):
        if not len(parts):
            break
        parts[np.argmax(lengths / parts)] += 1
    found = [stops[0]]
    for (start, end), count in zip(pairwise(stops), parts, strict=True):
        found += [start + (end - start) * (step / count) for step in range(1, count)] + [end]
    return np.array(found)


def axis_of(domain: Domain, along: str | int | None) -> int:
    """The parameter with this number (from 1 on) or beginning of its name; by default the first.

    >>> unit = Domain(("brightness", "translation right [px]"), np.zeros(2), np.ones(2))
    >>> axis_of(unit, None), axis_of(unit, "trans"), axis_of(unit, "2")
    (0, 1, 1)
    """
    if along is None:
        return 0
    words = str(along).strip().lower()
    if words.isdecimal() and 1 <= int(words) <= domain.dimension:
        return int(words) - 1
    found = [axis for axis, name in enumerate(domain.names) if words and name.lower().startswith(words)]
    if len(found) != 1:
        names = ", ".join(f"{place} ({name})" for place, name in enumerate(domain.names, start=1))
        what = "matches several parameters" if found else "is not a parameter of this result"
        raise OptionError(f"along {along!r} {what}; expected one of {names}, by number or beginning of the name")
    return found[0]


def thetas_along(domain: Domain, axis: int, held: np.ndarray, steps: int) -> np.ndarray:
    """Thetas (steps, d) from the low to the high end of a parameter, the others as in `held` (d,).

    Zero is among them if the range contains it.

    >>> unit = Domain(("a", "b"), np.array([-1.0, 0.0]), np.ones(2))
    >>> thetas_along(unit, 0, np.array([0.0, 0.5]), 4).round(2).tolist()
    [[-1.0, 0.5], [0.0, 0.5], [0.33, 0.5], [1.0, 0.5]]
    """
    low, high = float(domain.low[axis]), float(domain.high[axis])
    # Rounded: captions then need no ≈ for 0.1 in steps of 0.2 from −0.5 on.
    values = np.clip(np.round(np.linspace(low, high, steps), 12), low, high)
    if low < 0.0 < high and steps > 2:
        values[1 + np.argmin(np.abs(values[1:-1]))] = 0.0
    thetas = np.tile(held, (steps, 1))
    thetas[:, axis] = values
    return thetas


@dataclass(frozen=True, eq=False)
class ShownMaps:
    """The attention map that figures show: the label's, if it is compared, otherwise the first.

    place is its index in the maps of a `Point`; name is that of its class; words describe it, one line each. loss: the
    name of the loss, which the bars below the maps show; number: that of the number below the bars.
    """

    place: int
    name: str
    words: tuple[str, ...]
    loss: str = "inconsistency"
    number: str = "inconsistency"

    @classmethod
    def of(cls, question: Question) -> "ShownMaps":
        """The choice for a question."""
        chosen = question.attention.chosen(question.model.classes).tolist()
        place = chosen.index(question.label) if question.label in chosen else 0
        name = question.names[chosen[place]]
        words: tuple[str, ...] = (f"of class {name}",)
        attention = question.attention
        # The colours of `outlines`.
        words += ("green: the object",) * (attention.mask is not None)
        words += ("pink: gained instead",) * attention.measure.tells_strayed
        # Colour images have one map for each channel; figures show their sum.
        words = (*words, "channels summed") if len(question.perturbed.x0) > 1 else words
        measure = question.attention.measure
        # Without a threshold, the words below the bars are no number.
        return cls(place, name, words, measure.loss_noun, measure.noun if measure.option else measure.loss_noun)

    def pair(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        """The actual and the expected map (H, W) at a theta, at the resolution of the image."""
        height, width = point.image.shape[1:]
        actual, expected = (
            upsample(maps[self.place].sum(axis=0), height, width) for maps in (point.actual, point.expected)
        )
        return actual, expected


def common_scale(maps: Sequence[np.ndarray]) -> Normalize:
    """One scale for all maps, symmetric around 0; a few extreme pixels may saturate."""
    size = np.abs(np.concatenate([values.ravel() for values in maps]))
    top = float(np.quantile(size, 0.999)) or float(size.max()) or 1.0
    return Normalize(-top, top)


def show_image(
    sheet: Sheet, left: float, top: float, side: float, image: np.ndarray, *, frame: float = 0.6,
    outlines: Sequence[Outline] = (),
) -> None:  # fmt: skip
    """An image (C, H, W) inside a square: three channels are colours, others are averaged to grey."""
    if len(image) == 3:
        _show(sheet, left, top, side, np.moveaxis(image, 0, 2), outlines, frame=frame)
    else:
        grey = image.mean(axis=0)
        _show(sheet, left, top, side, grey, outlines, cmap="gray", norm=Normalize(0.0, 1.0), frame=frame)


def show_map(
    sheet: Sheet, left: float, top: float, side: float, values: np.ndarray, norm: Normalize,
    outlines: Sequence[Outline] = (),
) -> None:  # fmt: skip
    """An attention map (H, W) inside a square."""
    _show(sheet, left, top, side, values, outlines, cmap=MAP_SHADES, norm=norm)


def show_pair(
    sheet: Sheet, result: Result, point: Point, left: float, tops: Sequence[float], side: float, norm: Normalize
) -> None:
    """The actual and the expected map of a theta, at two tops, with the outline of the object."""
    actual, expected = ShownMaps.of(result.question).pair(point)
    show_map(sheet, left, tops[0], side, actual, norm, map_outlines(result, point))
    show_map(sheet, left, tops[1], side, expected, norm, image_outlines(point))


def _show(
    sheet: Sheet, left: float, top: float, side: float, pixels: np.ndarray, outlines: Sequence[Outline], **look: Any
) -> None:
    """Pixels (H, W, …) that stay square, in the middle of a square, with outlines on top."""
    height, width = (side * length / max(pixels.shape[:2]) for length in pixels.shape[:2])
    x, y = left + 0.5 * (side - width), top + 0.5 * (side - height)
    sheet.image(x, y, width, height, pixels, **look)
    for edges, colour in outlines:
        lines = np.array([x, y]) + edges * (width / pixels.shape[1])
        sheet.page.add_collection(LineCollection(lines.tolist(), colors=colour, linewidths=0.9, capstyle="round"))


def show_scale(sheet: Sheet, left: float, top: float, height: float, norm: Normalize) -> None:
    """The colours of the maps with their values."""
    bar = sheet.axes(left, top, 0.11, height)
    sheet.figure.colorbar(ScalarMappable(norm=norm, cmap=MAP_SHADES), cax=bar)
    bar.tick_params(labelsize=8, width=0.6, length=2, colors=INK)


def write_caption(
    sheet: Sheet, result: Result, place: int, exhibit: Exhibit, x: float, top: float, width: float
) -> None:
    """Number, title, theta and prediction of an exhibit, in the top `CAPTION` inches."""
    point, domain = exhibit.point, result.question.perturbed.domain
    sheet.badge(x + 0.1, top + 0.08, place)
    sheet.write(x + 0.27, top + 0.08, exhibit.title, weight="bold", width=width - 0.27)
    outside = "" if domain.contains(point.theta) else ", outside"
    sheet.write(
        x,
        top + 0.3,
        caption_theta(point.theta, domain.widths, domain.names) + outside,
        size=8.5,
        width=width,
        colour=FAINT_INK,
    )
    write_prediction(sheet, result.question, point, x, top + 0.5, width)


def write_prediction(sheet: Sheet, question: Question, point: Point, left: float, top: float, width: float) -> None:
    """The prediction at a theta; bold and dark if it is not the label."""
    look = {} if point.label == question.label else {"colour": CHANGED_INK, "weight": "bold"}
    sheet.write(left, top, f"predicts {question.names[point.label]}", size=8.5, width=width, **look)


def write_map_names(
    sheet: Sheet, left: float, tops: Sequence[float], side: float, shown: ShownMaps, width: float
) -> None:
    """The names of the rows of actual maps, expected maps and inconsistencies, which begin at the three tops."""
    for name, y in zip(("actual map", "expected map"), tops, strict=False):
        sheet.write(left, y + side / 2, name, weight="bold", width=width)
        for line, text in enumerate(shown.words, start=1):
            sheet.write(left, y + side / 2 + 0.16 * line, text, size=8, colour=FAINT_INK, width=width)
    sheet.write(left, tops[2] + 0.1, shown.loss, weight="bold", width=width)
    if shown.number != shown.loss:
        sheet.write(left, tops[2] + 0.3, shown.number, size=8.5, colour=FAINT_INK, width=width)


def longest_gauge(points: Sequence[Point], delta: float) -> float:
    """The inconsistency that fills the gauges of several points."""
    return 1.06 * max([delta, *(point.inconsistency for point in points)]) or 1.0


def draw_gauge(
    sheet: Sheet, measure: Measure, point: Point, delta: float, longest: float, left: float, top: float, side: float,
    width: float,
) -> None:  # fmt: skip
    """A bar as long as the loss, with a tick at its limit; `longest` is the value that fills the side."""
    colour = KEPT if point.inconsistency <= delta else JOINT[Joint.LABEL_ALONE]
    sheet.box(left, top + 0.05, side, 0.11, facecolor="white")
    sheet.box(left, top + 0.05, side * min(point.inconsistency / longest, 1.0), 0.11, facecolor=colour)
    tick = left + side * delta / longest
    sheet.page.plot([tick, tick], [top + 0.02, top + 0.19], color=INK, linewidth=1.6)
    sheet.write(left, top + 0.3, measure.compared(point.inconsistency, delta), size=8.5, width=width)
