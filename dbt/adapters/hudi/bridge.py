"""The only door from the adapter to the engine.

Model plans become engine calls here, results become adapter responses, and the engine's errors become dbt's.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable, rebuild_table
from hudi_engine.catalog import (
    DirectoryCatalog,
    EntryInfo,
    TableName,
    drop_table,
    literal,
    live_manifest_files,
    register_foreign,
    register_table,
    registered_base,
    session_conf,
    table_entries,
)
from hudi_engine.catalog.directory import source_cache
from hudi_engine.catalog.spark_entry import find_entry
from hudi_engine.config.declared.table_options import TABLE
from hudi_engine.config.options import OPTIONS, resolve_options
from hudi_engine.errors import ConfigError, HudiError, TableNotFoundError, UnsupportedTableError
from hudi_engine.services.compaction.strategies import strategy_of
from hudi_engine.storage import open_storage
from hudi_engine.table_state import TableState
from hudi_engine.timeline.clock import parse_instant_time
from hudi_engine.txn.swap import recover_swap
from hudi_engine.write.define.properties import table_properties
from hudi_engine.write.operation import DELETE, UPSERT
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.response import HudiAdapterResponse, format_bytes, write_response

__all__ = [
    "CommitFacts",
    "DirectoryCatalog",
    "EntryInfo",
    "TableFacts",
    "TableName",
    "drop_table",
    "literal",
    "open_storage",
    "recover_swap",
    "register_foreign",
    "register_table",
    "registered_base",
    "session_conf",
    "source_cache",
    "table_entries",
]

logger = AdapterLogger("Hudi")
# of the layouts 1 and 2
_TIMELINE_FOLDERS = (".hoodie", ".hoodie/timeline")


class _ToDbtLog(logging.Handler):
    """Hands warnings of the engine to dbt's log."""

    def emit(self, record: logging.LogRecord) -> None:
        logger.warning("{}", record.getMessage())


_engine_log = logging.getLogger("hudi_engine")
if not any(isinstance(handler, _ToDbtLog) for handler in _engine_log.handlers):
    _engine_log.addHandler(_ToDbtLog(level=logging.WARNING))
    _engine_log.propagate = False


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn errors the engine raises on purpose into DbtRuntimeError."""
    try:
        yield
    except HudiError as error:
        raise DbtRuntimeError(f"{type(error).__name__}: {error}") from error


class ServiceFailedError(DbtRuntimeError):
    """A table service failed that was asked for in a way that makes sense."""


@contextmanager
def service_errors() -> Iterator[None]:
    """Tell a service that failed from one that cannot be done."""
    with engine_errors():
        try:
            yield
        except (ConfigError, TableNotFoundError, UnsupportedTableError):
            raise
        except HudiError as error:
            raise ServiceFailedError(f"{type(error).__name__}: {error}") from error


def option_problems(options: Mapping[str, str]) -> Iterable[str]:
    """What is wrong with ``hoodie.*`` options, one text for each."""
    try:
        strategy_of(resolve_options(options))
    except ConfigError as error:
        return error.problems
    return ()


def definition_problems(plan: ModelPlan) -> Iterable[str]:
    """What is wrong with the table of a plan, one text for each; its columns are looked at when it is built."""
    try:
        table_properties(schema=None, **_definition(plan))
    except ConfigError as error:
        return error.problems
    except HudiError as error:
        return (str(error),)
    return ()


def write_only(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a write to a table that exists: what the table itself fixes is left out."""
    aliases = {alias: option for option in OPTIONS.values() for alias in option.aliases}
    chosen = {}
    for key, value in options.items():
        option = OPTIONS.get(key) or aliases.get(key)
        if option is None or option.group != TABLE:
            chosen[key] = value
    return chosen


@dataclass(frozen=True)
class TableFacts:
    """What a table on storage is.

    Args:
        base: Folder or URI.
        name: Hudi's table name.
        table_type: ``cow`` or ``mor``.
        record_key: Key columns.
        precombine_field: Ordering column.
        partition_by: Partition columns.
        schema: Data columns.
    """

    base: str
    name: str
    table_type: str
    record_key: tuple[str, ...]
    precombine_field: str | None
    partition_by: tuple[str, ...]
    schema: T.StructType


