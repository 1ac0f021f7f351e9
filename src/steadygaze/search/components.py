"""From the parts of the regions along a boundary to the components of the outermost boundary.

Parts are joined through facets, the kept ones and the rest each among themselves. What is joined to zero is reachable;
a component of everything else that touches the border of the domain and the reachable part is one of the outermost
boundary (in a box the frontier between two connected sets is connected), the others are enclaves.
"""

from collections.abc import Callable, Iterator

import numpy as np

from ..tolerances import TOUCH
from ..traversal import Traversal, TraversedRegion
from .outcome import BoundaryPart
from .parts import Parts, has_inside, on_facet

Node = tuple[bytes, int]
KeyBeyond = Callable[[TraversedRegion, int], bytes | None]


class Groups:
    """Disjoint sets of nodes, joined one pair after another."""

    def __init__(self) -> None:
        self.parent: dict[Node, Node] = {}

    def find(self, node: Node) -> Node:
        """The node that stands for the set of a node."""
        root = node
        while (above := self.parent.get(root, root)) != root:
            root = above
        while node != root:
            self.parent[node], node = root, self.parent.get(node, node)
        return root

    def join(self, one: Node, other: Node) -> None:
        """Join the sets of two nodes."""
        a, b = self.find(one), self.find(other)
        if a != b:
            self.parent[max(a, b)] = min(a, b)


def outermost_parts(
    traversal: Traversal, parts: dict[bytes, Parts], key_beyond: KeyBeyond, zero: np.ndarray
) -> list[BoundaryPart]:
    """The components of the outermost boundary, in the order of their keys."""
    pairs = list(_touching(traversal, parts, key_beyond))
    kept = Groups()
    for one, other in pairs:
        if one[1] == 0 and other[1] == 0:
            kept.join(one, other)
    start = {kept.find((key, 0)) for key, own in parts.items() if _holds_at(own, zero)}
    reachable = {(key, 0) for key, own in parts.items() if own.kept is not None and kept.find((key, 0)) in start}
    rest = Groups()
    for one, other in pairs:
        if one not in reachable and other not in reachable:
            rest.join(one, other)
    outside = {rest.find(node) for node in _on_border(traversal, parts) if node not in reachable}
    sides: dict[Node, tuple[set[bytes], set[bytes]]] = {}
    for one, other in pairs:
        inner, outer = (one, other) if one in reachable else (other, one)
        if inner in reachable and outer not in reachable and rest.find(outer) in outside:
            keys = sides.setdefault(rest.find(outer), (set(), set()))
            keys[0].add(inner[0])
            keys[1].add(outer[0])
    return [BoundaryPart(frozenset(inner), frozenset(outer)) for _, (inner, outer) in sorted(sides.items())]


def _touching(traversal: Traversal, parts: dict[bytes, Parts], key_beyond: KeyBeyond) -> Iterator[tuple[Node, Node]]:
    """All pairs of parts that touch: inside one region, and across every facet between two regions."""
    for key, own in parts.items():
        yield from _inside(traversal, key, own)
        for facet in range(len(own.region.halfspaces)):
            beyond = key_beyond(own.region, facet)
            if beyond is None or beyond <= key or beyond not in parts:
                continue
            other = parts[beyond]
            for i, mine in enumerate(own.rows):
                if not on_facet(traversal, own.region, facet, mine):
                    continue
                for j, theirs in enumerate(other.rows):
                    if mine is not None and theirs is not None:
                        both = np.concatenate([mine, theirs])
                        if on_facet(traversal, own.region, facet, both):
                            yield (key, i), (beyond, j)


def _inside(traversal: Traversal, key: bytes, own: Parts) -> Iterator[tuple[Node, Node]]:
    for i, mine in enumerate(own.lost, start=1):
        if own.kept is not None:
            yield (key, 0), (key, i)
        for j, theirs in enumerate(own.lost[i:], start=i + 1):
            if has_inside(traversal, own.region, np.concatenate([mine, theirs])):
                yield (key, i), (key, j)


def _holds_at(own: Parts, zero: np.ndarray) -> bool:
    """Whether zero (d,) belongs to the closure of the kept part of a region."""
    if own.kept is None or not own.region.contains(zero, within=TOUCH):
        return False
    return bool((own.kept[:, :-1] @ zero + own.kept[:, -1] >= -TOUCH).all())


def _on_border(traversal: Traversal, parts: dict[bytes, Parts]) -> Iterator[Node]:
    """All parts that touch the border of the domain."""
    for key, own in parts.items():
        for facet in range(len(own.region.halfspaces)):
            if traversal.is_border(own.region, facet):
                for i, rows in enumerate(own.rows):
                    if on_facet(traversal, own.region, facet, rows):
                        yield key, i
