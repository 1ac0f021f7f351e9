"""Compiled loop of the subdivision in three dimensions: a depth-first walk through the layers that splits polyhedra.

The same walk as in `kernels`, with forms of four rows and polyhedra in place of polygons.
"""

from typing import NamedTuple

import numpy as np

from ..compiling import compiled, compiled_fused, compiled_inline
from ..network.layers import RELU
from ..polytopes.polyhedron_kernels import NEED_WORDS as TOO_FEW_WORDS
from ..polytopes.polyhedron_kernels import (
    SPLIT,
    UNCUT,
    bounding_box,
    copy_polyhedron,
    gap,
    reach,
    split_polyhedron,
    volume,
)
from ..tolerances import DISTANCE, DOUBT, UNIT
from . import kernels
from .forms import CORNER, EDGE, ENTERED, GAP, HOLES, SKIPPED, SLIVERS, VOLUME, count_reached
from .kernels import flip
from .solid_forms import ROWS, sync
from .window_kernels import choose_winner, enter_others, find_pair, measure_winner

NEED_WORDS, BROKEN = 4, 5

ROUNDING = 16.0 * UNIT
"""Gaps up to this depth at a cut come from the rounding of new vertices."""


class SolidOutput(NamedTuple):
    """Buffers that receive the regions."""

    vertices: np.ndarray  # (capacity,) number of vertices of each region
    facet_counts: np.ndarray  # (capacity,) number of facets of each region
    logits: np.ndarray  # (capacity, 4, K)
    packed: np.ndarray  # (capacity, bytes)
    points: np.ndarray  # (room, 3)
    incidence: np.ndarray  # (room, words)
    facets: np.ndarray  # (room,)
    doubtful: np.ndarray  # (capacity,) 1 if the sign of some neuron of the classifier is not certain
    cuts: np.ndarray  # as for polygons
    origin: np.ndarray  # (capacity,) the original number of the polyhedron that each region is a part of


@compiled
def _decide(forms, noise, near, unstable, first, byte, active, packed, points, vertices, missed, beside, doubts):
    """Set the pattern of the unstable neurons of a layer for a polyhedron that none of them splits.

    For neurons close to zero, `beside` adds up the polyhedron's contribution to the strips along their kinks.
    """
    doubts[0] = 0
    _, _, _, rx, ry, rz = bounding_box(points, vertices)
    size = 8.0 * rx * ry * rz
    for n in range(unstable.shape[0]):
        k = unstable[n]
        value, least, second = 0.0, np.inf, np.inf
        for i in range(vertices):
            v = forms[0, k] * points[i, 0] + forms[1, k] * points[i, 1] + forms[2, k] * points[i, 2] + forms[3, k]
            if abs(v) > abs(value):
                value = v
            if abs(v) < least:
                least, second = abs(v), least
            elif abs(v) < second:
                second = abs(v)
        if abs(value) <= noise[k]:
            missed[k] = max(missed[k], abs(value))
        if abs(value) <= DOUBT * noise[k]:
            doubts[0] += 1
        elif least < near[k]:
            # |value| ≤ e on at most 3 e/max of a convex polyhedron; on (e/second)³ of it if only one vertex is near.
            if second < near[k]:
                beside[EDGE, k] += size / abs(value)
            else:
                beside[CORNER, k] += size / (second * second)
        if np.uint8(value > noise[k]) != active[k]:
            flip(k, first, byte, active, packed)


@compiled
def _set_box(points, vertices, box):
    """Write centre and half-widths of the bounding box of a polyhedron."""
    box[0, 0], box[0, 1], box[0, 2], box[1, 0], box[1, 1], box[1, 2] = bounding_box(points, vertices)


