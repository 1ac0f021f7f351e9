"""Proved labels on lines and planes through one theta, along one or two of many parameters, at the points of a grid.

Every point takes what is proved of the box that holds it, or of its side of the box's plane. Decides nothing itself.
"""

from itertools import product

import numpy as np

from ...engines.refine.boxes import State
from ...engines.refine.merged_answer import MergedAnswer
from ...labels import Kept
from ...results.label_grid import beside


def paint_labels(
    answer: MergedAnswer, theta: np.ndarray, axes: tuple[int, ...], side: int
) -> tuple[np.ndarray, np.ndarray]:
    """`Kept` codes of label and attention at `side` points along each axis, the others held at theta (d,).

    Points lie in the middle of equal steps. The axes of the arrays are those given, in their order.
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
