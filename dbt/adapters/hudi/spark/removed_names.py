"""Tables and views that are dropped, with the files that no other name shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.storage.uris import lies_within, plain_location, same_place
from hudi_engine.spark.catalog import CatalogEntry, TableName, drop_table
from pyspark.sql import SparkSession

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.spark.folders import remove_folder
from dbt.adapters.hudi.spark.shared_folders import SharedFolders

if TYPE_CHECKING:
    from dbt.adapters.hudi.spark.warehouse import Warehouse


def drop_name(
    warehouse: Warehouse,
    session: SparkSession,
    name: TableName,
    shared: SharedFolders | None = None,
) -> None:
    """Drop a table or view, with its files when they are a Hudi table's that no other name shows.

    Args:
        name: The name; no error when it is not there.
        shared: The names that show folders, where all of a schema goes: its other names do not keep a folder then.

    Raises:
        DbtRuntimeError: The table's folder has this name, and another name shows it too; or another name's table lies in it.
    """
    entry = warehouse.entry(session, name.database, name.name)
    if entry is not None and entry.base is None:
        _drop_plain(warehouse, session, name, entry)
    elif entry is not None and entry.is_face:
        session.sql(f"drop {'view' if entry.is_view else 'table'} if exists {name.sql}")
    else:
        base = entry.base if entry is not None else warehouse.base_on_disk(name.database, name.name)
        if base is not None:
            is_foreign = entry is not None and entry.foreign
            names = shared or SharedFolders(warehouse.directory)
            is_kept = is_foreign or _is_shown(name, base, names, all_of_schema=shared is not None)
            if not is_foreign:
                remove_hidden(name, base, names, all_of_schema=shared is not None, drops=True)
            drop_table(session, name)
            if not is_kept:
                remove_folder(base)
            warehouse.forget_pointer(name)
    warehouse.changed()


def remove_hidden(
    name: TableName, base: str, names: SharedFolders, *, all_of_schema: bool = False, drops: bool = False
) -> bool:
    """Remove the table that lies where a name says while the name is that of another folder: it would come back with the name.

    Args:
        all_of_schema: Other names of its schema do not keep a folder.
        drops: The folder that the name is for goes too, so that it may lie in the one removed.

    Returns:
        Whether one was removed.

    Raises:
        DbtRuntimeError: Another name shows it, or lies in it.
    """
    removed = False
    for folder in [] if names.is_own(name, base) else names.own_folders(name):
        if not drops and (same_place(base, folder) or lies_within(base, folder)):
            logger.warning(
                "the files at {} stay, as the table {} is at {}: {} shows them again when it leads there no longer",
                plain_location(folder),
                name.label,
                plain_location(base),
                name.label,
            )
            continue
        _is_shown(name, folder, names, all_of_schema=all_of_schema)
        remove_folder(folder)
        removed = True
        logger.info("the files at {}, which {} did not show, are removed", plain_location(folder), name.label)
    return removed


def check_schema_is_its_own(shared: SharedFolders, schema: str) -> None:
    """Refuse to drop a schema with a folder that a name of another schema shows."""
    for name, place in shared.leading_into(schema).items():
        raise DbtRuntimeError(
            f"the schema {schema} cannot be dropped: its folder {place} is the table {name.label} too, whose rows would go. DROP "
            f"TABLE {name.label} first, which leaves the files"
        )


def _drop_plain(warehouse: Warehouse, session: SparkSession, name: TableName, entry: CatalogEntry) -> None:
    kind = "view" if entry.reads_only else "table"
    session.sql(f"drop {kind} if exists {name.sql}")
    if entry.reads_only and warehouse.directory is not None:
        warehouse.directory.remove_view(name.database.lower(), name.name)
    warehouse.forget_pointer(name)


def _is_shown(name: TableName, base: str, names: SharedFolders, *, all_of_schema: bool) -> bool:
    """Tell whether another name shows a table's folder, which then stays for it."""
    others, inside = names.others(name, base), names.inside(name, base)
    if all_of_schema:
        others = [each for each in others if each.database.lower() != name.database.lower()]
        inside = {each: at for each, at in inside.items() if each.database.lower() != name.database.lower()}
    for other, place in inside.items():
        raise DbtRuntimeError(
            f"{name.label} cannot be dropped: in its folder {plain_location(base)} lies the table {other.label}, at {place}, whose "
            f"rows would go. Build {other.label} in another folder, or drop it, first"
        )
    if not others:
        return False
    listed = ", ".join(each.label for each in others)
    if names.is_own(name, base):
        raise DbtRuntimeError(
            f"{name.label} cannot be dropped: its folder {plain_location(base)} is the table {listed} too, whose rows would go. "
            f"DROP TABLE {others[0].label} first, which leaves the files"
        )
    logger.warning(
        "{} is dropped, and the files at {} stay: they are those of {} too",
        name.label,
        plain_location(base),
        listed,
    )
    return True
