"""The rows of a result as tables of other libraries, without a file: Arrow, pandas, geopandas.

Columns are those of an export (`make_columns`). The libraries are extras of the installation.
"""

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from .export import (
    INTEGER,
    MOST_DRAWN,
    NUMBER,
    Table,
    arrow_block,
    arrow_schema,
    import_pyarrow,
    make_table,
    plain_cells,
    planar_geometry,
)

if TYPE_CHECKING:
    from .result import Result


def arrow_table(result: "Result", what: str) -> Any:
    """A `pyarrow.Table`; its metadata hold the facts about the result as JSON."""
    arrow, _ = import_pyarrow()
    table = make_table(result, what)
    blocks = [arrow_block(table, block) for block in table.blocks()]
    return arrow.concat_tables(blocks) if blocks else arrow_schema(table).empty_table()


def pandas_frame(result: "Result", what: str) -> Any:
    """A `pandas.DataFrame`; `attrs["steadygaze"]` holds the facts about the result. Empty cells are missing values."""
    pandas = _library("pandas")
    return _frame(pandas, make_table(result, what))


def geo_frame(result: "Result", what: str) -> Any:
    """A `geopandas.GeoDataFrame` whose shapes lie in the plane of the parameters, not on the globe."""
    geopandas = _library("geopandas")
    table = make_table(result, what)
    if table.dimension > MOST_DRAWN:
        raise OptionError(
            f"geopandas holds shapes of one or two parameters, this result has {table.dimension}; use to_pandas, which "
            "holds any number"
        )
    geometry, frame = _library("shapely.geometry", "geopandas"), _frame(_library("pandas"), table)
    shapes = geopandas.GeoSeries([geometry.shape(planar_geometry(corners)) for corners in frame.pop("vertices")])
    found = geopandas.GeoDataFrame(frame, geometry=shapes)
    found.attrs = dict(frame.attrs)
    return found


def _frame(pandas: Any, table: Table) -> Any:
    """All rows of a table; whole numbers may be missing."""
    kinds = {INTEGER: "Int64", NUMBER: "float64"}
    rows: dict[str, list[Any]] = {column.name: [] for column in table.columns}
    for block in table.blocks():
        for column in table.columns:
            rows[column.name] += plain_cells(column, block, lambda value: value)
    columns = {
        column.name: pandas.Series(rows[column.name], dtype=kinds.get(column.kind, "object"))
        for column in table.columns
    }
    frame = pandas.DataFrame(columns)
    frame.attrs["steadygaze"] = json.loads(json.dumps(dict(table.facts), allow_nan=False))
    return frame


def _library(name: str, needed: str | None = None) -> Any:
    """A library of the extra `frames`; OptionError names it if it is missing."""
    try:
        return import_module(name)
    except ImportError:
        raise OptionError(
            f"{needed or name} is not installed; install the extra `frames` (.venv/bin/pip install -e '.[frames]' in "
            "the clone), or export a CSV file"
        ) from None
