"""BFS, GBS and the boundary on graphs with branches and windows, against exact rationals; planted faults stop them."""

from dataclasses import replace

import numpy as np
import pytest

from steadygaze.engines.search.traversal import Traversal
from steadygaze.engines.search.visited import Visited
from steadygaze.engines.search.walker import check_visited
from steadygaze.errors import ImageError, InternalError
from steadygaze.labels import Kept, Verdict
from steadygaze.network.graph import AffineMap, Chain, Graph, gradients
from steadygaze.network.joins import Winner
from steadygaze.question import Question, make_question
from support.networks.branching import random_graph
from support.networks.layered_models import model_of
from support.networks.search_problems import GREY, search_alone
from support.oracles.branching_regions import branching_map, decisions_at, pattern_of
from support.oracles.exact_numbers import as_fractions, dense
from support.oracles.exact_regions import ExactMap
from support.readers.visited_regions import assert_same, key_of

SPECS = {
    1: ["brightness:-0.5..0.5"],
    2: ["brightness:-0.25..0.75", "patch:x=0,y=0,w=1,h=2"],
    3: ["brightness:-0.5..0.5", "patch:x=0,y=0,w=1,h=2", "patch:x=1,y=1,w=1,h=1:-0.5..0.5"],
}
DELTA, CLOSE = 0.25, 1e-9
PROBLEMS = [(1, seed) for seed in range(8)] + [(2, seed) for seed in range(10)] + [(3, seed) for seed in range(3)]


def problem_of(dimension: int, seed: int) -> tuple[Question, ExactMap]:
    """A random graph on an image at which it is not tied, and its exact map."""
    for attempt in range(20):
        image = np.random.default_rng([dimension, seed, attempt]).choice(GREY, size=(1, 2, 2))
        question = make_question(model_of(random_graph(seed)), image, SPECS[dimension], delta=DELTA)
        try:
            _ = question.label
        except ImageError:
            continue
        return question, branching_map(question.compound)
    return problem_of(dimension, seed + 100)


def true_inconsistency(graph: Graph, image: np.ndarray, pattern: tuple[int, ...]) -> float:
    """Σ over classes of the length of the change of the gradient, from the pattern at an image to another one."""
    maps = []
    for bits in (pattern_of(graph, decisions_at(graph, as_fractions(image))), pattern):
        layers = np.split(np.array(bits, dtype=bool), np.cumsum(graph.hidden)[:-1])
        *_, found = gradients(graph, layers)
        maps.append(found)
    return float(np.linalg.norm(maps[0] - maps[1], axis=1).sum())


def assert_labels(visited: Visited, question: Question, truth: ExactMap, key: tuple[int, ...]) -> None:
    """Label, attention and their ranges are true of the exact region."""
    region = truth.regions[truth.by_key[key]]
    low, high = region.margin(question.label)
    names = {"CR": low >= 0, "MR": high <= 0, "CB": low <= 0 <= high, "undecided": True}
    assert visited.classification in names
    assert names[visited.classification]
    assert visited.margin[0] <= low + CLOSE
    assert visited.margin[1] >= high - CLOSE
    graph = question.compound.graph
    found = true_inconsistency(graph, question.perturbed.x0, key[len(key) - sum(graph.hidden) :])
    assert visited.inconsistency[0] - CLOSE <= found <= visited.inconsistency[1] + CLOSE
    assert {"AR": found <= DELTA + CLOSE, "IR": found > DELTA - CLOSE, "undecided": True}[visited.attention]


@pytest.mark.parametrize(("dimension", "seed"), PROBLEMS)
def test_bfs_visits_every_region_once(dimension: int, seed: int) -> None:
    question, truth = problem_of(dimension, seed)
    tiling = search_alone(question, method="bfs").tiling
    keys = [key_of(visited.region, question.compound.programs) for visited in tiling.visited]
    assert len(keys) == len(set(keys))
    assert set(keys) == set(truth.by_key)
    assert tiling.is_whole
    assert tiling.failures == 0
    for key, visited in zip(keys, tiling.visited, strict=True):
        assert_same(visited.region, truth.regions[truth.by_key[key]])
        assert_labels(visited, question, truth, key)


