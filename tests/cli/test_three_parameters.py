"""`verify` with three perturbations, and `show` with the stored result."""

from pathlib import Path

from support.command_line import Runner

SPACE = (
    "verify", "M-FNN-100", "--image", "mnist:69990", "--perturb", "translate:dx=1:0..0.2",
    "--perturb", "patch:x=12,y=12,w=4,h=4:0..0.2", "--perturb", "brightness:0..0.1", "--delta", "3.0",
)  # fmt: skip


def test_three_perturbations_from_question_to_pictures(run: Runner):
    told = run(*SPACE, "--method", "map", "--out", "out")
    assert told.code == 10, told.err
    assert "translation right [px] 0..0.2 × patch 4×4 at (12, 12) 0..0.2 × brightness 0..0.1" in " ".join(
        told.out.split()
    )
    assert {path.name for path in Path("out").iterdir()} >= {"result.json", "regions.npz", "map.png"}
    again = run("show", "out", "--exit-code")
    assert (again.code, again.out) == (told.code, told.out)


def test_json_of_three_perturbations(run: Runner):
    answer = run(*SPACE, "--out", "out", "--json", "--require", "CR>=0.9").json
    assert len(answer["domain"]["names"]) == len(answer["nearest"]["AR"]["theta"]) == 3
    assert answer["area"]["CR"] == [1.0, 1.0] and answer["require"]["outcome"] == "met"
    assert answer["tiling_error"] < 1e-12 and answer["complete"]
    other = run("show", "out", "--delta", "25%", "--json").json
    assert other["area"]["AR"][0] > answer["area"]["AR"][1]


def test_a_map_of_four_at_once_is_refused_with_what_to_do(run: Runner):
    refused = run(*SPACE, "--perturb", "patch:x=2,y=2,w=4,h=4:0..0.2", "--method", "map", "--out", "out")
    assert refused.code == 2 and "up to 3" in refused.err and "--method refine" in refused.err
