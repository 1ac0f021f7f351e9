"""Compiled decisions of windows and carried neurons on polygons and polyhedra: which entry of a window is the largest.

If two entries are the largest on different parts of a polytope, the plane where they are equal splits it; entries that
are nowhere the largest split nothing. Polytopes are points (V, D); a box is its centre and its half-widths (2, D). The
forms (D + 1, N) have the constant last.
"""

import numpy as np

from ..compiling import compiled, compiled_fused
from ..network.layers import CARRIED, ENTRY
from ..tolerances import DISTANCE, DOUBT
from .fingerprint_kernels import update_prints
from .forms import CORNER, EDGE, SLIVERS


@compiled
def _is_same(forms, i, k):
    """Whether two neurons have the same form, number by number."""
    is_same = True
    for r in range(forms.shape[0]):
        is_same &= forms[r, i] == forms[r, k]
    return is_same


@compiled
def _lead_on_box(forms, box, i, k):
    """The smallest value of form i minus form k on a box."""
    constant = forms.shape[0] - 1
    low = forms[constant, i] - forms[constant, k]
    for r in range(constant):
        slope = forms[r, i] - forms[r, k]
        low += slope * box[0, r] - abs(slope) * box[1, r]
    return low


@compiled
def _largest_at(forms, point, first, end):
    """The first of the largest of the neurons first … end − 1 at a point."""
    constant = forms.shape[0] - 1
    best, most = first, -np.inf
    for k in range(first, end):
        value = forms[constant, k]
        for r in range(constant):
            value += forms[r, k] * point[r]
        if value > most:
            best, most = k, value
    return best


@compiled_fused
def _enclose(forms, box, first, end, centre, radius):
    """The values of the forms first … end − 1 on a box: centre ± radius."""
    constant = forms.shape[0] - 1
    for k in range(end - first):
        centre[k], radius[k] = forms[constant, first + k], 0.0
    for r in range(constant):
        row, middle, half = forms[r, first:end], box[0, r], box[1, r]
        for k in range(end - first):
            centre[k] += row[k] * middle
            radius[k] += abs(row[k]) * half


@compiled
def enter_others(program, walk, layer, box, code):
    """Settle the carried neurons and the windows of a layer on a box; list the entries of windows that stay open.

    Writes the activity of settled neurons to `code`. Open entries are listed at the end of the layer's part of
    `unstable`, and keep their activity for now. Returns how many are open, and how many settled winners may be wrong.
    """
    forms, near, start, end = walk.forms, program.near, program.offsets[layer], program.offsets[layer + 1]
    centre, radius = walk.scratch[0], walk.scratch[1]
    _enclose(forms, box, start, end, centre, radius)
    listed, doubts = 0, 0
    walk.is_printed[layer] = 0
    k = start
    while k < end:
        if program.kind[k] != ENTRY:
            if program.kind[k] == CARRIED:
                code[k] = np.uint8(1)
            k += 1
            continue
        first, after = k, program.window_end[k]
        k = after
        winner, is_dead = first, program.is_rectified[layer]
        for i in range(first, after):
            code[i] = np.uint8(0)
            is_dead &= centre[i - start] == 0.0 and radius[i - start] == 0.0
            if centre[i - start] > centre[winner - start]:
                winner = i
        code[winner] = np.uint8(1)
        if is_dead:
            continue
        low, is_open, has_tie = centre[winner - start] - radius[winner - start], False, False
        for i in range(first, after):
            close = near[winner] + near[i]
            if i == winner or low - (centre[i - start] + radius[i - start]) >= close:
                continue
            if _is_same(forms, winner, i):
                has_tie = True
            elif not _lead_on_box(forms, box, winner, i) >= close:
                # NaN leaves the window open.
                is_open = True
                code[i] = walk.active[i]
                listed += 1
                walk.unstable[end - listed] = i
        if is_open:
            code[winner] = walk.active[winner]
            listed += 1
            walk.unstable[end - listed] = winner
        elif has_tie:
            for i in range(first, after):
                if i != winner and _is_same(forms, winner, i):
                    doubts += not _is_sure_tie(program, walk, layer, winner, i)
    return listed, doubts


