"""Folders of tables that more than one name of the directory catalog shows: they stay until the last name goes."""

from __future__ import annotations

from functools import cached_property

from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.uris import lies_within, plain_location, same_place
from hudi_engine.spark.catalog import DirectoryCatalog, TableName
from hudi_engine.spark.catalog.directory import all_pointers


class SharedFolders:
    """Which names show which folders, as the warehouse's files say it now.

    Args:
        directory: The catalog; None for a metastore, whose names are not looked through.
    """

    def __init__(self, directory: DirectoryCatalog | None) -> None:
        self._directory = directory

    def own_name(self, base: str) -> TableName | None:
        """Return the name that a folder has by its place, in the spelling of the folders; None outside of the warehouse."""
        parent, _, table = plain_location(base).rpartition("/")
        root, _, schema = parent.rpartition("/")
        if self._directory is None or not root or schema.startswith(".") or table.startswith("."):
            return None
        if not same_place(root, self._directory.root):
            return None
        return TableName(schema, table)

    def is_own(self, name: TableName, base: str) -> bool:
        """Tell whether a table's folder is that of its name, whatever its case."""
        own = self.own_name(base)
        return own is not None and _key(own) == _key(name)

    def others(self, name: TableName, base: str) -> list[TableName]:
        """Return the other names that show a table's folder."""
        own = self.own_name(base)
        found = [] if own is None else [own]
        found += [each for each, place in self._pointers.items() if same_place(place, base)]
        return [each for each in found if _key(each) != _key(name)]

    def inside(self, name: TableName, base: str) -> dict[TableName, str]:
        """Return the names, other than one, that lead below a table's folder, and where they lead."""
        return {
            each: place
            for each, place in self._pointers.items()
            if _key(each) != _key(name) and lies_within(place, base)
        }

    def own_folders(self, name: TableName) -> list[str]:
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

    def leading_into(self, schema: str) -> dict[TableName, str]:
        """Return the names of other schemas that show a folder of a schema, and the folders."""
        if self._directory is None:
            return {}
        root = self._directory.root
        folders = [f"{root}/{each}" for each in self._directory.schemas() if each.lower() == schema.lower()]
        return {
            name: place
            for name, place in self._pointers.items()
            if name.database.lower() != schema.lower() and any(lies_within(place, each) for each in folders)
        }

    @cached_property
    def _pointers(self) -> dict[TableName, str]:
        return {} if self._directory is None else all_pointers(self._directory)


def _key(name: TableName) -> tuple[str, str]:
    return name.database.lower(), name.name.lower()
