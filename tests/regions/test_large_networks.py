"""Large networks: few polytopes after the clip are cut by further layers, so several threads can share the walk."""

import numpy as np
import pytest

from steadygaze.budget import Budget, Limits
from steadygaze.question import make_question
from steadygaze.regions import subdivide as runs
from steadygaze.regions.assemble import CutTable
from steadygaze.regions.check import check_map
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import Watch, clip_cell, subdivide

NEVER = 1 << 60
FEW = ("brightness:0..0.1", "patch:x=12,y=12,w=4,h=4:0..0.5")
"""The clip cuts the domain into a few polytopes."""
SOLID = ("brightness:0..0.05", "patch:x=12,y=12,w=4,h=4:0..0.5", "darkness:0..0.02")


def volumes(regions: RegionSet) -> dict[bytes, float]:
    """The volume of every pattern, clip included."""
    found: dict[bytes, float] = {}
    for row, volume in enumerate(regions.polytopes.volumes):
        key = regions.patterns[regions.pattern[row]].tobytes() + regions.clips[regions.clip[row]].tobytes()
        found[key] = found.get(key, 0.0) + float(volume)
    return found


def count_runs(specs: tuple[str, ...]) -> int:
    compound = make_question("M-FNN-200", "mnist:69990", specs, property="cr").compound
    table = CutTable(compound.programs)
    return len(clip_cell(compound.programs[0], table.cell(0), table, Watch(Budget(), None)).work)


@pytest.mark.parametrize("specs", [FEW, SOLID])
def test_further_layers_cut_what_the_clip_leaves_whole(specs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    compound = make_question("M-FNN-200", "mnist:69990", specs, property="cr").compound
    monkeypatch.setattr(runs, "LARGE", NEVER)
    assert count_runs(specs) == 1
    one = subdivide(compound)
    monkeypatch.setattr(runs, "LARGE", 1)
    monkeypatch.setattr(runs, "SEEDS", 16)
    assert count_runs(specs) == runs.RUNS
    many = subdivide(compound)
    check_map(compound, many)
    expected, found = volumes(one), volumes(many)
    assert len(one) == len(many)
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([found[key] for key in expected], list(expected.values()), rtol=1e-6, atol=1e-15)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runs, "LARGE", 1)
    monkeypatch.setattr(runs, "SEEDS", 16)
    compound = make_question("M-FNN-200", "mnist:69990", FEW, property="cr").compound
    one, two = subdivide(compound, threads=1), subdivide(compound, threads=2)
    assert (one.polytopes.points == two.polytopes.points).all()
    assert (one.logits == two.logits).all()
    assert (one.cuts == two.cuts).all()


def test_nothing_beside_a_kink_counts_twice(monkeypatch: pytest.MonkeyPatch):
    compound = make_question("M-FNN-200", "mnist:69990", FEW, property="cr").compound
    monkeypatch.setattr(runs, "LARGE", NEVER)
    one = subdivide(compound).accuracy
    monkeypatch.setattr(runs, "LARGE", 1)
    many = subdivide(compound).accuracy
    np.testing.assert_allclose(many.beside.sum(axis=1), one.beside.sum(axis=1), rtol=1e-3)


def test_a_limit_ends_the_first_cuts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runs, "LARGE", 1)
    compound = make_question("M-FNN-200", "mnist:69990", FEW, property="cr").compound
    regions = subdivide(compound, budget=Budget(Limits(timeout_seconds=1e-9)))
    assert regions.stopped is not None
    assert regions.polytopes.volumes.sum() < 1.0
