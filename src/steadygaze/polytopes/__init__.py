"""Convex shapes with the cut behind every facet: polygons and polyhedra behind one protocol.

`protocol` holds the common interface and shared code, `polygons` and `polyhedra` the code that depends on the
dimension. `polygon_kernels`, `polyhedron_kernels` (for one shape) and `polyhedra_kernels` (for many) hold the compiled
loops.
"""

import numpy as np

from .adjacency import Adjacency
from .halved_boxes import halve_boxes
from .polygons import Polygons
from .polyhedra import Polyhedra
from .protocol import Cut, Polytopes

__all__ = [
    "Adjacency",
    "Cut",
    "Polygons",
    "Polyhedra",
    "Polytopes",
    "box_polytopes",
    "halve_boxes",
    "join_polytopes",
    "kind_of",
]


def kind_of(coordinates: int) -> type[Polytopes]:
    """The class of shapes with 2 or 3 coordinates; a single parameter also has two."""
    return Polyhedra if coordinates > Polygons.dimension else Polygons


def box_polytopes(low: np.ndarray, high: np.ndarray, sides: np.ndarray) -> Polytopes:
    """Boxes from low (B, D) to high (B, D), with the signed cuts (B, D, 2) at the low and high end of every axis."""
    return kind_of(low.shape[1]).boxes(low, high, sides)


def join_polytopes(parts: list[Polytopes]) -> Polytopes:
    """Join parts (at least one) of one kind in order; empties the list."""
    return type(parts[0]).join(parts)
