"""Columns that a model has and its table not yet: found, and added, dropped or widened as one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.schema.any_case import AnyCase
from pyspark.sql.types import _parse_datatype_string

from dbt.adapters.hudi.column import HudiColumn, same_stored_type, stored_type
from dbt.adapters.hudi.connections import HudiConnectionManager
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.rows import builds
from dbt.adapters.hudi.rows.alignment import legal_names
from dbt.adapters.hudi.rows.nested_types import in_order_of, with_new_fields


class ColumnChanges(metaclass=AdapterMeta):
    """The adapter's methods for ``on_schema_change``."""

    connections: HudiConnectionManager

    @available.parse_none
    def hudi_alter_columns(
        self,
        relation: BaseRelation,
        add: Sequence[Any] | None,
        remove: Sequence[Any] | None,
        retype: Sequence[Mapping[str, str]],
    ) -> None:
        """Add, drop and widen columns as one schema commit."""
        with self.connections.work(f"alter columns of {relation}") as session:
            name = named(relation)
            table = self.connections.warehouse.require_table(session, name.database, name.name)
            schema = builds.changed_schema(
                builds.data_columns(table),
                {column.name: _parse_datatype_string(stored_type(column.dtype)) for column in add or ()},
                [column.name for column in remove or ()],
                {
                    item["column_name"]: _parse_datatype_string(stored_type(item["new_type"]))
                    for item in retype
                },
            )
            table.alter_schema(schema)
            self.connections.warehouse.register(session, name.database, name.name, table)

    @available.parse_none
    def hudi_type_changes(
        self, source_columns: Iterable[HudiColumn], target_columns: Iterable[HudiColumn]
    ) -> list[dict[str, str]]:
        """Columns whose type in the query is not what the table holds for that type."""
        targets = AnyCase((column.name, column) for column in target_columns)
        changes = []
        for column in source_columns:
            target = targets.get(column.name)
            if target is None or same_stored_type(column.dtype, target.dtype):
                continue
            old, new = (_parse_datatype_string(each.dtype) for each in (target, column))
            wanted = in_order_of(old, new).simpleString()
            if not same_stored_type(wanted, target.dtype):
                changes.append({"column_name": target.name, "new_type": wanted})
        return changes

    @available.parse_list
    def hudi_new_fields(
        self, type_changes: Sequence[Mapping[str, str]], target_columns: Iterable[HudiColumn]
    ) -> list[dict[str, str]]:
        """Of some changed types those whose structs get further fields; nothing else of them changes."""
        tables = {column.name: _parse_datatype_string(column.dtype) for column in target_columns}
        grown = []
        for item in type_changes:
            old = tables[item["column_name"]]
            new = with_new_fields(old, _parse_datatype_string(item["new_type"]))
            if not same_stored_type(old.simpleString(), new.simpleString()):
                grown.append({"column_name": item["column_name"], "new_type": new.simpleString()})
        return grown

    @available.parse_list
    def hudi_columns_to_be(
        self, plan: ModelPlan, source: Sequence[HudiColumn], target: Sequence[HudiColumn]
    ) -> list[HudiColumn]:
        """Columns of a table after a write that is tested before its commit: new ones come with the rows.

        Raises:
            DbtRuntimeError: The table would have to drop or change columns, which takes a commit of its own.
        """
        known = {column.name.lower() for column in target}
        new = [column for column in source if column.name.lower() not in known]
        retyped = self.hudi_type_changes(source, target)
        gone: list[str] = []
        if plan.merge.on_schema_change == "sync_all_columns":
            given = {column.name.lower() for column in source}
            gone = [f"drop {column.name}" for column in target if column.name.lower() not in given]
        else:
            retyped = self.hudi_new_fields(retyped, target)
        changes = [*gone, *(f"make {each['column_name']} {each['new_type']}" for each in retyped)]
        if changes:
            raise DbtRuntimeError(
                f"{plan.schema}.{plan.name} is tested before its commit, and on_schema_change "
                f"{plan.merge.on_schema_change!r} has to {', '.join(changes)} first, in a commit that no failing test takes "
                "back; run it once without audit and pre_commit_tests, or with --full-refresh"
            )
        return [*target, *new]

    @available.parse_list
    def hudi_legal_names(self, names: Sequence[str]) -> list[str]:
        """Names a table can have for columns a query did not name as one can."""
        return legal_names(names)
