"""Shifts on triangles in all engines: the same regions and shares, attention by bounds alone, results on disk."""

from pathlib import Path

import numpy as np
import pytest

import steadygaze
from steadygaze.budget import Budget, Limits
from steadygaze.engines.map import map_engine
from steadygaze.engines.refine.boxes import State
from steadygaze.errors import OptionError
from steadygaze.labels import Verdict
from steadygaze.regions import chunked_walk

MODEL, IMAGE = "M-FNN-100", "mnist:69992"
SHIFT = "shift:dx=2,dy=2,interp=triangle"
OBJECT = {"attention": "object", "mask": "auto:bright=0.2,grow=1", "tau": "0.3"}


def labels_of(method: str, *specs: str, **options: object) -> steadygaze.Result:
    return steadygaze.verify(MODEL, IMAGE, list(specs), method=method, property="cr", **options)  # type: ignore[arg-type]


def test_map_refinement_and_search_agree() -> None:
    results = {method: labels_of(method, SHIFT) for method in ("map", "refine", "bfs")}
    assert {result.region_count for result in results.values()} == {2132}
    low, high = np.transpose([result.areas["CR"] for result in results.values()])
    assert high.max() - low.min() < 1e-6
    assert max(result.areas["undecided"][1] for result in results.values()) < 1e-6
    for method in ("gbs", "boundary"):
        assert labels_of(method, SHIFT).verdict is Verdict.NOT_ROBUST
    assert not results["map"].is_measured
    # The label at a thousand thetas by a plain pass, and on the map.
    result = results["map"]
    domain, graph = result.question.perturbed.domain, result.question.model.graph
    thetas = np.random.default_rng(0).uniform(domain.low, domain.high, (1000, 2))
    logits = graph.logits(result.question.perturbed.images(thetas))
    margins = logits[:, 9] - np.delete(logits, 9, axis=1).max(axis=1)
    polytopes, answer = result.answer.joint.polytopes, result.answer.joint.pieces
    for theta, margin in zip(thetas, margins, strict=True):
        piece = polytopes.deepest(domain.to_unit(theta))
        assert piece is not None
        if abs(margin) > 1e-6:
            assert bool(answer.keeps_label[piece]) == (margin > 0)


def test_exact_regions_inside_boxes_that_cross_diagonals() -> None:
    """Boxes of odd sizes are subdivided on both sides of the diagonal that crosses some of them."""
    specs = ["shift:dx=1,dy=1,interp=triangle:0.3..0.97/0.41..0.99"]
    whole = steadygaze.verify("M-CNN-S", IMAGE, specs, method="map", property="cr")
    parts = steadygaze.verify("M-CNN-S", IMAGE, specs, method="refine", until="exact", property="cr")
    boxes, side = parts.tiling.boxes, parts.question.compound.corners[1].side
    reach = np.maximum(side[:2] * boxes.low, side[:2] * boxes.high).sum(axis=1) + side[2]
    least = np.minimum(side[:2] * boxes.low, side[:2] * boxes.high).sum(axis=1) + side[2]
    is_exact = boxes.state == State.EXACT
    assert ((least < 0.0) & (reach > 0.0) & is_exact).any()
    assert max(whole.areas["undecided"][1], parts.areas["undecided"][1]) < 1e-8
    assert max(whole.areas["CR"][0], parts.areas["CR"][0]) <= min(whole.areas["CR"][1], parts.areas["CR"][1])


def test_three_parameters() -> None:
    specs = ("shift:dx=1,dy=1,interp=triangle:-0.25..0.25", "brightness:0..0.05")
    exact, refined = labels_of("map", *specs), labels_of("refine", *specs, until=0.01)
    assert exact.areas["CR"][0] <= refined.areas["CR"][1]
    assert refined.areas["CR"][0] <= exact.areas["CR"][1]
    assert exact.areas["undecided"][1] < 1e-5


def test_a_map_in_chunks_and_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = labels_of("map", SHIFT)
    monkeypatch.setattr(map_engine, "WHOLE", 500)
    monkeypatch.setattr(chunked_walk, "chunk_size", lambda compound: 256)
    found = labels_of("map", SHIFT)
    found.save(tmp_path / "chunks")
    for result in (found, steadygaze.load(tmp_path / "chunks")):
        assert not result.is_measured
        assert result.region_count == whole.region_count
        np.testing.assert_allclose(result.areas["CR"], whole.areas["CR"], atol=1e-9)
        assert result.at([0.5, -0.25]).label == whole.at([0.5, -0.25]).label


def test_a_stored_map_answers_again(tmp_path: Path) -> None:
    found = labels_of("map", SHIFT)
    found.save(tmp_path / "map")
    again = steadygaze.load(tmp_path / "map")
    assert (again.areas, again.is_measured, again.region_count) == (found.areas, False, found.region_count)


def test_bounds_on_attention_hold_at_single_thetas() -> None:
    result = steadygaze.verify(
        "M-CNN-S",
        IMAGE,
        ["shift:dx=2,dy=2,interp=triangle:-0.5..0.5"],
        until=0.3,
        budget=Budget(Limits(60.0)),
        **OBJECT,
    )
    assert result.tiling.kind == "refinement"
    domain, boxes = result.question.perturbed.domain, result.tiling.boxes
    points = np.random.default_rng(0).random((60, 2))
    inside = ((boxes.low[None] <= points[:, None]) & (points[:, None] <= boxes.high[None])).all(axis=2)
    owner = inside.argmax(axis=1)
    assert inside.any(axis=1).all()
    for point, box in zip(points, owner, strict=True):
        found = result.at(domain.to_theta(point))
        assert boxes.inconsistency[box, 0] - 1e-9 <= found.inconsistency <= boxes.inconsistency[box, 1] + 1e-9
        assert boxes.margin[box, 0] - 1e-9 <= found.margin <= boxes.margin[box, 1] + 1e-9


@pytest.mark.parametrize("method", ["map", "bfs", "gbs", "boundary"])
def test_attention_of_whole_regions_is_refused_with_advice(method: str) -> None:
    with pytest.raises(OptionError, match="use --method refine, or --property cr") as refusal:
        steadygaze.verify(MODEL, IMAGE, [SHIFT], method=method, dist="l1")
    assert "\n" not in str(refusal.value)