@pytest.mark.parametrize("method", ["gbs", "boundary"])
@pytest.mark.parametrize(("dimension", "seed"), PROBLEMS[::2])
def test_searches_of_a_part(dimension: int, seed: int, method: str) -> None:
    question, truth = problem_of(dimension, seed)
    result = search_alone(question, method=method)
    keys = [key_of(visited.region, question.compound.programs) for visited in result.tiling.visited]
    assert len(keys) == len(set(keys)) > 0
    for key, visited in zip(keys, result.tiling.visited, strict=True):
        assert_labels(visited, question, truth, key)
    violated = [v for v in result.tiling.visited if {v.classification, v.attention} & {"MR", "CB", "IR", "AB"}]
    assert (result.verdict is Verdict.NOT_ROBUST) == bool(violated)


def test_shares_are_proved_and_sharp() -> None:
    """Where no region keeps its label only in part, the share is the sum of exact volumes, less the kinks."""
    compared = 0
    for dimension, seed in PROBLEMS:
        question, truth = problem_of(dimension, seed)
        margins = [region.margin(question.label) for region in truth.regions]
        if any(low < 0 < high for low, high in margins):
            continue
        exact = float(sum(r.polytope.volume for r, (low, _) in zip(truth.regions, margins, strict=True) if low >= 0))
        shares = search_alone(question, method="bfs").tiling.shares
        proved, _ = shares.bounds(Kept.YES, None)
        assert proved <= exact + 1e-12
        assert proved >= exact - 1e-6
        compared += 1
    assert compared > 3


def with_windows() -> Question:
    """A question whose graph has windows and carried values, and several regions."""
    for dimension, seed in PROBLEMS[8:]:
        question, truth = problem_of(dimension, seed)
        graph = question.compound.graph
        has_windows = any(isinstance(node.operator, Winner) for node in graph.nodes)
        if has_windows and any(layer.carried.any() for layer in graph.layers) and len(truth.regions) > 8:
            return question
    raise AssertionError("no such graph")


def inputs_at(question: Question, visited: Visited) -> list[np.ndarray]:
    """The inputs (n,) of every layer at the inner point of a region, by a plain pass."""
    compound = question.compound
    images = compound.perturbed.images(compound.domain.to_theta(visited.region.inside[None]))
    return [values[0] for values in compound.graph.trace(images)[0]]


def with_winner(pattern: bytes, sizes: tuple[int, ...], layer: int, window: np.ndarray, entry: int) -> bytes:
    """A packed pattern whose window (n,) in a layer is won by another entry."""
    starts = np.cumsum([0, *(-(-size // 8) for size in sizes)])
    packed = bytearray(pattern)
    bits = np.unpackbits(np.frombuffer(pattern[starts[layer] : starts[layer + 1]], dtype=np.uint8))
    bits[np.flatnonzero(window)] = 0
    bits[entry] = 1
    packed[starts[layer] : starts[layer + 1]] = np.packbits(bits).tobytes()
    return bytes(packed)


def test_another_winner_is_caught() -> None:
    question = with_windows()
    traversal, graph = Traversal.of(question.compound), question.compound.graph
    visited = search_alone(question, method="bfs").tiling.visited
    for one in visited:
        traversal.region_at(one.region.inside)
    check_visited(question, visited, traversal.accuracy())
    caught = 0
    for number, (layer, values) in enumerate(zip(graph.layers, inputs_at(question, visited[0]), strict=True)):
        for entry in layer.entries:
            window = layer.window == layer.window[entry]
            if values[entry] > values[window].max() - 1e-6:
                continue
            pattern = with_winner(visited[0].region.pattern, graph.hidden, number, window, int(entry))
            planted = replace(visited[0], region=replace(visited[0].region, pattern=pattern))
            with pytest.raises(InternalError, match="differs from a plain forward pass"):
                check_visited(question, [planted], traversal.accuracy())
            caught += 1
    assert caught


def test_a_lost_branch_is_caught() -> None:
    """The affine maps lose the carried values of a layer: the search does not deliver."""
    question = with_windows()
    graph = question.compound.graph
    number = max(n for n, layer in enumerate(graph.layers) if layer.carried.any())
    maps = list(question.compound.chain.maps)
    matrix = dense(maps[number + 1].matrix).copy()
    matrix[:, graph.layers[number].carried] = 0.0
    maps[number + 1] = AffineMap(matrix, maps[number + 1].bias)
    model = replace(model_of(graph), chain=Chain(tuple(maps), layers=graph.layers))
    broken = make_question(model, question.perturbed.x0, SPECS[question.compound.domain.dimension], delta=DELTA)
    with pytest.raises(InternalError):
        search_alone(broken, method="bfs")
