"""The rows of an export as dictionaries, and their sums."""

import numpy as np

from steadygaze.results.export import Table


def rows_of(table: Table) -> list[dict]:
    rows = []
    for block in table.blocks():
        columns = [values.tolist() if isinstance(values, np.ndarray) else values for values in block.values()]
        rows += [dict(zip(block, row, strict=True)) for row in zip(*columns, strict=True)]
    assert len(rows) == len(table)
    return rows


def sums(rows: list[dict], column: str) -> dict[str, float]:
    """The shares by label, without the undecided part of each row."""
    totals: dict[str, float] = {}
    for row in rows:
        is_open = row["label_open" if column == "classification" else "attention_open"]
        totals[row[column]] = totals.get(row[column], 0.0) + row["share"] - is_open
    return totals
