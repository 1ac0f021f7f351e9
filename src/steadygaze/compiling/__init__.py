"""Compiles the loops of this package, stores their machine code on disk, and calls it.

`compiled` functions allocate no memory and only use views of their arguments. They skip numba's reference counting,
which would cost more than the arithmetic: an atomic increment and decrement for every array passed to a function.
`compiled_inline` functions become part of their callers, which saves passing dozens of arrays. `compiled_fused` also
lets the compiler fuse a product and a sum (one rounding instead of two), and `compiled_reordered` lets it add in any
order, which vectorized sums need. `compiled_apart` functions are fused, too, and promise that no two of their arrays
share memory: values need not be read again after each write, and vectorized loops need no test for overlaps.

numba compiles a function when it is first called with arguments of new types, and stores the machine code on disk.
Later processes load that code alone: importing numba takes far longer than a small map.
"""

from .kernel import Decorator

compiled = Decorator()
compiled_inline = Decorator(forceinline=True)
compiled_fused = Decorator(fastmath={"contract"})
compiled_apart = Decorator(fastmath={"contract"}, apart=True)
compiled_reordered = Decorator(fastmath={"contract", "reassoc"})
