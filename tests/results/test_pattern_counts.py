"""Regions are counted by signs and winners in all kinds of results, however many polytopes they consist of."""

from pathlib import Path

import numpy as np
import pytest

from steadygaze import load, verify
from steadygaze.engines.map.streamed_map import StreamedMap
from steadygaze.labels import ATTENTIONS, CLASSIFICATIONS
from steadygaze.network.graph import patterns, preactivations
from steadygaze.regions import walks
from steadygaze.results.label_counts import PatternLabels
from steadygaze.results.result import Result
from support.networks.chunked_maps import small_chunks
from support.networks.onnx_files import make_proto
from support.networks.operator_models import floats, node

SPECS = ["patch:x=0,y=0,w=2,h=1", "patch:x=0,y=1,w=1,h=1"]
IMAGE = np.full((1, 2, 2), 51 / 255)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five windows of four entries with different slopes, which meet in points."""
    nodes = [
        node("Flatten", "image", "f"),
        node("MatMul", "f w", "h"),
        node("Add", "h b", "e"),
        node("Reshape", "e s", "r"),
        node("MaxPool", "r", "p", kernel_shape=[1, 4]),
        node("Flatten", "p", "q"),
        node("MatMul", "q v", "y"),
    ]
    weights = {"w": floats(4, 20, seed=3), "v": floats(5, 3, seed=4), "s": np.array([1, 1, 5, 4])}
    # All entries are about equal in the middle of the domain.
    weights["b"] = np.float32(-0.6) * weights["w"].sum(axis=0) + np.float32(0.1) * floats(20, seed=5)
    path = tmp_path_factory.mktemp("model") / "triples.onnx"
    path.write_bytes(make_proto(nodes, weights, [1, 1, 2, 2]).SerializeToString())
    return path


@pytest.fixture(scope="module")
def whole(model: Path) -> Result:
    return verify(model, IMAGE, SPECS, method="map")


def counted(result: Result) -> list[int]:
    """The number of regions, by their classification and by their attention."""
    sets, undecided = result.sets, result.answer.undecided_counts
    return [
        sum(sets[name] for name in names) + undecided[kind]
        for kind, names in (("classification", CLASSIFICATIONS), ("attention", ATTENTIONS))
    ]


def test_a_region_of_several_polytopes_counts_once(whole: Result) -> None:
    polytopes = whole.tiling.answers.regions
    rows = np.column_stack([polytopes.cell, polytopes.clip, polytopes.pattern])
    assert len(np.unique(rows, axis=0)) == whole.region_count < len(polytopes)
    assert counted(whole) == [whole.region_count] * 2


def test_a_grid_of_thetas_has_as_many_patterns(whole: Result) -> None:
    perturbed, graph = whole.question.perturbed, whole.question.model.graph
    shares = (np.arange(250) + 0.5) / 250
    thetas = perturbed.domain.to_theta(np.stack(np.meshgrid(shares, shares), axis=-1).reshape(-1, 2))
    images = np.array([perturbed.image(theta) for theta in thetas]).reshape(len(thetas), -1)
    bits = np.hstack(patterns(graph, preactivations(graph, images)[:-1]))
    held = np.hstack([images <= 0.0, images >= 1.0])
    seen = len(np.unique(np.hstack([bits, held]), axis=0))
    # The grid misses the smallest regions.
    assert 0.8 * whole.region_count <= seen <= whole.region_count


def test_chunks_and_boxes_count_the_same(
    model: Path, whole: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks, "NODES", 4)
    with small_chunks():
        streamed = verify(model, IMAGE, SPECS, method="map")
    assert isinstance(streamed.tiling, StreamedMap) and len(streamed.tiling.chunks) > 1
    streamed.save(tmp_path / "stored")
    for other in (streamed, load(tmp_path / "stored")):
        assert other.region_count == whole.region_count
        assert len(other.regions) == len(whole.regions)
        assert dict(other.sets) == dict(whole.sets) and counted(other) == counted(whole)
    refined = verify(model, IMAGE, SPECS, method="refine", until="exact")
    assert counted(refined) == [refined.region_count] * 2
    assert refined.region_count <= whole.region_count


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 0], 0), ([1, 1], 1), ([2, 2], 2), ([3, 3], 3), ([0, 1], 2), ([0, 2], 2), ([1, 2], 2), ([0, 3], 3),
        ([1, 3], 3), ([2, 3], 2), ([0, 1, 3], 2),
    ],
)  # fmt: skip
def test_labels_of_parts_make_that_of_the_region(labels: list[int], expected: int) -> None:
    """0 kept, 1 lost, 2 both occur, 3 undecided; parts may lie in different chunks."""
    one = np.zeros((1, 2), dtype=np.uint64)
    for kept in (0, 1):
        pairs = [(label, kept) if not kept else (0, label) for label in labels]
        parts = [PatternLabels.of(one, np.array([first]), np.array([second])) for first, second in pairs]
        counts = PatternLabels.joined(parts).counts
        assert counts.sum() == 1 and counts[(expected, 0) if not kept else (0, expected)] == 1
