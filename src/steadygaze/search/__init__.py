"""The paper's searches on the traversal, and the following of the boundary alone."""

from .outcome import SearchResult, Status, Visited
from .run import search

__all__ = ["SearchResult", "Status", "Visited", "search"]
