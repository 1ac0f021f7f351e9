"""Compiled access to the bits of 64-bit words, of which sets of facets consist."""

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def lowest_bit(context: Any, word: Any) -> Any:
    """The number of the lowest bit that is set in a word (uint64, not zero), as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # The flag says that nothing is asked about zero.
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.uint64), generate
