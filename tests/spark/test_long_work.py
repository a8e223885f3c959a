"""Work that takes long is told of while it goes on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
from hudi_engine import HudiTable
from hudi_engine.format.progress import note_file, progress_of, under_way
from pyspark.sql import SparkSession

from dbt.adapters.hudi.spark.long_work import LongWork


def _slowly(rows: Iterable[int]) -> Iterator[int]:
    time.sleep(0.4)
    yield from rows


def test_lines_tell_how_many_tasks_and_files_are_done(spark: SparkSession) -> None:
    lines: list[str] = []
    watch = LongWork(lines.append, every_s=0.3)
    with under_way("/tables/orders", "written"), watch.watched(spark, "long work"):
        note_file("/tables/orders", 1_250_000)
        spark.sparkContext.setJobGroup("long work", "a slow job")
        assert spark.sparkContext.parallelize(range(8), 8).mapPartitions(_slowly).count() == 8
    assert any(
        "1 file with 1.2 M rows written, " in line and "of 8 Spark tasks done" in line for line in lines
    )
    said = len(lines)
    time.sleep(0.7)
    assert len(lines) <= said + 1


def test_a_line_shows_a_statement_without_the_comment_that_dbt_puts_before_it(spark: SparkSession) -> None:
    lines: list[str] = []
    watch = LongWork(lines.append, every_s=0.1)
    with watch.watched(spark, "a statement", '/* {"app": "dbt"} */\n  update orders\n set amount = 1'):
        time.sleep(0.5)
    assert lines and all(line.startswith("update orders set amount = 1: ") for line in lines)


def test_short_work_is_not_worth_a_line(spark: SparkSession) -> None:
    lines: list[str] = []
    watch = LongWork(lines.append, every_s=5)
    for _ in range(3):
        with watch.watched(spark, "short work"):
            pass
    assert lines == []


def test_a_write_counts_the_files_it_has_finished(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], partition_by=["day"])
    rows = pd.DataFrame({"id": range(6), "day": ["a", "b", "c"] * 2})
    with under_way(table.storage.base, "written") as progress:
        result = table.upsert(rows)
    assert (progress.files, progress.rows) == (result.files_written, 6) == (3, 6)
    assert progress_of(progress.thread) is None
