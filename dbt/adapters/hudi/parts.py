"""What every part of the adapter needs of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dbt.adapters.base.meta import AdapterMeta
from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.format.config.options import laid_over, resolve_options
from hudi_engine.spark.catalog import TableName
from hudi_engine.table.table_services import TableServices
from pyspark.sql import SparkSession

from dbt.adapters.hudi.column import HudiColumn
from dbt.adapters.hudi.connections import HudiConnectionManager
from dbt.adapters.hudi.model.known_configs import with_meta
from dbt.adapters.hudi.model.merge import own_strategies
from dbt.adapters.hudi.model.packages import config_of_package
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.spark.errors import dbt_errors


class AdapterPart(metaclass=AdapterMeta):
    """Base of the classes that the adapter is put together of."""

    connections: HudiConnectionManager
    config: Any
    cache: Any
    Relation: Any
    get_macro_resolver: Callable[[], Any]
    get_columns_in_relation: Callable[[BaseRelation], list[HudiColumn]]
    cache_added: Callable[..., Any]
    _relation: Callable[..., BaseRelation]
    _resolve: Callable[[str, str, Mapping[str, Any]], ModelPlan]

    def _macros(self) -> list[Any]:
        # dbt's manifest, of which the protocol has less
        manifest = self.get_macro_resolver()
        return [] if manifest is None else list(manifest.macros.values())

    def _config_of(self, model: Mapping[str, Any]) -> dict[str, object]:
        """Return the config of a node that becomes a table, with what is under ``meta: {hudi: ...}``."""
        config = with_meta(model.get("config") or {}, str(model.get("name")))
        of_package = model.get("package_name") != self.config.project_name
        return config_of_package(config)[0] if of_package else config

    def _own_strategies(self) -> frozenset[str]:
        return own_strategies(self._macros(), self.config.project_name)

    def _names(self, relation: BaseRelation | str) -> TableName:
        """Return the name of a table that a macro was given."""
        if not isinstance(relation, (str, BaseRelation)) or not str(relation):
            raise DbtRuntimeError(
                f"table is {relation!r}; give the name of a Hudi table, such as 'orders' or 'analytics.orders'"
            )
        if isinstance(relation, str):
            with dbt_errors("find a table"):
                return TableName.parse(relation, self.config.credentials.schema)
        return named(relation)


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
