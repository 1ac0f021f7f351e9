"""How much time does the campaign runner add to a problem, and how much more do two workers achieve than one?

    python benchmarks/campaign_overhead.py
    python benchmarks/campaign_overhead.py --problems 10 --repetitions 1

Overhead: the time from the first to the last row of a campaign with one worker, minus the seconds of its problems,
divided by their number. Throughput: one worker and two workers alternate on the same problems, once all workers are
ready.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from steadygaze.campaign import solving
from steadygaze.campaign.plan_file import read_plan
from steadygaze.campaign.run import CampaignProgress, run_campaign
from steadygaze.campaign.stored_campaign import Plan, Store
from steadygaze.campaign.worker_pool import Asked, Duty, End, Pool, ProcessLimits
from timing import RESULTS, Spread, clock, print_table, write_json

TARGETS = {"overhead ms": 50.0, "two workers against one": 1.8}
START_SECONDS = 300.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "campaign_overhead.json")
    options = parser.parse_args(arguments)
    plan = small_plan(options.problems)
    overheads = [overhead_ms(plan) for _ in range(options.repetitions)]
    ratios = throughput_ratios(plan, options.repetitions)
    rows = [
        {"measured": "overhead ms", "value": Spread.of(overheads), "is_met": Spread.of(overheads).median < 50.0},
        {"measured": "two workers against one", "value": Spread.of(ratios), "is_met": Spread.of(ratios).median >= 1.8},
    ]
    print_table(
        [
            {"": row["measured"], "median (spread)": f"{row['value']:.2f}", "target": f"{TARGETS[row['measured']]:g}",
             " ": "" if row["is_met"] else "missed"}
            for row in rows
        ]
    )  # fmt: skip
    question = (__doc__ or "").splitlines()[0]
    write_json(options.out, question, repetitions=options.repetitions, problems=len(plan.tasks), rows=rows)
    return 0


def small_plan(problems: int) -> Plan:
    """The first problems of the paper's plan that map an FNN-200 and take at most about a second."""
    plan = read_plan("paper")
    chosen = [
        task
        for task in plan.tasks
        if task.method == "map" and task.model.endswith("FNN-200") and task.combination != "TB"
    ]
    return replace(plan, name="overhead", tasks=tuple(chosen[:problems]))


def overhead_ms(plan: Plan) -> float:
    """Milliseconds per problem that a campaign with one worker adds to solving."""
    moments: list[float] = []

    def note(advance: CampaignProgress) -> None:
        if advance.done > len(moments):
            moments.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        run_campaign(plan, Path(folder) / "out", workers=1, progress=note)
        rows = Store.open(Path(folder) / "out").rows().values()
    if any(row["answer"]["status"] not in ("Robust", "NotRobust") for row in rows):
        raise SystemExit("a problem has failed")
    solving = sum(row["measured"]["seconds"] for row in list(rows)[1:])
    return 1e3 * (moments[-1] - moments[0] - solving) / (len(plan.tasks) - 1)


def throughput_ratios(plan: Plan, repetitions: int) -> list[float]:
    """The speed of two workers over that of one, pair by pair."""
    questions = [
        Asked(task.key, plan.question(task), ProcessLimits(task.seconds, task.memory_gib)) for task in plan.tasks
    ]
    duty = Duty.of(solving.solve, solving.prepare, solving.needs(plan))
    with Pool(duty, workers=1) as one, Pool(duty, workers=2) as two:
        for pool in (one, two):
            warm_up(pool, questions[0])
        return [
            clock(lambda: solve_all(one, questions))[0] / clock(lambda: solve_all(two, questions))[0]
            for _ in range(repetitions)
        ]


def warm_up(pool: Pool, question: Asked) -> None:
    """Solve small problems until every worker has solved one."""
    until = time.monotonic() + START_SECONDS
    for _ in itertools.takewhile(lambda _: len(pool.ready) < pool.size, itertools.count()):
        if time.monotonic() > until:
            raise SystemExit("the workers are not ready")
        solve_all(pool, [question] * (pool.size + 1))


def solve_all(pool: Pool, questions: Sequence[Asked]) -> None:
    for ended in pool.run(questions):
        if ended is not None and ended[1].end is not End.ANSWERED:
            raise SystemExit(f"{ended[0].key}: {ended[1].reason}")


if __name__ == "__main__":
    sys.exit(main())
