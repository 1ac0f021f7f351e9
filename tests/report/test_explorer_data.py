"""The data of the interactive map, without a browser: shares at every step, steps of units, packed arrays."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

from steadygaze.api import verify
from steadygaze.labels import Kept
from steadygaze.polytopes.grid import ASIDE
from steadygaze.report.page import explorer, merged_areas
from steadygaze.report.page.explorer import Explorer, make_explorer
from steadygaze.report.page.merged_areas import GRID, merge_tiles
from steadygaze.report.page.network_data import KINDS, pack
from steadygaze.report.page.tiles import make_planes, make_tiles, shown_top, unit_values
from steadygaze.report.thresholds import make_thresholds
from steadygaze.results import other_deltas
from steadygaze.results.other_deltas import ENOUGH
from steadygaze.results.result import Result

MOVING = ["translate:dx=2:-0.5..1", "brightness:0..0.3"]
KEPT = ["brightness:0..1", "patch:x=10,y=10,w=5,h=5"]


def explore(result: Result) -> Explorer:
    made = make_explorer(result, make_thresholds(result))
    assert made is not None
    return made


@pytest.fixture(scope="module")
def moving() -> Result:
    return verify("M-FNN-100", "mnist:69998", MOVING, delta=4.321, threads=1)


CASES = {
    "kept": (KEPT, {}),
    "moving L1": (["translate:dx=1:0..0.4", "brightness:0..0.2"], {"dist": "l1"}),
    "boxes": (KEPT, {"method": "refine", "until": 0.2, "delta": "50%"}),
    "label alone": (KEPT, {"method": "refine", "property": "cr"}),
    "one parameter": (["brightness:0..0.3"], {"filter": "abs"}),
}


@pytest.mark.parametrize("name", CASES)
def test_shares_and_labels_at_steps_are_those_of_the_result(name: str) -> None:
    specs, options = CASES[name]
    check_steps(verify("M-FNN-100", "mnist:69990", specs, threads=1, **options))


def test_shares_and_labels_of_moving_maps(moving: Result) -> None:
    steps = check_steps(moving)
    assert len(steps.slab_unit) and steps.texts[steps.chosen] == "4.321"


def test_a_coarse_error_bound_leaves_more_undecided_and_claims_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    result = verify("M-FNN-100", "mnist:69998", MOVING, delta=4.321, threads=1)
    assert result.answer.shares is not None and result.tiling.answers.errors is not None
    monkeypatch.setitem(result.tiling.answers.errors.__dict__, "coarse", 0.1)
    check_steps(result)
    monkeypatch.setattr(other_deltas, "ENOUGH", 1.0)
    steps = check_steps(result, most_open=1.0)
    assert np.ptp(steps.areas["AR"][40]) > 1e-3, "the bound is as coarse as it was made"


def check_steps(result: Result, *, most_open: float = ENOUGH):  # type: ignore[no-untyped-def]
    """Nothing is claimed at a step that the result does not prove, and little more than there is left undecided."""
    steps = make_thresholds(result)
    assert steps.deltas[steps.chosen] == result.answer.delta
    assert (np.diff(steps.deltas) > 0.0).all() and len(set(steps.texts)) == len(steps.texts)
    for name, bounds in result.areas.items():
        np.testing.assert_allclose(steps.areas[name][steps.chosen], bounds, atol=1e-9)
    for step in {0, steps.chosen, *range(0, len(steps.deltas), 13), len(steps.deltas) - 1}:
        other = result.with_delta(steps.texts[step])
        for name, (low, high) in other.areas.items():
            first, last = steps.areas[name][step]
            assert high - 1e-9 <= last <= high + most_open + 1e-9
            assert name == "undecided" or low - most_open - 1e-9 <= first <= low + 1e-9
        joint = other.answer.joint
        whole = joint.attention_codes
        is_kept, is_lost = step >= steps.kept_from, step < steps.lost_until
        unit = joint.pieces.region
        # A unit that is called AR has no other pieces, and a piece that is AR in a unit that is not has a slab.
        assert (whole[is_kept[unit]] == Kept.YES).all() and (whole[is_lost[unit]] == Kept.NO).all()
        mixed = steps.slab_unit[steps.slab_starts[step].astype(int) : steps.slab_starts[step + 1].astype(int)]
        left_over = ~is_kept[unit] & ~is_lost[unit] & ~np.isin(unit, mixed)
        open_volume = joint.polytopes.volumes[left_over & (joint.attention_codes != Kept.UNKNOWN)].sum()
        assert open_volume <= most_open
    return steps


def test_tiles_cover_what_the_pieces_cover() -> None:
    result = verify("M-CNN-S", "mnist:69990", KEPT, method="refine", until=0.2, threads=1)
    assert result.tiling.boxes is not None
    tiles = make_tiles(result)
    assert tiles.volumes.sum() == pytest.approx(1.0, abs=1e-9)
    (plane,) = make_planes(result.question.compound, tiles)
    assert len(plane.piece) == len(tiles.unit) and plane.starts[-1] == len(plane.points)
    assert tiles.boxes == len(result.tiling.boxes) and tiles.regions == result.region_count


def test_merged_areas_are_proved_at_their_points(moving: Result) -> None:
    tiles = make_tiles(moving)
    steps = make_thresholds(moving)
    planes = make_planes(moving.question.compound, tiles)
    merged = merge_tiles(moving, tiles, planes, steps, *unit_values(moving, tiles))
    table = {name: array for name, (_, array) in merged.arrays.items()}
    cells = np.random.default_rng(2).integers(0, GRID, (60, 2))
    unknown = 0
    for step in (5, steps.chosen, 60):
        other = moving.with_delta(steps.texts[step])
        joint = other.answer.joint
        for column, row in cells:
            point = (np.array([column, row]) + ASIDE) / GRID
            area, piece = merged.planes[0].areas[row, column], joint.polytopes.deepest(point)
            assert table["label"][area] == joint.label_codes[piece]
            state = Kept.YES if step >= table["keptFrom"][area] else Kept.UNKNOWN
            state = Kept.NO if step < table["lostUntil"][area] else state
            assert state in (joint.attention_codes[piece], Kept.UNKNOWN)
            unknown += state == Kept.UNKNOWN
    assert unknown <= 2
    assert (merged.planes[0].areas >= 0).all() and len(merged.planes[0].lines)


def test_areas_beyond_the_limit_are_undecided(moving: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = make_tiles(moving)
    steps, planes = make_thresholds(moving), make_planes(moving.question.compound, tiles)
    values = unit_values(moving, tiles)
    (whole,) = merge_tiles(moving, tiles, planes, steps, *values).planes
    monkeypatch.setattr(merged_areas, "MOST_AREAS", 5)
    merged = merge_tiles(moving, tiles, planes, steps, *values)
    table = {name: array for name, (_, array) in merged.arrays.items()}
    assert len(table["label"]) == 6 and table["label"][5] == Kept.UNKNOWN
    assert table["keptFrom"][5] == len(steps.deltas) and table["lostUntil"][5] == 0
    np.testing.assert_array_equal(merged.planes[0].areas, np.minimum(whole.areas, 5))
    assert (whole.areas > 5).any()


def test_packed_arrays_come_back() -> None:
    arrays = {"a": ("u1", np.array([1, 2, 3])), "b": ("f8", np.array([[0.1, -np.inf]])), "c": ("i2", np.array([-1]))}
    packed = pack(arrays)
    block = zlib.decompress(base64.b64decode(packed.block))
    for name, (kind, array) in arrays.items():
        place = packed.places[name]
        assert place["at"] % 8 == 0 and place["shape"] == list(array.shape)
        back = np.frombuffer(block, KINDS[kind], array.size, place["at"]).reshape(array.shape)
        np.testing.assert_array_equal(back, array)


def test_the_same_result_gives_the_same_page() -> None:
    result = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], threads=1)
    first = explore(result)
    assert first == explore(result)
    facts = re.search(r'id="sg-facts">(.*?)</script>', first.html)
    assert facts is not None and json.loads(facts[1])["label"] == result.label


def test_no_tag_begins_in_what_users_named(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", *"23456789"]
    html = explore(verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], names=names)).html
    assert "<img" not in html and "<script>alert" not in html
    assert html.count("<script") == html.count("</script>") == 4


def test_too_many_regions_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "MOST_UNITS", 10)
    made = explore(verify("M-FNN-100", "mnist:69990", ["brightness:0..0.3"], threads=1))
    note = re.search(r'<p class="sg-note">(.*?)</p>', made.html)
    assert note is not None and "merged" in note[1] and "the limit is 10)" in note[1]


def test_shades_end_where_almost_all_of_the_domain_does(moving: Result) -> None:
    tiles = make_tiles(moving)
    values, _ = unit_values(moving, tiles)
    top = shown_top(values, tiles)
    assert top <= values.max()
    # One unit far above all others does not change it.
    smallest = tiles.unit[np.argmin(tiles.volumes)]
    values[smallest] = 1e6
    assert shown_top(values, tiles) <= 1.5 * top


def test_the_note_names_a_slider_and_bent_borders_only_where_there_are_any(moving: Result) -> None:
    options = {"attention": "pointing", "explain": "input-x-gradient", "mask": "auto:bright=0.2,grow=1"}
    pointing = explore(verify("M-FNN-100", "mnist:69990", ["brightness:0..0.05"], method="map", **options)).html
    slider, bends = "at every step of the slider", "the border of the kept attention bends within a region"
    assert bends in pointing and slider not in pointing
    assert slider in explore(moving).html and bends not in explore(moving).html
