"""The paper's searches on the traversal, and the following of the boundary alone."""

from ..verdict import Status
from .outcome import SearchResult, Visited
from .run import search

__all__ = ["SearchResult", "Status", "Visited", "search"]