@compiled
def _enter_others(program, walk, layer, vertices):
    """Settle the carried neurons and the windows of a layer (see `enter_others`), and set their pattern."""
    start, end, byte = program.offsets[layer], program.offsets[layer + 1], program.byte_start[layer]
    _set_box(walk.here, vertices, walk.box)
    walk.open_count[layer], walk.doubts[2, layer] = enter_others(program, walk, layer, walk.box, walk.code)
    for k in range(start, end):
        if program.kind[k] != RELU and walk.code[k] != walk.active[k]:
            flip(k, start, byte, walk.active, walk.packed)


@compiled
def _find_pair(program, walk, layer, vertices):
    """Two entries of a window whose plane splits the current polyhedron, or −1, −1 (see `find_pair`)."""
    end = program.offsets[layer + 1]
    _set_box(walk.here, vertices, walk.box)
    entries = walk.unstable[end - walk.open_count[layer] : end]
    return find_pair(program, walk.forms, entries, walk.here, vertices, walk.box, walk.box[2])


@compiled
def _decide_windows(program, walk, layer, vertices):
    """Set the pattern of the open windows of a layer for a polyhedron that none of them splits."""
    start, end, byte = program.offsets[layer], program.offsets[layer + 1], program.byte_start[layer]
    entries = walk.unstable[end - walk.open_count[layer] : end]
    rx, ry, rz = walk.box[1, 0], walk.box[1, 1], walk.box[1, 2]
    # No section is larger than half the surface of the bounding box.
    size, section = 8.0 * rx * ry * rz, 4.0 * (rx * ry + ry * rz + rz * rx)
    last, winner = -1, -1
    walk.doubts[3, layer] = 0
    for n in range(entries.shape[0]):
        k = entries[n]
        if program.window_first[k] != last:
            last = program.window_first[k]
            winner = choose_winner(program, walk.forms, k, walk.here, vertices, walk.box[2])
            walk.doubts[3, layer] += measure_winner(program, walk, layer, winner, walk.here, vertices, size, section)
        if np.uint8(k == winner) != walk.active[k]:
            flip(k, start, byte, walk.active, walk.packed)


@compiled_fused
def _enclose(a, b, c, d, cx, cy, cz, rx, ry, rz, centre, radius, peak):
    """The values of the forms on the box with the given centre and half-widths: centre ± radius; raise the peaks."""
    for k in range(a.shape[0]):
        centre[k] = a[k] * cx + b[k] * cy + c[k] * cz + d[k]
        radius[k] = abs(a[k]) * rx + abs(b[k]) * ry + abs(c[k]) * rz
        size = abs(a[k]) + abs(b[k]) + abs(c[k]) + abs(d[k])
        peak[k] = max(peak[k], size if size < np.inf else np.inf)


@compiled
def _enter(
    forms, noise, near, first, end, byte, active, packed, unstable, points, vertices, scratch, peak, missed, doubts,
    zeros, kind,
):  # fmt: skip
    """Set the pattern of the ReLUs of a layer that keep their sign on a polyhedron; list the others.

    Returns the number of listed neurons, and the number of neurons with an exactly zero form, which `zeros` lists.
    """
    cx, cy, cz, rx, ry, rz = bounding_box(points, vertices)
    centre, radius = scratch[0, : end - first], scratch[1, : end - first]
    _enclose(
        forms[0, first:end], forms[1, first:end], forms[2, first:end], forms[3, first:end],
        cx, cy, cz, rx, ry, rz, centre, radius, peak[first:end],
    )  # fmt: skip
    found, dead = 0, 0
    doubts[0] = 0
    for i in range(end - first):
        if kind[first + i] != RELU:
            continue
        is_rounding = abs(centre[i]) + radius[i] <= noise[first + i]
        if is_rounding or abs(centre[i]) >= radius[i] + near[first + i]:
            is_active = np.uint8(centre[i] > 0.0)
            if is_rounding:
                is_active = np.uint8(0)
                missed[first + i] = max(missed[first + i], abs(centre[i]) + radius[i])
                if centre[i] == 0.0 and radius[i] == 0.0:
                    zeros[dead] = first + i
                    dead += 1
                else:
                    doubts[0] += 1
            if is_active != active[first + i]:
                flip(first + i, first, byte, active, packed)
        else:
            unstable[found] = first + i
            found += 1
    return found, dead


