"""Keeps SQL on Hudi tables from going round the engine.

Spark's own parser tells a statement's kind and target. Statements that would change a Hudi table are run by the engine
or refused by name; everything else is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from dbt_common.exceptions import DbtRuntimeError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.hudi.spark.handle import Routed
from dbt.adapters.hudi.spark.warehouse import Warehouse
from dbt.adapters.hudi.sql import (
    creating,
    ddl,
    dml,
    functions,
    information_schema,
    partitions,
    plans,
    procedures,
)
from dbt.adapters.hudi.sql.default_values import with_null_for_default
from dbt.adapters.hudi.sql.earlier_states import EarlierStates
from dbt.adapters.hudi.sql.statements import first_keyword
from dbt.adapters.hudi.sql.targets import OtherCatalogError, Statement, Target, refused_face

# Delta's statements for what Hudi's services do.
_SERVICES: Mapping[str, str] = {
    "optimize": "{{ hudi_cluster(...) }} puts rows in order and {{ hudi_compact(...) }} merges the logs of a merge-on-read "
    "table; writes fill small files up by themselves",
    "vacuum": "{{ hudi_clean(...) }} removes old files, and the config clean says which ones stay",
}
_LOOK_AT = frozenset(
    (
        "insert update delete merge truncate alter drop create replace analyze with from msck repair load cache call "
        "explain comment execute show describe desc"
    ).split()
).union(_SERVICES)

Action = Callable[[Statement, Target], Routed | None]

# Statements about one existing table; for other tables than Hudi's they are Spark's.
_ON_TABLE: Mapping[str, Action] = {
    "InsertIntoStatement": dml.insert,
    "OverwriteByExpression": dml.overwrite_where,
    "UpdateTable": dml.update,
    "DeleteFromTable": dml.delete,
    "MergeIntoTable": dml.merge,
    "TruncateTable": dml.truncate,
    "TruncatePartition": partitions.truncate_partition,
    "DropPartitions": partitions.drop_partitions,
    "AddColumns": ddl.add_columns,
    "DropColumns": ddl.drop_columns,
    "AlterColumn": ddl.alter_column,
    "AlterColumns": ddl.alter_columns,
    "CommentOnTable": ddl.comment_on_table,
    "RenameTable": ddl.rename_table,
    "DropTable": ddl.drop_target,
    "AnalyzeTable": ddl.analyze,
    "SetTableProperties": ddl.set_properties,
    "UnsetTableProperties": ddl.unset_properties,
}
_WITH_CTES = ("InsertIntoStatement", "OverwriteByExpression")
_REFUSED: Mapping[str, str] = {
    "RenameColumn": "Hudi tables of version 6 cannot rename a column; add a new one, or rebuild with --full-refresh",
    "ReplaceColumns": "use ALTER TABLE ... ADD COLUMNS or DROP COLUMN",
    "SetTableLocation": "the place of a Hudi table is fixed; set location_root and rebuild with --full-refresh",
    "AddPartitions": "partitions of a Hudi table come with its rows",
    "RenamePartitions": "partitions of a Hudi table come with its rows",
    "RecoverPartitions": "partitions of a Hudi table come with its commits; nothing has to be repaired",
    "RepairTable": "partitions of a Hudi table come with its commits; nothing has to be repaired",
    "LoadData": "insert the rows with INSERT INTO ... SELECT",
    "AnalyzeColumn": "statistics of a Hudi table come from its commits",
    "SetTableSerDeProperties": "a Hudi table has no serde",
    "AddConstraint": "the contract of a model checks rows",
    "AddCheckConstraint": "the contract of a model checks rows",
    "AlterTableClusterBy": "{{ hudi_cluster(...) }} puts its rows in order",
}
# Statements that make, drop or show names, or are about all of a schema, and need the warehouse whatever the target is.
_ON_NAME: Mapping[str, Callable[[Statement], Routed | None]] = {
    "CreateTable": creating.create_from_columns,
    "CreateTableAsSelect": creating.create_table_as_select,
    "ReplaceTable": creating.create_from_columns,
    "ReplaceTableAsSelect": creating.create_table_as_select,
    "CreateTableLike": ddl.create_table_like,
    "CreateTableLikeCommand": ddl.create_table_like,
    "CreateView": ddl.create_view,
    "AlterViewAs": ddl.alter_view,
    "SetViewProperties": ddl.alter_view,
    "UnsetViewProperties": ddl.alter_view,
    "AlterViewSchemaBinding": ddl.alter_view,
    "DropView": ddl.drop_view,
    "CreateNamespace": ddl.create_schema,
    "DropNamespace": ddl.drop_schema,
    "CreateUserDefinedFunction": functions.create_function,
    "DropFunction": functions.drop_function,
    "AnalyzeTables": ddl.analyze_tables,
    "ShowPartitions": partitions.show_partitions,
    "DescribeRelation": partitions.describe_partition,
    "DescribeTablePartition": partitions.describe_partition,
}


class StatementRouter:
    """Routes the statements of all connections of a profile."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._states = EarlierStates(warehouse)

    def with_states(self, session: SparkSession, statement: str, own_view: Callable[[str], str]) -> str:
        """Return a statement with temporary names for other states of tables (`EarlierStates`) and for what Spark has not."""
        statement = information_schema.named_in(self._warehouse, session, statement, own_view)
        return self._states.named_in(session, statement, own_view)

    def route(self, session: SparkSession, statement: str) -> Routed | None:
        """Run a statement that concerns a Hudi table or a name of the warehouse; None leaves it to Spark."""
        keyword = first_keyword(statement)
        if keyword not in _LOOK_AT:
            return None
        if keyword == "call":
            return procedures.call(self._warehouse, session, statement)
        if keyword == "execute":
            _refuse_hidden_change(statement)
            return None
        try:
            plan = plans.parse(session, statement)
        except (PySparkException, Py4JError):
            if keyword in _SERVICES:
                raise DbtRuntimeError(
                    f"{keyword.upper()} is a statement that Hudi does not have; {_SERVICES[keyword]}"
                ) from None
            return None  # Spark runs it again and reports the syntax error with its own words
        try:
            return self._dispatch(Statement(session, statement, plan, self._warehouse))
        except OtherCatalogError:
            return None

    def _dispatch(self, statement: Statement) -> Routed | None:
        """Send a statement to who runs it; None leaves it to Spark, and what neither may do is refused by name."""
        kind = statement.kind
        if kind == "UnresolvedWith":
            return self._with_ctes(statement)
        if kind == "Union" and first_keyword(statement.text) == "from":
            return self._multi_insert(statement)
        if kind == "ExplainCommand":
            return self._explain(statement)
        if kind in _ON_NAME:
            return _ON_NAME[kind](statement)
        action = _ON_TABLE.get(kind)
        if action is None and kind not in _REFUSED:
            return None
        target = statement.target()
        if target is None:
            return ddl.other_target(statement) if kind in ("DropTable", "RenameTable") else None
        if kind in _REFUSED:
            raise DbtRuntimeError(
                f"{_verb(statement.text)} on the Hudi table {target.label} is refused: {_REFUSED[kind]}"
            )
        if target.is_face and kind != "DropTable":
            raise refused_face(target.label, target.base)
        assert action is not None
        return self._alone(statement, target, action)

    def _with_ctes(self, statement: Statement) -> Routed | None:
        inner = Statement(
            statement.session, statement.text, statement.plan.child(), self._warehouse, ctes=statement.plan
        )
        if inner.kind in _WITH_CTES:
            return self._dispatch(inner)
        target = inner.target() if inner.kind in _ON_TABLE else None
        if target is not None:
            raise DbtRuntimeError(
                f"WITH in front of a statement that changes rows of the Hudi table {target.label} is refused but for INSERT: "
                "put the query where its name is used"
            )
        return None

    def _alone(self, statement: Statement, target: Target, action: Action) -> Routed | None:
        with self._warehouse.one_writer(statement.session, target.base):
            return action(with_null_for_default(statement, target), target)

    def _multi_insert(self, statement: Statement) -> Routed | None:
        for branch in plans.items(statement.plan.children()):
            if plans.kind(branch) == "InsertIntoStatement":
                target = Statement(statement.session, statement.text, branch, self._warehouse).target()
                if target is not None:
                    raise DbtRuntimeError(
                        f"FROM ... INSERT ... INSERT on the Hudi table {target.label} is refused: each commit is one "
                        "statement; write one INSERT INTO ... SELECT for each table"
                    )
        return None

    def _explain(self, statement: Statement) -> Routed | None:
        inner = Statement(statement.session, statement.text, statement.plan.logicalPlan(), self._warehouse)
        if inner.kind in _ON_TABLE and inner.target() is not None:
            raise DbtRuntimeError(
                f"EXPLAIN shows Spark's plan, but {_verb(statement.text)} on a Hudi table is run by the engine"
            )
        return None


def _refuse_hidden_change(text: str) -> None:
    """EXECUTE IMMEDIATE may run queries; what else its text says would go round the engine."""
    said = re.search(r"immediate\s+r?(['\"])(.*)", text, flags=re.IGNORECASE | re.DOTALL)
    keyword = "" if said is None else first_keyword(said[2])
    hides_insert = keyword in ("with", "from") and "insert" in text.lower()
    if keyword not in ("select", "with", "from", "values", "show", "describe") or hides_insert:
        raise DbtRuntimeError(
            "EXECUTE IMMEDIATE is refused for anything but the text of a query, since a change of a Hudi table would go "
            "round the engine; write the statement itself"
        )


def _verb(text: str) -> str:
    words = re.findall(r"[A-Za-z]+", re.sub(r"/\*.*?\*/|--[^\n]*", " ", text, flags=re.DOTALL))
    return " ".join(words[:2]).upper()
