"""From a result to the inconsistency that a picture shades by, and to the tables of colours. Not what is proved."""

import numpy as np
from matplotlib import colormaps

from ...engines.refine.refine_result import RefineResult
from ...properties.joint import Kept
from ...results.domain_result import DomainResult
from ...results.values import inconsistency_at
from .. import colours
from .tiles import Tiles, exact_answers

MOST_SAMPLES, FEWEST_SAMPLES, NUMBERS = 17, 3, 200_000
"""Samples of each curve where the expected map moves: as many as stay below so many numbers in all."""

SEQUENTIAL = "cividis"
"""For inconsistencies without a threshold: lightness rises steadily, and red against green tells nothing."""

LEVELS = 256

LOWER_SHARE = 0.9


def unit_values(result: DomainResult, tiles: Tiles) -> tuple[np.ndarray, np.ndarray]:
    """The inconsistency (U, n) of all units at n places between their ends (U, 2) in t of the moving parameter.

    Of boxes the middle of the bounds; NaN where nothing is known. n is 1 where the expected map is kept.
    """
    compound, answers = result.problem.compound, exact_answers(result)
    axis, units = compound.perturbed.moving_axis, tiles.boxes + tiles.regions
    samples = 1 if axis is None else int(np.clip(NUMBERS // max(units, 1), FEWEST_SAMPLES, MOST_SAMPLES))
    values, spans = np.full((units, samples), np.nan), np.tile([0.0, 1.0], (units, 1))
    if isinstance(result, RefineResult):
        low, high = result.boxes.inconsistency.T
        middle = np.where(np.isfinite(high), 0.5 * (low + np.where(np.isfinite(high), high, 0.0)), np.nan)
        values[: tiles.boxes] = middle[:, None]
    if answers is None or answers.curves is None or not len(answers.regions):
        return values, spans
    polytopes, everything = answers.regions.polytopes, np.arange(len(answers.regions))
    points = polytopes.centres.copy()
    if axis is not None:
        spans[tiles.boxes :] = np.stack(polytopes.extent(axis), axis=1)
    for place in range(samples):
        if axis is not None:
            points[:, axis] = spans[tiles.boxes :] @ np.array([1.0 - place / (samples - 1), place / (samples - 1)])
        values[tiles.boxes :, place] = inconsistency_at(
            compound, answers.regions.cell, answers.curves, everything, points
        )
    return values, spans


def shown_top(values: np.ndarray, tiles: Tiles) -> float:
    """The inconsistency where shades end: that of all but the highest tenth of the domain, and of what is near it.

    A few small regions may be far above all others; the rest of the picture would be one colour.
    """
    volumes = np.bincount(tiles.unit, weights=tiles.volumes, minlength=len(values))
    highest = np.where(np.isfinite(values), values, 0.0).max(axis=1)
    order = np.argsort(highest, kind="stable")
    below = np.cumsum(volumes[order])
    if not len(below) or below[-1] <= 0.0:
        return 0.0
    quantile = float(highest[order][np.searchsorted(below, LOWER_SHARE * below[-1])])
    largest = float(highest.max())
    return largest if largest <= 1.5 * quantile else quantile


def palette(result: DomainResult, tiles: Tiles) -> dict[str, object]:
    """Colours by name, and one for each class that may win, as in the figures."""
    count = len(result.problem.names)
    shares = np.zeros(count + 1)
    np.add.at(shares, tiles.winner, tiles.volumes)
    shares[result.label] = 0.0
    ranked = [int(winner) for winner in np.argsort(-shares[:count], kind="stable") if shares[winner] > 0.0]
    own = colours.winner_colours(ranked, result.label)
    named = {
        "unknown": colours.UNKNOWN, "notReached": colours.NOT_REACHED, "hatch": colours.HATCH_INK,
        "changed": colours.CHANGED, "ink": colours.INK, "threshold": colours.DELTA_LINE, "paper": colours.PAPER,
        "kept": colours.KEPT, **colours.JOINT,
    }  # fmt: skip
    lost = np.zeros(count + 1)
    is_lost = tiles.label == Kept.NO
    np.add.at(lost, tiles.winner[is_lost], tiles.volumes[is_lost])
    return {
        "named": named,
        "winners": [own.get(winner, colours.KEPT) for winner in range(count)],
        "ranked": ranked,
        "most": len(colours.WINNERS),
        "shares": {str(winner): float(min(lost[winner], 1.0)) for winner in [*ranked, -1] if lost[winner] > 0.0},
    }


def tables() -> dict[str, tuple[str, np.ndarray]]:
    """Shades (256, 3) from 0 to 255: attention kept, attention not kept, inconsistency, attention maps."""
    shares = np.linspace(0.0, 1.0, LEVELS)
    maps = {
        "kept": colours.AR_SHADES, "lost": colours.IR_SHADES, "sequential": colormaps[SEQUENTIAL],
        "diverging": colormaps[colours.MAP_SHADES],
    }  # fmt: skip
    return {name: ("u1", np.round(255 * shades(shares)[:, :3])) for name, shades in maps.items()}
