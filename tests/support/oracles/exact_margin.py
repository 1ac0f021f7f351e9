"""The margin of a compound network at one theta, in fractions and from the definitions.

Pixels follow the formulas of the families, operators their matrices, one number at a time.
"""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor

import numpy as np

from steadygaze.compound import Compound
from steadygaze.network.joins import Concat, Sum, Winner
from steadygaze.network.operators import Mean, Operator, Relu, ScaleShift, Shape
from steadygaze.network.windows import AveragePool
from steadygaze.perturbation import Brightness, Darkness, Patch, Perturbation, Translate


def margin(compound: Compound, label: int, theta: np.ndarray) -> Fraction:
    """f_label − max of the others."""
    logits = exact_logits(compound, theta)
    return logits[label] - max(value for j, value in enumerate(logits) if j != label)


def exact_logits(compound: Compound, theta: Sequence[float | Fraction]) -> list[Fraction]:
    """The logits at one theta."""
    return exact_values(compound, theta)[-1]


def exact_values(compound: Compound, theta: Sequence[float | Fraction]) -> list[list[Fraction]]:
    """All values of the graph at one theta, each flattened: the clipped pixels first, the logits last."""
    values = [exact_pixels(compound, theta)]
    for node in compound.graph.nodes:
        shapes = [compound.graph.shape_of(value) for value in node.inputs]
        values.append(apply(node.operator, [values[value] for value in node.inputs], shapes))
    return values


def exact_pixels(compound: Compound, theta: Sequence[float | Fraction]) -> list[Fraction]:
    """The clipped pixels at one theta."""
    x0 = compound.perturbed.x0
    grey = np.rint(x0 * 255)
    is_grey = bool((grey / 255 == x0).all())
    image = {
        place: Fraction(int(grey[place]), 255) if is_grey else Fraction(float(x0[place]))
        for place in np.ndindex(x0.shape)
    }
    values = []
    for place in np.ndindex(x0.shape):
        changes = [
            _change(perturbation, image, place, Fraction(value))
            for perturbation, value in zip(compound.perturbed.perturbations, theta, strict=True)
        ]
        values.append(min(max(image[place] + sum(changes), Fraction(0)), Fraction(1)))
    return values


def _change(perturbation: Perturbation, image: dict, place: tuple[int, ...], theta: Fraction) -> Fraction:
    channel, row, column = place
    match perturbation:
        case Brightness():
            return theta
        case Darkness():
            return -theta
        case Patch(x=x, y=y, w=w, h=h, tone=tone):
            return tone * theta if x <= column < x + w and y <= row < y + h else Fraction(0)
        case Translate(dx=dx, dy=dy):
            step = 1 if dx + dy > 0 else -1

            def moved(by: int) -> Fraction:
                source = (channel, row, column - step * by) if dx else (channel, row - step * by, column)
                return image.get(source, Fraction(0))

            whole = floor(theta)
            share = theta - whole
            return (1 - share) * moved(whole) + share * moved(whole + 1) - image[place]
    raise AssertionError(perturbation)


def apply(operator: Operator, inputs: list[list[Fraction]], shapes: list[Shape]) -> list[Fraction]:
    """The result of an operator for flattened values of these shapes."""
    if isinstance(operator, Winner):
        return [max(inputs[0][entry] for entry in window if entry >= 0) for window in operator.index.tolist()]
    if isinstance(operator, Sum | Concat):
        parts = [as_array(values, shape) for values, shape in zip(inputs, shapes, strict=True)]
        if isinstance(operator, Concat):
            return list(np.concatenate(parts, axis=operator.axis).ravel())
        target = operator.output_shape(*shapes)
        total = sum(sign * np.broadcast_to(part, target) for sign, part in zip(operator.signs, parts, strict=True))
        return list(total.ravel())
    return _apply(operator, inputs[0], shapes[0])


def as_array(values: list[Fraction], shape: Shape) -> np.ndarray:
    """Rationals in a shape."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def _apply(operator: Operator, values: list[Fraction], shape: Shape) -> list[Fraction]:
    if isinstance(operator, Relu):
        return [max(value, Fraction(0)) for value in values]
    if isinstance(operator, ScaleShift) and operator.is_rounded:
        return _normalised(operator, values, shape)
    matrix, bias = operator.affine(shape)
    rows = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    # The floats of a mean are rounded; their exact values are one over a count.
    exact = (lambda w: Fraction(1, round(1 / w))) if isinstance(operator, Mean | AveragePool) else Fraction
    return [
        sum((exact(float(w)) * values[i] for i, w in enumerate(row) if w), Fraction(float(b)))
        for row, b in zip(rows, bias, strict=True)
    ]


def _normalised(operator: ScaleShift, values: list[Fraction], shape: Shape) -> list[Fraction]:
    """A ScaleShift by its definition; roots have 80 digits where they are not rational."""
    target = operator.output_shape(shape)

    def spread(numbers: object) -> list[Fraction]:
        return [Fraction(number) for number in np.broadcast_to(np.asarray(numbers, dtype=float), target).ravel()]

    roots = [Fraction(1)] * len(values)
    if operator.variance is not None:
        roots = [_root(variance + Fraction(operator.epsilon)) for variance in spread(operator.variance)]
    names = ("multiplier", "mean", "gain", "divisor", "offset")
    found = zip(values, roots, *(spread(getattr(operator, name)) for name in names), strict=True)
    return [
        (value * multiplier - mean) * gain / (divisor * root) + offset
        for value, root, multiplier, mean, gain, divisor, offset in found
    ]


def _root(number: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = 80
        return Fraction((Decimal(number.numerator) / Decimal(number.denominator)).sqrt())
