"""From a tiny ReLU network to its activation regions, areas and attention distances, in exact rationals.

Written from the definitions for one and two dimensions, without the package. Two ways to the regions that share no
geometry: `split_regions` cuts polygons layer by layer, `brute_force_patterns` tries all 2^n patterns by intersecting
half-planes. Exact and slow: for networks of a few dozen neurons, and of ten for the brute force.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import isqrt, lcm

Point = tuple[Fraction, ...]
Polygon = tuple[Point, ...]  # counter-clockwise, no three on a line; in one dimension the two ends
Form = tuple[Fraction, ...]  # coefficients of theta, then the constant
Matrix = Sequence[Sequence[Fraction]]
Layer = tuple[Matrix, Sequence[Fraction]]
Pattern = tuple[int, ...]  # 1: > 0 inside the region; 0: < 0 inside, or identically zero


@dataclass(frozen=True)
class Region:
    """A region with volume: its pattern in layer order, closed polygon, area (or length) and affine logits."""

    pattern: Pattern
    polygon: Polygon
    area: Fraction
    logits: tuple[Form, ...]


# Regions by splitting


def split_regions(layers: Sequence[Layer], low: Sequence[Fraction], high: Sequence[Fraction]) -> tuple[Region, ...]:
    """Return all regions with volume of a network from theta to logits (ReLU after all layers but the last) in a box.

    >>> [region.area for region in split_regions([([[1]], [-1]), ([[1]], [0])], [Fraction(0)], [Fraction(3)])]
    [Fraction(1, 1), Fraction(2, 1)]
    """
    theta = tuple(tuple(Fraction(i == k) for k in range(len(low) + 1)) for i in range(len(low)))
    pieces: list[tuple[Polygon, Pattern, tuple[Form, ...]]] = [(box(low, high), (), theta)]
    for layer in layers[:-1]:
        pieces = [
            (part, pattern + bits, tuple(_gate(bit, form) for bit, form in zip(bits, forms, strict=True)))
            for polygon, pattern, values in pieces
            for forms in [_affine(layer, values)]
            for part, bits in _split_by(polygon, forms)
        ]
    return tuple(
        Region(pattern, polygon, area(polygon), _affine(layers[-1], values)) for polygon, pattern, values in pieces
    )


def _split_by(polygon: Polygon, forms: Sequence[Form]) -> list[tuple[Polygon, Pattern]]:
    parts: list[tuple[Polygon, Pattern]] = [(polygon, ())]
    for form in forms:
        split = []
        for part, bits in parts:
            values = [evaluate(form, vertex) for vertex in part]
            if max(values) <= 0:
                split.append((part, (*bits, 0)))
            elif min(values) >= 0:
                split.append((part, (*bits, 1)))
            else:
                split += [(clip(part, _negative(form)), (*bits, 0)), (clip(part, form), (*bits, 1))]
        parts = split
    return parts


# Regions by brute force


def brute_force_patterns(
    layers: Sequence[Layer], low: Sequence[Fraction], high: Sequence[Fraction]
) -> dict[Pattern, Polygon]:
    """Try all 2^n patterns of at most ten neurons; return the polygons of those with volume.

    A pattern asks for form > 0 of the active and form ≤ 0 of the inactive neurons, each form taken under the pattern.
    """
    neurons = sum(len(bias) for _, bias in layers[:-1])
    if neurons > 10:
        raise ValueError(f"{neurons} neurons make 2^{neurons} patterns; the brute force takes at most 10.")
    found = {}
    for pattern in product((0, 1), repeat=neurons):
        forms = _forms_under(layers, pattern, len(low))
        if any(bit and not any(form) for bit, form in zip(pattern, forms, strict=True)):
            continue  # an identically zero neuron is never active
        sides = [form if bit else _negative(form) for bit, form in zip(pattern, forms, strict=True) if any(form)]
        polygon = _intersection([_integers(side) for side in [*sides, *_box_sides(low, high)]])
        if polygon is not None:
            found[pattern] = polygon
    return found


def _forms_under(layers: Sequence[Layer], pattern: Pattern, dimension: int) -> list[Form]:
    values: tuple[Form, ...] = tuple(tuple(Fraction(i == k) for k in range(dimension + 1)) for i in range(dimension))
    forms: list[Form] = []
    for layer in layers[:-1]:
        current = _affine(layer, values)
        bits = pattern[len(forms) : len(forms) + len(current)]
        values = tuple(_gate(bit, form) for bit, form in zip(bits, current, strict=True))
        forms += current
    return forms


def _box_sides(low: Sequence[Fraction], high: Sequence[Fraction]) -> list[Form]:
    sides = []
    for axis, (lowest, highest) in enumerate(zip(low, high, strict=True)):
        unit = [Fraction(axis == k) for k in range(len(low))]
        sides += [(*unit, -Fraction(lowest)), (*(-u for u in unit), Fraction(highest))]
    return sides


def _integers(form: Form) -> tuple[int, ...]:
    scale = lcm(*(number.denominator for number in form))
    return tuple(int(number * scale) for number in form)


def _intersection(sides: list[tuple[int, ...]]) -> Polygon | None:
    """{side ≥ 0 for all sides}, bounded, by its vertices in homogeneous integers; None without volume."""
    dimension = len(sides[0]) - 1
    corners = set()
    for lines in combinations(sides, dimension):
        *numerators, weight = _meet(*lines)
        if weight < 0:
            numerators, weight = [-n for n in numerators], -weight
        if weight and all(sum(s * n for s, n in zip(side, (*numerators, weight), strict=True)) >= 0 for side in sides):
            corners.add(tuple(Fraction(n, weight) for n in numerators))
    if len(corners) <= dimension:
        return None
    if dimension == 1:
        return (min(corners), max(corners))
    hull = _hull(sorted(corners))
    return hull if len(hull) > 2 else None


def _meet(first: tuple[int, ...], second: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Where forms vanish together, homogeneous: the root of one form in 1-D, the cross product of two in 2-D."""
    if second is None:
        return (-first[1], first[0])
    (a, b, c), (d, e, f) = first, second
    return (b * f - c * e, c * d - a * f, a * e - b * d)