@compiled
def _sliver(depth, a, b, c, rx, ry, rz):
    """A bound on the volume between two parallel planes, `depth` apart in value, across a box: their distance times the
    shadow of the box along their normal, which no cross-section exceeds."""
    # Scale first: squares may underflow.
    largest = max(abs(a), abs(b), abs(c))
    a, b, c, depth = a / largest, b / largest, c / largest, depth / largest
    shadow = 4.0 * (abs(a) * ry * rz + abs(b) * rx * rz + abs(c) * rx * ry)
    return depth * shadow / (a * a + b * b + c * c)


@compiled
def _splitters(forms, noise, candidates, source, total, free, points, vertices, sums, missed):
    """Copy the candidates (`total` from `source`) that split a polyhedron to `free`, the most central one last."""
    cx, cy, cz, rx, ry, rz = bounding_box(points, vertices)
    found = 0
    best = -1
    best_ratio = 2.0
    for n in range(total):
        k = source[n]
        a, b, c, d = forms[0, k], forms[1, k], forms[2, k], forms[3, k]
        centre = abs(a * cx + b * cy + c * cz + d)
        radius = abs(a) * rx + abs(b) * ry + abs(c) * rz
        if centre >= radius:
            continue
        low, high = reach(a, b, c, d, points, vertices)
        if not low < 0.0 < high:
            continue
        limit = max(DISTANCE * (abs(a) + abs(b) + abs(c)), noise[k])
        if low >= -limit or high <= limit:
            missed[k] = max(missed[k], min(-low, high))
            if max(-low, high) > noise[k]:
                sums[SLIVERS] += _sliver(min(-low, high), a, b, c, rx, ry, rz)
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
def _deliver(program, walk, output, vertices, count, origin, has_logits):
    """Append the current polyhedron, its pattern and (after the last hidden layer) its logits to the output."""
    points, incidence = walk.here, walk.here_incidence
    size = volume(points, incidence, vertices, count, walk.order, walk.value)
    if not size > 0.0:
        # float64 cannot distinguish the volume from zero: nothing is known there.
        walk.sums[SKIPPED] += 1.0
        return
    last = program.offsets.shape[0] - 2
    if has_logits:
        sync(program, walk, last)
    region, vertex, facet = (
        walk.counters[kernels.REGIONS],
        walk.counters[kernels.VERTICES],
        walk.counters[kernels.FACETS],
    )
    first = program.offsets[last]
    for i in range(ROWS):
        for k in range(output.logits.shape[2]):
            output.logits[region, i, k] = walk.forms[i, first + k]
    for i in range(walk.packed.shape[0]):
        output.packed[region, i] = walk.packed[i]
    copy_polyhedron(
        points, incidence, walk.here_facets, 0, vertices, 0, count, output.points, output.incidence, output.facets,
        vertex, facet,
    )  # fmt: skip
    output.vertices[region], output.facet_counts[region], output.origin[region] = vertices, count, origin
    walk.counters[kernels.REGIONS] += 1
    walk.counters[kernels.VERTICES] += vertices
    walk.counters[kernels.FACETS] += count
    doubts = 0
    for layer in range(2 if program.clipped == 1 else 0, last):
        doubts += walk.doubts[0, layer] + walk.doubts[1, layer]
        if not program.is_plain[layer]:
            doubts += walk.doubts[2, layer] + walk.doubts[3, layer]
    output.doubtful[region] = np.uint8(doubts > 0)
    walk.sums[VOLUME] += size


