"""What cannot be written is refused by name, and the table stays as it was."""

from __future__ import annotations

import hudi_engine
import pytest
from hudi_engine import (
    ConfigError,
    CorruptTableError,
    DataError,
    HudiTable,
    InvalidKeyError,
    PathEscapeError,
    SchemaError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
)
from py4j.protocol import Py4JJavaError

from tests.spark.orders import COLUMNS, FIRST, create, frame, one_shape, rows_of


def test_a_log_bucket_refuses_a_second_row_of_a_key(spark, tmp_path):
    table = create(spark, tmp_path, table_type="mor", options={"hoodie.index.type": "BUCKET"})
    table.upsert(frame(spark, *FIRST))
    with pytest.raises(DataError, match="'2' is stored in a row that does not fulfil the match condition"):
        table.upsert(frame(spark, (2, 20, "a", "two")), match_condition="DBT_INTERNAL_DEST.ts > 50")
    assert rows_of(table) == FIRST


@pytest.mark.core
def test_assignments_and_columns_that_make_no_sense_are_refused_by_name(spark, tmp_path):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, *FIRST))
    with pytest.raises(
        ConfigError, match="'nam' is not in the table; did you mean 'name'. its columns: id, ts"
    ):
        table.update_where("id = 1", {"nam": "'x'"})
    for assignments in ({"name": "nowhere"}, {"name": "upper("}, {}, ["name"]):
        with pytest.raises(ConfigError, match="assignments"):
            table.update_where("id = 1", assignments)
    with pytest.raises(ConfigError, match="update_columns"):
        table.upsert(frame(spark, *FIRST), update_columns=["nowhere"])
    with pytest.raises(ConfigError, match="schema is"):
        table.alter_schema(["id"])
    table.upsert(frame(spark, (1, 20, "z", "ignored")), update_columns="ts")
    table.alter_schema("id int, ts bigint, dt string, name string, price double")
    table.update_where("id = 2", {"price": 5})
    found = table.snapshot().orderBy("id").select("ts", "name", "price").collect()
    assert [tuple(row) for row in found] == [(20, "one", None), (10, "two", 5.0), (10, "three", None)]


@one_shape
@pytest.mark.parametrize(
    ("rows", "columns", "error"),
    [
        ([(None, 1, "a", "x")], COLUMNS, InvalidKeyError),
        ([(1, "a", "x")], "ts bigint, dt string, name string", SchemaError),
        ([(1, [1], "a", "x")], "id int, ts array<int>, dt string, name string", SchemaError),
        ([(1, 1, "a", "x", 1)], COLUMNS + ", __hudi_delete int", SchemaError),
    ],
    ids=["null key", "no key column", "ordering column without order", "reserved name"],
)
def test_bad_rows_leave_the_table_as_it_was(spark, table, rows, columns, error):
    table.upsert(frame(spark, *FIRST))
    before = table.timeline()
    with pytest.raises(error):
        table.upsert(spark.createDataFrame(rows, columns))
    assert rows_of(table) == FIRST
    assert [each for each in table.timeline() if each.action != "rollback"] == before


def test_a_partition_value_cannot_leave_the_table(spark, tmp_path, table_type):
    table = create(spark, tmp_path, partition_by=["dt"], table_type=table_type)
    with pytest.raises(PathEscapeError, match="nothing was read or written"):
        table.upsert(frame(spark, (1, 1, "../../out", "x")))
    assert not (tmp_path.parent / "out").exists()
    assert table.snapshot().count() == 0


@pytest.mark.core
def test_rows_that_are_no_dataframe_are_refused(spark, tmp_path):
    table = create(spark, tmp_path)
    for rows in (None, [(1, "a")]):
        with pytest.raises(ConfigError, match="Spark, pandas or Polars DataFrame"):
            table.upsert(rows)


@pytest.mark.core
def test_a_damaged_base_file_is_named(spark, tmp_path):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, *FIRST))
    (base,) = (tmp_path / "t").glob("*.parquet")
    base.write_bytes(base.read_bytes()[:100])
    with pytest.raises(Py4JJavaError, match=base.name):
        table.snapshot().collect()
    with pytest.raises(CorruptTableError, match=base.name):
        hudi_engine.read(str(tmp_path / "t")).to_arrow()


