"""Clustering and ordered loads on real Spark."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, WriteConflictError
from hudi_engine.table.snapshot.layout import inferred_columns

from tests.helpers.forms import forms

COLUMNS = "id int, ts bigint, day string, a int, s string, d decimal(9,2)"
QUIET = {"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": "false"}
BY_SHUFFLE = {"hoodie.engine.clustering.task.bytes": "0"}


def rows(numbers, ts=1):
    return [
        (
            n,
            ts,
            f"d{n % 2}",
            None if n % 17 == 0 else n * 37 % 101,
            f"customer_{n * 13 % 47:03d}",
            Decimal(n % 9 - 4),
        )
        for n in numbers
    ]


@pytest.fixture(params=forms(("cow", "mor"), ("mor",)))
def table(request, spark, tmp_path):
    made = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        partition_by=["day"],
        table_type=request.param,
        options=QUIET,
    )
    for ts, numbers in ((1, range(60)), (2, range(40, 120)), (3, range(0, 120, 7))):
        made.upsert(spark.createDataFrame(rows(numbers, ts), COLUMNS), options=QUIET)
    return made


def seen(frame):
    return sorted(tuple(row) for row in frame.drop("_hoodie_file_name").collect())


def new_files(table, instant):
    return sorted(Path(table.storage.base).glob(f"*/*_{instant}.parquet"))


def test_no_row_changes_in_whatever_order_and_changes_tell_nothing(spark, table):
    expected, newest = seen(table.snapshot()), table.timeline()[-1].requested_time
    small = {**QUIET, **BY_SHUFFLE, "hoodie.clustering.plan.strategy.target.file.max.bytes": "4000"}
    for columns, strategy, more in (
        (["a", "s", "d"], "hilbert", QUIET),
        ("s", None, small),
        (["a", "s"], "z-order", {**small, "hoodie.layout.optimize.curve.build.method": "sample"}),
    ):
        done = table.cluster(columns, strategy=strategy, options=more)
        assert (done.state, done.rows, done.partitions) == ("completed", len(expected), ("d0", "d1"))
        assert seen(table.snapshot()) == expected
    assert seen(table.snapshot(as_of=newest)) == expected
    assert table.changes(newest).count() == 0


def test_a_shuffled_group_becomes_files_that_do_not_overlap(spark, table):
    done = table.cluster(
        "a",
        where="day = 'd1'",
        options={**QUIET, **BY_SHUFFLE, "hoodie.clustering.plan.strategy.target.file.max.bytes": "4000"},
    )
    files = new_files(table, done.instant)
    assert len(files) == done.files_written > 1 and done.partitions == ("d1",)
    read = [[v for v in pq.read_table(f, columns=["a"])["a"].to_pylist() if v is not None] for f in files]
    assert all(values == sorted(values) for values in read)
    spans = sorted((values[0], values[-1]) for values in read if values)
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:]))


def test_writes_into_a_planned_clustering_are_refused_before_they_write_or_take_the_plan_back(spark, table):
    planned = table.schedule_clustering("a", options=QUIET).instant
    files = sorted(Path(table.storage.base).rglob("*.parquet"))
    more = spark.createDataFrame(rows(range(3), 9), COLUMNS)
    stands = {"hoodie.clustering.rollback.pending.replacecommit.on.conflict": "false"}
    for write in (table.upsert, table.insert_overwrite, table.delete):
        with pytest.raises(WriteConflictError, match=f"clustering {planned}, which is planned and not done"):
            write(more, options={**QUIET, **stands})
    with pytest.raises(WriteConflictError, match=planned):
        table.upsert(more, options={**QUIET, "hoodie.engine.driver.merge.bytes": "1"})
    assert sorted(Path(table.storage.base).rglob("*.parquet")) == files
    table.insert(spark.createDataFrame(rows(range(900, 903)), COLUMNS), options=QUIET)
    allow = {
        **QUIET,
        "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
    }
    table.upsert(more, options=allow)
    assert table.clusterings() == []
    before = seen(table.snapshot())
    assert table.cluster("a", options=QUIET).state == "completed"
    assert seen(table.snapshot()) == before


@pytest.mark.parametrize("how", ["partitions", "table", "delete"])
def test_an_overwrite_takes_a_plan_back_that_it_makes_pointless(how, spark, table):
    table.schedule_clustering("a", options=QUIET)
    stands = {**QUIET, "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "false"}
    with pytest.raises(WriteConflictError, match="until it is done"):
        table.delete_partitions(["d1"], options=stands)
    if how == "delete":
        table.delete_partitions(["d1"], options=QUIET)
        expected = rows(range(0, 120, 2))
    else:
        expected = rows(range(4), 9)
        write = table.insert_overwrite if how == "partitions" else table.insert_overwrite_table
        write(spark.createDataFrame(expected, COLUMNS), options=QUIET)
    assert table.clusterings() == []
    assert table.snapshot().count() == len(expected)
    assert table.cluster("a", options=QUIET).state == "completed"


def test_a_condition_must_be_about_partitions(table):
    with pytest.raises(ConfigError, match="cannot be evaluated on the partition columns day"):
        table.cluster(where="a > 3")
    with pytest.raises(ConfigError, match="give one of them"):
        table.cluster(where="day = 'd1'", partitions=["d1"])
    assert "worth rewriting" in table.cluster(where="day = 'none'").reason


def partitioned(spark, path, by, schema, data, **options):
    settings = {**QUIET, **{f"hoodie.{name}": value for name, value in options.items()}}
    made = HudiTable.create(spark, path, name="t", record_key=["id"], partition_by=by, options=settings)
    made.insert(spark.createDataFrame(data, schema), options=settings)
    return made


def test_a_condition_on_a_column_whose_value_the_folders_do_not_say_is_refused(spark, tmp_path):
    """A folder of a formatted time, or of microseconds, is not the column's value: it would choose other partitions."""
    moment = datetime(2024, 1, 5, tzinfo=timezone.utc)
    formatted = {
        "datasource.write.keygenerator.type": "TIMESTAMP",
        "keygen.timebased.timestamp.type": "SCALAR",
        "keygen.timebased.timestamp.scalar.time.unit": "SECONDS",
        "keygen.timebased.output.dateformat": "yyyyMMdd",
    }
    by_day = partitioned(
        spark, str(tmp_path / "day"), ["ts"], "id int, ts bigint", [(1, int(moment.timestamp()))], **formatted
    )
    by_time = partitioned(spark, str(tmp_path / "at"), ["at"], "id int, at timestamp", [(1, moment)])

    for made, condition in ((by_day, "ts > 1704067200"), (by_time, "at > '2024-01-01'")):
        with pytest.raises(
            ConfigError, match="does not have the values of (ts|at); name the partitions instead"
        ):
            made.cluster(where=condition)


