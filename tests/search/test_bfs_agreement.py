"""BFS against the subdivision and against exact rationals: the same regions, volumes, labels, on 210 random networks.

Fully connected and convolutional networks on tiny images (brightness, patch, translation; all three at once in three
dimensions), and networks on [0,1]^d with lines that coincide. δ lies between values of ai that occur.
"""

from fractions import Fraction

import numpy as np
import pytest

from steadygaze.labels import Verdict
from steadygaze.question import Question as Problem
from steadygaze.question import make_question
from steadygaze.results.result import Result
from steadygaze.tolerances import MAX_MAP_PARAMETERS
from support.networks.hand_solved import NETWORKS, Tiny
from support.networks.layered_models import make_answers
from support.networks.layered_networks import on_unit_square
from support.networks.search_problems import free_pixels, random_problem, search_alone
from support.oracles.attention_by_definition import Question
from support.oracles.exact_labels import ExactLabels, threshold
from support.oracles.expected_visits import random_truth
from support.readers.maps import clip_bits, pattern_bits
from support.readers.visited_regions import assert_same, exact_of, key_of

CLOSE = 1e-9
NETWORKS_OF = {1: 60, 2: 90, 3: 60}


def asked(seed: int, dimension: int) -> tuple[Problem, ExactLabels, float]:
    truth = random_truth(seed, dimension)
    delta = threshold(truth)
    return random_problem(seed, dimension, delta=delta), truth, delta


def assert_labels(result: Result, truth: ExactLabels, delta: float) -> None:
    """The labels and the ranges of all visited regions are true, and `sets` counts them."""
    counts = dict.fromkeys(("CR", "MR", "CB", "AR", "IR", "AB"), 0)
    for visited in result.tiling.visited:
        number = exact_of(visited.region, truth.compound.programs, truth.map)
        assert visited.classification in truth.classification(number)
        assert visited.attention in truth.attention(number, delta)
        assert_encloses(visited.margin, truth.margins[number], within=CLOSE)
        assert_encloses(visited.inconsistency, truth.inconsistencies[number], within=CLOSE)
        for name in (visited.classification, visited.attention):
            if name != "undecided":
                counts[name] += 1
    assert {name: result.sets[name] for name in counts} == counts


def assert_encloses(found: tuple[float, float], bounds: tuple, *, within: float) -> None:
    low, up = map(Fraction, bounds)
    slack = Fraction(within) * max(1, abs(low), abs(up))
    assert Fraction(found[0]) <= low + slack
    assert Fraction(found[1]) >= up - slack


def assert_whole(result: Result, truth: ExactLabels) -> None:
    """Every region once, with the right geometry, volume and logits."""
    keys = [key_of(visited.region, truth.compound.programs) for visited in result.tiling.visited]
    assert len(keys) == len(set(keys)) == len({visited.region.key for visited in result.tiling.visited})
    assert set(keys) == set(truth.map.by_key)
    for key, visited in zip(keys, result.tiling.visited, strict=True):
        assert_same(visited.region, truth.map.regions[truth.map.by_key[key]])
    assert result.coverage == pytest.approx(1.0, abs=CLOSE)
    assert result.tiling.failures == 0


def assert_verdict(result: Result, truth: ExactLabels, delta: float) -> None:
    """All was visited: the verdict is that of the whole domain, and the status says the same."""
    names = [truth.classification(n) | truth.attention(n, delta) for n in range(len(truth.map.regions))]
    if any(own & {"MR", "CB", "IR", "AB"} and "undecided" not in own for own in names):
        assert result.verdict is Verdict.NOT_ROBUST
        assert result.status.name.lower().replace("_", "") == "notrobust"
    elif all(own == {"CR", "AR"} for own in names):
        assert result.tiling.is_covering
        assert result.status.name.lower() == "robust"
    else:
        assert not result.tiling.is_covering or not any("undecided" in own for own in names)


