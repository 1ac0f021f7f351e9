"""Compiled loops: sums over pixels of products of polynomials in t.

Maps are gradients times a factor, which is affine in t on a region; expected maps are affine in t times that factor.
Affine functions have the coefficients (constant, then D slopes); `table` numbers the products of monomials. factor
(N or 1, pixels, D+1), with bounds on its error and its size on the region (N or 1, pixels) in `off` and `largest`.
Each sum gets its error in the last column: that of factors, and `share` of the sum of all |terms|. room (3, M)
holds single terms.
"""

from ..compiling import compiled, compiled_inline


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
