"""The rows of an export agree with the result: labels, shares that add up, bounds that hold, shapes."""

import re
from pathlib import Path

import numpy as np
import pytest

from steadygaze.results.export import make_columns, make_table
from support.networks.compared_networks import answered
from support.networks.stored_questions import QUESTIONS
from support.readers.tables import rows_of, sums

DOCUMENT = Path(__file__).parents[2] / "docs" / "export.md"


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("what", ["regions", "pieces"])
def test_rows_of_a_map_tile_the_domain(results, name, what):
    rows = rows_of(make_table(results[name], what))
    assert [row["id"] for row in rows] == list(range(len(rows)))
    assert {row["kind"] for row in rows} == {"region"}
    assert sum(row["share"] for row in rows) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("name", QUESTIONS)
def test_pieces_add_up_to_the_areas(results, name):
    result = results[name]
    rows = rows_of(make_table(result, "pieces"))
    for column, names in (("classification", ("CR", "MR")), ("attention", ("AR", "IR"))):
        found = sums(rows, column)
        for label in names:
            assert found.get(label, 0.0) == pytest.approx(result.areas[label][0], abs=1e-9)


@pytest.mark.parametrize("name", QUESTIONS)
def test_regions_are_those_of_the_result(results, name):
    result = results[name]
    rows = rows_of(make_table(result, "regions"))
    for row, region in list(zip(rows, result.regions, strict=True))[:200]:
        assert row["number"] == region.index and row["share"] == region.area
        assert (row["classification"], row["attention"]) == (region.classification, region.attention)
        assert (row["inconsistency_low"], row["inconsistency_high"]) == region.inconsistency
        np.testing.assert_array_equal(row["vertices"], region.polygon)
        inside = np.array([row[f"inside_{axis + 1}"] for axis in range(region.polygon.shape[1])])
        assert result.region_at(inside) == region.index
    counts = result.answer.sets
    for column, labels in (("classification", ("CR", "MR", "CB")), ("attention", ("AR", "IR", "AB"))):
        for label in labels:
            assert sum(row[column] == label for row in rows) == counts[label]


@pytest.mark.parametrize(
    ("kind", "seed"), [(kind, seed) for kind in ("kept", "moving", "line", "solid") for seed in range(3)]
)
@pytest.mark.parametrize("what", ["regions", "pieces"])
def test_bounds_hold_at_thetas_inside(kind, seed, what):
    """Random mixtures of the corners: label, winner, margin and inconsistency by the plain definitions."""
    result, rng = answered(seed, kind), np.random.default_rng(seed)
    for row in rows_of(make_table(result, what)):
        corners = np.array(row["vertices"])
        point = result.at(rng.dirichlet(np.ones(len(corners))) @ corners)
        assert row["margin_low"] <= point.margin + 1e-12 and point.margin <= row["margin_high"] + 1e-12
        assert row["inconsistency_low"] - 1e-9 <= point.inconsistency <= row["inconsistency_high"] + 1e-9
        if row["classification"] in ("CR", "MR") and abs(point.margin) > 1e-9:
            assert (point.margin > 0.0) == (row["classification"] == "CR")
            assert row["winner"] in (-1, point.label)
        for axis in range(corners.shape[1]):
            assert (
                row[f"low_{axis + 1}"] == corners[:, axis].min() and row[f"high_{axis + 1}"] == corners[:, axis].max()
            )


def test_unreached_parts_have_no_rows(results):
    partial = results["partial"]
    rows = rows_of(make_table(partial, "regions"))
    assert sum(row["share"] for row in rows) == pytest.approx(partial.tiling.answers.regions.polytopes.volumes.sum())
    assert rows_of(make_table(results["empty"], "pieces")) == []
    assert make_table(partial, "regions").facts["complete"] is False


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_the_document_has_the_columns(dimension):
    written = re.findall(
        r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE
    )
    documented = {name: (kind, unit, meaning) for name, kind, unit, meaning in written if kind in KINDS}
    found = {}
    for column in make_columns(dimension):
        generic = re.sub(rf"_[1-{dimension}]$", "_i", column.name)
        meaning = re.sub(r"parameter \d", "parameter i", column.meaning)
        found[generic] = (column.kind, column.unit, meaning + ("; may be empty" if column.is_optional else ""))
    assert documented == found


KINDS = ("int64", "float64", "string", "list of lists of float64")
