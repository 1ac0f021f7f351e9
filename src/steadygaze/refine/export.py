"""From a refinement to the rows of an export: its boxes that bounds speak of, then the regions of the others."""

from itertools import product

import numpy as np

from ..properties.joint import Kept
from ..results.export import ATTENTIONS, LABELS, exact_part, make_table
from ..results.table import Block, Part, Table, shape_columns
from .outcome import RefineResult


def refine_table(result: RefineResult, what: str) -> Table:
    """Boxes and exact regions, or their pieces; what limits left of boxes that were to be mapped is not listed."""
    exact = result.answer.exact
    parts = () if exact is None else (exact_part(exact, what, is_measured=result.is_measured),)
    return make_table(result, what, (_boxes(result), *parts))


def _boxes(result: RefineResult) -> Part:
    """The boxes that were not mapped; with one label each, they are their own pieces."""
    answer, boxes, domain = result.answer, result.boxes, result.problem.compound.domain
    chosen, volumes = answer.bounded, boxes.volumes
    low, high = (domain.low + ends[:, : domain.dimension] * domain.widths for ends in (boxes.low, boxes.high))
    # As for regions: rounding must not lead out of the domain.
    low, high = (np.clip(ends, domain.low, domain.high) for ends in (low, high))

    def make(start: int, stop: int) -> Block:
        rows = chosen[start:stop]
        label, attention = answer.label_codes[rows], answer.attention_codes[rows]
        unknown = np.full(len(rows), np.nan)
        reach = boxes.inconsistency[rows] if result.is_measured else np.stack([unknown, unknown], axis=1)
        corners = _corners(low[rows], high[rows])
        starts = corners.shape[1] * np.arange(len(rows) + 1)
        return {
            "kind": ["box"] * len(rows),
            "number": rows,
            "classification": LABELS[label].tolist(),
            "attention": ATTENTIONS[attention].tolist() if result.is_measured else [None] * len(rows),
            "winner": np.where(label == Kept.YES, result.label, -1),
            "share": volumes[rows],
            "label_open": np.where(label == Kept.UNKNOWN, volumes[rows], 0.0),
            "attention_open": np.where(attention == Kept.UNKNOWN, volumes[rows], 0.0)
            if result.is_measured
            else unknown,
            "margin_low": boxes.margin[rows, 0],
            "margin_high": boxes.margin[rows, 1],
            "inconsistency_low": reach[:, 0],
            "inconsistency_high": reach[:, 1],
            "delta": np.full(len(rows), answer.delta),
            **shape_columns(corners.reshape(-1, domain.dimension), starts, 0.5 * (low[rows] + high[rows])),
        }

    return Part(len(chosen), make)


def _corners(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The corners (B, 2^d, d) of boxes from low (B, d) to high (B, d), counter-clockwise in the plane.

    >>> _corners(np.zeros((1, 2)), np.ones((1, 2)))[0].tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """
    sides = np.array(list(product((False, True), repeat=low.shape[1])))
    corners = np.where(sides, high[:, None], low[:, None])
    return corners[:, [0, 2, 3, 1]] if low.shape[1] == 2 else corners
