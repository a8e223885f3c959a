"""Text that is not UTF-8: kept where it is a value, refused where it names a row or a folder."""

from __future__ import annotations

import pytest
from hudi_engine.errors import InvalidKeyError

from tests.helpers.forms import in_turn
from tests.helpers.keyed import keyed_table

ODD = b"caf\xe9"


def frame(spark, *rows):
    df = spark.createDataFrame(rows, "id binary, ts bigint, dt binary, name binary")
    return df.selectExpr("string(id) id", "ts", "string(dt) dt", "string(name) name")


@pytest.mark.parametrize(
    ("column", "rows", "index", "operation"),
    in_turn(("id", "dt"), ("200000", "0"), ("SIMPLE", "BUCKET"), ("upsert", "bulk_insert")),
)
def test_keys_and_partitions_are_refused_by_their_value(spark, tmp_path, column, rows, index, operation):
    options = {"hoodie.index.type": index, "hoodie.engine.small.batch.rows": rows}
    table = keyed_table(spark, tmp_path / "t", "mor", options=options)
    row = {"id": b"1", "ts": 1, "dt": b"a", "name": b"x", column: ODD}
    with pytest.raises(InvalidKeyError, match=r"b'caf\\xe9' is not UTF-8 text"):
        getattr(table, operation)(frame(spark, tuple(row.values())), options=options)
    assert {each.action for each in table.timeline()} <= {"rollback"}


def test_values_are_read_back_from_logs_and_base_files(spark, tmp_path, table_type):
    table = keyed_table(spark, tmp_path / "t", table_type)
    table.upsert(frame(spark, (b"1", 1, b"a", b"x"), (b"2", 1, b"a", ODD)))
    table.upsert(frame(spark, (b"1", 2, b"a", ODD), (b"2", 2, b"a", b"y")))
    read = table.snapshot().selectExpr("id", "binary(name) name").collect()
    assert sorted((row.id, bytes(row.name)) for row in read) == [("1", ODD), ("2", b"y")]