@compiled_inline
def _has_no_room(walk, output, top):
    """The code of a buffer that is too short for the polyhedron on top of the stack and its two parts, or DONE."""
    counters, stack = walk.counters, walk.stack
    vertices, count = stack[top, 2], stack[top, 8]
    if (
        counters[kernels.REGIONS] >= output.vertices.shape[0]
        or counters[kernels.VERTICES] + vertices > output.points.shape[0]
        or counters[kernels.FACETS] + count > output.facets.shape[0]
        or counters[kernels.CUTS] >= output.cuts.shape[0]
    ):
        return kernels.NEED_OUTPUT
    if count + 1 > 64 * walk.incidence.shape[1]:
        return NEED_WORDS
    if (
        top + 2 > stack.shape[0]
        or stack[top, 1] + 2 * (vertices + count) > walk.points.shape[0]
        or stack[top, 7] + 2 * (count + 1) > walk.facets.shape[0]
        or stack[top, 3] + stack[top, 4] + walk.scratch.shape[1] > walk.candidates.shape[0]
        or vertices > walk.here.shape[0]
        or count > walk.here_facets.shape[0]
    ):
        return kernels.NEED_STACK
    return kernels.DONE


@compiled_inline
def _split(program, walk, output, top, layer, k, rival, vertices, count, free, found):
    """Split the current polyhedron where neuron k vanishes, or equals its rival, and push both parts, each with `found`
    candidates; returns DONE or the code of a short buffer."""
    counters, stack, forms = walk.counters, walk.stack, walk.forms
    a, b, c, d, noise = forms[0, k], forms[1, k], forms[2, k], forms[3, k], program.noise[k]
    if rival >= 0:
        a, b, c, d = a - forms[0, rival], b - forms[1, rival], c - forms[2, rival], d - forms[3, rival]
        noise += program.noise[rival]
    limit = max(DISTANCE * (abs(a) + abs(b) + abs(c)), noise)
    first, first_facet, origin, depth = stack[top, 1], stack[top, 7], stack[top, 5], stack[top, 6]
    code, left, below, right, above, snapped = split_polyhedron(
        a, b, c, d, limit, counters[kernels.BASE] + counters[kernels.CUTS] + 1, walk.here, walk.here_incidence,
        walk.here_facets, vertices, count, walk.points, walk.incidence, walk.facets, first, first_facet, walk.value,
        walk.rank, walk.pairs,
    )  # fmt: skip
    if code != SPLIT:
        return BROKEN if code == UNCUT else (NEED_WORDS if code == TOO_FEW_WORDS else kernels.NEED_STACK)
    row = output.cuts[counters[kernels.CUTS]]
    row[1], row[2] = layer, k - program.offsets[layer]
    counters[kernels.CUTS] += 1
    deep = gap(
        a, b, c, d, walk.here, walk.value, vertices, walk.points[first:], walk.incidence[first:], left, below - 1,
        walk.order, walk.angle,
    )  # fmt: skip
    walk.sums[GAP] = max(walk.sums[GAP], deep)
    if snapped > 0.0 or deep > ROUNDING:
        walk.missed[k] = max(walk.missed[k], snapped)
        _, _, _, rx, ry, rz = bounding_box(walk.here, vertices)
        walk.sums[SLIVERS] += _sliver(snapped, a, b, c, rx, ry, rz)
        # The volume of a gap is at most its depth times the surface of the polyhedron, which that of the box bounds.
        walk.sums[HOLES] += deep * 8.0 * (rx * ry + ry * rz + rz * rx)
    for n in range(2):
        stack[top + n, 0] = layer
        stack[top + n, 1] = first + n * left
        stack[top + n, 2] = right if n == 1 else left
        stack[top + n, 7] = first_facet + n * below
        stack[top + n, 8] = above if n == 1 else below
        stack[top + n, 3] = free
        stack[top + n, 4] = found
        stack[top + n, 5] = origin
        stack[top + n, 6] = depth + 1
    counters[kernels.HEIGHT] = top + 2
    counters[kernels.DEPTH] = max(counters[kernels.DEPTH], depth + 1)
    return kernels.DONE


