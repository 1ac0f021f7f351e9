"""Networks with branches and windows in boxes and chunks: a map stopped and continued equals the map of one run."""

import numpy as np
import pytest

from steadygaze.budget import Budget, Limits
from steadygaze.compound import Compound
from steadygaze.engines.refine.boxes import Boxes
from steadygaze.network.layers import CARRIED, ENTRY
from steadygaze.regions import chunked_walk, walks
from steadygaze.regions.check import check_map
from steadygaze.regions.chunked_walk import walk_chunks
from steadygaze.regions.region import RegionSet, join_region_sets
from steadygaze.regions.subdivide import subdivide
from support.networks.branching import random_graph
from support.networks.pooled import branching_compound
from support.readers.boxed_maps import assert_same_map, assert_within, by_pattern, halved, inside

SPECS = ("brightness:-0.5..0.5", "patch:x=0,y=0,w=2,h=1", "darkness:0..0.25")
DIMENSIONS = (1, 2, 3)


def branching(dimension: int, *, most: int = 60) -> list[Compound]:
    """Graphs with windows and carried neurons whose maps have between 12 and `most` regions."""
    found = []
    for seed in range(60):
        graph = random_graph(seed)
        kinds = np.concatenate([layer.kind for layer in graph.layers])
        if not ((kinds == ENTRY).any() and (kinds == CARRIED).any()):
            continue
        image = np.random.default_rng(seed).integers(0, 9, (1, 2, 2)) / 8.0
        compound = branching_compound(graph, image, *SPECS[:dimension])
        if (12 if dimension > 1 else 4) <= len(subdivide(compound)) <= most:
            found.append(compound)
        if len(found) == 4:
            break
    assert len(found) > 1
    return found


@pytest.fixture(scope="module", params=DIMENSIONS)
def compounds(request: pytest.FixtureRequest) -> list[Compound]:
    return branching(request.param)


def test_regions_inside_boxes_are_those_of_the_map(compounds: list[Compound]) -> None:
    for number, compound in enumerate(compounds):
        boxes = halved(compound, 5, np.random.default_rng(number))
        found = inside(compound, boxes, threads=2)
        assert found.complete.all()
        assert_within(boxes, found)
        whole = subdivide(compound)
        assert_same_map(compound, found.regions, whole)
        assert found.regions.pattern_count == whole.pattern_count
        check_map(compound, found.regions)


def test_boxes_that_a_limit_left_are_walked_later(compounds: list[Compound], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "NODES", 2)
    monkeypatch.setattr(walks, "SOLID_NODES", 2)
    stops = 0
    for compound in compounds:
        boxes, parts = halved(compound, 4), []
        left = boxes
        while len(left):
            # A chunk of boxes at a time; a limit ends most of them in the middle.
            chunk, rest = left.take(np.arange(min(5, len(left)))), left.take(np.arange(5, len(left)))
            limits = Limits(max_regions=2) if len(parts) < 8 else Limits()
            found = inside(compound, chunk, budget=Budget(limits))
            assert_within(chunk, found)
            stops += not found.complete.all()
            parts.append(found.regions)
            kept = chunk.take(~found.complete)
            left = Boxes.join([kept, rest], boxes.cuts)
        whole = inside(compound, boxes)
        joined = join_region_sets(parts, cuts=boxes.cuts)
        assert len(joined) == len(whole.regions)
        assert_same_map(compound, joined, whole.regions)
        assert joined.pattern_count == whole.regions.pattern_count
    assert stops > 1


def in_chunks(compound: Compound, budget: Budget | None = None, threads: int = 1) -> tuple[list[RegionSet], object]:
    """The regions of all chunks, in order, and the end of the walk."""
    chunks: list[chunked_walk.Chunk] = []
    walked = walk_chunks(compound, chunks.append, budget=budget or Budget(), threads=threads)
    return [chunk.regions for chunk in sorted(chunks, key=lambda chunk: chunk.place)], walked


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked_walk, "LARGEST", 2)
    monkeypatch.setattr(chunked_walk, "SMALLEST", 2)
    monkeypatch.setattr(walks, "NODES", 1)
    monkeypatch.setattr(walks, "SOLID_NODES", 1)


@pytest.mark.usefixtures("small_chunks")
def test_chunks_together_are_the_map(compounds: list[Compound]) -> None:
    for compound in compounds:
        whole = subdivide(compound)
        parts, walked = in_chunks(compound)
        assert walked.stopped is None and walked.whole is None and len(parts) > 1
        assert sum(map(len, parts)) == len(whole)
        volumes = sums(compound, parts)
        assert volumes == pytest.approx(sums(compound, [whole]), abs=1e-12)
        again, _ = in_chunks(compound, threads=2)
        assert [len(part) for part in again] == [len(part) for part in parts]
        assert all(np.array_equal(one.logits, two.logits) for one, two in zip(parts, again, strict=True))


@pytest.mark.usefixtures("small_chunks")
def test_chunks_of_a_walk_that_stops_are_part_of_the_map(compounds: list[Compound]) -> None:
    for compound in compounds:
        whole = sums(compound, [subdivide(compound)])
        parts, walked = in_chunks(compound, Budget(Limits(max_regions=2)))
        if walked.whole is not None:
            parts = [walked.whole]
        assert walked.stopped is not None
        found = sums(compound, parts)
        assert 0.0 < sum(found.values()) < 1.0 - 1e-9
        assert all(volume <= whole[key] + 1e-12 for key, volume in found.items())


def sums(compound: Compound, parts: list[RegionSet]) -> dict[bytes, float]:
    """The volume of every pattern in all parts together."""
    found: dict[bytes, float] = {}
    for part in parts:
        for key, (volume, _) in by_pattern(compound, part).items():
            found[key] = found.get(key, 0.0) + volume
    return found
