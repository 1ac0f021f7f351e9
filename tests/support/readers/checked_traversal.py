"""A traversal beside the exact map of the same network: regions at points, neighbours through all facets."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadygaze.compound import CellProgram, Compound, plain_program
from steadygaze.engines.search.traversal import Traversal
from support.networks.layered_networks import FloatLayer
from support.oracles.branching_regions import branching_map
from support.oracles.exact_polytopes import Polytope, plain
from support.oracles.exact_regions import ExactMap, exact_compound_map, exact_layers, exact_map
from support.readers.visited_regions import assert_same, assert_same_facets, depth, exact_of

CLOSE = 1e-9


class Checked:
    """A traversal beside the exact map of the same network."""

    def __init__(self, cells: Sequence[CellProgram], exact: ExactMap, traversal: Traversal) -> None:
        self.cells, self.exact, self.traversal = cells, exact, traversal
        self.dimension = traversal.dimension

    @classmethod
    def of_layers(cls, layers: Sequence[FloatLayer], **options: bool) -> "Checked":
        dimension, cells = layers[0][0].shape[1], [plain_program(list(layers))]
        return cls(cells, exact_map(exact_layers(layers), dimension), Traversal(cells, dimension, **options))

    @classmethod
    def of_compound(cls, compound: Compound, denominator: int = 2**20) -> "Checked":
        return cls(compound.programs, exact_compound_map(compound, denominator=denominator), Traversal.of(compound))

    @classmethod
    def of_branches(cls, compound: Compound, **options: bool) -> "Checked":
        """A graph with branches or windows."""
        return cls(compound.programs, branching_map(compound), Traversal.of(compound, **options))

    def at(self, t: Sequence[float] | np.ndarray) -> tuple[Any, int]:
        """The region that is found at a point: one of the exact ones whose closure contains it."""
        point = np.array(t, dtype=float)
        region = self.traversal.region_at(point)
        number = exact_of(region, self.cells, self.exact)
        assert depth(self.exact.regions[number], point) >= -CLOSE
        assert_same_facets(region, self.exact.regions[number])
        return region, number

    def check_everything(self) -> None:
        """From one region through every facet to all: each region is right, and none is missing or invented."""
        start, number = self.at(np.full(self.dimension, 0.5))
        found, queue, keys = {number: start}, [start], {start.key}
        while queue:
            region = queue.pop()
            own = exact_of(region, self.cells, self.exact)
            truth = self.exact.regions[own]
            assert_same(region, truth)
            facets = assert_same_facets(region, truth)
            for facet, match in enumerate(facets):
                expected = self.exact.neighbours[own][match]
                beyond = self.traversal.cross(region, facet)
                if expected is None:
                    assert beyond is None
                    continue
                assert beyond is not None
                assert exact_of(beyond, self.cells, self.exact) == expected
                assert (beyond.key in keys) == (expected in found)
                if expected not in found:
                    found[expected] = beyond
                    keys.add(beyond.key)
                    queue.append(beyond)
        assert set(found) == set(range(len(self.exact.regions)))
        assert len(keys) == len(found)

    def check_vertices(self, most: int = 12) -> None:
        """At vertices, middles of edges and facets of regions, where several neurons vanish."""
        points = []
        for region in self.exact.regions:
            corners = np.array([[float(x) for x in plain(v)] for v in region.polytope.vertices])
            points += [*corners, corners.mean(axis=0), corners[:2].mean(axis=0)]
            points += [on_facet(region.polytope, facet) for facet in range(len(region.polytope.facets))]
        chosen = np.random.default_rng(0).permutation(len(points))[:most]
        for number in chosen:
            self.at(points[number])


def on_facet(polytope: Polytope, facet: int) -> np.ndarray:
    corners = [[float(x) for x in plain(vertex)] for vertex in polytope.on_facet(facet)]
    return np.array(corners).mean(axis=0)
