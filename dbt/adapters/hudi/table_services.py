"""Table services as methods of the adapter, for hooks and ``run-operation``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.base.meta import AdapterMeta
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterResponse
from pyspark.sql import SparkSession

from dbt.adapters.hudi import bridge
from dbt.adapters.hudi.connections import HudiConnectionManager


class TableServices(metaclass=AdapterMeta):
    """Compaction, clean, rollback and timeline of the tables of an adapter."""

    connections: HudiConnectionManager
    config: Any

    @contextmanager
    def _table(self, relation: BaseRelation | str, what: str) -> Iterator[tuple[SparkSession, str]]:
        """The session and the folder of a table; the catalog shows what was made of it."""
        schema, name = self._names(relation)
        with self._folder(relation, what) as (session, base):
            yield session, base
            self.connections.warehouse.register(session, schema, name, base)

    @contextmanager
    def _folder(self, relation: BaseRelation | str, what: str) -> Iterator[tuple[SparkSession, str]]:
        schema, name = self._names(relation)
        with self.connections.work(f"{what} {schema}.{name}") as session:
            yield session, self.connections.warehouse.require_table(session, schema, name)

    def _names(self, relation: BaseRelation | str) -> tuple[str, str]:
        if isinstance(relation, str):
            parts = relation.replace("`", "").split(".")
            return (parts[-2] if len(parts) > 1 else self.config.credentials.schema), parts[-1]
        return relation.schema, relation.identifier

    @available.parse_none
    def hudi_compact(
        self, relation: BaseRelation | str, op: str = "run", options: Mapping[str, str] | None = None
    ) -> AdapterResponse:
        """Compact a merge-on-read table."""
        with self._table(relation, "compact") as (session, base):
            return bridge.compact(session, base, op, _options(options))

    @available.parse_list
    def hudi_compactions(self, relation: BaseRelation | str) -> list[str]:
        """Compactions of a table, pending and done, one line each."""
        with self._folder(relation, "compactions of") as (session, base):
            return bridge.compactions(session, base)

    @available.parse_none
    def hudi_clean(
        self,
        relation: BaseRelation | str,
        retain_commits: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> AdapterResponse:
        """Remove files that no retained commit needs."""
        with self._table(relation, "clean") as (session, base):
            return bridge.clean(session, base, retain_commits, _options(options))

    @available.parse_none
    def hudi_rollback(self, relation: BaseRelation | str, instant: str) -> AdapterResponse:
        """Undo the newest commit."""
        with self._table(relation, "roll back") as (session, base):
            return bridge.rollback(session, base, str(instant))

    @available.parse_list
    def hudi_timeline(self, relation: BaseRelation | str) -> list[bridge.CommitFacts]:
        """Instants of a table, newest last."""
        with self._folder(relation, "timeline of") as (session, base):
            return bridge.timeline(session, base)


def _options(options: Mapping[str, Any] | None) -> dict[str, str]:
    return {
        str(key): str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (options or {}).items()
    }
