"""Compiled search for the point of a convex hull in space that is nearest to a given one."""

import numpy as np

from ..compiling import compiled

MOST_STEPS = 64
"""Steps of the search: a few are the rule, and the bound holds after any number."""


@compiled
def _nearest_on_face(simplex, size, mask, weight):
    """Weights of the affine projection of 0 onto the corner size − 1 and those in `mask`; whether all are ≥ 0."""
    a = simplex[size - 1]
    n = 0
    who0, who1, who2 = 0, 0, 0
    for i in range(size - 1):
        weight[i] = 0.0
        if mask & (1 << i):
            if n == 0:
                who0 = i
            elif n == 1:
                who1 = i
            else:
                who2 = i
            n += 1
    weight[size - 1] = 1.0
    if n == 0:
        return True
    b = simplex[who0]
    ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    uu = ux * ux + uy * uy + uz * uz
    ru = -(a[0] * ux + a[1] * uy + a[2] * uz)
    if n == 1:
        if uu <= 0.0:
            return False
        weight[who0] = ru / uu
        weight[size - 1] = 1.0 - weight[who0]
        return weight[who0] >= 0.0 and weight[size - 1] >= 0.0
    c = simplex[who1]
    vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    if n == 2:
        vv = vx * vx + vy * vy + vz * vz
        uv = ux * vx + uy * vy + uz * vz
        rv = -(a[0] * vx + a[1] * vy + a[2] * vz)
        det = uu * vv - uv * uv
        if det <= 0.0:
            return False
        weight[who0], weight[who1] = (ru * vv - rv * uv) / det, (rv * uu - ru * uv) / det
        weight[size - 1] = 1.0 - weight[who0] - weight[who1]
        return weight[who0] >= 0.0 and weight[who1] >= 0.0 and weight[size - 1] >= 0.0
    d = simplex[who2]
    wx, wy, wz = d[0] - a[0], d[1] - a[1], d[2] - a[2]
    det = ux * (vy * wz - vz * wy) - uy * (vx * wz - vz * wx) + uz * (vx * wy - vy * wx)
    if det == 0.0:
        return False
    px, py, pz = -a[0], -a[1], -a[2]
    weight[who0] = (px * (vy * wz - vz * wy) - py * (vx * wz - vz * wx) + pz * (vx * wy - vy * wx)) / det
    weight[who1] = (ux * (py * wz - pz * wy) - uy * (px * wz - pz * wx) + uz * (px * wy - py * wx)) / det
    weight[who2] = (ux * (vy * pz - vz * py) - uy * (vx * pz - vz * px) + uz * (vx * py - vy * px)) / det
    weight[size - 1] = 1.0 - weight[who0] - weight[who1] - weight[who2]
    return weight[who0] >= 0.0 and weight[who1] >= 0.0 and weight[who2] >= 0.0 and weight[size - 1] >= 0.0


@compiled
def _shrink(simplex, size, best, weight, nearest):
    """Replace a simplex by its face nearest to 0 among those with the last corner; write that point; its corners."""
    closest, chosen = np.inf, 0
    for mask in range(1 << (size - 1)):
        if not _nearest_on_face(simplex, size, mask, weight):
            continue
        x, y, z = 0.0, 0.0, 0.0
        for i in range(size):
            x += weight[i] * simplex[i, 0]
            y += weight[i] * simplex[i, 1]
            z += weight[i] * simplex[i, 2]
        distance = 0.0 if mask == 7 else x * x + y * y + z * z
        if distance < closest:
            closest, chosen = distance, mask
            best[0], best[1], best[2] = (0.0, 0.0, 0.0) if mask == 7 else (x, y, z)
    kept = 0
    for i in range(size):
        if i == size - 1 or chosen & (1 << i):
            for k in range(3):
                simplex[kept, k] = simplex[i, k]
            kept += 1
    for k in range(3):
        nearest[k] = best[k]
    return kept


@compiled
def nearest_of_hull(at, points, first, end, simplex, weight, best, nearest):
    """The point of the convex hull of points[first:end] nearest to `at` (Gilbert, Johnson and Keerthi).

    Writes that point minus `at` to `nearest`; returns a lower bound of the distance, which holds whatever the rounding
    of the search: for a direction n, no point of the hull is nearer than min n·(vertex − at) / |n|.
    `simplex` (4, 3), `weight` (4,) and `best` (3,) are scratch.
    """
    square = np.inf
    for i in range(first, end):
        value = 0.0
        for k in range(3):
            value += (points[i, k] - at[k]) ** 2
        if value < square:
            square = value
            for k in range(3):
                simplex[0, k] = nearest[k] = points[i, k] - at[k]
    size, low = 1, 0.0
    for _ in range(MOST_STEPS):
        if square <= 0.0:
            return 0.0
        reach, farthest = np.inf, first
        for i in range(first, end):
            value = 0.0
            for k in range(3):
                value += nearest[k] * (points[i, k] - at[k])
            if value < reach:
                reach, farthest = value, i
        low = max(low, reach / np.sqrt(square))
        if square - reach <= 1e-13 * square:
            break
        is_old = False
        for n in range(size):
            is_same = True
            for k in range(3):
                is_same &= simplex[n, k] == points[farthest, k] - at[k]
            is_old |= is_same
        if is_old:
            break
        for k in range(3):
            simplex[size, k] = points[farthest, k] - at[k]
            weight[k] = nearest[k]
        before_x, before_y, before_z = nearest[0], nearest[1], nearest[2]
        size = _shrink(simplex, size + 1, best, weight, nearest)
        smaller = nearest[0] ** 2 + nearest[1] ** 2 + nearest[2] ** 2
        if smaller >= square:
            nearest[0], nearest[1], nearest[2] = before_x, before_y, before_z
            break
        square = smaller
    return max(low, 0.0)


@compiled
def distances_to(at, points, starts, chosen, room, out):
    """Write the squared distance (a lower bound) and the nearest point of each chosen polyhedron to `at`: (S, 4)."""
    simplex, weight, best, nearest = room[:4], room[4], room[5, :3], room[6, :3]
    for n in range(chosen.shape[0]):
        low = nearest_of_hull(at, points, starts[chosen[n]], starts[chosen[n] + 1], simplex, weight, best, nearest)
        out[n, 0] = low * low
        for k in range(3):
            out[n, 1 + k] = at[k] + nearest[k]
