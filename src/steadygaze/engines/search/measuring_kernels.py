"""Compiled measures of a region that the traversal found: how certain it is, and how much of it lies beside kinks.

A ReLU has its kink where its form vanishes; a window has its kinks where a losing entry reaches the winner.
"""

import numpy as np

from ...compiling import compiled
from ...network.layers import CARRIED, ENTRY
from ...regions.fingerprint_kernels import update_prints
from ...tolerances import CLIPPED
from .deciding_kernels import bound, bound_at, bound_noise, value_at

EDGE, CORNER = 0, 1


@compiled
def finish(program, standing, points, size, has_missed, has_kinks, first, scales, inside, found):
    """Record a region with vertices (V, d) and a volume, unless neurons must be switched off first; returns how many.

    has_missed: clipping has already recorded `missed`. has_kinks: add the region to the strips along kinks. `first`,
    `scales`, `inside` and `found`: see `_clearances`.
    """
    off = _switch_off(program, standing, points)
    if off == 0:
        if not has_missed:
            _record_missed(program, standing, points)
        if has_kinks:
            _add_kinks(program, standing, points, size)
        _clearances(program, standing, first, scales, inside, found)
    return off


@compiled
def _switch_off(program, standing, points):
    """Mark as `off` every active neuron whose values on a region with vertices (V, d) are mere rounding.

    Returns how many. If a neuron could be written either way on a region, it is always written the same way: a ReLU as
    inactive, a window with the first of the entries that differ from its winner by rounding alone.
    """
    offsets, found = program.offsets, 0
    for layer in range(offsets.shape[0] - 2):
        is_plain = program.is_plain[layer]
        for k in range(offsets[layer], offsets[layer + 1]):
            if standing.active[k] == 0:
                continue
            if not is_plain and program.kind[k] == CARRIED:
                continue
            if not is_plain and program.kind[k] == ENTRY:
                found += _switch_off_entries(program, standing, points, k)
                continue
            n = 0
            while n < points.shape[0] and value_at(standing.forms, k, points[n]) <= program.noise[k]:
                n += 1
            if n == points.shape[0]:
                standing.off[k] = np.uint8(1)
                found += 1
    return found


@compiled
def _switch_off_entries(program, standing, points, winner):
    """Mark as `off` all entries but the first that differ from the winner by rounding, unless the first has won."""
    found, is_first = 0, True
    for k in range(program.window_first[winner], winner):
        if standing.off[k] == 0 and _is_rounding(program, standing, points, k):
            if not is_first:
                standing.off[k] = np.uint8(1)
                found += 1
            is_first = False
    if is_first:
        return 0
    for k in range(winner, program.window_end[winner]):
        if standing.off[k] == 0 and _is_rounding(program, standing, points, k):
            standing.off[k] = np.uint8(1)
            found += 1
    return found


@compiled
def _is_rounding(program, standing, points, k):
    """Whether the half-space of neuron k has values of mere rounding at all points (V, d)."""
    n, noise = 0, bound_noise(program.noise, standing, k)
    while n < points.shape[0] and bound_at(standing, k, points[n]) <= noise:
        n += 1
    return n == points.shape[0]


@compiled
def _record_missed(program, standing, points):
    """Raise `missed` to the largest |value| on the wrong side of a neuron's half-space, at vertices (V, d)."""
    for k in range(program.offsets[program.offsets.shape[0] - 2]):
        for n in range(points.shape[0]):
            standing.missed[k] = max(standing.missed[k], -bound_at(standing, k, points[n]))


@compiled
def _add_kinks(program, standing, points, size):
    """Add a region with vertices (V, d) and a volume to the strips along kinks, see `Accuracy`.

    Neurons that are mere rounding on the region are always written the same way (`_switch_off`) and do not count.
    """
    offsets, widest = program.offsets, 0.0
    for n in range(1, points.shape[0]):
        for i in range(points.shape[1]):
            widest = max(widest, abs(points[n, i] - points[0, i]))
    for layer in range(offsets.shape[0] - 2):
        first, end = offsets[layer], offsets[layer + 1]
        beside, near, noise = standing.beside[:, first:end], program.near[first:end], program.noise[first:end]
        if program.is_plain[layer]:
            _add_layer(standing.forms[:, first:end], noise, near, points, size, widest, beside)
            continue
        bounds, noises = standing.change[:, : end - first], standing.noises[: end - first]
        for k in range(first, end):
            noises[k - first] = bound_noise(program.noise, standing, k)
            for i in range(bounds.shape[0]):
                bounds[i, k - first] = bound(standing, i, k)
        _add_layer(bounds, noises, near, points, size, widest, beside)
        for k in range(first, end):
            if k < standing.rival[k] and _is_rounding(program, standing, points, k):
                beside[EDGE, k - first] = np.inf  # another region may be written with this entry as the winner


