"""Files that Spark wrote in its calendar of before 3.0: their values are those that Spark reads, before and after a rewrite."""

from __future__ import annotations

import glob
import shutil

import hudi_engine
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine import HudiTable, UnsupportedTableError
from hudi_engine.format.schema.old_calendar import OldCalendar, days_turned

LEGACY = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
}
DAYS = [
    "0001-01-01",
    "0004-02-29",
    "1000-02-28",
    "1000-03-01",
    "1500-03-01",
    "1582-10-04",
    "1582-10-15",
    "2024-02-29",
]
TIMES = [f"{day} 00:00:01.5" for day in DAYS] + ["1850-06-01 12:00:00", "1899-12-31 12:00:00"]
ROWS = """
    select id, cast(day as date) d, cast(at as timestamp) t, named_struct('t', cast(at as timestamp), 'd', cast(day as date)) s,
        array(cast(day as date), null) l, map('a', cast(at as timestamp)) m, cast(at as timestamp_ntz) n, 1 v
    from values {} as rows(id, day, at)
"""


@pytest.fixture
def set_for_now(spark):
    """A function that sets what Spark is to be told until the test ends."""
    before: dict[str, str | None] = {}

    def set_all(values):
        for key, value in values.items():
            before.setdefault(key, spark.conf.get(key, None))
            spark.conf.set(key, value)

    yield set_all
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def written_by_an_old_spark(spark, path, frame):
    """A Parquet file of the frame's rows."""
    frame.coalesce(1).write.mode("overwrite").parquet(str(path))
    (found,) = glob.glob(f"{path}/*.parquet")
    return found


def as_spark_reads(spark, frame):
    """Numbers of the dates and times, which stay the same whatever the zone."""
    return sorted(
        tuple(row)
        for row in frame.selectExpr(
            "id", "unix_date(d)", "unix_micros(t)", "unix_micros(s.t)", "unix_date(s.d)",
            "unix_date(l[0])", "unix_micros(m['a'])", "cast(n as string)",
        ).collect()
    )  # fmt: skip


def as_arrow_has(rows):
    """The same of Arrow's rows, without the times of no zone."""

    def number(column, kind):
        return [each.cast(kind).as_py() for each in column.combine_chunks()]

    days, times = pa.int32(), pa.int64()
    struct, units = rows["s"].combine_chunks(), pa.timestamp("us", "UTC")
    return list(
        zip(
            rows["id"].to_pylist(),
            number(rows["d"], days),
            number(rows["t"].cast(units), times),
            [each.cast(times).as_py() for each in struct.field("t").cast(units)],
            [each.cast(days).as_py() for each in struct.field("d")],
            [each[0].cast(days).as_py() for each in rows["l"].combine_chunks()],
            [each.values.field(1)[0].cast(units).cast(times).as_py() for each in rows["m"].combine_chunks()],
            strict=True,
        )
    )


@pytest.mark.parametrize("kind", ["TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96"])
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Europe/Berlin"])
def test_values_are_those_that_spark_reads(spark, tmp_path, set_for_now, kind, zone):
    places = [(number, DAYS[number % len(DAYS)], at) for number, at in enumerate(TIMES)]
    set_for_now({**LEGACY, "spark.sql.parquet.outputTimestampType": kind, "spark.sql.session.timeZone": zone})
    frame = spark.sql(ROWS.format(", ".join(map(str, places))))
    path = written_by_an_old_spark(spark, tmp_path / "t", frame)
    wanted = as_spark_reads(spark, spark.read.parquet(path))
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    plain = file.read()

    calendar = OldCalendar.of(file.metadata)
    assert calendar is not None
    turned = calendar.turned(plain, "it")

    assert as_arrow_has(turned) == [row[:-1] for row in wanted]
    assert as_arrow_has(plain) != [row[:-1] for row in wanted]
    assert turned["n"].equals(plain["n"]) and turned.schema.equals(plain.schema)
    assert calendar.may_be_old(file.metadata, file.schema_arrow.remove(0))


