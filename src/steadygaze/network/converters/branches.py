"""Converters of operators that join values, or split one: sums and means of several tensors, Concat, Split.

All inputs of a `Sum` get the same shape, and no operator reads the same value twice.
"""

from collections import Counter
from math import prod

import numpy as np

from ..joins import Concat, Sum, broadcast_shape, do_not_fit
from ..operators import Operator, ScaleShift, Select
from .call import Call, Draft, check_entries, entries_of, normal_axis
from .moves import choose, split


def add(call: Call, draft: Draft) -> list[int]:
    """The sum of two values."""
    return [add_up(draft, [(number, 1) for number in call.variables])]


def subtract(call: Call, draft: Draft) -> list[int]:
    """The difference of two values."""
    left, right = call.variables
    return [add_up(draft, [(left, 1), (right, -1)])]


def add_up(draft: Draft, terms: list[tuple[int, int]]) -> int:
    """The sum of values, each with its sign, with broadcasting."""
    factors: Counter[int] = Counter()
    for number, sign in terms:
        factors[number] += sign
    target = broadcast_shape(*(draft.shape_of(number) for number in factors))
    if len(factors) == 1:
        ((number, factor),) = factors.items()
        return draft.follow(number, _times(factor))
    signs = tuple(-1 if factor < 0 else 1 for factor in factors.values())
    values = []
    for number, factor in factors.items():
        shape = draft.shape_of(number)
        repeats = [] if shape == target else _repeat(shape, target)
        values.append(draft.follow(number, [*repeats, *_times(abs(factor))]))
    return draft.add(Sum(signs), *values)


def _times(factor: int) -> list[Operator]:
    return [] if factor == 1 else [ScaleShift(gain=float(factor))]


def _repeat(shape: tuple[int, ...], target: tuple[int, ...]) -> list[Operator]:
    check_entries(prod(target))
    return choose(np.broadcast_to(entries_of(shape), target))


def total(call: Call, draft: Draft) -> list[int]:
    """Sum of any number of tensors, some of which may be constants."""
    constants = [np.asarray(value, dtype=np.float64) for value in call.constants if value is not None]
    broadcast_shape(*(draft.shape_of(number) for number in call.variables), *(value.shape for value in constants))
    result = add_up(draft, [(number, 1) for number in call.variables])
    return [draft.follow(result, [ScaleShift(offset=value) for value in constants])]


def mean(call: Call, draft: Draft) -> list[int]:
    """Mean of any number of tensors."""
    count = len(call.constants)
    (result,) = total(call, draft)
    return [result if count == 1 else draft.add(ScaleShift(divisor=float(count)), result)]


def concat(call: Call, draft: Draft) -> list[int]:
    """Values one after the other along an axis; a `Select` inserts constants and repeated values."""
    axis = normal_axis(call.attribute("axis", 1), len(call.shape))
    numbers = list(dict.fromkeys(call.variables))
    joined = draft.add(Concat(axis), *numbers) if len(numbers) > 1 else numbers[0]
    if len(numbers) == len(call.numbers):
        return [joined]
    # Number all entries of the joined value, and cut these numbers where its parts were joined.
    sizes = [draft.shape_of(number)[axis] for number in numbers]
    cuts = np.split(entries_of(draft.shape_of(joined)), np.cumsum(sizes)[:-1], axis=axis)
    pieces = dict(zip(numbers, cuts, strict=True))
    return [draft.add(_with_constants(call, pieces, axis), joined)]


def _with_constants(call: Call, pieces: dict[int, np.ndarray], axis: int) -> Select:
    """The parts of a Concat in their order: entries of the joined value by number, and constants between them."""
    parts, fills = [], []
    for place, number in enumerate(call.numbers):
        constant = np.zeros(()) if number is not None else call.floats(place, "parts")
        part = np.full(constant.shape, -1) if number is None else pieces[number]
        parts.append(part)
        fills.append(np.broadcast_to(constant, part.shape))
    check_entries(sum(part.size for part in parts))
    try:
        index = np.concatenate(parts, axis=axis)
    except ValueError:
        raise do_not_fit(part.shape for part in parts) from None
    has_constants = len(call.variables) < len(call.numbers)
    return Select(index.ravel(), index.shape, np.concatenate(fills, axis=axis).ravel() if has_constants else 0.0)


def split_value(call: Call, draft: Draft) -> list[int]:
    """The parts of a value along an axis, one for each output."""
    return [draft.follow(call.variables[0], operators) for operators in split(call)]
