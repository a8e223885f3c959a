"""Tables of many columns: what PySpark and Arrow do for each column is done for all of them at once."""

from __future__ import annotations

import time

import py4j.clientserver
import pyarrow as pa
import pytest
from hudi_engine import HudiTable


def batch(spark, columns, keys, value):
    """Rows of a key, an ordering field, and half texts, half numbers."""
    texts = {f"t{number}": [f"{number} {value} {key}" for key in keys] for number in range(columns // 2)}
    numbers = {f"n{number}": [number + value] * len(keys) for number in range(columns // 2)}
    return spark.createDataFrame(pa.table({"k": keys, "ts": [value] * len(keys), **texts, **numbers}))


def wide_table(spark, folder, columns, table_type="cow"):
    table = HudiTable.create(
        spark, str(folder), name="t", record_key=["k"], precombine_field="ts", table_type=table_type
    )
    table.upsert(batch(spark, columns, ["a", "b", "c"], 1))
    return table


def calls_of_java(monkeypatch, act):
    calls = []
    real = py4j.clientserver.ClientServerConnection.send_command
    with monkeypatch.context() as patch:
        patch.setattr(
            py4j.clientserver.ClientServerConnection,
            "send_command",
            lambda self, command: calls.append(command) or real(self, command),
        )
        act()
    return len(calls)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_calls_of_java_do_not_grow_with_columns(spark, tmp_path, monkeypatch, table_type):
    found = []
    for columns in (20, 400):
        table = wide_table(spark, tmp_path / str(columns), columns, table_type)
        table.update_where("k = 'b'", {"n1": "7"})
        rows = batch(spark, columns, ["a"], 3)
        acts = (
            lambda table=table, rows=rows: table.upsert(rows),
            lambda table=table: table.update_where("k = 'b'", {"n1": "8"}),
            lambda table=table: table.snapshot().select("k").collect(),
        )
        found.append([calls_of_java(monkeypatch, act) for act in acts])
    few, many = found
    # 380 columns more
    assert all(more < calls + 200 for calls, more in zip(few, many, strict=True)), found
    assert sorted(map(tuple, table.snapshot().select("k", "ts", "n1", "t9").collect())) == [
        ("a", 3, 4, "9 3 a"),
        ("b", 1, 8, "9 1 b"),
        ("c", 1, 2, "9 1 c"),
    ]


@pytest.mark.long
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_an_upsert_of_five_rows_into_5000_columns_takes_seconds(spark, tmp_path, table_type):
    table = wide_table(spark, tmp_path / "t", 5000, table_type)
    table.upsert(batch(spark, 5000, ["a", "b", "c", "d", "e"], 2))
    rows = batch(spark, 5000, ["a", "b", "c", "d", "e"], 3)
    begun = time.process_time()
    table.upsert(rows)
    # of the processor: other processes may be busy
    assert time.process_time() - begun < 5
    assert table.snapshot().selectExpr("sum(ts)", "sum(n2)").first() == (15, 25)
