"""The paper's searches, which visit regions one by one, and the boundary followed alone."""

from .paper_searches import search
from .search_result import SearchResult, Visited

__all__ = ["SearchResult", "Visited", "search"]
