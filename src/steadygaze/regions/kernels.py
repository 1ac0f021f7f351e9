"""Compiled loop of the subdivision: a depth-first walk through the layers that splits convex polygons.

For every layer, the walk keeps the affine forms of its neurons in t (the domain scaled to the unit square) that hold on
the current polygon (see `forms`). The loop allocates no memory: if a buffer is too small, it returns a code, and
continues from there once the caller has enlarged the buffer.
"""

from typing import NamedTuple

import numpy as np

from ..compiling import compiled, compiled_apart, compiled_inline
from ..polytopes.polygon_kernels import area, bounding_box, half_perimeter, reach, split_polygon
from ..tolerances import DISTANCE, DOUBT
from .forms import CORNER, EDGE, FED_FROM, SKIPPED, SLIVERS, VOLUME, count_reached, sync, touch
from .window_kernels import choose_winner, enter_others, find_pair, measure_winner

DONE, PAUSED, NEED_OUTPUT, NEED_STACK = 0, 1, 2, 3
HEIGHT, CUTS, REGIONS, VERTICES, BASE, DEPTH, FACETS = 0, 1, 2, 3, 4, 5, 6
"""Counters of a walk: height of the stack; cuts, regions and vertices in the output; the number before that of the
first cut; the most cuts that led to one region; facets in the output (of polyhedra)."""

ORIGIN = 5
"""The column of the stack that holds the original number of a polytope."""

UNSTABLE, DOUBTFUL = np.uint8(2), np.uint8(3)

MAX_VERTICES = 1024
"""The most vertices of one polygon in the scratch arrays; a region of a real network has about ten."""


class Output(NamedTuple):
    """Buffers that receive the regions."""

    vertices: np.ndarray  # (capacity,) number of vertices of each region
    logits: np.ndarray  # (capacity, 3, K)
    packed: np.ndarray  # (capacity, bytes)
    points: np.ndarray  # (capacity, 2) the vertices of all regions
    edge: np.ndarray
    doubtful: np.ndarray  # (capacity,) 1 if the sign of some neuron of the classifier is not certain
    cuts: np.ndarray  # (capacity, 3) int32 rows of the table of cuts: kind (left to the caller), layer, neuron in it
    origin: np.ndarray  # (capacity,) the original number of the polygon that each region is a part of


@compiled
def flip(k, first, byte, active, packed):
    """Flip a neuron in the pattern and in the packed pattern."""
    active[k] ^= np.uint8(1)
    packed[byte + ((k - first) >> 3)] ^= np.uint8(128 >> ((k - first) & 7))


@compiled_inline
def _decide(
    a, b, c, noise, near, unstable, first, byte, active, packed, x, y, count, missed, beside, doubts, touched,
    is_touched, listed,
):  # fmt: skip
    """Set the pattern of the unstable neurons of a layer for a polygon that none of them splits.

    For neurons close to zero, `beside` adds up the polygon's contribution to the strips along their kinks.
    """
    doubts[0] = 0
    size = -1.0
    for n in range(unstable.shape[0]):
        k = unstable[n]
        slope_x, slope_y, constant, close = a[k], b[k], c[k], near[k]
        # Branch-free: the least and largest value, the number of vertices near zero, the smallest |value| of the
        # others.
        low, high, next_size, nears = np.inf, -np.inf, np.inf, 0
        for i in range(count):
            v = slope_x * x[i] + slope_y * y[i] + constant
            low, high = min(low, v), max(high, v)
            is_near = abs(v) < close
            nears += is_near
            next_size = min(next_size, np.inf if is_near else abs(v))
        value = high if high > -low else low
        if low > high:
            # All values are NaN.
            value = 0.0
        if abs(value) <= noise[k]:
            missed[k] = max(missed[k], abs(value))
        if abs(value) <= DOUBT * noise[k]:
            doubts[0] += 1
        elif nears > 0:
            if size < 0.0:
                size = area(x, y, count)
            # |value| ≤ e on at most 2 e/max of a convex polygon; on (e/second)² of it if only one vertex is near.
            if nears > 1:
                beside[EDGE, k] += size / abs(value)
            else:
                beside[CORNER, k] += size / (next_size * next_size)
        if np.uint8(value > noise[k]) != active[k]:
            flip(k, first, byte, active, packed)
            touch(k, first, touched, is_touched, listed)