@dataclass(frozen=True)
class CommitFacts:
    """One instant of a timeline.

    Args:
        instant: Instant time.
        action: Hudi's action name.
        state: ``COMPLETED``, ``INFLIGHT`` or ``REQUESTED``.
    """

    instant: str
    action: str
    state: str


def find_name(session: SparkSession, schema: str, name: str) -> EntryInfo | None:
    """One name of a schema as :func:`table_entries` lists it, without listing the others."""
    entry = find_entry(session, TableName(schema, name))
    return None if entry is None else EntryInfo.of(entry)


def has_columns(session: SparkSession, base: str) -> bool:
    """Whether a table has columns; one without a commit has none and is not shown in catalogs."""
    with engine_errors():
        return HudiTable.open(session, base).schema is not None


def facts(session: SparkSession, base: str) -> TableFacts | None:
    """Describe the table at a path, None when there is none."""
    with engine_errors():
        try:
            table = HudiTable.open(session, base)
        except TableNotFoundError:
            return None
        return _facts(table, base)


def _facts(table: HudiTable, base: str) -> TableFacts:
    config = table.config
    ordering = tuple(config.ordering_fields)
    return TableFacts(
        base=base,
        name=config.name,
        table_type="mor" if config.table_type.name == "MERGE_ON_READ" else "cow",
        record_key=tuple(config.record_key_fields),
        precombine_field=ordering[0] if ordering else None,
        partition_by=tuple(item.name for item in config.partition_fields),
        schema=table.schema or T.StructType(),
    )


def _definition(plan: ModelPlan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "record_key": list(plan.table.record_key) or None,
        "precombine_field": plan.table.precombine_field,
        "partition_by": list(plan.table.partition_by) or None,
        "table_type": plan.table.table_type,
        "options": plan.create_options,
    }


def create(session: SparkSession, plan: ModelPlan, schema: T.StructType) -> None:
    """Make an empty table."""
    with engine_errors():
        HudiTable.create(
            session,
            plan.base,
            schema=schema,
            **_definition(plan),
        )


def rebuild(session: SparkSession, plan: ModelPlan, frame: DataFrame) -> HudiAdapterResponse:
    """Create the table, or replace all of it in one instant."""
    with engine_errors():
        result = rebuild_table(
            session,
            plan.base,
            frame,
            **_definition(plan),
        )
    return _response(result)


def write(
    session: SparkSession,
    base: str,
    operation: str,
    frame: DataFrame,
    options: Mapping[str, str],
    *,
    update_columns: Sequence[str] | None = None,
    match_condition: str | None = None,
) -> HudiAdapterResponse:
    """Write rows to a table.

    Args:
        session: The connection's session.
        base: The table's folder.
        operation: ``upsert``, ``insert``, ``bulk_insert``, ``insert_overwrite``, ``insert_overwrite_table`` or ``delete``.
        frame: The rows; for a delete, the keys.
        options: Options of this write.
        update_columns: Upsert: columns a matched row takes from the batch, None for all.
        match_condition: Upsert: matched rows that do not meet it are left alone.
    """
    with engine_errors():
        table = HudiTable.open(session, base)
        if operation == "upsert":
            result = table.upsert(
                frame,
                options=write_only(options),
                update_columns=None if update_columns is None else list(update_columns),
                match_condition=match_condition,
            )
        else:
            calls: Mapping[str, Callable[..., Any]] = {
                "insert": table.insert,
                "bulk_insert": table.bulk_insert,
                "insert_overwrite": table.insert_overwrite,
                "insert_overwrite_table": table.insert_overwrite_table,
                "delete": table.delete,
            }
            result = calls[operation](frame, options=write_only(options))
    return _response(result)


@dataclass(frozen=True)
class RowsToChange:
    """A table's rows, from which rows for the same table are made.

    Args:
        table: The table.
        frame: Its data columns.
        base: Its state before they were read.
    """

    table: HudiTable
    frame: DataFrame
    base: TableState


