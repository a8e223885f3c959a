"""The tables of an adapter, found by name: to look at, or to change while no other thread does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.format.config.options import laid_over, resolve_options
from hudi_engine.table.table_services import TableServices
from pyspark.sql import SparkSession

from dbt.adapters.hudi.parts import AdapterPart
from dbt.adapters.hudi.spark.errors import dbt_errors

Relation = BaseRelation | str


class TableAccess(AdapterPart):
    """The tables of an adapter, found by name."""

    @contextmanager
    def _table(self, relation: Relation, what: str) -> Iterator[tuple[SparkSession, HudiTable]]:
        name = self._names(relation)
        with self.connections.work(f"{what} {name.label}") as session:
            yield session, self.connections.warehouse.require_table(session, name.database, name.name)

    @contextmanager
    def _changed(self, relation: Relation, what: str) -> Iterator[HudiTable]:
        """Give a table that no other thread of this process writes meanwhile; afterwards the catalog shows what became of it."""
        warehouse, name = self.connections.warehouse, self._names(relation)
        with self._table(relation, what) as (session, table), warehouse.one_writer(session, table.path):
            yield table
            warehouse.show(session, name.database, name.name, table)

    @contextmanager
    def _look(self, relation: Relation, what: str, options: Mapping[str, Any]) -> Iterator[TableServices]:
        """Give the services of a table that need its files alone: without Spark where the folders know the table."""
        warehouse, name = self.connections.warehouse, self._names(relation)
        with dbt_errors(f"{what} {name.label}"):
            storage = warehouse.storage_on_disk(name.database, name.name)
            if storage is not None:
                known = warehouse.options_at(storage.base)
                yield TableServices(storage, resolve_options(laid_over(known, options)))
                return
            if warehouse.directory is not None and self.connections.only_looks:
                names = warehouse.directory.names(name.database.lower())
                there = (
                    ", ".join(sorted(each.name for each, base in names.items() if base is not None)) or "none"
                )
                raise DbtRuntimeError(
                    f"{name.label} is not a Hudi table; Hudi tables of {name.database}: {there}"
                )
        with self._table(relation, what) as (_, table):
            yield table.services(options)
