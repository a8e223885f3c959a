"""Compaction and clean: ours, Apache Hudi's, and one going on with what the other planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine import HudiTable

from tests.helpers.forms import forms, in_turn, named
from tests.judge.apache_hudi import VERSIONS, ApacheHudiError
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.oracle import Oracle
from tests.judge.readers import Judges, assert_all_read
from tests.judge.rows import difference, without_meta
from tests.judge.shapes import COLUMNS, SCHEMA, SHAPES, Shape, row

MOR = SHAPES[3]
NO_CLEAN = {"hoodie.clean.automatic": "false"}


def written(shape: Shape, spark: Any, path: Path) -> tuple[HudiTable, Oracle]:
    """Make a table with inserts, two rounds of updates, and deletes; in logs where it is merge-on-read."""
    table, oracle = shape.create(HudiTable, spark, str(path)), shape.oracle()
    for ts, numbers in ((10, range(12)), (20, range(0, 12, 2)), (30, range(0, 12, 3))):
        rows = [row(number, ts) for number in numbers]
        table.upsert(spark.createDataFrame(rows, COLUMNS), options=NO_CLEAN)
        oracle.upsert(rows)
    gone = [row(number, 40) for number in (1, 6)]
    table.delete(spark.createDataFrame(gone, COLUMNS), options=NO_CLEAN)
    oracle.delete(gone)
    return table, oracle


def change(table: HudiTable, oracle: Oracle, spark: Any, ts: int, *numbers: int) -> None:
    rows = [row(number, ts) for number in numbers]
    table.upsert(spark.createDataFrame(rows, COLUMNS), options=NO_CLEAN)
    oracle.upsert(rows)


def assert_ours(table: HudiTable, oracle: Oracle) -> None:
    assert difference(without_meta(rows_of_spark(table.snapshot())), oracle.rows()) == "", "ours"


@pytest.mark.parametrize("shape", forms(SHAPES[3:], (MOR, SHAPES[6])), ids=named)
def test_every_reader_sees_our_compacted_and_cleaned_table(
    shape: Shape, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, oracle = written(shape, spark, tmp_path / "t")
    assert table.compact().state == "completed"
    assert_all_read(tmp_path / "t", oracle.rows(), apache_hudi)
    change(table, oracle, spark, 50, 0, 2, 20)
    assert table.clean(retain_commits=1).files_deleted > 0
    assert_all_read(tmp_path / "t", oracle.rows(), apache_hudi)
    table.compact()
    table.clean(retain_commits=1)
    assert_all_read(tmp_path / "t", oracle.rows(), apache_hudi)


# The view that lags, in `test_services.py`, asks both versions for less.
@pytest.mark.parametrize("version", forms(VERSIONS, VERSIONS[1:]))
def test_read_optimized_queries_agree_before_and_after_our_compaction(
    version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, _ = written(MOR, spark, tmp_path / "t")
    for _ in range(2):
        theirs = apache_hudi(version).read(tmp_path / "t", "read_optimized")
        assert difference(theirs, rows_of_spark(table.read_optimized())) == ""
        table.compact()


@pytest.mark.parametrize("version", VERSIONS)
def test_apache_hudi_runs_the_compaction_that_we_planned(
    version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, oracle = written(MOR, spark, tmp_path / "t")
    planned = table.schedule_compaction().instant
    change(table, oracle, spark, 50, 0, 2)
    apache_hudi(version).call(tmp_path / "t", "run_compaction", op="run")
    assert [(each.instant, each.state) for each in table.compactions()] == [(planned, "COMPLETED")]
    assert_ours(table, oracle)
    assert_all_read(tmp_path / "t", oracle.rows(), apache_hudi)
    change(table, oracle, spark, 60, 0, 3, 30)
    table.compact()
    assert_all_read(tmp_path / "t", oracle.rows(), apache_hudi)


@pytest.mark.parametrize("version", forms(VERSIONS, VERSIONS[:1]))
def test_we_run_the_compaction_that_apache_hudi_planned(
    version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, oracle = written(MOR, spark, tmp_path / "t")
    after_one = "hoodie.compact.inline.max.delta.commits=1"
    apache_hudi(version).call(tmp_path / "t", "run_compaction", op="schedule", options=after_one)
    (planned,) = [each for each in table.compactions() if each.state == "REQUESTED"]
    change(table, oracle, spark, 50, 0, 2)
    assert table.compact().instant == planned.instant
    assert_ours(table, oracle)
    assert_all_read(tmp_path / "t", oracle.rows(), apache_hudi)


@pytest.mark.parametrize(("shape", "version"), in_turn((SHAPES[0], MOR), VERSIONS), ids=named)
def test_apache_hudi_writes_and_cleans_on_after_our_clean(
    shape: Shape, version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    path = tmp_path / "t"
    table, oracle = written(shape, spark, path)
    before = {instant.requested_time for instant in table.timeline()}
    if shape is MOR:
        table.compact()
    change(table, oracle, spark, 50, 0, 1, 2)
    cleaned = table.clean(retain_commits=1)
    assert cleaned.files_deleted > 0
    with pytest.raises(ApacheHudiError):
        apache_hudi(version).read(path, as_of=min(before))
    theirs = [row(number, 60) for number in (0, 4, 40)]
    more = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
    apache_hudi(version).upsert(
        path, pa.Table.from_pylist(theirs, schema=SCHEMA), shape.hudi_options() | more
    )
    oracle.upsert(theirs)
    change(table, oracle, spark, 70, 0, 4)
    table.clean(retain_commits=1)
    assert_ours(table, oracle)
    assert_all_read(path, oracle.rows(), apache_hudi)
