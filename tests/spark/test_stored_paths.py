"""Writes to another engine's table, each of which needs the partition paths that its stored rows have."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError

from tests.helpers.handmade import HandmadeTable

PARTITION = "us/2024/01/15"
GIVEN = {
    "hoodie.datasource.write.partitionpath.field": "country:SIMPLE,ts:TIMESTAMP",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.keygen.timebased.output.timezone": "UTC",
}
WRITES = {
    "upsert": lambda table, rows, options: table.upsert(rows, options=options),
    "insert": lambda table, rows, options: table.insert(rows, options=options),
    "bulk_insert": lambda table, rows, options: table.bulk_insert(rows, options=options),
    "insert_overwrite": lambda table, rows, options: table.insert_overwrite(rows, options=options),
    "delete": lambda table, rows, options: table.delete(rows, options=options),
}


@pytest.fixture
def outside(tmp_path):
    """A table of version 6 as Apache Hudi's data source leaves it, without the kinds of its partition fields."""
    schema = pa.schema([("id", pa.int64()), ("country", pa.string()), ("ts", pa.int64())])
    properties = {
        "hoodie.table.timeline.timezone": "LOCAL",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
    }
    made = HandmadeTable(tmp_path / "outside", schema, ("country", "ts"), properties=properties)
    rows = pa.table({"id": [1], "country": ["us"], "ts": [1705311000000]}, schema=schema)
    made.commit({PARTITION: {"a1b2c3d4-0000-4000-8000-000000000000-0": rows}})
    return made


@pytest.mark.parametrize("operation", WRITES)
def test_a_write_without_the_options_writes_nothing(spark, outside, operation):
    before = sorted(outside.path.rglob("*"))
    rows = spark.sql("SELECT 1L AS id, 'us' AS country, 1705311000000L AS ts")
    table = HudiTable.open(spark, str(outside.path))
    with pytest.raises(
        ConfigError, match="does not keep how its partition paths were made: give .*partitionpath.field"
    ):
        WRITES[operation](table, rows, {})
    assert sorted(outside.path.rglob("*")) == before


def test_rows_meet_those_of_their_key_by_the_settings_that_were_given(spark, outside):
    table = HudiTable.open(spark, str(outside.path))
    rows = spark.sql("SELECT id, 'us' AS country, 1705311000000L + id AS ts FROM VALUES (1L), (2L) AS t(id)")
    assert table.upsert(rows, options=GIVEN).rows_updated == 1
    found = table.snapshot().select("id", "ts", "_hoodie_partition_path").collect()
    assert sorted(map(tuple, found)) == [
        (1, 1705311000001, PARTITION),
        (2, 1705311000002, PARTITION),
    ]
    assert table.delete(spark.sql("SELECT 1L AS id")).rows_deleted == 1, (
        "keys alone are looked for everywhere"
    )


@pytest.mark.parametrize("left_out", ["hive_style_partitioning", "partition.fields", "keygenerator.class"])
def test_a_table_that_lacks_what_decides_its_paths_gets_no_second_row_of_a_key(spark, tmp_path, left_out):
    schema = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("city", pa.string())])
    properties = {
        "hoodie.table.timeline.timezone": "LOCAL",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    }
    column, partition = ("at", "at=2024/01/15") if left_out == "keygenerator.class" else ("city", "city=lima")
    made = HandmadeTable(tmp_path / "t", schema, (column,), properties=properties)
    rows = pa.table({"id": [1], "at": [1705311000000], "city": ["lima"]}, schema=schema)
    made.commit({partition: {"a1b2c3d4-0000-4000-8000-000000000000-0": rows}})
    file = made.path / ".hoodie" / "hoodie.properties"
    file.write_text("".join(line for line in file.read_text().splitlines(True) if left_out not in line))
    before = sorted(made.path.rglob("*"))
    table = HudiTable.open(spark, str(made.path))
    with pytest.raises(ConfigError, match=rf"lie in '{partition}'.* Add what the table lacks .*{left_out}"):
        table.upsert(rows)
    assert sorted(made.path.rglob("*")) == before
