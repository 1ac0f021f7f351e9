"""Which thetas a figure shows with image and maps: zero, nearest violations, telling pieces, corners. Draws nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ..properties.joint import Kept
from ..results.domain_result import DomainResult, Point

MOST = 6
CLOSEST_VIOLATION, CLOSEST_OTHER = 0.003, 0.05
"""Thetas nearer to each other than these shares of the domain's widths show the same picture: one of them is enough."""


NEARER = 0.003
"""Where a violation that is nearer by more than this (in widths of the domain) is not excluded, the figure says so."""


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A theta to be shown: why, and everything about it."""

    title: str
    point: Point


Wish = tuple[float, str, np.ndarray]
"""A theta that a figure may show: how near another one may be, why it is shown, and where it is."""


def choose_exhibits(result: DomainResult) -> tuple[Exhibit, ...]:
    """At most six thetas in a fixed order, the unperturbed image first (also where zero is outside of the domain)."""
    return _chosen(result, [*_nearest(result), *_telling(result), *_corners(result)])


def choose_beside(result: DomainResult, farthest: Sequence[tuple[str, np.ndarray]]) -> tuple[Exhibit, ...]:
    """At most six thetas that tell two boundaries apart: zero, the farthest thetas given, telling and nearest ones."""
    wishes = [(CLOSEST_VIOLATION, *wish) for wish in farthest]
    return _chosen(result, [*wishes, *_telling(result), *_nearest(result), *_corners(result)])


def _chosen(result: DomainResult, wishes: Sequence[Wish]) -> tuple[Exhibit, ...]:
    widths = result.problem.compound.domain.widths
    chosen = [Exhibit("unperturbed", unperturbed_point(result))]
    for closest, title, theta in wishes:
        steps = [np.abs(theta - other.point.theta) / widths for other in chosen]
        if len(chosen) < MOST and min(step.max() for step in steps) > closest:
            chosen.append(Exhibit(title, result.at(theta)))
    return tuple(chosen)


def unperturbed_point(result: DomainResult) -> Point:
    """Everything about the unperturbed image, also where zero is outside of the domain."""
    problem = result.problem
    theta = np.zeros(problem.perturbed.domain.dimension)
    if problem.perturbed.domain.contains_zero:
        return result.at(theta)
    logits = problem.model.graph.logits(problem.perturbed.x0[None])[0]
    margin = float(logits[result.label] - np.delete(logits, result.label).max())
    return Point(theta, None, problem.perturbed.x0, logits, result.label, margin, result.original, result.original, 0.0)


def _nearest(result: DomainResult) -> list[Wish]:
    found = [("IR", result.nearest["AR"]), ("MR", result.nearest["CR"])]
    return [
        (
            CLOSEST_VIOLATION,
            f"nearest {name}" if violation.high - violation.low < NEARER else f"nearest found {name}",
            violation.theta,
        )
        for name, violation in found
        if violation.theta is not None
    ]


def _telling(result: DomainResult) -> list[Wish]:
    """Inside the pieces that only both labels together show: the label kept for another reason, and the reverse."""
    joint, compound = result.answer.joint, result.problem.compound
    label = joint.label_codes
    centres = joint.polytopes.centres
    found = []
    other_reason = np.flatnonzero((label == Kept.YES) & (joint.attention == Kept.NO))
    if len(other_reason):
        ai = result.answer.inconsistencies[other_reason]
        found.append(("other evidence", centres[other_reason[np.argmax(ai)]]))
    same_reason = np.flatnonzero((label == Kept.NO) & (joint.attention == Kept.YES))
    if len(same_reason):
        largest = same_reason[np.argmax(joint.polytopes.volumes[same_reason])]
        found.append(("MR, same evidence", centres[largest]))
    return [(CLOSEST_OTHER, title, compound.to_theta(centre[None])[0]) for title, centre in found]


def _corners(result: DomainResult) -> list[Wish]:
    """The corners of the domain, the one farthest from zero first, then thetas between them."""
    domain = result.problem.compound.domain
    word, shares = ("end", (0.5, 0.25, 0.75)) if domain.dimension == 1 else ("corner", (0.5,))
    corners = [np.array(corner) for corner in product(*zip(domain.low, domain.high, strict=True))]
    corners.sort(key=lambda corner: -float(np.abs(corner / domain.widths).sum()))
    between = [(CLOSEST_OTHER, "in between", domain.low + share * domain.widths) for share in shares]
    return [(CLOSEST_OTHER, word, corner) for corner in corners] + between
