"""A map in chunks on disk gives the same answers as the same map in memory, joined from chunks or whole."""

import errno
import gc
import os
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steadygaze import StoreError, compare, export, load
from steadygaze.budget import Budget, Limits
from steadygaze.cli import main
from steadygaze.engines.map import chunk_files, map_engine
from steadygaze.engines.map.map_engine import Collector
from steadygaze.engines.map.streamed_map import StreamedMap
from steadygaze.engines.map.whole_map import MapTiling
from steadygaze.errors import InternalError, OptionError
from steadygaze.labels import Label, Property, Verdict
from steadygaze.properties.kept_box import kept_factor
from steadygaze.regions.chunked_walk import Chunk
from steadygaze.regions.region import RegionSet, take_regions
from steadygaze.report.figures import make_figure
from steadygaze.report.page.html import make_report
from steadygaze.report.thresholds import make_thresholds
from steadygaze.results.claims import Violation, Visible, clear_depth
from steadygaze.results.description import find_kept_range
from support.networks.chunked_maps import MOVING, QUESTIONS, Three, make_three, run_in_chunks, small_chunks

DELTAS = ("5%", "20%", "60%", 1e6)


@pytest.fixture(params=QUESTIONS, scope="module")
def three(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Three:
    return make_three(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Three:
    return make_three(MOVING, tmp_path_factory)


def test_the_maps_are_what_they_are_called(three: Three):
    assert isinstance(three.streamed.tiling, StreamedMap) and isinstance(three.loaded.tiling, StreamedMap)
    assert isinstance(three.joined.tiling, MapTiling) and isinstance(three.whole.tiling, MapTiling)
    assert len(three.streamed.tiling.chunks) > 1


@pytest.mark.parametrize("delta", [None, *DELTAS])
def test_all_answers_are_the_same(three: Three, delta: str | float | None):
    results = [result if delta is None else result.with_delta(delta) for result in three[:4]]
    whole = results[2]
    for other in (results[0], results[1], results[3]):
        # A map in memory may prove more on kinks.
        if other.verdict is not Verdict.UNDECIDED or not other.sliver_share:
            assert other.verdict is whole.verdict and other.status is whole.status
        assert dict(other.sets) == dict(whole.sets)
        assert other.answer.undecided_counts == whole.answer.undecided_counts
        assert other.coverage == pytest.approx(whole.coverage, abs=1e-12)
        for name, bounds in whole.areas.items():
            assert other.areas[name] == pytest.approx(bounds, abs=1e-6), name
        for name, near in whole.nearest.items():
            own = other.nearest[name]
            assert (own.theta is None) == (near.theta is None)
            assert own.low == pytest.approx(near.low, abs=1e-6) and own.high == pytest.approx(near.high, abs=1e-6)
        np.testing.assert_allclose(other.answer.winner_shares, whole.answer.winner_shares, atol=1e-12)
        for label in (Label.CR, Label.MR):
            for attention in (Label.AR, Label.IR):
                assert other.answer.count(label, attention) == whole.answer.count(label, attention)


def test_kept_shares_and_witnesses_are_the_same(three: Three):
    for other in (three.streamed, three.joined, three.loaded):
        for name, bounds in three.whole.kept_shares.items():
            assert other.kept_shares[name] == pytest.approx(bounds, abs=1e-5), name
        assert [witness.kind for witness in other.witnesses] == [witness.kind for witness in three.whole.witnesses]
        assert other.enough_delta == pytest.approx(three.whole.enough_delta, rel=1e-5)


def test_claims_come_from_a_chunk_with_violations_that_the_file_shows(three: Three):
    result, kind = three.streamed, Violation.ATTENTION
    answer = result.answer
    by_distance = sorted(range(len(answer.facts)), key=lambda number: answer.facts[number].squares[kind])
    depths = [answer.facts[number].depths[kind] for number in by_distance]
    if not max(depths) > 1.01 * depths[0]:
        return  # the nearest chunk has a violation about as deep as any
    nearest, wanted = answer.load(by_distance[0]), 0.5 * (depths[0] + max(depths))
    per_unit = clear_depth(nearest, kind, np.zeros(1, dtype=np.int64), Visible(0.0, 1.0)) - answer.delta
    tried = list(answer.claims(kind, Visible(0.0, (wanted - answer.delta) / per_unit)))
    assert min(result.at(claim.theta).inconsistency for claim in tried) > depths[0]


def test_regions_are_the_same_one_by_one(three: Three):
    count = three.whole.region_count
    chosen = np.unique(np.linspace(0, count - 1, 40).astype(int)).tolist()
    for other in (three.streamed, three.joined, three.loaded):
        assert len(other.regions) == count
        for number in [*chosen, -1]:
            own, region = other.regions[number], three.whole.regions[number]
            assert own.index == region.index
            np.testing.assert_array_equal(own.polygon, region.polygon)
            for layer, expected in zip(own.pattern, region.pattern, strict=True):
                np.testing.assert_array_equal(layer, expected)
            np.testing.assert_array_equal(own.clip, region.clip)
            np.testing.assert_allclose(own.slope, region.slope, rtol=1e-5, atol=1e-5)
            assert (own.classification, own.attention) == (region.classification, region.attention)
    with pytest.raises(IndexError):
        three.streamed.regions[count]


def test_the_region_of_a_theta_is_the_same(three: Three, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chunk_files, "KEPT", 1000)
    domain = three.whole.question.perturbed.domain
    thetas = np.random.default_rng(3).uniform(domain.low, domain.high, (300, domain.dimension))
    expected = [three.whole.region_at(theta) for theta in thetas]
    assert [three.loaded.region_at(theta) for theta in thetas] == expected
    assert [three.joined.region_at(theta) for theta in thetas] == expected
    for theta in thetas[:20]:
        assert three.loaded.at(theta).inconsistency == pytest.approx(three.whole.at(theta).inconsistency, rel=1e-9)


def test_the_boundary_is_the_same(three: Three):
    for wanted in (Property.CR, Property.AR, Property.BOTH):
        expected = three.whole.boundary(wanted)
        for other in (three.joined, three.loaded):
            found = other.boundary(wanted)
            assert found.reachable_share == pytest.approx(expected.reachable_share, abs=1e-6)
            assert len(found.components) == len(expected.components)
            assert len(found.enclaves) == len(expected.enclaves)
            assert found.starts == expected.starts and len(found.undecided) == len(expected.undecided)
            assert found.strip_share == pytest.approx(expected.strip_share, abs=1e-6)
            assert found.enclosed_share == pytest.approx(expected.enclosed_share, abs=1e-6)
            assert found.distance == pytest.approx(expected.distance, rel=1e-9)
            for own, same in zip(
                found.components + found.enclaves, expected.components + expected.enclaves, strict=True
            ):
                assert own.share == pytest.approx(same.share, abs=1e-6)
                assert own.measure == pytest.approx(same.measure, rel=1e-9)
                np.testing.assert_array_equal(own.inner, same.inner)
                np.testing.assert_array_equal(own.outer, same.outer)
            for own, same in zip(found.enclaves, expected.enclaves, strict=True):
                assert own.distance == pytest.approx(same.distance, rel=1e-9)


def test_the_kept_range_is_proved_by_all(three: Three):
    for wanted, deltas in ((Property.CR, DELTAS[:1]), (Property.AR, DELTAS), (Property.BOTH, DELTAS[1:3])):
        for delta in deltas:
            expected = find_kept_range(three.whole.with_delta(delta), wanted)
            for other in (three.streamed, three.loaded):
                found = find_kept_range(other.with_delta(delta), wanted)
                assert (found is None) == (expected is None)
                if found is not None and expected is not None:
                    assert found.is_all == expected.is_all
                    np.testing.assert_allclose(found.low + found.high, expected.low + expected.high, atol=1e-6)


@pytest.mark.parametrize("what", ["regions", "pieces"])
def test_exports_of_loaded_chunks_are_those_of_the_run(
    three: Three, what: str, request: pytest.FixtureRequest, tmp_path: Path
):
    """Each question in two formats: every format meets regions and pieces."""
    formats = ["csv", "parquet", "geojson"][: 3 if three.whole.question.perturbed.domain.dimension < 3 else 2]
    number = list(QUESTIONS).index(request.node.callspec.params["three"]) + (what == "pieces")
    format = formats[number % len(formats)]
    rows = [
        export(result, tmp_path / name, format=format, what=what)
        for name, result in (("run", three.streamed), ("loaded", three.loaded), ("whole", three.whole))
    ]
    assert rows[0] == rows[1] == rows[2]
    assert (tmp_path / "run").read_bytes() == (tmp_path / "loaded").read_bytes()


@pytest.mark.parametrize("three", [MOVING, "one parameter", "three parameters"], indirect=True)
def test_a_report_says_that_colours_are_merged(three: Three):
    assert "merged on a grid of 900 × 900 points; each colour is proved" in make_report(three.loaded)


def test_a_report_claims_what_the_map_proves(three: Three):
    steps, expected = make_thresholds(three.loaded), make_thresholds(three.whole)
    for step, delta in list(enumerate(steps.deltas))[::4]:
        exact = three.whole.with_delta(float(delta)).areas
        for name, (low, high) in exact.items():
            if name != "undecided":
                own = steps.areas[name][step]
                assert own[0] <= high + 1e-9 and low <= own[1] + 1e-9
                assert own[0] <= low + 1e-6 and high <= own[1] + 1e-6
    assert expected.texts[expected.chosen] == steps.texts[steps.chosen]
    assert three.loaded.areas["AR"] == pytest.approx(tuple(steps.areas["AR"][steps.chosen]), abs=1e-12)


@pytest.mark.parametrize("kind", ["map", "path", "strip", "boundary", "columns", "tiling"])
def test_every_figure_is_drawn(moving: Three, kind: str):
    assert make_figure(kind, moving.loaded).get_axes()


def test_a_comparison_is_the_same(moving: Three):
    pair = [[result, result.with_delta("60%")] for result in (moving.loaded, moving.whole)]
    found, expected = (compare(results).differences for results in pair)
    for own, other in zip(found, expected, strict=True):
        assert own.property is other.property
        for name, bounds in other.shares.items():
            assert own.shares[name] == pytest.approx(bounds, abs=1e-6), name


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_byte(moving: Three, threads: int, tmp_path: Path):
    other = run_in_chunks(MOVING, threads=threads).save(tmp_path / "other")
    names = sorted(path.name for path in moving.place.glob("regions*.npz"))
    assert names == sorted(path.name for path in other.glob("regions*.npz"))
    for name in names:
        assert (other / name).read_bytes() == (moving.place / name).read_bytes(), name


def test_damaged_missing_and_swapped_chunks_are_refused_by_name(moving: Three, tmp_path: Path):
    place = tmp_path / "copy"
    shutil.copytree(moving.place, place)
    first, second = place / "regions-00000.npz", place / "regions-00001.npz"
    content, other = first.read_bytes(), second.read_bytes()
    for damage in (content[:-1], content[:1000] + bytes([content[1000] ^ 1]) + content[1001:], other, b""):
        first.write_bytes(damage)
        with pytest.raises(StoreError, match=r"regions-00000\.npz"):
            _ = load(place).with_delta("60%").areas
    first.unlink()
    with pytest.raises(StoreError, match=r"regions-00000\.npz"):
        _ = load(place).with_delta("60%").areas


@pytest.mark.parametrize("three", [MOVING, "three parameters"], indirect=True)
def test_maps_stored_with_a_coarser_grid_are_read(
    three: Three, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(chunk_files, "CELLS", {2: 64, 3: 16})
        place = run_in_chunks(request.node.callspec.params["three"]).save(tmp_path / "old")
    assert np.load(place / "regions.npz")["cells"].shape[1] == 4096 // 8
    old, domain = load(place), three.whole.question.perturbed.domain
    for theta in np.random.default_rng(4).uniform(domain.low, domain.high, (100, domain.dimension)):
        assert old.region_at(theta) == three.whole.region_at(theta)


def test_force_replaces_a_result_in_chunks(moving: Three, tmp_path: Path):
    place = tmp_path / "copy"
    shutil.copytree(moving.place, place)
    with pytest.raises(StoreError):
        moving.whole.save(place)
    moving.whole.save(place, force=True)
    assert [path.name for path in place.glob("regions*")] == ["regions.npz"]
    moving.streamed.save(place, force=True)
    assert load(place).region_count == moving.whole.region_count
    (place / "notes.txt").write_text("mine")
    with pytest.raises(StoreError):
        moving.whole.save(place, force=True)
    assert (place / "notes.txt").exists()


def test_a_partial_map_says_what_is_proved(moving: Three, tmp_path: Path):
    partial = run_in_chunks(MOVING, limits=Limits(max_regions=600))
    loaded = load(partial.save(tmp_path / "partial"))
    assert isinstance(partial.tiling, StreamedMap) and "600" in str(partial.stopped)
    for result in (partial, loaded):
        assert 600 <= result.region_count < moving.whole.region_count and 0.0 < result.coverage < 1.0
        assert not result.is_complete and "Partial: " in result.described.guarantee
        assert find_kept_range(result, Property.CR) is None
        for name, (low, high) in moving.whole.areas.items():
            own = result.areas[name]
            assert name == "undecided" or (own[0] <= low + 1e-9 and high <= own[1] + 1e-9), name
        assert result.nearest[Label.CR].low == 0.0
        with pytest.raises(OptionError):
            result.boundary()
        assert "Partial: " in make_report(result)


def test_a_run_that_is_over_loads_few_chunks_and_claims_no_more(moving: Three):
    tiling, budget, loads = moving.streamed.tiling, Budget(), list[int]()
    assert isinstance(tiling, StreamedMap)
    answer = replace(tiling, budget=budget).answer(moving.streamed.answer.delta)
    sharp, late = (replace(answer, load=lambda number: loads.append(number) or answer.load(number)) for _ in range(2))
    names = (Label.CR, Label.AR)
    boxes = {name: sharp.suspects(name) for name in names}
    assert loads
    loads.clear()
    budget.cancelled.set()
    assert sharp.nearest  # nothing runs: the limits of a run do not count
    with budget.running():
        loads.clear()
        coarse = {name: late.suspects(name) for name in names}
        assert not loads
        found = late.nearest
        assert len(loads) <= len(names)
    for name in names:
        own, wanted = found[name], sharp.nearest[name]
        assert own.low <= wanted.low and own.high >= wanted.high and (own.theta is None) == (wanted.theta is None)
        least, most = (min(kept_factor(answer.compound, group) for group in part[name]) for part in (coarse, boxes))
        assert least <= most


def test_threads_share_the_chunks_that_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch):
    collector, both, written = object.__new__(Collector), threading.Barrier(2), list[int]()
    collector.lock, collector.parts = threading.Lock(), {(0, 0, 0): (None, 0), (0, 0, 1): (None, 1)}  # type: ignore

    def write(self: Collector, place: tuple[int, int, int], answers: object, ids: int) -> None:
        both.wait(30)
        written.append(ids)

    monkeypatch.setattr(Collector, "_write", write)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(Collector._write_all, [collector, collector]))
    assert sorted(written) == [0, 1]


def test_temporary_folders_vanish():
    result = run_in_chunks(MOVING)
    assert isinstance(result.tiling, StreamedMap) and result.tiling.chunks.folder is not None
    folder = result.tiling.chunks.folder.path
    assert len(list(folder.iterdir())) == len(result.tiling.chunks)
    del result
    gc.collect()
    assert not folder.exists()


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("fault", ["full disk", "no folder"])
def test_an_unusable_temporary_folder_is_refused_in_one_line(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    if fault == "full disk":
        monkeypatch.setattr(chunk_files, "write_arrays", _full)
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with small_chunks():
        specs = [word for spec in QUESTIONS[MOVING][0] for word in ("--perturb", spec)]
        out = ["--out", str(tmp_path / "result"), "--json"]
        code = main(["verify", "M-FNN-100", "--image", "mnist:69993", *specs, "--method", "map", *out])
    said = capsys.readouterr().err
    assert code == 2 and "internal error" not in said and len(said.splitlines()) == 1
    assert {"full disk": "No space left on device", "no folder": "No such file"}[fault] in said and "TMPDIR" in said
    assert not list(tmp_path.iterdir())


FAULTS = {
    "a dropped region": lambda chunk: replace(
        chunk, regions=take_regions(chunk.regions, np.arange(1, len(chunk.regions)))
    ),
    "a flipped logit": lambda chunk: _changed(chunk, logits=-chunk.regions.logits),
    "a wrong pattern": lambda chunk: _changed(chunk, pattern=np.roll(chunk.regions.pattern, 1)),
}


def _without_first(regions: RegionSet) -> RegionSet:
    return take_regions(regions, np.arange(1, len(regions)))


def _changed(chunk: Chunk, **columns: np.ndarray) -> Chunk:
    return replace(chunk, regions=replace(chunk.regions, **columns))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_chunk_is_found(fault: str, monkeypatch: pytest.MonkeyPatch):
    take = map_engine.Collector.take
    monkeypatch.setattr(
        map_engine.Collector,
        "take",
        lambda self, chunk: take(self, FAULTS[fault](chunk) if chunk.place[2] == 3 else chunk),
    )
    with pytest.raises(InternalError):
        run_in_chunks(MOVING)
