"""Filters have all forms: each form agrees with the definition, and a missing form raises an error."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.attention import filters
from steadygaze.attention.filters import Filter, FilterStep, Intervals, find_steps
from steadygaze.attention.inconsistency import original_maps
from steadygaze.attention.map_errors import MapErrors
from steadygaze.attention.measuring import measure
from steadygaze.bounds.bounder import Bounder
from steadygaze.errors import InternalError, OptionError
from steadygaze.question import make_question
from steadygaze.regions.subdivide import subdivide

STEPS = list(find_steps().values())
SHAPE = (2, 5, 4)
BARE = """
from typing import ClassVar

import numpy as np

from steadygaze.attention.filters import FilterStep


class Bare(FilterStep):
    name: ClassVar[str] = "{name}"

    def value(self, maps: np.ndarray) -> np.ndarray:
        return 2.0 * maps
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One more file among the filters: a step called `bare` that doubles, with no form but its values."""
    (tmp_path / "bare_filter.py").write_text(BARE.format(name="bare"), encoding="utf-8")
    monkeypatch.setattr(filters, "__path__", [*filters.__path__, str(tmp_path)])
    find_steps.cache_clear()
    yield tmp_path
    find_steps.cache_clear()


def random_maps(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=SHAPE)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_compiled_code_gives_the_values(step: FilterStep) -> None:
    maps = random_maps(1)
    flat = maps.ravel().copy()
    filters.apply_step(Filter((step.name,)).codes[0], flat, np.full_like(flat, np.nan), SHAPE)
    np.testing.assert_allclose(flat, step.value(maps).ravel(), rtol=0, atol=1e-15)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_enclosures_hold_every_map_inside(step: FilterStep) -> None:
    centre, radius = random_maps(2), np.abs(random_maps(3))
    low, high = step.enclose(Intervals(centre, radius)).ends
    for shift in np.random.default_rng(4).uniform(-1.0, 1.0, size=(200, *SHAPE)):
        value = step.value(centre + shift * radius)
        assert (low <= value).all() and (value <= high).all()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_no_difference_grows_beyond_the_lipschitz_bound(step: FilterStep, order: int) -> None:
    for seed in range(50):
        one, other = random_maps(seed), random_maps(seed + 1000) * 10.0 ** (seed % 5 - 3)
        before = np.linalg.norm((one - other).ravel(), ord=order)
        after = np.linalg.norm((step.value(one) - step.value(other)).ravel(), ord=order)
        assert after <= step.lipschitz(order) * before * (1.0 + 1e-12)


@pytest.mark.parametrize("step", [step for step in STEPS if step.is_linear], ids=lambda step: step.name)
def test_linear_steps_are_linear(step: FilterStep) -> None:
    one, other = random_maps(5), random_maps(6)
    np.testing.assert_allclose(step.value(one - 3.0 * other), step.value(one) - 3.0 * step.value(other), atol=1e-14)


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the script here; browser tests do it otherwise")
@pytest.mark.parametrize("words", [*(step.name for step in STEPS), "abs+mean"])
def test_scripts_give_the_values(words: str) -> None:
    maps, filtered = random_maps(7), Filter.parse(words)
    code = f"""{filtered.script}
let map = Float64Array.from({json.dumps(maps.ravel().tolist())});
for (const step of {json.dumps(filtered.steps)}) map = SgFilters[step](map, {json.dumps(SHAPE)});
console.log(JSON.stringify(Array.from(map)));"""
    outcome = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(json.loads(outcome.stdout), filtered(maps).ravel(), rtol=0, atol=1e-15)


def test_scripts_hold_every_step_once() -> None:
    script = Filter.parse("mean+abs+mean").script
    assert script.count('"mean":') == script.count('"abs":') == 1
    assert Filter.parse("identity").script.startswith("const SgFilters = {")


def test_a_file_in_the_folder_is_a_filter(bare: Path) -> None:
    doubled = Filter.parse("abs+bare")(np.array([[[-1.5]]]))
    assert doubled.tolist() == [[[3.0]]]
    with pytest.raises(OptionError, match=r"expected identity, .*bare.* or several joined by \+"):
        Filter.parse("bear")


def test_two_files_of_one_name_are_refused(bare: Path) -> None:
    (bare / "second_filter.py").write_text(BARE.format(name="abs"), encoding="utf-8")
    with pytest.raises(InternalError, match="already defines the filter 'abs'"):
        Filter.parse("bare")


def test_missing_forms_fail_loudly_where_they_are_asked_for(bare: Path) -> None:
    specs = ["brightness:0.3..0.32", "patch:x=12,y=12,w=4,h=4:0.3..0.32"]
    question = make_question("M-CNN-S", "mnist:69990", specs, filter="bare")
    compound, options = question.compound, question.attention
    original = original_maps(compound, options)
    regions = subdivide(compound)
    with pytest.raises(OptionError, match="filter bare has no Lipschitz bound"):
        measure(compound, regions, options, original)
    with pytest.raises(OptionError, match="filter bare has no compiled code"):
        _ = options.filter.codes
    with pytest.raises(OptionError, match="filter bare has no enclosure"):
        _ = Bounder(question.model.graph, question.perturbed, question.label, options).original
    with pytest.raises(OptionError, match="filter bare has no script"):
        _ = options.filter.script


def test_dense_networks_need_no_compiled_code_but_error_bounds_need_lipschitz(bare: Path) -> None:
    specs = ["brightness:0.3..0.32", "patch:x=12,y=12,w=4,h=4:0.3..0.32"]
    question = make_question("M-FNN-100", "mnist:69990", specs, filter="bare")
    plain = make_question("M-FNN-100", "mnist:69990", specs)
    compound, options = question.compound, question.attention
    regions, original = subdivide(compound), original_maps(compound, options)
    curves = measure(compound, regions, options, original)
    once = measure(plain.compound, regions, plain.attention, original_maps(plain.compound, plain.attention))
    np.testing.assert_allclose(curves.constant, 2.0 * once.constant, rtol=1e-9, atol=1e-12)
    with pytest.raises(OptionError, match="filter bare has no Lipschitz bound"):
        _ = MapErrors(compound, regions.patterns, curves, options).coarse


@given(st.sampled_from(sorted(find_steps())), st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e4]))
def test_a_filter_enlarges_no_difference_by_more_than_its_lipschitz_bound(name: str, seed: int, scale: float) -> None:
    """Every proof about attention uses the bound: one that is too small would make false claims."""
    rng = np.random.default_rng(seed)
    first, second = scale * rng.normal(size=(2, 1, 1, 5, 5))
    step = find_steps()[name]
    for order in (1, 2):
        before, after = (
            np.linalg.norm(values.ravel(), order) for values in (first - second, step.value(first) - step.value(second))
        )
        assert after <= step.lipschitz(order) * before * (1.0 + 1e-12)
