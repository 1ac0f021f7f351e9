"""An exhausted budget gives a partial map: no exception, the reason in `stopped`, only regions of the full map."""

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from steadygaze.budget import Budget, Limits, container_gib
from steadygaze.compound import Compound
from steadygaze.images import read_image
from steadygaze.network.model import read_model
from steadygaze.perturbation import compose, parse_spec
from steadygaze.regions.assemble import CutTable
from steadygaze.regions.chunked_walk import walk_chunks
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import Watch, subdivide, subdivide_boxes
from steadygaze.zoo import image_path, model_path
from support.readers.maps import clip_bits, owners, pattern_bits


@pytest.fixture(scope="module")
def compound() -> Compound:
    model = read_model(model_path("M-FNN-100"))
    image = read_image(image_path("mnist:69992")).pixels
    perturbed = compose([parse_spec("translate:dy=2"), parse_spec("brightness:0..0.5")], image)
    return Compound(model.graph, model.chain, perturbed)


@pytest.fixture(scope="module")
def one_cell() -> Compound:
    model = read_model(model_path("M-FNN-100"))
    image = read_image(image_path("mnist:69993")).pixels
    perturbed = compose([parse_spec("brightness"), parse_spec("patch:x=12,y=12,w=4,h=4")], image)
    return Compound(model.graph, model.chain, perturbed)


@pytest.fixture(scope="module")
def full(compound: Compound) -> RegionSet:
    regions = subdivide(compound)
    assert regions.stopped is None and len(regions) > 2000
    return regions


def by_pattern(compound: Compound, regions: RegionSet) -> dict[bytes, int]:
    rows = np.hstack([clip_bits(compound, regions), pattern_bits(regions, compound.hidden)])
    found = {bytes([cell]) + row.tobytes(): i for i, (cell, row) in enumerate(zip(regions.cell, rows, strict=True))}
    assert len(found) == len(regions)
    return found


def assert_partial(compound: Compound, part: RegionSet, full: RegionSet) -> None:
    assert part.stopped is not None
    assert len(part) < len(full)
    assert part.polytopes.volumes.sum() < 1 - 1e-6
    everyone = by_pattern(compound, full)
    for pattern, number in by_pattern(compound, part).items():
        same = everyone[pattern]
        assert np.array_equal(part.polytopes[number], full.polytopes[same])
        assert np.allclose(part.logits[number], full.logits[same], rtol=0, atol=1e-9)
    assert (np.abs(part.polytopes.facets) <= len(part.cuts)).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("most", [1, 500, 1500])
def test_limit_of_regions(compound: Compound, full: RegionSet, most: int, threads: int) -> None:
    part = subdivide(compound, budget=Budget(Limits(max_regions=most)), threads=threads)
    assert str(most) in part.stopped
    assert len(part) >= most
    assert_partial(compound, part, full)


def test_points_of_a_partial_map_are_known_or_left_out(compound: Compound, full: RegionSet) -> None:
    part = subdivide(compound, budget=Budget(Limits(max_regions=500)))
    points = np.random.default_rng(0).random((500, 2))
    _, depth = owners(part, points)
    assert abs((depth > 0).mean() - part.polytopes.volumes.sum()) < 0.1
    assert (owners(full, points)[1] > -1e-9).all()


@pytest.mark.parametrize("most", [1, 100, 1000])
def test_a_map_is_called_partial_exactly_when_something_is_missing(most: int) -> None:
    """The budget is polled now and then: a map that ends before the next poll is whole, whatever the limit."""
    model = read_model(model_path("M-FNN-100"))
    image = read_image(image_path("mnist:69990")).pixels
    compound = Compound(model.graph, model.chain, compose([parse_spec("translate:dy=1")], image))
    regions = subdivide(compound, budget=Budget(Limits(max_regions=most)))
    assert (regions.stopped is None) == (abs(regions.polytopes.volumes.sum() - 1) < 1e-9)


