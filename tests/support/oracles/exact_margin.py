"""The margin of a compound network at one theta, in fractions and from the definitions.

Pixels follow the formulas of the families, operators their matrices, one number at a time.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor

import numpy as np

from steadygaze.compound import Compound
from steadygaze.network.operators import Mean, Operator, Relu, Scale, Shape
from steadygaze.network.windows import AveragePool
from steadygaze.perturbation import Brightness, Darkness, Patch, Perturbation, Translate


def margin(compound: Compound, label: int, theta: np.ndarray) -> Fraction:
    """f_label − max of the others."""
    logits = exact_logits(compound, theta)
    return logits[label] - max(value for j, value in enumerate(logits) if j != label)


def exact_logits(compound: Compound, theta: np.ndarray) -> list[Fraction]:
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
            _change(perturbation, image, place, Fraction(float(value)))
            for perturbation, value in zip(compound.perturbed.perturbations, theta, strict=True)
        ]
        values.append(min(max(image[place] + sum(changes), Fraction(0)), Fraction(1)))
    for number, node in enumerate(compound.graph.nodes):
        values = _apply(node.operator, values, compound.graph.shape_of(number))
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


def _apply(operator: Operator, values: list[Fraction], shape: Shape) -> list[Fraction]:
    if isinstance(operator, Relu):
        return [max(value, Fraction(0)) for value in values]
    if isinstance(operator, Scale) and operator.is_rounded:
        return _normalised(operator, values, shape)
    matrix, bias = operator.affine(shape)
    rows = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    # The floats of a mean are rounded; their exact values are one over a count.
    exact = (lambda w: Fraction(1, round(1 / w))) if isinstance(operator, Mean | AveragePool) else Fraction
    return [
        sum((exact(float(w)) * values[i] for i, w in enumerate(row) if w), Fraction(float(b)))
        for row, b in zip(rows, bias, strict=True)
    ]


def _normalised(operator: Scale, values: list[Fraction], shape: Shape) -> list[Fraction]:
    """A Scale by its definition; roots have 80 digits where they are not rational."""
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
