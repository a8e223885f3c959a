"""Table services as methods of the adapter, for hooks and ``run-operation``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, HudiError, TableNotFoundError, UnsupportedTableError
from hudi_engine.format.config.declared.service_options import ArchiveOptions, CleanOptions, ServiceOptions
from hudi_engine.format.config.enums import CleanPolicy
from hudi_engine.format.config.options import canonical_key, laid_over, resolve_options
from hudi_engine.table.inspect import InstantFacts, instant_facts
from hudi_engine.table.services.result import PendingClustering, PendingCompaction
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices as Services
from pyspark.sql import SparkSession

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.parts import AdapterPart
from dbt.adapters.hudi.services import archived, cleaned, clustered, compacted, undone
from dbt.adapters.hudi.spark.errors import dbt_errors

Change = Callable[[HudiTable], AdapterResponse]
# A service asked for in a way that makes no sense is no failure of the service.
_ASKED_WRONGLY = (ConfigError, TableNotFoundError, UnsupportedTableError)


class _ServiceFailedError(Exception):
    """A table service failed that was asked for in a way that makes sense."""


class TableServiceMethods(AdapterPart):
    """Compaction, clean, rollback and timeline of the tables of an adapter."""

    def _service(
        self, relation: BaseRelation | str, what: str, options: Mapping[str, str], run: Change
    ) -> AdapterResponse:
        """Run a service; as the hook of a node one that fails is a warning, for the node's commit is good."""
        warehouse, name = self.connections.warehouse, self._names(relation)
        with dbt_errors(f"{what} {name.label}"):
            known = warehouse.node.named(name.database, name.name)
            strict = resolve_options(laid_over(known, options))[ServiceOptions.STRICT]
        of_node = bool(get_node_info().get("unique_id")) and not strict
        try:
            return self._change(relation, what, run, isolated=of_node)
        except _ServiceFailedError as failed:
            logger.warning("{} {} failed, its commit stands: {}", what, name.label, str(failed))
            return AdapterResponse(f"FAILED: {failed}")

    def _change(
        self, relation: BaseRelation | str, what: str, change: Change, *, isolated: bool = False
    ) -> AdapterResponse:
        """Change a table while nobody else of this process does; the catalog shows what was made of it."""
        warehouse, name = self.connections.warehouse, self._names(relation)
        with self._table(relation, what) as (session, table), warehouse.one_writer(session, table.path):
            try:
                response = change(table)
            except HudiError as error:
                if isolated and not isinstance(error, _ASKED_WRONGLY):
                    raise _ServiceFailedError(f"{type(error).__name__}: {error}") from error
                raise
            warehouse.show(session, name.database, name.name, table)
            return response

    @contextmanager
    def _table(self, relation: BaseRelation | str, what: str) -> Iterator[tuple[SparkSession, HudiTable]]:
        name = self._names(relation)
        with self.connections.work(f"{what} {name.label}") as session:
            yield session, self.connections.warehouse.require_table(session, name.database, name.name)

    @contextmanager
    def _look(
        self, relation: BaseRelation | str, what: str, options: Mapping[str, str] | None = None
    ) -> Iterator[Services]:
        """Return the services of a table that need its files alone: without Spark where the folders know the table."""
        warehouse, name = self.connections.warehouse, self._names(relation)
        folders = warehouse.folders
        with dbt_errors(f"{what} {name.label}"):
            storage = None if folders is None else folders.table(name.database, name.name)
            if storage is not None:
                known = warehouse.node.at(storage.base)
                yield Services(storage, resolve_options(laid_over(known, options or {})))
                return
            if folders is not None and self.connections.only_looks:
                there = ", ".join(folders.tables(name.database)) or "none"
                raise DbtRuntimeError(
                    f"{name.label} is not a Hudi table; Hudi tables of {name.database}: {there}"
                )
        with self._table(relation, what) as (_, table):
            yield table.services(options)

    @available.parse_none
    def hudi_compact(
        self, relation: BaseRelation | str, op: str = "run", options: Mapping[str, str] | None = None
    ) -> AdapterResponse:
        """Compact a merge-on-read table."""
        given = _options(options)
        return self._service(relation, "compact", given, lambda table: compacted(table, op, given))

    @available.parse_list
    def hudi_compactions(self, relation: BaseRelation | str) -> list[str]:
        """Compactions of a table, pending and done, one line each."""
        with self._look(relation, "compactions of") as services:
            return [
                _plan_line(each, "compaction", f", {each.log_files} log files")
                for each in services.compactions()
            ]

    @available.parse_none
    def hudi_cluster(
        self,
        relation: BaseRelation | str,
        op: str = "run",
        asked: Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> AdapterResponse:
        """Cluster a table, plan it, or say what a plan would take."""
        given = _options(options)
        if op == "dry_run":
            with self._table(relation, "clustering of") as (_, table):
                return clustered(table, op, asked or {}, given)
        return self._service(
            relation, "cluster", given, lambda table: clustered(table, op, asked or {}, given)
        )

    @available.parse_list
    def hudi_clusterings(self, relation: BaseRelation | str) -> list[str]:
        """Clusterings of a table, pending and done, one line each."""
        with self._look(relation, "clusterings of") as services:
            return [
                _plan_line(each, "clustering", f" in {len(each.partitions)} partitions")
                for each in services.clusterings()
            ]

    @available.parse_none
    def hudi_clean(
        self,
        relation: BaseRelation | str,
        retain_commits: int | str | None = None,
        options: Mapping[str, str] | None = None,
        *,
        dry_run: bool = False,
    ) -> AdapterResponse:
        """Remove files that no retained commit needs, or say which would go."""
        given = _options(options)
        retained = _number(retain_commits)
        _check_policy(retained, given)
        if dry_run:
            with self._look(relation, "clean of", given) as services:
                going = services.would_be_cleaned(retained)
            return AdapterResponse(listed("files would be deleted", going))
        return self._service(relation, "clean", given, lambda table: cleaned(table, retained, given))

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
        limits = {ArchiveOptions.MIN_COMMITS.key: min_commits, ArchiveOptions.MAX_COMMITS.key: max_commits}
        chosen = {key: value for key, value in limits.items() if value is not None}
        given = _options({**(options or {}), **chosen})
        return self._service(relation, "archive", given, lambda table: archived(table, dry_run, given))

    @available.parse_none
    def hudi_rollback(
        self, relation: BaseRelation | str, instant: str, *, dry_run: bool = False
    ) -> AdapterResponse:
        """Undo the newest commit; a table whose only commit it was is as if it had never been built."""
        if dry_run:
            with self._look(relation, "rollback of") as services:
                going = services.would_be_rolled_back(str(instant))
            touched = (*going.deleted_paths, *going.voided_paths)
            told = listed("files would be deleted or made void", touched)
            return AdapterResponse(f"{going.action} {going.instant} would be undone, {told}")
        return self._change(relation, "roll back", lambda table: undone(table, str(instant)))

    @available.parse_list
    def hudi_timeline(self, relation: BaseRelation | str) -> list[InstantFacts]:
        """Instants of a table with their times, newest last."""
        with self._look(relation, "timeline of") as services:
            return instant_facts(TableState.load(services.storage))


def _options(options: Mapping[str, Any] | None) -> dict[str, str]:
    if options is not None and not isinstance(options, Mapping):
        raise DbtRuntimeError(
            f"options is {options!r}; give a mapping such as {{hoodie.compaction.target.io: 1024}}"
        )
    return {
        str(key): str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (options or {}).items()
    }


def _number(given: Any) -> Any:
    """Return a number that is given as text, as var() and env_var() do, as one; anything else as it is."""
    return int(given) if isinstance(given, str) and given.strip().isdecimal() else given


def _check_policy(retain_commits: int | None, given: Mapping[str, str]) -> None:
    said = {key: value for key, value in given.items() if canonical_key(key) == CleanOptions.POLICY.key}
    for key, value in said.items():
        if retain_commits is not None and value.strip().upper() != CleanPolicy.KEEP_LATEST_COMMITS:
            raise DbtRuntimeError(
                f"retain_commits is {retain_commits}, which counts only with {CleanPolicy.KEEP_LATEST_COMMITS}, and options "
                f"has {key}: {value}; leave one of the two out"
            )


def listed(what: str, items: Sequence[str]) -> str:
    """Count items, and name each on a line of its own."""
    return f"{len(items)} {what}" + "".join(f"\n  {item}" for item in items)


def _plan_line(plan: PendingCompaction | PendingClustering, kind: str, rest: str) -> str:
    """Return what is told of a plan on the timeline.

    Args:
        rest: What belongs to its file groups, with the blank or comma before it.
    """
    return f"{plan.instant}  {kind}  {plan.state}  {plan.file_groups} file groups{rest}"
