"""Compiled fingerprints of neurons: values that are equal by construction have equal fingerprints.

`fingerprints` defines them. They are sums of products modulo 2⁶¹ − 1, so changes of the pattern are added without
rounding.
"""

import numpy as np

from ..compiling import compiled
from ..fingerprints import AFTER_CLIP, AFTER_LAYER, PRIME

_PRIME, _LOW, _LOWER = np.uint64(PRIME), np.uint64((1 << 31) - 1), np.uint64((1 << 30) - 1)
_30, _31, _61, _ONE, _NOTHING = np.uint64(30), np.uint64(31), np.uint64(61), np.uint64(1), np.uint64(0)


@compiled
def times(a, b):
    """The product of two numbers below 2⁶¹ − 1, modulo 2⁶¹ − 1."""
    a_high, a_low, b_high, b_low = a >> _31, a & _LOW, b >> _31, b & _LOW
    middle = a_high * b_low + a_low * b_high
    # 2⁶¹ ≡ 1: the highest part counts twice, the middle one is rotated by 31 bits.
    total = ((a_high * b_high) << _ONE) + a_low * b_low + (middle >> _30) + ((middle & _LOWER) << _31)
    total = (total & _PRIME) + (total >> _61)
    return total - _PRIME if total >= _PRIME else total


@compiled
def _input(program, walk, stage, k):
    """The fingerprint of input k of a stage: an output of the layer before, or a result of the stage before."""
    gate, layer, first = stage[0], stage[1], stage[2]
    value = walk.prints[first + k]
    if gate == AFTER_CLIP:
        lines = program.offsets[1]
        if not walk.active[lines + k]:
            value = _ONE
        elif not walk.active[k]:
            value = _NOTHING
    elif gate == AFTER_LAYER and not walk.active[program.offsets[layer - 1] + k]:
        value = _NOTHING
    return value


@compiled
def update_prints(program, walk, layer):
    """Update the fingerprints of all layers up to `layer` to the pattern of the layers below them."""
    for s in range(program.print_stages.shape[0]):
        stage = program.print_stages[s]
        if stage[1] > layer:
            break
        size, result, fed, pointers = stage[3], stage[4], stage[5], stage[6]
        for k in range(size):
            value, before = _input(program, walk, stage, k), walk.fed_prints[fed + k]
            if value == before:
                continue
            walk.fed_prints[fed + k] = value
            change = value - before if value >= before else value + _PRIME - before
            for entry in range(program.print_columns[pointers + k], program.print_columns[pointers + k + 1]):
                row = result + program.print_rows[entry]
                total = walk.prints[row] + times(program.print_values[entry], change)
                walk.prints[row] = total - _PRIME if total >= _PRIME else total
