"""Movements by their definition: every pixel looks up the place that moves to it, between four pixels, in plain numpy.

Coordinates count from the centre, x to the right and y upwards, in pixels. The compiled code is not used.
"""

from collections.abc import Callable, Sequence

import numpy as np

from steadygaze.perturbation import Perturbation, Rotate, Scale, Shear, Translate

Places = tuple[np.ndarray, np.ndarray]


def source(one: Perturbation, theta: float) -> Callable[[np.ndarray, np.ndarray], Places]:
    """Where the pixel at (x, y) comes from."""
    match one:
        case Rotate():
            t = np.pi * theta / 180
            return lambda x, y: (x * np.cos(t) + y * np.sin(t), -x * np.sin(t) + y * np.cos(t))
        case Scale():
            return lambda x, y: (x / (1 + theta), y / (1 + theta))
        case Shear(axis="x"):
            return lambda x, y: (x - theta * y, y)
        case Shear():
            return lambda x, y: (x, y - theta * x)
        case Translate(dy=0):
            return lambda x, y: (x - np.sign(one.dx) * theta, y)
        case Translate():
            return lambda x, y: (x, y + np.sign(one.dy) * theta)
    raise AssertionError(f"{one.spec} does not move")


def look_up(pixels: np.ndarray, columns: np.ndarray, rows: np.ndarray, *, is_edge: bool) -> np.ndarray:
    """Pixels (..., H, W) at places (H, W) in columns and rows from the top left; zero outside, or the nearest pixel."""
    height, width = pixels.shape[-2:]
    if is_edge:
        columns, rows = np.clip(columns, 0.0, width - 1.0), np.clip(rows, 0.0, height - 1.0)
    total = np.zeros(pixels.shape)
    for row in (np.floor(rows), np.floor(rows) + 1.0):
        for column in (np.floor(columns), np.floor(columns) + 1.0):
            is_inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            share = np.where(is_inside, (1.0 - np.abs(rows - row)) * (1.0 - np.abs(columns - column)), 0.0)
            places = np.clip(row, 0, height - 1).astype(int), np.clip(column, 0, width - 1).astype(int)
            total += share * pixels[..., places[0], places[1]]
    return total


def moved(pixels: np.ndarray, perturbations: Sequence[Perturbation], theta: Sequence[float]) -> np.ndarray:
    """Pixels or maps (..., H, W) after all movements among the perturbations, in the order given, by one look-up."""
    height, width = pixels.shape[-2:]
    rows, columns = np.mgrid[:height, :width]
    x, y = columns - (width - 1) / 2, (height - 1) / 2 - rows
    pairs = [(one, float(own)) for one, own in zip(perturbations, theta, strict=True) if one.moves]
    for one, own in reversed(pairs):
        x, y = source(one, own)(x, y)
    is_edge = any(getattr(one, "border", "zero") == "edge" for one, _ in pairs)
    return look_up(pixels, x + (width - 1) / 2, (height - 1) / 2 - y, is_edge=is_edge)
