"""`hudi_engine.Table`: writes by the pipeline of `HudiTable`, judged by a dictionary of rows and by hudi-rs."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hudi_engine
import pandas as pd
import pyarrow as pa
import pytest
from hudi_engine import ConfigError, DataError, InvalidKeyError, SchemaError, WriteConflictError
from hudi_engine.format.storage import open_storage

from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.metadata_table import differences

COLUMNS = ["id", "ts", "day", "amount"]
FORMS = [(kind, version) for kind in ("cow", "mor") for version in (6, 9)]
Row = tuple[int, int, str, float]


def orders(path: Path, kind: str = "cow", version: int = 6, **options: Any) -> hudi_engine.Table:
    return hudi_engine.create_table(
        path, name="orders", record_key=["id"], precombine_field="ts", partition_by=["day"], table_type=kind,
        options={"hoodie.write.table.version": version, **options},
    )  # fmt: skip


def arrow(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS, row)) for row in rows])


def stored(table: hudi_engine.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in COLUMNS) for row in table.to_arrow().to_pylist())


def check(table: hudi_engine.Table, expected: dict[int, Row]) -> None:
    """Compare the table with what it has to hold, read by this engine and by hudi-rs."""
    wanted = sorted(expected.values())
    assert stored(table) == wanted
    assert rows_by_hudi_rs(table.path, COLUMNS) == wanted


PROGRAM = """
import sys

started = []
sys.addaudithook(lambda event, given: started.append(event) if event in (
    "subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.system") else None)

import pyarrow as pa
import hudi_engine

