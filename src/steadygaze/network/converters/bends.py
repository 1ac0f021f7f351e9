"""Converters of elementwise functions with kinks, expressed as ReLUs of affine functions and sums of those.

Only continuous functions are converted; one that jumps is refused.
"""

import numpy as np

from ..joins import Sum
from ..operators import Array, Operator, Relu, ScaleShift, ShapeError
from .call import Call, ConversionError, Draft, is_exact_sum
from .maxima import at_least, at_most

UNBOUNDED = float(np.finfo(np.float32).max)
"""The default bounds of Clip before opset 11: no float32 number exceeds them."""


LARGEST_BOUND = 2.0**40
"""The largest bound of Clip: x − bound in float64 must not lose x."""


def relu(call: Call) -> list[Operator]:
    """max(x, 0)."""
    return [Relu()]


def bend(draft: Draft, number: int, left: Array | float) -> int:
    """left·x where x ≤ 0 and x where x > 0: (1 − left)·relu(x) + left·x."""
    rounded = 0 if is_exact_sum(1.0, -np.asarray(left)) else 1
    bent = draft.follow(number, [Relu(), ScaleShift(gain=np.subtract(1.0, left), read_roundings=rounded)])
    if not np.any(left):
        return bent
    return draft.add(Sum((1, 1)), bent, draft.add(ScaleShift(gain=left), number))


def leaky_relu(call: Call, draft: Draft) -> list[int]:
    """x, or alpha·x where x is negative."""
    alpha = float(call.attribute("alpha", 0.01))
    if alpha == 0.0:
        return [draft.add(Relu(), call.variables[0])]
    return [bend(draft, call.variables[0], alpha)]


def prelu(call: Call, draft: Draft) -> list[int]:
    """x, or slope·x where x is negative."""
    call.require_variable_first()
    call.refuse_rounded()
    slope = call.floats(1, "slope")
    try:
        fits = np.broadcast_shapes(slope.shape, call.shape) == call.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"a slope of shape {list(slope.shape)} does not fit {list(call.shape)}")
    return [bend(draft, call.variables[0], slope)]


def absolute(call: Call, draft: Draft) -> list[int]:
    """|x| = 2·relu(x) − x."""
    number = call.variables[0]
    return [draft.add(Sum((1, -1)), draft.follow(number, [Relu(), ScaleShift(gain=2.0)]), number)]


def clip(call: Call) -> list[Operator]:
    """Clip to bounds given as attributes or as constant scalars; without a bound, values are unlimited on that side."""
    call.require_variable_first()
    call.refuse_rounded()
    return clip_to(_bound(call, "min", 1, -UNBOUNDED), _bound(call, "max", 2, UNBOUNDED))


def _bound(call: Call, name: str, position: int, default: float) -> float | None:
    bound = default
    if call.is_given(position):
        value = call.needed(position, name)
        if value.size != 1:
            raise ShapeError(f"its {name} has shape {list(value.shape)}; expected one number")
        bound = float(np.ravel(value)[0])
    elif call.opset < 11:
        bound = float(call.attribute(name, default))
    if np.isnan(bound):
        raise ConversionError(f"its {name} is NaN")
    if bound <= default if default < 0 else bound >= default:
        return None
    if abs(bound) > LARGEST_BOUND:
        raise ConversionError(
            f"its {name} is {bound:.3g}, too large to compute with; leave it out, or give one up to {LARGEST_BOUND:.2g}"
        )
    return bound


def clip_to(low: float | None, high: float | None) -> list[Operator]:
    """min(max(x, low), high), so a lower bound above the upper one gives the upper one everywhere.

    Two ReLUs one after the other: y = relu(x − low), then high − relu((high − low) − y).
    """
    if high is None:
        return [] if low is None else at_least(low)
    if low is None:
        return at_most(high)
    if low >= high:
        return [ScaleShift(gain=0.0, offset=high)]
    rounded = 0 if is_exact_sum(high, -low) else 1
    first: list[Operator] = [ScaleShift(offset=-low), Relu()] if low else [Relu()]
    width = ScaleShift(gain=-1.0, offset=high - low, read_roundings=rounded)
    return [*first, width, Relu(), ScaleShift(gain=-1.0, offset=high)]


def hard_sigmoid(call: Call) -> list[Operator]:
    """alpha·x + beta, clipped to [0, 1]."""
    alpha, beta = float(call.attribute("alpha", 0.2)), float(call.attribute("beta", 0.5))
    return [ScaleShift(gain=alpha, offset=beta), *clip_to(0.0, 1.0)]


def thresholded_relu(call: Call) -> list[Operator]:
    """x where x exceeds alpha, else 0: a ReLU if alpha is 0."""
    alpha = float(call.attribute("alpha", 1.0))
    if alpha != 0.0:
        raise ConversionError(
            f"jumps from 0 to {alpha:g} where its input is {alpha:g}, so it is not continuous; only alpha=0 is "
            "supported. Replace it by Relu or Clip and train again"
        )
    return [Relu()]


def shrink(call: Call, draft: Draft) -> list[int]:
    """x moved towards 0 by lambd, 0 between −lambd and lambd: relu(x − lambd) − relu(−x − lambd)."""
    bias, width = float(call.attribute("bias", 0.0)), float(call.attribute("lambd", 0.5))
    if bias != width or width < 0.0:
        raise ConversionError(
            f"has bias {bias:g} and lambd {width:g}, so it is not continuous; only a bias equal to lambd is supported"
        )
    number = call.variables[0]
    above = draft.follow(number, [ScaleShift(offset=-width), Relu()])
    below = draft.follow(number, [ScaleShift(gain=-1.0, offset=-width), Relu()])
    return [draft.add(Sum((1, -1)), above, below)]