@compiled
def _are_copies(program, walk, layer, winner, other):
    """Whether two neurons with the same form copy the same number, if the pattern of the layers below is right."""
    one, two = program.copied[winner], program.copied[other]
    # Rounding may turn a sum into a copy: a sum over several pixels on one line, or of rounded products.
    if one < 0 or two < 0 or program.is_folded[layer] or (program.clipped == 1 and layer == 2):
        return False
    return one == two or not (_has_active(program, walk.active, one) or _has_active(program, walk.active, two))


@compiled
def _is_sure_tie(program, walk, layer, winner, other):
    """Whether two neurons are equal for the real-valued network, and `winner` comes first, if the pattern of the layers
    below is right; their computed forms are equal up to rounding."""
    if not winner < other:
        return False
    if _is_same(walk.forms, winner, other) and _are_copies(program, walk, layer, winner, other):
        return True
    if program.print_stages.shape[0] == 0:
        return False
    if not walk.is_printed[layer]:
        update_prints(program, walk, layer)
        walk.is_printed[layer] = 1
    start = program.print_start[layer] - program.offsets[layer]
    return walk.prints[start + winner] == walk.prints[start + other]


@compiled
def _has_active(program, active, k):
    """Whether a neuron, or an entry of the window that starts with it, is active."""
    found = False
    for i in range(program.window_first[k], program.window_end[k]):
        found |= active[i] != 0
    return found


@compiled
def _range(forms, points, count, i, k):
    """The smallest and the largest value of form i minus form k on the vertices, and the tolerance for splits."""
    constant = forms.shape[0] - 1
    low, high, slope = np.inf, -np.inf, 0.0
    for v in range(count):
        value = forms[constant, i] - forms[constant, k]
        for r in range(constant):
            value += (forms[r, i] - forms[r, k]) * points[v, r]
        low, high = min(low, value), max(high, value)
    for r in range(constant):
        slope += abs(forms[r, i] - forms[r, k])
    return low, high, DISTANCE * slope


@compiled
def _leader(forms, noise, points, count, middle, first, end):
    """An entry of the window first … end − 1 that is largest near the middle of a polytope, and whether another entry
    exceeds it elsewhere by more than the tolerance.

    The first one is returned of entries that differ only by rounding.
    """
    leader, is_split = _largest_at(forms, middle, first, end), False
    for _ in range(end - first):
        better, is_split = -1, False
        for k in range(first, end):
            if k == leader:
                continue
            low, high, distance = _range(forms, points, count, k, leader)
            rounding = noise[leader] + noise[k]
            limit = max(distance, rounding)
            if high > limit:
                if low < -limit:
                    is_split = True
                elif high > -low:
                    better = k
                    break
            elif k < leader and high <= rounding and low >= -rounding:
                better = k
                break
        if better < 0:
            break
        leader = better
    return leader, is_split