def _hull(points: list[Point]) -> Polygon:
    """Andrew's monotone chain on sorted points, points on edges dropped."""
    chains = []
    for ordered in (points, points[::-1]):
        chain: list[Point] = []
        for point in ordered:
            while len(chain) > 1 and _cross(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        chains.append(chain[:-1])
    return (*chains[0], *chains[1])


def _cross(origin: Point, first: Point, second: Point) -> Fraction:
    return (first[0] - origin[0]) * (second[1] - origin[1]) - (first[1] - origin[1]) * (second[0] - origin[0])


# Classification


def strict_areas(regions: Iterable[Region]) -> tuple[Fraction, ...]:
    """The area where each class alone is the maximum; ties belong to no class."""
    regions = tuple(regions)
    return tuple(
        sum((_leading_area(region, label, strict=True) for region in regions), Fraction(0))
        for label in range(len(regions[0].logits))
    )


def label_areas(regions: Iterable[Region], label: int) -> tuple[Fraction, Fraction, Fraction]:
    """(CR, MR, tied): label alone the maximum, another class above it, neither; they add up to the domain."""
    regions = tuple(regions)
    total = sum((region.area for region in regions), Fraction(0))
    kept = sum((_leading_area(region, label, strict=True) for region in regions), Fraction(0))
    not_beaten = sum((_leading_area(region, label, strict=False) for region in regions), Fraction(0))
    return kept, total - not_beaten, not_beaten - kept


def _leading_area(region: Region, label: int, *, strict: bool) -> Fraction:
    polygon = region.polygon
    for other, form in enumerate(region.logits):
        if other == label:
            continue
        lead = tuple(ours - theirs for ours, theirs in zip(region.logits[label], form, strict=True))
        if not any(lead):
            if strict:
                return Fraction(0)
            continue
        polygon = clip(polygon, lead)
    return area(polygon)


# Images and attention


def compound(offset: Sequence[Fraction], slope: Matrix, chain: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers of f(clip(offset + θ·slope, 0, 1)): h1 = offset + θ·slope, h2 = 1 − ReLU(h1), x = 1 − ReLU(h2), f(x).

    slope (d, N), offset (N,). Patterns list h1 (N bits), h2 (N bits), then the neurons of f.
    """
    pixels = range(len(offset))
    first, bias = chain[0]
    lower = ([[row[i] for row in slope] for i in pixels], offset)
    upper = ([[-Fraction(i == k) for k in pixels] for i in pixels], [Fraction(1)] * len(offset))
    entry = (
        [[-weight for weight in row] for row in first],
        [constant + sum(row) for row, constant in zip(first, bias, strict=True)],
    )
    return (lower, upper, entry, *chain[1:])


def gradient(chain: Sequence[Layer], pattern: Pattern) -> tuple[tuple[Fraction, ...], ...]:
    """∂f_j/∂x_i of a classifier whose neurons have the given pattern: one row per class."""
    rows: tuple[tuple[Fraction, ...], ...] = tuple(tuple(row) for row in chain[-1][0])
    end = len(pattern)
    for matrix, bias in reversed(chain[:-1]):
        bits = pattern[end - len(bias) : end]
        end -= len(bias)
        rows = tuple(
            tuple(
                sum((w * bit * inner[i] for w, bit, inner in zip(row, bits, matrix, strict=True)), Fraction(0))
                for i in range(len(matrix[0]))
            )
            for row in rows
        )
    return rows


def map_changes(regions: Iterable[Region], chain: Sequence[Layer], image: Sequence[Fraction]) -> list[Matrix]:
    """Per region and class: actual map minus the map at `image`, filter identity; (regions, K, N)."""
    expected = gradient(chain, forward(chain, image)[0])
    neurons = sum(len(bias) for _, bias in chain[:-1])
    changes: list[Matrix] = []
    for region in regions:
        actual = gradient(chain, region.pattern[len(region.pattern) - neurons :])
        changes.append(
            [[a - e for a, e in zip(row, kept, strict=True)] for row, kept in zip(actual, expected, strict=True)]
        )
    return changes


def l2_robust_area(
    regions: Sequence[Region], changes: Sequence[Matrix], *, delta_squared: Fraction, watched: int
) -> Fraction:
    """AR area for the kept map of one class: ‖·‖_2² ≤ δ²."""
    squares = [_dot(change[watched], change[watched]) for change in changes]
    pairs = zip(regions, squares, strict=True)
    return sum((region.area for region, square in pairs if square <= delta_squared), Fraction(0))


def l2_sum_robust_area(
    regions: Sequence[Region], changes: Sequence[Matrix], *, delta: Fraction, classes: Sequence[int]
) -> Fraction:
    """AR area for the kept maps of several classes: Σ_j ‖·‖_2 ≤ δ."""
    squares = [[_dot(change[j], change[j]) for j in classes] for change in changes]
    pairs = zip(regions, squares, strict=True)
    return sum((region.area for region, own in pairs if roots_at_most(own, delta)), Fraction(0))


def l1_robust_area(
    regions: Sequence[Region],
    changes: Sequence[Matrix],
    *,
    delta: Fraction,
    classes: Sequence[int],
    step: Matrix | None = None,
    axis: int = 0,
) -> Fraction:
    """AR area for Σ_j ‖·‖_1 ≤ δ. With `step` (K, N) the expected maps move: changes − θ_axis·step."""
    total = Fraction(0)
    for region, change in zip(regions, changes, strict=True):
        lines = [(change[j][i], -step[j][i] if step else Fraction(0)) for j in classes for i in range(len(change[j]))]
        total += _area_of_small_sum(region.polygon, lines, axis, delta)
    return total


def _area_of_small_sum(
    polygon: Polygon, lines: list[tuple[Fraction, Fraction]], axis: int, delta: Fraction
) -> Fraction:
    """Area of {Σ |u + t·v| ≤ δ} with t = θ_axis: between kinks the sum is affine in t."""
    start, stop = min(vertex[axis] for vertex in polygon), max(vertex[axis] for vertex in polygon)
    kinks = sorted({start, stop, *(-u / v for u, v in lines if v and start < -u / v < stop)})
    total = Fraction(0)
    for left, right in pairwise(kinks):
        middle = (left + right) / 2
        signs = [1 if u + middle * v >= 0 else -1 for u, v in lines]
        constant = sum((s * u for s, (u, _) in zip(signs, lines, strict=True)), Fraction(0))
        rate = sum((s * v for s, (_, v) in zip(signs, lines, strict=True)), Fraction(0))
        slab = polygon
        for slope, offset in ((Fraction(1), -left), (Fraction(-1), right), (-rate, delta - constant)):
            form = (*(slope * (k == axis) for k in range(len(polygon[0]))), offset)
            slab = clip(slab, form)
        total += area(slab)
    return total


def roots_at_most(squares: Sequence[Fraction], limit: Fraction) -> bool:
    """Whether Σ √s ≤ limit, decided exactly: only perfect squares can give equality, and they leave no rounding.

    >>> roots_at_most([Fraction(2), Fraction(9, 4)], Fraction(3)), roots_at_most([Fraction(9, 4)] * 2, Fraction(3))
    (True, True)
    """
    for bits in (64, 512, 4000):
        lower = upper = Fraction(0)
        for square in squares:
            scaled = square.numerator * square.denominator << (2 * bits)
            root = isqrt(scaled)
            lower += Fraction(root, square.denominator << bits)
            upper += Fraction(root + (root * root != scaled), square.denominator << bits)
        if upper <= limit or lower > limit:
            return upper <= limit
    raise ArithmeticError(f"the sum of the roots of {squares} cannot be told from {limit}")


# Points, forms, polygons


def forward(layers: Sequence[Layer], point: Sequence[Fraction]) -> tuple[Pattern, tuple[Fraction, ...]]:
    """Pattern (active means > 0) and logits at one point."""
    pattern: list[int] = []
    values = tuple(point)
    for matrix, bias in layers[:-1]:
        sums = [_dot(row, values) + constant for row, constant in zip(matrix, bias, strict=True)]
        pattern += [int(value > 0) for value in sums]
        values = tuple(max(value, Fraction(0)) for value in sums)
    matrix, bias = layers[-1]
    return tuple(pattern), tuple(_dot(row, values) + constant for row, constant in zip(matrix, bias, strict=True))


def box(low: Sequence[Fraction], high: Sequence[Fraction]) -> Polygon:
    """The domain as a polygon, in one or two dimensions."""
    if len(low) == 1:
        return ((Fraction(low[0]),), (Fraction(high[0]),))
    (left, bottom), (right, top) = map(Fraction, low), map(Fraction, high)
    return ((left, bottom), (right, bottom), (right, top), (left, top))


def evaluate(form: Form, point: Point) -> Fraction:
    """The form at a point."""
    return _dot(form[:-1], point) + form[-1]


def clip(polygon: Polygon, form: Form) -> Polygon:
    """The part of a convex polygon with form ≥ 0; fewer than d + 1 vertices when nothing with volume is left."""
    values = [evaluate(form, vertex) for vertex in polygon]
    kept: list[Point] = []
    for i, (vertex, value) in enumerate(zip(polygon, values, strict=True)):
        if value >= 0:
            kept.append(vertex)
        following, other = polygon[(i + 1) % len(polygon)], values[(i + 1) % len(polygon)]
        if value * other < 0:
            share = value / (value - other)
            kept.append(tuple(v + share * (w - v) for v, w in zip(vertex, following, strict=True)))
    return tuple(dict.fromkeys(kept))


def area(polygon: Polygon) -> Fraction:
    """Length of a segment, area of a polygon; zero with too few vertices."""
    if len(polygon) < 2:
        return Fraction(0)
    if len(polygon[0]) == 1:
        return abs(polygon[1][0] - polygon[0][0])
    closed = pairwise((*polygon, polygon[0]))
    return abs(sum((p[0] * q[1] - p[1] * q[0] for p, q in closed), Fraction(0))) / 2


def _affine(layer: Layer, values: Sequence[Form]) -> tuple[Form, ...]:
    matrix, bias = layer
    width = len(values[0])
    sums = ([_dot(row, [value[k] for value in values]) for k in range(width)] for row in matrix)
    return tuple((*total[:-1], total[-1] + constant) for total, constant in zip(sums, bias, strict=True))


def _gate(bit: int, form: Form) -> Form:
    return form if bit else tuple(Fraction(0) for _ in form)


def _negative(form: Form) -> Form:
    return tuple(-number for number in form)


def _dot(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(first, second, strict=True)), Fraction(0))
