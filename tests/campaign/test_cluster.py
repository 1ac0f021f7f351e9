"""A campaign on a real Dask scheduler with several workers on this machine, one of them killed in the middle."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from steadygaze.campaign.run import CampaignProgress, run_campaign
from steadygaze.campaign.stored_campaign import Store
from steadygaze.campaign.tables import make_records, to_csv
from steadygaze.campaign.worker_pool import Duty, End, ProcessLimits
from steadygaze.errors import OptionError, StoreError
from support.stand_ins.fault_plans import DUTY, plan_of

pytest.importorskip("distributed")

PATIENCE = 60.0
MANY = tuple(f"0.{number}" for number in range(20, 36))
HERE = ("--host", "127.0.0.1")


@contextmanager
def ended_afterwards(*arguments: str) -> Iterator[subprocess.Popen]:
    """A process of Dask's command line that is killed when the block ends."""
    command = [sys.executable, "-m", "dask", *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Cluster:
    """A scheduler and its workers; whoever needs all of them comes before whoever kills one."""

    address: str
    scheduler: subprocess.Popen
    workers: list[subprocess.Popen]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    place = tmp_path_factory.mktemp("dask")
    file = place / "scheduler.json"
    plain = (*HERE, "--no-dashboard", "--scheduler-file", str(file))
    with ExitStack() as stack:
        scheduler = stack.enter_context(ended_afterwards("scheduler", *plain, "--port", "0"))
        more = ("--nthreads", "1", "--no-nanny", "--local-directory", str(place))
        workers = [stack.enter_context(ended_afterwards("worker", *plain, *more)) for _ in range(3)]
        until = time.monotonic() + PATIENCE
        while not file.exists() or not file.read_text(encoding="utf-8").endswith("}"):
            assert scheduler.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        yield Cluster(json.loads(file.read_text(encoding="utf-8"))["address"], scheduler, workers)


def answers(out: Path) -> str:
    return to_csv(make_records(Store.open(out)), is_measured=False)


def test_cancelling_frees_the_workers(tmp_path: Path, cluster: Cluster):
    log = tmp_path / "log"
    plan, stop = plan_of(("sleep",), ("31", "32", "33"), limit=60.0), threading.Event()
    until = time.monotonic() + PATIENCE
    duty = Duty(DUTY.solve, prepare=f"{DUTY.solve.partition(':')[0]}:log_to", needs=(str(log),))

    def watch(advance: CampaignProgress) -> None:
        if (log.exists() and len(log.read_text(encoding="ascii").split()) == 3) or time.monotonic() > until:
            stop.set()

    address = cluster.address
    report = run_campaign(plan, tmp_path / "out", scheduler=address, duty=duty, progress=watch, cancelled=stop)
    assert report.missing == 3 and time.monotonic() < until
    begun, quick = time.monotonic(), plan_of(("answer",), ("0",))
    assert run_campaign(quick, tmp_path / "quick", scheduler=address, duty=DUTY).missing == 0
    assert time.monotonic() - begun < 20.0, "workers are still busy with what was cancelled"


def test_a_worker_that_is_killed_in_the_middle_is_survived(tmp_path: Path, cluster: Cluster):
    plan = plan_of(("sleep", "abort", "raise"), MANY[:8], limit=15.0)
    run_campaign(plan, tmp_path / "here", workers=2, duty=DUTY)
    killed, stop, until = threading.Event(), threading.Event(), time.monotonic() + PATIENCE

    def watch(advance: CampaignProgress) -> None:
        if time.monotonic() > until:
            stop.set()
        if advance.done >= 5 and not killed.is_set():
            killed.set()
            cluster.workers[0].kill()

    report = run_campaign(
        plan, tmp_path / "there", scheduler=cluster.address, duty=DUTY, progress=watch, cancelled=stop
    )
    assert killed.is_set() and not stop.is_set() and report.missing == 0
    assert report.counts == {"Robust": 8, "Failed": 16}
    assert answers(tmp_path / "here") == answers(tmp_path / "there")


def test_a_scheduler_that_goes_away_leaves_what_has_ended(tmp_path: Path, cluster: Cluster):
    plan, stop, until = plan_of(("sleep",), MANY), threading.Event(), time.monotonic() + PATIENCE

    def watch(advance: CampaignProgress) -> None:
        if advance.done >= 2:
            cluster.scheduler.kill()
        if time.monotonic() > until:
            stop.set()

    with pytest.raises(StoreError, match=r"the scheduler is gone.*; run again to continue"):
        run_campaign(plan, tmp_path / "out", scheduler=cluster.address, duty=DUTY, progress=watch, cancelled=stop)
    assert 2 <= len(Store.open(tmp_path / "out").rows()) < len(MANY)
    assert run_campaign(plan, tmp_path / "out", workers=2, duty=DUTY).missing == 0


def test_a_scheduler_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from steadygaze.campaign import run

    monkeypatch.setattr(run, "CONNECT_SECONDS", 1)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        with pytest.raises(OptionError, match=r"cannot be reached .*; expected the address of a Dask scheduler"):
            run_campaign(plan_of(("answer",)), tmp_path / "out", scheduler=address, duty=DUTY)


def test_a_problem_that_takes_several_workers_with_it_is_failed():
    from types import SimpleNamespace

    from distributed import KilledWorker

    from steadygaze.campaign.run import Cluster as Runner

    error = KilledWorker("key", SimpleNamespace(address="tcp://127.0.0.1:1"), 3)
    future = SimpleNamespace(status="error", exception=lambda timeout: error)
    outcome = Runner(DUTY, "tcp://127.0.0.1:1")._outcome(future)
    assert (outcome.end, outcome.seconds) == (End.FAILED, None)
    assert outcome.reason == "the workers of the cluster that had this problem died"


def test_a_worker_of_other_versions_is_refused():
    from steadygaze.campaign.run import solve_remotely
    from steadygaze.campaign.versions import made_by

    expected = made_by() | {"numpy": "9.9"}
    with pytest.raises(StoreError, match=r"a worker of the cluster has numpy [\d.]+ \(not 9.9\); install the same"):
        solve_remotely("key", {}, ProcessLimits(1.0, 1.0), DUTY, expected)
