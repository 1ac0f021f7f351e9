"""`verify --method refine`, the choice of a method, and `show`, `boundary` and `--resume` with the stored result."""

from pathlib import Path

import pytest

from steadygaze.cli.command_options import until_share
from steadygaze.engines import RunPlan
from steadygaze.engines.contract import RunOptions
from steadygaze.engines.refine import planning
from steadygaze.errors import OptionError
from support.command_line import SMALL, Runner

PLANE = (
    "verify", "M-FNN-100", "--image", "mnist:69990", "--perturb", "brightness:0..0.2",
    "--perturb", "patch:x=12,y=12,w=4,h=4:0..0.2",
)  # fmt: skip
FOUR = (*PLANE, "--perturb", "patch:x=2,y=2,w=2,h=2:0..0.01", "--perturb", "patch:x=8,y=2,w=2,h=2:0..0.01")


def test_refine_from_question_to_boundary(run: Runner):
    told = run(*PLANE, "--method", "refine", "--until", "exact", "--out", "out")
    assert told.code == 10, told.err
    assert {path.name for path in Path("out").iterdir()} >= {"result.json", "regions.npz", "map.png"}
    again = run("show", "out", "--exit-code")
    assert (again.code, again.out) == (told.code, told.out) and "decided by bounds" in told.out
    refined, mapped = run("show", "out", "--json").json, run(*PLANE, "--method", "map", "--out", "map", "--json").json
    for name, bounds in mapped["area"].items():
        assert refined["area"][name] == pytest.approx(bounds, abs=1e-9), name
    assert refined["method"] == "refine" and refined["until"] == "exact"
    shares = refined["guarantee_shares"]
    assert sum(shares.values()) == pytest.approx(1.0) and shares["undecided"] < 1e-9
    other = run("show", "out", "--delta", "60%", "--json").json
    assert other["area"]["AR"][0] > refined["area"]["AR"][1]
    found = run("boundary", "out", "--json").json
    theirs = run("boundary", "map", "--json").json
    assert found["reachable_share"] == pytest.approx(theirs["reachable_share"], abs=1e-9)
    assert (found["method"], theirs["method"]) == ("refine", "map")
    assert "Based on boxes and regions" in run("boundary", "out").out


def test_every_key_of_a_refinement_is_documented(run: Runner):
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    answer = run(*SMALL, "--method", "refine", "--json").json
    assert {"guarantee_shares", "boxes", "until", "goal", "relaxation", "measures"} <= set(answer)
    for key in answer:
        assert f"`{key}`" in text, key


def test_the_method_is_picked_and_named(run: Runner, monkeypatch: pytest.MonkeyPatch):
    small = run(*PLANE, "--out", "small", "--json").json
    assert small["method"] == "map" and "regions" in small["output"]["picked"]
    told = run(*PLANE, "--out", "told")
    assert "map: about 100 regions expected" in told.out or "map: fewer than 1,000 regions expected" in told.out
    monkeypatch.setattr(planning, "estimate_regions", lambda compound, **_: float("inf"))
    large = run(*PLANE, "--out", "large", "--json").json
    assert large["method"] == "refine" and "more than 200,000 regions" in large["output"]["picked"]
    assert (large["until"], large["goal"]) == (0.001, "map")
    assert "picked" not in run(*PLANE, "--method", "refine", "--out", "given", "--json").json["output"]
    assert run("show", "large", "--exit-code").code == 10


def test_four_parameters_are_refined(run: Runner):
    told = run(*FOUR, "--property", "cr", "--out", "out")
    assert told.code == 0 and "refine: the map takes up to 3 parameters" in told.out, told.err
    assert "map.png" in told.out and "label kept" in told.out and "IR" not in told.out
    refused = run("boundary", "out")
    assert refused.code == 2 and "up to 3 parameters" in refused.err
    assert run(*FOUR, "--method", "map", "--out", "map").code == 2


def test_a_limit_is_resumed_to_the_end(run: Runner):
    question = (*PLANE, "--method", "refine", "--until", "exact", "--json")
    whole = run(*question, "--out", "whole").json
    partial = run(*question, "--max-regions", "1", "--timeout", "0.000001", "--out", "part").json
    assert not partial["complete"] and partial["boxes"]["open"] >= 1
    done = run(*question, "--resume", "part")
    assert done.code == 10 and done.json["output"]["directory"] == "part"
    for name, bounds in whole["area"].items():
        assert done.json["area"][name] == pytest.approx(bounds, abs=1e-9)
    assert run("show", "part", "--json").json["complete"]
    # Another place may be given; what is there is not replaced.
    elsewhere = run(*question, "--resume", "part", "--out", "whole")
    assert elsewhere.code == 2 and "exists already" in elsewhere.err


def test_another_question_is_not_resumed(run: Runner):
    run(*PLANE, "--method", "refine", "--out", "out")
    before = Path("out/result.json").read_bytes()
    refused = run(*PLANE, "--delta", "3.0", "--resume", "out")
    assert refused.code == 2 and "different: δ" in refused.err and refused.err.count("\n") == 1
    assert Path("out/result.json").read_bytes() == before
    run(*SMALL, "--out", "map")
    refused = run(*SMALL, "--resume", "map")
    assert refused.code == 2 and "which cannot be resumed" in refused.err


def test_goal_verdict_ends_with_a_violation(run: Runner):
    answer = run(*PLANE, "--goal", "verdict", "--out", "out", "--json")
    assert answer.code == 10 and answer.json["goal"] == "verdict" and answer.json["method"] == "refine"
    assert answer.json["output"]["picked"] == "--goal was given"
    told = run("show", "out", "--exit-code")
    assert told.code == 10 and "NOT ROBUST: At brightness" in told.out


@pytest.mark.parametrize(
    "arguments, word",
    [
        (("--method", "map", "--until", "0.1"), "--until does not go with --method map"),
        (("--method", "gbs", "--goal", "verdict"), "--goal does not go with --method gbs"),
        (("--method", "bfs", "--resume", "x"), "--resume does not go with --method bfs"),
        (("--until", "2"), "--until is '2'"),
        (("--until", "never"), "--until is 'never'"),
        (("--goal", "proof"), "--goal is 'proof'"),
        (("--line", "1"), "--line needs --method gbs or boundary"),
        (("--method", "refined"), "Did you mean refine?"),
        (("--resume", "nowhere"), "nowhere: no such directory"),
    ],
)
def test_options_that_do_not_fit_are_refused(run: Runner, arguments: tuple[str, ...], word: str):
    refused = run(*SMALL, *arguments)
    assert refused.code == 2 and word in refused.err and refused.err.count("\n") == 1


def test_texts_become_a_plan():
    plan = RunPlan.check("refine", RunOptions(until=until_share("--until", "0.5%"), goal="verdict"))
    assert (plan.method, plan.reason, plan.name) == ("refine", None, "refine")
    assert (plan.options.until, plan.options.goal) == (0.005, "verdict")
    plan = RunPlan.check("auto", RunOptions())
    assert (plan.method, plan.reason, plan.name, plan.options.given) == ("auto", None, None, [])
    with pytest.raises(OptionError, match="expected the share"):
        until_share("--until", "-1")
