"""Replacing all of a table, whatever changes: one replace instant, or a table built beside the old one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from hudi_engine.errors import TableExistsError, WriteConflictError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.sync_options import SyncOptions
from hudi_engine.format.config.options import Options, laid_over, resolve_options
from hudi_engine.format.config.table_config import CREATE_SCHEMA, TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.given import public_location
from hudi_engine.format.timeline.schema_commits import load_schema_history
from hudi_engine.spark.front.table import HudiTable, defined_table
from hudi_engine.spark.hive_sync import check_sync, sync_after_commit
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.spark.write.rows.frames import Frame, as_frame
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import Kind, commits_since, kind_of
from hudi_engine.table.txn.moving import check_no_writers
from hudi_engine.table.txn.recovery import table_lock
from hudi_engine.table.txn.swap import (
    Instead,
    is_switched,
    mark_builder,
    recover_swap,
    remove_side,
    side_folder,
    swap,
    swap_is_conflict,
)
from hudi_engine.table.write import operation as operations
from hudi_engine.table.write.define.create_table import create_table
from hudi_engine.table.write.define.rebuild import exists, same_definition
from hudi_engine.table.write.result import WriteResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_engine.table.write.define.problems import TableArguments

RawOptions = Mapping[str, object]


def rebuild_table(
    spark: SparkSession,
    path: str,
    df: Frame,
    *,
    base: TableState | None = None,
    **definition: Unpack[TableArguments],
) -> WriteResult:
    """Make the table, or replace all of it, so that readers see the old rows or the new ones and nothing between.

    While key, ordering, partitioning, type and merge rule stay, this is one replace instant and the history is kept. When
    one of them changes the table is built beside the old one and takes its place (see txn/swap.py): by two renames, with
    no table at the path for the moment between them, or on an object store by a record that this engine's readers
    follow. The history starts anew.

    Args:
        spark: The session.
        path: Base path.
        df: All rows of the table; its columns become the table's.
        base: The table as it was before ``df`` was made from its rows: what others commit after that is a conflict. None when
            the rows come from elsewhere.
        definition: ``name``, ``record_key``, ``precombine_field``, ``partition_by``, ``table_type`` and ``options`` as in
            HudiTable.create.

    Raises:
        HudiError: As create and upsert do; the old table stands.
    """
    return _rebuild(spark, path, df, definition, begins=False, base=base)


def build_table(
    spark: SparkSession,
    path: str,
    df: Frame,
    **definition: Unpack[TableArguments],
) -> WriteResult:
    """Make a table with its first rows, and replace nobody's.

    A table that nobody has written to, as a first build that died leaves it, is built.

    Args:
        spark: The session.
        path: Base path.
        df: All rows of the table; its columns become the table's.
        definition: ``name``, ``record_key``, ``precombine_field``, ``partition_by``, ``table_type`` and ``options`` as in
            HudiTable.create.

    Raises:
        TableExistsError: Somebody has written to a table there.
        WriteConflictError: Somebody did so meanwhile.
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
    """Make a table in a folder that something else has, which goes once the table is built beside it.

    Args:
        spark: The session.
        path: Base path.
        df: All rows of the table; they may be read from what goes.
        make_room: Removes the folder that is there with all it holds.
        definition: As in rebuild_table.

    Raises:
        StorageError: The table is built and could not be put there, and some of what was there has gone; it stays in the
            folder beside that the message names.
        HudiError: As create and upsert do; what is there stands.
    """
    rows = as_frame(spark, df)
    wanted = defined_table(spark_to_arrow(_without_meta(rows).schema), **definition)
    storage = open_storage(public_location(path))
    instead = Instead(storage, make_room)
    return _build_beside(
        spark, storage, wanted, rows, definition.get("options"), instead.put, instead.is_only
    )


