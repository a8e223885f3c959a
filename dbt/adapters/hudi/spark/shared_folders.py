"""Folders of tables that more than one name of the directory catalog shows: they stay until the last name is dropped."""

from __future__ import annotations

from functools import cached_property

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.uris import lies_within, plain_location, same_place
from hudi_engine.spark.catalog import DirectoryCatalog, TableName
from hudi_engine.spark.catalog.directory import all_pointers

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.spark.folders import remove_folder


class SharedFolders:
    """Which names show which folders, as the warehouse's files have it now.

    Args:
        directory: The catalog; None for a metastore, whose names are not looked through.
        dropped_schema: A schema that is dropped as a whole, whose names keep no folder; None without one.
    """

    def __init__(self, directory: DirectoryCatalog | None, dropped_schema: str | None = None) -> None:
        self._directory = directory
        self._dropped_schema = None if dropped_schema is None else dropped_schema.lower()

    def own_name(self, base: str) -> TableName | None:
        """Return the name that a folder has by its place, as the folders are spelled; None outside of the warehouse."""
        parent, _, table = plain_location(base).rpartition("/")
        root, _, schema = parent.rpartition("/")
        if self._directory is None or not root or schema.startswith(".") or table.startswith("."):
            return None
        return TableName(schema, table) if same_place(root, self._directory.root) else None

    def is_own(self, name: TableName, base: str) -> bool:
        """Tell whether a table's folder is that of its name, whatever its case."""
        own = self.own_name(base)
        return own is not None and _key(own) == _key(name)

    def refuse_shared(self, name: TableName, base: str, done: str) -> None:
        """Refuse what would take a table's folder from another name that leads there or below; ``done``: "dropped"."""
        for other, place in self._shown_in(name, base).items():
            raise DbtRuntimeError(
                f"{name.label} cannot be {done}: its folder {plain_location(base)} is or holds the table {other.label} too, at "
                f"{place}, whose rows would be lost. Build {other.label} in another folder, or drop it, first"
            )

    def keeps_files(self, name: TableName, base: str) -> bool:
        """Return whether a table that is dropped leaves its folder to another name; refuses what would take rows from one."""
        shown = self._shown_in(name, base)
        if self.is_own(name, base) or not all(same_place(place, base) for place in shown.values()):
            self.refuse_shared(name, base, "dropped")
        if shown:
            logger.warning(
                "{} is dropped, and the files at {} stay: they are those of {} too",
                name.label,
                plain_location(base),
                ", ".join(other.label for other in shown),
            )
        return bool(shown)

    def remove_hidden(self, name: TableName, base: str, *, drops: bool = False) -> bool:
        """Remove the tables that lie where a name leads while it shows another folder: they would come back with the name.

        Args:
            drops: The folder ``base`` is removed too, so that it may lie in one of them.

        Returns:
            Whether one was removed.
        """
        removed = False
        for folder in [] if self.is_own(name, base) else self._own_folders(name):
            place = plain_location(folder)
            if not drops and (same_place(base, folder) or lies_within(base, folder)):
                logger.warning(
                    "the files at {} stay, as the table {} is at {}: {} shows them again when it leads there no longer",
                    place,
                    name.label,
                    plain_location(base),
                    name.label,
                )
                continue
            self.keeps_files(name, folder)
            remove_folder(folder)
            removed = True
            logger.info("the files at {}, which {} did not show, are removed", place, name.label)
        return removed

    def refuse_shared_schema(self, schema: str) -> None:
        """Refuse to drop a schema with a folder that a name of another schema shows."""
        if self._directory is None:
            return
        folders = [each for each in self._directory.schemas() if each.lower() == schema.lower()]
        for name, place in self._pointers.items():
            if name.database.lower() != schema.lower() and any(
                lies_within(place, f"{self._directory.root}/{each}") for each in folders
            ):
                raise DbtRuntimeError(
                    f"the schema {schema} cannot be dropped: its folder {place} is the table {name.label} too, whose rows would be "
                    f"lost. DROP TABLE {name.label} first, which leaves the files"
                )

    def _shown_in(self, name: TableName, base: str) -> dict[TableName, str]:
        """Return the other names that lead to a table's folder or below it, and where they lead."""
        own = self.own_name(base)
        found = {} if own is None else {own: base}
        for other, place in self._pointers.items():
            if same_place(place, base) or lies_within(place, base):
                found[other] = place
        return {
            other: place
            for other, place in found.items()
            if _key(other) != _key(name) and other.database.lower() != self._dropped_schema
        }

    def _own_folders(self, name: TableName) -> list[str]:
        """Return the tables that have a name by their places, whatever its case and wherever a pointer leads."""
        if self._directory is None:
            return []
        storage = open_storage(self._directory.root)
        folders = [
            each.path
            for schema in self._directory.schemas()
            if schema.lower() == name.database.lower()
            for each in storage.list(schema)
            if each.is_dir and each.name.lower() == name.name.lower()
        ]
        there = [path for path in folders if storage.exists(f"{path}/{PROPERTIES_PATH}")]
        return [f"{self._directory.root}/{path}" for path in there]

    @cached_property
    def _pointers(self) -> dict[TableName, str]:
        return {} if self._directory is None else all_pointers(self._directory)


def _key(name: TableName) -> tuple[str, str]:
    return name.database.lower(), name.name.lower()
