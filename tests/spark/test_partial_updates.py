"""Updates of some columns in logs of versions 8 and 9: blocks with these columns alone, and when rows are whole."""

from __future__ import annotations

import json
from pathlib import Path

import hudi_engine
import pytest
from hudi_engine import HudiTable
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.spark.write.rows.clauses import MergeClauses
from hudi_engine.spark.write.rows.settled import ACTION, OLD_KEY, OLD_PARTITION, OLDER, UPDATE
from pyspark.sql import functions as F

from tests.helpers.forms import in_turn

TYPES = "id string, ts long, dt string, qty int, note string"
FIRST = [(f"k{key}", 1, "p", key, "first") for key in range(4)]


def make(spark, path, version=9, columns=TYPES, **options):
    given = {name.replace("__", "."): value for name, value in options.items()}
    table = HudiTable.create(
        spark, str(path), name="t", record_key="id", precombine_field="ts", partition_by="dt", table_type="mor",
        options={"hoodie.write.table.version": str(version), "hoodie.compact.inline": "false", **given},
    )  # fmt: skip
    frame = spark.createDataFrame(FIRST, TYPES)
    extra = columns.removeprefix(TYPES).strip(", ")
    if extra:
        name, kind = extra.split()
        frame = frame.withColumn(name, F.lit(False).cast(kind))
    table.upsert(frame)
    return HudiTable.open(spark, str(path), options=given)


def logged(table):
    """The columns of each data block of the logs, those of partial blocks in a list and of others in a tuple."""
    found = []
    for log in sorted(Path(table.path).glob("p/.*.log.*")):
        for block in read_blocks(log.read_bytes()) if not log.name.endswith(".cdc") else ():
            names = [each["name"] for each in json.loads(block.schema)["fields"]]
            names = [name for name in names if not name.startswith("_hoodie")]
            found.append(names if block.is_partial else tuple(names))
    return found


def rows(table):
    found = sorted(tuple(row) for row in table.snapshot().select(*NAMES).collect())
    read = hudi_engine.read(table.path).to_arrow()
    assert sorted(zip(*(read[name].to_pylist() for name in NAMES), strict=True)) == found
    return found


NAMES = ("id", "ts", "dt", "qty", "note")
WHOLE = tuple(NAMES)
CHANGED = [("k1", 2, "p", 9, "new"), ("k7", 2, "q", 7, "new")]
AFTER = sorted([FIRST[0], ("k1", 2, "p", 1, "new"), *FIRST[2:], CHANGED[1]])


@pytest.mark.parametrize(
    ("version", "publishes", "kind"), in_turn([9, 8], ["true", "false"], ["avro", "parquet"])
)
def test_logs_have_the_updated_columns_and_the_ordering_field(spark, tmp_path, version, publishes, kind):
    options = {
        "hoodie__engine__publish__manifest": publishes,
        "hoodie__logfile__data__block__format": kind,
    }
    table = make(spark, tmp_path / "t", version, **options)
    table.upsert(spark.createDataFrame(CHANGED, TYPES), update_columns=["note", "ts"])
    assert rows(table) == AFTER
    table.update_where("id = 'k0'", {"qty": "qty + 5"})
    assert logged(table) == [["ts", "note"], ["ts", "qty"]]
    late = [("k0", 0, "p", 0, "late"), ("k1", 3, "p", 0, None)]
    table.upsert(spark.createDataFrame(late, TYPES), update_columns=["note"])
    wanted = sorted([("k0", 1, "p", 5, "first"), ("k1", 2, "p", 1, None), *AFTER[2:]])
    assert rows(table) == wanted
    table.compact()
    assert rows(table) == wanted


@pytest.mark.parametrize(
    ("version", "columns", "options"),
    [
        (6, TYPES, {}),
        (9, TYPES, {"hoodie__spark__sql__merge__into__partial__updates": "false"}),
        (9, f"{TYPES}, _hoodie_is_deleted boolean", {}),
        (9, TYPES, {"hoodie__table__cdc__enabled": "true"}),
        (9, TYPES, {"hoodie__index__type": "GLOBAL_SIMPLE"}),
    ],
    ids=["version 6", "by option", "delete marks", "change data", "global index"],
)
def test_logs_have_whole_rows(spark, tmp_path, version, columns, options):
    table = make(spark, tmp_path / "t", version, columns, **options)
    table.upsert(spark.createDataFrame(CHANGED, TYPES), update_columns=["note", "ts"])
    blocks = logged(table)
    assert blocks and all(block == WHOLE for block in blocks)
    assert rows(table) == AFTER


def test_a_key_that_was_deleted_comes_back_whole(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    table.upsert(spark.createDataFrame(CHANGED[:1], TYPES), update_columns=["note", "ts"])
    table.delete_where("id = 'k1'")
    back = [("k1", 5, "p", 9, "back"), ("k2", 5, "p", 9, "more")]
    table.upsert(spark.createDataFrame(back, TYPES), update_columns=["note", "ts"])
    assert rows(table) == sorted([FIRST[0], back[0], ("k2", 5, "p", 2, "more"), FIRST[3]])


def test_a_merge_logs_the_columns_that_its_clauses_set(spark, tmp_path):
    table = make(spark, tmp_path / "t")
    clauses = MergeClauses(update_columns=("note",), by_source={"note": "'left'"})
    table.merge(spark.createDataFrame([("k1", 2, "p", 9, "new")], TYPES), clauses)
    assert logged(table) == [["ts", "note"]]
    wanted = sorted([(key, 1, "p", qty, "left") for key, _, _, qty, _ in FIRST if key != "k1"])
    assert rows(table) == sorted([*wanted, ("k1", 1, "p", 1, "new")])


def test_decided_rows_log_the_columns_that_are_named(spark, tmp_path):
    table = make(spark, tmp_path / "t")

    def decide(stored):
        there = stored.where("id = 'k2'").withColumnsRenamed(
            {"_hoodie_record_key": OLD_KEY, "_hoodie_partition_path": OLD_PARTITION}
        )
        new = [F.lit(8).cast("int").alias("qty") if name == "qty" else F.col(name) for name in NAMES]
        return there.select(
            *new, OLD_KEY, OLD_PARTITION, F.lit(UPDATE).alias(ACTION), F.lit(False).alias(OLDER)
        )

    table.merge_rows(decide, assigns=["qty"])
    assert logged(table) == [["ts", "qty"]]
    assert rows(table) == sorted([FIRST[0], FIRST[1], ("k2", 1, "p", 8, "first"), FIRST[3]])
