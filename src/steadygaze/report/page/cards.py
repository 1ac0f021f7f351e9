"""Single thetas for the page: image, actual and expected map, their difference, and what the network says there.

Turns a result into cards of text and pictures. Which thetas violate was decided before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...attention.inconsistency import original_maps
from ...attention.methods.gradient import pattern_of
from ...engines.search import SearchResult, Visited
from ...problem import Problem
from ...properties.nearest import Nearest
from ...results.claim import Violation
from ...results.domain_result import DomainResult, Point, view_point
from ..pictures import ShownMaps
from ..wording import comparison
from .pictures import image_uri, map_uri
from .rounding import rounded, rounded_down, rounded_up
from .sentences import Summary, theta_text

ORIGINAL = "Unperturbed image"
CLOSE = 0.003
"""Thetas nearer to each other than this share of the domain's widths show the same picture: one of them is enough."""


@dataclass(frozen=True)
class Picture:
    """One picture of a card: what it shows, and its data URI."""

    title: str
    text: str
    uri: str


@dataclass(frozen=True)
class Card:
    """A theta to be shown: why, where it is, what the network says there, and pictures; `scale` is that of the maps.

    `is_original` tells the unperturbed image from violations.
    """

    title: str
    reason: str
    theta: str
    facts: tuple[tuple[str, str], ...]
    pictures: tuple[Picture, ...]
    scale: str
    is_original: bool


@dataclass(frozen=True, eq=False)
class _Wish:
    title: str
    reason: str
    theta: np.ndarray


def make_cards(result: DomainResult, summary: Summary) -> list[Card]:
    """The unperturbed image, the nearest violations, and the witness of the right label with other evidence."""
    wishes = _original(result.problem)
    titles = {"AR": "Nearest attention violation", "CR": "Nearest label violation"}
    for name in ("AR", "CR"):
        found = result.nearest[name]
        if found.theta is not None and (name == "CR" or result.is_measured):
            where = "outside of kinks " if name == "AR" and result.sliver_share > 0.0 else ""
            wishes.append(_Wish(titles[name], nearest_text(found, where), found.theta))
    for witness in result.witnesses:
        if witness.kind is Violation.EVIDENCE:
            wishes.append(
                _Wish("Right label, other evidence", "A witness that was replayed, see below.", witness.point.theta)
            )
    points = [(wish, result.at(wish.theta)) for wish in _apart(wishes, result.problem)]
    return _cards(result.problem, summary, points, has_maps=result.is_measured)


def make_search_cards(result: SearchResult, summary: Summary) -> list[Card]:
    """The unperturbed image, and of visited regions that violate everywhere a theta in the one nearest to zero."""
    problem, domain = result.problem, result.problem.perturbed.domain
    wishes = _original(problem)
    for name, title in (("IR", "Attention violation"), ("MR", "Label violation")):
        found = [one for one in result.visited if name in (one.classification, one.attention)]
        if found:
            nearest = min(found, key=lambda one: float(np.linalg.norm(_inside(one, problem) / domain.widths)))
            reason = "Inside the visited region of this kind whose inner point is nearest to 0."
            wishes.append(_Wish(title, reason, _inside(nearest, problem)))
    original = original_maps(problem.compound, problem.attention)
    points = []
    for wish in _apart(wishes, problem):
        bits = pattern_of(problem.model.graph, problem.perturbed.image(wish.theta).reshape(1, -1))
        points.append((wish, view_point(problem, original, wish.theta, bits)))
    return _cards(problem, summary, points, has_maps=any(one.attention for one in result.visited))


def nearest_text(found: Nearest, where: str = "") -> str:
    """How near a violation is, and how near one could be; distances divide every parameter by its range.

    `where` names the part of the space that this is said of, if it is not all of it.
    """
    distance = f"At distance {rounded(found.high)} from 0"
    if found.high - found.low <= 1e-5 * max(found.high, 1e-300):
        return f"{distance}; {where}nothing nearer violates, up to rounding."
    if found.low > 0.0:
        return f"{distance}; {where}nothing below {rounded_down(found.low, 5)} violates."
    return f"{distance}; a nearer one is not excluded."


def _original(problem: Problem) -> list[_Wish]:
    """The unperturbed image, where it belongs to the domain."""
    domain = problem.perturbed.domain
    return [_Wish(ORIGINAL, "Where all parameters are 0.", np.zeros(domain.dimension))] * domain.contains_zero


def _inside(one: Visited, problem: Problem) -> np.ndarray:
    domain = problem.perturbed.domain
    return np.clip(domain.low + one.region.inside * domain.widths, domain.low, domain.high)


def _apart(wishes: Sequence[_Wish], problem: Problem) -> list[_Wish]:
    widths, chosen = problem.perturbed.domain.widths, list[_Wish]()
    for wish in wishes:
        others = [other for other in chosen if other.theta.any()]
        if all(np.abs((wish.theta - other.theta) / widths).max() > CLOSE for other in others):
            chosen.append(wish)
    return chosen


def _cards(problem: Problem, summary: Summary, points: Sequence[tuple[_Wish, Point]], *, has_maps: bool) -> list[Card]:
    shown = ShownMaps.of(problem)
    size = max((float(np.abs(_three_maps(point, shown)).max()) for _, point in points), default=1.0)
    return [
        Card(
            title=wish.title,
            reason=wish.reason,
            theta=theta_text(summary, wish.theta.tolist()),
            facts=_facts(problem, summary, point, has_maps=has_maps),
            pictures=_pictures(point, shown, size)[: 4 if has_maps else 1],
            scale=rounded_up(size, 2),
            is_original=wish.title == ORIGINAL,
        )
        for wish, point in points
    ]


def _facts(problem: Problem, summary: Summary, point: Point, *, has_maps: bool) -> tuple[tuple[str, str], ...]:
    words = "label kept" if point.label == problem.label else "label changed"
    # At a border both answers are right within rounding, so only the margin is told.
    facts = [("says", f"{problem.names[point.label]} ({words})"), ("margin", rounded(point.margin))]
    if has_maps:
        facts.append(("inconsistency", comparison(point.inconsistency, float(summary["delta"]["value"]))))
    return tuple(facts)


def _three_maps(point: Point, shown: ShownMaps) -> np.ndarray:
    """Actual and expected map and their difference (3, H, W) of the class that is shown."""
    actual, expected = shown.pair(point)
    return np.stack([actual, expected, actual - expected])


def _pictures(point: Point, shown: ShownMaps, top: float) -> tuple[Picture, ...]:
    titles = ("actual map", "expected map", "difference")
    maps = [
        Picture(title, f"{title} of class {shown.name}", map_uri(values, top))
        for title, values in zip(titles, _three_maps(point, shown), strict=True)
    ]
    return (Picture("image", "the perturbed image", image_uri(point.image)), *maps)
