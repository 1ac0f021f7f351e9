"""The known numbers of regions of the common tasks, degenerate ones included, walked in one run and in several."""

import json
from pathlib import Path

import numpy as np
import pytest

from steadygaze.budget import Budget
from steadygaze.compound import plain_program
from steadygaze.regions import subdivide as engine
from steadygaze.regions.assemble import Block, CutTable

TASKS = Path(__file__).parents[2] / "benchmarks" / "tasks"
COUNTS = json.loads((TASKS / "tasks.json").read_text(encoding="utf-8"))
NAMES = ["w50d2", "w50d8", "w50d2-he", "w50d8-he", "w50d2-dup", "w50d8-dup-he", "w50d2-zb", "w50d8-zb-he"]
NAMES += ["w50d2-3d", "w50d8-3d", "w50d2-he-3d"]


def read_layers(name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    with np.load(TASKS / f"{name}.npz") as data:
        return [(data[f"W{i}"].astype(float), data[f"b{i}"].astype(float)) for i in range(len(data.files) // 2)]


@pytest.mark.parametrize("name", NAMES)
def test_number_of_regions(name):
    found = engine.subdivide_cells([plain_program(read_layers(name))])
    assert len(found) == COUNTS[name]["regions"]
    assert found.polytopes.volumes.sum() == pytest.approx(1.0, abs=1e-12)
    assert len(found.patterns) == len(found)


@pytest.mark.parametrize("name", ["w50d2", "w50d2-3d"])
def test_several_polytopes_on_the_stack_give_the_same_regions(name):
    """Polytopes that enter a layer one after another share its forms, but not its pattern."""
    cell = plain_program(read_layers(name))
    whole = engine.subdivide_cells([cell])
    table = CutTable([cell])
    watch = engine.Watch(Budget(), None)
    first = Block(len(table), len(cell.low))
    engine._walk(cell, table.cell(0), np.zeros(1, dtype=np.int64), 0, first, watch)
    assert len(first) > 50
    second = Block(1000, len(cell.low))
    engine._walk(cell, first.polytopes(), np.arange(len(first.polytopes())), 1, second, watch)
    assert len(second.polytopes()) == len(whole)
    within = np.bincount(np.concatenate(second.origins), second.polytopes().volumes)
    np.testing.assert_allclose(within, first.polytopes().volumes, rtol=1e-9)
    np.testing.assert_allclose(np.sort(second.polytopes().volumes), np.sort(whole.polytopes.volumes), rtol=1e-9)