def test_every_day_of_the_old_calendar_is_that_of_spark(spark):
    jvm = spark.sparkContext._jvm
    days = np.concatenate(
        [np.arange(-800_000, -141_000, 97), np.arange(-719_200, -718_000), np.arange(-141_500, -141_400)]
    )
    rebase = getattr(jvm.org.apache.spark.sql.catalyst.util, "RebaseDateTime$")
    rebase = getattr(rebase, "MODULE$")

    assert days_turned(days).tolist() == [rebase.rebaseJulianToGregorianDays(int(day)) for day in days]


def shown(table):
    """The rows, as Spark reads them; the engine's own reader has to agree."""
    found = sorted(
        tuple(row)
        for row in table.snapshot().selectExpr("id", "unix_date(d)", "unix_micros(t)", "v").collect()
    )
    read = hudi_engine.read(table.path).to_arrow()
    columns = [read["id"], read["d"].cast(pa.int32()), read["t"].cast(pa.int64()), read["v"]]
    assert sorted(zip(*(each.to_pylist() for each in columns), strict=True)) == found
    return found


def with_an_old_file(spark, tmp_path, set_for_now, table_type, zone="UTC"):
    """A table whose only base file an old Spark wrote."""
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type=table_type,
        schema="id int, d date, t timestamp, v int",
    )  # fmt: skip
    table.upsert(
        spark.sql(
            "select id, cast(d as date) d, cast(d as timestamp) t, 1 v from values (1, '0001-01-01'), (2, '1500-03-01'), "
            "(3, '2024-01-01') as rows(id, d)"
        )
    )
    before = shown(table)
    (base,) = glob.glob(f"{tmp_path}/t/*.parquet")
    set_for_now({**LEGACY, "spark.sql.session.timeZone": zone})
    shutil.copy(written_by_an_old_spark(spark, tmp_path / "old", spark.read.parquet(base)), base)
    return table, before, base


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_rewrite_keeps_what_spark_reads(spark, tmp_path, set_for_now, table_type):
    table, before, base = with_an_old_file(spark, tmp_path, set_for_now, table_type)
    assert pq.read_table(base)["d"].cast(pa.int32()).to_pylist() != [row[1] for row in before]
    assert shown(table) == before

    table.upsert(spark.sql("select 3 id, date'2024-01-01' d, timestamp'2024-01-01' t, 2 v"))
    if table_type == "mor":
        assert shown(table) == [*before[:2], (*before[2][:3], 2)]
        table.compact()

    assert shown(table) == [*before[:2], (*before[2][:3], 2)]
    newest = max(glob.glob(f"{tmp_path}/t/*.parquet"), key=lambda path: path.rsplit("_", 1)[1])
    assert newest != base and OldCalendar.of(pq.read_metadata(newest)) is None


def test_times_of_a_zone_that_is_not_known_are_refused_before_anything_is_written(
    spark, tmp_path, set_for_now
):
    table, _, base = with_an_old_file(spark, tmp_path, set_for_now, "cow", zone="+01:00")
    files = sorted(glob.glob(f"{tmp_path}/t/*.parquet"))

    with pytest.raises(
        UnsupportedTableError, match=r"column 't' of base file .* time zone \+01:00; this .*=CORRECTED"
    ):
        table.upsert(spark.sql("select 3 id, date'2024-01-01' d, timestamp'2024-01-01' t, 2 v"))

    assert sorted(glob.glob(f"{tmp_path}/t/*.parquet")) == files


def test_tasks_know_the_zones_of_old_times_too(spark):
    def known(batches):
        from hudi_engine.format.schema.old_calendar import _switches

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"zones": [len(_switches())]})

    rows = spark.range(1).repartition(1).mapInArrow(known, "zones long").collect()
    assert [row.zones > 100 for row in rows] == [True]
