"""What the golden tables are made of: one story a table, told in Apache Hudi's own write operations.

A table's name says what it is: ``<table version>_<cow|mor>_<key generator>_<what>_h<Hudi release>``.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

Row = Mapping[str, Any]
RELEASES = {"h0122": "0.12.2", "h0131": "0.13.1", "h0150": "0.15.0", "h120": "1.2.0"}


@dataclass(frozen=True)
class Write:
    """One write of a story."""

    operation: str
    rows: pa.Table
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One SQL procedure of a story; ``last_instant`` is replaced by the newest one."""

    procedure: str
    arguments: Mapping[str, str | int]


@dataclass(frozen=True)
class Sql:
    """Statements of a story, for what no data frame makes; ``{path}`` is replaced by the table's folder."""

    statements: tuple[str, ...]


@dataclass(frozen=True)
class Story:
    """How a golden table came to be.

    Args:
        name: Its name, as said above.
        options: Options of every write.
        steps: What was done, in order.
        disputed: Columns left out of the answers, since Hudi's readers disagree about them: of a timestamp
        key
            generator's partition column some give the stored value and some the folder's text.
    """

    name: str
    options: Mapping[str, str]
    steps: tuple[Write | Call | Sql, ...]
    disputed: tuple[str, ...] = ()

    @property
    def release(self) -> str:
        """Hudi release that writes the table."""
        return RELEASES[self.name.rsplit("_", 1)[1]]

    @property
    def is_merge_on_read(self) -> bool:
        """Whether the table has logs."""
        return "_mor_" in self.name


_ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("ts", pa.int64()),
        ("day", pa.string()),
    ]
)


def orders(*rows: tuple[int, str | None, float | None, int, str]) -> pa.Table:
    """Give rows of (id, name, price, ts, day)."""
    return pa.Table.from_pylist([dict(zip(_ORDERS.names, row, strict=True)) for row in rows], schema=_ORDERS)


_FIRST = orders(
    (1, "bolt", 1.5, 10, "mon"), (2, "nut", 0.5, 10, "mon"), (3, "gear", 8.25, 10, "tue"), (4, None, None, 10,
    "tue"), (5, "rod", 2.0, 10, "wed"),
)  # fmt: skip
_SECOND = orders((2, "nut M4", 0.75, 20, "mon"), (4, "cog", 3.0, 20, "tue"), (6, "pin", 0.1, 20, "wed"))
_LATE = orders((2, "too late", 0.0, 15, "mon"), (3, "in time", 9.0, 30, "tue"), (7, "cam", 4.0, 15, "wed"))
_BUCKET_PARTITIONER = "org.apache.hudi.table.action.commit.SparkBucketIndexPartitioner"
_NON_PARTITIONED = {
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
}
_BY_DAY = {"hoodie.datasource.write.partitionpath.field": "day"}
_HIVE = {**_BY_DAY, "hoodie.datasource.write.hive_style_partitioning": "true"}
_MOR = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline.max.delta.commits": "50",
}
_COMPACT = Call(
    "run_compaction", {"op": "scheduleandexecute", "options": "hoodie.compact.inline.max.delta.commits=1"}
)


def _complex_key() -> dict[str, str]:
    return {
        "hoodie.datasource.write.recordkey.field": "id,name",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    }


def _timestamp_rows(*rows: tuple[int, str, int, int]) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("ts", pa.int64()), ("seen", pa.int64())])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


_TIMESTAMP = {
    "hoodie.datasource.write.partitionpath.field": "seen",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.deltastreamer.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.deltastreamer.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}

_NAME = pa.struct([("lang", pa.string()), ("text", pa.string())])
_TYPES = pa.schema([
    ("id", pa.int64()), ("ts", pa.int64()), ("flag", pa.bool_()), ("small", pa.int32()), ("real",
    pa.float32()), ("double", pa.float64()), ("text", pa.string()), ("bytes", pa.binary()), ("day",
    pa.date32()), ("at", pa.timestamp("us", "UTC")), ("money", pa.decimal128(10, 2)), ("huge",
    pa.decimal128(38, 10)), ("tags", pa.list_(pa.string())), ("counts", pa.map_(pa.string(), pa.int32())),
    ("place", pa.struct([("lat", pa.float64()), ("names", pa.list_(_NAME))])),
])  # fmt: skip