@compiled_apart
def _classify(a, b, c, noise, near, cx, cy, rx, ry, code):
    """Classify forms on the box with the given centre and half-widths, without branches: 0 or 1 for the activity if the
    form keeps its sign away from zero, DOUBTFUL if it is only rounding, UNSTABLE otherwise."""
    for k in range(a.shape[0]):
        centre = a[k] * cx + b[k] * cy + c[k]
        radius = abs(a[k]) * rx + abs(b[k]) * ry
        stable = np.uint8(centre > 0.0) if abs(centre) >= radius + near[k] else UNSTABLE
        code[k] = DOUBTFUL if abs(centre) + radius <= noise[k] else stable


@compiled
def _enter_others(program, walk, layer, cx, cy, rx, ry):
    """Settle the carried neurons and the windows of a layer (see `enter_others`)."""
    walk.box[0, 0], walk.box[0, 1], walk.box[1, 0], walk.box[1, 1] = cx, cy, rx, ry
    walk.open_count[layer], walk.doubts[2, layer] = enter_others(program, walk, layer, walk.box, walk.code)


@compiled
def _find_pair(program, walk, layer, x, y, count):
    """Two entries of a window whose line splits the current polygon, or −1, −1 (see `find_pair`)."""
    end = program.offsets[layer + 1]
    walk.box[0, 0], walk.box[0, 1], walk.box[1, 0], walk.box[1, 1] = bounding_box(x, y, count)
    entries = walk.unstable[end - walk.open_count[layer] : end]
    return find_pair(program, walk.forms, entries, walk.here[:2].T, count, walk.box, walk.box[2])


@compiled
def _decide_windows(program, walk, layer, x, y, count):
    """Set the pattern of the open windows of a layer for a polygon that none of them splits."""
    start, end, byte = program.offsets[layer], program.offsets[layer + 1], program.byte_start[layer]
    entries, points = walk.unstable[end - walk.open_count[layer] : end], walk.here[:2].T
    size, section, last, winner = -1.0, 0.0, -1, -1
    walk.doubts[3, layer] = 0
    for n in range(entries.shape[0]):
        k = entries[n]
        if program.window_first[k] != last:
            if size < 0.0:
                size, section = area(x, y, count), half_perimeter(x, y, count)
            last = program.window_first[k]
            winner = choose_winner(program, walk.forms, k, points, count, walk.box[2])
            walk.doubts[3, layer] += measure_winner(program, walk, layer, winner, points, count, size, section)
        if np.uint8(k == winner) != walk.active[k]:
            flip(k, start, byte, walk.active, walk.packed)
            touch(k, start, walk.touched, walk.is_touched, walk.touched_count[layer:])


