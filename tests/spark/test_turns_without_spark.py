"""One table, written on Spark and without it in turn: each goes on where the other has stopped, and both read the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hudi_engine
import pyarrow as pa
import pytest
from hudi_engine import HudiTable

COLUMNS = "id bigint, ts bigint, day string, v string"
NAMES = ["id", "ts", "day", "v"]


def tuples(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in NAMES) for row in rows)


@pytest.mark.core
@pytest.mark.parametrize(("kind", "version"), [("cow", "6"), ("mor", "6"), ("mor", "9")])
def test_writers_with_and_without_spark_take_turns(
    spark: Any, tmp_path: Path, kind: str, version: str
) -> None:
    path = str(tmp_path / "t")
    ours = HudiTable.create(
        spark, path, name="t", record_key=["id"], precombine_field="ts", partition_by=["day"], table_type=kind,
        options={"hoodie.write.table.version": version},
    )  # fmt: skip
    other = hudi_engine.open_table(path)
    ours.upsert(spark.createDataFrame([(n, 1, "ab"[n % 2], "spark") for n in range(6)], COLUMNS))
    begin = ours.timeline()[-1].requested_time
    other.upsert(pa.table({"id": [0, 1, 6], "ts": [2, 0, 1], "day": ["a", "b", "c"], "v": ["arrow"] * 3}))
    ours.update_where("id = 2", {"v": "'sql'"})
    other.delete(pa.table({"id": [3]}))
    ours.upsert(spark.createDataFrame([(6, 2, "c", "spark")], COLUMNS))
    if kind == "mor":
        assert other.compact().state == "completed"
    other.upsert(pa.table({"id": [5], "ts": [2], "day": ["b"], "v": ["arrow"]}))

    expected = [
        (0, 2, "a", "arrow"), (1, 1, "b", "spark"), (2, 1, "a", "sql"), (4, 1, "a", "spark"),
        (5, 2, "b", "arrow"), (6, 2, "c", "spark"),
    ]  # fmt: skip
    assert tuples(row.asDict() for row in ours.snapshot().collect()) == expected
    assert tuples(other.to_arrow().to_pylist()) == expected
    assert ours.validate(keys=True, deep=True) == []
    for mode in ("net", "all", "latest"):
        by_spark = [row.asDict() for row in ours.changes(begin, mode=mode).collect()]
        by_arrow = other.changes(begin, mode=mode).to_pylist()
        assert sorted(map(str, by_arrow)) == sorted(map(str, by_spark)), mode


def test_rows_have_the_same_types_and_keys_on_both_ways(spark: Any, tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int16()),
            "at": pa.array([0, None], pa.timestamp("ms", "UTC")),
            "price": pa.array(["1.50", "2.25"]).cast(pa.decimal128(10, 2)),
            "day": pa.array([0, 1], pa.date32()),
            "deep": [{"a": [1], "b": {"c": 1.5}}, None],
            "ratio": pa.array([0.1, 1e20], pa.float32()),
        }
    )
    keys = ["id", "price", "ratio", "day"]
    definition: dict[str, Any] = {"name": "t", "record_key": keys, "partition_by": ["day"]}
    by_spark = HudiTable.create(spark, str(tmp_path / "spark"), **definition)
    by_arrow = hudi_engine.create_table(tmp_path / "arrow", **definition)
    by_spark.upsert(rows)
    by_arrow.upsert(rows)

    meta = ["_hoodie_record_key", "_hoodie_partition_path"]
    found = [
        hudi_engine.read(path, columns=[*meta, *rows.column_names]).to_arrow().sort_by("_hoodie_record_key")
        for path in (by_spark.path, by_arrow.path)
    ]
    assert found[0].equals(found[1])
