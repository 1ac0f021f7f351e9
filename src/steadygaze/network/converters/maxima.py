"""Converters of maxima and minima, over axes or of several values: a `Winner`, or a ReLU if one side is constant.

The first of the largest entries wins. A maximum with a constant c is c + relu(x − c), so the constant wins ties.
"""

from functools import reduce
from math import prod

import numpy as np

from ..joins import Concat, Winner, broadcast_shape
from ..operators import Array, Operator, Relu, Reshape, ScaleShift, Shape
from .affine import drop_axes, reduced_axes
from .call import Call, Draft, check_entries, entries_of

NEGATED = ScaleShift(gain=-1.0)


def maximum_over(shape: Shape, axes: tuple[int, ...]) -> Winner:
    """The maximum over some axes, which are kept with length 1; entries win ties in row-major order."""
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    places = prod(shape[axis] for axis in axes)
    index = entries_of(shape).transpose(*kept, *axes).reshape(-1, places)
    return Winner(index, tuple(1 if axis in axes else size for axis, size in enumerate(shape)))


def reduce_max(call: Call) -> list[Operator]:
    """Maximum over some axes."""
    axes = reduced_axes(call)
    return [] if axes is None else [maximum_over(call.shape, axes), *drop_axes(call, axes)]


def reduce_min(call: Call) -> list[Operator]:
    """Minimum over some axes: −max(−x)."""
    return [NEGATED, *reduce_max(call), NEGATED] if reduced_axes(call) is not None else []


def at_least(bound: Array | float) -> list[Operator]:
    """max(x, bound), elementwise with broadcasting."""
    if not np.any(bound) and np.ndim(bound) == 0:
        return [Relu()]
    return [ScaleShift(offset=-np.asarray(bound)), Relu(), ScaleShift(offset=bound)]


def at_most(bound: Array | float) -> list[Operator]:
    """min(x, bound) = bound − relu(bound − x), elementwise with broadcasting."""
    return [ScaleShift(gain=-1.0, offset=bound), Relu(), ScaleShift(gain=-1.0, offset=bound)]


def maximum(call: Call, draft: Draft) -> list[int]:
    """Max of any number of tensors."""
    return [_extreme(call, draft, is_minimum=False)]


def minimum(call: Call, draft: Draft) -> list[int]:
    """Min of any number of tensors."""
    return [_extreme(call, draft, is_minimum=True)]


def _extreme(call: Call, draft: Draft, *, is_minimum: bool) -> int:
    numbers = list(dict.fromkeys(call.variables))
    constants = [np.asarray(value, dtype=np.float64) for value in call.constants if value is not None]
    shapes = [draft.shape_of(number) for number in numbers]
    broadcast_shape(*shapes, *(constant.shape for constant in constants))
    result = numbers[0]
    if len(numbers) > 1:
        if is_minimum:
            numbers = [draft.add(NEGATED, number) for number in numbers]
        result = draft.follow(_largest(numbers, draft), [NEGATED] if is_minimum else [])
    if constants:
        bound = reduce(np.minimum if is_minimum else np.maximum, constants)
        result = draft.follow(result, at_most(bound) if is_minimum else at_least(bound))
    return result


def _largest(numbers: list[int], draft: Draft) -> int:
    """The largest of different values, which win ties in this order."""
    shapes = [draft.shape_of(number) for number in numbers]
    target = broadcast_shape(*shapes)
    check_entries(prod(target) * len(numbers))
    flat = [draft.add(Reshape((prod(shape),)), number) for number, shape in zip(numbers, shapes, strict=True)]
    starts = np.cumsum([0, *map(prod, shapes)])
    columns = [
        np.broadcast_to(start + entries_of(shape), target).ravel() for start, shape in zip(starts, shapes, strict=False)
    ]
    return draft.add(Winner(np.stack(columns, axis=1), target), draft.add(Concat(0), *flat))
