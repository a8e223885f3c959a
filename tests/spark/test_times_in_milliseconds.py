"""Tables of other writers with ``timestamp-millis`` and required columns, continued by this engine."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine import HudiTable, SchemaError
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.table.state import TableState
from hudi_engine.table.write.operation import INSERT_OVERWRITE_TABLE

from tests.helpers.handmade import HandmadeTable
from tests.helpers.read_table import read_table

pytestmark = pytest.mark.sampled

AT = {"type": "long", "logicalType": "timestamp-millis"}
FIELDS = [
    {"name": "at", "type": AT},
    {"name": "n", "type": "int"},
    {"name": "s", "type": ["null", {"type": "record", "name": "S", "fields": [{"name": "at", "type": AT}]}]},
    {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["red", "blue"]}},
]
FIRST = 1705311000000
IN_PARQUET = {"hoodie.logfile.data.block.format": "parquet"}


class ForeignTable(HandmadeTable):
    """A table whose schema says more than Arrow's types do; its key is a time."""

    def avro_text(self):
        return json.dumps({"type": "record", "name": "flink", "namespace": "source", "fields": FIELDS})


def at(number):
    return dt.datetime.fromtimestamp(FIRST / 1000 + number, dt.timezone.utc)


def row(number, n, color="red"):
    return {"at": at(number), "n": n, "s": {"at": at(number)}, "color": color}


@pytest.fixture
def table(spark, tmp_path, table_type):
    schema = avro_to_arrow({"type": "record", "name": "flink", "fields": FIELDS})
    made = ForeignTable(tmp_path / "t", schema, merge_on_read=table_type == "mor")
    rows = pa.Table.from_pylist([row(0, 0), row(1, 0)], schema=schema)
    instant = made.next_instant()
    stat = made.write_file("", "11111111-1111-4111-8111-111111111111-0", rows, instant)
    path = tmp_path / "t" / stat.path
    keys = [str(FIRST), str(FIRST + 1000)]
    stored = pq.read_table(path)
    pq.write_table(stored.set_column(2, "_hoodie_record_key", pa.array(keys)), path)
    made.complete(instant, [stat])
    return HudiTable.open(spark, str(made.path))


def fields(table):
    text = TableState.load(table.storage).schema_json()
    return {field["name"]: field for field in json.loads(text)["fields"]}


def numbers(table):
    """What each row's key is by now, as Spark and as Arrow read it."""
    by_spark = {each["_hoodie_record_key"]: (each["n"], each["at"]) for each in table.snapshot().collect()}
    rows = read_table(table.storage).to_pylist()
    assert {
        each["_hoodie_record_key"]: (each["n"], each["at"].replace(tzinfo=None)) for each in rows
    } == by_spark
    return {key: value for key, (value, _) in by_spark.items()}


@pytest.mark.parametrize("options", [{}, IN_PARQUET], ids=["avro-blocks", "parquet-blocks"])
def test_a_row_is_found_by_its_key_and_times_stay_what_they_are(spark, table, options):
    schema = avro_to_arrow({"type": "record", "name": "flink", "fields": FIELDS})
    rows = pa.Table.from_pylist([row(1, 1), row(2, 2)], schema=schema)

    table.upsert(rows, options=options)

    assert numbers(table) == {str(FIRST): 0, str(FIRST + 1000): 1, str(FIRST + 2000): 2}
    assert list(fields(table).values()) == FIELDS
    assert table.delete(rows.select(["at"])).rows_deleted == 2
    assert numbers(table) == {str(FIRST): 0}


def test_a_batch_that_spark_spreads_is_written_alike(spark, table):
    schema = avro_to_arrow({"type": "record", "name": "flink", "fields": FIELDS})
    rows = pa.Table.from_pylist([row(1, 1), row(2, 2), row(2, 3)], schema=schema)

    table.upsert(rows, options={"hoodie.engine.small.batch.rows": "0"})

    assert set(numbers(table)) == {str(FIRST), str(FIRST + 1000), str(FIRST + 2000)}
    found = {name: field["type"] for name, field in fields(table).items()}
    assert found["at"] == AT, "a row whose only key column is null is refused"
    assert found["n"] == ["null", "int"]
    table.delete(rows.select(["at"]), options={"hoodie.engine.small.batch.rows": "0"})
    assert {name: field["type"] for name, field in fields(table).items()} == found


