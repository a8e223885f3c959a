"""MERGE INTO a keyed Hudi table: the rows that its WHEN clauses change, add and take out, for one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY, meta_fields
from hudi_engine.spark.read.named import under_name
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.spark.write.rows import settled
from hudi_engine.spark.write.rows.nulls_that_say_nothing import never_cleared
from hudi_engine.spark.write.rows.sides import STORED, Clause, ClauseRows, Said, Sides, holds
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.rows.alignment import check_cast, exact_cast, fit_to_table
from dbt.adapters.hudi.rows.nested_types import refuse_other_fields
from dbt.adapters.hudi.sql import plans
from dbt.adapters.hudi.sql.merge_identity import Identity
from dbt.adapters.hudi.sql.merge_keys import check_keys_stay, compared_columns
from dbt.adapters.hudi.sql.targets import Statement, Target

_SETTLED = T.StructType(
    [T.StructField(name, T.StringType()) for name in (settled.ACTION, settled.OLD_KEY, settled.OLD_PARTITION)]
    + [T.StructField(settled.OLDER, T.BooleanType()), T.StructField(settled.CLAUSE, T.IntegerType())]
)


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
    _check_form(plan, target)
    check_keys_stay(plan, target, table.config.record_key_fields)
    options = resolve_options(statement.warehouse.node.at(target.base))

    def decide(stored: DataFrame) -> DataFrame:
        """Join the table's rows with the source, read anew, and let the first clause that holds take each row."""
        source, source_name = _source(statement)
        schema = _own_columns(stored, table.config)
        identity = Identity.of(table, target.label, options, schema, source.schema)
        sides = Sides(source_name, target.own_name[-1], target.own_name)
        rows = stored.withColumnsRenamed({RECORD_KEY: settled.OLD_KEY, PARTITION_PATH: settled.OLD_PARTITION})
        rows = rows.select(*map(quoted, schema.names), settled.OLD_KEY, settled.OLD_PARTITION)
        own = under_name(rows, sides.named)
        shown = own.drop(settled.OLD_KEY, settled.OLD_PARTITION)
        with sides.explained(partial(_said, statement, target, schema.names, sides), shown, source):
            taken, values = sides.taken(
                own,
                source,
                plans.column(statement.session, plan.mergeCondition()),
                _clauses(statement, schema, sides, table.config),
                schema.names,
            )
        taken = identity.with_partition(taken, values, table, sides.named)
        unmatched = None
        if plan.notMatchedActions().size():
            compared = compared_columns(plan, [sides.source], sides.named)
            unmatched = identity.may_be_stored(rows, compared)
        checked, known = identity.check(taken, sides.target, F.col(STORED).isNotNull(), values, unmatched)
        new = {**values, **known}
        changed = checked.select(
            *(new[name].alias(name) for name in schema.names),
            *map(F.col, (settled.ACTION, settled.OLD_KEY, settled.OLD_PARTITION, settled.CLAUSE)),
            _older(new, sides, table.config.ordering_fields).alias(settled.OLDER),
        )
        return fit_to_table(changed, T.StructType([*schema.fields, *_SETTLED.fields]))

    return decide


def _own_columns(stored: DataFrame, config: TableConfig) -> T.StructType:
    """Return a table's columns as its rows have them, for another writer may have added some meanwhile."""
    hidden = meta_fields(operation=config.keeps_operations)
    return T.StructType([field for field in stored.schema.fields if field.name not in hidden])


def columns_given(plan: plans.JavaPlan, columns: Sequence[str]) -> dict[str, Column]:
    """Return the columns that clauses of a MERGE give values, each with the rows whose clause does.

    An INSERT gives null to those that it leaves out.
    """
    found: dict[str, list[int]] = {}
    for number, (rows, action) in enumerate(_actions(plan)):
        given = columns
        if plans.kind(action) == "DeleteAction":
            given = []
        elif rows is not ClauseRows.NEW and plans.kind(action) != "UpdateStarAction":
            given = [plans.texts(item.key().nameParts())[-1] for item in plans.items(action.assignments())]
        for name in given:
            found.setdefault(name.lower(), []).append(number)
    return {name: F.col(settled.CLAUSE).isin(numbers) for name, numbers in found.items()}


def _older(new: dict[str, Column], sides: Sides, ordering: Sequence[str]) -> Column:
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


def _actions(plan: plans.JavaPlan) -> list[tuple[ClauseRows, plans.JavaPlan]]:
    """Return the WHEN clauses; those about one kind of rows in their order, of which the first that holds takes a row."""
    kinds = (
        (ClauseRows.MATCHED, plan.matchedActions()),
        (ClauseRows.NEW, plan.notMatchedActions()),
        (ClauseRows.LEFT, plan.notMatchedBySourceActions()),
    )
    return [(rows, action) for rows, actions in kinds for action in plans.items(actions)]


def _clauses(statement: Statement, schema: T.StructType, sides: Sides, config: TableConfig) -> list[Clause]:
    return [
        _clause(statement, rows, action, schema, sides, config) for rows, action in _actions(statement.plan)
    ]


