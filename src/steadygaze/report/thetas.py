"""Which thetas a figure shows: given ones are checked, others are chosen along a path or a parameter. Draws nothing."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError
from ..perturbation import Domain

MOST_SHOWN = 24
"""Thetas that one figure may show with their images."""


def checked_thetas(domain: Domain, given: Sequence[ArrayLike]) -> list[np.ndarray]:
    """Thetas (d,) of the domain; OptionError for any other.

    >>> unit = Domain(("brightness",), np.zeros(1), np.ones(1))
    >>> checked_thetas(unit, [0.5, [1]])
    [array([0.5]), array([1.])]
    """
    if len(given) > MOST_SHOWN:
        raise OptionError(f"{len(given)} thetas are given; a figure shows up to {MOST_SHOWN}: leave some out")
    return [_checked(domain, theta) for theta in given]


def _checked(domain: Domain, given: Any) -> np.ndarray:
    try:
        theta = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        raise OptionError(f"theta {given!r} is not numbers; give one for each of {', '.join(domain.names)}") from None
    words = ",".join(f"{value:g}" for value in theta.ravel()[:8])
    if theta.shape != domain.low.shape:
        raise OptionError(
            f"theta {words} has {theta.size} numbers for {domain.dimension} parameters ({', '.join(domain.names)}); "
            "give one for each, joined by commas"
        )
    if not domain.contains(theta):
        ends = ", ".join(
            f"{name} {low:g}..{high:g}" for name, low, high in zip(domain.names, domain.low, domain.high, strict=True)
        )
        raise OptionError(f"theta {words} is outside of the domain ({ends}); give one inside")
    return theta


def nearest_to_zero(domain: Domain) -> np.ndarray:
    """The theta (d,) of the domain that is nearest to zero, along each axis."""
    return np.clip(np.zeros(domain.dimension), domain.low, domain.high)


def farthest_corner(domain: Domain) -> np.ndarray:
    """The corner (d,) of the domain that is farthest from zero."""
    return np.where(np.abs(domain.low) > np.abs(domain.high), domain.low, domain.high)


def path_thetas(domain: Domain, through: Sequence[np.ndarray], steps: int) -> np.ndarray:
    """Thetas (N, d) on the path from zero through given thetas (to the farthest corner if there are none).

    The given ones are among them; the others divide the legs between them evenly. N is `steps`, or more where more are
    given. A domain without zero is entered where it is nearest to zero.

    >>> unit = Domain(("a", "b"), np.zeros(2), np.ones(2))
    >>> path_thetas(unit, [np.array([1.0, 0.0]), np.array([1.0, 0.5])], 4).tolist()
    [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [1.0, 0.5]]
    """
    stops = [nearest_to_zero(domain), *(through or [farthest_corner(domain)])]
    if len(stops) > 1 and np.array_equal(stops[0], stops[1]):
        stops = stops[1:]
    lengths = np.array([float(np.linalg.norm((b - a) / domain.widths)) for a, b in pairwise(stops)])
    parts = np.ones(len(lengths), dtype=np.int64)
    for _ in range(steps - len(stops)):
        if not len(parts):
            break
        parts[np.argmax(lengths / parts)] += 1
    found = [stops[0]]
    for (start, end), count in zip(pairwise(stops), parts, strict=True):
        found += [start + (end - start) * (step / count) for step in range(1, count)] + [end]
    return np.array(found)


def axis_of(domain: Domain, along: str | int | None) -> int:
    """The parameter that is meant by a number (from 1 on) or the beginning of a name; the first one unless given.

    >>> unit = Domain(("brightness", "translation right [px]"), np.zeros(2), np.ones(2))
    >>> axis_of(unit, None), axis_of(unit, "trans"), axis_of(unit, "2")
    (0, 1, 1)
    """
    if along is None:
        return 0
    words = str(along).strip().lower()
    if words.isdecimal() and 1 <= int(words) <= domain.dimension:
        return int(words) - 1
    found = [axis for axis, name in enumerate(domain.names) if words and name.lower().startswith(words)]
    if len(found) != 1:
        names = ", ".join(f"{place} ({name})" for place, name in enumerate(domain.names, start=1))
        what = "fits several parameters" if found else "is not a parameter of this result"
        raise OptionError(f"along {along!r} {what}; expected one of {names}, as number or beginning of the name")
    return found[0]


def thetas_along(domain: Domain, axis: int, held: np.ndarray, steps: int) -> np.ndarray:
    """Thetas (steps, d) from the low to the high end of a parameter, the others as in `held` (d,).

    Zero is among them where it is inside of the range.

    >>> unit = Domain(("a", "b"), np.array([-1.0, 0.0]), np.ones(2))
    >>> thetas_along(unit, 0, np.array([0.0, 0.5]), 4).round(2).tolist()
    [[-1.0, 0.5], [0.0, 0.5], [0.33, 0.5], [1.0, 0.5]]
    """
    low, high = float(domain.low[axis]), float(domain.high[axis])
    # Rounded, so that captions need not say ≈ for 0.1 in steps of 0.2 from −0.5 on.
    values = np.clip(np.round(np.linspace(low, high, steps), 12), low, high)
    if low < 0.0 < high and steps > 2:
        values[1 + np.argmin(np.abs(values[1:-1]))] = 0.0
    thetas = np.tile(held, (steps, 1))
    thetas[:, axis] = values
    return thetas
