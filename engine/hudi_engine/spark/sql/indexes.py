"""CREATE INDEX, DROP INDEX and SHOW INDEXES on Hudi tables, as Apache Hudi's Spark SQL has them.

Source: Hudi SQL DDL, and ``IndexCommands`` of Hudi 1.2. Spark parses the first two; the third is none of its statements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hudi_engine.errors import StatementError
from hudi_engine.format.metadata.expressions import Expression
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.sql.statement import Statement, StatementResult, Target, data_columns
from hudi_engine.table.operations import OPERATIONS
from hudi_engine.table.services.indexing import INDEXES

_GAP = r"(?:\s|/\*.*?\*/|--[^\n]*(?:\n|$))+"
_SHOW = re.compile(
    rf"{_GAP[:-1]}*show{_GAP}indexes{_GAP}(?:from|in){_GAP}(?:table{_GAP})?(.+)", re.IGNORECASE | re.DOTALL
)
_OPTION_PREFIX = "hoodie."


def create_index(statement: Statement, target: Target) -> StatementResult:
    """CREATE INDEX [IF NOT EXISTS] name ON [TABLE] t [USING type] (columns) [OPTIONS (...)]: built before it returns.

    Without a type it is, as in Hudi, the record index for the columns of the record key, and else a secondary index.
    """
    plan, table, operation = statement.plan, statement.table(target), OPERATIONS["create_index"]
    name, columns, spelled = str(plan.indexName()).lower(), [], spellings(data_columns(table).names)
    for item in plans.items(plan.columns()):
        first, *rest = plans.texts(item._1().name())
        columns.append(".".join([spelled.get(first, first), *rest]))
        _hoodie_options(plans.pairs(item._2()), f"column {columns[-1]}", target)
    keys = table.config.record_key_fields
    is_key = {each.lower() for each in columns} == {each.lower() for each in keys}
    derived = MetadataPartition.RECORD_INDEX if is_key else MetadataPartition.SECONDARY_INDEX
    kind = str(plan.indexType()).lower() or derived.value.rstrip("_")
    options = plans.pairs(plan.properties())
    expression = _expression(options, columns)
    if expression is not None:
        if kind != MetadataPartition.COLUMN_STATS.value:
            raise StatementError(
                f"index {name} of {target.label} is of an expression; write USING column_stats, not {kind}"
            )
        kind = name = _partition(name, MetadataPartition.EXPRESSION_INDEX)
    elif f"{kind}_" == MetadataPartition.SECONDARY_INDEX.value:
        kind = name = _partition(name)
    given = {"index": kind, "columns": tuple(columns)}
    if expression is not None:
        given = {"index": kind, "expression": str(expression)}
    if kind in (MetadataPartition.RECORD_INDEX.value, MetadataPartition.BLOOM_FILTERS.value):
        del given["columns"]
        if not is_key:
            raise StatementError(
                f"index {name} of {target.label} is over the record key, and columns are {', '.join(columns)}; write "
                f"({', '.join(keys)})"
            )
    if name != kind and kind in INDEXES:
        raise StatementError(
            f"index {name} of {target.label}: a table has one {kind}, which is called so; write CREATE INDEX {kind} ON ..."
        )
    answer = operation.call(table.services(_hoodie_options(options, "the index", target)), given)
    if answer.reason and not plan.ignoreIfExists():
        raise StatementError(f"{target.label}: {answer.reason}; DROP INDEX drops it, IF NOT EXISTS leaves it")
    return StatementResult(name=f"CREATE INDEX {name}")


def _expression(options: dict[str, str], columns: Sequence[str]) -> Expression | None:
    """Take the expression out of OPTIONS, which Hudi's statement has it in; None where they have none."""
    if "expr" not in options:
        return None
    own = {key: options.pop(key) for key in [*options] if not key.startswith(_OPTION_PREFIX)}
    return Expression(", ".join(columns), own.pop("expr").lower(), own).checked()


def _partition(name: str, kind: MetadataPartition = MetadataPartition.SECONDARY_INDEX) -> str:
    """Return the partition of an index that has a name of its own."""
    return name if name.startswith(kind.value) else f"{kind.value}{name}"


def drop_index(statement: Statement, target: Target) -> StatementResult:
    """DROP INDEX [IF EXISTS] name ON [TABLE] t."""
    plan, table = statement.plan, statement.table(target)
    name, there = str(plan.indexName()).lower(), table.config.metadata_partitions
    named = [name, _partition(name), _partition(name, MetadataPartition.EXPRESSION_INDEX)]
    name = next((each for each in named if each in there), name)
    if name in there:
        OPERATIONS["drop_index"].call(table.services(), {"index": name})
    elif not plan.ignoreIfNotExists():
        raise StatementError(
            f"{target.label} has no index {name}; its indexes: {', '.join(there) or 'none'}; IF EXISTS is content with that"
        )
    return StatementResult(name=f"DROP INDEX {name}")


def shown_table(text: str) -> str | None:
    """Return the table of a SHOW INDEXES as the statement has it; None for another statement."""
    matched = _SHOW.fullmatch(text)
    return None if matched is None else matched[1]


def show_indexes(statement: Statement) -> StatementResult | None:
    """SHOW INDEXES FROM | IN [TABLE] t, with Hudi's columns; None for a table that is not Hudi's.

    Args:
        statement: Its plan is one that Spark has for the same table.
    """
    target = statement.target()
    if target is None:
        return None
    rows = OPERATIONS["indexes"].call(statement.table(target).services(), {}).rows
    values = [tuple(each.values()) for each in rows]
    columns = "index_name string, index_type string, col_name string"
    return StatementResult(statement.session.createDataFrame(values, columns), name="SHOW INDEXES")


def _hoodie_options(options: dict[str, str], what: str, target: Target) -> dict[str, str]:
    """Return OPTIONS; refuses those that are no options of the engine."""
    unknown = [key for key in options if not key.startswith(_OPTION_PREFIX)]
    if unknown or (options and what != "the index"):
        raise StatementError(
            f"OPTIONS of {what} of {target.label} has {', '.join(unknown or options)}; legal values behind the columns: "
            f"expr and what it takes, hoodie.* options. Legal indexes: {', '.join(INDEXES)}"
        )
    return options
