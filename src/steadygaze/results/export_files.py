"""From the rows of an export to a file: CSV, GeoJSON or Parquet, block by block, all or nothing.

Numbers are written so that reading gives the same floats. CSV holds no text that comes from users, so no cell of it can
be a formula; the other two carry such text beside the rows, as JSON.
"""

import csv
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import OptionError, StoreError
from .directory import check_file, file_written_at_once
from .table import INTEGER, NUMBER, POINTS, TEXT, Block, Column, Table

MOST_DRAWN = 2
"""Parameters up to which rows are shapes in the plane."""

ENDINGS = {"csv": ".csv", "geojson": ".geojson", "parquet": ".parquet"}


def check_format(format: str, dimension: int) -> str:
    """The format, if it can hold shapes of so many parameters, and what writes it is installed; OptionError else."""
    if format not in ENDINGS:
        raise OptionError(f"--format {format!r} is not known; expected {', '.join(ENDINGS)}")
    if format == "geojson" and dimension > MOST_DRAWN:
        raise OptionError(
            f"GeoJSON holds shapes of one or two parameters, this result has {dimension}; take --format csv or "
            "parquet, which take any number"
        )
    if format == "parquet":
        _pyarrow()
    return format


def write_table(table: Table, path: str | Path, format: str, *, force: bool = False) -> Path:
    """Write a table to a file, which appears when it is complete; an existing one is refused without `force`."""
    write = {"csv": _write_csv, "geojson": _write_geojson, "parquet": _write_parquet}[
        check_format(format, table.dimension)
    ]
    target = check_file(path, force=force)
    try:
        with file_written_at_once(target) as new:
            write(table, new)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error}); choose another --out") from None
    return target


def _write_csv(table: Table, path: Path) -> None:
    with path.open("w", encoding="ascii", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([column.name for column in table.columns])
        for block in table.blocks():
            writer.writerows(zip(*(_cells(column, block, _csv_number) for column in table.columns), strict=True))


def _csv_number(value: float) -> Any:
    return "" if math.isnan(value) else value


def _write_geojson(table: Table, path: Path) -> None:
    """A FeatureCollection as in RFC 7946, whose positions are thetas; what the question was is a foreign member."""
    names = [column.name for column in table.columns if column.kind != POINTS]
    columns = [column for column in table.columns if column.kind != POINTS]
    with path.open("w", encoding="ascii") as stream:
        facts = json.dumps(dict(table.facts), allow_nan=False)
        stream.write(f'{{"type": "FeatureCollection", "steadygaze": {facts}, "features": [')
        separator = "\n"
        for block in table.blocks():
            rows = zip(*(_cells(column, block, _json_number) for column in columns), strict=True)
            for row, corners in zip(rows, block["vertices"], strict=True):
                properties = dict(zip(names, row, strict=True))
                feature = {"type": "Feature", "id": properties["id"], "geometry": _geometry(corners)}
                stream.write(separator + json.dumps(feature | {"properties": properties}, allow_nan=False))
                separator = ",\n"
        stream.write("\n]}\n")


def _json_number(value: float) -> Any:
    return value if math.isfinite(value) else None


def _geometry(corners: list[list[float]]) -> dict[str, Any]:
    """A polygon with a closed ring; with one parameter a line on the first axis, as a position has two numbers.

    >>> _geometry([[0.25], [0.5]])
    {'type': 'LineString', 'coordinates': [[0.25, 0.0], [0.5, 0.0]]}
    """
    if len(corners[0]) == 1:
        return {"type": "LineString", "coordinates": [[end, 0.0] for (end,) in corners]}
    return {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}


def _write_parquet(table: Table, path: Path) -> None:
    arrow, parquet = _pyarrow()
    kinds = {
        INTEGER: arrow.int64(),
        NUMBER: arrow.float64(),
        TEXT: arrow.string(),
        POINTS: arrow.list_(arrow.list_(arrow.float64())),
    }
    fields = [arrow.field(column.name, kinds[column.kind], column.is_optional) for column in table.columns]
    schema = arrow.schema(fields, metadata={"steadygaze": json.dumps(dict(table.facts), allow_nan=False)})
    with parquet.ParquetWriter(path, schema) as writer:
        for block in table.blocks():
            writer.write_table(arrow.Table.from_pydict(dict(_arrays(table, block)), schema=schema))


def _arrays(table: Table, block: Block) -> Iterator[tuple[str, list[Any]]]:
    for column in table.columns:
        yield column.name, _cells(column, block, lambda value: None if math.isnan(value) else value)


def _cells(column: Column, block: Block, number: Callable[[float], Any]) -> list[Any]:
    """The cells of a column as plain values; nothing is None, and of numbers what `number` makes of it."""
    values = block[column.name]
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if column.kind == NUMBER:
        return [number(value) for value in values]
    if column.kind == INTEGER:
        return [None if value < 0 else value for value in values]
    return list(values)


def _pyarrow() -> tuple[Any, Any]:
    """The library that writes Parquet, an extra of the installation."""
    try:
        import pyarrow  # noqa: PLC0415 (large, and needed for one format alone)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise OptionError(
            "Parquet needs pyarrow, which is not installed: pip install 'steadygaze[export]', or take --format csv"
        ) from None
    return pyarrow, parquet
