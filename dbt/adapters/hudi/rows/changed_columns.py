"""What a run under ``on_schema_change: fail`` says of columns that are others than the table's."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_engine.errors import HudiError
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.spark.write.schema_change import check_schema_change, columns_to_be
from hudi_engine.table.state import TableState
from pyspark.sql import types as T

from dbt.adapters.hudi.rows.schema_changes import APPEND, SYNC, ChangeOfColumns, schema_change


def told_changes(
    table: str, state: TableState, stored: T.StructType, query: T.StructType, *, keeps_rows: bool
) -> str:
    """Return which columns of a query are not those of its table, and the ways out that the table can go; ``""`` for none.

    Args:
        keeps_rows: The model's config has ``full_refresh: false``.
    """
    change = schema_change(SYNC, stored, query)
    if not change:
        return ""
    mine = AnyCase((each.name, each.dataType.simpleString()) for each in stored)
    theirs = AnyCase((each.name, each.dataType.simpleString()) for each in query)
    added, removed = [each.name for each in change.added], list(change.removed)
    differences = [
        *(f"{name} {theirs[name]}: new in the query" for name in added),
        *(f"{name} {mine[name]}: no longer selected" for name in removed),
        *(f"{name}: {mine[name]} in the table, {theirs[name]} in the query" for name in change.retyped),
    ]
    back = _listed(
        ("leave out", added),
        ("select", removed),
        ("make", [f"{name} {mine[name]}" for name in change.retyped]),
    )
    ways = [f"in the query {back}"]
    appended = schema_change(APPEND, stored, query)
    if set(appended.retyped) == set(change.retyped) and _takes(state, appended, stored):
        kept = ", null in new rows" if removed else ""
        done = _listed(("adds", added), ("adds fields to", appended.retyped), ("keeps", removed), then=kept)
        ways.append(f"on_schema_change: append_new_columns, which {done}")
    if _takes(state, change, stored):
        made = [f"{name} {theirs[name]}" for name in change.retyped]
        dropped = " (with the values it has)" if len(removed) == 1 else " (with the values they have)"
        done = _listed(("adds", added), ("makes", made), ("drops", removed), then=dropped if removed else "")
        ways.append(f"on_schema_change: sync_all_columns, which {done}")
    once = "take full_refresh: false out of the model and run it once with --full-refresh"
    ways.append(f"{once if keeps_rows else 'run it with --full-refresh'}, which builds the table anew")
    return "\n".join(
        (
            f"The columns of the query are not those of {table}, and on_schema_change is 'fail':",
            *(f"  * {each}" for each in differences),
            "Ways out:",
            *(f"  * {each}" for each in ways),
        )
    )


def _takes(state: TableState, change: ChangeOfColumns, stored: T.StructType) -> bool:
    """Tell whether a table can get columns."""
    try:
        check_schema_change(state, columns_to_be(state, spark_to_arrow(change.applied(stored))))
    except HudiError:
        return False
    return True


def _listed(*done: tuple[str, Iterable[str]], then: str = "") -> str:
    """Return what is done to columns, in words, without what is done to none."""
    return ", ".join(f"{what} {', '.join(names)}" for what, names in done if list(names)) + then
