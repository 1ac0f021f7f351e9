"""Compiled access to the bits of 64-bit words, of which sets of facets consist."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def lowest_bit(context: Any, word: Any) -> Any:
    """The number of the lowest bit that is set in a word (uint64, not zero), as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate
