"""Compiled loops over the vertices of convex hulls: margins in two and three dimensions, nearest points in three."""

import numpy as np

from ..compiling import compiled

MOST_STEPS = 64
"""The most steps of the search: a few usually suffice, and the bound holds after any number of steps."""


@compiled
def _on_edge(a, b, weight, who):
    """Write the weight of b for the point nearest to 0 on the line through a and b; False if a and b coincide."""
    square, along = 0.0, 0.0
    for k in range(3):
        square += (b[k] - a[k]) ** 2
        along -= a[k] * (b[k] - a[k])
    weight[who] = along / square if square > 0.0 else 0.0
    return square > 0.0


@compiled
def _on_triangle(a, b, c, weight, who_b, who_c):
    """Write the weights of b and c for the point nearest to 0 on the plane through a, b, c; False if collinear."""
    uu, uv, vv, ru, rv = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(3):
        u, v = b[k] - a[k], c[k] - a[k]
        uu, uv, vv = uu + u * u, uv + u * v, vv + v * v
        ru, rv = ru - a[k] * u, rv - a[k] * v
    scale = uu * vv - uv * uv
    if scale <= 0.0:
        return False
    weight[who_b], weight[who_c] = (ru * vv - rv * uv) / scale, (rv * uu - ru * uv) / scale
    return True


@compiled
def _determinant(u, v, w, a, c):
    """The determinant of the rows u, v, w minus c times the row a."""
    ux, uy, uz = u[0] - c * a[0], u[1] - c * a[1], u[2] - c * a[2]
    vx, vy, vz = v[0] - c * a[0], v[1] - c * a[1], v[2] - c * a[2]
    wx, wy, wz = w[0] - c * a[0], w[1] - c * a[1], w[2] - c * a[2]
    return ux * (vy * wz - vz * wy) - uy * (vx * wz - vz * wx) + uz * (vx * wy - vy * wx)


@compiled
def _in_tetrahedron(a, b, c, d, weight):
    """Write the weights of b, c and d (corners 0, 1, 2) for 0 as a mixture of the four corners; False if flat."""
    scale = _determinant(b, c, d, a, 1.0)
    if scale == 0.0:
        return False
    weight[0] = -_determinant(a, c, d, a, 0.0) / scale
    weight[1] = -_determinant(b, a, d, a, 0.0) / scale
    weight[2] = -_determinant(b, c, a, a, 0.0) / scale
    return True


@compiled
def _nearest_on_face(simplex, size, mask, weight):
    """Weights of the affine projection of 0 onto corner size − 1 and the corners in `mask`; whether all are ≥ 0."""
    a = simplex[size - 1]
    count, first, second = 0, 0, 0
    for i in range(size - 1):
        weight[i] = 0.0
        if mask & (1 << i):
            first = i if count == 0 else first
            second = i if count == 1 else second
            count += 1
    is_there = True
    if count == 1:
        is_there = _on_edge(a, simplex[first], weight, first)
    elif count == 2:
        is_there = _on_triangle(a, simplex[first], simplex[second], weight, first, second)
    elif count == 3:
        is_there = _in_tetrahedron(a, simplex[0], simplex[1], simplex[2], weight)
    rest = 1.0
    for i in range(size - 1):
        rest -= weight[i]
        is_there &= weight[i] >= 0.0
    weight[size - 1] = rest
    return is_there and rest >= 0.0


@compiled
def _shrink(simplex, size, best, weight, nearest):
    """Reduce a simplex to the face nearest to 0 among those with its last corner; write the nearest point, return the
    number of corners."""
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

    Writes this point minus `at` to `nearest`. Returns a lower bound on the distance that does not depend on rounding in
    the search: for any direction n, no point of the hull is nearer than min n·(vertex − at) / |n|.
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


@compiled
def _value(form, j, point):
    """The value of form j at a point in the plane or in space."""
    if form.shape[0] == 3:
        return form[0, j] * point[0] + form[1, j] * point[1] + form[2, j]
    return form[0, j] * point[0] + form[1, j] * point[1] + form[2, j] * point[2] + form[3, j]


@compiled
def margins(logits, label, points, starts, region, centre, out):
    """Write the smallest f_label − max of the other logits on every piece, and the largest value at its vertices and
    centre: the margin is concave, so it may be positive only inside. centre (D,) is scratch."""
    for p in range(out.shape[0]):
        form, first, end = logits[region[p]], starts[p], starts[p + 1]
        low, high = np.inf, -np.inf
        for k in range(centre.shape[0]):
            centre[k] = 0.0
            for i in range(first, end):
                centre[k] += points[i, k]
            centre[k] /= end - first
        for i in range(first, end + 1):
            point = points[i] if i < end else centre
            other = -np.inf
            for j in range(form.shape[1]):
                if j != label:
                    other = max(other, _value(form, j, point))
            own = _value(form, label, point)
            low, high = min(low, own - other), max(high, own - other)
        out[p, 0], out[p, 1] = low, high
