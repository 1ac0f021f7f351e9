"""How numba compiles the loops of this package.

`compiled` functions allocate no memory and only use views of their arguments. They skip numba's reference counting,
which would cost more than the arithmetic: an atomic increment and decrement for every array passed to a function.
`compiled_inline` functions become part of their callers, which saves passing dozens of arrays. `compiled_fused` also
lets the compiler fuse a product and a sum (one rounding instead of two), and `compiled_reordered` lets it add in any
order, which vectorized sums need.

numba caches compiled code on disk but only checks the file of the function itself, not the files whose functions and
constants were compiled into it. So this module discards the whole cache when any of these files changes.
"""

import hashlib
from pathlib import Path
from typing import Any

from numba import njit

SOURCES = (
    "compiling.py",
    "tolerances.py",
    "accuracy.py",
    "compound.py",
    "polytopes/adjacency.py",
    "**/*kernels.py",
    "regions/*forms.py",
    "regions/patterns.py",
    "attention/rows.py",
    "attention/filters/*.py",
    "network/windows.py",
    "compare/overlay.py",
)
"""Files whose functions or constants are compiled into others."""


def discard_stale_code(package: Path) -> bool:
    """Delete the compiled code of a package folder if its sources have changed; return whether it did."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in package.glob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    marker = package / "__pycache__" / "compiled.sha256"
    try:
        if marker.exists() and marker.read_text(encoding="ascii") == digest.hexdigest():
            return False
        for pattern in ("*.nbi", "*.nbc"):
            for stale in package.rglob(pattern):
                stale.unlink(missing_ok=True)
        marker.parent.mkdir(exist_ok=True)
        marker.write_text(digest.hexdigest(), encoding="ascii")
    except OSError:
        # A read-only folder holds no compiled code; numba then caches it elsewhere, by time stamp.
        return False
    return True


discard_stale_code(Path(__file__).parent)

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}

compiled = njit(**_OPTIONS)
compiled_inline = njit(forceinline=True, **_OPTIONS)
compiled_fused = njit(fastmath={"contract"}, **_OPTIONS)
compiled_reordered = njit(fastmath={"contract", "reassoc"}, **_OPTIONS)
