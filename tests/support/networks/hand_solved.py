"""Tiny networks solved by hand: the docstring has the formula, the code the regions and areas, all entries rational.

Every entry is a dyadic rational, so `floats` is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

Number = int | Fraction
Layer = tuple[tuple[tuple[Fraction, ...], ...], tuple[Fraction, ...]]  # W (n_out, n_in), b (n_out,)
Pattern = tuple[int, ...]

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


@dataclass(frozen=True)
class Tiny:
    """Layers from theta to the logits (ReLU after all but the last), a box, and known facts about them.

    areas: the area (length in one dimension) of every region with volume, by pattern in layer order. strict: the area
    where each class alone is the maximum, ties belong to nobody. label: the class at θ = 0 (the first of tied ones).
    """

    name: str
    layers: tuple[Layer, ...]
    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]
    areas: dict[Pattern, Fraction]
    strict: tuple[Fraction, ...]
    label: int = 0

    @property
    def floats(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The same layers as float64 arrays (W, b), exactly."""
        return [_floats(layer) for layer in self.layers]


@dataclass(frozen=True)
class TinyImage:
    """A classifier `chain` on the pixels clip(offset + θ·slope, 0, 1), with offset the original image, and its answers.

    regions: how many have volume. strict: as in `Tiny`. steps: for the class `watched`, pairs (squared L2 distance
    of the actual to the kept map, area on which it has that value), ascending. l1: the same for the L1 distance summed
    over all classes.
    """

    name: str
    offset: tuple[Fraction, ...]
    slope: tuple[tuple[Fraction, ...], ...]  # (d, N)
    chain: tuple[Layer, ...]
    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]
    regions: int
    strict: tuple[Fraction, ...]
    label: int
    watched: int
    steps: tuple[tuple[Fraction, Fraction], ...]
    l1: tuple[tuple[Fraction, Fraction], ...]

    @property
    def floats(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The classifier's layers as float64 arrays (W, b), exactly."""
        return [_floats(layer) for layer in self.chain]


def layer(matrix: Sequence[Sequence[Number]], bias: Sequence[Number]) -> Layer:
    """Rows and bias as rationals."""
    return tuple(vector(row) for row in matrix), vector(bias)


def vector(numbers: Sequence[Number]) -> tuple[Fraction, ...]:
    """Numbers as rationals."""
    return tuple(Fraction(number) for number in numbers)


def wrong_side() -> Tiny:
    """θ ∈ [0,2]: a = ReLU(θ+1), h = ReLU(θ−1), z = ReLU(2h−a+1.5); logits (z, 1/4). Four regions of length 1/2.

    Below 1, h = 0 and z's form is 1/2−θ; above, it is θ−3/2. So z is active on [0, 1/2] and on [3/2, 2], and exceeds
    1/4 on [0, 1/4] and [7/4, 2]. Flipping h in the first region gives the pattern of the last, which it does not touch.
    """
    layers = (layer([[1], [1]], [1, -1]), layer([[-1, 2]], [3 * HALF]), layer([[1], [0]], [0, QUARTER]))
    patterns: tuple[Pattern, ...] = ((1, 0, 1), (1, 0, 0), (1, 1, 0), (1, 1, 1))
    return Tiny("wrong side", layers, vector([0]), vector([2]), dict.fromkeys(patterns, HALF), (HALF, 3 * HALF))


def stays_active() -> Tiny:
    """θ ∈ [−1,1]: h1 = ReLU(θ), h2 = ReLU(−θ), z = ReLU(h1+h2) = |θ|; logits (1/2, z). Two regions of length 1.

    At 0 all three vanish, h1 and h2 swap and z is active on both sides. z exceeds 1/2 on a length of 1.
    """
    layers = (layer([[1], [-1]], [0, 0]), layer([[1, 1]], [0]), layer([[0], [1]], [HALF, 0]))
    areas: dict[Pattern, Fraction] = {(0, 1, 1): Fraction(1), (1, 0, 1): Fraction(1)}
    return Tiny("stays active", layers, vector([-1]), vector([1]), areas, vector([1, 1]))


def coincident_grid() -> Tiny:
    """θ ∈ [0,4]²: for k = 1, 2, 3 and both axes ReLU(θ_i−k), ReLU(2θ_i−2k), ReLU(k−θ_i): 18 neurons, 16 unit squares.

    Each of the six lines carries three neurons, one of them the other way round. Logits (Σ ReLU(θ_1−k), 3): the sum is
    0, θ−1, 2θ−3, 3θ−6 on the four columns and exceeds 3 for θ_1 > 3.
    """
    lines = [(axis, k) for axis in (0, 1) for k in (1, 2, 3)]
    rows, bias = [], []
    for axis, k in lines:
        for scale in (1, 2, -1):
            rows.append([scale if i == axis else 0 for i in (0, 1)])
            bias.append(-scale * k)
    first = [1 if axis == 0 and copy == 0 else 0 for axis, _ in lines for copy in range(3)]
    layers = (layer(rows, bias), layer([first, [0] * 18], [0, 3]))
    areas: dict[Pattern, Fraction] = {}
    for cell in product(range(4), repeat=2):
        above = [int(cell[axis] >= k) for axis, k in lines]
        areas[tuple(bit for up in above for bit in (up, up, 1 - up))] = Fraction(1)
    return Tiny("coincident grid", layers, vector([0, 0]), vector([4, 4]), areas, vector([4, 12]), label=1)


def one_line_many_times(copies: int = 4) -> Tiny:
    """θ ∈ [0,1]: `copies` times h = ReLU(θ−1/2); logits (1/8, Σ h). Two regions of length 1/2, whatever the number.

    Σ h = copies·(θ−1/2) exceeds 1/8 for θ > 1/2 + 1/(8·copies).
    """
    layers = (layer([[1]] * copies, [-HALF] * copies), layer([[0] * copies, [1] * copies], [Fraction(1, 8), 0]))
    low_part = HALF + Fraction(1, 8 * copies)
    areas: dict[Pattern, Fraction] = {(0,) * copies: HALF, (1,) * copies: HALF}
    return Tiny("one line many times", layers, vector([0]), vector([1]), areas, (low_part, 1 - low_part))


def dead_layer() -> Tiny:
    """θ ∈ [−1,1]²: h_i = ReLU(θ_i); z = ReLU(−h1−h2−1) = 0; u = ReLU(z), v = ReLU(z+1) = 1; logits (u, v).

    z is dead everywhere, u is identically zero (inactive), v constant (active). Four unit squares, class 1 everywhere.
    """
    layers = (
        layer([[1, 0], [0, 1]], [0, 0]),
        layer([[-1, -1]], [-1]),
        layer([[1], [1]], [0, 1]),
        layer([[1, 0], [0, 1]], [0, 0]),
    )
    areas: dict[Pattern, Fraction] = {(*square, 0, 0, 1): Fraction(1) for square in product((0, 1), repeat=2)}
    return Tiny("dead layer", layers, vector([-1, -1]), vector([1, 1]), areas, vector([0, 4]), label=1)


def through_one_point() -> Tiny:
    """θ ∈ [−1,1]²: ReLU of θ1, θ2, θ1−θ2, θ1+θ2; logits (ReLU(θ1), ReLU(θ2)). Eight triangles of area 1/2.

    Class 0 alone is the maximum where θ1 > max(θ2, 0), area 3/2; the same for class 1; both are 0 on a unit square.
    """
    layers = (
        layer([[1, 0], [0, 1], [1, -1], [1, 1]], [0] * 4),
        layer([[1, 0, 0, 0], [0, 1, 0, 0]], [0, 0]),
    )
    patterns: list[Pattern] = [
        *((1, 1, 1, 1), (1, 1, 0, 1), (0, 1, 0, 1), (0, 1, 0, 0)),
        *((0, 0, 0, 0), (0, 0, 1, 0), (1, 0, 1, 0), (1, 0, 1, 1)),
    ]
    strict = (3 * HALF, 3 * HALF)
    return Tiny("through one point", layers, vector([-1, -1]), vector([1, 1]), dict.fromkeys(patterns, HALF), strict)


def through_corners() -> Tiny:
    """θ ∈ [0,1]²: ReLU of θ1−θ2 (a diagonal), θ1+θ2 and θ1+θ2−2 (touch a corner), θ1 (an edge); two triangles.

    Only the diagonal splits. θ1+θ2 and θ1 are active inside, θ1+θ2−2 is not. Logits (1/2, ReLU(θ1)): half and half.
    """
    layers = (
        layer([[1, -1], [1, 1], [1, 1], [1, 0]], [0, 0, -2, 0]),
        layer([[0, 0, 0, 0], [0, 0, 0, 1]], [HALF, 0]),
    )
    areas: dict[Pattern, Fraction] = {(1, 1, 0, 1): HALF, (0, 1, 0, 1): HALF}
    return Tiny("through corners", layers, vector([0, 0]), vector([1, 1]), areas, (HALF, HALF))


def bent_line() -> Tiny:
    """θ ∈ [0,2]²: h = ReLU(θ1−1), z = ReLU(θ2−h) with θ2 carried by k = ReLU(θ2); logits (z, 1). Three regions.

    z's form is θ2 for θ1 < 1 (active, area 2) and θ2−θ1+1 for θ1 > 1: its line starts at the vertex (1,0) of that half,
    where h's line meets the border, and leaves at (2,1), below it area 1/2. z > 1 above θ2 = 1 (area 1) and above the
    line θ2 = θ1 (area 1/2).
    """
    layers = (layer([[1, 0], [0, 1]], [-1, 0]), layer([[-1, 1]], [0]), layer([[1], [0]], [0, 1]))
    areas: dict[Pattern, Fraction] = {(0, 1, 1): Fraction(2), (1, 1, 1): 3 * HALF, (1, 1, 0): HALF}
    return Tiny("bent line", layers, vector([0, 0]), vector([2, 2]), areas, (3 * HALF, 5 * HALF), label=1)


def tents(depth: int = 3) -> Tiny:
    """θ ∈ [0,1]: t(x) = 2·ReLU(x)−4·ReLU(x−1/2) applied `depth` times; logits (1/2, t(…t(θ))): 2^depth equal regions.

    Layer l splits at the odd multiples of 2^−l and touches zero at the others. The last tent map is above 1/2 on half
    of every period.
    """
    first = layer([[1], [1]], [0, -HALF])
    middle = layer([[2, -4], [2, -4]], [0, -HALF])
    layers = (first, *[middle] * (depth - 1), layer([[0, 0], [2, -4]], [HALF, 0]))
    areas: dict[Pattern, Fraction] = {}
    for piece in range(2**depth):
        position, pattern = Fraction(2 * piece + 1, 2 ** (depth + 1)), []
        for _ in range(depth):
            pattern += [1, int(position > HALF)]
            position = 2 * min(position, 1 - position)
        areas[tuple(pattern)] = Fraction(1, 2**depth)
    return Tiny("tents", layers, vector([0]), vector([1]), areas, (HALF, HALF))


def constant_function() -> Tiny:
    """θ ∈ [0,1]²: h = ReLU(0·θ+1), k = ReLU(0·θ); logits (h, k) = (1, 0). One region, class 0 everywhere."""
    layers = (layer([[0, 0], [0, 0]], [1, 0]), layer([[1, 0], [0, 1]], [0, 0]))
    return Tiny("constant function", layers, vector([0, 0]), vector([1, 1]), {(1, 0): Fraction(1)}, vector([1, 0]))


def tied() -> Tiny:
    """θ ∈ [0,2]: logits (ReLU(1−θ), 0, −1). Class 0 leads on [0,1), classes 0 and 1 are tied on [1,2]: nobody's."""
    layers = (layer([[-1]], [1]), layer([[1], [0], [0]], [0, 0, -1]))
    areas: dict[Pattern, Fraction] = {(1,): Fraction(1), (0,): Fraction(1)}
    return Tiny("tied", layers, vector([0]), vector([2]), areas, vector([1, 0, 0]))


def two_pixels_brighter() -> TinyImage:
    """x0 = (0, 1/2), brightness θ ∈ [0,1]: x = (θ, min(1, 1/2+θ)); h = ReLU(x1+x2−1); logits (h, 1/4).

    h's form is 2θ−1/2 up to 1/2, then θ: kinks at 1/4 (h) and 1/2 (pixel 2 saturates), three regions. h > 1/4 for
    θ > 3/8. The map of class 0 is (0,0) where h is inactive, also at x0, and (1,1) elsewhere: squared distance 0 on a
    length of 1/4, then 2; the L1 distance of both classes together is 0, then 2.
    """
    chain = (layer([[1, 1]], [-1]), layer([[1], [0]], [0, QUARTER]))
    return TinyImage(
        name="two pixels brighter",
        offset=(Fraction(0), HALF),
        slope=(vector([1, 1]),),
        chain=chain,
        low=vector([0]),
        high=vector([1]),
        regions=3,
        strict=(Fraction(5, 8), Fraction(3, 8)),
        label=1,
        watched=0,
        steps=((Fraction(0), QUARTER), (Fraction(2), 3 * QUARTER)),
        l1=((Fraction(0), QUARTER), (Fraction(2), 3 * QUARTER)),
    )


def brighter_and_patched() -> TinyImage:
    """x0 = (0, 0), brightness b, patch p on the first pixel, (b,p) ∈ [0,1]²: x = (min(1, b+p), b); logits (h, k, 1/2).

    h = ReLU(x1−x2), k = ReLU(x2−1/2). Pixel 1 saturates on b+p = 1. Below it x1−x2 = p, above it 1−b: both positive
    inside, so h is active. k splits at b = 1/2. Four regions: b+p = 1 crosses b = 1/2 in the middle of the square.
    h > 1/2 exactly where p > 1/2 and b < 1/2 (area 1/4); k stays below 1/2, so class 2 has the other 3/4. At x0 neuron
    h is not active (its form is 0 there), so the map of class 0 is (0,0) at x0 and (1,−1) everywhere: squared distance
    2. The L1 distances: class 0 always 2, class 1 another 1 where b > 1/2.
    """
    chain = (layer([[1, -1], [0, 1]], [0, -HALF]), layer([[1, 0], [0, 1], [0, 0]], [0, 0, HALF]))
    return TinyImage(
        name="brighter and patched",
        offset=vector([0, 0]),
        slope=(vector([1, 1]), vector([1, 0])),
        chain=chain,
        low=vector([0, 0]),
        high=vector([1, 1]),
        regions=4,
        strict=(QUARTER, Fraction(0), 3 * QUARTER),
        label=2,
        watched=0,
        steps=((Fraction(2), Fraction(1)),),
        l1=((Fraction(2), HALF), (Fraction(3), HALF)),
    )


def patch_on_white() -> TinyImage:
    """x0 = (1, 1), a patch over both pixels, θ ∈ [0,1]: nothing changes; h = ReLU(x1+x2−1) = 1; logits (h, 0).

    One region. Every pixel sits on its upper kink at θ = 0. The map of class 0 is (1,1) throughout.
    """
    chain = (layer([[1, 1]], [-1]), layer([[1], [0]], [0, 0]))
    return TinyImage(
        name="patch on white",
        offset=vector([1, 1]),
        slope=(vector([1, 1]),),
        chain=chain,
        low=vector([0]),
        high=vector([1]),
        regions=1,
        strict=vector([1, 0]),
        label=0,
        watched=0,
        steps=((Fraction(0), Fraction(1)),),
        l1=((Fraction(0), Fraction(1)),),
    )


NETWORKS = (
    wrong_side(),
    stays_active(),
    coincident_grid(),
    one_line_many_times(),
    dead_layer(),
    through_one_point(),
    through_corners(),
    bent_line(),
    tents(),
    constant_function(),
    tied(),
)
IMAGES = (two_pixels_brighter(), brighter_and_patched(), patch_on_white())


def _floats(rational: Layer) -> tuple[np.ndarray, np.ndarray]:
    matrix, bias = rational
    return np.array(matrix, dtype=np.float64), np.array(bias, dtype=np.float64)
