"""The outermost boundary of a full map against exact pieces: the same components, enclaves and shares."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from steadygaze.boundary import Boundary, find_boundary
from steadygaze.labels import Property
from support.networks.layered_models import make_answers
from support.networks.search_problems import random_problem
from support.oracles.attention_by_definition import Question
from support.oracles.exact_boundary import Component, ExactBoundary, make_boundary
from support.oracles.exact_labels import ExactLabels
from support.readers.maps import clip_bits, pattern_bits

CLOSE = 1e-9
CASES = [(d, seed) for d, count in ((1, 16), (2, 40), (3, 12)) for seed in range(count)]

Sides = tuple[frozenset[int], frozenset[int]]


def threshold(truth: ExactLabels) -> float:
    ends = sorted({float(end) for bounds in truth.inconsistencies for end in bounds})
    gaps = [(b - a, (a + b) / 2) for a, b in pairwise(ends)]
    return max(gaps)[1] if gaps else ends[0] + 0.5


def exact_sides(found: ExactBoundary, components: list[Component]) -> Counter[Sides]:
    return Counter(
        (
            frozenset(found.pieces[ours].region for ours, _ in component.faces),
            frozenset(found.pieces[theirs].region for _, theirs in component.faces),
        )
        for component in components
    )


def share(found: ExactBoundary, pieces: frozenset[int] | set[int]) -> float:
    return float(sum((found.pieces[number].polytope.volume for number in pieces), Fraction(0)))


def compare(found: Boundary, exact: ExactBoundary, numbers: np.ndarray) -> None:
    for own, theirs in ((found.components, exact.outermost), (found.enclaves, None)):
        expected = [c for c in exact.components if c.is_enclave] if theirs is None else theirs
        sides = Counter(
            (frozenset(numbers[part.inner].tolist()), frozenset(numbers[part.outer].tolist())) for part in own
        )
        assert sides == exact_sides(exact, expected)
        assert sorted(part.share for part in own) == pytest.approx(
            sorted(share(exact, component.pieces) for component in expected), abs=CLOSE
        )
    holds = {number for number, piece in enumerate(exact.pieces) if piece.holds}
    assert found.reachable_share == pytest.approx(share(exact, exact.inner), abs=CLOSE)
    assert found.unreachable_share == pytest.approx(share(exact, holds - exact.inner), abs=CLOSE)


@pytest.mark.parametrize(("dimension", "seed"), CASES)
def test_random_networks(dimension: int, seed: int) -> None:
    question = random_problem(seed, dimension)
    compound = question.compound
    truth = ExactLabels(compound, question.label, Question())
    delta = threshold(truth)
    answers = make_answers(compound, question.label, Question())
    regions = answers.regions
    bits = np.hstack([clip_bits(compound, regions), pattern_bits(regions, compound.hidden)])
    keys = [(int(cell), *map(int, row)) for cell, row in zip(regions.cell, bits, strict=True)]
    numbers = np.array([truth.map.by_key[key] for key in keys])
    for property in ("cr", "ar", "both"):
        exact = make_boundary(truth, property, delta)
        if exact.is_clear and exact.inner:
            compare(
                find_boundary(compound, regions.stopped, answers.at(delta).joint, Property(property)), exact, numbers
            )
