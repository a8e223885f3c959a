"""Columns that a model has and its table not yet: found, and added, dropped or widened, in the commit of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import CompilationError, DbtRuntimeError
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.sql.not_null import forget_columns
from pyspark.errors import ParseException
from pyspark.sql import types as T
from pyspark.sql.types import _parse_datatype_string

from dbt.adapters.hudi.column import HudiColumn, explicit_type
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.parts import TableAccess
from dbt.adapters.hudi.preview import PREVIEW
from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.rows import builds
from dbt.adapters.hudi.rows.failing_rows import failures_query
from dbt.adapters.hudi.rows.schema_changes import (
    ChangeOfColumns,
    column_differences,
    new_fields,
    schema_change,
    type_changes,
)
from dbt.adapters.hudi.rows.snapshots import check_snapshot, checked_columns, fit_query
from dbt.adapters.hudi.run import ModelRun
from dbt.adapters.hudi.spark.catalog_rows import STORED_MARKS, columns


class ColumnChanges(TableAccess):
    """The adapter's methods for ``on_schema_change``, and for names and comments of columns."""

    @available.parse_list
    def hudi_columns_to_write(
        self, run: ModelRun, source: BaseRelation, target: BaseRelation
    ) -> list[HudiColumn]:
        """Return the columns that a run takes of its staged query, as ``on_schema_change`` has it; see `rows/schema_changes.py`."""
        plan = run.plan
        stored = self.get_columns_in_relation(target)
        # rows to delete have their key only, so they have no effect on the table's columns
        mode = "ignore" if plan.merge.operation == "delete" else plan.merge.on_schema_change
        if mode == "ignore":
            return stored
        warehouse = self.connections.warehouse
        with self.connections.work(f"compare {plan.schema}.{plan.name} with its model") as session:
            table = builds.current_table(warehouse, session, plan)
            builds.check_fit(plan, table, session.table(named(source).name).columns)
        given = self.get_columns_in_relation(source)
        mine, theirs = T.StructType(_fields(stored)), T.StructType(_fields(given))
        if mode == "fail":
            keeps_rows = (run.node.get("config") or {}).get("full_refresh") is False
            problem = column_differences(f"{plan.schema}.{plan.name}", mine, theirs, keeps_rows=keeps_rows)
            if problem:
                raise CompilationError(problem)  # as dbt has it
            return given
        change = schema_change(mode, mine, theirs)
        if change:
            logger.info(
                "In {}.{}: {}: added {}, removed {}, changed {}",
                plan.schema,
                plan.name,
                mode,
                [each.name for each in change.added],
                list(change.removed),
                {name: kind.simpleString() for name, kind in change.retyped.items()},
            )
        removed, new = {*change.removed}, {each.name for each in change.added}
        return [
            *(column for column in stored if column.name not in removed),
            *(column for column in given if column.name in new),
        ]

    @available.parse_none
    def hudi_alter_columns(
        self,
        relation: BaseRelation,
        add: Sequence[Any] | None,
        remove: Sequence[Any] | None,
        retype: Sequence[Mapping[str, str]],
    ) -> None:
        """Add, drop and widen columns as one schema commit, for macros, and for strategies whose SQL writes the rows."""
        change = ChangeOfColumns(
            _fields(add or ()),
            [column.name for column in remove or ()],
            {item["column_name"]: _parse_datatype_string(explicit_type(item["new_type"])) for item in retype},
        )
        with self._changed(relation, "alter columns of") as table:
            table.alter_schema(change.applied(builds.data_columns(table)))
            if change.removed:
                forget_columns(table, change.removed)

    @available.parse_list
    def hudi_stored_columns(self, relation: BaseRelation) -> list[HudiColumn]:
        """Columns of a relation that can be described: those of dbt's schema changes, and the mark of deleted rows."""
        with self.connections.work(f"columns of {relation.render()}") as session:
            return columns(session, relation, STORED_MARKS)

    @available.parse_none
    def hudi_add_comments(self, relation: BaseRelation, comments: Mapping[str, str]) -> None:
        """Store descriptions of some columns of a Hudi table and keep those of the others."""
        if not PREVIEW.runs(f"comment on {relation}"):
            return
        with self.connections.work(f"comments of {relation}") as session:
            warehouse, name = self.connections.warehouse, named(relation)
            table = warehouse.require_table(session, name.database, name.name)
            warehouse.add_comments(session, name.database, name.name, table, comments)

    @available.parse_none
    def hudi_check_snapshot(self, run: ModelRun, code: str, hard_deletes: str | None) -> None:
        """Refuse a snapshot whose rows could not be compared with stored ones; see `rows/snapshots.py`."""
        with self.connections.work(code) as session:
            handle = self.connections.get_thread_connection().handle
            query = session.sql(handle.with_states(session, code))
            check_snapshot(run.plan, run.node["config"], query, hard_deletes)

    @available.parse(lambda *_, **__: "")
    def hudi_snapshot_query(
        self, run: ModelRun, view: str, code: str, updated_at: str, moments: Sequence[str]
    ) -> str:
        """Return SQL of a snapshot's query in the snapshot's names and types, which take wider ones first; see `rows/snapshots.py`.

        Args:
            updated_at: Column of the query whose values dbt's own take; ``""`` for none.
        """
        with self.connections.work(code) as session:
            handle = self.connections.get_thread_connection().handle
            query = session.sql(handle.with_states(session, code))
            fitted = fit_query(self.connections.warehouse, session, run.plan, query, {updated_at: moments})
            if fitted is query:
                return code
            fitted.createOrReplaceTempView(view)
        handle.track_view(view)
        return f"select * from {quoted(view)}"

    @available.parse_none
    def hudi_type_changes(
        self, source_columns: Iterable[HudiColumn], target_columns: Iterable[HudiColumn]
    ) -> list[dict[str, str]]:
        """Columns whose type in the query is not what the table holds for that type."""
        return _as_changes(type_changes(_fields(source_columns), _fields(target_columns)))

    @available.parse_list
    def hudi_new_fields(
        self, changes: Sequence[Mapping[str, str]], target_columns: Iterable[HudiColumn]
    ) -> list[dict[str, str]]:
        """Of some changed types those whose structs get further fields; nothing else of them changes."""
        retyped = {
            item["column_name"]: _parse_datatype_string(explicit_type(item["new_type"])) for item in changes
        }
        return _as_changes(new_fields(retyped, _fields(target_columns)))

    @available.parse(lambda *_, **__: (False, []))
    def hudi_checked_columns(self, wanted: Sequence[str], stored: Sequence[str]) -> tuple[bool, list[str]]:
        """Columns that a snapshot compares, and whether there is a new one; see `rows/snapshots.py`."""
        return checked_columns(wanted, stored)

    @available.parse(lambda *_, **__: "")
    def hudi_failures_query(self, query: str) -> str:
        """Query of a test as one of which a table can be made."""
        with self.connections.work(query) as session:
            handle = self.connections.get_thread_connection().handle
            return failures_query(query, session.sql(handle.with_states(session, query)).schema)


def _fields(columns: Iterable[Any]) -> list[T.StructField]:
    return [T.StructField(column.name, _type_of(column), True) for column in columns]


def _type_of(column: Any) -> T.DataType:
    try:
        return _parse_datatype_string(explicit_type(column.dtype))
    except ParseException as error:
        raise DbtRuntimeError(
            f"column {column.name!r} has type {column.dtype}, with a field whose name is not allowed. A field's name must match "
            "[A-Za-z_][A-Za-z0-9_]*: rename it in the query"
        ) from error


def _as_changes(retyped: Mapping[str, T.DataType]) -> list[dict[str, str]]:
    return [{"column_name": name, "new_type": kind.simpleString()} for name, kind in retyped.items()]
