"""Columns that log blocks of Hudi 0.x are older than have the defaults of the table's Avro schema."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.merge.younger_columns import schema_that_fills
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.meta_fields import with_meta_columns
from slices import DEFAULT, SliceBuilder, config, upserts

RELEASE_0 = {
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
}
OLD_PART = pa.struct({"x": pa.int64()})
OLD = pa.schema(
    {
        "id": pa.string(),
        "ts": pa.int64(),
        "part": OLD_PART,
        "list": pa.list_(OLD_PART),
        "map": pa.map_(pa.string(), OLD_PART),
    }
)


def default(name: str, kind: Any, value: Any) -> dict[str, Any]:
    return {"name": name, "type": [kind, "null"], "default": value}


def table_schema(*younger: dict[str, Any]) -> str:
    part = {
        "type": "record",
        "name": "Part",
        "fields": [{"name": "x", "type": "long"}, default("y", "int", 5)],
    }
    stored = [
        {"name": "id", "type": "string"},
        {"name": "ts", "type": "long"},
        {"name": "part", "type": ["null", part], "default": None},
        {"name": "list", "type": ["null", {"type": "array", "items": "Part"}], "default": None},
        {"name": "map", "type": ["null", {"type": "map", "values": ["null", "Part"]}], "default": None},
    ]
    return json.dumps({"type": "record", "name": "t", "fields": [*stored, *younger]})


def row(key: str) -> dict[str, Any]:
    part = {"x": 1}
    return {"id": key, "ts": 1, "part": part, "list": [part, None], "map": [("k", part)]}


def rows_of(folder: Path, avro: str, **options: Any) -> dict[str, dict[str, Any]]:
    empty = {**dict.fromkeys(OLD.names), "id": "empty", "ts": 1}
    builder = (
        SliceBuilder(folder, OLD)
        .add_base([row("base")])
        .add_log(upserts([row("log"), empty], 2, OLD, **options))
    )
    settings = config(DEFAULT, **RELEASE_0)
    schema = with_meta_columns(avro_to_arrow(avro))
    fills_by = schema_that_fills(settings, avro, by_ids=False)
    found = read_slice(builder.context(settings, schema=schema, fills_by=fills_by), builder.build())
    names = avro_to_arrow(avro).names
    return {each["id"]: each for each in found.select(names).to_pylist()}


def test_missing_columns_and_nested_fields_have_their_defaults_in_avro_blocks(tmp_path: Path) -> None:
    younger = [
        default("text", "string", "x"),
        default("flag", "boolean", False),
        default("day", {"type": "int", "logicalType": "date"}, 1),
        default("at", {"type": "long", "logicalType": "timestamp-micros"}, 1_000_000),
        default("clock", {"type": "int", "logicalType": "time-millis"}, 2_000),
        default("raw", "bytes", "\u00ff"),
        default("whole", "Part", {"x": 3}),
        default("several", {"type": "array", "items": "long"}, [1, 2]),
        {"name": "nothing", "type": ["null", "long"], "default": None},
    ]
    found = rows_of(tmp_path, table_schema(*younger))

    second = datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc)
    filled = {
        "text": "x",
        "flag": False,
        "day": datetime.date(1970, 1, 2),
        "clock": datetime.time(0, 0, 2),
        "at": second,
        "raw": b"\xff",
        "whole": {"x": 3, "y": 5},
        "several": [1, 2],
        "nothing": None,
    }
    part = {"x": 1, "y": 5}
    assert found["log"] == {
        "id": "log",
        "ts": 1,
        "part": part,
        "list": [part, None],
        "map": [("k", part)],
        **filled,
    }
    assert found["empty"] == {"id": "empty", "ts": 1, "part": None, "list": None, "map": None, **filled}
    assert found["base"]["part"] == {"x": 1, "y": None}
    assert all(found["base"][name] is None for name in filled)


def test_parquet_blocks_have_nulls(tmp_path: Path) -> None:
    found = rows_of(tmp_path, table_schema(default("text", "string", "x")), block_format="parquet")

    assert found["log"]["text"] is None and found["log"]["part"] == {"x": 1, "y": None}


def test_a_default_that_cannot_be_filled_is_refused(tmp_path: Path) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    with pytest.raises(UnsupportedTableError, match="decimal.*has the default"):
        rows_of(tmp_path, table_schema(default("price", decimal, "\u0001")))


@pytest.mark.parametrize(
    ("settings", "by_ids"),
    [(config(DEFAULT), False), (config(DEFAULT, **RELEASE_0), True)],
    ids=["ours", "by ids"],
)
def test_other_tables_have_nulls(settings: TableConfig, by_ids: bool) -> None:
    assert schema_that_fills(settings, table_schema(), by_ids=by_ids) is None
    no_default = json.dumps({"type": "record", "name": "t", "fields": [{"name": "a", "type": "long"}]})
    assert schema_that_fills(config(DEFAULT, **RELEASE_0), no_default, by_ids=False) is None
