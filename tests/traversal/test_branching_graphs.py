"""The traversal of graphs with branches and windows: every region, neighbour and tie agrees with exact rationals."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from steadygaze.compound import Compound
from steadygaze.engines.search.traversal import LostRegionError, Traversal
from steadygaze.network.graph import AffineMap, Chain, Graph, lower
from steadygaze.network.joins import Concat, Sum, Winner
from steadygaze.network.layers import ENTRY
from steadygaze.network.operators import MatMul, Relu, Reshape
from steadygaze.perturbation import compose, parse_spec
from support.networks.branching import Builder, random_graph
from support.networks.search_problems import GREY
from support.oracles.branching_regions import decisions_at, pattern_of
from support.oracles.exact_numbers import dense
from support.readers.checked_traversal import Checked
from support.readers.visited_regions import bits_of

SPECS = {
    1: (["brightness:-0.5..0.5"], ["translate:dx=1:-1..1"]),
    2: (["brightness:-0.5..0.5", "patch:x=0,y=0,w=1,h=2"], ["translate:dx=1", "patch:x=1,y=0,w=1,h=1:-0.5..0.5"]),
    3: (
        ["brightness:-0.5..0.5", "patch:x=0,y=0,w=1,h=2", "patch:x=1,y=1,w=1,h=1:-0.5..0.5"],
        ["translate:dx=1", "patch:x=0,y=0,w=1,h=1", "brightness"],
    ),
    4: ([f"patch:x={i % 2},y={i // 2},w=1,h=1:-0.5..0.5" for i in range(4)],),
}


def compound_of(graph: Graph, specs: list[str], image: np.ndarray) -> Compound:
    return Compound(graph, lower(graph), compose([parse_spec(spec) for spec in specs], image))


def random_compound(seed: int, dimension: int, **options: int) -> Compound:
    rng = np.random.default_rng([seed, dimension])
    specs = SPECS[dimension][int(rng.integers(len(SPECS[dimension])))]
    return compound_of(random_graph(seed, **options), specs, rng.choice(GREY, size=(1, 2, 2)))


@pytest.mark.parametrize(
    ("dimension", "seed"), [(d, seed) for d, count in {1: 30, 2: 30, 3: 12}.items() for seed in range(count)]
)
def test_random_graphs(dimension: int, seed: int) -> None:
    checked = Checked.of_branches(random_compound(seed, dimension))
    checked.check_everything()
    checked.check_vertices()


@pytest.mark.parametrize("seed", range(6))
def test_linear_programs_in_the_plane(seed: int) -> None:
    Checked.of_branches(random_compound(seed, 2), by_programs=True).check_everything()


@pytest.mark.parametrize("seed", [1, 2, 9])
def test_four_parameters(seed: int) -> None:
    Checked.of_branches(random_compound(seed, 4, width=2, blocks=2)).check_everything()


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_oracle_has_the_patterns_of_a_forward_pass(dimension: int) -> None:
    """At rational points inside regions: signs and winners by definition, without half-spaces."""
    seen = 0
    for seed in range(8):
        compound = random_compound(seed, dimension)
        exact = Checked.of_branches(compound).exact
        for region in exact.regions:
            t = region.polytope.middle
            low, high = ([Fraction(float(v)) for v in end] for end in (compound.domain.low, compound.domain.high))
            theta = np.array([[float(a + x * (b - a)) for a, b, x in zip(low, high, t, strict=True)]])
            cell = compound.cells[region.cell]
            moved = [Fraction(float(v)) for v in (compound.perturbed.x0 + cell.offset).ravel()]
            slopes = cell.slope.reshape(dimension, -1)
            for axis in range(dimension):
                at = low[axis] + t[axis] * (high[axis] - low[axis])
                moved = [v + at * Fraction(float(s)) for v, s in zip(moved, slopes[axis], strict=True)]
            image = np.array([min(max(v, Fraction(0)), Fraction(1)) for v in moved], dtype=object)
            close = compound.perturbed.images(theta).ravel()
            assert np.abs(close - image.astype(float)).max() < 1e-12
            image = image.reshape(compound.graph.input_shape)
            pattern = pattern_of(compound.graph, decisions_at(compound.graph, image))
            assert region.key[len(region.key) - len(pattern) :] == pattern
            seen += 1
    assert seen > 20


def entries_of(region, cell) -> np.ndarray:
    """The bits of all neurons of a region, numbered as the program does."""
    return np.concatenate(bits_of(region, cell))


def test_a_facet_names_the_entry_that_reaches_the_winner() -> None:
    """Beyond the facet another entry of the same window wins: the one that is named, or one that ties with it there."""
    named = 0
    for seed in range(20):
        compound = random_compound(seed, 2)
        checked = Checked.of_branches(compound)
        for exact in checked.exact.regions:
            region = checked.traversal.region_at(np.array([float(x) for x in exact.polytope.middle]))
            cell = compound.programs[region.cell]
            own = entries_of(region, cell)
            for facet, source in enumerate(region.sources):
                if source < 0 or cell.program.kind[source] != ENTRY:
                    continue
                assert not own[source]
                beyond = entries_of(checked.traversal.cross(region, facet), cell)
                window = slice(cell.program.window_first[source], cell.program.window_end[source])
                assert own[window].sum() == beyond[window].sum() == 1
                assert (own[window] != beyond[window]).any()
                named += 1
    assert named > 20


def flattened(builder: Builder) -> int:
    return builder.add(Reshape((1, int(np.prod(builder.input_shape)))), 0)


def window_network(
    weight: Sequence[Sequence[float]], bias: Sequence[float], index: Sequence[Sequence[int]], *, relu: bool
) -> Graph:
    """The largest entries of W x + b (or of its ReLUs) on pixels (1, 1, d), then logits (m_1, 1/8)."""
    matrix = np.array(weight, dtype=float)
    builder = Builder((1, 1, matrix.shape[1]))
    value = builder.add(MatMul(matrix.T.copy(), np.array(bias, dtype=float)), flattened(builder))
    value = builder.add(Relu(), value) if relu else value
    value = builder.add(Winner(np.array(index), (1, len(index))), value)
    last = np.zeros((len(index), 2))
    last[0, 0] = 1.0
    builder.add(MatMul(last, np.array([0.0, 0.125])), value)
    return builder.graph()


def free(graph: Graph) -> Checked:
    """A network of free pixels: theta is the image."""
    d = graph.input_shape[2]
    specs = [f"patch:x={i},y=0,w=1,h=1" for i in range(d)]
    return Checked.of_branches(compound_of(graph, specs, np.zeros(graph.input_shape)))


@pytest.mark.parametrize("relu", [False, True])
def test_equal_channels(relu: bool) -> None:
    """max(x, y) with both entries given twice has the two regions of max(x, y); the first of equal entries wins."""
    checked = free(window_network([[1, 0], [0, 1], [1, 0], [0, 1]], [0] * 4, [[0, 1, 2, 3]], relu=relu))
    assert len(checked.exact.regions) == 2
    checked.check_everything()
    checked.check_vertices()


def test_dead_entries() -> None:
    """Entries that are zero everywhere, or on a part: the first wins there, and nothing is split."""
    checked = free(window_network([[-1, -1], [-1, 0], [0, -1]], [0, 0, 0], [[0, 1, 2]], relu=True))
    assert len(checked.exact.regions) == 1
    checked.check_everything()
    checked = free(window_network([[1, 0], [-1, 0], [0, 0]], [-0.5, 0.25, 0], [[2, 1, 0]], relu=True))
    assert len(checked.exact.regions) == 3
    checked.check_everything()
    checked.check_vertices()


def test_losers_that_change_places_split_nothing() -> None:
    checked = free(window_network([[1, 0], [0, 1], [0, 0]], [0, 0, 2], [[0, 1, 2]], relu=False))
    assert len(checked.exact.regions) == 1
    checked.check_everything()


@pytest.mark.parametrize("d", [2, 3])
def test_all_entries_meet_in_a_point(d: int) -> None:
    """The largest of x_1, …, x_d, 1 − Σ x_i: all kinks run through one point, which lies in every closure."""
    rows = [*np.eye(d).tolist(), [-1.0] * d]
    checked = free(window_network(rows, [0.0] * d + [1.0], [list(range(d + 1))], relu=False))
    assert len(checked.exact.regions) == d + 1
    checked.check_everything()
    checked.check_vertices(most=40)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_entries_that_differ_by_rounding(order: tuple[int, ...]) -> None:
    """3p, p + q and q + p with q = 2p: equal for the real-valued network, not bit by bit. The first wins everywhere."""
    builder = Builder((1, 1, 2))
    slope = np.array([[0.1, 0.2], [0.7, 1.4]])
    value = builder.add(MatMul(slope, np.array([0.3, 0.6])), flattened(builder))
    value = builder.add(Relu(), value)
    value = builder.add(MatMul(np.array([[3.0, 1.0, 1.0], [0.0, 1.0, 1.0]]), np.zeros(3)), value)
    value = builder.add(Winner(np.array([order]), (1, 1)), value)
    builder.add(MatMul(np.array([[1.0, 0.0]]), np.array([0.0, 0.125])), value)
    checked = free(builder.graph())
    assert len(checked.exact.regions) == 1
    checked.check_everything()
    checked.check_vertices()


def pooled_background(shades: Sequence[float], size: int = 6) -> Compound:
    """A 3×3 mean, a ReLU and a 2×2 maximum on a constant image with a few pixels of other shades."""
    image = np.full((1, size, size), 0.25)
    image.ravel()[: len(shades)] = shades
    inner, half = size - 2, (size - 2) // 2
    weight = np.zeros((size * size, inner * inner))
    for y in range(inner):
        for x in range(inner):
            for dy in range(3):
                for dx in range(3):
                    weight[(y + dy) * size + x + dx, y * inner + x] = (1 + dx - dy) / 8
    builder = Builder(image.shape)
    value = builder.add(MatMul(weight, np.full(inner * inner, 0.125)), flattened(builder))
    value = builder.add(Relu(), value)
    index = [
        [(2 * y + dy) * inner + 2 * x + dx for dy in (0, 1) for dx in (0, 1)] for y in range(half) for x in range(half)
    ]
    value = builder.add(Winner(np.array(index), (1, len(index))), value)
    builder.add(MatMul(np.stack([np.arange(len(index)) - 1.0, np.ones(len(index))], axis=1), np.zeros(2)), value)
    return compound_of(builder.graph(), ["brightness:-0.5..1", f"patch:x=0,y=0,w={size},h=2:0..0.5"], image)


@pytest.mark.parametrize("shades", [(), (0.5,), (0.5, 0.0, 1.0), (0.0,) * 12])
def test_constant_background(shades: tuple[float, ...]) -> None:
    """Windows are tied on whole regions, at zero and above: nothing loops, nothing is split."""
    compound = pooled_background(shades)
    assert any(program.program.is_copy.any() for program in compound.programs)
    checked = Checked.of_branches(compound)
    checked.check_everything()
    checked.check_vertices()


def residual() -> Graph:
    """ReLU(A·ReLU(B x) + x), then its larger entry beside x: a carried branch and a window."""
    builder = Builder((1, 1, 2))
    flat = flattened(builder)
    inner = builder.add(Relu(), builder.add(MatMul(np.array([[1.0, -1.0], [-2.0, 1.0]]), np.array([0.25, 0.5])), flat))
    inner = builder.add(MatMul(np.array([[1.0, 0.5], [-1.0, 1.0]]), np.zeros(2)), inner)
    both = builder.add(Concat(1), builder.add(Sum((1, 1)), inner, flat), flat)
    value = builder.add(Winner(np.array([[0, 1], [1, 2], [3, 0]]), (1, 3)), both)
    builder.add(MatMul(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]), np.zeros(2)), value)
    return builder.graph()


def test_a_residual_block_and_windows() -> None:
    checked = free(residual())
    assert len(checked.exact.regions) > 4
    checked.check_everything()
    checked.check_vertices(most=40)


def test_a_lost_branch_is_caught() -> None:
    """Affine maps without the carried values: the regions are not those of the graph."""
    good = free(residual())
    graph = residual()
    compound = compound_of(graph, ["patch:x=0,y=0,w=1,h=1", "patch:x=1,y=0,w=1,h=1"], np.zeros(graph.input_shape))
    carried = np.flatnonzero(graph.layers[0].carried)
    matrix = dense(compound.chain.maps[1].matrix).copy()
    matrix[:, carried] = 0.0
    maps = (compound.chain.maps[0], AffineMap(matrix, compound.chain.maps[1].bias), *compound.chain.maps[2:])
    lost = replace(compound, chain=Chain(maps, layers=graph.layers))
    with pytest.raises(AssertionError):
        Checked(lost.programs, good.exact, Traversal.of(lost)).check_everything()


@pytest.mark.parametrize("fault", ["order", "noise", "kind"])
def test_a_wrong_winner_is_caught(fault: str) -> None:
    """Entries that win in another order, that count as equal, or that are taken for ReLUs."""
    good = free(residual())
    (cell,) = good.cells
    program = cell.program
    entries = np.flatnonzero(program.kind == ENTRY)
    if fault == "noise":
        program.noise[entries] = 0.25
    elif fault == "kind":
        program.kind[entries] = 0
    else:
        program.window_first[entries[:2]] += 1
    with pytest.raises((AssertionError, LostRegionError)):
        Checked(good.cells, good.exact, Traversal(good.cells, 2)).check_everything()
