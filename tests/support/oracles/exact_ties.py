"""Ties of windows on intervals of one parameter, by brute force: which intervals have maps that depend on the rule.

Entries tie on an interval if they are the largest at both of its ends. All ways to break all ties are tried. Gradients
are those of `network.graph` in float64, which rounds nothing for small dyadic weights.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np

from steadygaze.compound import Compound
from steadygaze.network.graph import gradients
from steadygaze.network.joins import Winner
from support.oracles.exact_intervals import Piece, pieces, theta_of
from support.oracles.exact_margin import exact_values


def depends(compound: Compound, piece: Piece, targets: np.ndarray) -> bool:
    """Whether some way to break ties gives other maps than the first one."""
    packed = np.frombuffer(piece.pattern, dtype=np.uint8)
    bits, start = [], 0
    for size in compound.graph.hidden:  # the bits of a layer start with a byte of their own
        end = start + -(-size // 8)
        bits.append(np.unpackbits(packed[start:end], count=size).astype(bool))
        start = end
    tied = list(_tied(compound, piece))
    *_, first = gradients(compound.graph, bits, targets)
    for winners in product(*(entries for _, _, entries in tied if len(entries) > 1)):
        other = [layer.copy() for layer in bits]
        for (layer, window, _), winner in zip((t for t in tied if len(t[2]) > 1), winners, strict=True):
            other[layer][window] = False
            other[layer][winner] = True
        *_, maps = gradients(compound.graph, other, targets)
        if (maps != first).any():
            return True
    return False


def _tied(compound: Compound, piece: Piece) -> Iterator[tuple[int, slice, list[int]]]:
    """The layer and the neurons of every window, and those of its entries that tie."""
    ends = [exact_values(compound, theta_of(compound, t)) for t in (piece.low, piece.high)]
    for layer, frame in enumerate(compound.graph.frames):
        first = 0
        for number in frame.nodes:
            node = compound.graph.nodes[number - 1]
            if not isinstance(node.operator, Winner):
                first += int(np.prod(node.shape))
                continue
            for window in node.operator.index.tolist():
                pairs = [tuple(end[node.inputs[0]][entry] for end in ends) for entry in window if entry >= 0]
                # On the interval one entry is the largest everywhere.
                best = max(pairs, key=sum)
                yield layer, slice(first, first + len(pairs)), [first + i for i, p in enumerate(pairs) if p == best]
                first += len(pairs)


def regions_of(compound: Compound, found: list[Piece]) -> SimpleNamespace:
    """Intervals as the parts of a `RegionSet` that `properties.ties` reads."""
    centres = np.array([[float((piece.low + piece.high) / 2), 0.5] for piece in found])
    cells = np.array([compound.perturbed.cell_of(theta).index for theta in compound.to_theta(centres)])
    patterns = np.array([list(piece.pattern) for piece in found], dtype=np.uint8)
    clips = [_clip(compound, int(cell), centre) for cell, centre in zip(cells, centres, strict=True)]
    width = max(map(len, clips))
    shapes = SimpleNamespace(centres=centres, volumes=np.array([float(piece.width) for piece in found]))

    class Regions(SimpleNamespace):
        def __len__(self) -> int:
            return len(found)

    return Regions(
        polytopes=shapes, cell=cells, pattern=np.arange(len(found)), patterns=patterns, clip=np.arange(len(found)),
        clips=np.array([[*row, *[0] * (width - len(row))] for row in clips], dtype=np.uint8),
    )  # fmt: skip


def _clip(compound: Compound, cell: int, centre: np.ndarray) -> list[int]:
    forms = compound.programs[cell].root
    values = np.array([*centre, 1.0]) @ forms
    return [byte for bits in (values > 0.0, values < 1.0) for byte in np.packbits(bits)]


def true_share(compound: Compound, targets: np.ndarray) -> tuple[list[Piece], list[bool], Fraction]:
    """The intervals of the domain, which of them depend on the rule, and their share."""
    found = pieces(compound, Fraction(0), Fraction(1))
    flags = [depends(compound, piece, targets) for piece in found]
    return found, flags, sum((p.width for p, flag in zip(found, flags, strict=True) if flag), Fraction(0))
