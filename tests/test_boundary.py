"""The outermost boundary, compared with flood fills of painted grids and rasters, and on networks solved by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from steadygaze.boundary import Boundary, find_boundary
from steadygaze.compound import Compound
from steadygaze.errors import OptionError
from steadygaze.labels import Kept, Property, Stop
from steadygaze.perturbation import Brightness, Patch
from steadygaze.properties.classification import Pieces
from steadygaze.properties.joint import JointPieces
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide
from steadygaze.results.result import Result
from support.networks.layered_models import ask
from support.networks.layered_networks import dyadic_layers, make_compound

Cell = tuple[int, ...]
YES, UNKNOWN, NO = Kept.YES, Kept.UNKNOWN, Kept.NO

# Painted grids: every cell of a grid of n^d boxes gets a label, whatever a network would say.


def grid_compound(cells: int, axes: int, *, has_zero_inside: bool) -> Compound:
    """One pixel for each axis and ReLUs at every multiple of 1/cells: the regions are the boxes of a grid."""
    steps = np.arange(1, cells) / cells
    weight, bias = np.repeat(np.eye(axes), len(steps), axis=0), -np.tile(steps, axes)
    start = 0.5 if has_zero_inside else 0.0
    patches = [Patch(x=axis, y=0, w=1, h=1, range=(-start, 1 - start)) for axis in range(axes)]
    return make_compound(
        [(weight, bias), (np.ones((1, len(bias))), np.zeros(1))], patches, np.full((1, 1, axes), start)
    )


def painted(regions: RegionSet, codes: np.ndarray) -> JointPieces:
    """Regions as pieces whose attention is given (R,); their label is kept everywhere."""
    nothing = np.zeros(len(regions))
    pieces = Pieces(
        regions.polytopes, np.arange(len(regions)), np.zeros(len(regions), dtype=int), regions.cuts, 0,
        np.ones((len(regions), 2)), nothing, nothing, np.zeros((0, 1)),
    )  # fmt: skip
    return JointPieces(pieces, codes, nothing, nothing)


def neighbours(cell: Cell, cells: int) -> list[Cell]:
    steps = [(axis, cell[axis] + step) for axis in range(len(cell)) for step in (-1, 1)]
    return [(*cell[:axis], to, *cell[axis + 1 :]) for axis, to in steps if 0 <= to < cells]


def flood(start: set[Cell], inside: set[Cell], cells: int) -> set[Cell]:
    """All cells of `inside` that can be reached from some of them through sides."""
    found, border = set(start), list(start)
    while border:
        for other in neighbours(border.pop(), cells):
            if other in inside and other not in found:
                found.add(other)
                border.append(other)
    return found


def parts_of(inside: set[Cell], cells: int) -> list[set[Cell]]:
    parts: list[set[Cell]] = []
    for cell in sorted(inside):
        if not any(cell in part for part in parts):
            parts.append(flood({cell}, inside, cells))
    return parts


def assert_as_flooded(
    found: Boundary, paint: dict[Cell, int], cell_of: list[Cell], zero: set[Cell], start: float
) -> None:
    """Everything that a boundary says, by definition: `zero` are the cells that contain it in their closures."""
    cells, axes = max(cell_of)[0] + 1, len(cell_of[0])
    kept = {cell for cell, code in paint.items() if code == YES}
    reached = flood(zero & kept, kept, cells)
    share = 1 / len(paint)
    assert {cell_of[piece] for piece in np.flatnonzero(found.reachable)} == reached
    assert found.starts == sum(bool(part & zero) for part in parts_of(kept, cells))
    assert found.satisfying_share == pytest.approx(share * len(kept))
    assert found.reachable_share == pytest.approx(share * len(reached))
    assert found.unreachable_share == pytest.approx(share * len(kept - reached))
    outside, enclaves = [], []
    for part in parts_of(set(paint) - reached, cells):
        is_outside = any(index in (0, cells - 1) for cell in part for index in cell)
        if reached:
            (outside if is_outside else enclaves).append(part)
    frontier = found.frontier
    sides = [(a, b) for a in reached for b in neighbours(a, cells) if b not in reached]
    assert found.enclosed_share == pytest.approx(share * sum(map(len, [reached, *enclaves])))
    for parts, claimed in ((outside, found.components), (enclaves, found.enclaves)):
        assert {frozenset(part) for part in parts} == {frozenset(cell_of[p] for p in c.pieces) for c in claimed}
        for component in claimed:
            part = {cell_of[piece] for piece in component.pieces}
            own = [(a, b) for a, b in sides if b in part]
            assert component.share == pytest.approx(share * len(part))
            assert component.measure == pytest.approx(len(own) / cells ** (axes - 1))
            assert {cell_of[region] for region in component.inner} == {a for a, _ in own}
            assert {cell_of[region] for region in component.outer} == {b for _, b in own}
            pairs = zip(frontier.first[component.facets], frontier.second[component.facets], strict=True)
            assert {(cell_of[a], cell_of[b]) for a, b in pairs} == set(own)
    for component in found.components:
        part = {cell_of[piece] for piece in component.pieces}
        assert component.touches_border == any(
            a[axis] == b[axis] and a[axis] in (0, cells - 1) for a, b in sides if b in part for axis in range(axes)
        )
    for enclave in found.enclaves:
        part = [cell_of[piece] for piece in enclave.pieces]
        away = [[max(i / cells - start, start - (i + 1) / cells, 0) for i in cell] for cell in part]
        nearest = min(np.linalg.norm(offset) for offset in away)
        assert enclave.distance == pytest.approx(nearest) == np.linalg.norm(enclave.theta)
        assert enclave.satisfying_share == pytest.approx(share * len(kept & set(part)))
    corners = [np.array(corner) / cells - start for cell in reached for corner in product(*((i, i + 1) for i in cell))]
    assert found.distance == (pytest.approx(max(map(np.linalg.norm, corners))) if reached else None)
    beside = zero | {b for _, b in sides}
    assert {cell_of[piece] for piece in found.undecided} == {cell for cell in beside if paint[cell] == UNKNOWN}
    total = found.enclosed_share + sum(component.share for component in found.components)
    assert total == pytest.approx(1.0 if reached else 0.0)


GRIDS = [(9, 1, True), (8, 1, False), (7, 2, True), (8, 2, True), (7, 2, False), (4, 3, True), (5, 3, False)]


@pytest.mark.parametrize("density", [0.55, 0.7, 0.85])
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_painted_grids_against_a_flood_fill(grid: tuple[int, int, bool], density: float) -> None:
    """Zero in a corner of the domain, inside of a cell, or where several cells meet."""
    cells, axes, is_inside = grid
    compound = grid_compound(cells, axes, has_zero_inside=is_inside)
    regions = subdivide(compound)
    start = 0.5 if is_inside else 0.0
    cell_of = [tuple(cell) for cell in (regions.polytopes.centres[:, :axes] * cells).astype(int).tolist()]
    assert sorted(cell_of) == list(product(range(cells), repeat=axes))
    zero = {cell for cell in cell_of if all(i <= cells * start <= i + 1 for i in cell)}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        codes = rng.choice([YES, NO, UNKNOWN], p=[density, 0.9 * (1 - density), 0.1 * (1 - density)], size=len(regions))
        found = find_boundary(compound, regions.stopped, painted(regions, codes), Property.AR)
        assert_as_flooded(found, dict(zip(cell_of, codes, strict=True)), cell_of, zero, start)


def test_painted_pictures_have_what_they_show() -> None:
    """Rings around an island in a ring: one enclave that holds all of them, one component at a corner."""
    picture = [".......#", ".#####..", ".#...#..", ".#.#.#..", ".#...#..", ".#####..", "........", "##......"]
    compound = grid_compound(8, 2, has_zero_inside=False)
    regions = subdivide(compound)
    columns, rows = (regions.polytopes.centres * 8).astype(int).T
    codes = np.array([NO if picture[row][column] == "#" else YES for column, row in zip(columns, rows, strict=True)])
    found = find_boundary(compound, regions.stopped, painted(regions, codes), Property.AR)
    (enclave,) = found.enclaves
    assert len(enclave.pieces) == 25 and enclave.satisfying_share == pytest.approx(8 / 64)
    assert enclave.measure == pytest.approx(20 / 8) and enclave.theta == pytest.approx([1 / 8, 1 / 8])
    assert sorted(component.measure for component in found.components) == pytest.approx([2 / 8, 3 / 8])
    assert found.unreachable_share == pytest.approx(8 / 64)
    assert find_boundary(compound, regions.stopped, painted(regions, codes), Property.CR).components == ()


# Networks on two pixels, or one: x0 = 0 and patches from 0 to 1, so that theta is the image.

PATCHES = ["patch:x=0,y=0,w=1,h=1", "patch:x=1,y=0,w=1,h=1"]


def ask_margin(
    weight: list, bias: list, out: list, constant: float, *, image: float = 0.0, **options: object
) -> Result:
    """Two classes whose difference is constant + out · ReLU(weight · pixels + bias)."""
    pixels = np.full((1, 1, len(weight[0])), image)
    specs = [f"{patch}:{-image}..{1 - image}" for patch in PATCHES[: len(weight[0])]]
    layers = [(weight, bias), ([out, [0.0] * len(out)], [constant, 0.0])]
    return ask(layers, pixels, specs, property="cr")


# |a − c| + |b − c| by four ReLUs.
DIAMOND = [[1, 0], [-1, 0], [0, 1], [0, -1]]


def test_an_island_around_zero() -> None:
    """Kept where |a| + |b| < 1/4: the boundary is a closed line that touches nothing."""
    found = ask_margin(DIAMOND, [-0.5, 0.5] * 2, [-1] * 4, 0.25, image=0.5).boundary()
    (component,) = found.components
    assert found.reachable_share == found.enclosed_share == found.satisfying_share == pytest.approx(1 / 8)
    assert component.measure == pytest.approx(np.sqrt(2)) and not component.touches_border
    assert found.distance == pytest.approx(0.25) and not found.enclaves and found.is_certain
    assert 0.0 < found.strip_share < 1e-6


def test_an_enclave_far_from_zero() -> None:
    """Lost where |a − 1/2| + |b − 1/2| < 1/4: everything else is reachable, and there is no outermost boundary."""
    found = ask_margin(DIAMOND, [-0.5, 0.5] * 2, [1] * 4, -0.25).boundary()
    (enclave,) = found.enclaves
    assert found.components == () and found.enclosed_share == 1.0
    assert found.reachable_share == pytest.approx(7 / 8) and enclave.share == pytest.approx(1 / 8)
    assert enclave.theta == pytest.approx([3 / 8, 3 / 8]) and enclave.satisfying_share == 0.0
    assert found.farthest == pytest.approx([1, 1])


def test_two_components_beside_a_strip() -> None:
    """Kept where |a − b| < 1/4: two triangles outside, each behind its own component."""
    found = ask_margin([[1, -1], [-1, 1]], [0, 0], [-1, -1], 0.25).boundary()
    first, second = found.components
    for component in (first, second):
        assert component.measure == pytest.approx(0.75 * np.sqrt(2)) and component.touches_border
        assert component.share == pytest.approx(9 / 32)
    assert not set(first.pieces) & set(second.pieces)
    assert found.reachable_share == pytest.approx(14 / 32)


def test_parts_that_meet_in_a_vertex_are_not_reached() -> None:
    """|a + b − 1| > |a − b|: two squares with a common vertex in the middle."""
    found = ask_margin([[1, 1], [-1, -1], [1, -1], [-1, 1]], [-1, 1, 0, 0], [1, 1, -1, -1], 0.0).boundary()
    assert found.reachable_share == found.unreachable_share == pytest.approx(0.25)
    assert found.farthest == pytest.approx([0.5, 0.5])
    # The two lost squares meet in that vertex too, which belongs to the closed reachable square.
    assert len(found.components) == 1 and found.components[0].share == pytest.approx(0.75)


def test_one_parameter() -> None:
    """Margin 1/8 − r + 2 ReLU(r − 3/16) with r = |a|: kept below r = 1/8 and above 1/4, reached below 1/8."""
    layers = [
        ([[1], [-1]], [-0.5, 0.5]),
        ([[1, 1], [1, 1]], [0.0, -0.1875]),
        ([[-1, 2], [0, 0]], [0.125, 0.0]),
    ]
    found = ask(layers, np.full((1, 1, 1), 0.5), ["brightness:-0.5..0.5"], property="cr").boundary()
    assert found.reachable_share == pytest.approx(0.25) and found.unreachable_share == pytest.approx(0.5)
    assert [component.measure for component in found.components] == [1.0, 1.0]
    assert not any(component.touches_border for component in found.components)
    assert found.enclaves == () and found.distance == pytest.approx(0.125)
    ends = sorted(found.frontier.extent[:, 0, 0].tolist())
    assert ends == pytest.approx([3 / 8, 5 / 8])


# Rasters: labels of many thetas from plain forward passes, and a flood fill over them.


def raster_shares(keeps: np.ndarray) -> tuple[float, float, float]:
    """Reachable, unreachable and enclosed shares of a raster (n, n) with zero at [0, 0]."""
    cells = len(keeps)
    kept = {(int(i), int(j)) for i, j in np.argwhere(keeps)}
    reached = flood({(0, 0)} & kept, kept, cells)
    rest = {(i, j) for i in range(cells) for j in range(cells)} - reached
    outside = flood({cell for cell in rest if min(cell) == 0 or max(cell) == cells - 1}, rest, cells)
    return len(reached) / cells**2, len(kept - reached) / cells**2, 1 - len(outside) / cells**2


def ticks(cells: int) -> np.ndarray:
    places = (np.arange(cells) + 0.5) / cells
    return np.stack(np.meshgrid(places, places, indexing="ij"), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize("seed", [2, 5, 6, 20, 22, 27])
def test_labels_of_random_networks_against_a_raster(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layers = dyadic_layers(rng, (2, 8, 6, 3))
    layers = [*layers[:-1], (layers[-1][0], layers[-1][1] + rng.uniform(-0.2, 0.2, 3))]
    result = ask(layers, np.zeros((1, 1, 2)), PATCHES, property="cr")
    found = result.boundary()
    logits = result.question.model.graph.logits(ticks(120).reshape(-1, 1, 1, 2))
    expected = raster_shares((logits.argmax(axis=1) == result.label).reshape(120, 120))
    shares = found.reachable_share, found.unreachable_share, found.enclosed_share
    assert shares == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("seed", "dist", "delta"), [(11, "l2", "75%"), (11, "l2", "45%"), (1, "l2", "75%"), (7, "l1", "60%")]
)
def test_attention_that_moves_against_a_raster(seed: int, dist: str, delta: str) -> None:
    """Translation by two pixels: slabs and knots beside the borders of regions."""
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(6, 5)), 0.3 + rng.normal(size=6)), (rng.normal(size=(3, 6)), 0.2 * rng.normal(size=3))]
    image = np.array([[[0.1, 0.8, 0.4, 0.9, 0.2]]])
    specs = ["translate:dx=2", "brightness:0..0.5"]
    result = ask(layers, image, specs, property="ar", dist=dist, delta=delta)
    found = result.boundary()
    assert 0.0 < found.reachable_share < 1.0
    kept = [result.at(t * [2.0, 0.5]).inconsistency <= result.answer.delta for t in ticks(40)]
    expected = raster_shares(np.reshape(kept, (40, 40)))
    shares = found.reachable_share, found.unreachable_share, found.enclosed_share
    assert shares == pytest.approx(expected, abs=0.03)
    low, high = result.areas["AR"]
    assert low - 1e-9 <= found.satisfying_share <= high + 1e-9


def test_both_is_what_label_and_attention_have_in_common() -> None:
    rng = np.random.default_rng(1)
    layers = [(rng.normal(size=(6, 2)), 0.3 * rng.normal(size=6)), (rng.normal(size=(2, 6)), 0.2 * rng.normal(size=2))]
    result = ask(layers, np.zeros((1, 1, 2)), PATCHES, delta="50%")
    label, attention, both = (result.boundary(wanted) for wanted in ("cr", "ar", Property.BOTH))
    assert (both.kept == np.maximum(label.kept, attention.kept)).all()
    assert not (both.reachable & ~(label.reachable & attention.reachable)).any()
    assert result.boundary().wanted is Property.BOTH


# What is not decided, not there, or not allowed.


def test_a_tied_region_is_undecided_and_not_reached() -> None:
    """Logits (ReLU(1 − 2b), 0): tied on the right half."""
    layers = [(np.array([[-2.0]]), np.ones(1)), (np.array([[1.0], [0.0]]), np.zeros(2))]
    found = ask(layers, np.zeros((1, 1, 1)), ["brightness"], property="cr").boundary()
    assert found.reachable_share == pytest.approx(0.5)
    assert len(found.undecided) == 1 and not found.is_certain


def test_nothing_around_zero_is_kept() -> None:
    """A neuron that is active everywhere but at zero: the map jumps there, and nothing is reachable at δ = 0."""
    layers = [(np.eye(1), np.zeros(1)), (np.array([[1.0], [0.0]]), np.array([1.0, 0.0]))]
    found = ask(layers, np.zeros((1, 1, 1)), ["brightness"], property="ar", delta=0.5).boundary()
    assert found.starts == 0 and found.farthest is None and found.distance is None
    assert found.reachable_share == found.enclosed_share == 0.0
    assert found.components == () == found.enclaves


def test_everything_is_reachable() -> None:
    layers = [(np.eye(1), np.zeros(1)), (np.array([[0.0], [0.0]]), np.array([1.0, 0.0]))]
    found = ask(layers, np.zeros((1, 1, 1)), ["brightness"], property="cr").boundary()
    assert found.reachable_share == found.enclosed_share == 1.0
    assert found.components == () == found.enclaves and found.is_certain


def test_refusals() -> None:
    layers = [(np.eye(1), np.zeros(1)), (np.array([[0.0], [0.0]]), np.array([1.0, 0.0]))]
    beside = ask(layers, np.zeros((1, 1, 1)), ["brightness:0.25..0.5"], property="cr")
    with pytest.raises(OptionError, match="theta = 0, which is not in the domain"):
        beside.boundary()
    result = ask(layers, np.zeros((1, 1, 1)), ["brightness"], property="cr")
    with pytest.raises(OptionError, match=r"partial \(timeout\)"):
        replace(result, tiling=replace(result.tiling, stopped=Stop("timeout"))).boundary()
    with pytest.raises(OptionError, match="expected cr, ar or both"):
        result.boundary("CB")


def test_a_domain_on_both_sides_of_zero_has_its_farthest_theta_anywhere() -> None:
    compound = make_compound(
        [(np.eye(2), np.zeros(2)), (np.ones((1, 2)), np.zeros(1))],
        [Brightness(range=(-0.25, 0.5)), Patch(x=0, y=0, w=1, h=1, range=(-1.0, 0.25))],
        np.full((1, 1, 2), 0.5),
    )
    regions = subdivide(compound)
    found = find_boundary(compound, regions.stopped, painted(regions, np.full(len(regions), YES)), Property.AR)
    assert found.farthest == pytest.approx([0.5, -1.0])