def _said(statement: Statement, target: Target, columns: Sequence[str], sides: Sides) -> list[Said]:
    """Return what each clause says, as it stands in the statement."""
    session, label = statement.session, f"MERGE INTO {target.label}:"
    on = statement.plan.mergeCondition()
    found = [Said(None, f"{label} ON {_text(statement, on)}", partial(plans.column, session, on))]
    for rows, action in _actions(statement.plan):
        condition = plans.option(action.condition())
        if condition is not None:
            what = f"{label} {rows.value} AND {_text(statement, condition)}"
            found.append(Said(rows, what, partial(_holding, statement, condition)))
        if plans.kind(action) in ("UpdateStarAction", "InsertStarAction"):
            found += [
                Said(
                    rows,
                    f"{label} {rows.value} takes {name} of the source, which",
                    partial(_of, sides.source, name),
                )
                for name in columns
            ]
        elif plans.kind(action) != "DeleteAction":
            for item in plans.items(action.assignments()):
                name, value = plans.texts(item.key().nameParts())[-1], item.value()
                what = f"{label} {rows.value} sets {name} to {_text(statement, value)}, which"
                found.append(Said(rows, what, partial(plans.column, session, value)))
    return found


def _text(statement: Statement, expression: plans.JavaPlan) -> str:
    """Return an expression as it stands in the statement, or as Spark writes it where its end cannot be told."""
    return repr(plans.text_of(statement.text, expression))


def _holding(statement: Statement, condition: plans.JavaPlan) -> Column:
    return holds(plans.column(statement.session, condition))


def _of(side: str, column: str) -> Column:
    return F.col(f"{quoted(side)}.{quoted(column)}")


def _check_form(plan: plans.JavaPlan, target: Target) -> None:
    """Refuse what would be done otherwise than it is said."""
    if plans.says(plan, "withSchemaEvolution"):
        raise DbtRuntimeError(
            f"MERGE WITH SCHEMA EVOLUTION INTO {target.label} is refused: add the columns with ALTER TABLE ... ADD COLUMNS "
            "first, or let an incremental model with on_schema_change add them"
        )
    for _, action in _actions(plan):
        if plans.hasattr_java(action, "assignments"):
            target.set_columns(action.assignments())
    source = plan.sourceTable()
    if plans.kind(source) != "SubqueryAlias" and not plans.hasattr_java(source, "multipartIdentifier"):
        raise DbtRuntimeError(
            f"MERGE INTO {target.label}: the query behind USING has no name by which ON and the clauses could call its columns; "
            "give it one, as in USING (select ...) AS s"
        )


def _clause(
    statement: Statement,
    rows: ClauseRows,
    action: plans.JavaPlan,
    schema: T.StructType,
    sides: Sides,
    config: TableConfig,
) -> Clause:
    """Return the rows of a clause and the columns they take; columns that it leaves out keep their value, or are null."""
    condition, columns = plans.option(action.condition()), schema.names
    which = None if condition is None else plans.column(statement.session, condition)
    kind, fit = plans.kind(action), partial(_as_stored, schema)
    nothing = dict.fromkeys(columns, F.lit(None))
    kept = nothing if rows is ClauseRows.NEW else {column: _of(sides.target, column) for column in columns}
    if kind == "DeleteAction":
        return Clause(rows, settled.DELETE, which, kept, fit)
    said = {ClauseRows.NEW: settled.INSERT, ClauseRows.LEFT: settled.UPDATE_UNMATCHED}.get(
        rows, settled.UPDATE
    )
    if kind in ("UpdateStarAction", "InsertStarAction"):
        return Clause(rows, said, which, {column: _of(sides.source, column) for column in columns}, fit)
    given = {
        plans.texts(item.key().nameParts())[-1].lower(): plans.column(statement.session, item.value())
        for item in plans.items(action.assignments())
    }
    unknown = set(given) - {column.lower() for column in columns}
    if unknown:
        raise DbtRuntimeError(
            f"the table has no column {', '.join(sorted(unknown))}; its columns: {', '.join(columns)}"
        )
    values = {column: given.get(column.lower(), kept[column]) for column in columns}
    if rows is not ClauseRows.NEW:
        values |= {
            column: never_cleared(values[column], kept[column], column, config)
            for column in columns
            if column.lower() in given
        }
    return Clause(rows, said, which, values, fit)


def _as_stored(schema: T.StructType, rows: DataFrame, value: T.StructField, name: str) -> Column:
    """Return the value that a clause gives a column in its type; one that does not fit fails the statement."""
    column = schema[name]
    if value.dataType == column.dataType:
        return F.col(value.name)
    if value.dataType.typeName() == "void":
        return F.col(value.name).cast(column.dataType)
    refuse_other_fields(value.dataType, column.dataType, name)
    check_cast(rows, value, column)
    return exact_cast(value.name, value.dataType, column.dataType, name)
