"""Compiled loops: sums over pixels of products of polynomials in t.

Maps are gradients times a factor, which is affine in t on a region; expected maps are affine in t times that factor.
Affine functions have the coefficients (constant, then D slopes); `table` numbers the products of monomials. factor
(N or 1, pixels, D+1), with bounds on its error and its size on the region (N or 1, pixels) in `off` and `largest`.
Each sum gets its error in the last column: that of factors, and `share` of the sum of all |terms|. room (3, M)
holds single terms.
"""

from ..compiling import compiled, compiled_inline

LEAST_RANGE = 1e-6
"""Weights of a mean must have a larger range than this."""


@compiled_inline
def _multiply(first, second, table, out):
    """out = first · second; returns how many coefficients of out may differ from 0."""
    end = table[first.shape[0] - 1, second.shape[0] - 1] + 1
    for k in range(end):
        out[k] = 0.0
    for i in range(first.shape[0]):
        if first[i] != 0.0:
            for j in range(second.shape[0]):
                out[table[i, j]] += first[i] * second[j]
    return end


@compiled_inline
def _add_product(first, second, count, table, out):
    """out += first · second, of their first `count` coefficients."""
    for i in range(count):
        if first[i] != 0.0:
            for j in range(count):
                if second[j] != 0.0:
                    out[table[i, j]] += first[i] * second[j]


@compiled_inline
def _size(form):
    total = 0.0
    for value in form:
        total += abs(value)
    return total


@compiled
def add_distances(maps, owner, expected, factor, off, largest, table, share, room, out):
    """out (N, K, M+1): Σ (map − expected)² of regions with maps owner (N,) of (B, K, pixels).

    expected (K, pixels, D+1).
    """
    width, last = expected.shape[2], out.shape[2] - 1
    line, term = room[0, :width], room[1]
    for n in range(out.shape[0]):
        at = n if factor.shape[0] > 1 else 0
        for c in range(expected.shape[0]):
            own = maps[owner[n], c]
            for i in range(expected.shape[1]):
                for j in range(width):
                    line[j] = -expected[c, i, j]
                line[0] += own[i]
                size = _size(line)
                if size == 0.0:
                    continue
                count = _multiply(line, factor[at, i], table, term)
                _add_product(term, term, count, table, out[n, c])
                most, total = largest[at, i], _size(factor[at, i])
                error = off[at, i] * (2.0 * most + off[at, i]) + share * total * total
                out[n, c, last] += size * size * error


@compiled
def add_cosines(maps, owner, expected, factor, off, largest, table, share, room, out):
    """out (N, 3, M+1): Σ map · expected, Σ map² and Σ expected²; otherwise as `add_distances`."""
    width, last = expected.shape[2], out.shape[2] - 1
    line, ours, theirs = room[0, :width], room[1], room[2]
    for n in range(out.shape[0]):
        at = n if factor.shape[0] > 1 else 0
        for c in range(expected.shape[0]):
            own = maps[owner[n], c]
            for i in range(expected.shape[1]):
                for j in range(width):
                    line[j] = 0.0
                line[0] = own[i]
                first, second = abs(own[i]), _size(expected[c, i])
                if first == 0.0 and second == 0.0:
                    continue
                count = _multiply(line, factor[at, i], table, ours)
                _multiply(expected[c, i], factor[at, i], table, theirs)
                _add_product(ours, theirs, count, table, out[n, 0])
                _add_product(ours, ours, count, table, out[n, 1])
                _add_product(theirs, theirs, count, table, out[n, 2])
                most, total = largest[at, i], _size(factor[at, i])
                error = off[at, i] * (2.0 * most + off[at, i]) + share * total * total
                out[n, 0, last] += first * second * error
                out[n, 1, last] += first * first * error
                out[n, 2, last] += second * second * error


@compiled
def add_masses(maps, owner, outside, factor, off, largest, table, share, room, out):
    """out (N, 2, M+1): Σ outside · |map| and Σ |map|; outside (pixels, D+1), factors are not negative."""
    width, last = outside.shape[1], out.shape[2] - 1
    term = room[0]
    for n in range(out.shape[0]):
        at = n if factor.shape[0] > 1 else 0
        for i in range(outside.shape[0]):
            mass = 0.0
            for c in range(maps.shape[1]):
                mass += abs(maps[owner[n], c, i])
            if mass == 0.0:
                continue
            count = _multiply(outside[i], factor[at, i], table, term)
            for k in range(count):
                if term[k] != 0.0:
                    out[n, 0, k] += mass * term[k]
            for j in range(width):
                out[n, 1, j] += mass * factor[at, i, j]
            total = _size(factor[at, i])
            out[n, 0, last] += mass * (off[at, i] + share * total * _size(outside[i]))
            out[n, 1, last] += mass * (off[at, i] + share * total)