def _rebuild(
    spark: SparkSession,
    path: str,
    df: Frame,
    definition: TableArguments,
    *,
    begins: bool,
    base: TableState | None = None,
) -> WriteResult:
    """Build a table where none is, or replace all of the one that is there: where it is, or beside it."""
    rows = as_frame(spark, df)
    wanted = defined_table(spark_to_arrow(_without_meta(rows).schema), **definition)
    options = definition.get("options")
    path = public_location(path)
    storage = open_storage(path)
    recover_swap(path)
    fresh = not exists(storage)
    if fresh:
        # a first build that dies leaves a table without columns, which catalogs do not show
        create_table(storage, wanted.with_properties(removals=(CREATE_SCHEMA,)))
    if begins:
        base = _empty_state(storage)
    if not fresh:
        looked = TableState.load(storage) if base is None else base
        if not _stays(looked, wanted):
            put = partial(_swap_unless_overtaken, looked, resolve_options(options))
            return _build_beside(spark, storage, wanted, rows, options, put)
    table = HudiTable(spark, path, storage, options)
    operation = operations.BULK_INSERT if fresh else operations.INSERT_OVERWRITE_TABLE
    return table.write_anew(operation, rows, base=base)


def _stays(stored: TableState, wanted: TableConfig) -> bool:
    """Tell whether a table can be written anew where it is: not where its columns have ids, which new ones would not have."""
    is_same = same_definition(stored.config, wanted) and stored.config.version == 6
    return is_same and load_schema_history(stored.storage, stored.timeline) is None


def _empty_state(storage: Storage) -> TableState:
    """Return a table that nobody has written to; what others write to it from now on is a conflict."""
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
    options: RawOptions | None,
    put: Callable[[str, str], None],
    must_stay: Callable[[str, str], bool] = is_switched,
) -> WriteResult:
    """Make a table in a folder beside and put it in the place of what is there; it is shown to nobody before.

    After an error, or when it is interrupted, the folder goes, unless nothing else would be left.
    """
    resolved = resolve_options(options)
    if resolved[SyncOptions.ENABLED]:
        check_sync(spark, storage, wanted, resolved)
    side = side_folder(storage.base)
    try:
        side_storage = open_storage(side)
        create_table(side_storage, wanted)
        mark_builder(side_storage)
        table = HudiTable(
            spark,
            side,
            side_storage,
            laid_over(
                options or {},
                {EngineOptions.PUBLISH_MANIFEST.key: "false", SyncOptions.ENABLED.key: "false"},
            ),
        )
        result = table.write_anew(operations.BULK_INSERT, df)
        put(storage.base, side)
    except BaseException:
        if not must_stay(storage.base, side):
            remove_side(side)
        raise
    table = HudiTable(spark, storage.base, storage, options)
    table.services().publish_or_warn()
    if resolved[SyncOptions.ENABLED]:
        sync_after_commit(spark, storage, resolved, str(result.instant))
    return result


def _swap_unless_overtaken(looked: TableState, options: Options, base: str, side: str) -> None:
    """Put the new table in its place, under the lock of the old one so that nobody begins or commits a write in between."""
    storage = looked.storage
    if not exists(storage):
        _put_where_none_is(storage, options, base, side)
        return
    with table_lock(storage, options):
        with swap_is_conflict(storage):
            now = TableState.load(storage).timeline
        for other, metadata in commits_since(looked.timeline, now):
            if kind_of(metadata) not in (Kind.COMPACTION, Kind.CLUSTERING):
                raise WriteConflictError(
                    f"the table at {storage.base} cannot be built anew: {other.action} {other.requested_time} of another writer "
                    "came meanwhile. The table is as the other writer left it; run this write again"
                )
        if not storage.renames_folders:
            # where folders are renamed a file that is under way goes along, or finds no place
            check_no_writers(storage, options, "built anew")
        swap(base, side)


def _put_where_none_is(storage: Storage, options: Options, base: str, side: str) -> None:
    """Put the new table where the old one has been removed meanwhile.

    Raises:
        WriteConflictError: Another table is there by now; on a store without folders none is while it is being put there.
    """
    if storage.renames_folders:
        swap(base, side)
        return
    with table_lock(storage, options):
        recover_swap(base)
        if exists(storage):
            raise WriteConflictError(
                f"the table at {base} cannot be built anew: another writer has put one there meanwhile. The table is as the other "
                "writer left it; run this write again"
            )
        swap(base, side)


def _without_meta(df: DataFrame) -> DataFrame:
    return df.select(
        *[
            f"`{name.replace('`', '``')}`"
            for name in df.columns
            if not name.startswith("_hoodie_") or name == "_hoodie_is_deleted"
        ]
    )