def test_files_and_schema_agree_after_a_column_was_added(spark, table, table_type):
    rows = spark.sql(
        f"select timestamp_millis({FIRST}) at, 1 n, named_struct('at', timestamp_millis(5)) s, 'blue' color, 1L more"
    )

    table.upsert(rows)

    more = {"name": "more", "type": ["null", "long"], "default": None}
    assert list(fields(table).values()) == [*FIELDS, more]
    if table_type == "mor":
        table.compact()
    newest = max(Path(table.storage.base).glob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])
    stored = pq.read_schema(newest)
    assert stored.field("at").type == stored.field("s").type.field("at").type == pa.timestamp("ms", "UTC")
    assert numbers(table) == {str(FIRST): 1, str(FIRST + 1000): 0}


def test_a_table_that_is_altered_keeps_its_times_and_required_columns(spark, table):
    struct = table.schema.add("more", "long")

    table.alter_schema(struct)

    more = {"name": "more", "type": ["null", "long"], "default": None}
    assert list(fields(table).values()) == [*FIELDS, more]


@pytest.mark.parametrize("options", [{}, IN_PARQUET], ids=["avro-blocks", "parquet-blocks"])
def test_a_required_column_becomes_optional_with_the_null_that_comes_into_it(spark, table, options):
    rows = spark.sql(
        f"select timestamp_millis({FIRST}) at, cast(null as int) n, named_struct('at', timestamp_millis(5)) s, 'red' color"
    )

    table.upsert(rows, options=options)

    n = {"name": "n", "type": ["null", "int"], "default": None}
    assert list(fields(table).values()) == [FIELDS[0], n, *FIELDS[2:]]
    assert numbers(table) == {str(FIRST): None, str(FIRST + 1000): 0}


def test_a_required_column_becomes_optional_when_a_batch_lacks_it(spark, table):
    table.upsert(spark.sql(f"select timestamp_millis({FIRST + 2000}) at, 1 n, 'red' color"))
    table.upsert(spark.sql(f"select timestamp_millis({FIRST + 3000}) at, 1 n"))

    assert {name: field["type"] for name, field in fields(table).items()} == {
        **{field["name"]: field["type"] for field in FIELDS}, "color": ["null", FIELDS[3]["type"]],
    }  # fmt: skip


def test_times_that_were_dropped_do_not_come_back_in_another_unit(spark, table):
    table.alter_schema("at timestamp, n int, color string")
    back = spark.sql(
        f"select timestamp_millis({FIRST}) at, 1 n, 'red' color, named_struct('at', timestamp_millis(5)) s"
    )

    with pytest.raises(SchemaError, match="'s' was dropped with times in another unit"):
        table.upsert(back)
    assert numbers(table) == {str(FIRST): 0, str(FIRST + 1000): 0}


@pytest.mark.parametrize(
    ("write", "small_rows"),
    [("upsert", "1000"), ("upsert", "0"), ("bulk_insert", "0")],
    ids=["driver", "tasks", "bulk"],
)
def test_a_text_that_is_no_symbol_of_its_enum_is_refused(spark, table, write, small_rows):
    rows = spark.sql(
        f"select timestamp_millis({FIRST}) at, 1 n, named_struct('at', timestamp_millis(5)) s, 'green' color"
    )

    with pytest.raises(Exception, match="'green' is none of them"):
        getattr(table, write)(rows, options={"hoodie.engine.small.batch.rows": small_rows})
    assert numbers(table) == {str(FIRST): 0, str(FIRST + 1000): 0}


def test_a_table_that_is_written_anew_has_a_schema_of_its_own(spark, table):
    table.write_anew(INSERT_OVERWRITE_TABLE, spark.sql(f"select timestamp_millis({FIRST}) at, 'green' color"))

    assert fields(table)["color"] == {"name": "color", "type": ["null", "string"], "default": None}
    assert [row["color"] for row in table.snapshot().collect()] == ["green"]