table = hudi_engine.create_table(sys.argv[1], name="t", record_key=["id"], precombine_field="ts", table_type="mor")
table.upsert(pa.table({"id": [1, 2], "ts": [1, 1]}))
table.upsert(pa.table({"id": [1], "ts": [2]}))
table.delete(pa.table({"id": [2]}))
table.compact()
table.clean()
table.cluster()
assert table.to_arrow().to_pylist() == [{"id": 1, "ts": 2}]
assert started == [], started
assert {name.partition(".")[0] for name in sys.modules}.isdisjoint({"pyspark", "py4j"})
"""


def test_a_process_that_writes_starts_no_other_and_imports_no_pyspark(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "t")], check=True)


@pytest.mark.parametrize(("kind", "version"), FORMS)
def test_each_write_leaves_the_rows_it_should(tmp_path: Path, kind: str, version: int) -> None:
    table = orders(tmp_path / "t", kind, version)
    expected: dict[int, Row] = {number: (number, 1, "ab"[number % 2], 1.0) for number in range(20)}
    assert table.insert(arrow(*expected.values())).rows_inserted == 20
    newer: list[Row] = [(3, 2, "b", 9.0), (4, 0, "a", 9.0), (30, 1, "c", 9.0)]
    table.upsert(arrow(*newer))
    expected |= {3: newer[0], 30: newer[2]}
    check(table, expected)

    assert table.delete(pa.table({"id": [0, 30, 99]})).rows_deleted == 2
    del expected[0], expected[30]
    check(table, expected)

    if kind == "mor":
        assert table.compact().state == "completed"
        check(table, expected)
    table.insert_overwrite(arrow((1, 5, "b", 5.0)))
    expected = {key: row for key, row in expected.items() if row[2] != "b"} | {1: (1, 5, "b", 5.0)}
    check(table, expected)

    table.delete_where([("amount", "=", 5.0)])
    del expected[1]
    table.bulk_insert(arrow((50, 1, "d", 1.0)))
    assert table.clean(retain_commits=1).files_deleted > 0
    check(table, expected | {50: (50, 1, "d", 1.0)})
    table.insert_overwrite_table(arrow((60, 1, "e", 1.0)))
    check(table, {60: (60, 1, "e", 1.0)})
    assert table.validate(keys=True, deep=True) == []
    assert table.delete_partitions(["e"]).instant and stored(table) == []


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.index.type": "BLOOM"},
        {"hoodie.index.type": "GLOBAL_SIMPLE"},
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 3},
        {"hoodie.index.type": "RECORD_INDEX", "hoodie.write.table.version": 9},
    ],
    ids=lambda options: options["hoodie.index.type"],
)
def test_every_index_finds_the_stored_rows(tmp_path: Path, options: dict[str, Any]) -> None:
    table = orders(tmp_path / "t", "mor", **options)
    table.upsert(arrow(*[(number, 1, "ab"[number % 2], 1.0) for number in range(9)]))
    table.upsert(arrow((1, 2, "b", 2.0), (2, 2, "b", 2.0)))

    # where a key is unique in the whole table, the row moves or stays where it is
    others = {"GLOBAL_SIMPLE": [(2, 2, "b", 2.0)], "RECORD_INDEX": [(2, 2, "a", 2.0)]}
    second = others.get(options["hoodie.index.type"], [(2, 1, "a", 1.0), (2, 2, "b", 2.0)])
    assert [row for row in stored(table) if row[0] < 3] == [(0, 1, "a", 1.0), (1, 2, "b", 2.0), *second]


def test_partitions_of_times_and_keys_of_two_columns(tmp_path: Path) -> None:
    table = hudi_engine.create_table(
        tmp_path / "t", name="t", record_key=["a", "b"], partition_by=["at:timestamp"],
        options={
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
        },
    )  # fmt: skip
    table.upsert(pa.table({"a": [1, 1], "b": ["x", "y"], "at": [0, 86_400_000]}))
    table.upsert(pa.table({"a": [1], "b": ["y"], "at": [86_400_001]}))

    assert sorted(table.read(columns=["_hoodie_record_key", "_hoodie_partition_path", "at"]).to_arrow().to_pylist(),
                  key=str) == [
        {"_hoodie_record_key": "a:1,b:x", "_hoodie_partition_path": "1970-01-01", "at": 0},
        {"_hoodie_record_key": "a:1,b:y", "_hoodie_partition_path": "1970-01-02", "at": 86_400_001},
    ]  # fmt: skip


def test_generated_keys_take_inserts_alone(tmp_path: Path) -> None:
    table = hudi_engine.create_table(tmp_path / "t", name="t")
    table.insert(pa.table({"v": [1, 1]}))
    table.insert(pa.table({"v": [2]}))

    assert sorted(table.to_arrow()["v"].to_pylist()) == [1, 1, 2]
    with pytest.raises(ConfigError, match="has no record key"):
        table.upsert(pa.table({"v": [1]}))


def by_polars(rows: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(rows)


def by_duckdb(rows: pa.Table) -> Any:
    return pytest.importorskip("duckdb").from_arrow(rows)


LIBRARIES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda rows: rows.to_pandas(),
    "polars": by_polars,
    "polars lazy": lambda rows: by_polars(rows).lazy(),
    "duckdb": by_duckdb,
    "batch": lambda rows: rows.to_batches()[0],
    "reader": lambda rows: rows.to_reader(),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_of_other_libraries_are_taken(tmp_path: Path, library: str) -> None:
    table = orders(tmp_path / "t")
    given = arrow((1, 1, "a", 1.5), (2, 1, "a", 2.5))

    table.upsert(LIBRARIES[library](given))

    assert stored(table) == [(1, 1, "a", 1.5), (2, 1, "a", 2.5)]


def test_a_table_is_taken_by_other_libraries_and_tables(tmp_path: Path) -> None:
    table, copy = orders(tmp_path / "t"), orders(tmp_path / "copy")
    table.upsert(arrow((1, 1, "a", 1.5)))

    copy.insert(table)

    assert stored(copy) == [(1, 1, "a", 1.5)]
    assert pa.table(table).num_rows == 1
    assert by_polars(pa.table(table)).rows() == [(1, 1, "a", 1.5)]


def test_whole_numbers_of_pandas_with_a_null_stay_whole(tmp_path: Path) -> None:
    table = hudi_engine.create_table(
        tmp_path / "t", name="t", record_key=["id"], schema=pa.schema({"id": pa.int32(), "n": pa.int32()})
    )
    table.upsert(pd.DataFrame({"id": [1, 2], "n": [7, None]}))

    assert table.schema == pa.schema({"id": pa.int32(), "n": pa.int32()})
    assert sorted(table.to_arrow().to_pylist(), key=str) == [{"id": 1, "n": 7}, {"id": 2, "n": None}]


def test_types_become_those_of_a_hudi_table(tmp_path: Path) -> None:
    table = hudi_engine.create_table(tmp_path / "t", name="t", record_key=["id"])
    moment = datetime.datetime(2026, 1, 1, 12)
    rows = pa.table(
        {
            "id": pa.array([1], pa.uint16()),
            "code": pa.array(["x"]).dictionary_encode(),
            "naive": pa.array([moment], pa.timestamp("ns")),
            "zoned": pa.array([moment], pa.timestamp("s", "America/New_York")),
            "price": pa.array([decimal.Decimal("1.50")], pa.decimal128(10, 2)),
            "tags": pa.array([["a", None]], pa.large_list(pa.large_string())),
            "place": pa.array([{"Lat": 1.5, "lon": [{"x": 1}]}]),
        }
    )
    table.upsert(rows)
    rows = rows.set_column(6, "PLACE", pa.array([{"LAT": 2.5, "lon": [{"X": 2}]}]))
    table.upsert(rows)

    [row] = table.to_arrow().to_pylist()
    utc = datetime.timezone.utc
    assert row == {
        "id": 1, "code": "x", "naive": moment.replace(tzinfo=utc), "zoned": moment.replace(tzinfo=utc),
        "price": decimal.Decimal("1.50"), "tags": ["a", None], "place": {"Lat": 2.5, "lon": [{"x": 2}]},
    }  # fmt: skip


REFUSED = {
    "time of day": (pa.array([1], pa.time32("s")), SchemaError, "has type time32"),
    "duration": (pa.array([1], pa.duration("s")), SchemaError, "has type duration"),
    "map of numbers": (
        pa.array([[(1, 2)]], pa.map_(pa.int32(), pa.int32())),
        SchemaError,
        "map keys must be strings",
    ),
    "no type": (pa.nulls(1), SchemaError, "no value and no type"),
    "no key": (None, InvalidKeyError, "null or empty record key"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rows_that_cannot_be_written_are_refused_before_anything_is(tmp_path: Path, name: str) -> None:
    values, error, message = REFUSED[name]
    table = hudi_engine.create_table(tmp_path / "t", name="t", record_key=["id"])
    rows = pa.table({"id": ["x"]}) if values is not None else pa.table({"id": pa.nulls(1, pa.string())})

    with pytest.raises(error, match=message):
        table.upsert(rows if values is None else rows.append_column("v", values))

    assert table.timeline() == []


def test_more_rows_than_memory_should_hold_are_not_even_read(tmp_path: Path) -> None:
    table = orders(tmp_path / "t")
    read = []

    def batches() -> Any:
        for number in range(1000):
            read.append(number)
            yield pa.RecordBatch.from_pydict({"id": list(range(1000))})

    rows = pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64()}), batches())
    with pytest.raises(DataError, match=r"hoodie.engine.local.batch.bytes=10000 bytes"):
        table.insert(rows, options={"hoodie.engine.local.batch.bytes": 10_000})

    assert len(read) < 5 and table.timeline() == []


def test_what_needs_spark_is_refused_by_name(tmp_path: Path) -> None:
    table = orders(tmp_path / "t")
    with pytest.raises(ConfigError, match="hoodie.datasource.hive_sync.enable is True"):
        table.upsert(arrow((1, 1, "a", 1.0)), options={"hoodie.datasource.hive_sync.enable": True})
    with pytest.raises(ConfigError, match="the rows are a list; give a pandas or Polars DataFrame"):
        table.upsert([(1,)])
    assert table.timeline() == []


def test_a_filter_that_is_none_or_finer_than_the_column_deletes_nothing(tmp_path: Path) -> None:
    table = hudi_engine.create_table(tmp_path / "t", name="t", record_key=["id"])
    times = pa.array([1704067200000000, 1704067200000001], pa.timestamp("us"))
    days = pa.array([19723, 19723], pa.date32())
    table.insert(pa.table({"id": [1, 2], "at": times, "day": days}))
    cut = pd.Timestamp("2024-01-01T00:00:00.000000500")
    for wanted in ([("at", ">=", cut)], [("at", "in", [cut])], [("day", ">=", cut)]):
        with pytest.raises(SchemaError, match="which is none"):
            table.delete_where(wanted)
        with pytest.raises(SchemaError, match="which is none"):
            table.read(filters=wanted).to_arrow()
    with pytest.raises(ConfigError, match="delete_where has no filter"):
        table.delete_where(None)  # type: ignore[arg-type]
    assert table.read(filters=[("at", ">=", cut.floor("us"))]).to_arrow().num_rows == 2


def test_some_columns_of_stored_rows_are_replaced(tmp_path: Path) -> None:
    table = orders(tmp_path / "t")
    table.upsert(arrow((1, 1, "a", 1.0)))
    table.upsert(
        pa.table({"ID": [1], "ts": [2], "day": ["a"], "amount": [2.0], "note": ["n"]}),
        update_columns=["note", "ts"],
    )

    assert table.to_arrow().to_pylist() == [{"id": 1, "ts": 2, "day": "a", "amount": 1.0, "note": "n"}]
    with pytest.raises(ConfigError, match="update_columns .*missing.* not in the data"):
        table.upsert(arrow((1, 1, "a", 1.0)), update_columns=["missing"])


def test_decimal_keys_are_deleted_as_they_are_stored(tmp_path: Path) -> None:
    table = hudi_engine.create_table(
        tmp_path / "t", name="t", record_key=["k"], schema=pa.schema({"k": pa.decimal128(4, 1)})
    )
    table.upsert(
        pa.table({"k": pa.array([decimal.Decimal("1.0"), decimal.Decimal("2.5")], pa.decimal128(4, 1))})
    )
    given = [decimal.Decimal("1.00"), decimal.Decimal("2.55"), decimal.Decimal("123456.00")]

    assert table.delete(pa.table({"k": pa.array(given, pa.decimal128(10, 2))})).rows_deleted == 1
    assert table.to_arrow()["k"].to_pylist() == [decimal.Decimal("2.5")]


def test_marked_rows_delete_their_keys(tmp_path: Path) -> None:
    table = orders(tmp_path / "t", "mor")
    table.upsert(arrow((1, 1, "a", 1.0), (2, 1, "a", 1.0)))
    table.upsert(pa.table({"id": [1], "ts": [2], "day": ["a"], "amount": [1.0], "__HUDI_IS_DELETED": [True]}))

    assert stored(table) == [(2, 1, "a", 1.0)] and table.schema.names == COLUMNS


def test_columns_are_added_and_dropped(tmp_path: Path) -> None:
    table = hudi_engine.create_table(tmp_path / "t", name="t", record_key=["id"])
    table.upsert(pa.table({"id": [1], "old": ["x"]}))
    table.alter_schema({"id": pa.int64(), "new": pa.int8()})
    table.upsert(pa.table({"id": [2], "new": [5]}))

    assert table.schema == pa.schema({"id": pa.int64(), "new": pa.int32()})
    assert sorted(table.to_arrow().to_pylist(), key=str) == [{"id": 1, "new": None}, {"id": 2, "new": 5}]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_changes_are_those_of_the_commits(tmp_path: Path, kind: str) -> None:
    table = orders(tmp_path / "t", kind)
    first = table.upsert(arrow((1, 1, "a", 1.0), (2, 1, "a", 1.0)))
    second = table.upsert(arrow((1, 2, "a", 2.0), (3, 1, "a", 1.0)))
    third = table.delete(pa.table({"id": [2]}))

    def found(**window: Any) -> list[tuple[Any, ...]]:
        rows = table.changes(**window).to_pylist()
        return sorted((row["id"], row["amount"], row["_change_type"], row["_commit_time"]) for row in rows)

    at = [str(each.instant) for each in (first, second, third)]
    assert found() == [(1, 2.0, "insert", at[1]), (3, 1.0, "insert", at[1])]
    assert found(start=at[0]) == [
        (1, 2.0, "update_after", at[1]), (2, 1.0, "delete", at[2]), (3, 1.0, "insert", at[1])
    ]  # fmt: skip
    assert found(start=at[0], end=at[1], mode="all") == [
        (1, 1.0, "update_before", at[1]), (1, 2.0, "update_after", at[1]), (3, 1.0, "insert", at[1])
    ]  # fmt: skip
    assert found(start=at[1], include_start=True, end=at[1], mode="latest") == [
        (1, 2.0, "update_after", at[1]), (3, 1.0, "update_after", at[1])
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="mode is 'some'; legal values: net, all, latest"):
        table.changes(mode="some")


def test_a_look_before_the_commit_can_stop_it(tmp_path: Path) -> None:
    table, seen = orders(tmp_path / "t"), []
    table.upsert(arrow((1, 1, "a", 1.0)))

    def look(rows: hudi_engine.Rows) -> None:
        seen.extend(rows.to_arrow()["amount"].to_pylist())
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), hudi_engine.before_commit(look):
        table.upsert(arrow((1, 2, "a", 2.0)))

    assert seen == [2.0] and stored(table) == [(1, 1, "a", 1.0)]


def test_a_planned_write_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    table = orders(tmp_path / "t")
    table.upsert(arrow((1, 1, "a", 1.0)))

    with hudi_engine.planned_writes():
        result = table.upsert(arrow((1, 2, "a", 2.0), (2, 1, "a", 2.0)))

    assert (result.instant, result.rows_updated, result.rows_inserted) == (None, 1, 1)
    assert stored(table) == [(1, 1, "a", 1.0)]


def test_a_batch_is_written_once(tmp_path: Path) -> None:
    table = orders(tmp_path / "t")

    assert table.insert(arrow((1, 1, "a", 1.0)), batch_id=4).instant
    assert table.insert(arrow((1, 1, "a", 1.0)), batch_id=4).instant is None
    assert len(stored(table)) == 1


def test_rows_chosen_by_a_filter_that_another_writer_changes_are_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = orders(tmp_path / "t")
    table.upsert(arrow((1, 1, "a", 1.0), (2, 1, "a", 1.0)))
    write = hudi_engine.Table._write

    def overtaken(self: hudi_engine.Table, request: Any) -> Any:
        monkeypatch.undo()
        table.upsert(arrow((1, 2, "a", 2.0)))
        return write(self, request)

    monkeypatch.setattr(hudi_engine.Table, "_write", overtaken)
    with pytest.raises(WriteConflictError):
        table.delete_where([("amount", "=", 1.0)])

    assert stored(table) == [(1, 2, "a", 2.0), (2, 1, "a", 1.0)]


WRITER = """
import sys
import pyarrow as pa
import hudi_engine

