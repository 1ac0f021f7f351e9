"""Worker processes with limits from outside: whatever a problem does, it ends with a reason and the others go on."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steadygaze.campaign import worker_pool as pools
from steadygaze.campaign.worker_pool import Asked, Duty, End, Pool, ProcessLimits, ProcessOutcome, WorkerProcess
from steadygaze.errors import StoreError
from support.stand_ins import faults

DUTY = Duty.of(faults.solve)
PLENTY = ProcessLimits(seconds=30.0, memory_gib=4.0)
PATIENCE = 25.0


def asked(name: str, act: str, limits: ProcessLimits = PLENTY, **more: object) -> Asked:
    return Asked(name, {"name": name, "act": act, **more}, limits)


def outcomes(*questions: Asked, workers: int = 1, duty: Duty = DUTY) -> dict[str, ProcessOutcome]:
    found: dict[str, ProcessOutcome] = {}
    until = time.monotonic() + PATIENCE
    with Pool(duty, workers=workers) as pool:
        for ended in pool.run(questions):
            assert time.monotonic() < until, "the pool does not come to an end"
            if ended is not None:
                assert ended[0].key not in found
                found[str(ended[0].key)] = ended[1]
    return found


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + 10.0
    while time.monotonic() < until:
        if is_so():
            return True
        time.sleep(0.02)
    return False


def test_one_process_answers_many_questions():
    found = outcomes(*(asked(f"q{number}", "answer") for number in range(20)))
    assert len(found) == 20 and {each.end for each in found.values()} == {End.ANSWERED}
    assert len({each.answer["pid"] for each in found.values()}) == 1
    assert found["q7"].answer["name"] == "q7"
    assert all(0.0 <= each.seconds < 5.0 and 1.0 < each.peak_mib < 500.0 for each in found.values())


def test_two_processes_share_the_questions():
    found = outcomes(*(asked(f"q{number}", "sleep", seconds=0.2) for number in range(6)), workers=2)
    assert len({each.answer["pid"] for each in found.values()}) == 2


FAULTS = [
    ("abort", End.FAILED, "the process was ended by SIGABRT"),
    ("kill", End.FAILED, "the process was ended by SIGKILL, as the system does when memory runs out"),
    ("exit", End.FAILED, "the process ended with exit code 7"),
    ("raise", End.FAILED, "ValueError: no such thing"),
    ("memory", End.FAILED, "out of memory"),
    ("nan", End.FAILED, "ValueError: Out of range float values are not JSON compliant"),
]


def test_a_problem_that_crashes_or_fails_does_not_disturb_the_others():
    questions = []
    for number, (act, _, _) in enumerate(FAULTS):
        questions += [asked(act, act), asked(f"after {number}", "answer")]
    found = outcomes(*questions)
    for act, end, reason in FAULTS:
        assert found[act].end is end and found[act].answer is None
        assert found[act].reason.startswith(reason)
    assert {found[f"after {number}"].end for number in range(len(FAULTS))} == {End.ANSWERED}


def test_output_of_a_problem_disturbs_nothing(capfd: pytest.CaptureFixture[str]):
    assert outcomes(asked("q", "print"))["q"].end is End.ANSWERED
    assert capfd.readouterr() == ("", "")


def test_time_is_limited_from_outside():
    found = outcomes(asked("slow", "sleep", ProcessLimits(0.5, 4.0), seconds=60.0), asked("quick", "answer"))
    assert (found["slow"].end, found["slow"].reason) == (End.TIMEOUT, "time limit of 0.5 s")
    assert 0.5 <= found["slow"].seconds < 5.0
    assert found["quick"].end is End.ANSWERED


def test_memory_is_limited_from_outside():
    limits = ProcessLimits(30.0, 0.25)
    found = outcomes(
        asked("greedy", "allocate", limits, mib=400, seconds=20.0), asked("modest", "allocate", limits, mib=50)
    )
    assert (found["greedy"].end, found["greedy"].reason) == (End.FAILED, "memory limit of 0.25 GiB")
    assert found["greedy"].peak_mib > 256.0 and found["greedy"].seconds < 15.0
    assert found["modest"].end is End.ANSWERED


def test_a_short_peak_counts_and_only_for_its_own_problem():
    limits = ProcessLimits(30.0, 0.25)
    found = outcomes(asked("peak", "allocate", limits, mib=300), asked("later", "answer", limits))
    assert (found["peak"].end, found["peak"].reason) == (End.FAILED, "memory limit of 0.25 GiB")
    assert found["later"].end is End.ANSWERED and found["later"].peak_mib < 200.0


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.3])
def test_a_process_that_dies_while_it_waits_is_replaced(seconds: float):
    """However far the system has come with ending it: a problem that it never received cannot fail."""
    with Pool(DUTY, workers=1) as pool:
        (first,) = [ended for ended in pool.run([asked("a", "answer")]) if ended is not None]
        for _ in range(5):
            os.kill(first[1].answer["pid"], signal.SIGKILL)
            time.sleep(seconds)
            (second,) = [ended for ended in pool.run([asked("b", "answer")]) if ended is not None]
            assert second[1].end is End.ANSWERED and second[1].answer["pid"] != first[1].answer["pid"]
            first = second


def test_a_preparation_that_fails_is_told_with_its_last_words():
    with pytest.raises(StoreError, match="before it was ready: RuntimeError: cannot be prepared"):
        outcomes(asked("q", "answer"), duty=Duty.of(faults.solve, faults.refuse))


def test_a_system_that_can_start_no_process_is_given_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pools, "RETRY_SECONDS", 0.01)
    failures = [OSError(12, "Cannot allocate memory")] * 2

    def start(duty: Duty) -> WorkerProcess:
        if failures:
            raise failures.pop()
        return WorkerProcess(duty)

    monkeypatch.setattr(pools, "WorkerProcess", start)
    assert outcomes(asked("q", "answer"))["q"].end is End.ANSWERED
    failures += [OSError(12, "Cannot allocate memory")] * 3
    with pytest.raises(StoreError, match=r"cannot be started \(Cannot allocate memory\); fix this and run again"):
        outcomes(asked("q", "answer"))


def test_cancelling_ends_everything_and_yields_nothing_more():
    started: list[int] = []
    with Pool(DUTY, workers=2) as pool:
        is_cancelled = lambda: len(pool.running) == 2  # noqa: E731
        found = list(
            pool.run([asked("a", "sleep"), asked("b", "sleep"), asked("c", "sleep")], is_cancelled=is_cancelled)
        )
        started += [process.pid for process in pool._busy]
        assert len(started) == 2 and not any(found)
    assert wait_until(lambda: not any(is_running(pid) for pid in started))


@pytest.fixture
def process() -> Iterator[WorkerProcess]:
    process = WorkerProcess(DUTY)
    assert wait_until(process.look_ready)
    yield process
    process.kill()


def test_a_worker_ignores_ctrl_c_and_termination(process: WorkerProcess):
    process.give({"act": "sleep", "seconds": 0.5}, PLENTY)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(process.pid, number)
    found: list[ProcessOutcome] = []
    assert wait_until(lambda: bool(found.append(process.look()) or found[-1]))
    assert found[-1].end is End.ANSWERED


def test_an_answer_that_comes_too_late_is_none(process: WorkerProcess):
    """Even where nobody looked in time."""
    assert process.give({"act": "sleep", "seconds": 0.3}, ProcessLimits(0.1, 4.0))
    time.sleep(0.6)
    found = process.look()
    assert found is not None and (found.end, found.reason) == (End.TIMEOUT, "time limit of 0.1 s")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a worker ends when its problem does")
def test_a_worker_in_native_code_ends_when_its_parent_is_killed():
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def own_a_worker() -> None:
        process = WorkerProcess(DUTY)
        wait_until(process.look_ready)
        process.give({"act": "hold"}, PLENTY)
        there.send(process.pid)
        time.sleep(60.0)

    parent = context.Process(target=own_a_worker)
    parent.start()
    assert here.poll(PATIENCE)
    pid = here.recv()
    time.sleep(0.3)
    assert is_running(pid)
    parent.kill()
    parent.join(PATIENCE)
    assert wait_until(lambda: not is_running(pid))


def test_a_worker_ends_when_its_lifeline_is_cut(process: WorkerProcess):
    process.give({"act": "sleep", "seconds": 60.0}, PLENTY)
    os.close(process._lifeline)
    process._lifeline = -1
    assert wait_until(lambda: not process.is_alive)