@compiled_inline
def _enter(
    a, b, c, noise, near, first, end, byte, active, packed, unstable, x, y, count, code, words, missed, doubts, touched,
    is_touched, listed, zeros, program, walk, layer,
):  # fmt: skip
    """Set the pattern of the neurons of a layer that keep their sign on a polygon; list the others.

    Returns the number of listed neurons, and the number of neurons with an exactly zero form, which `zeros` lists.
    """
    cx, cy, rx, ry = bounding_box(x, y, count)
    _classify(
        a[first:end], b[first:end], c[first:end], noise[first:end], near[first:end], cx, cy, rx, ry, code[first:end]
    )
    if not program.is_plain[layer]:
        _enter_others(program, walk, layer, cx, cy, rx, ry)
    found, dead = 0, 0
    doubts[0] = 0
    for word in range(first >> 3, (end + 7) >> 3):
        # Most neurons did not change: skip them, eight at a time.
        if words[0, word] == words[1, word]:
            continue
        for k in range(max(8 * word, first), min(8 * word + 8, end)):
            is_active = code[k]
            if is_active == UNSTABLE:
                unstable[found] = k
                found += 1
                continue
            if is_active == DOUBTFUL:
                is_active = np.uint8(0)
                largest = abs(a[k] * cx + b[k] * cy + c[k]) + abs(a[k]) * rx + abs(b[k]) * ry
                missed[k] = max(missed[k], largest)
                if largest == 0.0:
                    zeros[dead] = k
                    dead += 1
                else:
                    doubts[0] += 1
            if is_active != active[k]:
                flip(k, first, byte, active, packed)
                touch(k, first, touched, is_touched, listed)
    return found, dead


@compiled
def _sliver(depth, a, b, x, y, count):
    """A bound on the area between two parallel lines, `depth` apart in value, across a polygon."""
    # The 1-norm of a slope is at most √2 times its 2-norm.
    return depth / (abs(a) + abs(b)) * 1.4142135623730951 * half_perimeter(x, y, count)


@compiled_inline
def _splitters(a, b, c, noise, candidates, source, total, free, x, y, count, sums, missed):
    """Copy the candidates (`total` from `source`) that split the polygon to `free`, the most central one last."""
    cx, cy, rx, ry = bounding_box(x, y, count)
    found = 0
    best = -1
    best_ratio = 2.0
    for n in range(total):
        k = source[n]
        centre = abs(a[k] * cx + b[k] * cy + c[k])
        radius = abs(a[k]) * rx + abs(b[k]) * ry
        if centre >= radius:
            continue
        low, high = reach(a[k], b[k], c[k], x, y, count)
        if not low < 0.0 < high:
            continue
        slope = abs(a[k]) + abs(b[k])
        limit = max(DISTANCE * slope, noise[k])
        if low >= -limit or high <= limit:
            missed[k] = max(missed[k], min(-low, high))
            if max(-low, high) > noise[k]:
                sums[SLIVERS] += _sliver(min(-low, high), a[k], b[k], x, y, count)
            continue
        candidates[free + found] = k
        if centre < best_ratio * radius:
            best_ratio = centre / radius
            best = found
        found += 1
    if found > 0:
        last = free + found - 1
        candidates[free + best], candidates[last] = candidates[last], candidates[free + best]
    return found


@compiled_inline
def _deliver(program, walk, output, x, y, edge, count, origin, has_logits):
    """Append the current polygon, its pattern and (after the last hidden layer) its logits to the output."""
    size = area(x, y, count)
    if not size > 0.0:
        # float64 cannot distinguish the area from zero: nothing is known there.
        walk.sums[SKIPPED] += 1.0
        return
    last = program.offsets.shape[0] - 2
    if has_logits:
        sync(program, walk, last)
    region, vertex = walk.counters[REGIONS], walk.counters[VERTICES]
    first = program.offsets[last]
    for i in range(3):
        for k in range(output.logits.shape[2]):
            output.logits[region, i, k] = walk.forms[i, first + k]
    for i in range(walk.packed.shape[0]):
        output.packed[region, i] = walk.packed[i]
    for i in range(count):
        output.points[vertex + i, 0], output.points[vertex + i, 1] = x[i], y[i]
        output.edge[vertex + i] = edge[i]
    output.vertices[region], output.origin[region] = count, origin
    walk.counters[REGIONS] += 1
    walk.counters[VERTICES] += count
    doubts = 0
    for layer in range(2 if program.clipped == 1 else 0, last):
        doubts += walk.doubts[0, layer] + walk.doubts[1, layer]
        if not program.is_plain[layer]:
            doubts += walk.doubts[2, layer] + walk.doubts[3, layer]
    output.doubtful[region] = np.uint8(doubts > 0)
    walk.sums[VOLUME] += size


