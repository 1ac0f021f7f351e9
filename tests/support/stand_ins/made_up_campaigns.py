"""Campaigns with made-up rows: plans of bundled names, and the answers that a test gives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from steadygaze.campaign.columns import EMPTY_ANSWER, PERCENTS, SHARES, percent_column, share_column
from steadygaze.campaign.plan_file import read_plan
from steadygaze.campaign.stored_campaign import Plan, Store, Task

HEAD = """
[campaign]
name = "made up"
[limits]
seconds = 60
memory_gib = 4
[[models]]
use = ["M-FNN-100", "M-FNN-200"]
[[images]]
use = "mnist:69990..69991"
[combinations]
B = ["brightness:0..0.05"]
P = ["patch:x=12,y=12,w=4,h=4:0..0.05"]
"""
MAPS = '[[runs]]\nmethod = "map"\n'
SEARCHES = '[[runs]]\nmethod = "gbs"\nproperty = ["cr", "ar"]\n[[runs]]\nmethod = "bfs"\nmodels = "*-100"\n'
Answers = Callable[[Task], dict[str, Any] | None]


def made_up_plan(place: Path, runs: str = MAPS + SEARCHES) -> Plan:
    """A plan of two networks, two images and two combinations."""
    (place / "plan.toml").write_text(HEAD + runs, encoding="utf-8")
    return read_plan(place / "plan.toml")


def made_up(place: Path, answers: Answers, runs: str = MAPS + SEARCHES) -> Store:
    """A campaign in `place/out`; a problem whose answer is None has not ended. `seconds` may be among the answers."""
    store = Store.begin(place / "out", made_up_plan(place, runs))
    for task in store.plan.tasks:
        answer = answers(task)
        if answer is not None:
            seconds = answer.pop("seconds", 0.5)
            row = {
                "key": task.key,
                "answer": EMPTY_ANSWER | answer,
                "measured": {"seconds": seconds, "peak_mib": 300.0},
            }
            store.put(row)
    return store


def shares(
    cr: float, ar: float, *, slack: float = 0.0, percents: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4)
) -> dict[str, Any]:
    """The answer of a map with these shares of CR and AR, independent of each other; each is known up to the slack."""
    exact = {"CR": cr, "MR": 1 - cr, "AR": ar, "IR": 1 - ar}
    values = {name: exact[name] if name in exact else exact[name[:2]] * exact[name[3:]] for name in SHARES}
    starts = {share_column(name): value for name, value in values.items()}
    starts |= {percent_column(name): value for name, value in zip(PERCENTS, percents, strict=True)}
    bounds = {}
    for start, value in starts.items():
        bounds |= {f"{start}_low": max(0.0, value - slack), f"{start}_high": min(1.0, value + slack)}
    common = {"status": "NotRobust", "verdict": "not robust", "regions": 10, "regions_cr_ir": 4, "undecided": slack}
    return common | bounds | {"map_size": 20.0, "face_checks": 0}


def visited(regions: int, *, share: float = 0.5, status: str = "NotRobust", seconds: float = 0.1) -> dict[str, Any]:
    """The answer of a search."""
    counts = {"regions": regions, "face_checks": 3 * regions, "visited_share": share}
    return {"status": status, "verdict": "undecided", "seconds": seconds} | counts
