"""Tables and views under a new name."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.storage.uris import same_place
from hudi_engine.spark.catalog import CatalogEntry, TableName
from hudi_engine.spark.catalog.entry import kept_name_problems
from pyspark.sql import SparkSession

from dbt.adapters.hudi.spark.folders import move_folder
from dbt.adapters.hudi.spark.shared_folders import SharedFolders
from dbt.adapters.hudi.spark.warehouse import Warehouse


def rename(warehouse: Warehouse, session: SparkSession, old: TableName, new: TableName) -> None:
    """Rename a table or view; a table below the location root moves its folder."""
    if (old.database.lower(), old.name.lower()) == (new.database.lower(), new.name.lower()):
        raise DbtRuntimeError(
            f"{old.label} cannot be renamed to {new.label}: that is the name it has, as Spark tells no two names apart by their "
            "case. Choose another name"
        )
    entry = warehouse.entry(session, old.database, old.name)
    if entry is None:
        raise DbtRuntimeError(f"{old.label} cannot be renamed to {new.label}: it does not exist")
    if entry.foreign:
        raise DbtRuntimeError(
            f"{old.label} cannot be renamed: it is the table of another writer at {entry.base}; its source in the project sets "
            "its name"
        )
    if problems := kept_name_problems(new.name):
        raise DbtRuntimeError(f"{old.label} cannot be renamed: {'; '.join(problems)}")
    warehouse.require_schema(session, new)
    taken = warehouse.entry(session, new.database, new.name)
    if taken is not None:
        raise DbtRuntimeError(f"{old.label} cannot be renamed: {new.label} already exists; drop it first")
    if entry.base is None:
        _rename_plain(warehouse, session, entry, new)
    else:
        _rename_table(warehouse, session, entry, new)
    warehouse.changed()


def _rename_plain(warehouse: Warehouse, session: SparkSession, entry: CatalogEntry, new: TableName) -> None:
    kind = "view" if entry.reads_only else "table"
    session.sql(f"alter {kind} {entry.name.sql} rename to {new.sql}")
    if entry.reads_only:
        warehouse.save_view(session, new.database, new.name)
        if warehouse.directory is not None:
            warehouse.directory.remove_view(entry.name.database.lower(), entry.name.name)


def _rename_table(warehouse: Warehouse, session: SparkSession, entry: CatalogEntry, new: TableName) -> None:
    """Give a table another name; the one it has goes last, so that what fails leaves it as it was."""
    assert entry.base is not None
    base = entry.base
    source = _folder_of_name(warehouse, entry)
    if source is not None:
        SharedFolders(warehouse.directory).refuse_shared(entry.name, source, "renamed")
        base = warehouse.places.default_base(new.database, new.name)
        try:
            move_folder(source, base, warehouse.options)
        except FileExistsError as error:
            raise DbtRuntimeError(
                f"{entry.name.label} cannot be renamed: something that is no table of this session lies at {base}; remove or "
                "move it first"
            ) from error
    elif warehouse.directory is not None:
        SharedFolders(warehouse.directory).remove_hidden(entry.name, base)
        warehouse.directory.save_pointer(new.database.lower(), new.name, base)
    try:
        warehouse.register(session, new.database, new.name, warehouse.table(session, base))
    except BaseException:
        if source is not None:
            move_folder(base, source, warehouse.options)
        warehouse.forget(session, new.database, new.name)
        raise
    warehouse.forget(session, entry.name.database, entry.name.name)


def _folder_of_name(warehouse: Warehouse, entry: CatalogEntry) -> str | None:
    """Return a table's folder where its place gives it this name, whatever the case; None elsewhere."""
    assert entry.base is not None
    places, shared = warehouse.places, SharedFolders(warehouse.directory)
    default = places.default_base(entry.name.database, entry.name.name)
    if same_place(entry.base, default):
        return default
    own = shared.own_name(entry.base) if shared.is_own(entry.name, entry.base) else None
    return None if own is None else f"{places.location_root}/{own.database}/{own.name}"