def _every_type(identifier: int, ts: int, *, empty: bool = False) -> dict[str, Any]:
    if empty:
        return {"id": identifier, "ts": ts}
    return {
        "id": identifier, "ts": ts, "flag": identifier % 2 == 0, "small": -identifier, "real": 0.5,
        "double": -1e300, "text": "naïve 😀 \"quoted\"\n", "bytes": b"\x00\xff\x80",
        "day": datetime.date(1969, 12, 31),
        "at": datetime.datetime(2262, 4, 12, 1, 2, 3, 456789, datetime.timezone.utc),
        "money": decimal.Decimal("-99999999.99"),
        "huge": decimal.Decimal("1234567890123456789012345678.0123456789"),
        "tags": ["a", ""], "counts": {"b": 2, "a": ts},
        "place": {"lat": 48.1, "names": [{"lang": "de", "text": "Zürich"}]},
    }  # fmt: skip


def _types(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=_TYPES)


_TYPE_STEPS = (
    Write("upsert", _types(_every_type(1, 1), _every_type(2, 1), _every_type(3, 1, empty=True))),
    Write("upsert", _types(_every_type(2, 2, empty=True), _every_type(3, 2), _every_type(4, 2))),
)


def _widened(table: pa.Table) -> pa.Table:
    """Give the rows with a new column."""
    return table.append_column("note", pa.array([f"note {value}" for value in table["id"].to_pylist()]))


def _vectors(table: str, *more: str) -> tuple[Sql, ...]:
    """Give the steps of a table with vectors of each kind; ``more`` are its properties."""
    one = "array(1.5F, -2.25F, 0F), array(0.1D, -2D), array(1Y, -2Y, 127Y, -128Y), 10L"
    properties = ", ".join(
        ("primaryKey='id'", "preCombineField='ts'", "'hoodie.metadata.enable'='false'", *more)
    )
    return (
        Sql((
            f"CREATE TABLE {table} (id bigint, near VECTOR(3), far VECTOR(2, DOUBLE), small VECTOR(4, INT8), "
            f"ts bigint) USING hudi TBLPROPERTIES ({properties}) LOCATION '{{path}}'",
            f"INSERT INTO {table} SELECT 1L, {one} UNION ALL SELECT 2L, {one} UNION ALL SELECT 3L, "
            "null, null, null, 10L",
        )),
        Sql((f"UPDATE {table} SET near = array(3F, 4F, 5F), far = null, ts = 20L WHERE id = 2",)),
        Sql((f"DELETE FROM {table} WHERE id = 1",)),
    )  # fmt: skip


def _marked(table: pa.Table, *, deleted: bool = False) -> pa.Table:
    """Give the rows with Hudi's mark, by which a delete has its ordering value."""
    return table.append_column("_hoodie_is_deleted", pa.array([deleted] * table.num_rows))


_ARCHIVE_SOON = {
    "hoodie.clean.automatic": "false", "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3",
}  # fmt: skip


