"""The error table of a model, ``<table>__errors``: rows and files that its runs set aside, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable, build_table
from hudi_engine.errors import TableExistsError
from hudi_engine.format.config.declared.engine_options import WriterOptions
from hudi_engine.format.config.options import laid_over
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.catalog import TableName
from hudi_engine.table.write.inspection import not_inspected
from hudi_engine.table.write.result import WriteResult
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.hudi.model.plan import ModelPlan, resolve_plan
from dbt.adapters.hudi.model.run_notes import INVOCATION, NODE
from dbt.adapters.hudi.preview import PREVIEW

if TYPE_CHECKING:
    from dbt.adapters.hudi.spark.warehouse import Warehouse

SUFFIX = "__errors"
KEY, FAILED_AT, RUN, MODEL = "error_id", "failed_at", "invocation_id", "model"
REASON, RAW_ROW, SOURCE_FILE, COPIES = "reason", "raw_row", "source_file", "copies"
COLUMNS = (KEY, FAILED_AT, RUN, MODEL, REASON, RAW_ROW, SOURCE_FILE, COPIES)
_GIVEN = (REASON, RAW_ROW, SOURCE_FILE)
_REASON = "__dbt_hudi_reason"
# each row depends on itself alone, so that a write which another one overtakes can simply be repeated
_RETRIES = {WriterOptions.CONFLICT_RETRIES.key: "20"}


def error_table_name(plan: ModelPlan) -> str:
    """Return the name of a model's error table, which has the schema of the model's table."""
    return f"{plan.name}{SUFFIX}"


def append_errors(
    warehouse: Warehouse, session: SparkSession, plan: ModelPlan, failed: DataFrame
) -> WriteResult:
    """Store what a run sets aside, before the run's own commit; the first rows make the table.

    The key of an error is a hash of model, reason, row and file: a run that is retried, or meets the same row again, updates its
    time and run, and adds no second row.

    Args:
        plan: That of the model.
        failed: Strings ``reason``, ``raw_row`` (the row as JSON, null for a file) and ``source_file`` (null where it is not known).
            Equal rows become one, with their number in ``copies``.
    """
    own = _plan_of_errors(warehouse, plan)
    rows = _as_errors(plan, failed)
    with warehouse.one_writer(session, own.base), not_inspected():
        base = warehouse.hudi_base(session, own.schema, own.name)
        _check_name(warehouse, session, own, base)
        result = None
        if base is None:
            with suppress(TableExistsError):  # another process has set rows of this model aside meanwhile
                result = build_table(session, own.base, rows, **own.definition_with(warehouse.options))
        if result is not None and PREVIEW.is_on:
            PREVIEW.note_rows(own.schema, own.name, None)
            return result  # the table is not there
        # without notes of the run, as undo leaves errors as they are
        table = HudiTable.open(session, base or own.base, options=warehouse.options, hold=True)
        if result is None:
            result = table.upsert(rows, options=laid_over(own.write_options, _RETRIES))
            PREVIEW.note_change(own.schema, own.name, result, None)
        warehouse.register_plan(session, own, table)
    return result


def _plan_of_errors(warehouse: Warehouse, plan: ModelPlan) -> ModelPlan:
    config: dict[str, object] = {
        "materialized": "incremental",
        "unique_key": KEY,
        "precombine_field": FAILED_AT,
    }
    if plan.own_location:
        config["location_root"] = plan.base.rpartition("/")[0]
    return resolve_plan({"config": config}, plan.schema, error_table_name(plan), warehouse.places)


def _as_errors(plan: ModelPlan, failed: DataFrame) -> DataFrame:
    given = [F.col(name) if name in failed.columns else F.lit(None).cast("string") for name in _GIVEN]
    model = plan.run_notes.get(NODE) or f"{plan.schema}.{plan.name}"
    parts = [F.lit(model), *(F.coalesce(F.col(name), F.lit("")) for name in _GIVEN)]
    rows = failed.select(*(column.alias(name) for column, name in zip(given, _GIVEN, strict=True)))
    return (
        rows.groupBy(*_GIVEN)
        .agg(F.count(F.lit(1)).alias(COPIES))
        .withColumns(
            {
                KEY: F.sha2(F.concat_ws("\u0000", *parts), 256),
                FAILED_AT: F.lit(datetime.now(timezone.utc)),
                RUN: F.lit(plan.run_notes.get(INVOCATION)).cast("string"),
                MODEL: F.lit(model),
            }
        )
        .select(*COLUMNS)
    )


def _check_name(warehouse: Warehouse, session: SparkSession, own: ModelPlan, base: str | None) -> None:
    """Refuse to write errors into a table or view that is none of errors."""
    entry = warehouse.entry(session, own.schema, own.name)
    if entry is None:
        return
    columns = {name.lower() for name in session.table(TableName(own.schema, own.name).sql).columns}
    if base is None or not {*COLUMNS} <= columns:
        raise DbtRuntimeError(
            f"{own.schema}.{own.name} is the name of an error table (hoodie.errortable.enable), and is another table or view; "
            "give that one, or the model, another alias"
        )


def lacking_keys(fields: Sequence[str]) -> list[Column]:
    """Return a text that is null where a row has a record key; all fields of one that has none are null or empty."""
    if not fields:
        return []
    texts = [
        F.coalesce(F.col(".".join(map(quoted, name.split(".")))).cast("string"), F.lit("")) for name in fields
    ]
    lacks = F.concat(*texts) == ""
    return [F.when(lacks, F.lit(f"null or empty record key ({', '.join(fields)})"))]


@contextmanager
def good_rows(
    warehouse: Warehouse, session: SparkSession, plan: ModelPlan, frame: DataFrame, problems: Sequence[Column]
) -> Iterator[tuple[DataFrame, int]]:
    """Yield the rows without a problem, and how many others were stored in the error table.

    The query is evaluated once: its rows are kept until the block ends.

    Args:
        problems: Texts that are null where a row has no such problem.
    """
    marked = frame.withColumn(_REASON, F.concat_ws("; ", *problems)).persist()
    try:
        failed = marked.where(F.col(_REASON) != "")
        number = failed.count()
        if number:
            row = F.to_json(F.struct(*map(quoted, frame.columns)), {"ignoreNullFields": "false"})
            append_errors(
                warehouse, session, plan, failed.select(F.col(_REASON).alias(REASON), row.alias(RAW_ROW))
            )
        yield marked.where(F.col(_REASON) == "").drop(_REASON), number
    finally:
        marked.unpersist()
