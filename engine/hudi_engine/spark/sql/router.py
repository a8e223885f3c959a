"""Runs SQL statements on Hudi tables: a statement in, its result out.

Spark's own parser finds a statement's kind and target. Statements that would change a Hudi table are run by the engine
or refused by name; everything else is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_engine.errors import HudiError, StatementError
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.sql import ddl, dml, indexes, partitions, procedures
from hudi_engine.spark.sql.earlier_states import (
    with_earlier_states,
    with_information_schema,
    with_meta_columns,
)
from hudi_engine.spark.sql.fewer_files import explained, with_fewer_files
from hudi_engine.spark.sql.folders import check_files
from hudi_engine.spark.sql.query import Query
from hudi_engine.spark.sql.show_create import show_create_table
from hudi_engine.spark.sql.statement import (
    OtherCatalogError,
    Statement,
    StatementResult,
    Target,
    refused_face,
)
from hudi_engine.spark.sql.statements import first_keyword
from hudi_engine.spark.sql.warehouse import StatementWarehouse

# Delta's statements for what Hudi's services do.
_SERVICES: Mapping[str, str] = {
    "optimize": "CALL run_clustering, or {{ hudi_cluster(...) }} in dbt, puts rows in order, and CALL run_compaction, or "
    "{{ hudi_compact(...) }}, merges the logs of a merge-on-read table; writes fill small files up by themselves",
    "vacuum": "CALL run_clean, or {{ hudi_clean(...) }} in dbt, removes old files, and the config clean decides which ones stay",
}
_LOOK_AT = frozenset(
    (
        "insert update delete merge truncate alter drop create replace analyze with from msck repair load cache call "
        "comment execute show"
    ).split()
).union(_SERVICES)

# What Spark reports of DEFAULT as a value, where it finds no column of the name.
_DEFAULT = re.compile(r"\[(?:UNRESOLVED_COLUMN|INVALID_INLINE_TABLE)[^`\"]*[`\"]default[`\"]", re.IGNORECASE)
Action = Callable[[Statement, Target], StatementResult | None]

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
    "AlterColumn": ddl.alter_columns,
    "AlterColumns": ddl.alter_columns,
    "CommentOnTable": ddl.comment_on_table,
    "RenameTable": ddl.rename_table,
    "DropTable": ddl.drop_target,
    "AnalyzeTable": ddl.analyze,
    "SetTableProperties": ddl.set_properties,
    "UnsetTableProperties": ddl.unset_properties,
    "CreateIndex": indexes.create_index,
    "DropIndex": indexes.drop_index,
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
_ON_NAME: Mapping[str, Callable[[Statement], StatementResult | None]] = {
    "CreateTable": ddl.create_table,
    "CreateTableAsSelect": ddl.create_table,
    "ReplaceTable": ddl.create_table,
    "ReplaceTableAsSelect": ddl.create_table,
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
    "CreateUserDefinedFunction": ddl.create_function,
    "DropFunction": ddl.drop_function,
    "AnalyzeTables": ddl.analyze_tables,
    "ShowPartitions": partitions.show_partitions,
    "ShowCreateTable": show_create_table,
}


class StatementRouter:
    """Routes the statements of all sessions on a warehouse."""

    def __init__(self, warehouse: StatementWarehouse) -> None:
        self._warehouse = warehouse
        self._warned: set[str] = set()

    def with_states(self, session: SparkSession, statement: str, own_view: Callable[[str], str]) -> str:
        """Return a statement with temporary views for earlier states, meta columns, ``information_schema`` and fewer files.

        Args:
            own_view: Makes their names.
        """
        return self._query(session, statement, own_view).text

    def _query(self, session: SparkSession, statement: str, own_view: Callable[[str], str]) -> Query:
        query = with_information_schema(Query(self._warehouse, session, statement, own_view))
        return with_fewer_files(with_meta_columns(with_earlier_states(query)))

    def run(self, session: SparkSession, statement: str, own_view: Callable[[str], str]) -> StatementResult:
        """Run one statement, by the engine or by Spark; the rows of a query are those of the frame that is returned.

        Args:
            own_view: Makes names of temporary views, which the caller drops once the rows are read.
        """
        query = self._query(session, statement, own_view)
        routed = self._routed(query)
        if routed is not None:
            return routed
        frame = session.sql(query.text)
        if query.reads and first_keyword(query.text) == "explain":
            frame = explained(frame, query.reads)
        return StatementResult(frame, name="; ".join(["OK", *query.reads]))

    def route(self, session: SparkSession, statement: str) -> StatementResult | None:
        """Run a statement that concerns a Hudi table or a name of the warehouse; None leaves it to Spark."""
        return self._routed(Query(self._warehouse, session, statement, str))

    def _routed(self, query: Query) -> StatementResult | None:
        """Run a statement that may have been parsed already, see `route`."""
        session, statement = query.session, query.text
        keyword = first_keyword(statement)
        if keyword not in _LOOK_AT:
            return None
        if keyword == "call":
            return procedures.call(self._warehouse, session, statement)
        if keyword == "execute":
            raise StatementError(
                "EXECUTE IMMEDIATE is refused: a change of a Hudi table in its text would go round the engine; write the "
                "statement itself"
            )
        shown = indexes.shown_table(statement) if keyword == "show" else None
        plan = (query if shown is None else query.with_text(f"show tblproperties {shown}")).plan
        if plan is None:
            if keyword in _SERVICES:
                raise StatementError(
                    f"{keyword.upper()} is a statement that Hudi does not have; {_SERVICES[keyword]}"
                )
            return None  # Spark runs it again and reports the syntax error with its own words
        try:
            parsed = Statement(session, statement, plan, self._warehouse, self._warned)
            return self._dispatch(parsed) if shown is None else indexes.show_indexes(parsed)
        except OtherCatalogError:
            return None

    def _dispatch(self, statement: Statement) -> StatementResult | None:
        """Send a statement to who runs it; None leaves it to Spark, and what neither may do is refused by name."""
        kind = statement.kind
        if kind == "UnresolvedWith":
            return self._with_ctes(statement)
        if kind == "Union" and first_keyword(statement.text) == "from":
            _refuse_multi_insert(statement)
            return None
        if kind == "InsertIntoDir":
            location = plans.option(statement.plan.storage().locationUri())
            if location is not None:
                check_files(statement.session, self._warehouse, str(location))
            return None
        if kind in _ON_NAME:
            return _ON_NAME[kind](statement)
        action = _ON_TABLE.get(kind)
        if action is None and kind not in _REFUSED:
            return None
        target = statement.target()
        if target is None:
            return ddl.other_target(statement) if kind in ("DropTable", "RenameTable") else None
        if kind in _REFUSED:
            raise StatementError(
                f"{_verb(statement.text)} on the Hudi table {target.label} is refused: {_REFUSED[kind]}"
            )
        if target.is_face and kind != "DropTable":
            raise refused_face(target.label, target.base)
        assert action is not None
        return self._alone(statement, target, action)

    def _with_ctes(self, statement: Statement) -> StatementResult | None:
        inner = replace(statement, plan=statement.plan.child(), ctes=statement.plan)
        if inner.kind in _WITH_CTES:
            return self._dispatch(inner)
        target = inner.target() if inner.kind in _ON_TABLE else None
        if target is not None:
            raise StatementError(
                f"WITH in front of a statement that changes rows of the Hudi table {target.label} is refused but for INSERT: "
                "put the query where its name is used"
            )
        return None

    def _alone(self, statement: Statement, target: Target, action: Action) -> StatementResult | None:
        with self._warehouse.one_writer(statement.session, target.base):
            try:
                return action(statement, target)
            except (PySparkException, HudiError) as error:
                if _DEFAULT.search(str(error)):
                    raise StatementError(
                        f"DEFAULT as a value of {target.label} is refused: write NULL, the default of every column of a Hudi table"
                    ) from error
                raise


def _refuse_multi_insert(statement: Statement) -> None:
    for branch in plans.items(statement.plan.children()):
        inner = replace(statement, plan=branch)
        target = inner.target() if inner.kind == "InsertIntoStatement" else None
        if target is not None:
            raise StatementError(
                f"FROM ... INSERT ... INSERT on the Hudi table {target.label} is refused: each commit is one statement; write one "
                "INSERT INTO ... SELECT for each table"
            )


def _verb(text: str) -> str:
    words = re.findall(r"[A-Za-z]+", re.sub(r"/\*.*?\*/|--[^\n]*", " ", text, flags=re.DOTALL))
    return " ".join(words[:2]).upper()
