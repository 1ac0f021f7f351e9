"""A result → a small map: labels at the points of a coarse grid, as one text that a row can hold.

It proves nothing: it shows the labels of the result at these points.
"""

from typing import Any

import numpy as np

from ..labels import Kept
from ..polytopes.grid import shapes_on_grid
from ..results.label_grid import NOTHING, held_at
from ..results.result import Result
from ..tolerances import MAX_MAP_PARAMETERS

SIDE = 48
"""Points along each side."""

LETTERS = {
    (Kept.YES, Kept.YES): "a",
    (Kept.YES, Kept.NO): "b",
    (Kept.NO, Kept.YES): "c",
    (Kept.NO, Kept.NO): "d",
    (Kept.YES, Kept.UNKNOWN): "e",
    (Kept.NO, Kept.UNKNOWN): "f",
}
"""Letters for the codes of label and attention: both kept, label alone, attention alone, neither; for e and f, only the
label is known."""

UNKNOWN = "-"
"""Any other point."""


def small_map(result: Result) -> dict[str, Any] | None:
    """The rows of a grid as texts of `LETTERS`, the last row first; None for searches and many parameters.

    A domain with one parameter has one row. With three, the last one is held at zero, or at its low end.
    """
    domain = result.question.compound.domain
    if domain.dimension > MAX_MAP_PARAMETERS or not result.tiling.answers_any_delta:
        return None
    label, attention = _codes(result)
    letters = np.full(label.shape, UNKNOWN)
    for (first, second), letter in LETTERS.items():
        letters[(label == first) & (attention == second)] = letter
    rows = letters[:1] if domain.dimension == 1 else letters[::-1]
    held = None if domain.dimension < 3 else f"{domain.names[2]} = {held_at(domain, 2)[0]:g}"
    return {"rows": ["".join(row) for row in rows.tolist()], "held": held}


def _codes(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """`Kept` codes of label and attention (SIDE, SIDE), rows counting upwards."""
    domain, grid = result.question.compound.domain, result.answer.grid
    if grid is not None:
        # A map in chunks has the points of a finer grid.
        plane = grid.planes[0]
        places = (np.arange(SIDE) * len(plane.label) + len(plane.label) // 2) // SIDE
        found = [np.where(each == NOTHING, Kept.UNKNOWN, each) for each in (plane.label, plane.attention)]
        return found[0][np.ix_(places, places)], found[1][np.ix_(places, places)]
    joint = result.answer.joint
    axis, at = (2, held_at(domain, 2)[1]) if domain.dimension == 3 else (None, 0.0)
    owners = shapes_on_grid(joint.polytopes, axis, at, SIDE)
    label = np.append(joint.label_codes, Kept.UNKNOWN)[owners]
    attention = np.append(joint.attention_codes, Kept.UNKNOWN)[owners]
    return label, attention if result.is_measured else np.full_like(attention, Kept.UNKNOWN)
