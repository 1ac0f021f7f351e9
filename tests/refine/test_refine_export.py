"""The rows of a refinement: boxes decided or left open by bounds and exact regions tile the domain together."""

import pytest

from steadygaze import verify
from steadygaze.engines.refine.boxes import State
from steadygaze.results.export import make_table
from steadygaze.results.result import Result
from support.networks.compared_networks import answered
from support.readers.tables import rows_of, sums
from support.stand_ins.made_up_refinements import box_of_theta, made


@pytest.fixture(scope="module")
def refined() -> dict[str, Result]:
    """Exact regions alone; boxes alone, some of them open; both; without attention; polyhedra."""
    return {
        "regions": answered(0, "moving", method="refine"),
        "boxes": made(("brightness:0..0.5", "patch:x=12,y=12,w=4,h=4:0..0.5"), 6),
        "both": made(("translate:dx=2:0.5..1.5", "brightness:0..0.02"), 4, (1,)),
        "cr": made(("darkness",), 6, property="cr"),
        "solid": answered(3, "solid", method="refine"),
    }


@pytest.mark.parametrize("name", ["regions", "boxes", "both", "cr", "solid"])
@pytest.mark.parametrize("what", ["regions", "pieces"])
def test_rows_of_a_refinement_tile_the_domain(refined, name, what):
    result = refined[name]
    rows = rows_of(make_table(result, what))
    assert sum(row["share"] for row in rows) == pytest.approx(1.0, abs=1e-9)
    boxes = [row for row in rows if row["kind"] == "box"]
    assert len(boxes) == int((result.tiling.boxes.state != State.EXACT).sum())
    domain = result.question.perturbed.domain
    for row in boxes:
        box = row["number"]
        assert len(row["vertices"]) == 2**domain.dimension
        assert row["margin_low"] == result.tiling.boxes.margin[box, 0]
        assert box_of_theta(result, [row[f"inside_{axis + 1}"] for axis in range(domain.dimension)]) == box
    if what == "pieces":
        found = sums(rows, "classification")
        for label in ("CR", "MR"):
            assert found.get(label, 0.0) == pytest.approx(result.areas[label][0], abs=1e-9)
    assert all((row["attention"] is None) == (name == "cr") for row in rows)


def test_all_states_of_boxes_occur(refined):
    for name, states in (("boxes", {State.OPEN, State.BOUNDED}), ("both", {State.EXACT})):
        assert states <= {State(state) for state in refined[name].tiling.boxes.state}
    assert {row["kind"] for row in rows_of(make_table(refined["both"], "regions"))} == {"box", "region"}
    words = {row["classification"] for row in rows_of(make_table(refined["cr"], "regions"))}
    assert words == {"CR", "MR", "undecided"}


def test_four_parameters_have_boxes():
    specs = [
        "brightness:0..0.01",
        "patch:x=1,y=1,w=2,h=2:0..0.1",
        "patch:x=5,y=5,w=2,h=2:0..0.1",
        "translate:dx=1:0..0.01",
    ]
    result = verify("M-FNN-100", "mnist:69990", specs, until=0.99, threads=1, method="refine")
    rows = rows_of(make_table(result, "regions"))
    assert len(rows[0]["vertices"]) == 16 and sum(row["share"] for row in rows) == pytest.approx(1.0, abs=1e-9)