@compiled
def take_output(output, counters, kind, starts, points, edge, logits, packed, doubtful, origin, cuts):
    """Copy the content of the output buffers into arrays of its sizes, with the kind of all cuts; the buffers are empty
    then, and the numbering of cuts continues."""
    starts[0] = 0
    for r in range(counters[REGIONS]):
        starts[r + 1] = starts[r] + output.vertices[r]
        doubtful[r], origin[r] = output.doubtful[r], output.origin[r]
        for i in range(packed.shape[1]):
            packed[r, i] = output.packed[r, i]
        for i in range(logits.shape[1]):
            for k in range(logits.shape[2]):
                logits[r, i, k] = output.logits[r, i, k]
    for v in range(counters[VERTICES]):
        points[v, 0], points[v, 1], edge[v] = output.points[v, 0], output.points[v, 1], output.edge[v]
    for n in range(counters[CUTS]):
        cuts[n, 0], cuts[n, 1], cuts[n, 2] = kind, output.cuts[n, 1], output.cuts[n, 2]
    counters[BASE] += counters[CUTS]
    counters[CUTS], counters[REGIONS], counters[VERTICES], counters[FACETS] = 0, 0, 0, 0


@compiled
def begin(program, walk, root, points, starts, edge, origins, base):
    """Start a walk whose arrays hold zeros: the forms of the first layer, and all polygons on the stack, the first one
    on top; cuts are numbered from base + 1."""
    for k in range(root.shape[1]):
        size = 0.0
        for r in range(3):
            walk.forms[r, k] = root[r, k]
            size += abs(root[r, k])
        walk.peak[k] = size
    for layer in range(walk.versions.shape[1]):
        walk.versions[FED_FROM, layer] = -1
    for i in range(walk.prints.shape[0]):
        walk.prints[i] = program.prints[i]
    height, at = 0, 0
    for n in range(starts.shape[0] - 2, -1, -1):
        first, count = starts[n], starts[n + 1] - starts[n]
        for i in range(count):
            walk.x[at + i], walk.y[at + i] = points[first + i, 0], points[first + i, 1]
            walk.edge[at + i] = edge[first + i]
        for i in range(walk.stack.shape[1]):
            walk.stack[height, i] = 0
        walk.stack[height, 1], walk.stack[height, 2], walk.stack[height, 3] = at, count, -1
        walk.stack[height, ORIGIN] = origins[n]
        height, at = height + 1, at + count
    walk.counters[BASE], walk.counters[HEIGHT] = base, height


