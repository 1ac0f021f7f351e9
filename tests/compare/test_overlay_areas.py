"""Two overlaid tilings, compared with clipping in exact rationals and with samples; the areas add up."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from steadygaze.compare.overlay import COMBINATIONS, ResultOverlay, combine, lay_over
from steadygaze.labels import Kept, Property
from steadygaze.polytopes import Polygons
from steadygaze.polytopes.polygon_kernels import shared_area
from steadygaze.results.result import Result
from support.networks.compared_networks import answered
from support.networks.stored_questions import run

PAIRS = [(kind, first, second) for kind in ("kept", "moving", "line") for first, second in ((0, 1), (2, 3), (1, 2))]
ROUNDING = 1e-12

Points = list[tuple[Fraction, Fraction]]


def clip(polygon: Points, other: Points) -> Points:
    """The common part of two convex polygons, counter-clockwise, in exact rationals."""
    for (x0, y0), (x1, y1) in zip(other, other[1:] + other[:1], strict=True):
        value = [(x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) for x, y in polygon]
        kept: Points = []
        for i, ((x, y), here) in enumerate(zip(polygon, value, strict=True)):
            j = (i + 1) % len(polygon)
            there = value[j]
            if here >= 0:
                kept.append((x, y))
            if here * there < 0:
                share = here / (here - there)
                kept.append((x + share * (polygon[j][0] - x), y + share * (polygon[j][1] - y)))
        polygon = kept
    return polygon


def area(polygon: Points) -> Fraction:
    turned = polygon[1:] + polygon[:1]
    return sum(((x * v - u * y) for (x, y), (u, v) in zip(polygon, turned, strict=True)), Fraction(0)) / 2


def exact(points: np.ndarray) -> Points:
    return [(Fraction(float(x)), Fraction(float(y))) for x, y in points]


def shared(first: np.ndarray, second: np.ndarray) -> float:
    (x, y), (u, v) = np.ascontiguousarray(first.T), np.ascontiguousarray(second.T)
    return shared_area(x, y, 0, len(x), u, v, 0, len(u), min(y.min(), v.min()))


def random_polygon(rng: np.random.Generator) -> np.ndarray:
    """Corners on a coarse grid: polygons touch, share edges and corners, and have upright sides."""
    while True:
        points = rng.integers(0, 9, size=(rng.integers(3, 9), 2)) / 8
        if np.linalg.matrix_rank(points - points[0]) == 2:
            return points[ConvexHull(points).vertices]


@pytest.mark.parametrize("seed", range(150))
def test_the_common_area_of_two_polygons(seed):
    rng = np.random.default_rng(seed)
    first, second = random_polygon(rng), random_polygon(rng)
    if seed % 5 == 0:
        second = first + np.array([0.0, 0.125 * (seed % 2)])
    expected = float(area(clip(exact(first), exact(second))))
    assert shared(first, second) == pytest.approx(expected, abs=1e-15)
    assert shared(second, first) == pytest.approx(expected, abs=1e-15)


def test_edges_as_short_as_rounding_do_no_harm():
    """A corner doubled at a distance of rounding gives an edge in any direction; clipping would cut along it."""
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    doubled = np.array([[0.0, 0.0], [0.5, 0.0], [0.5, 1e-16], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert shared(doubled, square) == pytest.approx(1.0, abs=1e-15)
    assert shared(square, doubled) == pytest.approx(1.0, abs=1e-15)
    steep = np.array([[0.0, 0.0], [5e-324, 0.0], [1.0, 0.5], [5e-324, 1.0]])
    assert np.isfinite(shared(steep, square))


def exact_cells(first: Result, second: Result, wanted: Property) -> np.ndarray:
    """The areas by codes, from every pair of pieces in exact rationals."""
    cells = [[Fraction(0)] * 3 for _ in range(3)]
    sides = []
    for result in (first, second):
        polygons = result.answer.joint.polytopes
        assert isinstance(polygons, Polygons)
        sides.append([(exact(polygons[p]), int(code)) for p, code in enumerate(result.answer.joint.kept(wanted)[0])])
    for (polygon, code), (other, other_code) in product(*sides):
        if max(polygon)[0] > min(other)[0] and max(other)[0] > min(polygon)[0]:
            cells[code][other_code] += abs(area(clip(polygon, other)))
    return np.array(cells, dtype=np.float64)


@pytest.mark.parametrize(("kind", "first", "second"), PAIRS[:6])
def test_areas_are_those_of_exact_clipping(kind, first, second):
    sides = answered(first, kind), answered(second, kind)
    wanted = list(Property)[(first + second) % 3]
    np.testing.assert_allclose(lay_over(*sides, wanted).cells, exact_cells(*sides, wanted), atol=1e-9)


@pytest.mark.parametrize(("kind", "first", "second"), PAIRS)
@pytest.mark.parametrize("wanted", Property)
def test_combinations_add_up_to_the_domain_and_to_each_result(kind, first, second, wanted):
    sides = answered(first, kind), answered(second, kind)
    overlay = lay_over(*sides, wanted)
    assert overlay.cells.sum() == pytest.approx(1.0, abs=ROUNDING) and overlay.missing == 0.0
    for axis, result in ((1, sides[0]), (0, sides[1])):
        codes = result.answer.joint.kept(wanted)[0]
        own = [result.answer.joint.polytopes.volumes[codes == code].sum() for code in Kept]
        np.testing.assert_allclose(overlay.cells.sum(axis=axis), own, atol=ROUNDING)
    for name, (low, high) in overlay.shares().items():
        assert 0.0 <= low <= high <= 1.0, name
    turned = lay_over(*reversed(sides), wanted)
    np.testing.assert_allclose(turned.cells, overlay.cells.T, atol=ROUNDING)


@pytest.mark.parametrize(("kind", "first", "second"), PAIRS)
def test_bounds_hold_what_samples_find(kind, first, second):
    sides = answered(first, kind), answered(second, kind)
    rng, count = np.random.default_rng(7), 400
    domain = sides[0].question.perturbed.domain
    thetas = domain.low + rng.random((count, domain.dimension)) * domain.widths
    points = [[result.at(theta) for theta in thetas] for result in sides]
    keeps = {
        Property.CR: [np.array([point.margin > 0.0 for point in side]) for side in points],
        Property.AR: [
            np.array([point.inconsistency <= result.answer.delta for point in side])
            for result, side in zip(sides, points, strict=True)
        ],
    }
    for wanted, (own, other) in keeps.items():
        shares = lay_over(*sides, wanted).shares()
        for name, codes in COMBINATIONS.items():
            found = np.mean((own == (codes[0] == Kept.YES)) & (other == (codes[1] == Kept.YES)))
            slack = 4.5 * np.sqrt(max(found * (1 - found), 1 / count) / count)
            assert shares[name][0] - slack <= found <= shares[name][1] + slack, (wanted, name)


def spread(rng: np.random.Generator, share: float) -> np.ndarray:
    """A share, put on the two certain codes in some way."""
    part = rng.choice([0.0, 0.5, 1.0]) * share
    return np.array([part, 0.0, share - part])


@pytest.mark.parametrize("seed", range(300))
def test_bounds_hold_however_doubts_are_settled(seed):
    """Undecided, doubtful and missing parts become kept or lost in some way; the bounds enclose the truth."""
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.ones(10) * rng.choice([0.2, 1.0]))
    missing, cells = cells[9] * (seed % 2), cells[:9].reshape(3, 3)
    cells *= (1.0 - missing) / cells.sum()
    doubt = rng.choice([0.0, 0.1, 0.4, 1.0], size=(2, 3, 3)) * cells
    doubt[0, Kept.UNKNOWN] = doubt[1, :, Kept.UNKNOWN] = 0.0
    truth = np.zeros((3, 3))
    for k, j in product(range(3), range(3)):
        first, second = doubt[:, k, j]
        least = min(max(0.0, first + second - cells[k, j]), first, second)
        both = rng.uniform(least, min(first, second))
        # Sure of both, doubtful in one of them, and in both.
        for share, is_open in (
            (cells[k, j] - first - second + both, (False, False)),
            (first - both, (True, False)),
            (second - both, (False, True)),
            (both, (True, True)),
        ):
            rows = spread(rng, 1.0) if is_open[0] or k == Kept.UNKNOWN else np.eye(3)[k]
            columns = spread(rng, 1.0) if is_open[1] or j == Kept.UNKNOWN else np.eye(3)[j]
            truth += share * np.outer(rows, columns)
    truth += missing * np.outer(spread(rng, 1.0), spread(rng, 1.0))
    overlay = ResultOverlay(cells, doubt, missing)
    for codes in COMBINATIONS.values():
        low, high = overlay.bounds(*codes)
        assert low <= truth[codes] + ROUNDING and truth[codes] <= high + ROUNDING
    assert overlay.undecided <= 1.0


def test_what_is_tied_stays_undecided():
    """Network 2 is tied on a third of the domain: that is neither kept nor lost beside any other."""
    sides = answered(2, "kept"), answered(3, "kept")
    open_share = 1.0 - sum(sides[0].areas[name][0] for name in ("CR", "MR"))
    assert open_share > 0.3
    shares = lay_over(*sides, Property.CR).shares()
    assert shares["undecided"][0] == pytest.approx(open_share, abs=1e-9)
    assert shares["second"][0] == 0.0 and shares["second"][1] >= open_share - 1e-9
    assert shares["both"][0] == pytest.approx(sides[0].areas["CR"][0], abs=1e-9)


@pytest.mark.parametrize("kind", ["kept", "moving", "line"])
def test_a_result_against_itself_claims_no_difference(kind):
    """Not even by the rounding of borders: the boxes of a refinement split the same regions elsewhere."""
    own, again = answered(1, kind), answered(1, kind, method="refine")
    for wanted in Property:
        shares = lay_over(own, again, wanted).shares()
        assert shares["first"][0] == shares["second"][0] == 0.0
        assert shares["both"][1] == pytest.approx(lay_over(own, own, wanted).shares()["both"][1], abs=0.21)


def test_a_coarser_proof_has_wider_bounds():
    """Boxes that are made undecided by hand: the shares that the map proves lie within the bounds."""
    own, other = answered(0, "moving"), answered(3, "moving")
    whole = lay_over(own, other, Property.AR).shares()
    joint = other.answer.joint
    attention = np.where(np.arange(len(joint.attention)) % 3 == 0, Kept.UNKNOWN, joint.attention)
    coarse = replace(other)
    coarse.__dict__["answer"] = replace(other.answer, joint=replace(joint, attention=attention))
    shares = lay_over(own, coarse, Property.AR).shares()
    for name in COMBINATIONS:
        assert shares[name][0] <= whole[name][0] + ROUNDING and whole[name][1] <= shares[name][1] + ROUNDING
    assert shares["undecided"][0] > 0.05


def test_what_a_partial_map_did_not_reach_is_undecided():
    partial = run("partial")
    reached = float(partial.tiling.answers.regions.polytopes.volumes.sum())
    overlay = lay_over(partial, partial, Property.CR)
    assert overlay.missing == pytest.approx(1.0 - reached, abs=1e-9) and overlay.undecided >= overlay.missing
    assert overlay.shares()["neither"][1] >= overlay.missing
    nothing = lay_over(partial, run("empty"), Property.BOTH)
    assert nothing.shares()["both"] == (0.0, 1.0) and nothing.undecided == 1.0


@pytest.mark.parametrize(("kind", "first", "second"), PAIRS)
@pytest.mark.parametrize("wanted", Property)
def test_shares_alone_bound_what_the_overlay_finds(kind, first, second, wanted):
    sides = answered(first, kind), answered(second, kind)
    loose = combine(sides[0].answer.shares, sides[1].answer.shares, wanted)
    for name in COMBINATIONS:
        low, high = lay_over(*sides, wanted).shares()[name]
        assert loose[name][0] <= high + ROUNDING and low <= loose[name][1] + ROUNDING
        assert loose[name][0] <= low + 1e-9 or low == 0.0