@compiled
def _add_layer(forms, noise, near, points, size, widest, beside):
    """Like `_add_kinks`, for the half-spaces (d+1, n) of one layer, of either sign."""
    d = points.shape[1]
    for k in range(forms.shape[1]):
        first, slope = value_at(forms, k, points[0]), 0.0
        for i in range(d):
            slope += abs(forms[i, k])
        if abs(first) - slope * widest >= near[k]:
            continue
        largest, second, nears = 0.0, np.inf, 0
        for n in range(points.shape[0]):
            value = abs(value_at(forms, k, points[n]))
            if not value < np.inf:
                largest, nears = value, points.shape[0]
                break
            largest = max(largest, value)
            if value < near[k]:
                nears += 1
            else:
                second = min(second, value)
        if not largest < np.inf:
            beside[EDGE, k] = np.inf
        elif largest > noise[k] and nears > 0:
            # |value| ≤ e on at most d e/largest of a convex region; on (e/second)² if only one vertex is near.
            if nears > 1 or d == 1:
                beside[EDGE, k] += size / largest
            else:
                beside[CORNER, k] += size / (second * second)


@compiled
def _clearances(program, standing, first, scales, point, found):
    """Write, for every hidden layer from `first` on, the smallest distance from a kink, divided by the neuron's scale.

    The distance is the |value| of a ReLU at a point (d,), or how far an entry is below the winner of its window.
    scales: those of all neurons from that layer on; for an entry, its own plus the winner's. Ties that are exact,
    whatever the rounding, do not count.
    """
    forms, offsets, d = standing.forms, program.offsets, point.shape[0]
    for layer in range(first, offsets.shape[0] - 2):
        least = np.inf
        if not program.is_plain[layer]:
            least = _clearance_of_windows(program, standing, layer, first, scales, point)
        for k in range(offsets[layer], offsets[layer + 1]):
            if standing.rival[k] >= 0:
                continue
            is_zero = True
            for i in range(d + 1):
                is_zero = is_zero and forms[i, k] == 0.0
            if is_zero and not _is_reached(program, standing, layer, k, point):
                continue
            share = abs(value_at(forms, k, point)) / scales[k - offsets[first]]
            # NaN is no distance.
            least = min(least, share) if share >= 0.0 else 0.0
        found[layer - first] = least


@compiled
def _clearance_of_windows(program, standing, layer, first, scales, point):
    """Like `_clearances`, for the windows of one layer."""
    least, start, has_prints = np.inf, program.offsets[first], False
    for k in range(program.offsets[layer], program.offsets[layer + 1]):
        rival = standing.rival[k]
        if rival < 0 or rival == k:
            continue
        if rival < k and _has_same_form(standing, k, rival):  # in an exact tie, the first wins
            if _are_copies(program, standing, layer, k, rival, point):
                continue
            if not has_prints:
                update_prints(program, standing, layer)
                has_prints = True
            if _have_same_print(program, standing, layer, k, rival):
                continue
        share = bound_at(standing, k, point) / (scales[k - start] + scales[rival - start])
        least = min(least, share) if share >= 0.0 else 0.0
    return least


@compiled
def _has_same_form(standing, one, other):
    """Whether two neurons have the same form, bit by bit."""
    is_same = True
    for i in range(standing.forms.shape[0]):
        is_same = is_same and standing.forms[i, one] == standing.forms[i, other]
    return is_same


@compiled
def _are_copies(program, standing, layer, one, other, point):
    """Whether two neurons copy the same number, or two numbers that are zero whatever the rounding."""
    first, second = program.copied[one], program.copied[other]
    if first < 0 or second < 0 or program.is_folded[layer]:
        return False
    return first == second or not (
        _is_copy_fed(program, standing, layer, first, point) or _is_copy_fed(program, standing, layer, second, point)
    )


@compiled
def _is_copy_fed(program, standing, layer, source, point):
    """Whether a copied neuron, or a window given by its first entry, may be nonzero."""
    found = False
    for n in range(program.window_first[source], program.window_end[source]):
        found = found or _is_fed(program, standing, layer, n - program.offsets[layer - 1], point)
    return found


@compiled
def _have_same_print(program, standing, layer, one, other):
    """Whether two neurons are equal for the real-valued network under the pattern, according to their fingerprints."""
    if program.print_stages.shape[0] == 0:
        return False
    start = program.print_start[layer] - program.offsets[layer]
    return standing.prints[start + one] == standing.prints[start + other]


@compiled
def _is_reached(program, standing, layer, k, point):
    """Whether a neuron has a nonzero input or bias; without one, its value is exactly zero."""
    if layer == 0 or program.bias[k] != 0.0 or program.is_folded[layer]:
        return True
    first = program.offsets[layer]
    width, start = program.offsets[layer + 1] - first, program.dense_start[layer]
    for i in range(first - program.offsets[layer - 1]):
        if not _is_fed(program, standing, layer, i, point):
            continue
        if start >= 0:
            if program.dense[start + i * width + k - first] != 0.0:
                return True
        else:
            place = program.column_start[layer] + i
            for entry in range(program.columns[place], program.columns[place + 1]):
                if program.rows[entry] == k - first:
                    return True
    return False


@compiled
def _is_fed(program, standing, layer, i, point):
    """Whether input i of a layer may be nonzero: its form is nonzero, or rounding alone clipped a pixel to 0."""
    source = program.offsets[layer - 1] + i
    for r in range(standing.outputs.shape[0]):
        if standing.outputs[r, source] != 0.0:
            return True
    return program.clipped == 1 and layer == 2 and not value_at(standing.forms, i, point) < -CLIPPED
