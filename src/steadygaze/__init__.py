"""steadygaze: proved maps of where a classifier keeps its label and its attention. These names are the public ones."""

from importlib.metadata import version

from .api import compare, draw, export, load, search, verify
from .budget import Budget, Limits
from .compare.comparison import Comparison
from .errors import (
    ImageError,
    InternalError,
    ModelError,
    OptionError,
    PerturbationError,
    SteadygazeError,
    StoreError,
)
from .labels import Property, Status, Verdict
from .network.model import Model, read_model
from .perturbation import Brightness, Darkness, Patch, Perturbation, Translate, parse_spec
from .results.result import Point, Result

__all__ = [
    "Brightness",
    "Budget",
    "Comparison",
    "Darkness",
    "ImageError",
    "InternalError",
    "Limits",
    "Model",
    "ModelError",
    "OptionError",
    "Patch",
    "Perturbation",
    "PerturbationError",
    "Point",
    "Property",
    "Result",
    "Status",
    "SteadygazeError",
    "StoreError",
    "Translate",
    "Verdict",
    "compare",
    "draw",
    "export",
    "load",
    "parse_spec",
    "read_model",
    "search",
    "verify",
]

__version__ = version("steadygaze")