@compiled
def add_strongest(maps, owner, is_on, factor, off, share, points, starts, most, candidates, out):
    """out (N, 2 k + 2, M+1): the strongest functions |map| · factor on the object, k at most, k off it, and bounds.

    The bounds are those of all others on and off the object, or 0. A pixel's strength is its largest |map| of all
    classes. A function is left out where others of its kind are at least as large at every t, errors included; those of
    the other kind do not count, because errors of gradients are not known here. At the corners points (V, D) of
    t − origin, region n has starts[n]:starts[n+1]. most, candidates (pixels,): room.
    """
    width, last, k = factor.shape[2], out.shape[2] - 1, (out.shape[1] - 2) // 2
    for n in range(out.shape[0]):
        at = n if factor.shape[0] > 1 else 0
        corners = points[starts[n] : starts[n + 1]]
        for kind in range(2):
            own, floor, count, kept = out[n, kind * k : (kind + 1) * k], 0.0, 0, 0
            for i in range(is_on.shape[0]):
                if is_on[i] == (kind == 0):
                    size = _strength(maps[owner[n]], i)
                    low, high = _ends(size, factor[at, i], corners)
                    error = size * (off[at, i] + share * _size(factor[at, i]))
                    most[i], floor = high + error, max(floor, low - error)
            for i in range(is_on.shape[0]):
                if is_on[i] == (kind == 0) and not most[i] < floor:
                    candidates[count] = i
                    count += 1
            while count:
                best = 0
                for place in range(1, count):
                    if most[candidates[place]] > most[candidates[best]]:
                        best = place
                i = candidates[best]
                count -= 1
                candidates[best] = candidates[count]
                size = _strength(maps[owner[n]], i)
                error = size * (off[at, i] + share * _size(factor[at, i]))
                if _is_below(size, factor[at, i], error, own, kept, corners):
                    continue
                if kept == k:
                    out[n, 2 * k + kind, 0] = max(out[n, 2 * k + kind, 0], most[i])
                    continue
                for j in range(width):
                    own[kept, j] = size * factor[at, i, j]
                own[kept, last] = error
                kept += 1


@compiled_inline
def _strength(maps, i):
    """The largest absolute value of pixel i in maps (K, pixels)."""
    size = 0.0
    for c in range(maps.shape[0]):
        size = max(size, abs(maps[c, i]))
    return size


@compiled_inline
def _value(form, point):
    """An affine function (constant, then slopes) at a point."""
    value = form[0]
    for j in range(point.shape[0]):
        value += form[1 + j] * point[j]
    return value


@compiled_inline
def _ends(size, form, corners):
    """The smallest and largest values at corners (V, D)."""
    low = high = size * _value(form, corners[0])
    for v in range(1, corners.shape[0]):
        value = size * _value(form, corners[v])
        low, high = min(low, value), max(high, value)
    return low, high


@compiled_inline
def _is_below(size, form, error, own, kept, corners):
    """Whether a mean of two of the kept functions, with one weight, is at least size · form at all corners."""
    last = own.shape[1] - 1
    for first in range(kept):
        for second in range(first, kept):
            low, high = 0.0, 1.0
            for v in range(corners.shape[0]):
                value = size * _value(form, corners[v]) + error
                one = _value(own[first], corners[v]) + own[first, last] - value
                two = _value(own[second], corners[v]) + own[second, last] - value
                if one >= 0.0 and two >= 0.0:
                    continue
                if not (one >= 0.0 or two >= 0.0):
                    low, high = 1.0, 0.0
                    break
                # The weight of the first function: one · weight + two · (1 − weight) ≥ 0.
                border = two / (two - one)
                if one >= 0.0:
                    low = max(low, border)
                else:
                    high = min(high, border)
            if low + LEAST_RANGE < high:
                return True
    return False
