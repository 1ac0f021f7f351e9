"""How numba compiles the loops of this package.

`compiled` functions allocate no memory and only use views of their arguments. They are compiled without numba's
reference counting, which otherwise costs more than the arithmetic: an atomic increment and decrement for every array
passed to a function. `compiled_inline` functions become part of their callers, which saves passing dozens of arrays.
`compiled_fused` also lets the compiler fuse a product and a sum (one rounding instead of two),
and
`compiled_reordered` lets it add in any order, which it needs for adding several numbers at once.
"""

from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}

compiled = njit(**_OPTIONS)
compiled_fused = njit(fastmath={"contract"}, **_OPTIONS)
compiled_inline = njit(forceinline=True, **_OPTIONS)
compiled_reordered = njit(fastmath={"contract", "reassoc"}, **_OPTIONS)