def test_create_and_open_refuse_by_name(spark, tmp_path):
    HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    with pytest.raises(TableExistsError, match="already"):
        HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    with pytest.raises(TableNotFoundError, match="no Hudi table"):
        HudiTable.open(spark, str(tmp_path / "nothing"))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.csv").write_text("1")
    with pytest.raises(TableExistsError):
        HudiTable.create(spark, str(tmp_path / "files"), name="t", record_key=["id"])
    a_file = tmp_path / "files" / "a.csv"
    with pytest.raises(TableExistsError, match="is a file"):
        HudiTable.create(spark, a_file, name="t", record_key=["id"])
    with pytest.raises(StorageError, match=f"{a_file} is a file. Choose another path"):
        HudiTable.create(spark, a_file / "below" / "t", name="t", record_key=["id"])
    with pytest.raises(
        StorageError, match="no table can be made at /proc/nope/t: .*or one that may be written"
    ):
        HudiTable.create(spark, "/proc/nope/t", name="t", record_key=["id"])
    with pytest.raises(TableNotFoundError):
        HudiTable.open(spark, a_file)


@one_shape
def test_options_that_contradict_the_table_are_refused(spark, table):
    with pytest.raises(ConfigError, match=r"recordkey\.field is 'name'.*has 'id'"):
        table.upsert(frame(spark, *FIRST), options={"hoodie.datasource.write.recordkey.field": "name"})
    payload = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    with pytest.raises(
        ConfigError, match=r"payload\.class.*has .*(DefaultHoodieRecordPayload|EVENT_TIME_ORDERING)"
    ):
        table.upsert(frame(spark, *FIRST), options={"hoodie.datasource.write.payload.class": payload})
    with pytest.raises(ConfigError, match=r"keygenerator\.type is 'TIMESTAMP'"):
        table.upsert(frame(spark, *FIRST), options={"hoodie.datasource.write.keygenerator.type": "TIMESTAMP"})
    assert table.timeline() == []


@pytest.mark.parametrize("value", ["1", "cast(null as bigint)"])
def test_an_update_that_makes_a_row_older_is_refused_and_changes_nothing(spark, tmp_path, value):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], precombine_field="ts")
    table.upsert(spark.createDataFrame([(1, 10, "a"), (2, 10, "b")], "id int, ts bigint, name string"))
    with pytest.raises(Exception, match="orders the versions of a row, and one would go from 10 to (1|null)"):
        table.update_where("id = 1", {"ts": value, "name": "'late'"})
    assert table.update_where("id = 2", {"TS": "ts + 1", "name": "'newer'"}).rows_updated == 1
    assert sorted(tuple(row) for row in table.snapshot().select("id", "ts", "name").collect()) == [
        (1, 10, "a"),
        (2, 11, "newer"),
    ]


def test_an_update_of_one_of_several_ordering_fields_is_refused_where_they_make_the_row_older(
    spark, tmp_path
):
    fields = ["day", "ts"]
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], precombine_field=fields)
    rows = [(1, 2, 10, "a"), (2, 2, 10, "b"), (3, 2, None, "c")]
    table.upsert(spark.createDataFrame(rows, "id int, day int, ts bigint, name string"))
    for late in ({"ts": "9"}, {"TS": "cast(null as bigint)"}, {"day": "1", "ts": "99"}):
        with pytest.raises(
            Exception, match="day, ts order the versions of a row, and one would go from 2, 10 to"
        ):
            table.update_where("id = 1", {**late, "name": "'late'"})
    assert table.update_where("id = 2", {"day": "3", "ts": "1", "name": "'newer'"}).rows_updated == 1
    assert table.update_where("id = 3", {"ts": "1", "name": "'later'"}).rows_updated == 1
    assert sorted(tuple(row) for row in table.snapshot().select("id", *fields, "name").collect()) == [
        (1, 2, 10, "a"),
        (2, 3, 1, "newer"),
        (3, 2, 1, "later"),
    ]