@compiled
def _rival(forms, noise, points, count, box, middle, first, end, leader):
    """The entry to cut against the leader, or −1 if none splits the polytope: of the entries that first exceed the
    leader on the way from the middle to a vertex, the one with the most central plane; if none of these splits, the
    entry with the largest lead on both sides."""
    constant = forms.shape[0] - 1
    best, best_ratio, widest, most = -1, np.inf, -1, 0.0
    for k in range(first, end):
        low, high, distance = _range(forms, points, count, k, leader)
        limit = max(distance, noise[leader] + noise[k])
        if k != leader and high > limit and low < -limit and min(high, -low) > most:
            widest, most = k, min(high, -low)
    for v in range(count):
        nearest, share = -1, np.inf
        for k in range(first, end):
            if k == leader:
                continue
            here, there = forms[constant, leader] - forms[constant, k], forms[constant, k] - forms[constant, leader]
            for r in range(constant):
                slope = forms[r, leader] - forms[r, k]
                here += slope * middle[r]
                there -= slope * points[v, r]
            # The leader leads by `here` in the middle, and trails by `there` at the vertex.
            if there > 0.0:
                crossing = max(here, 0.0) / (max(here, 0.0) + there)
                if crossing < share:
                    nearest, share = k, crossing
        if nearest < 0:
            continue
        low, high, distance = _range(forms, points, count, nearest, leader)
        limit = max(distance, noise[leader] + noise[nearest])
        if not (high > limit and low < -limit):
            continue
        centre = forms[constant, leader] - forms[constant, nearest]
        radius = 0.0
        for r in range(constant):
            slope = forms[r, leader] - forms[r, nearest]
            centre += slope * box[0, r]
            radius += abs(slope) * box[1, r]
        if abs(centre) < best_ratio * radius:
            best, best_ratio = nearest, abs(centre) / radius
    return best if best >= 0 else widest


@compiled
def _set_middle(points, count, middle):
    """Write the mean of the vertices."""
    for r in range(middle.shape[0]):
        total = 0.0
        for v in range(count):
            total += points[v, r]
        middle[r] = total / count


@compiled
def find_pair(program, forms, entries, points, count, box, middle):
    """Two entries of an open window whose plane splits a polytope, or −1, −1; `entries` lists the open ones."""
    if entries.shape[0] > 0:
        _set_middle(points, count, middle)
    last = -1
    for n in range(entries.shape[0]):
        first, end = program.window_first[entries[n]], program.window_end[entries[n]]
        if first == last:
            continue
        last = first
        leader, is_split = _leader(forms, program.noise, points, count, middle, first, end)
        if is_split:
            rival = _rival(forms, program.noise, points, count, box, middle, first, end, leader)
            if rival >= 0:
                return leader, rival
    return -1, -1


@compiled
def measure_winner(program, walk, layer, winner, points, count, size, section):
    """Add the strips beside the kinks of a settled window, its unsplit parts and its doubts to the measures of a walk.

    `size` is the volume of the polytope, `section` bounds the size of its plane sections. Returns how many entries may
    be the true winner on the whole polytope.
    """
    forms, noise, near = walk.forms, program.noise, program.near
    constant, doubts = forms.shape[0] - 1, 0
    for k in range(program.window_first[winner], program.window_end[winner]):
        if k == winner:
            continue
        rounding, close = noise[winner] + noise[k], near[winner] + near[k]
        low, largest, next_size, nears = 0.0, 0.0, np.inf, 0
        for v in range(count):
            value = forms[constant, winner] - forms[constant, k]
            for r in range(constant):
                value += (forms[r, winner] - forms[r, k]) * points[v, r]
            low, largest = min(low, value), max(largest, abs(value))
            if abs(value) < close:
                nears += 1
            else:
                next_size = min(next_size, abs(value))
        if low < 0.0:
            walk.missed[winner] = max(walk.missed[winner], -low)
            if largest > rounding:
                slope = 0.0
                for r in range(constant):
                    slope += abs(forms[r, winner] - forms[r, k])
                # The 1-norm of a slope is at most √D times its 2-norm.
                walk.sums[SLIVERS] += -low / slope * np.sqrt(float(constant)) * section
        # NaN decides nothing.
        if not largest > DOUBT * rounding:
            doubts += not _is_sure_tie(program, walk, layer, winner, k)
        elif nears > 1:
            walk.beside[EDGE, winner] += size / largest
        elif nears > 0:
            walk.beside[CORNER, winner] += size / (next_size * next_size)
    return doubts


@compiled
def choose_winner(program, forms, entry, points, count, middle):
    """The winner of an entry's window on a polytope that none of its pairs splits."""
    first, end = program.window_first[entry], program.window_end[entry]
    leader, _ = _leader(forms, program.noise, points, count, middle, first, end)
    return leader