def rows_to_change(session: SparkSession, base: str) -> RowsToChange:
    """Read a table whose rows go into a write to it, so that what others commit meanwhile is noticed."""
    with engine_errors():
        table = HudiTable.open(session, base)
        frame, state = table.rows_to_change()
    return RowsToChange(table, frame, state)


def write_changed(rows: RowsToChange, operation: str, frame: DataFrame) -> HudiAdapterResponse:
    """Write rows that were made from the table's own.

    Args:
        rows: What was read.
        operation: ``upsert`` or ``delete``.
        frame: The rows; for a delete, the keys.
    """
    with engine_errors():
        return _response(
            rows.table.write(UPSERT if operation == "upsert" else DELETE, frame, None, base=rows.base)
        )


def update_where(
    session: SparkSession, base: str, condition: str, assignments: Mapping[str, str]
) -> HudiAdapterResponse:
    """Run an UPDATE: ``assignments`` maps columns to SQL expressions."""
    with engine_errors():
        return _response(HudiTable.open(session, base).update_where(condition, dict(assignments)))


def delete_where(session: SparkSession, base: str, condition: str) -> HudiAdapterResponse:
    """Run a DELETE."""
    with engine_errors():
        return _response(HudiTable.open(session, base).delete_where(condition))


def alter_schema(session: SparkSession, base: str, schema: T.StructType) -> None:
    """Give the table other data columns, as one schema commit."""
    with engine_errors():
        HudiTable.open(session, base).alter_schema(schema)


def truncate(session: SparkSession, base: str) -> HudiAdapterResponse:
    """Remove all rows in one instant."""
    with engine_errors():
        table = HudiTable.open(session, base)
        return _response(
            table.insert_overwrite_table(session.createDataFrame([], table.schema or T.StructType()))
        )


def compact(session: SparkSession, base: str, op: str, options: Mapping[str, str]) -> AdapterResponse:
    """Schedule or run a compaction.

    Args:
        session: The connection's session.
        base: The table's folder.
        op: ``schedule``, or ``run`` (schedules when nothing is pending).
        options: Options of this call.
    """
    with service_errors():
        table = HudiTable.open(session, base)
        if op == "schedule":
            planned = table.schedule_compaction(options=options)
            return _service("SCHEDULE COMPACTION", planned, f"{planned.file_groups} file groups")
        result = table.compact(options=options)
    details = f"{result.file_groups} file groups, {result.rows} rows, {format_bytes(result.bytes_written)}"
    return _service("COMPACT", result, details)


def compactions(session: SparkSession, base: str) -> list[str]:
    """Compactions of a table, pending and done, oldest first, one line each."""
    with engine_errors():
        found = HudiTable.open(session, base).compactions()
    return [
        f"{item.instant}  compaction  {item.state}  {item.file_groups} file groups, {item.log_files} log files"
        for item in found
    ]


def clean(
    session: SparkSession, base: str, retain_commits: int | None, options: Mapping[str, str]
) -> AdapterResponse:
    """Remove files no retained commit needs."""
    with service_errors():
        result = HudiTable.open(session, base).clean(retain_commits=retain_commits, options=options)
    return _service(
        "CLEAN", result, f"{result.files_deleted} files deleted in {result.partitions} partitions"
    )


def archive(session: SparkSession, base: str, dry_run: bool, options: Mapping[str, str]) -> AdapterResponse:
    """Move the oldest instants to the archive, or say which would go."""
    with service_errors():
        result = HudiTable.open(session, base).archive(dry_run=dry_run, options=options)
    done = f"{len(result.instants)} instants {'would go' if dry_run else 'archived'}"
    names = f": {', '.join(result.instants)}" if dry_run and result.instants else ""
    return HudiAdapterResponse(_message=f"ARCHIVE: {result.reason or done + names}", code="ARCHIVE")


def rollback(session: SparkSession, base: str, instant: str) -> AdapterResponse:
    """Undo the newest commit."""
    with engine_errors():
        HudiTable.open(session, base).rollback(instant)
    return HudiAdapterResponse(_message=f"ROLLBACK of {instant}", code="ROLLBACK", instant=instant)


