"""MERGE INTO a keyed Hudi table: the rows that its WHEN clauses change, add and take out, for one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.config.options import resolve_options
from hudi_engine.schema.fit import quoted
from hudi_engine.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.write.rows import settled
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.rows.alignment import fit_to_table
from dbt.adapters.hudi.rows.builds import data_columns
from dbt.adapters.hudi.sql import plans
from dbt.adapters.hudi.sql.merge_identity import Identity
from dbt.adapters.hudi.sql.targets import Statement, Target

_STORED, _CAME = "__dbt_hudi_matched", "__dbt_hudi_came"
_CLAUSE = "__dbt_hudi_clause"
_SETTLED = T.StructType(
    [T.StructField(name, T.StringType()) for name in (settled.ACTION, settled.OLD_KEY, settled.OLD_PARTITION)]
    + [T.StructField(settled.OLDER, T.BooleanType())]
)


@dataclass(frozen=True)
class _Clause:
    """One WHEN clause: which rows it takes, what becomes of them, and the values they get."""

    rows: Column
    action: str
    values: dict[str, Column]


@dataclass(frozen=True)
class _Sides:
    """The names of the table's and the source's rows in the statement."""

    target: str
    source: str


def merge_decision(
    statement: Statement, target: Target, table: HudiTable
) -> Callable[[DataFrame], DataFrame]:
    """Return what a MERGE makes of the table's rows, for `HudiTable.merge_rows`.

    Raises:
        DbtRuntimeError: for what would not change the rows that it means.
    """
    plan = statement.plan
    if not table.config.record_key_fields:
        raise DbtRuntimeError(
            f"MERGE INTO {target.label} is refused: the table has no record key; rebuild it with unique_key"
        )
    _check_keys_stay(plan, target, table.config.record_key_fields)
    identity = Identity.of(table, target.label, resolve_options(statement.warehouse.options))
    schema = data_columns(table)

    def decide(stored: DataFrame) -> DataFrame:
        """Join the table's rows with the source, read anew, and let the first clause that holds take each row."""
        source, source_name = _source(statement)
        sides = _Sides(target.alias or target.name, source_name)
        rows = stored.withColumnsRenamed({RECORD_KEY: settled.OLD_KEY, PARTITION_PATH: settled.OLD_PARTITION})
        rows = rows.select(*map(quoted, schema.names), settled.OLD_KEY, settled.OLD_PARTITION)
        joined = (
            rows.alias(sides.target)
            .withColumn(_STORED, F.lit(True))
            .join(
                source.withColumn(_CAME, F.lit(True)),
                plans.column(statement.session, plan.mergeCondition()),
                _join_of(plan),
            )
        )
        clauses = _clauses(statement, schema.names, sides)
        taken, values = _taken(joined, clauses, schema)
        compares_keys = plan.notMatchedActions().size() == 0 or identity.is_compared_by(plan.mergeCondition())
        checked, known = identity.check(
            taken, sides.target, F.col(_STORED).isNotNull(), values, None if compares_keys else rows
        )
        new = {**values, **known}
        changed = checked.select(
            *(new[name].alias(name) for name in schema.names),
            *(F.col(name) for name in (settled.ACTION, settled.OLD_KEY, settled.OLD_PARTITION)),
            _older(new, sides, table.config.ordering_fields).alias(settled.OLDER),
        )
        return fit_to_table(changed, T.StructType([*schema.fields, *_SETTLED.fields]))

    return decide


def _join_of(plan: plans.JavaPlan) -> str:
    """Return how target and source are joined: with the rows of either side that some clause may take."""
    sources, targets = plan.notMatchedActions().size() > 0, plan.notMatchedBySourceActions().size() > 0
    return {(True, True): "full", (True, False): "right", (False, True): "left"}.get(
        (sources, targets), "inner"
    )


