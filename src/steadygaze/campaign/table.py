"""From the rows of a campaign to tables: one line per problem as CSV or Parquet, and the paper's table of statuses.

Tables follow the order of the plan, whatever the order in which problems ended. Solves nothing and prints nothing.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from ..errors import OptionError
from ..verdict import Status
from .plan import Plan, Task
from .schema import COLUMNS, MEASURED, Column
from .store import Store

STATUSES = tuple(status.value for status in Status)
SETTINGS = ("delta", "filter", "dist", "classes", "until", "w_delta")
"""What tells two problems of one algorithm apart besides model, image and perturbations."""
Record = dict[str, Any]


def make_records(store: Store) -> list[Record]:
    """One record for each problem that has ended, with all columns of the schema, in the order of the plan."""
    rows = store.rows()
    return [_record(store.plan, task, rows[task.key]) for task in store.plan.tasks if task.key in rows]


def columns(*, is_measured: bool = True) -> tuple[Column, ...]:
    """The columns of a table; without what is measured, the same campaign gives the same bytes every time."""
    return COLUMNS if is_measured else COLUMNS[: -len(MEASURED)]


def to_csv(records: Sequence[Record], *, is_measured: bool = True) -> str:
    """Records as CSV (RFC 4180, with \\n at the end of lines); what is not known is empty, numbers have all digits."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [column.name for column in columns(is_measured=is_measured)]
    writer.writerow(names)
    writer.writerows([cell(record[name]) for name in names] for record in records)
    return stream.getvalue()


def to_parquet(records: Sequence[Record], *, is_measured: bool = True) -> bytes:
    """Records as a Parquet file; what is not known is null. Needs the extra `export`."""
    try:
        import pyarrow  # noqa: PLC0415 (an extra)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise OptionError(
            "Parquet needs another package; install it: pip install 'steadygaze[export]', or take --format csv"
        ) from None
    kinds = {"text": pyarrow.string(), "whole": pyarrow.int64(), "number": pyarrow.float64()}
    chosen = columns(is_measured=is_measured)
    fields = pyarrow.schema([(column.name, kinds[column.kind]) for column in chosen])
    arrays = [pyarrow.array([record[column.name] for record in records], type=kinds[column.kind]) for column in chosen]
    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=fields), stream)
    return stream.getvalue()


def settings_of(plan: Plan) -> list[str]:
    """Which of `SETTINGS` the plan has several of."""
    return [name for name in SETTINGS if len({getattr(task, name) for task in plan.tasks} - {None}) > 1]


def count_statuses(plan: Plan, records: Sequence[Record], *, is_measured: bool = True) -> list[Record]:
    """The table of the paper's appendix: how many problems ended how, for every algorithm and number of neurons.

    `SETTINGS` that the plan has several of are columns. `open` counts problems that have not ended. Seconds (where a
    Timeout counts with its limit, and a Failed problem not at all) and memory are left out unless `is_measured`.
    """
    extra = settings_of(plan)
    by_key = {record["key"]: record for record in records}
    groups: dict[tuple[Any, ...], list[Task]] = {}
    for task in plan.tasks:
        kind = (task.algorithm, plan.models[task.model].neurons, *(getattr(task, name) for name in extra))
        groups.setdefault(kind, []).append(task)
    algorithms = list(dict.fromkeys(task.algorithm for task in plan.tasks))
    ordered = sorted(groups, key=lambda kind: (algorithms.index(kind[0]), kind[1]))
    lines = []
    for kind in ordered:
        own = [by_key[task.key] for task in groups[kind] if task.key in by_key]
        line: Record = dict(zip(("algorithm", "neurons", *extra), kind, strict=True))
        line |= {status: sum(record["status"] == status for record in own) for status in STATUSES}
        line |= {"open": len(groups[kind]) - len(own)}
        line |= _measures(own) if is_measured else {}
        lines.append(line)
    return lines


def to_text(lines: Sequence[Mapping[str, Any]]) -> str:
    """Lines of a table (at least one) in aligned columns, headings first; texts to the left, numbers to the right."""
    heads = list(lines[0])
    cells = [[_short(line[head]) for head in heads] for line in lines]
    widths = [max(len(head), *(len(row[i]) for row in cells)) for i, head in enumerate(heads)]
    is_text = [isinstance(lines[0][head], str) for head in heads]

    def aligned(row: Sequence[str]) -> str:
        padded = zip(row, widths, is_text, strict=True)
        return "  ".join(cell.ljust(width) if left else cell.rjust(width) for cell, width, left in padded).rstrip()

    return "\n".join(aligned(row) for row in (heads, *cells)) + "\n"


def cell(value: Any) -> str:
    """A value in CSV: empty where it is not known, with all digits."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _record(plan: Plan, task: Task, row: Mapping[str, Any]) -> Record:
    model = plan.models[task.model]
    question = {
        "key": task.key,
        "model": task.model,
        "neurons": model.neurons,
        "group": model.group,
        "image": task.image,
        "combination": task.combination,
        "perturbations": " ".join(plan.combinations[task.combination]),
        "method": task.method,
        "property": task.property,
        "algorithm": task.algorithm,
        "delta": task.delta,
        "filter": task.filter,
        "dist": task.dist,
        "classes": task.classes,
        "until": None if task.until is None else str(task.until),
        "w_delta": task.w_delta,
        "limit_seconds": task.seconds,
        "limit_gib": task.memory_gib,
    }
    values = question | dict(row["answer"]) | dict(row["measured"])
    # A row that was stored before a column was thought of does not know it.
    return {column.name: values.get(column.name) for column in COLUMNS}


def _measures(records: Sequence[Record]) -> Record:
    seconds = [
        record["seconds"] for record in records if record["status"] != "Failed" and record["seconds"] is not None
    ]
    peaks = [record["peak_mib"] for record in records if record["peak_mib"] is not None]
    return {
        "median s": median(seconds) if seconds else None,
        "most s": max(seconds, default=None),
        "all s": sum(seconds) if seconds else None,
        "most MiB": max(peaks, default=None),
    }


def _short(value: Any) -> str:
    """A value for people.

    >>> _short(None), _short(0.12345), _short(1234.5), _short(7)
    ('-', '0.12', '1,234', '7')
    """
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