def timeline_mark(base: str) -> str:
    """Changes with every step of a table's timeline; costs a listing or two.

    Args:
        base: The table's folder.
    """
    with engine_errors():
        storage = open_storage(base)
        listed = [*storage.list(_TIMELINE_FOLDERS[0]), *storage.list(_TIMELINE_FOLDERS[1])]
    return "\n".join(status.path for status in listed if not status.is_dir)


def timeline(session: SparkSession, base: str) -> list[CommitFacts]:
    """Instants of a table, newest last."""
    with engine_errors():
        instants = HudiTable.open(session, base).timeline()
    return [
        CommitFacts(str(item.requested_time), str(item.action), getattr(item.state, "name", str(item.state)))
        for item in instants
    ]


def remove_tree(base: str) -> None:
    """Delete a folder with all it holds."""
    parent, name = _split(base)
    with engine_errors():
        storage = open_storage(parent)
        if storage.exists(name):
            storage.delete_tree(name)


def move_tree(source: str, target: str) -> None:
    """Rename a folder."""
    with engine_errors():
        source_parent, source_name = _split(source)
        target_parent, target_name = _split(target)
        if source_parent == target_parent:
            open_storage(source_parent).rename(source_name, target_name)
            return
        common = _common_parent(source_parent, target_parent)
        storage = open_storage(common)
        storage.make_dirs(target_parent[len(common) + 1 :])
        storage.rename(source[len(common) + 1 :], target[len(common) + 1 :])


def probe_writable(base: str) -> None:
    """Write and remove a small file below a folder, to find out whether tables can be made there."""
    with engine_errors():
        storage = open_storage(base)
        storage.replace(".dbt_hudi_probe", b"ok")
        storage.delete(".dbt_hudi_probe")


def _split(base: str) -> tuple[str, str]:
    parent, _, name = base.rstrip("/").rpartition("/")
    return parent or "/", name


def _common_parent(left: str, right: str) -> str:
    common = []
    for one, other in zip(left.split("/"), right.split("/")):
        if one != other:
            break
        common.append(one)
    if not "/".join(common).strip("/"):
        raise DbtRuntimeError(
            f"a table cannot be moved from {left} to {right}; build it anew at the other place"
        )
    return "/".join(common)


def _response(result: Any) -> HudiAdapterResponse:
    return write_response(
        str(getattr(result.operation, "value", result.operation)),
        instant=result.instant,
        inserted=result.rows_inserted,
        updated=result.rows_updated,
        deleted=result.rows_deleted,
        files=result.files_written,
        size=result.bytes_written,
        partitions=len(result.partitions_written),
    )


def _service(name: str, result: Any, details: str) -> HudiAdapterResponse:
    if result.instant is None:
        return HudiAdapterResponse(_message=f"NOTHING TO DO: {result.reason}", code=name)
    return HudiAdapterResponse(
        _message=f"{name} {result.instant} {details}", code=name, instant=result.instant
    )


def last_commit_time(session: SparkSession, base: str) -> datetime.datetime | None:
    """UTC time of the newest completed instant, None for a table without one."""
    with engine_errors():
        table = HudiTable.open(session, base)
        done = [item.requested_time for item in table.timeline() if item.is_completed]
        return parse_instant_time(done[-1], table.config.timeline_zone) if done else None


def statistics(session: SparkSession, base: str) -> dict[str, Any]:
    """Figures of a table for its documentation; what is not known is left out."""
    table = facts(session, base)
    if table is None:
        return {}
    last = last_commit_time(session, base)
    files = live_files(base)
    return {
        "bytes": sum(files.values()),
        "files": len(files),
        "last_modified": None if last is None else last.strftime("%Y-%m-%d %H:%M:%SZ"),
        "table_type": "merge on read" if table.table_type == "mor" else "copy on write",
        "record_key": ", ".join(table.record_key) or None,
        "partition_by": ", ".join(table.partition_by) or None,
    }


def live_files(base: str) -> dict[str, int]:
    """Path and size in bytes of each file the published version of a table is made of."""
    with engine_errors():
        storage = open_storage(base)
        sizes = {}
        for path in live_manifest_files(storage):
            status = storage.stat(path)
            if status is not None:
                sizes[path] = status.size
        return sizes
