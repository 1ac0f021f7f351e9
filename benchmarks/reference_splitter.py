"""Plain numpy subdivision of the unit square, one polygon at a time: the baseline for the speed of engines.

It splits by the sign alone, so it is correct only for networks in general position, not for coincident lines.
"""

import numpy as np

Layers = list[tuple[np.ndarray, np.ndarray]]
Cell = tuple[np.ndarray, np.ndarray, np.ndarray]


def split(polygon: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The parts of a polygon (V, 2) on either side of a line, given its form's values (V,); None if it is not cut."""
    positive = value > 0
    if positive.all() or not positive.any():
        return None
    below: list[np.ndarray] = []
    above: list[np.ndarray] = []
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        (above if positive[i] else below).append(polygon[i])
        if positive[i] != positive[j]:
            t = value[i] / (value[i] - value[j])
            point = polygon[i] + t * (polygon[j] - polygon[i])
            below.append(point)
            above.append(point)
    return np.array(below), np.array(above)


def regions(layers: Layers) -> list[Cell]:
    """All regions of a network [(W, b), …] on the unit square: polygon, slope and offset of the last hidden layer."""
    cells: list[Cell] = [(np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]), np.eye(2), np.zeros(2))]
    for weight, bias in layers[:-1]:
        following: list[Cell] = []
        for polygon, slope, offset in cells:
            form, constant = weight @ slope, weight @ offset + bias
            value = polygon @ form.T + constant
            pieces = [polygon]
            for k in np.where((value.max(0) > 0) & (value.min(0) < 0))[0]:
                halves: list[np.ndarray] = []
                for piece in pieces:
                    cut = split(piece, piece @ form[k] + constant[k])
                    halves.extend([piece] if cut is None else cut)
                pieces = halves
            for piece in pieces:
                active = (piece.mean(0) @ form.T + constant) > 0
                following.append((piece, form * active[:, None], constant * active))
        cells = following
    return cells