path, name, times = sys.argv[1:]
table = hudi_engine.open_table(path, options={"hoodie.write.num.retries.on.conflict.failures": 50})
for number in range(int(times)):
    table.upsert(pa.table({"id": [number, 1000 + int(name)], "ts": [1, number], "day": ["a", "b"], "amount": [1.0, 1.0]}))
"""


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_two_processes_write_at_the_same_time(tmp_path: Path, kind: str) -> None:
    table = orders(tmp_path / "t", kind)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, table.path, name, "6"]) for name in ("1", "2")]

    assert [each.wait() for each in writers] == [0, 0]
    assert stored(table) == [
        *((number, 1, "a", 1.0) for number in range(6)), (1001, 5, "b", 1.0), (1002, 5, "b", 1.0)
    ]  # fmt: skip
    assert len(table.commits()) == 12
    assert table.validate(keys=True) == []


KILLED = """
import os, sys
import pyarrow as pa
import hudi_engine
from hudi_engine.table.txn.transaction import WriteTransaction

WriteTransaction.commit = lambda *given, **more: os._exit(9)
hudi_engine.open_table(sys.argv[1]).upsert(
    pa.table({"id": [1, 2], "ts": [2, 2], "day": ["a", "a"], "amount": [2.0, 2.0]}))
"""


@pytest.mark.parametrize(("kind", "version"), FORMS)
def test_the_next_writer_takes_back_what_a_killed_one_left(tmp_path: Path, kind: str, version: int) -> None:
    table = orders(tmp_path / "t", kind, version)
    table.upsert(arrow((1, 1, "a", 1.0)))

    assert subprocess.run([sys.executable, "-c", KILLED, table.path], check=False).returncode == 9
    assert stored(table) == [(1, 1, "a", 1.0)]

    table.upsert(arrow((3, 1, "a", 1.0)))
    check(table, {1: (1, 1, "a", 1.0), 3: (3, 1, "a", 1.0)})
    assert [each.state.name for each in table.timeline() if each.state.name != "COMPLETED"] == []
    assert table.validate(keys=True) == []


def test_an_index_of_a_metadata_table_that_is_off_is_refused(tmp_path: Path) -> None:
    off = {"hoodie.metadata.enable": "false"}
    with pytest.raises(ConfigError, match="hoodie.metadata.enable is false"):
        orders(tmp_path / "t", version=9, **{"hoodie.metadata.index.column.stats.enable": "true"}, **off)
    assert not (tmp_path / "t").exists()
    table = orders(tmp_path / "t", version=9)
    for index in ("hoodie.metadata.global.record.level.index.enable", "hoodie.metadata.record.index.enable"):
        with pytest.raises(ConfigError, match="would have no such index"):
            table.upsert(arrow((1, 1, "a", 1.0)), options={index: "true", **off})


@pytest.mark.parametrize(("version", "built"), [(6, False), (8, True), (9, True)])
def test_tables_of_versions_8_and_9_have_a_metadata_table(tmp_path: Path, version: int, built: bool) -> None:
    table = orders(tmp_path / "t", version=version)
    table.upsert(arrow((1, 1, "a", 1.0)))
    assert (tmp_path / "t" / ".hoodie" / "metadata" / "files").is_dir() is built
    table.upsert(arrow((3, 1, "a", 1.0)), options={"hoodie.metadata.index.column.stats.enable": "true"})
    table.upsert(arrow((4, 1, "a", 1.0)))
    assert (tmp_path / "t" / ".hoodie" / "metadata" / "column_stats").is_dir(), (
        "it is kept, and an option builds it"
    )
    assert differences(open_storage(table.path)) == []
    table.upsert(arrow((2, 1, "a", 1.0)), options={"hoodie.metadata.enable": "false"})
    assert not (tmp_path / "t" / ".hoodie" / "metadata").exists()