STORIES: tuple[Story, ...] = (
    Story("v4_cow_simple_archived_h0122", {**_HIVE, **_ARCHIVE_SOON},
          (Write("insert", _FIRST), Write("upsert", _SECOND),
           Write("insert_overwrite", orders((8, "new", 1.0, 40, "mon"))), Write("upsert", _LATE),
           Write("delete", orders((5, None, None, 50, "wed"))), Call("downgrade_table", {"to_version": "FOUR"}))),
    Story("v5_mor_simple_deletes_h0122", {**_HIVE, **_MOR},
          (Write("upsert", _FIRST), Write("upsert", _SECOND),
           Write("delete", orders((1, None, None, 30, "mon"), (6, None, None, 30, "wed"))),
           Write("upsert", orders((1, "back", 1.0, 40, "mon"))), Write("upsert", _LATE))),
    Story("v5_mor_simple_event_time_h0131",
          {**_HIVE, **_MOR,
           "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
           "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
          (Write("upsert", _marked(_FIRST)), Write("upsert", _marked(_SECOND)),
           Write("upsert", _marked(orders((2, "late", None, 15, "mon"), (4, "in time", None, 30, "tue")), deleted=True)),
           Write("upsert", _marked(_LATE), {"hoodie.compact.inline.max.delta.commits": "3"}),
           Write("upsert", _marked(orders((6, "late", None, 5, "wed"), (8, "none", None, 5, "tue")), deleted=True)),
           Write("delete", _marked(orders((7, None, None, 1, "wed")))))),
    Story("v6_cow_nonpartitioned_upsert_h0150", _NON_PARTITIONED,
          (Write("insert", _FIRST), Write("upsert", _SECOND), Write("upsert", _LATE))),
    Story("v6_cow_simple_overwrite_h0150", _HIVE,
          (Write("bulk_insert", _FIRST), Write("upsert", _SECOND),
           Write("insert_overwrite", orders((8, "new", 1.0, 40, "mon"))), Write("upsert", _LATE))),
    Story("v6_cow_complex_delete_h0150", {**_BY_DAY, **_complex_key()},
          (Write("upsert", _FIRST.filter(pa.array([True, True, True, False, True]))),
           Write("delete", orders((3, "gear", None, 50, "tue"), (5, "rod", None, 50, "wed"))),
           Write("upsert", orders((3, "gear", 7.0, 60, "tue"))))),
    Story("v6_cow_timestamp_keys_h120", _TIMESTAMP,
          (Write("insert", _timestamp_rows((1, "a", 1, 1709251200000), (2, "b", 1, 1709337600000), (3, "c", 1,
          -1))),
           Write("upsert", _timestamp_rows((2, "b2", 2, 1709337600000), (4, "d", 2, 1709251200000)))),
          disputed=("seen",)),
    Story("v6_cow_simple_urlencoded_h120", {**_HIVE, "hoodie.datasource.write.partitionpath.urlencode":
    "true"},
          (Write("insert", orders((1, "a", 1.0, 1, "a b/c"), (2, "b", 2.0, 1, "50%=x"), (3, "c", 3.0, 1,
          "ü:?"))),
           Write("upsert", orders((2, "b2", 2.5, 2, "50%=x"))))),
    Story("v6_cow_simple_evolution_h120", _HIVE,
          (Write("insert", _FIRST), Write("upsert", _widened(_SECOND)))),
    Story("v6_cow_simple_clustering_h0150", _HIVE,
          (Write("insert", _FIRST), Write("upsert", _SECOND), Call("run_clustering", {"op":
          "scheduleAndExecute"}),
           Write("upsert", _LATE))),
    Story("v6_cow_nonpartitioned_types_h120", _NON_PARTITIONED, _TYPE_STEPS),
    Story("v6_mor_simple_deletes_h0150", {**_HIVE, **_MOR},
          (Write("upsert", _FIRST), Write("upsert", _SECOND),
           Write("delete", orders((1, None, None, 30, "mon"), (6, None, None, 30, "wed"))),
           Write("upsert", orders((1, "back", 1.0, 40, "mon"))))),
    Story("v6_mor_simple_compaction_h0150", {**_HIVE, **_MOR},
          (Write("upsert", _FIRST), Write("upsert", _SECOND), _COMPACT, Write("upsert", _LATE))),
    Story("v6_mor_nonpartitioned_types_h0150", {**_NON_PARTITIONED, **_MOR}, _TYPE_STEPS),
    Story("v6_mor_nonpartitioned_parquet_logs_h120",
          {**_NON_PARTITIONED, **_MOR, "hoodie.logfile.data.block.format": "parquet"}, _TYPE_STEPS),
    Story("v6_mor_simple_event_time_h120",
          {**_HIVE, **_MOR,
           "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
           "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
          (Write("upsert", _FIRST), Write("upsert", _SECOND), Write("upsert", _LATE))),
    Story("v6_mor_bucket_logs_only_h0150",
          {**_HIVE, **_MOR, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2",
           "hoodie.bucket.index.hash.field": "id", "hoodie.storage.layout.type": "BUCKET",
           "hoodie.storage.layout.partitioner.class": _BUCKET_PARTITIONER},
          (Write("upsert", _FIRST), Write("upsert", _SECOND))),
    Story("v9_cow_nonpartitioned_upsert_h120", _NON_PARTITIONED,
          (Write("insert", _FIRST), Write("upsert", _SECOND), Write("delete", orders((1, None, None, 90,
          "mon"))))),
    Story("v9_mor_simple_deletes_h120", {**_HIVE, **_MOR},
          (Write("upsert", _FIRST), Write("upsert", _SECOND), _COMPACT,
           Write("delete", orders((1, None, None, 90, "mon"))), Write("upsert", _LATE))),
    Story("v6_cow_nonpartitioned_vectors_h120", {},
          _vectors("vectors_6", "type='cow'", "'hoodie.write.table.version'='6'")),
    Story("v9_mor_nonpartitioned_vectors_h120", {}, _vectors("vectors_9", "type='mor'")),
)  # fmt: skip
