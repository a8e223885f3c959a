"""Table services as methods of the adapter, for hooks and ``run-operation``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.base.meta import AdapterMeta
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from dbt.adapters.hudi import bridge
from dbt.adapters.hudi.connections import HudiConnectionManager

Change = Callable[[SparkSession, str], AdapterResponse]
Service = Callable[[SparkSession, str, Mapping[str, str]], AdapterResponse]
_STRICT = "hoodie.engine.services.strict"


class TableServices(metaclass=AdapterMeta):
    """Compaction, clean, rollback and timeline of the tables of an adapter."""

    connections: HudiConnectionManager
    config: Any

    def _service(
        self, relation: BaseRelation | str, what: str, options: Mapping[str, str], run: Service
    ) -> AdapterResponse:
        """Run a service; as the hook of a node one that fails is a warning, for the node's commit is good."""
        try:
            return self._change(relation, what, lambda *place: run(*place, options))
        except bridge.ServiceFailedError as error:
            if not get_node_info().get("unique_id") or options.get(_STRICT) == "true":
                raise
            schema, name = self._names(relation)
            bridge.logger.warning("{} {}.{} failed, its commit stands: {}", what, schema, name, error.msg)
            return AdapterResponse(f"FAILED: {error.msg}")

    def _change(self, relation: BaseRelation | str, what: str, change: Change) -> AdapterResponse:
        """Change a table while nobody else of this process does; the catalog shows what was made of it."""
        schema, name = self._names(relation)
        with self._folder(relation, what) as (session, base):
            with self.connections.warehouse.one_writer(session, base):
                response = change(session, base)
                self.connections.warehouse.show(session, schema, name, base)
            return response

    @contextmanager
    def _folder(self, relation: BaseRelation | str, what: str) -> Iterator[tuple[SparkSession, str]]:
        schema, name = self._names(relation)
        with self.connections.work(f"{what} {schema}.{name}") as session:
            yield session, self.connections.warehouse.require_table(session, schema, name)

    def _names(self, relation: BaseRelation | str) -> tuple[str, str]:
        if not isinstance(relation, (str, BaseRelation)) or not str(relation):
            raise DbtRuntimeError(
                f"table is {relation!r}; give the name of a Hudi table, such as 'orders' or 'analytics.orders'"
            )
        if isinstance(relation, str):
            parts = relation.replace("`", "").split(".")
            return (parts[-2] if len(parts) > 1 else self.config.credentials.schema), parts[-1]
        return relation.schema, relation.identifier

    @available.parse_none
    def hudi_compact(
        self, relation: BaseRelation | str, op: str = "run", options: Mapping[str, str] | None = None
    ) -> AdapterResponse:
        """Compact a merge-on-read table."""
        return self._service(
            relation,
            "compact",
            _options(options),
            lambda session, base, given: bridge.compact(session, base, op, given),
        )

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
        return self._service(
            relation,
            "clean",
            _options(options),
            lambda session, base, given: bridge.clean(session, base, retain_commits, given),
        )

    @available.parse_none
    def hudi_archive(
        self,
        relation: BaseRelation | str,
        min_commits: int | None = None,
        max_commits: int | None = None,
        *,
        dry_run: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> AdapterResponse:
        """Move the oldest instants to the archive."""
        limits = {"hoodie.keep.min.commits": min_commits, "hoodie.keep.max.commits": max_commits}
        given = {key: value for key, value in limits.items() if value is not None}
        return self._service(
            relation,
            "archive",
            _options({**(options or {}), **given}),
            lambda session, base, chosen: bridge.archive(session, base, dry_run, chosen),
        )

    @available.parse_none
    def hudi_rollback(self, relation: BaseRelation | str, instant: str) -> AdapterResponse:
        """Undo the newest commit; a table whose only commit it was is as if it had never been built."""
        return self._change(relation, "roll back", lambda *place: bridge.rollback(*place, str(instant)))

    @available.parse_list
    def hudi_timeline(self, relation: BaseRelation | str) -> list[bridge.CommitFacts]:
        """Instants of a table, newest last."""
        with self._folder(relation, "timeline of") as (session, base):
            return bridge.timeline(session, base)


def _options(options: Mapping[str, Any] | None) -> dict[str, str]:
    if options is not None and not isinstance(options, Mapping):
        raise DbtRuntimeError(
            f"options is {options!r}; give a mapping such as {{hoodie.compaction.target.io: 1024}}"
        )
    return {
        str(key): str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (options or {}).items()
    }
