"""Tables of a campaign: the order is that of the plan, the schema that of the documentation."""

import io
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from steadygaze.campaign import tables as table
from steadygaze.campaign.columns import COLUMNS, MEASURED
from steadygaze.campaign.figures import make_series
from steadygaze.campaign.run import make_row
from steadygaze.campaign.stored_campaign import Store
from steadygaze.campaign.worker_pool import End, ProcessOutcome
from support.stand_ins.fault_plans import plan_of

ROOT = Path(__file__).parents[2]
PLAN = plan_of(("answer", "sleep", "abort"), ("1", "2", "3"))


def filled(place: Path, *, seed: int, leave: int = 0) -> Store:
    """A campaign whose problems ended in some order, after some time."""
    store, order = Store.begin(place, PLAN), list(PLAN.tasks)
    chance = random.Random(seed)
    chance.shuffle(order)
    for task in order[leave:]:
        seconds = chance.random()
        outcome = {
            "answer": ProcessOutcome(
                End.ANSWERED, {"status": "Robust", "cr_low": 0.1, "regions": 7}, None, seconds, 90.0
            ),
            "sleep": ProcessOutcome(End.TIMEOUT, None, "time limit of 1 s", 1.0 + seconds, 80.0),
            "abort": ProcessOutcome(End.FAILED, None, 'a, "b"', None, None),
        }[task.model]
        store.put(make_row(task.key, outcome))
    return store


def test_the_order_in_which_problems_end_does_not_matter(tmp_path: Path):
    first, second = (table.make_records(filled(tmp_path / str(seed), seed=seed)) for seed in (1, 2))
    assert [record["key"] for record in first] == [task.key for task in PLAN.tasks]
    assert table.to_csv(first) != table.to_csv(second)
    assert table.to_csv(first, is_measured=False) == table.to_csv(second, is_measured=False)
    assert table.to_parquet(first, is_measured=False) == table.to_parquet(second, is_measured=False)


def test_runs_that_differ_in_one_setting_are_told_apart():
    other = [replace(task, key=f"{task.key}-2", w_delta=0.5) for task in PLAN.tasks]
    plan = replace(PLAN, tasks=(*(replace(task, w_delta=0.2) for task in PLAN.tasks), *other))
    assert table.settings_of(PLAN) == [] and table.settings_of(plan) == ["w_delta"]
    lines = table.count_statuses(plan, [])
    assert [(line["w_delta"], line["open"]) for line in lines] == [(0.2, 6), (0.5, 6), (0.2, 3), (0.5, 3)]
    assert [one.name.partition(", ")[2] for one in make_series(plan, [])] == ["w^δ = 0.2", "w^δ = 0.5"]


def test_csv_and_parquet_hold_the_same(tmp_path: Path):
    import csv

    parquet = pytest.importorskip("pyarrow.parquet")
    records = table.make_records(filled(tmp_path / "out", seed=1))
    lines = list(csv.DictReader(io.StringIO(table.to_csv(records))))
    frame = parquet.read_table(io.BytesIO(table.to_parquet(records)))
    assert list(lines[0]) == frame.column_names == [column.name for column in COLUMNS]
    assert frame.to_pylist() == records
    assert lines[-1]["reason"] == 'a, "b"' and lines[0]["cr_low"] == "0.1" and lines[-1]["regions"] == ""
    kinds = {"text": "string", "whole": "int64", "number": "double"}
    assert [str(field.type) for field in frame.schema] == [kinds[column.kind] for column in COLUMNS]


def test_the_table_of_statuses(tmp_path: Path):
    store = filled(tmp_path / "out", seed=3, leave=2)
    lines = table.count_statuses(store.plan, table.make_records(store))
    assert [(line["algorithm"], line["neurons"]) for line in lines] == [("map", 50), ("map", 60)]
    total = {name: sum(line[name] for line in lines) for name in (*table.STATUSES, "open")}
    assert sum(total.values()) == 9 and total["open"] == 2 and total["NotRobust"] == 0
    text = table.to_text(lines)
    assert text.splitlines()[0].split()[:4] == ["algorithm", "neurons", "Robust", "NotRobust"]
    plain = table.count_statuses(store.plan, table.make_records(store), is_measured=False)
    assert not any("s" in line or "median s" in line for line in plain)


def test_deltas_are_told_apart_where_there_are_several():
    others = {"2": {"delta": "25%"}}
    tasks = tuple(replace(task, options=task.options | others.get(task.image, {})) for task in PLAN.tasks)
    lines = table.count_statuses(replace(PLAN, tasks=tasks), [])
    # "sleep" and "abort" have as many neurons.
    assert {(line["neurons"], line["delta"]): line["open"] for line in lines} == {
        (50, "25%"): 2,
        (50, "3"): 4,
        (60, "25%"): 1,
        (60, "3"): 2,
    }


def test_every_column_is_documented():
    """`python docs/make_campaign.py` writes the tables."""
    text = (ROOT / "docs" / "campaign.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    documented = {tuple(cell.strip() for cell in row.strip("|").split(" | ")) for row in rows}
    for column in COLUMNS:
        assert (f"`{column.name}`", column.kind, column.meaning.replace("|", "\\|")) in documented, column.name
    assert COLUMNS[-2:] == MEASURED
