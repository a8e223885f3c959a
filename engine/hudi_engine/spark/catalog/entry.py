"""What a SparkSession's catalog has under one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_engine.spark.catalog.sql_text import TableName

BASE_PATH_PROPERTY = "hoodie.base.path"
ROLE_PROPERTY = "hoodie.catalog.role"
FOREIGN_PROPERTY = "hoodie.catalog.foreign"

TABLE, SNAPSHOT, REALTIME, READ_OPTIMIZED, FILES = "table", "snapshot", "realtime", "read_optimized", "files"
VIEW, OTHER = "view", "other"
READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX, FILES_SUFFIX = "_ro", "_rt", "__hudi_files"
_FACES: Mapping[str, str] = {READ_OPTIMIZED: READ_OPTIMIZED_SUFFIX, REALTIME: REALTIME_SUFFIX}
OWN_PREFIX = "hoodie.catalog."


def kept_name_problems(name: str) -> list[str]:
    """Say why nothing of the user's can have a name, which the catalog keeps for the files of a merge-on-read table."""
    if not name.lower().endswith(FILES_SUFFIX):
        return []
    return [
        f"the name is {name!r}; those that end in {FILES_SUFFIX} are kept for the files of merge-on-read tables, take another"
    ]


def is_mark(name: str) -> bool:
    """Return whether a property says what an entry is and where its table lies, which the engine alone may."""
    return name == BASE_PATH_PROPERTY or name.lower().startswith(OWN_PREFIX)


@dataclass(frozen=True)
class CatalogEntry:
    """A table or permanent view of the catalog; the snapshot of a merge-on-read table is a view."""

    name: TableName
    is_view: bool
    properties: Mapping[str, str]
    comment: str | None
    handle: Any

    @property
    def base(self) -> str | None:
        """URI of the Hudi table's folder, None for everything else."""
        return self.properties.get(BASE_PATH_PROPERTY)

    @property
    def managed_folder(self) -> str | None:
        """Folder that goes with the entry when it is dropped; None for what leaves its files, and for views."""
        place = self.handle.storage().locationUri()
        if self.handle.tableType().name() != "MANAGED" or not place.isDefined():
            return None
        uri = place.get()
        return str(uri.getPath() if uri.getScheme() in (None, "file") else uri.toString())

    @property
    def kind(self) -> str:
        """The entry's role for its Hudi table, ``view`` or ``other`` for everything else."""
        kind = VIEW if self.is_view else OTHER
        return kind if self.base is None else self.properties.get(ROLE_PROPERTY, kind)

    @property
    def foreign(self) -> bool:
        """Whether it shows a table of another writer, which is not the catalog's to change."""
        return FOREIGN_PROPERTY in self.properties

    @property
    def is_hudi_table(self) -> bool:
        """Whether the name stands for a Hudi table itself, not for a second face of one."""
        return self.kind in (TABLE, SNAPSHOT)

    @property
    def is_face(self) -> bool:
        """Whether the name is a second, read-only one of a merge-on-read table (``_ro``, ``_rt``)."""
        return self.kind in _FACES

    @property
    def reads_only(self) -> bool:
        """Whether the name is a view of the user's or a second face of a table, and no table."""
        return self.is_face or self.kind == VIEW

    @property
    def is_internal(self) -> bool:
        """Whether listings leave the name out."""
        return self.kind == FILES

    @property
    def main_name(self) -> str:
        """The table's own name; a second face stands for its table."""
        return self.name.name.removesuffix(_FACES.get(self.kind, ""))

    @property
    def schema_json(self) -> str:
        """Columns as Spark's JSON form."""
        return str(self.handle.schema().json())

    @property
    def has_statistics(self) -> bool:
        """Whether a size was stored with the entry."""
        return bool(self.handle.stats().isDefined())
