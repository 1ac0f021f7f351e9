"""Exact arithmetic for what float64 cannot decide: the label on a small polytope of the perturbation domain.

Turns a compound network and a polytope into an `Outcome` that is proved in rationals. Importing this package does not
import python-flint; the first use of `ExactLabels` does.
"""

from typing import TYPE_CHECKING, Any

from steadygaze.errors import OptionError

from .settle import Bounds, Outcome, Settlement, Shares

if TYPE_CHECKING:
    from .settle import ExactLabels

__all__ = ["Bounds", "ExactLabels", "Outcome", "Settlement", "Shares"]


def __getattr__(name: str) -> Any:
    if name != "ExactLabels":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .settle import ExactLabels  # noqa: PLC0415 (python-flint takes time to import and may be missing)
    except ModuleNotFoundError as error:
        if error.name != "flint":
            raise
        raise OptionError("exact arithmetic needs python-flint: pip install python-flint") from None
    return ExactLabels