def test_a_condition_needs_the_values_of_its_own_columns_only(spark, tmp_path):
    moments = [datetime(2024, 1, day, tzinfo=timezone.utc) for day in (5, 6)]
    made = partitioned(
        spark,
        str(tmp_path / "t"),
        ["part", "at"],
        "id int, part string, at timestamp",
        [(1, "a", moments[0]), (2, "a", moments[1]), (3, "b", moments[0])],
    )

    chosen = made.schedule_clustering("id", where="part = 'b'", options=QUIET)

    assert [each.split("/")[0] for each in chosen.partitions] == ["b"]
    with pytest.raises(
        ConfigError, match="cannot be evaluated: partition path .* does not have the values of at;"
    ):
        made.cluster(where="at > '2024-01-01'")
    with pytest.raises(
        ConfigError, match="on the partition columns part: .* does not have the values of at;"
    ):
        made.cluster(where="no_function(part) > '2024-01-01'")


def test_a_condition_may_be_about_decimals(spark, tmp_path):
    data = [(1, Decimal("1.50")), (2, Decimal("2.75")), (3, Decimal("-10.00")), (4, None)]
    made = partitioned(spark, str(tmp_path / "t"), ["price"], "id int, price decimal(10,2)", data)
    chosen = made.schedule_clustering("id", where="price > 2.5 or price = -10", options=QUIET)
    assert list(chosen.partitions) == ["-10.00", "2.75"]


def test_a_folder_of_digits_with_leading_zeros_is_the_number_for_a_condition(spark, tmp_path):
    """As a writer names its folders that pads months."""
    made = partitioned(spark, str(tmp_path / "t"), ["month"], "id int, month string", [(1, "07"), (2, "11")])
    schema = pa.schema([("id", pa.int32()), ("month", pa.int32())])
    values = [{"month": "07"}, {"month": "11"}]
    assert inferred_columns(made.config, schema, values) == ["month"]
    assert inferred_columns(made.config, schema, [*values, {"month": "7a"}]) == []


def test_partitions_that_are_not_there_are_refused_with_the_nearest(table):
    for ask in (table.cluster, table.schedule_clustering):
        with pytest.raises(ConfigError, match=r"partition\(s\) \['dd1'\] hold no rows .*did you mean 'd1'\?"):
            ask(partitions=["d1", "dd1"])
    assert table.clusterings() == []


@pytest.mark.parametrize("small", [True, False], ids=["in memory", "by a shuffle"])
def test_a_bulk_load_writes_rows_in_order(small, spark, tmp_path):
    options = {
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "s,a",
        **({} if small else {"hoodie.engine.small.batch.rows": "0"}),
    }
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], partition_by=["day"], precombine_field="ts"
    )
    table.bulk_insert(spark.createDataFrame(rows(range(300)), COLUMNS), options=options)
    assert table.snapshot().count() == 300
    files = list(tmp_path.glob("t/*/*.parquet"))
    for file in files:
        values = pq.read_table(file, columns=["s"])["s"].to_pylist()
        assert values == sorted(values)
    with pytest.raises(ConfigError, match="sort.columns names 'nothing'"):
        table.bulk_insert(
            spark.createDataFrame(rows(range(3)), COLUMNS),
            options={"hoodie.bulkinsert.user.defined.partitioner.sort.columns": "nothing"},
        )
