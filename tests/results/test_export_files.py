"""Files of exports: they read back unchanged, GeoJSON follows RFC 7946, and no file is half written."""

import csv
import gc
import json
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steadygaze import OptionError, StoreError, export, search
from steadygaze.results import export as export_files
from steadygaze.results.export import INTEGER, NUMBER, POINTS, Part, Table, make_columns, make_table, write_table
from steadygaze.results.result import Result

HOSTILE = (
    '=HYPERLINK("http://x")',
    "+1",
    "@SUM(A1)",
    "</script><script>alert(1)</script>",
    'a\nb,c"d',
    "\udcff",
    "é",
    "-2",
    "7",
    "8",
)


def hostile(result: Result) -> Result:
    question = replace(result.question, names=HOSTILE, model_name="=cmd|' /C calc'!A0.onnx", image_name="\n=1.png")
    return replace(result, question=question)


def written(table: Table) -> list[dict]:
    """The rows of a table, with None for nothing."""
    rows = []
    for block in table.blocks():
        names = list(block)
        columns = [values.tolist() if isinstance(values, np.ndarray) else values for values in block.values()]
        rows += [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    kinds = {column.name: column.kind for column in table.columns}
    for row in rows:
        for name, value in row.items():
            if (kinds[name] == INTEGER and value < 0) or (kinds[name] == NUMBER and np.isnan(value)):
                row[name] = None
    return rows


def read_csv(path: Path, dimension: int) -> list[dict]:
    kinds = {column.name: column.kind for column in make_columns(dimension)}
    read = {INTEGER: int, NUMBER: float, POINTS: json.loads}
    with path.open(encoding="ascii", newline="") as stream:
        return [
            {name: read.get(kinds[name], str)(cell) if cell else None for name, cell in row.items()}
            for row in csv.DictReader(stream)
        ]


@pytest.mark.parametrize("name", ["keep", "moving l1", "line", "partial", "empty"])
@pytest.mark.parametrize("what", ["regions", "pieces"])
def test_csv_reads_back_to_the_last_bit(results, tmp_path, name, what):
    result = results[name]
    assert export(result, tmp_path / "a.csv", what=what) == len(make_table(result, what))
    assert read_csv(tmp_path / "a.csv", result.question.perturbed.domain.dimension) == written(make_table(result, what))


@pytest.mark.parametrize("name", ["keep", "moving l1", "line", "empty"])
def test_parquet_reads_back_to_the_last_bit(results, tmp_path, name):
    parquet = pytest.importorskip("pyarrow.parquet")
    result = hostile(results[name])
    export(result, tmp_path / "a.parquet", format="parquet", what="pieces")
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.to_pylist() == written(make_table(result, "pieces"))
    facts = json.loads(table.schema.metadata[b"steadygaze"])
    assert facts["class_names"] == list(HOSTILE) and facts["model"]["name"] == result.question.model_name
    kinds = {INTEGER: "int64", NUMBER: "double", "string": "string"}
    for column in make_columns(result.question.perturbed.domain.dimension):
        field = table.schema.field(column.name)
        assert str(field.type) == kinds.get(column.kind, str(field.type)) and field.nullable == column.is_optional


@pytest.mark.parametrize("name", ["keep", "moving l1", "line"])
@pytest.mark.parametrize("what", ["regions", "pieces"])
def test_geojson_is_valid_and_reads_back(results, tmp_path, name, what):
    result = hostile(results[name])
    export(result, tmp_path / "a.geojson", format="geojson", what=what)
    content = json.loads((tmp_path / "a.geojson").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert content["type"] == "FeatureCollection" and "not degrees" in content["steadygaze"]["note"]
    assert content["steadygaze"]["class_names"] == list(HOSTILE)
    rows = written(make_table(result, what))
    for feature, row in zip(content["features"], rows, strict=True):
        assert feature["type"] == "Feature" and feature["id"] == row["id"]
        corners = row.pop("vertices")
        assert feature["properties"] == row
        geometry = feature["geometry"]
        if len(corners[0]) == 1:
            assert geometry == {"type": "LineString", "coordinates": [[end[0], 0.0] for end in corners]}
            continue
        (ring,) = geometry["coordinates"]
        assert geometry["type"] == "Polygon" and ring[0] == ring[-1] and len(ring) >= 4 and ring[:-1] == corners
        x, y = np.array(ring).T
        area = 0.5 * float((x[:-1] * y[1:] - x[1:] * y[:-1]).sum())
        widths = result.question.perturbed.domain.widths
        assert area / np.prod(widths) == pytest.approx(row["share"], abs=1e-9) and area > 0.0, "counter-clockwise"


def test_infinite_bounds_are_null_in_json_and_infinite_elsewhere(tmp_path):
    table = made(1, dimension=2, margin_high=np.inf)
    write_table(table, tmp_path / "a.geojson", "geojson")
    (feature,) = json.loads((tmp_path / "a.geojson").read_text())["features"]
    assert feature["properties"]["margin_high"] is None
    write_table(table, tmp_path / "a.csv", "csv")
    assert read_csv(tmp_path / "a.csv", 2)[0]["margin_high"] == np.inf


def test_no_cell_of_a_csv_is_a_formula(results, tmp_path):
    export(hostile(results["keep"]), tmp_path / "a.csv", what="pieces")
    with (tmp_path / "a.csv").open(encoding="ascii", newline="") as stream:
        for row in csv.reader(stream):
            for cell in row:
                assert cell[:1] not in ("=", "+", "@", "\t", "\r") and (cell[:1] != "-" or float(cell) <= 0.0)


def made(count: int, *, dimension: int, seen: list | None = None, **given: float) -> Table:
    """Rows of nothing in particular."""

    class Numbers(np.ndarray):
        """An array that can be watched."""

    def make(start: int, stop: int) -> dict:
        block = {}
        for column in make_columns(dimension):
            rows = stop - start
            if column.kind in (INTEGER, NUMBER):
                block[column.name] = np.full(rows, given.get(column.name, 0.5)).astype(column.kind)
            else:
                block[column.name] = [[[0.0] * dimension] * 3] * rows if column.kind == POINTS else ["CR"] * rows
        block["share"] = block["share"].view(Numbers)
        if seen is not None:
            gc.collect()
            assert sum(one() is not None for one in seen) <= 1, "earlier blocks are still held"
            seen.append(weakref.ref(block["share"]))
        return block

    return Table((Part(count, make),), dimension, {})


@pytest.mark.parametrize("format", ["csv", "geojson", "parquet"])
def test_rows_are_written_block_by_block(tmp_path, format, monkeypatch):
    monkeypatch.setattr(export_files, "BLOCK", 500)
    seen: list = []
    write_table(made(3 * 500 + 1, dimension=1, seen=seen), tmp_path / "a", format)
    assert len(seen) == 4


def test_a_failure_leaves_what_was_there(results, tmp_path):
    (tmp_path / "a.csv").write_text("mine")

    def fail(start: int, stop: int) -> dict:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        write_table(Table((made(5, dimension=2).parts[0], Part(3, fail)), 2, {}), tmp_path / "a.csv", "csv", force=True)
    assert (tmp_path / "a.csv").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_other_deltas_and_stored_results(results, stored, tmp_path):
    export(stored["moving l2"], tmp_path / "a.csv", delta="50%")
    export(results["moving l2"].with_delta("50%"), tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    export(results["moving l2"], tmp_path / "c.csv")
    assert (tmp_path / "a.csv").read_bytes() != (tmp_path / "c.csv").read_bytes()


def test_searches_in_memory_and_on_disk(tmp_path):
    found = search("M-FNN-100", "mnist:69990", ["brightness:0..0.05"], method="bfs")
    found.save(tmp_path / "found")
    export(found, tmp_path / "a.csv")
    export(tmp_path / "found", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert sum(row["share"] for row in read_csv(tmp_path / "a.csv", 1)) == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(OptionError, match="labels whole regions"):
        export(found, tmp_path / "c.csv", what="pieces")
    with pytest.raises(OptionError, match="answers only δ = 25%"):
        export(found, tmp_path / "c.csv", delta=1.0)


def test_refusals(results, tmp_path, monkeypatch):
    result = results["line"]
    for options, words in (
        ({"format": "xml"}, "expected csv, geojson, parquet"),
        ({"what": "lines"}, "expected regions or pieces"),
        ({"delta": "x"}, "not a threshold"),
    ):
        with pytest.raises(OptionError, match=words):
            export(result, tmp_path / "a", **options)
    with pytest.raises(OptionError, match="3; use --format csv or parquet"):
        write_table(made(1, dimension=3), tmp_path / "a", "geojson")
    export(result, tmp_path / "a.csv")
    with pytest.raises(StoreError, match="exists already"):
        export(result, tmp_path / "a.csv")
    export(result, tmp_path / "a.csv", force=True)
    with pytest.raises(StoreError, match="is a directory"):
        export(result, tmp_path, force=True)
    with pytest.raises(StoreError, match="is not a directory"):
        export(result, tmp_path / "a.csv" / "b.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(OptionError, match=r"pip install -e '\.\[export\]'"):
        export_files.check_format("parquet", 2)
