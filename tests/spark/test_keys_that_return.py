"""A key that was deleted and comes back with an older ordering value: merge-on-read shows what copy-on-write does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine import HudiTable, read
from hudi_engine.errors import DataError

from tests.helpers.forms import in_turn
from tests.helpers.hudi_rs import rows_by_hudi_rs

SCHEMA = pa.schema(
    [("key", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("_hoodie_is_deleted", pa.bool_())]
)
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
EXECUTORS = {"hoodie.engine.small.batch.rows": "0"}
WAYS = {"driver": {}, "buckets": BUCKETS, "executors": EXECUTORS}
DELETED = {
    "by the delete operation": ("delete", 10, False),
    "by a mark with a greater value": ("upsert", 20, True),
}


def rows(*given: tuple[str, int, str], deleted: bool = False) -> pa.Table:
    return pa.Table.from_pylist(
        [{"key": key, "ts": ts, "v": text, "_hoodie_is_deleted": deleted} for key, ts, text in given], SCHEMA
    )


def table_of(spark, path: Path, table_type: str, options: dict[str, str]) -> HudiTable:
    return HudiTable.create(
        spark,
        str(path),
        name="t",
        record_key=["key"],
        precombine_field="ts",
        table_type=table_type,
        options=options,
    )


def seen(table: HudiTable) -> list[tuple[str, int, str]]:
    """Rows that all three readers agree on."""
    names = ["key", "ts", "v"]
    ours = sorted(tuple(row.values()) for row in read(table.path, columns=names).to_arrow().to_pylist())
    assert rows_by_hudi_rs(table.path, names) == ours
    assert sorted(tuple(row[name] for name in names) for row in table.snapshot().collect()) == ours
    return ours


@pytest.mark.parametrize(("way", "deleted"), in_turn(tuple(WAYS), tuple(DELETED)))
def test_an_older_row_of_a_deleted_key_is_inserted(spark, tmp_path: Path, way: str, deleted: str) -> None:
    options = WAYS[way]
    operation, when, mark = DELETED[deleted]
    found = {}
    for table_type in ("cow", "mor"):
        table = table_of(spark, tmp_path / table_type, table_type, options)
        table.upsert(rows(("k", 10, "first"), ("other", 10, "stays"), ("changed", 10, "old")))
        table.upsert(rows(("changed", 11, "new")))
        getattr(table, operation)(rows(("k", when, "gone"), deleted=mark))
        assert seen(table) == [("changed", 11, "new"), ("other", 10, "stays")]
        table.upsert(rows(("k", 5, "back"), ("other", 9, "late"), ("added", 1, "new")))
        table.upsert(rows(("k", 4, "too late")))
        found[table_type] = seen(table)
        if table_type == "mor":
            table.compact()
            assert seen(table) == found["mor"]
    assert found["mor"] == found["cow"] == [
        ("added", 1, "new"), ("changed", 11, "new"), ("k", 5, "back"), ("other", 10, "stays")
    ]  # fmt: skip


def test_a_newer_row_of_a_deleted_key_goes_to_the_log(spark, tmp_path: Path) -> None:
    table = table_of(spark, tmp_path / "t", "mor", {})
    table.upsert(rows(("k", 10, "first")))
    table.delete(rows(("k", 10, "gone")))
    table.upsert(rows(("k", 10, "back")))
    assert [file.name for file in (tmp_path / "t").glob("*.parquet")] == [table.files()[0].path]
    assert seen(table) == [("k", 10, "back")]


def test_keys_that_a_base_file_holds_twice_are_deleted_though_it_has_a_log(spark, tmp_path: Path) -> None:
    table = table_of(spark, tmp_path / "t", "mor", {})
    table.bulk_insert(rows(("a", 1, "one"), ("b", 1, "one"), ("twice", 1, "one"), ("twice", 1, "two")))
    table.upsert(rows(("a", 2, "new")))
    table.delete(rows(("twice", 1, "")))
    assert seen(table) == [("a", 2, "new"), ("b", 1, "one")]


def test_while_a_compaction_is_planned_such_a_row_is_refused(spark, tmp_path: Path) -> None:
    table = table_of(spark, tmp_path / "t", "mor", {})
    table.upsert(rows(("k", 10, "first"), ("other", 10, "stays")))
    table.delete(rows(("k", 10, "gone")))
    table.schedule_compaction()
    with pytest.raises(
        DataError, match=r"bring back deleted keys with a smaller ts .* compaction of it is pending"
    ):
        table.upsert(rows(("k", 5, "back")))
    assert seen(table) == [("other", 10, "stays")]
    table.compact()
    table.upsert(rows(("k", 5, "back")))
    assert seen(table) == [("k", 5, "back"), ("other", 10, "stays")]
