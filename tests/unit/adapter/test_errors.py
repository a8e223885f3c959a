"""Error texts of Spark, shortened."""

from __future__ import annotations

import logging

import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.parallel import WorkerError
from hudi_engine.spark.sql.failure import shorten

from dbt.adapters.hudi.spark.errors import _query_loggers


def test_a_java_stack_is_cut_off() -> None:
    text = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: x.\n\tat org.apache.spark.A.b(A.scala:1)\n\t... 12 more"
    assert shorten(text) == "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: x."


def test_a_query_plan_is_cut_off() -> None:
    text = "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found; line 1 pos 14;\n'Project [*]\n+- 'UnresolvedRelation [x]"
    assert shorten(text) == "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found; line 1 pos 14"


def test_of_a_worker_traceback_the_reason_remains() -> None:
    text = (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "worker.py", line 1, in f\nhudi_engine.errors.InvalidKeyError: record key id is null\n'
    )
    assert shorten(text) == "InvalidKeyError: record key id is null"


def test_of_an_error_that_a_worker_carries_only_its_words_remain() -> None:
    carried = WorkerError(CorruptTableError("base file 'a.parquet' is damaged"))
    text = f"Traceback (most recent call last):\nhudi_engine.parallel.WorkerError: {carried}\n\tat org.apache.spark.A.b\n"
    assert shorten(text) == "CorruptTableError: base file 'a.parquet' is damaged"


@pytest.mark.parametrize("name", ["`_hoodie_commit_time`", "`o`.`_hoodie_commit_time`"])
def test_who_selects_a_column_of_hudi_is_told_where_it_is(name: str) -> None:
    text = f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name {name} cannot be resolved."
    told = shorten(text)
    assert told.startswith(text) and "_hoodie_commit_time is one of Hudi's own columns" in told
    assert shorten("[UNRESOLVED_COLUMN] A column with name `amount` cannot be resolved.").endswith(
        "resolved."
    )


@pytest.mark.parametrize(
    "text",
    [
        "[USER_RAISED_EXCEPTION] the row with id 1 changes id SQLSTATE: P0001",
        "[USER_RAISED_EXCEPTION] the row with id 1 changes id. SQLSTATE: P0001\n\nJVM stacktrace:\nx",
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times (host executor driver): "
        "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] the row with id 1 changes id\n\tat a.B.c(D:1)",
    ],
)
def test_a_sentence_that_spark_was_given_comes_without_its_wrapping(text: str) -> None:
    assert shorten(text) == "the row with id 1 changes id"


def test_the_failed_task_is_left_out() -> None:
    text = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times (host executor driver): java.lang.X: why"
    assert shorten(text) == "java.lang.X: why"


def test_loggers_of_spark_s_errors_are_of_spark_s_own_class() -> None:
    own = pytest.importorskip("pyspark.logger", reason="PySpark 3.5 has no loggers of its own").PySparkLogger
    loggers = _query_loggers()
    assert loggers == [
        logging.getLogger("SQLQueryContextLogger"),
        logging.getLogger("DataFrameQueryContextLogger"),
    ]
    assert all(isinstance(each, own) for each in loggers), (
        "what is told others is a TypeError instead of the error"
    )


@pytest.mark.parametrize(
    "text",
    [
        "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
        'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "gs"',
        "Class com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem not found",
    ],
)
def test_a_store_that_spark_has_no_client_for_is_told_with_what_to_do(text: str) -> None:
    told = shorten(text)
    assert told.startswith(text)
    assert "spark.jars.packages" in told and "docs/stores.md" in told


def test_a_full_disk_is_named_with_what_to_do() -> None:
    text = "OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"
    told = shorten(text)
    assert (
        told.startswith(text)
        and "(spark.local.dir), is full. What the write had begun is rolled back" in told
    )
