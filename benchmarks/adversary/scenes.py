"""Tiny images with perturbations, and a theta at which a bump can be placed exactly."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from .oracle import Change, Oracle, Question


@dataclass(frozen=True, eq=False)
class Scene:
    """An image with perturbations, a theta, and pixels whose values distinguish it from all thetas around it.

    determinant: volume of pixels per volume of thetas; borders: the number of sides of the domain that contain theta;
    equal: two other pixels that are equal everywhere; still: pixels that never change.
    """

    image: np.ndarray
    changes: tuple[Change, ...]
    theta: tuple[Fraction, ...]
    pixels: tuple[int, ...]
    centres: tuple[float, ...]
    determinant: float
    volume: float
    borders: int
    equal: tuple[int, int]
    still: tuple[int, ...]

    def question(self, layers: tuple[tuple[np.ndarray, np.ndarray], ...], dist: str = "l2") -> Question:
        return Question(layers, self.image, self.changes, dist)


def make_scene(random: np.random.Generator, dimension: int, place: str, *, has_still: bool = False) -> Scene | None:
    """An image of 4 rows, the last two equal, with `dimension` perturbations; None if no pixels fit.

    has_still: use only patches, so most pixels never change.
    """
    image = _image(random)
    changes = _patches(random, dimension, 0) if has_still else _changes(random, dimension, needs_knot=place == "knot")
    theta = _theta(random, changes, place)
    oracle = Oracle(Question(_constant(image.size), image, changes))
    inward = [_inward(random, change, value) for change, value in zip(changes, theta, strict=True)]
    here = oracle.image_at(theta)
    rates = []
    for axis, step in enumerate(inward):
        there = oracle.image_at([value + (step if k == axis else 0) for k, value in enumerate(theta)])
        rates.append([(b - a) / step for a, b in zip(here, there, strict=True)])
    best = _best_pixels(rates, dimension)
    if best is None:
        return None
    pixels, determinant = best
    volume = float(np.prod([change.high - change.low for change in changes]))
    borders = sum(value in (change.low, change.high) for change, value in zip(changes, theta, strict=True))
    equal, still = _bystanders(oracle, changes, random, image, set(pixels))
    if equal is None:
        return None
    centres = tuple(float(here[pixel]) for pixel in pixels)
    return Scene(image, changes, tuple(theta), pixels, centres, determinant, volume, borders, equal, still)


def _constant(pixels: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    return ((np.zeros((2, pixels), dtype=np.float32), np.array([1, 0], dtype=np.float32)),)


def _image(random: np.random.Generator) -> np.ndarray:
    """One channel, four rows: coordinates in the first two, a ramp among them for translations, equal rows below."""
    width = int(random.integers(3, 5))
    rows = random.random((3, width))  # 53 bits: products with float32 weights round in float64
    rows[0] = np.arange(width) / 8.0 + 1 / 16  # a ramp: rises by 1/8 from column to column
    rows[1] = random.choice([0.0, 0.125, 0.25], width)
    return np.stack([rows[0], rows[1], rows[2], rows[2]])[None]


def _changes(random: np.random.Generator, dimension: int, *, needs_knot: bool) -> tuple[Change, ...]:
    """Perturbations with distinguishable parameters: at most one of light, one movement, and patches."""
    chosen: list[Change] = []
    if needs_knot:
        chosen.append(Change("translate", 0.0, 2.0, dx=int(random.choice([2, -2]))))
    elif random.random() < 0.2:
        chosen.append(Change("translate", 0.0, float(random.choice([1.0, 1.5])), dx=int(random.choice([2, -2]))))
    if len(chosen) < dimension and random.random() < 0.35:
        low, high = (-0.25, 0.5) if random.random() < 0.5 else (0.0, 1.0)
        kind = str(random.choice(["brightness", "darkness"]))
        chosen.append(Change(kind, low, high))
    chosen += _patches(random, dimension, len(chosen))
    return tuple(chosen[i] for i in random.permutation(dimension))


def _patches(random: np.random.Generator, dimension: int, before: int) -> tuple[Change, ...]:
    """Single pixels of the second row, one after the other, until there are `dimension` perturbations."""
    return tuple(
        Change("patch", 0.0, float(random.choice([0.5, 0.75, 1.0])), x=column, y=1)
        for column in range(dimension - before)
    )


def _theta(random: np.random.Generator, changes: tuple[Change, ...], place: str) -> list[Fraction]:
    """A theta with few bits; never zero, where the label is defined."""
    bits = int(random.choice([4, 8, 11]))
    found = []
    on_edge = int(random.integers(len(changes)))
    for axis, change in enumerate(changes):
        low, high = Fraction(change.low), Fraction(change.high)
        if place == "knot" and change.kind == "translate":
            found.append(Fraction(1))
        elif place == "corner" or (place == "edge" and axis == on_edge):
            found.append(high if low == 0 or random.random() < 0.5 else low)
        else:
            share = Fraction(int(random.integers(1, 2**bits)), 2**bits)
            found.append(low + (high - low) * share)
    return found


def _inward(random: np.random.Generator, change: Change, value: Fraction) -> Fraction:
    """A small step from a theta along an axis, inside the domain."""
    step = Fraction(1, 2**16)
    return -step if value + step > Fraction(change.high) else step


def _best_pixels(rates: list[list[Fraction]], dimension: int) -> tuple[tuple[int, ...], float] | None:
    """Pixels that react most independently to the parameters, and the determinant of their rates."""
    moving = [i for i in range(len(rates[0])) if any(rate[i] for rate in rates)]
    best: tuple[tuple[int, ...], float] | None = None
    for pixels in combinations(moving, dimension):
        matrix = np.array([[float(rate[i]) for rate in rates] for i in pixels])
        size = abs(float(np.linalg.det(matrix)))
        if size > 0.05 and (best is None or size > best[1]):
            best = pixels, size
    return best


def _bystanders(
    oracle: Oracle, changes: tuple[Change, ...], random: np.random.Generator, image: np.ndarray, taken: set[int]
) -> tuple[tuple[int, int] | None, tuple[int, ...]]:
    """Two pixels of the equal rows, one above the other, and the pixels that nothing changes."""
    width = image.shape[2]
    columns = [c for c in range(width) if 2 * width + c not in taken and 3 * width + c not in taken]
    equal = None
    if columns:
        column = int(random.choice(columns))
        equal = (2 * width + column, 3 * width + column)
    ends = [
        oracle.image_at([Fraction(change.high if k & 1 << axis else change.low) for axis, change in enumerate(changes)])
        for k in range(2 ** len(changes))
    ]
    has_still = all(change.kind == "patch" for change in changes)
    still = [i for i in range(image.size) if i not in taken and image.ravel()[i] > 0] if has_still else []
    return equal, tuple(i for i in still if all(end[i] == ends[0][i] for end in ends))
