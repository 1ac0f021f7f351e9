"""`show`: the stored answer again, also for another delta."""

from pathlib import Path

import pytest

from support.command_line import SMALL, Runner


@pytest.fixture
def stored(run: Runner) -> Path:
    assert run(*SMALL, "--delta", "3.0", "--out", "out").code == 10
    return Path("out")


def test_the_same_words_as_after_the_run(run: Runner):
    told = run(*SMALL, "--delta", "3.0", "--method", "map", "--out", "out")
    again = run("show", "out", "--exit-code")
    assert (again.code, again.out) == (told.code, told.out)


def test_the_same_json_as_after_the_run(run: Runner):
    told = run(*SMALL, "--delta", "3.0", "--out", "out", "--json").json
    del told["output"]
    again = run("show", "out", "--json", "--exit-code")
    assert again.code == 10 and again.json == told


def test_another_delta_is_what_a_run_for_it_would_say(run: Runner, stored: Path):
    other = run("show", stored, "--delta", "25%", "--json").json
    fresh = run(*SMALL, "--delta", "25%", "--out", "fresh", "--json").json
    for answer in (other, fresh):
        del answer["seconds"]
    del fresh["output"]
    assert other == fresh


def test_another_delta_has_its_own_verdict_and_no_pictures(run: Runner, stored: Path):
    result = run("show", stored, "--delta", "25%", "--exit-code")
    assert result.code == 0 and "ROBUST" in result.out and "map.png" not in result.out
    assert run("show", stored, "--exit-code").code == 10


def test_the_threshold_that_is_enough_is_enough(run: Runner, stored: Path):
    enough = run("show", stored, "--json").json["ar_at_delta"]["all"]
    assert run("show", stored, "--delta", repr(enough), "--exit-code").code == 0


def test_timings_that_are_gone_change_no_answer(run: Runner, stored: Path):
    (stored / "timings.json").unlink()
    result = run("show", stored, "--exit-code")
    assert result.code == 10 and "regions" in result.out


@pytest.mark.parametrize("name", ["result.json", "regions.npz", "image.npy"])
def test_damage_is_refused(run: Runner, stored: Path, name: str):
    path = stored / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    result = run("show", stored, "--delta", "2.0")
    assert (result.code, result.out) == (2, "") and result.err.count("\n") == 1


def test_shown_is_shown_whatever_the_verdict(run: Runner, stored: Path):
    assert [run("show", stored).code, run("show", stored, "--exit-code").code] == [0, 10]


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [("CR>=1", 0, "met"), ("AR>=0.99", 10, "not met"), ("robust", 10, "not met")],
)
def test_a_requirement_is_judged_on_the_stored_answer(run: Runner, stored: Path, text: str, code: int, word: str):
    told = run("show", stored, "--require", text)
    assert told.code == code and f"Required {text}: {word}\n" in told.out
    answer = run("show", stored, "--require", text, "--json")
    assert answer.code == code and answer.json["require"] == {"text": text, "outcome": word}


def test_a_requirement_that_bounds_leave_open(run: Runner):
    run(*SMALL, "--delta", "3.0", "--max-regions", "2", "--method", "map", "--out", "part")
    low, high = run("show", "part", "--json").json["area"]["AR"]
    assert low < high
    codes = [run("show", "part", "--require", f"AR>={share}").code for share in (low, 0.5 * (low + high), high + 0.01)]
    assert codes == [0, 3, 10]


@pytest.mark.parametrize(
    ("method", "text", "code"), [("bfs", "CR>=0.9", 0), ("gbs", "robust", 10), ("gbs", "CR>=0.9", 2)]
)
def test_searches_are_judged_by_what_they_bound(run: Runner, method: str, text: str, code: int):
    run(*SMALL, "--delta", "3.0", "--method", method, "--out", "out")
    told = run("show", "out", "--require", text)
    assert told.code == code
    if code == 2:
        assert "this search (gbs) does not bound" in told.err and told.err.count("\n") == 1