@compiled
def advance(program, walk, output, last_layer, max_nodes):
    """Continue until the stack is empty, `max_nodes` polyhedra were visited, or a buffer is full.

    Writes the polyhedra that no neuron of the layers 0 … last_layer splits. Returns DONE, PAUSED, NEED_OUTPUT,
    NEED_STACK, NEED_WORDS, or BROKEN if a plane that should cut a polyhedron misses it.
    """
    counters, stack, candidates, offsets = walk.counters, walk.stack, walk.candidates, program.offsets
    forms, noise, active, packed, scratch = walk.forms, program.noise, walk.active, walk.packed, walk.scratch
    near, beside = program.near, walk.beside
    sums, peak, missed, points = walk.sums, walk.peak, walk.missed, walk.here
    nodes = 0
    while counters[kernels.HEIGHT] > 0:
        if nodes >= max_nodes:
            return kernels.PAUSED
        top = counters[kernels.HEIGHT] - 1
        code = _has_no_room(walk, output, top)
        if code != kernels.DONE:
            return code
        layer, vertices, count, list_first, list_size = (
            stack[top, 0], stack[top, 2], stack[top, 8], stack[top, 3], stack[top, 4]
        )  # fmt: skip
        copy_polyhedron(
            walk.points, walk.incidence, walk.facets, stack[top, 1], vertices, stack[top, 7], count, points,
            walk.here_incidence, walk.here_facets, 0, 0,
        )  # fmt: skip
        counters[kernels.HEIGHT] = top
        nodes += 1
        slivers = sums[SLIVERS]
        # A polyhedron that has not entered its layer yet has no list of candidates.
        is_new = list_first < 0
        found, k, rival = 0, -1, -1
        free = 0 if is_new else list_first + list_size
        if not is_new:
            source = candidates[list_first:]
            found = _splitters(forms, noise, candidates, source, list_size, free, points, vertices, sums, missed)
        while found == 0:
            byte, start, end = program.byte_start[layer], offsets[layer], offsets[layer + 1]
            if is_new:
                is_new = False
            else:
                if not program.is_plain[layer]:
                    k, rival = _find_pair(program, walk, layer, vertices)
                    if k >= 0:
                        break
                    _decide_windows(program, walk, layer, vertices)
                unstable = walk.unstable[start : start + walk.unstable_count[layer]]
                doubts = walk.doubts[1, layer:]
                _decide(
                    forms, noise, near, unstable, start, byte, active, packed, points, vertices, missed, beside, doubts
                )
                if layer == last_layer:
                    _deliver(
                        program,
                        walk,
                        output,
                        vertices,
                        count,
                        stack[top, kernels.ORIGIN],
                        last_layer == offsets.shape[0] - 3,
                    )
                    break
                layer += 1
                byte, start, end = program.byte_start[layer], offsets[layer], offsets[layer + 1]
                sync(program, walk, layer)
            walk.versions[ENTERED, layer] += 1
            unstable = walk.unstable[start:end]
            total, dead = _enter(
                forms, noise, near, start, end, byte, active, packed, unstable, points, vertices, scratch, peak, missed,
                walk.doubts[0, layer:], walk.columns[0], program.kind,
            )  # fmt: skip
            if dead > 0 and layer > 0:
                zeros = walk.columns[0, :dead]
                walk.doubts[0, layer] += count_reached(program, walk.fed, layer, zeros, walk.columns[1])
            if not program.is_plain[layer]:
                _enter_others(program, walk, layer, vertices)
            walk.unstable_count[layer] = total
            found = _splitters(forms, noise, candidates, unstable, total, free, points, vertices, sums, missed)
        if found > 0:
            k = candidates[free + found - 1]
            found -= 1
        if k >= 0:
            code = _split(program, walk, output, top, layer, k, rival, vertices, count, free, found)
            if code != kernels.DONE:
                # The walk resumes with the unchanged polyhedron once there is room.
                counters[kernels.HEIGHT], sums[SLIVERS] = top + 1, slivers
                return code
    return kernels.DONE
