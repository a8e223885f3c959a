"""MERGE INTO a keyed Hudi table, turned into the rows of one upsert or one delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.config.options import resolve_options
from hudi_engine.table_state import TableState
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.rows.alignment import fit_to_table
from dbt.adapters.hudi.rows.builds import data_columns
from dbt.adapters.hudi.sql import plans
from dbt.adapters.hudi.sql.merge_identity import Identity
from dbt.adapters.hudi.sql.targets import Statement, Target

_MATCHED = "__dbt_hudi_matched"
_ACTION = "__dbt_hudi_action"


@dataclass(frozen=True)
class MergeRows:
    """What a MERGE comes down to.

    Args:
        operation: ``upsert`` or ``delete``.
        frame: Rows with the table's columns.
        base: The table's state before the rows they were made from were read.
    """

    operation: str
    frame: DataFrame
    base: TableState


@dataclass(frozen=True)
class _Clause:
    """One WHEN clause: which rows it takes and what it makes of them (None deletes)."""

    rows: Column
    values: dict[str, Column] | None


def rows_to_merge(statement: Statement, target: Target, table: HudiTable) -> MergeRows:
    """Evaluate the WHEN clauses over the join of target and source.

    Raises:
        DbtRuntimeError: for what one upsert or delete cannot express.
    """
    plan = statement.plan
    if not table.config.record_key_fields:
        raise DbtRuntimeError(
            f"MERGE INTO {target.label} is refused: the table has no record key; rebuild it with unique_key"
        )
    if plan.notMatchedBySourceActions().size() > 0:
        raise DbtRuntimeError(
            f"WHEN NOT MATCHED BY SOURCE on {target.label} is refused; use DELETE or UPDATE with a condition"
        )
    source, source_name = _source(statement)
    name = target.alias or target.name
    stored, base = table.rows_to_change()
    rows = stored.alias(name).withColumn(_MATCHED, F.lit(True))
    condition = plans.column(statement.session, plan.mergeCondition())
    how = "right" if plan.notMatchedActions().size() > 0 else "inner"
    joined = rows.join(source, condition, how)
    clauses = _clauses(statement, target, table, name, source_name)
    deletes = [clause for clause in clauses if clause.values is None]
    if deletes and len(deletes) != len(clauses):
        raise DbtRuntimeError(
            f"MERGE INTO {target.label} mixes DELETE with UPDATE or INSERT, which one commit cannot hold; "
            "write the DELETE as a MERGE of its own"
        )
    if deletes:
        wanted = F.lit(False)
        for clause in deletes:
            wanted = wanted | clause.rows
        columns = [F.col(f"`{name}`.`{column}`") for column in data_columns(table).names]
        return MergeRows("delete", joined.where(wanted).select(*columns), base)
    identity = Identity.of(table, target.label, resolve_options(statement.warehouse.options))
    unmatched = how == "right" and not identity.is_compared_by(plan.mergeCondition())
    schema = data_columns(table)
    taken, values = _taken(joined, clauses, schema)
    matched = F.col(_MATCHED).isNotNull()
    checked, known = identity.check(taken, name, matched, values, stored if unmatched else None)
    changed = checked.select(*(known.get(each, value).alias(each) for each, value in values.items()))
    return MergeRows("upsert", fit_to_table(changed, schema), base)


def _taken(
    joined: DataFrame, clauses: list[_Clause], schema: T.StructType
) -> tuple[DataFrame, dict[str, Column]]:
    """Return the rows of a join that some clause takes, and what each column becomes."""
    action = F.lit(None).cast("int")
    for number in reversed(range(len(clauses))):
        action = F.when(clauses[number].rows, F.lit(number)).otherwise(action)
    taken = joined.withColumn(_ACTION, action).where(F.col(_ACTION).isNotNull())
    columns = {}
    for field in schema.fields:
        value = F.lit(None)
        for number in reversed(range(len(clauses))):
            values = clauses[number].values or {}
            value = F.when(F.col(_ACTION) == number, values[field.name]).otherwise(value)
        columns[field.name] = value
    return taken, columns


def _source(statement: Statement) -> tuple[DataFrame, str]:
    node = statement.plan.sourceTable()
    frame = plans.frame(statement.session, node)
    if plans.kind(node) == "SubqueryAlias":
        return frame, str(node.alias())
    parts, _ = plans.target_parts(node)
    return frame, parts[-1]


def _clauses(
    statement: Statement, target: Target, table: HudiTable, name: str, source_name: str
) -> list[_Clause]:
    plan, columns = statement.plan, data_columns(table).names
    found = []
    for action in plans.items(plan.matchedActions()):
        found.append(_clause(statement, action, F.col(_MATCHED).isNotNull(), columns, name, source_name))
    for action in plans.items(plan.notMatchedActions()):
        found.append(_clause(statement, action, F.col(_MATCHED).isNull(), columns, None, source_name))
    _check_keys_stay(plan, target, table.config.record_key_fields)
    return found


def _check_keys_stay(plan: plans.JavaPlan, target: Target, record_key: Sequence[str]) -> None:
    """Refuse an update that gives a row another key; a key set to itself is let through."""
    keys = {column.lower() for column in record_key}
    for action in plans.items(plan.matchedActions()):
        if plans.kind(action) == "UpdateAction":
            changed = {
                plans.texts(item.key().nameParts())[-1].lower() for item in plans.items(action.assignments())
            }
            on_key = [
                item
                for item in plans.items(action.assignments())
                if plans.texts(item.key().nameParts())[-1].lower() in keys
            ]
            if changed & keys and not all(_same_column(item) for item in on_key):
                raise DbtRuntimeError(
                    f"MERGE INTO {target.label} changes the record key {', '.join(record_key)}; delete the row and insert it"
                )


def _same_column(assignment: plans.JavaPlan) -> bool:
    """``key = s.key`` keeps a matched row's key."""
    value = assignment.value()
    if plans.kind(value) != "UnresolvedAttribute":
        return False
    return plans.texts(value.nameParts())[-1].lower() == plans.texts(assignment.key().nameParts())[-1].lower()


def _clause(
    statement: Statement,
    action: plans.JavaPlan,
    rows: Column,
    columns: Sequence[str],
    name: str | None,
    source_name: str,
) -> _Clause:
    """Return the rows of a clause and the columns they take; columns that it leaves out keep their value, or are null."""
    condition = plans.option(action.condition())
    if condition is not None:
        rows = rows & F.coalesce(plans.column(statement.session, condition), F.lit(False))
    kind = plans.kind(action)
    if kind == "DeleteAction":
        return _Clause(rows, None)
    if kind in ("UpdateStarAction", "InsertStarAction"):
        return _Clause(rows, {column: F.col(f"`{source_name}`.`{column}`") for column in columns})
    given = {
        plans.texts(item.key().nameParts())[-1].lower(): plans.column(statement.session, item.value())
        for item in plans.items(action.assignments())
    }
    unknown = set(given) - {column.lower() for column in columns}
    if unknown:
        raise DbtRuntimeError(
            f"the table has no column {', '.join(sorted(unknown))}; its columns: {', '.join(columns)}"
        )
    return _Clause(
        rows,
        {
            column: given[column.lower()]
            if column.lower() in given
            else (F.lit(None) if name is None else F.col(f"`{name}`.`{column}`"))
            for column in columns
        },
    )