@compiled
def advance(program, walk, output, last_layer, max_nodes):
    """Continue until the stack is empty, `max_nodes` polygons were visited, or a buffer is full.

    Writes the polygons that no neuron of the layers 0 … last_layer splits. Returns DONE, PAUSED, NEED_OUTPUT or
    NEED_STACK.
    """
    counters, stack, candidates, offsets = walk.counters, walk.stack, walk.candidates, program.offsets
    a, b, c, noise, near = walk.forms[0], walk.forms[1], walk.forms[2], program.noise, program.near
    active, packed = walk.active, walk.packed
    sums, missed = walk.sums, walk.missed
    x, y, edge = walk.here[0], walk.here[1], walk.here_edge
    widest = walk.scratch.shape[1]
    nodes = 0
    while counters[HEIGHT] > 0:
        if nodes >= max_nodes:
            return PAUSED
        top = counters[HEIGHT] - 1
        layer, first, count = stack[top, 0], stack[top, 1], stack[top, 2]
        list_first, list_size, origin, depth = stack[top, 3], stack[top, 4], stack[top, 5], stack[top, 6]
        if (
            counters[REGIONS] >= output.vertices.shape[0]
            or counters[VERTICES] + count > output.edge.shape[0]
            or counters[CUTS] >= output.cuts.shape[0]
        ):
            return NEED_OUTPUT
        free = list_first + list_size
        if (
            top + 2 > stack.shape[0]
            or first + 2 * count + 4 > walk.x.shape[0]
            or free + widest > candidates.shape[0]
            or count + 1 > MAX_VERTICES
        ):
            return NEED_STACK
        for i in range(count):
            x[i], y[i], edge[i] = walk.x[first + i], walk.y[first + i], walk.edge[first + i]
        counters[HEIGHT] = top
        nodes += 1
        # A polygon that has not entered its layer yet has no list of candidates.
        is_new = list_first < 0
        found, k, rival = 0, -1, -1
        if is_new:
            free = 0
        else:
            source = candidates[list_first:]
            found = _splitters(a, b, c, noise, candidates, source, list_size, free, x, y, count, sums, missed)
        while found == 0:
            byte, start, end = program.byte_start[layer], offsets[layer], offsets[layer + 1]
            if is_new:
                is_new = False
            else:
                if not program.is_plain[layer]:
                    k, rival = _find_pair(program, walk, layer, x, y, count)
                    if k >= 0:
                        break
                    _decide_windows(program, walk, layer, x, y, count)
                unstable = walk.unstable[start : start + walk.unstable_count[layer]]
                _decide(
                    a, b, c, noise, near, unstable, start, byte, active, packed, x, y, count, missed, walk.beside,
                    walk.doubts[1, layer:], walk.touched, walk.is_touched, walk.touched_count[layer:],
                )  # fmt: skip
                if layer == last_layer:
                    _deliver(program, walk, output, x, y, edge, count, origin, last_layer == offsets.shape[0] - 3)
                    break
                layer += 1
                byte, start, end = program.byte_start[layer], offsets[layer], offsets[layer + 1]
                sync(program, walk, layer)
            unstable = walk.unstable[start:end]
            total, dead = _enter(
                a, b, c, noise, near, start, end, byte, active, packed, unstable, x, y, count, walk.code, walk.words,
                missed, walk.doubts[0, layer:], walk.touched, walk.is_touched, walk.touched_count[layer:],
                walk.columns[0], program, walk, layer,
            )  # fmt: skip
            if dead > 0 and layer > 0:
                zeros = walk.columns[0, :dead]
                walk.doubts[0, layer] += count_reached(program, walk.fed, layer, zeros, walk.columns[1])
            walk.unstable_count[layer] = total
            found = _splitters(a, b, c, noise, candidates, unstable, total, free, x, y, count, sums, missed)
        if found > 0:
            k = candidates[free + found - 1]
            found -= 1
        if k >= 0:
            slope_x, slope_y, constant, rounding = a[k], b[k], c[k], noise[k]
            if rival >= 0:
                slope_x, slope_y, constant = slope_x - a[rival], slope_y - b[rival], constant - c[rival]
                rounding += noise[rival]
            limit = max(DISTANCE * (abs(slope_x) + abs(slope_y)), rounding)
            output.cuts[counters[CUTS], 1], output.cuts[counters[CUTS], 2] = layer, k - offsets[layer]
            counters[CUTS] += 1
            cut = counters[BASE] + counters[CUTS]
            negative, positive, snapped = split_polygon(
                slope_x, slope_y, constant, limit, cut, x, y, edge, count, walk.x, walk.y, walk.edge, first,
                walk.here[2],
            )  # fmt: skip
            if snapped > 0.0:
                missed[k] = max(missed[k], snapped)
                sums[SLIVERS] += _sliver(snapped, slope_x, slope_y, x, y, count)
            for n in range(2):
                stack[top + n, 0] = layer
                stack[top + n, 1] = first + n * negative
                stack[top + n, 2] = positive if n == 1 else negative
                stack[top + n, 3] = free
                stack[top + n, 4] = found
                stack[top + n, 5] = origin
                stack[top + n, 6] = depth + 1
            counters[HEIGHT] = top + 2
            counters[DEPTH] = max(counters[DEPTH], depth + 1)
    return DONE
