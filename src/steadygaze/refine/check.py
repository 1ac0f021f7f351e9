"""Checks a refinement before it is delivered: the tiling of its boxes, and its claims against plain passes at thetas.

Every sampled margin and inconsistency must lie in what its box, or its exact piece, claims, up to the rounding of the
plain passes themselves (see `rounding`). The passes share the steps of the network with the bounds, so part of them is
done again by the graph. A refinement that fails is not delivered. Sampling finds mistakes; it proves nothing.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import InternalError
from ..problem import Problem
from ..regions.check import CheckedMap, check_map
from ..regions.forward_error import by_layer, plain_errors
from ..regions.region import Cut, Polygons
from ..results.answer import Answers
from ..tolerances import AREA
from .boxes import Boxes, State
from .plain import Plain
from .rounding import PROBES, Measuring, bound_rounding, margin_slack
from .samples import Sampler, Samples

MARGINS, INCONSISTENCIES, BY_GRAPH = (500, 2_000), (50, 200), (100, 200)
"""Least and most thetas whose margins and inconsistencies are compared, and margins that the graph computes again."""

EACH = (3.0, 0.3, 0.3)
"""How many of each for every box that claims something, between these."""

REGIONS, EDGES, SHARE = (150, 500), (75, 250), 0.1
"""Exact regions and edges (or facets) that are compared with a plain forward pass: a share of all regions."""

ALL_REGIONS, ALL_EDGES = 4_000, 1_500
"""Likewise where the whole domain was handed over."""

WORK = 20_000_000_000
"""Multiplications beyond which fewer thetas are compared: some seconds."""

FEWEST = 24
"""Thetas that are compared of each kind, however large the network."""

UNEVEN = 1e-7
"""How far the two sides of a cut may differ in size, as for a map."""


@dataclass(frozen=True)
class Sampled:
    """What was compared: margins inside and beside borders, inconsistencies; a sentence for each contradiction."""

    inside: int
    beside: int
    inconsistencies: int
    contradictions: tuple[str, ...]


def check_refined(problem: Problem, boxes: Boxes, answers: Answers | None, delta: float) -> CheckedMap:
    """Check boxes and the exact regions of a refinement (None where there are none); δ is absolute.

    Raises InternalError when something does not fit.
    """
    error = check_tiling(boxes)
    compared = CheckedMap(0.0, 0, 0)
    if answers is not None:
        volume = float(boxes.volumes[boxes.state == State.EXACT].sum())
        work = Plain(problem).work
        # Without any other box nothing else is compared.
        most = [ALL_REGIONS, ALL_EDGES]
        if not (boxes.state == State.EXACT).all():
            most = [int(np.clip(SHARE * len(answers.regions), *ends)) for ends in (REGIONS, EDGES)]
        inside, edges = (_fewer(count, work, share=0.1) for count in most)
        compared = check_map(
            problem.compound, _bare(answers).regions, expected_volume=volume, inside=inside, edges=edges
        )
    if (boxes.state == State.EXACT).all():
        # No box claims anything by itself, and the regions were compared as those of a map.
        return replace(compared, tiling_error=max(error, compared.tiling_error))
    sampled = check_boxes(problem, boxes, None if answers is None else _bare(answers), delta)
    return CheckedMap(
        max(error, compared.tiling_error), compared.inside + sampled.inside, compared.beside + sampled.beside
    )


def _bare(answers: Answers) -> Answers:
    """The same answers without what the check derives from polygons: of millions of regions that is much to keep."""
    regions, pieces = answers.regions, answers.pieces
    if isinstance(regions.polytopes, Polygons) and isinstance(pieces.polytopes, Polygons):
        regions = replace(regions, polytopes=regions.polytopes.bare())
        pieces = replace(pieces, polytopes=pieces.polytopes.bare())
    return replace(answers, regions=regions, pieces=pieces)


def check_boxes(problem: Problem, boxes: Boxes, answers: Answers | None, delta: float) -> Sampled:
    """Compare up to 2,000 margins and 200 inconsistencies with the claims; fewer where few boxes claim something.

    Raises InternalError for the first contradiction.
    """
    work = Plain(problem).work
    each = work * (1 + len(problem.attention.chosen(problem.model.classes)))
    claims = int((boxes.state != State.EXACT).sum())
    ranges = (MARGINS, INCONSISTENCIES, BY_GRAPH)
    most = (int(np.clip(share * claims, *ends)) for share, ends in zip(EACH, ranges, strict=True))
    counts = tuple(_fewer(count, cost) for count, cost in zip(most, (work, each, work), strict=True))
    sampled = sample_contradictions(problem, boxes, answers, delta, *counts)
    if sampled.contradictions:
        raise InternalError(
            f"self-check failed: {sampled.contradictions[0]}; nothing is delivered, please report this model and image"
        )
    return sampled


def sample_contradictions(
    problem: Problem,
    boxes: Boxes,
    answers: Answers | None,
    delta: float,
    margins: int = 10_000,
    inconsistencies: int = 1_000,
    by_graph: int = 1_000,
) -> Sampled:
    """Compare so many margins and inconsistencies with what a refinement claims; at least half lie beside borders.

    Works in any dimension. Where neither a margin nor an inconsistency is claimed at all, nothing can contradict.
    """
    plain = Plain(problem)
    samples = Sampler(boxes, answers, delta, plain.domain.dimension).draw(margins)
    found = _margin_contradictions(plain, samples, by_graph)
    claims = np.isfinite(samples.inconsistency[:, 1]) | (samples.inconsistency[:, 0] > 0.0)
    measured = samples.take(np.flatnonzero(claims)[:inconsistencies])
    found += _inconsistency_contradictions(plain, measured, answers)
    beside = int(samples.is_beside.sum())
    return Sampled(len(samples) - beside, beside, len(measured), tuple(found))


def check_tiling(boxes: Boxes) -> float:
    """How far the volumes of the boxes are from 1 in sum; raises InternalError if they do not tile the unit cube.

    Every cut must be as large on one side as on the other, every border must be covered.
    """
    volumes, widths = boxes.volumes, boxes.high - boxes.low
    error = abs(float(volumes.sum()) - 1.0)
    if not (widths > 0.0).all() or not error <= AREA:
        raise InternalError(
            f"the boxes add up to {volumes.sum()!r} of the domain instead of 1: please report this model and image"
        )
    totals = np.zeros((2, len(boxes.cuts) + 1))
    sizes = np.repeat((volumes[:, None] / widths)[:, :, None], 2, axis=2)
    np.add.at(totals, ((boxes.sides < 0).astype(np.int64), np.abs(boxes.sides)), sizes)
    is_border = np.concatenate([[False], boxes.cuts[:, 0] == Cut.BORDER])
    uneven = np.abs(totals[0] - np.where(is_border, 1.0, totals[1]))[1:]
    worst = int(np.argmax(uneven))
    if uneven[worst] > UNEVEN:
        raise InternalError(f"cut {worst + 1} of the boxes has one side only: please report this model and image")
    return error


def _margin_contradictions(plain: Plain, samples: Samples, by_graph: int) -> list[str]:
    thetas = plain.to_theta(samples.points)
    margins = plain.margins(thetas)
    found = _outside(plain, samples, thetas, margins)
    again = slice(0, min(by_graph, len(thetas)))
    for part in plain.batches(len(thetas[again]), 1):
        logits = plain.problem.model.graph.logits(plain.perturbed.images(thetas[again][part]))
        margins[again][part] = plain.margins_of(logits)
    first = np.arange(len(thetas[again]))
    return found + _outside(plain, samples.take(first), thetas[again], margins[again])


def _outside(plain: Plain, samples: Samples, thetas: np.ndarray, margins: np.ndarray) -> list[str]:
    """Sentences about margins (N,) that are outside of what is claimed by more than their rounding."""
    low, high = samples.margin.T
    # NaN is inside of nothing; only what is outside is worth the bound of its rounding.
    outside = np.flatnonzero(~((low <= margins) & (margins <= high)))
    found = []
    for part in plain.batches(len(outside), max(PROBES, plain.problem.model.classes)):
        chosen = outside[part]
        trace = plain.trace(thetas[chosen])
        rounding = bound_rounding(plain, thetas[chosen], trace)
        slack = margin_slack(plain, trace, rounding, _all_rivals(plain, len(chosen))).max(axis=1, initial=0.0)
        fits = (low[chosen] <= margins[chosen] + slack) & (margins[chosen] - slack <= high[chosen])
        found += [_sentence(samples, thetas, margins, number, "margin") for number in chosen[~fits]]
    return found


def _inconsistency_contradictions(plain: Plain, samples: Samples, answers: Answers | None) -> list[str]:
    thetas = plain.to_theta(samples.points)
    values = plain.inconsistencies(thetas)[1]
    low, high = samples.inconsistency.T
    outside = np.flatnonzero(~((low <= values) & (values <= high)))
    measured = Measuring(plain).at(thetas[outside], has_attention=True)
    slack = np.where(np.isnan(values[outside]), 0.0, measured.inconsistency_slack)
    fits = (low[outside] <= values[outside] + slack) & (values[outside] - slack <= high[outside])
    found = [number for number in outside[~fits] if not _is_on_kink(plain, samples, thetas, number, answers)]
    return [_sentence(samples, thetas, values, number, "inconsistency") for number in found]


def _is_on_kink(plain: Plain, samples: Samples, thetas: np.ndarray, number: int, answers: Answers | None) -> bool:
    """Whether a theta of an exact piece lies on a kink, which the piece claims nothing of."""
    if answers is None or not samples.is_piece[number]:
        return False
    values = plain.trace(thetas[number : number + 1]).values
    known, own = answers.forward_errors, plain_errors(answers.compound, answers.regions.accuracy)
    missed = by_layer(answers.compound, answers.regions.accuracy.missed)
    layers = zip(values, known[:-1], own[:-1], missed, strict=True)
    return any(bool((np.abs(value[0]) <= first + second + left).any()) for value, first, second, left in layers)


def _all_rivals(plain: Plain, batch: int) -> np.ndarray:
    """Rows (B, K − 1, K) that take every other logit from that of the label."""
    everything, label = np.eye(plain.problem.model.classes), plain.problem.label
    return np.repeat((everything[label] - np.delete(everything, label, axis=0))[None], batch, axis=0)


def _sentence(samples: Samples, thetas: np.ndarray, values: np.ndarray, number: int, what: str) -> str:
    low, high = getattr(samples, what)[number]
    owner = f"{'exact piece' if samples.is_piece[number] else 'box'} {samples.place[number]}"
    return (
        f"{owner} claims a{'n' if what[0] == 'i' else ''} {what} from {low:.9g} to {high:.9g}, but a plain pass gives "
        f"{values[number]:.9g} at theta {thetas[number].tolist()}"
    )


def _fewer(most: int, work: int, *, share: float = 1.0) -> int:
    """Fewer thetas where one takes so many multiplications that all of them would exceed the (share of the) work."""
    return int(np.clip(share * WORK / work, FEWEST, most))