def _taken(
    joined: DataFrame, clauses: list[_Clause], schema: T.StructType
) -> tuple[DataFrame, dict[str, Column]]:
    """Return the rows of a join that some clause takes, the first that does, and what each column becomes."""

    def by_clause(results: Sequence[Column]) -> Column:
        chosen = F.lit(None)
        for number in reversed(range(len(clauses))):
            chosen = F.when(F.col(_CLAUSE) == number, results[number]).otherwise(chosen)
        return chosen

    clause = F.lit(None).cast("int")
    for number in reversed(range(len(clauses))):
        clause = F.when(clauses[number].rows, F.lit(number)).otherwise(clause)
    taken = joined.withColumn(_CLAUSE, clause).where(F.col(_CLAUSE).isNotNull())
    taken = taken.withColumn(settled.ACTION, by_clause([F.lit(each.action) for each in clauses]))
    return taken, {name: by_clause([each.values[name] for each in clauses]) for name in schema.names}


def _older(new: dict[str, Column], sides: _Sides, ordering: Sequence[str]) -> Column:
    """Tell whether a row's values are older than the stored ones by the ordering fields that are columns."""
    names = {name.lower(): name for name in new}
    known = [names[each.lower()] for each in ordering if each.lower() in names]
    if not known:
        return F.lit(False)
    stored = F.struct(*(F.col(f"{quoted(sides.target)}.{quoted(name)}").alias(name) for name in known))
    return F.coalesce(F.struct(*(new[name].alias(name) for name in known)) < stored, F.lit(False))


def _source(statement: Statement) -> tuple[DataFrame, str]:
    node = statement.plan.sourceTable()
    frame = plans.frame(statement.session, node)
    if plans.kind(node) == "SubqueryAlias":
        return frame, str(node.alias())
    parts, _ = plans.target_parts(node)
    return frame, parts[-1]


def _clauses(statement: Statement, columns: Sequence[str], sides: _Sides) -> list[_Clause]:
    """Return the clauses; those of one kind of rows in their order, of which the first that holds takes a row."""
    plan = statement.plan
    stored, came = F.col(_STORED).isNotNull(), F.col(_CAME).isNotNull()
    kinds = (
        (plan.matchedActions(), stored & came, settled.UPDATE),
        (plan.notMatchedActions(), came & ~stored, settled.INSERT),
        (plan.notMatchedBySourceActions(), stored & ~came, settled.UPDATE_UNMATCHED),
    )
    return [
        _clause(statement, action, rows, columns, sides, said)
        for actions, rows, said in kinds
        for action in plans.items(actions)
    ]


def _check_keys_stay(plan: plans.JavaPlan, target: Target, record_key: Sequence[str]) -> None:
    """Refuse an update that gives a row another key; a key set to itself is let through."""
    keys = {column.lower() for column in record_key}
    for action in (*plans.items(plan.matchedActions()), *plans.items(plan.notMatchedBySourceActions())):
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
    sides: _Sides,
    said: str,
) -> _Clause:
    """Return the rows of a clause and the columns they take; columns that it leaves out keep their value, or are null."""
    condition = plans.option(action.condition())
    if condition is not None:
        rows = rows & F.coalesce(plans.column(statement.session, condition), F.lit(False))
    kind = plans.kind(action)
    kept = {column: F.col(f"{quoted(sides.target)}.{quoted(column)}") for column in columns}
    if kind == "DeleteAction":
        return _Clause(rows, settled.DELETE, kept)
    if kind in ("UpdateStarAction", "InsertStarAction"):
        return _Clause(
            rows, said, {column: F.col(f"{quoted(sides.source)}.{quoted(column)}") for column in columns}
        )
    given = {
        plans.texts(item.key().nameParts())[-1].lower(): plans.column(statement.session, item.value())
        for item in plans.items(action.assignments())
    }
    unknown = set(given) - {column.lower() for column in columns}
    if unknown:
        raise DbtRuntimeError(
            f"the table has no column {', '.join(sorted(unknown))}; its columns: {', '.join(columns)}"
        )
    others = kept if said != settled.INSERT else dict.fromkeys(columns, F.lit(None))
    return _Clause(rows, said, {column: given.get(column.lower(), others[column]) for column in columns})
