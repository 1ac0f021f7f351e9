"""Finds the regions of a traversal in the exact map, and compares all their claims with it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from steadygaze.compound import CellProgram
from steadygaze.labels import Status, Verdict
from steadygaze.results.result import Result
from support.oracles.exact_polytopes import plain
from support.oracles.exact_regions import ExactMap, ExactRegion, Key, floats
from support.oracles.expected_visits import Expected

CLOSE = 1e-9


def key_of(region: Any, cells: Sequence[CellProgram]) -> Key:
    """The knot cell and the pattern by pixel and neuron, as the exact map has it."""
    program = cells[region.cell]
    layers = bits_of(region, program)
    bits: list[np.ndarray] = []
    if program.program.clipped:
        is_moving = program.line_of >= 0
        for own, of_constant in ((layers[0], program.constant > 0), (layers[1], program.constant < 1)):
            by_pixel = of_constant.copy()
            by_pixel[is_moving] = own[program.line_of[is_moving]]
            bits.append(by_pixel)
        layers = layers[2:]
    return (int(region.cell), *map(int, np.concatenate([*bits, *layers])))


def bits_of(region: Any, program: CellProgram) -> list[np.ndarray]:
    """The bits of every hidden layer of the program, the clip's first; every layer starts at a new byte."""
    packed = np.frombuffer(region.clip + region.pattern, dtype=np.uint8)
    layers, start = [], 0
    for width in program.widths[:-1]:
        stop = start + -(-int(width) // 8)
        layers.append(np.unpackbits(packed[start:stop])[: int(width)].astype(bool))
        start = stop
    assert start == len(packed)
    return layers


def exact_of(region: Any, cells: Sequence[CellProgram], exact: ExactMap) -> int:
    """The number of the region in the exact map; fails if there is none."""
    key = key_of(region, cells)
    assert key in exact.by_key, f"{key} is not a region with volume"
    return exact.by_key[key]


def depth(region: ExactRegion, t: np.ndarray) -> float:
    """How far inside an exact region a point lies: negative outside."""
    halfspaces = np.array([floats(facet) for facet in region.polytope.facets])
    return float((halfspaces[:, :-1] @ t + halfspaces[:, -1]).min())


def assert_same(region: Any, truth: ExactRegion) -> None:
    """Facets (none redundant, none missing), points on them, vertices, volume and logits are those of the truth."""
    assert_same_facets(region, truth)
    assert region.volume == np.float64(region.volume)
    assert abs(region.volume - float(truth.polytope.volume)) <= CLOSE
    expected = np.array([[float(x) for x in plain(vertex)] for vertex in truth.polytope.vertices])
    found = np.asarray(region.vertices)
    assert found.shape[1] == expected.shape[1]
    apart = np.abs(found[:, None, :] - expected[None, :, :]).max(axis=2)
    assert (apart.min(axis=0) <= CLOSE).all(), "a vertex is missing"
    assert (apart.min(axis=1) <= CLOSE).all(), "a vertex too many"
    assert depth(truth, np.asarray(region.inside)) > 0
    logits = np.array([[float(number) for number in form] for form in truth.logits]).T
    assert np.allclose(region.logits, logits, rtol=0, atol=CLOSE * max(1.0, np.abs(logits).max()))


def assert_same_facets(region: Any, truth: ExactRegion) -> list[int]:
    """The exact facet that each half-space of the region is; all are there, each once, each with a point inside it."""
    halfspaces = np.asarray(region.halfspaces)
    expected = np.array([floats(facet) for facet in truth.polytope.facets])
    assert halfspaces.shape == expected.shape
    assert np.allclose(np.linalg.norm(halfspaces[:, :-1], axis=1), 1.0)
    apart = np.abs(halfspaces[:, None, :] - expected[None, :, :]).max(axis=2)
    matches = apart.argmin(axis=1)
    assert (apart.min(axis=1) <= CLOSE).all()
    assert sorted(matches.tolist()) == list(range(len(expected)))
    assert len(region.sources) == len(halfspaces)
    centres = np.asarray(region.centres)
    assert centres.shape == (len(expected), expected.shape[1] - 1)
    for number, centre in enumerate(centres):
        values = expected[:, :-1] @ centre + expected[:, -1]
        assert abs(values[matches[number]]) <= CLOSE
        assert np.delete(values, matches[number]).min(initial=1.0) > 0
    return [int(match) for match in matches]


def assert_sound(result: Result, expected: Expected) -> set[int]:
    """Every visited region is one of the map, visited once, with a true label; status and verdict follow from them."""
    truth, delta = expected.truth, expected.delta
    numbers = [exact_of(visited.region, truth.compound.programs, truth.map) for visited in result.tiling.visited]
    assert len(set(numbers)) == len(numbers)
    for number, visited in zip(numbers, result.tiling.visited, strict=True):
        if expected.property != "ar":
            assert visited.classification in truth.classification(number)
        if expected.property != "cr":
            assert visited.attention in truth.attention(number, delta)
    share = float(sum(truth.map.regions[number].polytope.volume for number in numbers))
    assert result.coverage == pytest.approx(share, abs=1e-9)
    assert result.tiling.failures == 0
    kinds = {expected.kinds[number] for number in numbers if all("undecided" not in n for n in expected.names(number))}
    if kinds & {"V", "B"}:
        assert (result.status, result.verdict) == (Status.NOT_ROBUST, Verdict.NOT_ROBUST)
    if {expected.kinds[number] for number in numbers} == {"S"}:
        assert result.status in (Status.ROBUST, Status.FAILED)
        assert result.verdict is not Verdict.NOT_ROBUST
    if result.tiling.is_covering:
        assert set(expected.kinds) == {"S"} and len(numbers) == len(truth.map.regions)
    elif result.status is Status.ROBUST:
        assert len(numbers) < len(truth.map.regions)
    if result.status is Status.ROBUST:
        assert result.verdict is Verdict.UNDECIDED  # nothing confirmed it yet
    return set(numbers)
