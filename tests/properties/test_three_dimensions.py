"""Labels, shares and nearest violations of three parameters: by hand, against two parameters, against sampling."""

import numpy as np
import pytest

from steadygaze.api import verify
from steadygaze.labels import Kept, Verdict
from steadygaze.polytopes import Polyhedra
from steadygaze.results.result import Result
from support.networks.layered_models import ask
from support.networks.layered_networks import dyadic_layers
from support.readers.polyhedra import owners

PIXELS = [f"patch:x={x},y=0,w=1,h=1" for x in range(3)]
"""Three parameters that are the three pixels of a black 1×3 image."""

BLACK = np.zeros((1, 1, 3))


def linear(weight: np.ndarray, bias: np.ndarray) -> list[tuple]:
    """Logits weight @ x + bias of three pixels, as a network whose ReLUs are active everywhere."""
    return [(np.eye(3), np.ones(3)), (weight, bias - weight.sum(axis=1))]


def test_a_corner_of_the_cube_by_hand() -> None:
    """Logits (1 − x − y − z, 0): the label is kept on a sixth, and lost nearest at (1, 1, 1)/3."""
    result = ask(linear(np.array([[-1.0, -1, -1], [0, 0, 0]]), np.array([1.0, 0])), BLACK, PIXELS, delta=1.0)
    low, high = result.areas["CR"]
    assert low <= 1 / 6 <= high and high - low < 1e-10
    assert result.areas["AR"] == (1.0, 1.0)
    nearest = result.answer.nearest["CR"]
    assert nearest.low <= 3**-0.5 < nearest.high < 3**-0.5 + 1e-5
    assert nearest.low > 3**-0.5 - 1e-9
    np.testing.assert_allclose(nearest.theta, 1 / 3, atol=1e-5)
    assert result.answer.sets == {"CR": 0, "MR": 0, "CB": 1, "AR": 1, "IR": 0, "AB": 0}


def test_label_and_attention_together_by_hand() -> None:
    """As above, with ReLU(z − 1/2) in the second logit: its map jumps at z = 1/2, by 1."""
    layers = [
        (np.vstack([np.eye(3), [[0, 0, 1.0]]]), np.array([1.0, 1, 1, -0.5])),
        (np.array([[-1.0, -1, -1, 0], [0, 0, 0, 1.0]]), np.array([4.0, 0])),
    ]
    result = ask(layers, BLACK, PIXELS, delta=0.5)
    for name, share in {"IR": 1 / 2, "CR&IR": 1 / 96, "CR&AR": 1 / 6 - 1 / 48}.items():
        low, high = result.areas[name]
        assert low - 1e-12 <= share <= high + 1e-12 and high - low < 1e-10, name
    assert result.answer.nearest["AR"].low == pytest.approx(0.5, abs=1e-9)
    assert result.verdict is Verdict.NOT_ROBUST


def test_a_moving_map_is_cut_into_slabs() -> None:
    """Class 0 looks at the first pixel alone: after a shift by τ the map is off by √2 τ, whatever the other two."""
    layers = linear(np.array([[1.0, 0, 0], [0, 0, 0]]), np.array([5.0, 0]))
    for axis in range(3):
        specs = PIXELS[1:]
        specs.insert(axis, "translate:dx=1")
        result = ask(layers, np.full((1, 1, 3), 0.25), specs, delta=0.25 * 2**0.5)
        low, high = result.areas["AR"]
        assert low <= 0.25 <= high and high - low < 1e-9
        assert result.answer.nearest["AR"].low == pytest.approx(0.25, abs=1e-9)
        assert result.answer.nearest["AR"].low <= 0.25
        kept = result.answer.joint.attention == Kept.YES
        assert result.answer.joint.polytopes.points[:, axis][kept[result.answer.joint.polytopes.owner]].max() < 0.2501


