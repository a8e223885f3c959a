"""Replacing all of a table, whatever changes: one replace instant, or a table built next to the old one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from hudi_engine.errors import ConfigError, TableExistsError, WriteConflictError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.sync_options import SyncOptions
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.options import Options, laid_over, resolve_options
from hudi_engine.format.config.own_keys import REPLACED_TABLE
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import CREATE_SCHEMA, TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.given import public_location
from hudi_engine.format.storage.planned import plan_wish
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.schema_commits import load_schema_history
from hudi_engine.spark.front.table import HudiTable
from hudi_engine.spark.hive_sync import check_sync, sync_after_commit
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.spark.write.rows.frames import Frame, as_frame
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import Kind, commits_since, kind_of
from hudi_engine.table.txn.recovery import table_lock
from hudi_engine.table.txn.swap import (
    Build,
    check_no_writers,
    mark_builder,
    recover_swap,
    swap,
    swap_is_conflict,
)
from hudi_engine.table.write import operation as operations
from hudi_engine.table.write.define.create_table import create_table
from hudi_engine.table.write.define.definition import defined_table
from hudi_engine.table.write.define.table_options import same_definition
from hudi_engine.table.write.metadata_only import rows_of_table
from hudi_engine.table.write.result import WriteResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_engine.table.write.define.definition import TableArguments

logger = logging.getLogger(__name__)


def rebuild_table(
    spark: SparkSession,
    path: str,
    df: Frame,
    *,
    base: TableState | None = None,
    **definition: Unpack[TableArguments],
) -> WriteResult:
    """Make the table, or replace all of it, so that readers see the old rows or the new ones and nothing between.

    As long as key, ordering, partitioning, type and merge rule stay, this is one replace instant and the history is kept. When
    one of them changes the table is built next to the old one and takes its place (see txn/swap.py): by two renames, with
    no table at the path for the moment between them, or on an object store by a record that this engine's readers
    follow. The history then starts again.

    Args:
        df: All rows of the table; its columns become the table's.
        base: The table as it was before ``df`` was made from its rows: what others commit after that is a conflict. None when
            the rows come from elsewhere.
        definition: ``name``, ``record_key``, ``precombine_field``, ``partition_by``, ``table_type`` and ``options`` as in
            HudiTable.create.

    Raises:
        HudiError: As create and upsert do; the old table stays.
    """
    return _rebuild(spark, path, df, definition, begins=False, base=base)


def build_table(
    spark: SparkSession, path: str, df: Frame, **definition: Unpack[TableArguments]
) -> WriteResult:
    """Make a table with its first rows, unless a table with rows is there; arguments as of rebuild_table.

    A table without a write, as a first build that died leaves it, is built.

    Raises:
        TableExistsError: The table has rows.
        WriteConflictError: Another process wrote to it meanwhile.
        HudiError: As create and upsert do.
    """
    return _rebuild(spark, path, df, definition, begins=True)


def build_instead(
    spark: SparkSession,
    path: str,
    df: Frame,
    make_room: Callable[[], None],
    **definition: Unpack[TableArguments],
) -> WriteResult:
    """Make a table in the folder of another format, which is removed once the table is built next to it.

    If the table is built but cannot be moved into the folder, and part of the folder has been removed, the table stays at the
    place that the message of the StorageError names. After any other error the folder stays.

    Args:
        df: All rows of the table; they may be read from that folder.
        make_room: Removes the folder with all it holds.
    """
    rows = as_frame(spark, df)
    wanted = _wanted(rows, definition)
    storage = open_storage(public_location(path))
    if plan_wish() is not None:
        return _plan_build(spark, storage, wanted, rows, definition)
    return _build_beside(spark, storage, wanted, rows, definition, make_room=make_room)


def _rebuild(
    spark: SparkSession,
    path: str,
    df: Frame,
    definition: TableArguments,
    *,
    begins: bool,
    base: TableState | None = None,
) -> WriteResult:
    """Build a table in an empty place, or replace all of the one that is there: in place, or by one built next to it."""
    rows = as_frame(spark, df)
    wanted = _wanted(rows, definition)
    path = public_location(path)
    storage = open_storage(path)
    if plan_wish() is not None:
        return _plan_build(spark, storage, wanted, rows, definition, base=base)
    recover_swap(path)
    fresh = not storage.exists(PROPERTIES_PATH)
    if fresh:
        # a first build that dies leaves a table without columns, which catalogs do not show
        create_table(storage, wanted.with_properties(removals=(CREATE_SCHEMA,)), definition.get("options"))
    if begins:
        base = _empty_state(storage)
    if not fresh:
        looked = TableState.load(storage) if base is None else base
        if not _stays(looked, rows, definition):
            if looked.config.table_version.is_written:  # its version, unless another one is named
                own = {TableOptions.TABLE_VERSION.key: str(looked.config.version)}
                definition = {**definition, "options": laid_over(own, definition.get("options") or {})}
            wanted = _wanted(rows, definition)
            return _build_beside(spark, storage, wanted, rows, definition, looked=looked)
    table = HudiTable(spark, path, storage, definition.get("options"))
    operation = operations.BULK_INSERT if fresh else operations.INSERT_OVERWRITE_TABLE
    return table.write_anew(operation, rows, base=base)


def _plan_build(
    spark: SparkSession,
    storage: Storage,
    wanted: TableConfig,
    rows: DataFrame,
    definition: TableArguments,
    *,
    base: TableState | None = None,
) -> WriteResult:
    """Plan the first rows of a table, or all of those that take the place of others."""
    state, operation, gone = base, operations.INSERT_OVERWRITE_TABLE, 0
    if base is None and storage.exists(PROPERTIES_PATH):
        state = TableState.load(storage)
    if state is None or not _stays(state, rows, definition):
        gone = 0 if state is None else rows_of_table(state)
        empty = wanted.with_properties(removals=(CREATE_SCHEMA,))
        state, operation = TableState(storage, empty, Timeline(storage, empty, ())), operations.BULK_INSERT
    table = HudiTable(spark, storage.base, storage, definition.get("options"))
    result = table.write_anew(operation, rows, base=state)
    return replace(result, rows_deleted=result.rows_deleted + gone)


def _stays(stored: TableState, rows: DataFrame, definition: TableArguments) -> bool:
    """Return whether a table can be replaced in place: not if its columns have ids, which new ones would not have.

    It keeps its version then, whatever the definition names: a write changes none.
    """
    if not stored.config.table_version.is_written:
        return False
    given, version = definition.get("options") or {}, str(stored.config.version)
    try:
        wanted = _wanted(rows, {**definition, "options": {**given, TableOptions.TABLE_VERSION.key: version}})
    except ConfigError:  # such as two ordering fields, which version 8 does not have
        return False
    has_ids = load_schema_history(stored.storage, stored.timeline) is not None
    if has_ids or not same_definition(stored.config, wanted):
        return False
    if str(given.get(TableOptions.TABLE_VERSION.key, version)) != version:
        logger.warning(
            "%s keeps table version %s; upgrade() or downgrade() changes it", stored.storage.base, version
        )
    return True


def _empty_state(storage: Storage) -> TableState:
    """Return a table without a write; what others write to it from now on is a conflict."""
    state = TableState.load(storage)
    if state.timeline.completed_writes:
        raise TableExistsError(
            f"table {state.config.name!r} at {storage.base!r} has rows by now, which a first build would replace; write to it, or "
            "rebuild it"
        )
    return state


def _build_beside(
    spark: SparkSession,
    storage: Storage,
    wanted: TableConfig,
    df: DataFrame,
    definition: TableArguments,
    *,
    looked: TableState | None = None,
    make_room: Callable[[], None] | None = None,
) -> WriteResult:
    """Make a table in a side folder, which is published nowhere, and put it in the place of ``looked``, or of a folder."""
    options = definition.get("options") or {}
    resolved = resolve_options(options)
    if resolved[SyncOptions.ENABLED]:
        check_sync(spark, storage, wanted, resolved)
    writes = () if looked is None else looked.timeline.completed_writes
    gone = 0 if looked is None else rows_of_table(looked)
    unpublished = {EngineOptions.PUBLISH_MANIFEST.key: "false", SyncOptions.ENABLED.key: "false"}
    unpublished[REPLACED_TABLE] = writes[-1].requested_time if writes else ""
    with Build(storage.base, make_room) as build:
        create_table(build.storage, wanted, options)
        mark_builder(build.storage)
        table = HudiTable(spark, build.path, build.storage, laid_over(options, unpublished))
        result = table.write_anew(operations.BULK_INSERT, df)
        if looked is None:
            build.put()
        else:
            _swap_unless_overtaken(looked, resolved, storage.base, build.path)
    table = HudiTable(spark, storage.base, storage, options)
    table.services().publish_or_warn()
    if resolved[SyncOptions.ENABLED]:
        sync_after_commit(spark, storage, resolved, str(result.instant))
    return replace(result, rows_deleted=result.rows_deleted + gone)


def _swap_unless_overtaken(looked: TableState, options: Options, base: str, side: str) -> None:
    """Put the new table in its place, under the lock of the old one so that no write begins or commits in between."""
    storage = looked.storage
    is_there = storage.exists(PROPERTIES_PATH)
    if not is_there and storage.renames_folders:
        swap(base, side)
        return
    with table_lock(storage, options):
        if is_there:
            _check_not_overtaken(looked, options)
        else:
            # removed meanwhile; on a store without folders there is no table while another one is being put there
            recover_swap(base)
            if storage.exists(PROPERTIES_PATH):
                raise WriteConflictError(
                    f"the table at {base} cannot be rebuilt: another writer has created one there meanwhile. The table is as the "
                    "other writer left it; run this write again"
                )
        swap(base, side)


def _check_not_overtaken(looked: TableState, options: Options) -> None:
    """Refuse to replace a table that rows were committed to since it was looked at, or may come to."""
    storage = looked.storage
    with swap_is_conflict(storage):
        now = TableState.load(storage).timeline
    for other, metadata in commits_since(looked.timeline, now):
        if kind_of(metadata) not in (Kind.COMPACTION, Kind.CLUSTERING):
            raise WriteConflictError(
                f"the table at {storage.base} cannot be rebuilt: {other.action} {other.requested_time} of another writer "
                "was committed meanwhile. The table is as the other writer left it; run this write again"
            )
    if not storage.renames_folders:
        # with folders that are renamed a file that is under way is renamed too, or finds no place
        check_no_writers(storage, options, "rebuilt")


def _wanted(rows: DataFrame, definition: TableArguments) -> TableConfig:
    """Return the definition of a table of some rows, without Hudi's meta columns."""
    kept = [
        f"`{name.replace('`', '``')}`"
        for name in rows.columns
        if not name.startswith("_hoodie_") or name == "_hoodie_is_deleted"
    ]
    return defined_table(spark_to_arrow(rows.select(*kept).schema), **definition)
