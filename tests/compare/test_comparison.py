"""A comparison: differences, names, notes, difference maps, plain data, and refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from steadygaze import Comparison, compare, search, verify
from steadygaze.compare.comparison import compare_results
from steadygaze.compare.overlay import COMBINATIONS
from steadygaze.errors import OptionError
from steadygaze.labels import Property
from steadygaze.results.result import Result
from support.networks.compared_networks import answered


def renamed(result: Result, **names: object) -> Result:
    return replace(result, question=replace(result.question, **names))


def pair(kind: str = "moving") -> list[Result]:
    """Two networks; tiny models have no file, so names distinguish them."""
    return [renamed(answered(seed, kind), model_name=f"net {seed}") for seed in (0, 3)]


def test_two_networks():
    found = compare_results(pair())
    assert isinstance(found, Comparison)
    assert (found.names, found.differs) == (("net 0", "net 3"), ("network",))
    assert found.areas == tuple(result.areas for result in found.results)
    assert [(one.first, one.second, one.property, one.is_exact) for one in found.differences] == [
        (0, 1, wanted, True) for wanted in Property
    ]
    assert found.contrary == ((0, 1),), "0.889 against 0.326 CR, 0.072 against 0.207 AR"
    assert any("relative to each result's own original maps" in note for note in found.notes)


def test_two_images():
    images = ("mnist:69990", "mnist:69991")
    found = compare_results([verify("M-FNN-100", image, ["brightness:0..0.05"], threads=1) for image in images])
    assert (found.names, found.differs) == (images, ("image",)) and len(found.differences) == 3
    assert any("labels of the unperturbed images differ" in note for note in found.notes)


def test_every_result_is_compared_with_the_first():
    found = compare_results([*pair(), renamed(answered(1, "moving"), model_name="net 1")])
    assert {(one.first, one.second) for one in found.differences} == {(0, 1), (0, 2)}


@pytest.mark.parametrize("seed", range(3))
def test_three_parameters_have_bounds_from_shares(seed):
    sides = [renamed(answered(number, "solid"), model_name=f"net {number}") for number in (seed, seed + 1)]
    found = compare_results(sides)
    assert not any(one.is_exact for one in found.differences)
    assert "not overlaid" in found.summary()["guarantee"]
    rng = np.random.default_rng(seed)
    domain = sides[0].question.perturbed.domain
    thetas = domain.low + rng.random((300, 3)) * domain.widths
    keeps = [np.array([result.at(theta).margin > 0.0 for theta in thetas]) for result in sides]
    shares = next(one.shares for one in found.differences if one.property is Property.CR)
    for name, codes in COMBINATIONS.items():
        share = np.mean((keeps[0] == (codes[0] == 0)) & (keeps[1] == (codes[1] == 0)))
        assert shares[name][0] - 0.12 <= share <= shares[name][1] + 0.12


def test_other_domains_have_tables_alone():
    found = compare_results([answered(0, "moving"), answered(0, "line")])
    assert "perturbation" in found.differs and found.differences == () and found.contrary == ()
    assert any("no difference map" in note for note in found.notes)
    assert {ranking.measure for ranking in found.rankings} >= {"MR or IR", "nearest MR"}


def test_the_order_of_perturbations_matters_and_is_said():
    both = ["brightness:0..0.1", "patch:x=12,y=12,w=4,h=4:0..0.1"]
    sides = [verify("M-FNN-100", "mnist:69990", specs, threads=1) for specs in (both, both[::-1])]
    found = compare_results(sides)
    assert not found.has_difference_map and any("Only the order" in note for note in found.notes)


def test_thresholds_that_differ_are_said_and_can_be_made_equal():
    own, other = answered(0, "moving"), answered(0, "moving", delta="10%")
    found = compare_results([own, other])
    assert found.differs == ("delta",) and found.names == ("δ = 40%", "δ = 10%")
    assert any("thresholds differ" in note for note in found.notes)
    same = compare_results([own, other], {"delta": "25%"})
    assert same.differs == () and same.notes == ("All results answer the same question.",)
    assert same.names == ("tiny (1)", "tiny (2)")
    assert {result.answer.delta for result in same.results} == {0.25 * own.question.map_size}
    shares = next(one.shares for one in found.differences if one.property is Property.AR)
    assert shares["second"][0] == 0.0 and shares["first"][0] > 0.0, "a smaller δ keeps less"


def test_labels_and_ways_that_differ_are_said():
    sides = pair()
    odd = renamed(sides[1], names=("a", "b", "c"))
    assert any("labels of the unperturbed images differ" in note for note in compare_results([sides[0], odd]).notes)
    options = {"threads": 1, "delta": "25%"}
    ways = [verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], dist=dist, **options) for dist in ("l1", "l2")]
    alone = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], property="cr", threads=1)
    (note,) = compare_results([alone, ways[1]]).notes
    assert "differ (M-FNN-100 (1): cr; M-FNN-100 (2): both)" in note
    found = compare_results(ways)
    assert found.differs == ("attention",) and any("different ways" in note for note in found.notes)


def test_attention_that_was_not_measured_is_left_out():
    specs, options = ["brightness:0..0.1"], {"method": "refine", "threads": 1}
    sides = [verify("M-FNN-100", "mnist:69990", specs, property=wanted, **options) for wanted in ("both", "cr")]
    found = compare_results(sides)
    assert [one.property for one in found.differences] == [Property.CR]
    assert any("attention was not measured" in note for note in found.notes)


def test_plain_data_is_whole_and_finite():
    summary = compare_results(pair()).summary()
    again = json.loads(json.dumps(summary, allow_nan=False))
    assert again == summary
    assert [one["name"] for one in again["results"]] == again["names"]
    for one in again["differences"]:
        lows = sum(one["shares"][name][0] for name in COMBINATIONS)
        assert lows == pytest.approx(1.0, abs=1e-6)
    assert all(rank["first"] <= rank["last"] for ranking in again["rankings"] for rank in ranking["ranks"])


def test_names_cannot_steer_a_terminal():
    sides = pair()
    sides[0] = renamed(sides[0], model_name="net\x1b[31m\n[bold]0")
    assert compare_results(sides).names[0] == "net [31m [bold]0"


def test_directories_are_read(tmp_path):
    result = verify("M-FNN-100", "mnist:69990", ["brightness:0..0.1"], threads=1)
    result.save(tmp_path / "one")
    found = compare([tmp_path / "one", str(tmp_path / "one"), result])
    assert found.differs == () and found.names[2] == "M-FNN-100 (3)"


def test_what_cannot_be_compared_is_refused():
    own = answered(0, "moving")
    with pytest.raises(OptionError, match="compare got 1 result, and needs two or more"):
        compare_results([own])
    with pytest.raises(OptionError, match="compare got 0 results"):
        compare_results([])
    found = search("M-FNN-100", "mnist:69990", ["brightness", "patch:x=12,y=12,w=4,h=4"], method="gbs")
    with pytest.raises(OptionError, match=r"result 2 is a search \(gbs\)"):
        compare_results([own, found])
    with pytest.raises(OptionError, match="not a threshold"):
        compare_results([own, own], {"delta": "many"})