def assert_subdivision_agrees(result: Result, problem: Problem, delta: float) -> None:
    """The same regions by pattern, with the same volumes, logits and labels."""
    compound = problem.compound
    answers = make_answers(compound, problem.label, Question())
    regions, answer = answers.regions, answers.at(delta)
    bits = np.hstack([clip_bits(compound, regions), pattern_bits(regions, compound.hidden)])
    numbers = {(int(cell), *map(int, row)): n for n, (cell, row) in enumerate(zip(regions.cell, bits, strict=True))}
    assert len(numbers) == len(regions) == len(result.tiling.visited)
    d = compound.domain.dimension
    for visited in result.tiling.visited:
        number = numbers[key_of(visited.region, compound.programs)]
        assert abs(visited.region.volume - regions.polytopes.volumes[number]) <= CLOSE
        logits = regions.logits[number][[*range(d), -1]]
        assert np.allclose(visited.region.logits, logits, rtol=0, atol=CLOSE * max(1.0, np.abs(logits).max()))
        assert visited.classification == answer.classifications[number]
        assert visited.attention == answer.attentions[number]
    assert {name: result.sets[name] for name in answer.sets} == answer.sets


@pytest.mark.parametrize(
    ("dimension", "seed"), [(d, seed) for d, count in NETWORKS_OF.items() for seed in range(count)]
)
def test_random_networks(dimension: int, seed: int) -> None:
    problem, truth, delta = asked(seed, dimension)
    result = search_alone(problem, method="bfs")
    assert result.answer.delta == pytest.approx(delta)
    assert_whole(result, truth)
    assert_labels(result, truth, delta)
    assert_verdict(result, truth, delta)
    if dimension <= MAX_MAP_PARAMETERS:
        assert_subdivision_agrees(result, problem, delta)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_ranges_enclose_the_truth(dimension: int) -> None:
    """Every end is on the safe side, not merely close; inconsistencies are known to 30 digits."""
    for seed in range(20):
        problem, truth, _ = asked(seed, dimension)
        for visited in search_alone(problem, method="bfs").tiling.visited:
            number = exact_of(visited.region, truth.compound.programs, truth.map)
            assert_encloses(visited.margin, truth.margins[number], within=0.0)
            assert_encloses(visited.inconsistency, truth.inconsistencies[number], within=1e-25)


def test_at_least_two_hundred_networks_that_are_worth_it() -> None:
    """Most have several regions, and all six labels occur."""
    assert sum(NETWORKS_OF.values()) >= 200
    several, names = 0, set()
    for dimension in (1, 2, 3):
        for seed in range(0, NETWORKS_OF[dimension], 3):
            _, truth, delta = asked(seed, dimension)
            count = len(truth.map.regions)
            several += count > 2
            for number in range(count):
                names |= truth.classification(number) | truth.attention(number, delta)
    assert several > 40
    assert names >= {"CR", "MR", "CB", "AR", "IR", "AB"}


@pytest.mark.parametrize("tiny", NETWORKS, ids=lambda tiny: tiny.name)
def test_networks_solved_by_hand(tiny: Tiny) -> None:
    low, high = (np.array(ends, dtype=float) for ends in (tiny.low, tiny.high))
    layers = [list(layer) for layer in on_unit_square(tiny.floats, low, high)]
    layers[-1][1] = layers[-1][1] + np.linspace(0.0, 1.0 / 64, len(layers[-1][1]))  # no tie at zero
    model, image, specs = free_pixels([(weight, bias) for weight, bias in layers], in_middle=False)
    problem = make_question(model, image, list(specs), delta=0.25)
    truth = ExactLabels(problem.compound, problem.label, Question())
    result = search_alone(problem, method="bfs")
    assert len(result.tiling.visited) >= len(tiny.areas)
    assert_whole(result, truth)
    assert_labels(result, truth, 0.25)
    assert_subdivision_agrees(result, problem, 0.25)


@pytest.mark.parametrize(("property", "ignored"), [("cr", "attention"), ("ar", "classification")])
def test_a_single_property(property: str, ignored: str) -> None:
    """The other property does not count in the verdict."""
    for seed in range(8):
        problem, truth, delta = asked(seed, 2)
        result = search_alone(random_problem(seed, 2, delta=delta, property=property), method="bfs")
        kept = {"cr": "CR", "ar": "AR"}[property]
        labels = [
            (truth.classification(n) if property == "cr" else truth.attention(n, delta))
            for n in range(len(truth.map.regions))
        ]
        if all(own == {kept} for own in labels):
            assert result.tiling.is_covering
        elif any(own & {"MR", "CB", "IR", "AB"} and "undecided" not in own for own in labels):
            assert result.verdict is Verdict.NOT_ROBUST
        assert problem.label == truth.label
        assert ignored in ("attention", "classification")
