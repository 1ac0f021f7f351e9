"""Joins the chunks of a map: one table of cuts, and the pieces of all chunks renumbered to it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...polytopes import Polytopes, join_polytopes
from ...properties.classification import Pieces

COLUMNS = ("region", "winner", "margin", "slack", "most_strip", "witnesses")


class JoinedCuts:
    """The cuts of several chunks, given each chunk's table (E, 3) and ids (E,); rows (N, 3): every cut once."""

    def __init__(self, tables: Sequence[np.ndarray], ids: Sequence[np.ndarray]) -> None:
        self.ids, first = np.unique(np.concatenate(ids), return_index=True)
        self.rows = np.concatenate(tables)[first]
        self.numbers = [np.searchsorted(self.ids, own) + 1 for own in ids]

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, chunk: int, polytopes: Polytopes, more: np.ndarray | None = None) -> Polytopes:
        """The shapes of a chunk, renumbered to the joined table; `more`: numbers of cuts beyond the chunk's own."""
        numbers = self.numbers[chunk] if more is None else np.append(self.numbers[chunk], more)
        return replace(polytopes, facets=np.sign(polytopes.facets) * numbers[np.abs(polytopes.facets) - 1])


def join_pieces(cuts: JoinedCuts, parts: Sequence[Pieces], regions: Sequence[int]) -> Pieces:
    """The pieces of all chunks; regions: the number of regions of each. Cuts between pieces follow all other cuts."""
    first = np.cumsum([0, *regions])
    tables, shapes, size = [cuts.rows], [], len(cuts)
    for chunk, part in enumerate(parts):
        own = part.cuts[len(cuts.numbers[chunk]) :]
        shapes.append(cuts.place(chunk, part.polytopes, size + 1 + np.arange(len(own))))
        tables.append(own)
        size += len(own)
    columns = {name: [getattr(part, name) for part in parts] for name in COLUMNS}
    columns["region"] = [own + start for own, start in zip(columns["region"], first, strict=False)]
    joined: dict[str, Any] = {name: np.concatenate(column) for name, column in columns.items()}
    return replace(parts[0], polytopes=join_polytopes(shapes), cuts=np.concatenate(tables), **joined)
