"""Files of tables that are dropped: they stay while another name shows them."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.storage.uris import lies_within, plain_location, same_place
from hudi_engine.spark.catalog import TableName

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.spark.folders import remove_folder
from dbt.adapters.hudi.spark.shared_folders import SharedFolders


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
        is_shown(name, folder, names, all_of_schema=all_of_schema)
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


def is_shown(name: TableName, base: str, names: SharedFolders, *, all_of_schema: bool) -> bool:
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
