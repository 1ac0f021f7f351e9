"""Checks bounds at thetas in exact rationals, without any tolerance.

The margin, the inputs of all ReLUs, the gradients and the inconsistency at a theta come from the definitions (the
graph's constants over the real numbers, the families of perturbations, an active neuron is one above zero). Thetas
are taken where bounds are tight or signs change: corners, middles, zeros of single neurons, points where several
neurons and pixels are at their kinks, and points a hair's breadth beside those.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from math import isqrt

import numpy as np

from steadygaze.bounds.bounder import Bounder
from steadygaze.bounds.forms import pixels
from steadygaze.bounds.passes import decide_layers, gradients
from steadygaze.perturbation import Perturbed
from support.networks.bound_cases import Case, corners
from support.oracles.attention_by_definition import transported
from support.oracles.exact_attention import exact_image, unclipped_image
from support.oracles.exact_graph import ExactNetwork, Whole, pattern
from support.oracles.exact_numbers import as_fractions, to_decimal

Theta = tuple[Fraction, ...]
HAIR = Fraction(1, 10**40)


@dataclass(frozen=True, eq=False)
class Found:
    """Claims about the boxes of a case: ends of the margin and of the inconsistency, and their intermediate bounds."""

    margin: np.ndarray
    inconsistency: np.ndarray
    low: tuple[np.ndarray, ...] = ()
    high: tuple[np.ndarray, ...] = ()
    gradients: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(cls, bounder: Bounder, case: Case) -> "Found":
        """All bounds of one call."""
        enclosures = bounder.bound(case.cell, case.low, case.high)
        passed = bounder.pass_forward(case.cell, case.low, case.high)
        found = gradients(bounder.segments, passed, bounder.aims)
        image = pixels(case.perturbed, case.cell, case.low, case.high)
        layers = list(decide_layers(bounder.segments, bounder.layers, image, room=bounder.room))
        low, high = (tuple(getattr(layer, name) for layer in layers) for name in ("low", "high"))
        return cls(enclosures.margin, enclosures.inconsistency, low, high, found.ends)


def violations(case: Case, *, bounder: Bounder | None = None, points: int = 6, seed: int = 0) -> list[str]:
    """The false claims of a bounder about the boxes of a case: one line for each kind of claim."""
    return broken_claims(case, Found.of(bounder or case.bounder(), case), points=points, seed=seed)


def broken_claims(case: Case, found: Found, *, points: int = 6, seed: int = 0) -> list[str]:
    """The false ones of given claims."""
    rng = np.random.default_rng([5, seed])
    broken: list[str] = []
    for box in range(len(case.low)):
        thetas = list(box_thetas(case, box, rng, points))
        broken += [f"{case.name}, box {box}: {what}" for what in broken_at(case, found, box, thetas)]
    return broken


def broken_at(case: Case, found: Found, box: int, thetas: Sequence[Theta]) -> Iterator[str]:
    """The claims that do not hold at thetas of a box."""
    images = [exact_image(case.perturbed, theta) for theta in thetas]
    trace = case.network.trace(Whole.of(np.stack([image.ravel() for image in images], axis=1)))
    layers = [layer.rationals() for layer in trace]
    original = expected_at_zero(case)
    maps: dict[bytes, np.ndarray] = {}
    for number, theta in enumerate(thetas):
        logits = layers[-1][:, number]
        margin = min(logits[case.label] - other for j, other in enumerate(logits) if j != case.label)
        yield from outside("margin", np.array([margin]), *found.margin[box, :, None], theta)
        for depth, (low, high) in enumerate(zip(found.low, found.high, strict=True)):
            yield from outside(f"neuron of layer {depth}", layers[depth][:, number], low[box], high[box], theta)
        bits = pattern(trace, number)
        slopes = case.network.gradients(bits)
        if found.gradients is not None:
            chosen = slopes if case.question.classes is None else slopes[list(case.question.classes)]
            yield from outside("gradient", chosen, found.gradients[0][box], found.gradients[1][box], theta)
        key = np.concatenate([*bits, np.zeros(1, dtype=bool)]).tobytes()
        if key not in maps:
            maps[key] = case.question.of(slopes.reshape(-1, *case.perturbed.x0.shape))
        difference = maps[key] - transported(original, case.perturbed, theta)
        yield from _inconsistent(difference, case.question.dist, found.inconsistency[box], theta)


def expected_at_zero(case: Case) -> np.ndarray:
    """The filtered maps of the unperturbed image, rationals (K', C, H, W)."""
    x0 = case.perturbed.x0
    trace = case.network.trace(Whole.of(as_fractions(x0).reshape(-1, 1)))
    return case.question.of(case.network.gradients(pattern(trace, 0)).reshape(-1, *x0.shape))


def outside(what: str, values: np.ndarray, low: np.ndarray, high: np.ndarray, theta: Theta) -> Iterator[str]:
    """Rationals that are not between two floats, which are of the same shape."""
    for value, least, most in zip(values.ravel().tolist(), low.ravel().tolist(), high.ravel().tolist(), strict=True):
        # Rounding to the nearest float keeps the order, so this decides nearly all of them, and is quick.
        if least < nearest(value) < most:
            continue
        # Python compares rationals and floats exactly; no interval with a NaN contains anything.
        if not least <= value <= most:
            yield f"{what} {written(value)} outside of [{least!r}, {most!r}] at {[*map(written, theta)]}"


def nearest(value: Fraction) -> float:
    """The float nearest to a rational."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _inconsistent(difference: np.ndarray, dist: str, ends: np.ndarray, theta: Theta) -> Iterator[str]:
    rows = difference.reshape(len(difference), -1)
    if dist == "l1":
        total = sum(map(abs, rows.ravel().tolist()), Fraction(0))
        yield from outside("inconsistency", np.array([total]), *ends[:, None], theta)
        return
    squares = [sum((number * number for number in row), Fraction(0)) for row in rows.tolist()]
    if compare_roots(squares, ends[0]) < 0 or compare_roots(squares, ends[1]) > 0:
        value = written(roots(squares, 64)[0])
        yield f"inconsistency {value} outside of {ends.tolist()} at {[*map(written, theta)]}"


def compare_roots(squares: Sequence[Fraction], limit: float) -> int:
    """−1, 0 or 1 as Σ √s is below, at, or above a limit; NaN counts as beyond both ends.

    >>> compare_roots([Fraction(9, 4), Fraction(1)], 2.5), compare_roots([Fraction(2)], 2.0**0.5)
    (0, -1)
    """
    if np.isinf(limit):
        return -1 if limit > 0 else 1
    if np.isnan(limit):
        return 1
    exact = Fraction(float(limit))
    for bits in (64, 512, 4000):
        lower, upper = roots(squares, bits)
        if lower == upper or upper < exact or lower > exact:
            return (lower > exact) - (upper < exact)
    raise ArithmeticError(f"the sum of the roots of {squares} cannot be told from {limit}")


def roots(squares: Sequence[Fraction], bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of Σ √s, equal where all roots are rational."""
    lower = upper = Fraction(0)
    for square in squares:
        scaled = square.numerator * square.denominator << (2 * bits)
        root = isqrt(scaled)
        lower += Fraction(root, square.denominator << bits)
        upper += Fraction(root + (root * root != scaled), square.denominator << bits)
    return lower, upper


def written(number: Fraction) -> str:
    """A rational with 17 digits, also where it is too large for a float."""
    with localcontext() as context:
        context.prec = 17
        return str(to_decimal(number))


# Thetas


def box_thetas(case: Case, box: int, rng: np.random.Generator, points: int) -> Iterator[Theta]:
    """Thetas of a box: corners, middle, random ones, and those where something bends."""
    low, high = exact_corners(case.perturbed, case.low[box], case.high[box])
    ends = corners(low, high)
    yield from ends if len(ends) <= points else [ends[i] for i in rng.permutation(len(ends))[:points]]
    yield tuple((a + b) / 2 for a, b in zip(low, high, strict=True))
    for _ in range(points // 2):
        shares = [Fraction(int(k), 8) for k in rng.integers(0, 9, len(low))]
        if rng.random() < 0.5:
            shares = [Fraction(float(share)) for share in rng.random(len(low))]
        start = tuple(a + s * (b - a) for a, b, s in zip(low, high, shares, strict=True))
        yield start
        yield from bends(case.network, case.perturbed, start, (low, high), rng)


def exact_corners(perturbed: Perturbed, low: np.ndarray, high: np.ndarray) -> tuple[Theta, Theta]:
    """The corners of a box, from t to theta; rounding may let them reach beyond the knot cell, where all must hold."""
    first, last = ([Fraction(float(end)) for end in ends] for ends in (perturbed.domain.low, perturbed.domain.high))
    lowest, highest = (
        tuple(a + Fraction(float(t)) * (b - a) for a, b, t in zip(first, last, corner, strict=True))
        for corner in (low, high)
    )
    return lowest, highest


def bends(
    network: ExactNetwork, perturbed: Perturbed, start: Theta, box: tuple[Theta, Theta], rng: np.random.Generator
) -> Iterator[Theta]:
    """Where as many neurons and pixels as there are parameters are at their kinks, for the pattern at a theta."""
    d = len(start)
    forms = kink_forms(network, perturbed, start, box)
    forms = [form for form in forms if any(form[:d])]
    for count in {1, d}:
        if len(forms) < count:
            continue
        chosen = [forms[i] for i in rng.permutation(len(forms))[:count]]
        rows = [list(form) for form in chosen]
        # The other parameters stay where they are.
        for axis in rng.permutation(d)[: d - count]:
            rows.append([*(Fraction(int(k == axis)) for k in range(d)), -start[axis]])
        point = solve(rows)
        if point is None or not all(a <= x <= b for a, x, b in zip(box[0], point, box[1], strict=True)):
            continue
        yield point
        aside = tuple(x + int(rng.integers(-1, 2)) * HAIR for x in point)
        if all(a <= x <= b for a, x, b in zip(box[0], aside, box[1], strict=True)):
            yield aside


def kink_forms(network: ExactNetwork, perturbed: Perturbed, theta: Theta, box: tuple[Theta, Theta]) -> list[Theta]:
    """Forms in theta (slopes, then the constant) that vanish at the kinks: pixels at 0 and at 1, then neurons."""
    d = len(theta)
    columns = [unclipped_image(perturbed, theta).ravel()]
    for axis in range(d):
        # A step that stays in the knot cell, where the unclipped image is affine.
        room = box[1][axis] - theta[axis] or box[0][axis] - theta[axis]
        if not room:
            columns.append(columns[0] * Fraction(0))
            continue
        moved = unclipped_image(perturbed, tuple(x + room * int(k == axis) for k, x in enumerate(theta))).ravel()
        columns.append((moved - columns[0]) / room)
    values = np.stack([*columns[1:], columns[0]], axis=1)
    values[:, d] = values[:, d] - sum(values[:, axis] * theta[axis] for axis in range(d))
    found = [*map(tuple, values)]
    shifted = values.copy()
    shifted[:, d] = shifted[:, d] - 1
    found += map(tuple, shifted)
    inside = np.array([[0 < pixel < 1] for pixel in columns[0]])
    clipped = np.where(inside, values, Fraction(0))
    clipped[:, d] = clipped[:, d] + np.where(columns[0] >= 1, Fraction(1), Fraction(0))
    current = Whole.of(clipped)
    at = [*theta, Fraction(1)]
    for weight, bias in network.segments[:-1]:
        constant = np.full((len(bias.numbers), d + 1), 0, dtype=object)
        constant[:, d:] = bias.numbers
        current = weight @ current + Whole(constant, bias.denominator)
        forms = current.rationals()
        found += map(tuple, forms)
        current = current.times((forms @ np.array(at, dtype=object) > 0)[:, None])
    return found


def solve(rows: list[list[Fraction]]) -> Theta | None:
    """The point where forms vanish, by elimination; None where they are dependent."""
    d = len(rows[0]) - 1
    if len(rows) != d:
        return None
    rows = [list(row) for row in rows]
    for column in range(d):
        pivot = next((i for i in range(column, d) if rows[i][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [number / rows[column][column] for number in rows[column]]
        for i in range(d):
            if i != column and rows[i][column]:
                rows[i] = [a - rows[i][column] * b for a, b in zip(rows[i], rows[column], strict=True)]
    return tuple(-row[d] for row in rows)
