"""hudi-rs and Apache Hudi read what our engine wrote, row for row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_engine import HudiTable

from tests.helpers.forms import forms, named
from tests.judge.apache_hudi import VERSIONS, available
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.hudi_rs import hudi_rs_rows
from tests.judge.readers import Judges, assert_all_read, assert_same_meta
from tests.judge.rows import difference, without_meta
from tests.judge.shapes import COLUMNS, SHAPES, Shape, row


def run_story(shape: Shape, spark: Any, path: Path) -> tuple[HudiTable, dict[str, list[dict[str, Any]]]]:
    """Write a table: inserts, updates, late rows, deletes; gives it and the rows after each instant."""
    table, oracle = shape.create(HudiTable, spark, str(path)), shape.oracle()
    states: dict[str, list[dict[str, Any]]] = {}

    def after(instant: str | None) -> None:
        assert instant is not None
        states[instant] = oracle.rows()

    first = [row(number, 10) for number in range(12)]
    oracle.upsert(first)
    after(table.upsert(spark.createDataFrame(first, COLUMNS)).instant)
    second = [row(number, 20, price=0.5) for number in range(0, 12, 2)] + [
        row(number, 20) for number in (12, 13)
    ]
    oracle.upsert(second)
    after(table.upsert(spark.createDataFrame(second, COLUMNS)).instant)
    late = [row(2, 15, price=-1.0), row(3, 15, price=-1.0), row(14, 15)]
    oracle.upsert(late)
    after(table.upsert(spark.createDataFrame(late, COLUMNS)).instant)
    gone = [row(number, 99) for number in (0, 1, 13)]
    oracle.delete(gone)
    after(table.delete(spark.createDataFrame(gone, COLUMNS)).instant)
    return table, states


# The other shapes are in the random sequences and in `test_table_services.py`.
@pytest.mark.parametrize("shape", forms(SHAPES, (*SHAPES[1:3], *SHAPES[4:6], *SHAPES[7:])), ids=named)
def test_snapshot_is_the_same_for_every_reader(
    shape: Shape, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, states = run_story(shape, spark, tmp_path / "t")
    expected = list(states.values())[-1]

    assert difference(without_meta(rows_of_spark(table.snapshot())), expected) == "", "ours"
    assert_all_read(tmp_path / "t", expected, apache_hudi)
    assert_same_meta(tmp_path / "t", table.snapshot(), apache_hudi)


@pytest.mark.parametrize("shape", forms((SHAPES[0], SHAPES[3]), SHAPES[3:4]), ids=named)
def test_time_travel_to_every_instant_is_the_same_for_every_reader(
    shape: Shape, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, states = run_story(shape, spark, tmp_path / "t")

    for instant, expected in states.items():
        assert difference(without_meta(rows_of_spark(table.snapshot(as_of=instant))), expected) == "", (
            f"ours at {instant}"
        )
        rust = hudi_rs_rows(tmp_path / "t", as_of=instant)
        assert difference(without_meta(rust), expected) == "", f"hudi-rs at {instant}"
        for version in VERSIONS if available() else ():
            rows = apache_hudi(version).read(tmp_path / "t", as_of=instant)
            assert difference(without_meta(rows), expected) == "", f"Apache Hudi {version} at {instant}"


@pytest.mark.parametrize("version", VERSIONS)
def test_apache_hudi_reads_what_changed_after_an_instant(
    version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    _, states = run_story(SHAPES[0], spark, tmp_path / "t")
    instants = list(states)

    rows = apache_hudi(version).read(tmp_path / "t", "incremental", begin=instants[1], end=instants[2])

    assert sorted(changed["id"] for changed in rows) == [3, 14]


@pytest.mark.parametrize("shape", forms((SHAPES[3], SHAPES[6]), SHAPES[6:7]), ids=named)
def test_read_optimized_is_the_base_files_for_every_reader(
    shape: Shape, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, _ = run_story(shape, spark, tmp_path / "t")
    expected = without_meta(rows_of_spark(table.read_optimized()))

    assert expected != without_meta(rows_of_spark(table.snapshot()))
    assert difference(without_meta(hudi_rs_rows(tmp_path / "t", "read_optimized")), expected) == ""
    for version in VERSIONS if available() else ():
        rows = apache_hudi(version).read(tmp_path / "t", "read_optimized")
        assert difference(without_meta(rows), expected) == "", f"Apache Hudi {version}"


@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[3]], ids=lambda shape: shape.name)
def test_overwritten_and_deleted_partitions_are_the_same_for_every_reader(
    shape: Shape, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, oracle = shape.create(HudiTable, spark, str(tmp_path / "t")), shape.oracle()
    first = [row(number, 10) for number in range(9)]
    table.bulk_insert(spark.createDataFrame(first, COLUMNS))
    new = [row(30, 1), row(31, 1)]
    table.insert_overwrite(spark.createDataFrame(new, COLUMNS))
    oracle.upsert(first)
    oracle.overwrite_partitions(new)
    table.delete_partitions(["day=wed"])

    assert_all_read(tmp_path / "t", [kept for kept in oracle.rows() if kept["day"] != "wed"], apache_hudi)