def test_a_tie_on_a_volume_is_undecided() -> None:
    """Logits (ReLU(1 − 2x), 0): nothing above the label, but tied with it on half of the domain."""
    layers = [(np.array([[-2.0, 0, 0]]), np.ones(1)), (np.array([[1.0], [0.0]]), np.zeros(2))]
    result = ask(layers, BLACK, PIXELS, property="cr")
    assert result.verdict is Verdict.UNDECIDED
    assert result.areas["CR"] == pytest.approx((0.5, 1.0), abs=1e-9)
    assert result.answer.nearest["CR"].low == pytest.approx(0.5, abs=1e-9)
    assert result.answer.nearest["CR"].theta is None


@pytest.mark.parametrize("dist", ["l1", "l2"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_third_parameter_without_effect_changes_nothing(place: int, dist: str) -> None:
    """The network does not see the last pixel of a 2×3 image; the third parameter is a patch on it."""
    generator = np.random.default_rng(15)
    layers = [
        (generator.normal(size=(12, 6)), generator.normal(size=12)),
        (generator.normal(size=(4, 12)), np.zeros(4)),
    ]
    layers[0][0][:, 5] = 0.0
    image = generator.random((1, 2, 3))
    specs = ["translate:dx=1:-0.5..1", "brightness:-0.25..0.5"]
    flat = ask(layers, image, specs, delta="30%", dist=dist)
    space = ask(layers, image, [*specs[:place], "patch:x=2,y=1,w=1,h=1", *specs[place:]], delta="30%", dist=dist)
    assert isinstance(space.tiling.answers.regions.polytopes, Polyhedra)
    for delta in ("10%", "30%", "60%", "100%"):
        one, other = flat.with_delta(delta), space.with_delta(delta)
        assert one.verdict is other.verdict
        for name, bounds in one.areas.items():
            assert other.areas[name] == pytest.approx(bounds, abs=1e-8), name
        for name, nearest in one.answer.nearest.items():
            assert other.answer.nearest[name].low == pytest.approx(nearest.low, abs=1e-8)
            assert other.answer.nearest[name].high == pytest.approx(nearest.high, abs=1e-4)
    assert 0.05 < flat.areas["CR"][0] < 0.95 and 0.05 < flat.areas["AR"][0] < 0.95
    assert space.tiling.answers.enough_delta == pytest.approx(flat.tiling.answers.enough_delta, rel=1e-6)


def assert_samples_agree(result: Result, count: int) -> None:
    """Random thetas never contradict the labels of their pieces, and are shared out as the volumes say."""
    compound, joint = result.tiling.answers.compound, result.answer.joint
    points = np.random.default_rng(7).random((count, 3))
    thetas = compound.to_theta(points)
    piece, depth = owners(joint.polytopes, points)
    assert (depth > -1e-9).all(), "a theta that no piece contains"
    inside = depth > 1e-8
    logits = result.question.model.graph.logits(compound.perturbed.images(thetas))
    margin = logits[:, result.label] - np.delete(logits, result.label, axis=1).max(axis=1)
    keeps = joint.pieces.keeps_label[piece]
    assert (margin[inside & keeps] > -1e-9).all() and (margin[inside & ~keeps] < 1e-9).all()
    low, high = result.areas["CR"]
    noise = 5.0 * np.sqrt(max(low * (1 - low), 1 / count) / count)
    assert low - noise < (margin > 0).mean() < high + noise
    nearest = result.answer.nearest["CR"]
    zero = compound.to_unit(np.zeros((1, 3)))[0]
    if (margin < -1e-9).any():
        assert np.linalg.norm(points[margin < -1e-9] - zero, axis=1).min() >= nearest.low
    delta = result.answer.delta
    for number in np.flatnonzero(inside)[:300]:
        ai = result.at(thetas[number]).inconsistency
        code = joint.attention[piece[number]]
        assert ai <= delta + 1e-9 or code != Kept.YES
        assert ai > delta - 1e-9 or code != Kept.NO
        assert ai <= delta + 1e-9 or np.linalg.norm(points[number] - zero) >= result.answer.nearest["AR"].low


@pytest.mark.parametrize("seed", range(12))
def test_sampled_thetas_of_tiny_networks_agree(seed: int) -> None:
    """Few distinct weights: coincident planes, dead neurons, ties between classes."""
    generator = np.random.default_rng(seed)
    layers = dyadic_layers(generator, [3, 4, 3, 3])
    layers[-1][1][:] += generator.permutation([0.0, 0.125, 0.375])
    image = generator.choice([0.0, 0.25, 0.5, 1.0], size=(1, 1, 3))
    specs = [["translate:dx=1", "brightness:-0.5..0.5", PIXELS[1]], PIXELS, ["brightness", *PIXELS[:2]]][seed % 3]
    result = ask(layers, image, specs, delta="50%", dist=("l1", "l2")[seed % 2])
    assert result.tiling.answers.regions.polytopes.volumes.sum() == pytest.approx(1.0, abs=1e-12)
    assert result.answer.joint.polytopes.volumes.sum() == pytest.approx(1.0, abs=1e-12)
    assert sum(map(sum, result.answer.shares.cells)) == pytest.approx(1.0, abs=1e-12)
    assert_samples_agree(result, 1500)
    for name, nearest in result.answer.nearest.items():
        assert nearest.low <= nearest.high
        if nearest.theta is not None:
            point = result.at(nearest.theta)
            assert point.margin < 0.0 if name == "CR" else point.inconsistency > result.answer.delta


def test_sampled_thetas_of_a_bundled_network_agree() -> None:
    specs = ["translate:dx=2:0.85..1.15", "patch:x=12,y=12,w=4,h=4:0.16..0.46", "brightness:0.09..0.24"]
    result = verify("M-FNN-100", "mnist:69992", specs, delta="70%", threads=1)
    assert len(result.tiling.answers.regions) > 300
    assert 0.1 < result.areas["AR"][0] < 0.9 and 0.1 < result.areas["CR"][0] < 0.9
    assert_samples_agree(result, 3000)


@pytest.mark.parametrize("seed", range(30))
def test_pieces_of_the_cube_by_argmax_and_slab(seed: int) -> None:
    """Random forms, and rounded ones that meet in vertices: volumes are kept, winners win, slabs hold."""
    generator = np.random.default_rng(seed)
    cube = Polyhedra.boxes(np.zeros((1, 3)), np.ones((1, 3)), np.arange(1, 7).reshape(1, 3, 2))
    logits = generator.normal(size=(1, 4, int(generator.integers(2, 9))))
    logits = np.round(2 * logits) / 2 if seed % 2 else logits
    pieces, origin, winner, pairs = cube.split_by_argmax(logits, 1e-12, 6)
    assert pieces.volumes.sum() == pytest.approx(1.0, abs=1e-12) and (pieces.volumes > 0).all()
    values = np.hstack([pieces.points, np.ones((len(pieces.points), 1))]) @ logits[0]
    won = values[np.arange(len(values)), winner[pieces.owner]]
    assert (won >= values.max(axis=1) - 1e-8).all()
    assert set(np.abs(pieces.facets)) <= set(range(1, 7 + len(pairs)))
    slab = np.sort(generator.random((len(pieces), 2)), axis=1)
    slab[::3] = (2.0, -2.0)
    along = np.eye(3)[generator.integers(0, 3, len(pieces))]
    tilted = generator.normal(size=along.shape)
    along[::2] = (tilted / np.linalg.norm(tilted, axis=1, keepdims=True))[::2]
    parts, of, inside, made = pieces.split_by_slab(slab, along, 6 + len(pairs))
    assert parts.volumes.sum() == pytest.approx(1.0, abs=1e-12)
    between = np.bincount(of[inside], parts.volumes[inside], len(pieces))
    np.testing.assert_allclose(between, pieces.slab_volumes(np.arange(len(pieces)), slab, along), atol=1e-12)
    low, high = parts.extent_along(along[of])
    assert (low[inside] >= slab[of[inside], 0] - 1e-9).all() and (high[inside] <= slab[of[inside], 1] + 1e-9).all()
    assert np.abs(parts.facets).max() <= 6 + len(pairs) + made
    assert len(origin) == len(pieces)


def test_a_cell_with_more_facets_than_a_word_has_bits() -> None:
    """Classes that win nearest to their own place: the one in the middle of a sphere of 120 has a facet to each."""
    generator = np.random.default_rng(0)
    around = generator.normal(size=(120, 3))
    places = 0.5 + np.vstack([np.zeros(3), 0.4 * around / np.linalg.norm(around, axis=1)[:, None]])
    logits = np.vstack([2 * places.T, -(places**2).sum(axis=1)])[None]
    cube = Polyhedra.boxes(np.zeros((1, 3)), np.ones((1, 3)), np.arange(1, 7).reshape(1, 3, 2))
    pieces, _, winner, _ = cube.split_by_argmax(logits, 1e-12, 6)
    assert pieces.volumes.sum() == pytest.approx(1.0, abs=1e-12)
    middle = np.flatnonzero(winner == 0)
    assert len(middle) == 1 and np.diff(pieces.facet_starts)[middle[0]] > 64 and pieces.incidence.shape[1] == 2
    points = generator.random((2000, 3))
    owner, depth = owners(pieces, points)
    assert (depth > -1e-9).all()
    nearest = np.linalg.norm(points[:, None] - places, axis=2).argmin(axis=1)
    assert (winner[owner] == nearest)[depth > 1e-9].all()
    polygons, piece = pieces.section(1, 0.5)
    assert polygons.volumes.sum() == pytest.approx(1.0, abs=1e-9) and middle[0] in piece


def test_strips_have_the_volume_of_what_is_close() -> None:
    """Logits (x − 1/2, 0): within a slack of 1/8 of the boundary lies an eighth on either side."""
    cube = Polyhedra.boxes(np.zeros((1, 3)), np.ones((1, 3)), np.arange(1, 7).reshape(1, 3, 2))
    logits = np.zeros((1, 4, 2))
    logits[0, :, 0] = (1.0, 0.0, 0.0, -0.5)
    pieces, origin, winner, _ = cube.split_by_argmax(logits, 1e-12, 6)
    slack = np.full(len(pieces), 0.125)
    decided = pieces.decided_volumes(logits, 0, origin, winner, slack, np.arange(len(pieces)))
    np.testing.assert_allclose(decided, [0.375, 0.375], atol=1e-15)


@pytest.mark.parametrize("seed", range(40))
def test_nearest_point_of_a_hull(seed: int) -> None:
    """A lower bound and a point of the hull that meet: both are right. Flat, tiny and rounded hulls among them."""
    generator = np.random.default_rng(seed)
    vertices = generator.random((int(generator.integers(4, 20)), 3))
    vertices = [vertices, np.round(4 * vertices) / 4, vertices * (1, 1, 1e-7), 0.3 + 1e-5 * vertices][seed % 4]
    at = np.zeros(3) if seed % 3 else generator.random(3) * 2 - 0.5
    hull = Polyhedra(vertices, np.array([0, len(vertices)]), *([np.zeros(0, dtype=np.int64)] * 2), np.zeros(0))
    square, *point = hull.nearest_points(at, np.zeros(1, dtype=np.int64))[0]
    distance = np.linalg.norm(np.array(point) - at)
    assert np.sqrt(square) <= distance + 1e-15 and distance - np.sqrt(square) < 1e-11
    mixtures = generator.dirichlet(np.full(len(vertices), 0.3), size=300) @ vertices
    assert np.linalg.norm(mixtures - at, axis=1).min() >= np.sqrt(square) - 1e-12
    if distance > 1e-9:
        away = (np.array(point) - at) / distance
        assert (vertices @ away).min() >= away @ point - 1e-9, "a plane separates the two"


def test_a_clipped_hull_holds_exactly_what_is_above() -> None:
    generator = np.random.default_rng(0)
    vertices, form = generator.random((10, 3)), np.array([1.0, -2.0, 0.5, 0.1])
    part = Polyhedra.clip_hull(vertices, form)
    assert (part @ form[:3] + form[3] >= -1e-12).all()
    above = vertices[vertices @ form[:3] + form[3] >= 0.0]
    for vertex in above:
        assert Polyhedra.distance_to_hull(vertex, part) < 1e-12
    assert len(Polyhedra.clip_hull(vertices, np.array([0.0, 0.0, 0.0, -1.0]))) == 0
