"""A campaign as a whole: every problem ends as a row, and neither crashes nor kill -9 change the result."""

import json
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steadygaze.campaign import stored_campaign as stores
from steadygaze.campaign.run import CampaignProgress, run_campaign
from steadygaze.campaign.stored_campaign import Plan, Store, held
from steadygaze.campaign.tables import make_records, to_csv
from steadygaze.errors import OptionError, StoreError
from support.stand_ins.fault_plans import DUTY, plan_of

MANY = tuple(f"0.{number:03}" for number in range(40, 70))
PATIENCE = 20.0


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which worker processes note every problem that they begin."""
    path = tmp_path / "log"
    path.touch()
    monkeypatch.setenv("FAULTS_LOG", str(path))
    return path


def run(plan: Plan, out: Path, **options: Any) -> Counter:
    report = run_campaign(plan, out, duty=DUTY, **{"workers": 2, **options})
    assert report.missing == 0 and sum(report.counts.values()) == len(plan.tasks)
    return Counter(report.counts)


def answers(out: Path) -> str:
    """Everything that a campaign found, timings apart."""
    return to_csv(make_records(Store.open(out)), is_measured=False)


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_every_problem_ends_with_a_status_and_a_reason(tmp_path: Path):
    plan = plan_of(("answer", "abort", "kill", "raise", "allocate", "sleep"), ("9",), limit=1.0, memory_gib=0.25)
    seen: list[CampaignProgress] = []
    counts = run(plan, tmp_path / "out", progress=seen.append)
    assert counts == {"Robust": 1, "Failed": 4, "Timeout": 1}
    rows = Store.open(tmp_path / "out").rows()
    reasons = {key: row["answer"]["reason"] for key, row in rows.items()}
    assert reasons == {
        "answer_9": None,
        "abort_9": "the process was ended by SIGABRT",
        "kill_9": "the process was ended by SIGKILL, as the system does when memory runs out",
        "raise_9": "ValueError: no such thing",
        "allocate_9": "memory limit of 0.25 GiB",
        "sleep_9": "time limit of 1 s",
    }
    assert rows["sleep_9"]["measured"]["seconds"] >= 1.0 and rows["allocate_9"]["measured"]["peak_mib"] > 256.0
    assert seen[0].done == 0 and seen[-1].done == seen[-1].total == 6
    assert seen[-1].seconds_left == 0.0 and any("sleep_9" in advance.running for advance in seen)


def test_a_second_run_repeats_nothing(tmp_path: Path, log: Path):
    plan = plan_of(("answer", "abort"), MANY[:5])
    first = run(plan, tmp_path / "out")
    files = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.json")}
    assert run(plan, tmp_path / "out") == first
    assert sorted(log.read_text(encoding="ascii").split()) == sorted(task.key for task in plan.tasks)
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.json")} == files


def test_kill_9_at_any_moment_changes_nothing(tmp_path: Path, log: Path):
    plan = plan_of(("sleep", "raise"), MANY)
    run(plan, tmp_path / "undisturbed")
    log.write_text("", encoding="ascii")
    out, context = tmp_path / "out", multiprocessing.get_context("fork")
    kills = 0
    # Moments by the number of rows, and a little later each time; the last run is left alone.
    for number in range(9):
        before = {path.stem for path in out.glob("rows/*.json") if not path.name.startswith(".")}
        begun = len(log.read_text(encoding="ascii").split())
        process = context.Process(target=_run_as_leader, args=(plan, out))
        process.start()
        assert process.pid is not None
        wait_until(
            lambda before=before, process=process: (
                len(list(out.glob("rows/[a-z]*.json"))) >= len(before) + 2 or not process.is_alive()
            )
        )
        time.sleep(0.005 * number)
        workers = children(process.pid) if process.is_alive() else []
        with suppress(ProcessLookupError):  # it may have come to its end a moment ago
            (os.killpg if number % 2 else os.kill)(process.pid, signal.SIGKILL)
        process.join(PATIENCE)
        kills += process.exitcode == -signal.SIGKILL
        wait_until(lambda workers=workers: not any(is_running(pid) for pid in workers))
        repeated = set(log.read_text(encoding="ascii").split()[begun:]) & before
        assert not repeated
    assert kills >= 5
    done = {path: path.read_bytes() for path in out.glob("rows/[a-z]*.json")}
    run(plan, out)
    assert answers(out) == answers(tmp_path / "undisturbed")
    assert all(path.read_bytes() == content for path, content in done.items())
    assert not list(out.rglob(".steadygaze-*"))


def _run_as_leader(plan: Plan, out: Path) -> None:
    os.setpgid(0, 0)
    run_campaign(plan, out, workers=2, duty=DUTY)


def test_cancelling_keeps_what_has_ended_and_goes_on_later(tmp_path: Path, log: Path):
    plan = plan_of(("sleep",), MANY)
    cancelled = threading.Event()

    def watch(advance: CampaignProgress) -> None:
        if advance.done >= 5:
            cancelled.set()

    report = run_campaign(plan, tmp_path / "out", workers=2, duty=DUTY, progress=watch, cancelled=cancelled)
    assert 5 <= sum(report.counts.values()) <= 7 and report.missing == len(plan.tasks) - sum(report.counts.values())
    done = set(Store.open(tmp_path / "out").rows())
    begun = len(log.read_text(encoding="ascii").split())
    run(plan, tmp_path / "out")
    assert not done & set(log.read_text(encoding="ascii").split()[begun:])


def test_one_run_at_a_time(tmp_path: Path):
    plan = plan_of(("answer",))
    store = Store.begin(tmp_path / "out", plan)
    assert not store.is_held()
    with held(tmp_path / "out"):
        assert store.is_held()
        with pytest.raises(StoreError, match="another run is active"):
            run(plan, tmp_path / "out")
    assert run(plan, tmp_path / "out") == {"Robust": 1}


def test_a_run_that_only_begins_keeps_others_out(tmp_path: Path):
    """Before anything is in the directory: the plan that is written there is that of the run that holds it."""
    with held(tmp_path / "out"), pytest.raises(StoreError, match="another run is active"):
        run(plan_of(("answer",)), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_rows_whose_campaign_is_not_known_are_not_taken_over(tmp_path: Path):
    plan = plan_of(("answer",))
    run(plan, tmp_path / "out")
    (tmp_path / "out" / "campaign.json").unlink()
    with pytest.raises(StoreError, match=r"holds rows of an unknown campaign \(campaign.json is gone\)"):
        run(plan, tmp_path / "out")


def test_a_campaign_of_another_name_is_refused(tmp_path: Path):
    run(plan_of(("answer",)), tmp_path / "out")
    with pytest.raises(StoreError, match="holds the campaign 'faults', but this plan is named 'other'; choose"):
        run(replace(plan_of(("answer",)), name="other"), tmp_path / "out")


def test_a_plan_may_grow_and_shrink_and_only_new_problems_run(tmp_path: Path, log: Path):
    out = tmp_path / "out"
    assert run(plan_of(("answer",)), out) == {"Robust": 1}
    assert run(plan_of(("answer", "print"), ("0", "0.01")), out) == {"Robust": 4}
    assert len(log.read_text(encoding="ascii").splitlines()) == 4
    assert run(plan_of(("print",)), out) == {"Robust": 1}
    assert [row["key"] for row in Store.open(out).rows().values()] == ["print_0"]
    # What was left out for a while is still known.
    assert run(plan_of(("answer", "print"), ("0", "0.01")), out) == {"Robust": 4}
    assert len(log.read_text(encoding="ascii").splitlines()) == 4


def test_a_file_that_changed_makes_new_problems(tmp_path: Path, log: Path):
    plan, out = plan_of(("answer", "print")), tmp_path / "out"
    run(plan, out)
    changed = replace(plan.models["print"], sha256="1" * 64)
    other = replace(plan, models=plan.models | {"print": changed})
    assert run(other, out) == {"Robust": 2}
    solved = [line.split()[0] for line in log.read_text(encoding="ascii").splitlines()]
    assert sorted(solved) == ["answer_0", "print_0", "print_0"]


def test_what_a_limit_ended_is_solved_again_with_other_limits(tmp_path: Path, log: Path):
    plan, out = plan_of(("answer", "raise"), limit=20.0), tmp_path / "out"
    assert run(plan, out) == {"Robust": 1, "Failed": 1}
    run(plan_of(("answer", "raise"), limit=30.0), out)
    solved = [line.split()[0] for line in log.read_text(encoding="ascii").splitlines()]
    assert sorted(solved) == ["answer_0", "raise_0", "raise_0"]


def test_rows_that_do_not_tell_their_problem_allow_no_other_plan(tmp_path: Path):
    """Rows of earlier versions."""
    plan, out = plan_of(("answer",)), tmp_path / "out"
    run(plan, out)
    path = out / "rows" / "answer_0.json"
    row = json.loads(path.read_text(encoding="ascii"))
    path.write_text(json.dumps({"key": row["key"], "answer": row["answer"], "measured": row["measured"]}), "ascii")
    assert run(plan, out) == {"Robust": 1}
    with pytest.raises(StoreError, match="rows of an earlier version of steadygaze do not record which"):
        run(plan_of(("answer", "print")), out)


def test_other_versions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plan = plan_of(("answer",))
    run(plan, tmp_path / "out")
    now = stores.made_by() | {"numpy": "9.9"}
    monkeypatch.setattr(stores, "made_by", lambda: now)
    with pytest.raises(StoreError, match=r"was started with numpy [\d.]+ \(now 9.9\); restore these"):
        run(plan, tmp_path / "out")


def test_a_directory_of_something_else_is_refused(tmp_path: Path):
    (tmp_path / "precious").write_text("mine", encoding="ascii")
    with pytest.raises(StoreError, match="exists and holds no campaign"):
        run(plan_of(("answer",)), tmp_path)
    with pytest.raises(StoreError, match="holds no campaign; give the --out"):
        Store.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_leftovers_of_a_killed_run_are_removed_and_damage_is_told(tmp_path: Path):
    plan = plan_of(("answer",))
    out = tmp_path / "out"
    run(plan, out)
    (out / "rows" / ".steadygaze-1-answer_0.json").write_text("{", encoding="ascii")
    run(plan, out)
    assert [path.name for path in (out / "rows").iterdir()] == ["answer_0.json"]
    (out / "rows" / "answer_0.json").write_text("{", encoding="ascii")
    with pytest.raises(StoreError, match=r"answer_0.json: is damaged; delete it and run again"):
        run(plan, out)
    (out / "campaign.json").write_text(json.dumps({"schema_version": 1}), encoding="ascii")
    with pytest.raises(StoreError, match=r"campaign.json cannot be read"):
        run(plan, out)


def test_a_run_that_died_before_its_first_row_goes_on(tmp_path: Path):
    (tmp_path / "out" / "rows").mkdir(parents=True)
    (tmp_path / "out" / ".steadygaze-7-campaign.json").write_text("{", encoding="ascii")
    assert run(plan_of(("answer",)), tmp_path / "out") == {"Robust": 1}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["campaign.json", "rows"]


def test_bad_options(tmp_path: Path):
    plan = plan_of(("answer",))
    with pytest.raises(OptionError, match="workers is 0"):
        run_campaign(plan, tmp_path / "out", workers=0)
    with pytest.raises(OptionError, match="leave one out"):
        run_campaign(plan, tmp_path / "out", workers=2, scheduler="tcp://127.0.0.1:1")
    assert not (tmp_path / "out").exists()
