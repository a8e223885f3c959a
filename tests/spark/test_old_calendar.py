"""Files that Spark wrote in its calendar of before 3.0: Spark reads their old values, the engine refuses them."""

from __future__ import annotations

import glob
import shutil

import hudi_engine
import pytest
from hudi_engine import HudiTable, UnsupportedTableError

LEGACY = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
}


@pytest.fixture
def set_for_now(spark):
    """A function that sets options of Spark until the test ends."""
    before: dict[str, str | None] = {}

    def set_all(values):
        for key, value in values.items():
            before.setdefault(key, spark.conf.get(key, None))
            spark.conf.set(key, value)

    yield set_all
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.mark.parametrize("kind", ["TIMESTAMP_MICROS", "INT96"])
@pytest.mark.parametrize("first", ["0001-01-01", "2024-01-01"])
def test_old_values_are_refused_and_recent_ones_read(spark, tmp_path, set_for_now, kind, first):
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], schema="id int, d date, t timestamp, v int"
    )
    table.upsert(
        spark.sql(
            f"select id, cast(d as date) d, cast(d as timestamp) t, 1 v from values (1, '{first}'), (3, '2024-01-01') as rows(id, d)"
        )
    )
    (base,) = glob.glob(f"{tmp_path}/t/*.parquet")
    set_for_now({**LEGACY, "spark.sql.parquet.outputTimestampType": kind})
    spark.read.parquet(base).coalesce(1).write.parquet(str(tmp_path / "old"))
    (old,) = glob.glob(f"{tmp_path}/old/*.parquet")
    shutil.copy(old, base)
    new = spark.sql("select 3 id, date'2024-01-01' d, timestamp'2024-01-01' t, 2 v")

    assert table.snapshot().where(f"d = date'{first}'").count() >= 1
    if first.startswith("2024"):
        table.upsert(new)
        assert sorted(row.v for row in table.snapshot().collect()) == [1, 2]
        return
    for refused in (lambda: hudi_engine.read(table.path).to_arrow(), lambda: table.upsert(new)):
        with pytest.raises(UnsupportedTableError, match=r"column '[dt]' of base file .*=CORRECTED"):
            refused()
    assert glob.glob(f"{tmp_path}/t/*.parquet") == [base]
