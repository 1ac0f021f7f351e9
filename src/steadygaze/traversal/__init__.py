"""Regions one by one: the region at a theta, and the region beyond a facet, in any dimension."""

from .region import TraversedRegion
from .traverse import Traversal

__all__ = ["Traversal", "TraversedRegion"]
