"""A session in which `timestamp` means the type without a zone changes nothing of what a Hudi table's moments are."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.spark.write.rows.casts import exact_cast
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.rows.schema_changes import ChangeOfColumns

ZONE, WORD = "spark.sql.session.timeZone", "spark.sql.timestampType"


@pytest.fixture
def zoneless(spark):
    """A session in New York whose word `timestamp` has no zone."""
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "America/New_York")
    spark.conf.set(WORD, "TIMESTAMP_NTZ")
    yield spark
    spark.conf.set(ZONE, str(before))
    spark.conf.unset(WORD)


def test_the_name_of_a_table_shows_the_types_that_the_table_has(zoneless, tmp_path, database, table_type):
    table = HudiTable.create(
        zoneless, str(tmp_path / "t"), name="t", record_key=["id"], table_type=table_type
    )
    moment = "timestamp_micros(1767268800000000L)"
    table.upsert(
        zoneless.sql(f"select 1 id, {moment} at, array({moment}) many, struct({moment} as timestamp) s")
    )
    for word in ("TIMESTAMP_NTZ", "TIMESTAMP_LTZ"):
        zoneless.conf.set(WORD, word)
        name = TableName(database, f"made_with_{word.lower()}")
        register_table(zoneless, name, table.storage)
        shown = zoneless.table(name.sql)
        stored = table.snapshot().select(*shown.columns)
        assert [each.dataType for each in shown.schema] == [each.dataType for each in stored.schema]
        assert shown.schema["at"].dataType == T.TimestampType()
        assert shown.select(F.unix_micros("at"), F.unix_micros("s.timestamp")).first() == (
            1767268800000000,
            1767268800000000,
        )


def test_text_becomes_the_moment_that_its_zone_says(zoneless):
    text = zoneless.sql("select '2026-01-01 12:00:00Z' at")
    fitted = text.select(exact_cast("at", T.StringType(), T.TimestampType(), "at"))
    assert fitted.schema["at"].dataType == T.TimestampType()
    assert fitted.select(F.unix_micros("at")).first() == (1767268800000000,)


def test_a_new_column_of_moments_is_one_in_the_table(zoneless):
    given = zoneless.sql("select timestamp_micros(0L) at, array(timestamp_micros(0L)) many")
    change = ChangeOfColumns(given.schema.fields, [], {})
    assert [each.dataType for each in change.applied(T.StructType([]))] == [
        T.TimestampType(),
        T.ArrayType(T.TimestampType()),
    ]
