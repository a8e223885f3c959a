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
from hudi_engine.format.merge.missing_columns import schema_with_defaults
from hudi_engine.format.merge.slice_reader import read_slice
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


def table_schema(*younger: dict[str, Any], inside: bool = False) -> str:
    fields = [{"name": "x", "type": "long"}, *([default("y", "int", 5)] if inside else [])]
    part = {"type": "record", "name": "Part", "fields": fields}
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
    fills_by = schema_with_defaults(settings, avro, by_ids=False)
    found = read_slice(builder.context(settings, schema=schema, fills_by=fills_by), builder.build())
    names = avro_to_arrow(avro).names
    return {each["id"]: each for each in found.select(names).to_pylist()}


def test_missing_columns_have_their_defaults_in_avro_blocks(tmp_path: Path) -> None:
    younger = [
        default("text", "string", "x"),
        default("flag", "boolean", False),
        default("day", {"type": "int", "logicalType": "date"}, 1),
        default("at", {"type": "long", "logicalType": "timestamp-micros"}, 1_000_000),
        default("clock", {"type": "int", "logicalType": "time-millis"}, 2_000),
        default("raw", "bytes", "\u00ff"),
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
        "nothing": None,
    }
    part = {"x": 1}
    assert found["log"] == {
        "id": "log",
        "ts": 1,
        "part": part,
        "list": [part, None],
        "map": [("k", part)],
        **filled,
    }
    assert found["empty"] == {"id": "empty", "ts": 1, "part": None, "list": None, "map": None, **filled}
    assert all(found["base"][name] is None for name in filled)


def test_parquet_blocks_have_nulls(tmp_path: Path) -> None:
    avro = table_schema(default("text", "string", "x"), inside=True)
    found = rows_of(tmp_path, avro, block_format="parquet")

    assert found["log"]["text"] is None and found["log"]["part"] == {"x": 1, "y": None}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}


@pytest.mark.parametrize(
    ("younger", "inside", "problem"),
    [
        ([default("price", DECIMAL, "\u0001")], False, "column 'price' of type decimal.*has the default"),
        ([default("whole", "Part", {"x": 3})], False, "column 'whole' of type struct.*has the default"),
        ([], True, "column 'part' .*has defaults of fields inside it"),
    ],
)
def test_other_defaults_are_refused(tmp_path: Path, younger: Any, inside: bool, problem: str) -> None:
    with pytest.raises(UnsupportedTableError, match=problem):
        rows_of(tmp_path, table_schema(*younger, inside=inside))


@pytest.mark.parametrize(
    ("settings", "by_ids"),
    [(config(DEFAULT), False), (config(DEFAULT, **RELEASE_0), True)],
    ids=["ours", "by ids"],
)
def test_other_tables_have_nulls(settings: TableConfig, by_ids: bool) -> None:
    assert schema_with_defaults(settings, table_schema(), by_ids=by_ids) is None
    no_default = json.dumps({"type": "record", "name": "t", "fields": [{"name": "a", "type": "long"}]})
    assert schema_with_defaults(config(DEFAULT, **RELEASE_0), no_default, by_ids=False) is None
