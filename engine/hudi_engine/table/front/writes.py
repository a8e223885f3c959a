"""Writing rows to a table by key or as they come, and what follows a commit."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.sync_options import SyncOptions
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.planned import plan_wish
from hudi_engine.format.telemetry.callback import Commit, report_commit
from hudi_engine.format.telemetry.phases import timed
from hudi_engine.table.front.handle import RawOptions, TableHandle
from hudi_engine.table.services.inline import due_after_commit
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.metadata_conflicts import with_batch
from hudi_engine.table.write import operation as operations
from hudi_engine.table.write.define.definition import column_names
from hudi_engine.table.write.define.table_options import deletes_by_payload, of_deletes
from hudi_engine.table.write.metadata_only import delete_partitions
from hudi_engine.table.write.operation import Operation
from hudi_engine.table.write.pipeline import write
from hudi_engine.table.write.place.sidecars import made_sidecars
from hudi_engine.table.write.request import Source, WriteRequest
from hudi_engine.table.write.result import NO_ROWS, WriteResult

logger = logging.getLogger(__name__)

Given = TypeVar("Given")
"""What the writes of a table take as rows."""


class TableWrites(TableHandle, Generic[Given]):
    """Writing: rows and partitions."""

    @abstractmethod
    def _source(self, rows: Given, options: Options) -> Source:
        """Return rows for the pipeline."""

    @abstractmethod
    def _check_sync(self, options: Options) -> None:
        """Refuse what the entries of a metastore cannot follow; before a write with hive sync."""

    @abstractmethod
    def _sync(self, options: Options, instant: str) -> None:
        """Bring the entries of a metastore up to a commit."""

    def insert(
        self, df: Given, *, options: RawOptions | None = None, batch_id: int | None = None
    ) -> WriteResult:
        """Add rows, small files first; keys are not looked up; ``batch_id`` and errors as in upsert."""
        return self.write(operations.INSERT, df, self._of_batch(options, batch_id))

    def bulk_insert(
        self, df: Given, *, options: RawOptions | None = None, batch_id: int | None = None
    ) -> WriteResult:
        """Add rows in one streaming pass to new files; the fastest way for large loads; ``batch_id`` and errors as in upsert."""
        return self.write(operations.BULK_INSERT, df, self._of_batch(options, batch_id))

    def insert_overwrite(self, df: Given, *, options: RawOptions | None = None) -> WriteResult:
        """Replace the partitions that the rows belong to, in one replace instant. Raises as upsert does."""
        return self.write(operations.INSERT_OVERWRITE, df, options)

    def insert_overwrite_table(self, df: Given, *, options: RawOptions | None = None) -> WriteResult:
        """Replace all rows of the table, in one replace instant. Raises as upsert does."""
        return self.write(operations.INSERT_OVERWRITE_TABLE, df, options)

    def delete(
        self, df: Given, *, options: RawOptions | None = None, batch_id: int | None = None
    ) -> WriteResult:
        """Delete the rows whose keys are in ``df``.

        Args:
            df: The record key columns, and the partition columns if there are any; without these a key is deleted
                wherever it is. Other columns are ignored.
            options: ``hoodie.*`` options of this call.
            batch_id: As in upsert.
        """
        return self.write(operations.DELETE, df, self._of_batch(options, batch_id))

    def delete_partitions(
        self, partitions: Sequence[str], *, options: RawOptions | None = None
    ) -> WriteResult:
        """Delete whole partitions, in one replace instant.

        Args:
            partitions: Partition paths, such as ``["dt=2026-01-01"]``.
            options: ``hoodie.*`` options of this call.
        """
        resolved = self._resolved(options)
        return self._published(delete_partitions(self.storage, partitions, resolved), resolved)

    def write(
        self,
        operation: Operation,
        df: Given,
        options: RawOptions | None,
        *,
        update_columns: Sequence[str] | None = None,
        match_condition: str | None = None,
        prepped: bool = False,
        base: TableState | None = None,
    ) -> WriteResult:
        """Run one operation; the write methods in other words.

        Args:
            operation: The operation, one of `hudi_engine.table.write.operation`.
            df: The rows, or the keys to delete.
            options: Options of this call.
            update_columns: As in upsert.
            match_condition: As in upsert.
            prepped: Rows carry ``_hoodie_record_key`` and ``_hoodie_partition_path`` of the table.
            base: The table as it was before ``df`` was made from its rows: what others commit after that to the partitions
                of the rows is a conflict. None when the rows come from elsewhere.
        """
        resolved = self._resolved(options)
        return self._write(
            WriteRequest(
                operation,
                self._source(df, resolved),
                resolved,
                None if update_columns is None else tuple(update_columns),
                match_condition,
                prepped,
                base=base,
            )
        )

    def _write(self, request: WriteRequest) -> WriteResult:
        """Run a write of rows by key, which a payload may make one of deletes."""
        if deletes_by_payload(request.options):
            plain = request.update_columns is None and request.match_condition is None and not request.prepped
            if request.operation is not operations.UPSERT or not plain:
                given = request.options[TableOptions.PAYLOAD_CLASS]
                raise ConfigError(
                    f"{TableOptions.PAYLOAD_CLASS} is {given!r}, with which upsert(df) deletes the keys of its rows; leave it out, "
                    "or call delete(df)"
                )
            request = replace(request, operation=operations.DELETE, options=of_deletes(request.options))
        return self._run(request)

    def _of_batch(self, options: RawOptions | None, batch_id: int | None) -> RawOptions | None:
        """Return the options of a write that notes its batch; as they are without one."""
        return options if batch_id is None else with_batch(self._resolved(options), batch_id).raw

    def _run(self, request: WriteRequest) -> WriteResult:
        """Write, from what this object has read of the table if it has, then publish and run the services that are due."""
        if request.options[SyncOptions.ENABLED]:
            self._check_sync(request.options)
        if request.options[TableOptions.AUTO_UPGRADE] and plan_wish() is None:
            self._upgrade_before(request)
        known = replace(request, base=request.base or self._rows_read, held=self._held, columns=self._columns)
        known = replace(known, reads_all=self._rows_read is not None)
        result = write(self.storage, known)
        return self._published(result, request.options)

    def _upgrade_before(self, request: WriteRequest) -> None:
        """Upgrade a table of an earlier version than the write names; raises as `TableServices.upgrade`."""
        wanted, present = (
            int(request.options[TableOptions.TABLE_VERSION]),
            TableConfig.load(self.storage).version,
        )
        if wanted <= present:
            return
        if request.base or self._rows_read:
            logger.warning(
                "%s keeps table version %d: the rows of this write were read of the table before. Upgrade it on its own, or with "
                "a write that reads no rows of it",
                self.path,
                present,
            )
            return
        logger.warning(
            "%s is upgraded from table version %d to %d before the write, as %s is true",
            self.path,
            present,
            wanted,
            TableOptions.AUTO_UPGRADE,
        )
        self._config = None
        self._services(request.options).upgrade(wanted)

    def _published(self, result: WriteResult, options: Options) -> WriteResult:
        """After a commit: publish it, run the services that are due, report it; the commit is kept whatever happens here.

        Of a planned one nothing follows, but the plan tells which services are due.
        """
        if plan_wish() is not None:
            return self._with_services(result, options)
        with timed("hudi.after_commit", {"hudi.table": self.storage.base}) as seconds:
            services = (
                self._services(options).after_commit(made_sidecars(result.metadata), result.committed).told
            )
        result = replace(result, services=services, seconds={**result.seconds, **seconds})
        if result.instant is not None and result.metadata is not None:
            commit = Commit(result.action, result.instant, result.metadata, result.seconds)
            report_commit(options, lambda: self.config, self.storage.base, commit)
        if result.instant is not None and options[SyncOptions.ENABLED]:
            self._sync(self._resolved(options.raw), result.instant)
        return result

    def _with_services(self, result: WriteResult, options: Options) -> WriteResult:
        """Return a planned write with the services that its commit would start."""
        if result.plan is None or result.committed is None:
            return replace(result, plan=NO_ROWS)
        after = TableState(self.storage, result.committed.config, result.committed)
        return replace(result, plan=replace(result.plan, services=due_after_commit(after, options)))


def known_columns(names: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that an upsert replaces; raises ConfigError for one that is not in the data.

    Args:
        names: Columns of the data.
    """
    wanted = column_names(given, "update_columns") or []
    known = {name.lower() for name in names}
    missing = [name for name in wanted if name.lower() not in known]
    if missing:
        raise ConfigError(f"update_columns {missing} are not in the data; it has {list(names)}")
    return tuple(wanted)