@pytest.mark.parametrize("calls", [1, 2])
def test_interrupted_by_the_user(
    compound: Compound, full: RegionSet, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steadygaze.regions.walks.NODES", 500)
    budget = Budget()
    seen = []

    def progress(share: float, regions: int) -> None:
        seen.append((share, regions))
        if len(seen) == calls:
            budget.cancelled.set()

    part = subdivide(compound, budget=budget, progress=progress)
    assert part.stopped == "interrupted"
    assert_partial(compound, part, full)


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Ctrl-C interrupts, even where the tests run in the background and inherit that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("in_chunks", [False, True])
def test_an_interrupt_of_the_caller_ends_all_threads(
    one_cell: Compound, in_chunks: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steadygaze.regions.walks.NODES", 20)
    budget, walked = Budget(), threading.Event()

    def progress(share: float, regions: int) -> None:
        if not walked.is_set():
            walked.set()
            _thread.interrupt_main()  # as Ctrl-C
        time.sleep(0.002)

    with pytest.raises(KeyboardInterrupt):
        if in_chunks:
            walk_chunks(one_cell, lambda chunk: None, budget=budget, threads=threads, progress=progress)
        else:
            subdivide(one_cell, budget=budget, threads=threads, progress=progress)
    assert walked.is_set() and budget.regions < 200
    assert budget.cancelled.is_set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_in_one_thread_ends_the_others(error: type[BaseException]) -> None:
    watch, walking = Watch(Budget(), None), threading.Event()

    def walk(*, fails: bool) -> None:
        with watch.ending_all():
            if fails:
                assert walking.wait(30)
                raise error
            while watch.goes_on():
                walking.set()
                time.sleep(0.001)

    with pytest.raises(error), ThreadPoolExecutor(2) as pool:
        others = pool.submit(walk, fails=False), pool.submit(walk, fails=True)
        for other in others:
            other.result(30)
    assert watch.failed and watch.budget.cancelled.is_set() == (error is KeyboardInterrupt)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(timeout_seconds=1e-9), "timeout"),
        (Limits(memory_gib=1e-6), "memory"),
        (None, "interrupted"),
    ],
)
def test_exhausted_before_the_first_region(
    compound: Compound, full: RegionSet, limits: Limits | None, reason: str
) -> None:
    budget = Budget(limits or Limits(), started=time.monotonic() - 1)
    if limits is None:
        budget.cancelled.set()
    part = subdivide(compound, budget=budget)
    assert reason in part.stopped
    assert len(part) == 0
    assert part.polytopes.volumes.sum() == 0
    assert part.logits.shape == (0, 3, 10)
    assert_partial(compound, part, full)


@pytest.mark.parametrize(
    ("groups", "limits", "gib"),
    [
        ("0::/a/b\n", {"memory.max": "max", "a/memory.max": str(2**31), "a/b/memory.max": "max"}, 2.0),
        ("3:cpu:/\n4:memory:/x\n", {"memory/x/memory.limit_in_bytes": str(2**30)}, 1.0),
        ("0::/\n", {"memory.max": str(2**32)}, 4.0),
        ("nothing\n", {}, np.inf),
    ],
)
def test_limits_of_nested_groups_count(tmp_path: Path, groups: str, limits: dict[str, str], gib: float) -> None:
    files = {"proc/self/cgroup": groups} | {f"sys/fs/cgroup/{file}": limits[file] for file in limits}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert container_gib(tmp_path) == gib


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_ends_at_the_whole_domain(compound: Compound, full: RegionSet, threads: int) -> None:
    seen: list[tuple[float, int]] = []
    budget = Budget()
    subdivide(compound, budget=budget, threads=threads, progress=lambda share, regions: seen.append((share, regions)))
    shares, regions = (np.array(column) for column in zip(*seen, strict=True))
    assert (np.diff(shares) >= 0).all() and (np.diff(regions) >= 0).all()
    assert shares[-1] == pytest.approx(1, abs=1e-9)
    assert regions[-1] == budget.regions == len(full)


def test_generous_limits_change_nothing(compound: Compound, full: RegionSet) -> None:
    limits = Limits(timeout_seconds=3600, max_regions=10**9)
    regions = subdivide(compound, budget=Budget(limits))
    assert regions.stopped is None
    assert np.array_equal(regions.polytopes.points, full.polytopes.points)
    assert np.array_equal(regions.logits, full.logits)


def test_limit_before_the_clip_has_made_a_piece(compound: Compound, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steadygaze.regions.walks.NODES", 1)
    corners = compound.corners
    table = CutTable(corners)
    low, high = (np.array([getattr(cell, name) for cell in corners]) for name in ("low", "high"))
    ends = np.stack([low, high], axis=1)
    sides = np.array([[[table.side(axis, side, box[side]) for side in (0, 1)] for axis in (0, 1)] for box in ends])
    budget = Budget()
    budget.cancelled.set()
    found = subdivide_boxes(compound, np.arange(len(low)), low, high, sides, table.cuts(), budget=budget)
    assert not found.complete.any() and len(found.regions) == 0 and found.regions.stopped == "interrupted"
