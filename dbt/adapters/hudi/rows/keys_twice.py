"""Rows of one key that nothing orders: a build keeps all of them, a merge takes the last, and that is said."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_engine import HudiTable
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED
from hudi_engine.table.inspect import duplicate_keys
from hudi_engine.table.state import TableState
from hudi_engine.table.write.result import WriteResult
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.merge import ONE_ROW_A_KEY
from dbt.adapters.hudi.model.plan import ModelPlan

MOST_ROWS = 200_000
"""Above it the keys are not compared: they would have to be read back."""
_COUNTED = 100


def say_of_keys_twice(plan: ModelPlan, table: HudiTable, rows: int) -> None:
    """Warn of keys that are there more than once after a build without a precombine field, or of a snapshot."""
    versions_of = plan.table.versions_of
    keyed = plan.table.record_key and plan.merge.strategy in ONE_ROW_A_KEY
    if not versions_of and (not keyed or plan.table.precombine_field):
        return
    key, name = ", ".join(versions_of or plan.table.record_key), f"{plan.schema}.{plan.name}"
    if rows > MOST_ROWS:
        logger.info(
            "{}: the keys of its {:,} rows were not compared; a data test `unique` of {} does it",
            name,
            rows,
            key,
        )
        return
    if versions_of:
        _say_of_versions_twice(plan, table)
        return
    found = duplicate_keys(TableState.load(table.storage), resolve_options(plan.options), _COUNTED)
    if found:
        logger.warning(
            "{}: {} of unique_key {} in more than one row; all rows are kept, as no precombine_field says which counts. "
            "Select one row a key, or set precombine_field",
            name,
            _values(len(found)),
            key,
        )


def _say_of_versions_twice(plan: ModelPlan, table: HudiTable) -> None:
    """Warn of keys of a snapshot with more than one open version after its first build.

    The key of its table is the version, which differs where `updated_at` does, so the rows are asked.
    """
    keys = [F.expr(part) for part in plan.table.versions_of]
    try:
        twice = table.snapshot().groupBy(*keys).count().where("count > 1").limit(_COUNTED).count()
    except AnalysisException:
        # a key in words of dbt's query: the table is built, and its next run says what is wrong with them
        return
    if twice:
        logger.warning(
            "{}: {} of the snapshot's unique_key in more than one row; all rows are kept, each as an open version. "
            "Select one row a key",
            f"{plan.schema}.{plan.name}",
            _values(twice),
        )


def _values(count: int) -> str:
    if count == 1:
        return "1 value"
    return f"{_COUNTED} values or more" if count == _COUNTED else f"{count} values"


def say_of_keys_merged(
    plan: ModelPlan, table: HudiTable, columns: Sequence[str], result: WriteResult
) -> None:
    """Warn of rows that a merge without a precombine field has left out as others of the batch have their keys.

    Known where the write counted the rows that came, which it does of those that it has in memory; nothing is read for it.
    """
    came = None if result.figures is None else result.figures.rows_in
    config = table.config
    one_each = plan.merge.operation == "upsert" and plan.merge.clauses is None
    if came is None or not one_each or config.ordering_fields or merge_rule(config).fills:
        return
    leaves_out = {DELETES, IS_DELETED, *((config.delete_marker or ())[:1])}
    if plan.merge.skip_unchanged or {each.lower() for each in leaves_out} & {
        each.lower() for each in columns
    }:
        # rows may be left out for other reasons
        return
    lost = came - result.rows_inserted - result.rows_updated - result.rows_deleted
    if lost > 0:
        logger.warning(
            "{}: a value of unique_key {} in more than one row of the batch; {} left out, as no precombine_field says which "
            "counts and the last one is taken. Select one row a key, or set precombine_field",
            f"{plan.schema}.{plan.name}",
            ", ".join(plan.table.record_key),
            _rows_were(lost),
        )


def say_of_versions_merged(plan: ModelPlan, result: WriteResult) -> None:
    """Warn of changes that a snapshot has left out as several rows have one key; known where the rows that came are counted.

    Those that came are of dbt's own joining of the query with the versions that are open, so their number says little.
    """
    came = None if result.figures is None else result.figures.rows_in
    if came is None or plan.table.precombine_field:
        return
    if came > result.rows_inserted + result.rows_updated:
        logger.warning(
            "{}: a value of the snapshot's unique_key is in more than one row of its query, or has more than one open version of "
            "an earlier run; some of its changes were left out, as a key has one version at a moment. Select one row a key",
            f"{plan.schema}.{plan.name}",
        )


def _rows_were(count: int) -> str:
    return "1 row was" if count == 1 else f"{count:,} rows were"
