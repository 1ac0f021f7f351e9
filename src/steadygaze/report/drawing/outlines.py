"""Outlines of pixels: the edges between chosen pixels and the others, for masks and for marked pixels."""

from typing import NamedTuple

import numpy as np

from ...results.point import Point
from ...results.result import Result
from ...results.strayed import strayed_pixels

OBJECT, STRAYED = "#0a9d4e", "#d4006a"
"""Colours of the object's outline, and of the pixels to which lost attention has moved."""
HALF = 0.5


class Outline(NamedTuple):
    """Edges (N, 2, 2) from point to point (x, y), in pixels from the upper left corner, and their colour."""

    edges: np.ndarray
    colour: str


def outline_edges(chosen: np.ndarray) -> np.ndarray:
    """The edges (N, 2, 2) between chosen pixels (H, W) and the others; the border of the image counts as other.

    >>> outline_edges(np.array([[True]])).tolist()
    [[[0, 0], [1, 0]], [[0, 1], [1, 1]], [[0, 0], [0, 1]], [[1, 0], [1, 1]]]
    """
    padded = np.pad(chosen, 1)
    rows, columns = np.nonzero(padded[1:, 1:-1] != padded[:-1, 1:-1])
    flat = np.stack([np.stack([columns, rows], axis=1), np.stack([columns + 1, rows], axis=1)], axis=1)
    rows, columns = np.nonzero(padded[1:-1, 1:] != padded[1:-1, :-1])
    upright = np.stack([np.stack([columns, rows], axis=1), np.stack([columns, rows + 1], axis=1)], axis=1)
    return np.concatenate([flat, upright])


def image_outlines(point: Point) -> tuple[Outline, ...]:
    """The outline of the object at a theta; none without a mask."""
    return () if point.weights is None else (Outline(outline_edges(point.weights >= HALF), OBJECT),)


def map_outlines(result: Result, point: Point) -> tuple[Outline, ...]:
    """The outline of the object at a theta, and of the pixels to which lost attention has moved."""
    is_lost = point.inconsistency > result.answer.delta
    pixels = strayed_pixels(result, point) if is_lost else None
    strayed = () if pixels is None else (Outline(outline_edges(pixels), STRAYED),)
    return (*strayed, *image_outlines(point))
