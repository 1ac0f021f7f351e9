"""Maps of one and two parameters: drives the compiled loops over polygons (`kernels`), makes room for their output."""

import numpy as np

from ..errors import InternalError
from ..regions.region import Polygons
from . import kernels


def split_by_argmax(
    polygons: Polygons, logits: np.ndarray, noise: float, base: int
) -> tuple[Polygons, np.ndarray, np.ndarray, np.ndarray]:
    """See `shapes.split_by_argmax`."""
    x, y = np.ascontiguousarray(polygons.points.T)
    widest = int(np.diff(polygons.starts).max(initial=4))
    for growth in (2, 8, 64, 512):
        count = len(polygons) + growth * 1024 + growth * len(polygons) // 8
        vertices = len(polygons.points) + 8 * (count - len(polygons))
        side = 64 * (widest + 64)
        room = (
            np.zeros(side), np.zeros(side), np.zeros(side, dtype=np.int64), np.zeros(side),
            np.zeros((4096, 2), dtype=np.int64), np.zeros(side), np.zeros(side), np.zeros(side, dtype=np.int64),
        )  # fmt: skip
        out_x, out_y, out_edge = np.zeros(vertices), np.zeros(vertices), np.zeros(vertices, dtype=np.int64)
        starts = np.zeros(count + 1, dtype=np.int64)
        origin, winner = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        pairs = np.zeros((count, 2), dtype=np.int64)
        pieces, cuts = kernels.split_by_argmax(
            logits, noise, x, y, polygons.edges, polygons.starts, base, room,
            out_x, out_y, out_edge, starts, origin, winner, pairs,
        )  # fmt: skip
        if pieces >= 0:
            used = starts[pieces]
            points = np.stack([out_x[:used], out_y[:used]], axis=1)
            found = Polygons(points, starts[: pieces + 1].copy(), out_edge[:used].copy())
            return found, origin[:pieces].copy(), winner[:pieces].copy(), pairs[:cuts].copy()
    raise InternalError("a region has more argmax pieces than there is room for: please report the model")


def margins(polygons: Polygons, logits: np.ndarray, region: np.ndarray, label: int) -> np.ndarray:
    """See `shapes.margins`."""
    out = np.zeros((len(region), 2))
    x, y = np.ascontiguousarray(polygons.points.T)
    kernels.margins(logits, label, x, y, polygons.starts, region, out)
    return out


def decided_volumes(
    polygons: Polygons,
    logits: np.ndarray,
    label: int,
    region: np.ndarray,
    winner: np.ndarray,
    slack: np.ndarray,
    chosen: np.ndarray,
) -> np.ndarray:
    """See `shapes.decided_volumes`."""
    decided = np.zeros(len(chosen))
    x, y = np.ascontiguousarray(polygons.points.T)
    room = 4 * (int(np.diff(polygons.starts).max(initial=0)) + logits.shape[2] + 8)
    kernels.decided_areas(
        logits, label, x, y, polygons.starts, region, winner, slack,
        chosen, np.zeros((3, room)), np.zeros(room, dtype=np.int64), np.zeros((3, room)), decided,
    )  # fmt: skip
    return decided


def slab_volumes(polygons: Polygons, chosen: np.ndarray, slab: np.ndarray, axis: int) -> np.ndarray:
    """See `shapes.slab_volumes`."""
    areas = np.zeros(len(chosen))
    x, y = np.ascontiguousarray(polygons.points.T)
    room = 4 * (int(np.diff(polygons.starts).max(initial=0)) + 8)
    kernels.slab_areas(
        x, y, polygons.starts, chosen, slab, axis,
        np.zeros((3, room)), np.zeros(room, dtype=np.int64), np.zeros((3, room)), areas,
    )  # fmt: skip
    return areas


def split_by_slab(
    polygons: Polygons, slab: np.ndarray, axis: int, base: int
) -> tuple[Polygons, np.ndarray, np.ndarray, int]:
    """See `shapes.split_by_slab`."""
    x, y = np.ascontiguousarray(polygons.points.T)
    side = 8 * (int(np.diff(polygons.starts).max(initial=4)) + 8)
    room = (np.zeros(side), np.zeros(side), np.zeros(side, dtype=np.int64), np.zeros(side))
    count, vertices = 3 * len(polygons), 3 * len(polygons.points) + 8 * len(polygons)
    out_x, out_y, out_edge = np.zeros(vertices), np.zeros(vertices), np.zeros(vertices, dtype=np.int64)
    starts, origin = np.zeros(count + 1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    inside, made = np.zeros(count, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    found = kernels.split_by_slab(
        np.ascontiguousarray(slab), axis, x, y, polygons.edges, polygons.starts, base, room,
        out_x, out_y, out_edge, starts, origin, inside, made,
    )  # fmt: skip
    if found < 0:
        raise InternalError("a slab cut has more pieces than there is room for: please report the model")
    used = starts[found]
    points = np.stack([out_x[:used], out_y[:used]], axis=1)
    split = Polygons(points, starts[: found + 1].copy(), out_edge[:used].copy())
    return split, origin[:found], inside[:found].astype(bool), int(made[0])


def nearest_points(point: np.ndarray, points: np.ndarray, starts: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """See `shapes.nearest_points`."""
    out = np.zeros((len(chosen), 3))
    x, y = np.ascontiguousarray(points.T)
    kernels.distances_to(point[0], point[1], x, y, starts, chosen, out)
    return out


def clip(polygon: np.ndarray, form: np.ndarray) -> np.ndarray:
    """See `shapes.clip`."""
    values = polygon @ form[:2] + form[2]
    points = []
    for i, value in enumerate(values):
        j = (i + 1) % len(values)
        if value >= 0.0:
            points.append(polygon[i])
        if (value >= 0.0) != (values[j] >= 0.0):
            points.append(polygon[i] + value / (value - values[j]) * (polygon[j] - polygon[i]))
    return np.array(points).reshape(-1, 2)
