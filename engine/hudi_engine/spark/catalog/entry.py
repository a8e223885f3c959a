"""What a SparkSession's catalog has under one name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.catalog.sql_text import TableName
from hudi_engine.table.snapshot.manifest_file import CATALOG_FOLDER

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
    """Return whether a property is one that the engine alone may set: role and place of a table."""
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
        """Whether the name is that of a Hudi table itself, not a second name of one."""
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
        """The table's own name, also of its second names."""
        return self.name.name.removesuffix(_FACES.get(self.kind, ""))

    @property
    def schema_json(self) -> str:
        """Columns as Spark's JSON form."""
        return str(self.handle.schema().json())

    @property
    def has_statistics(self) -> bool:
        """Whether a size was stored with the entry."""
        return bool(self.handle.stats().isDefined())


_RESERVED = frozenset(
    {"provider", "location", "owner", "external", "is_managed_location", "comment", "collation"}
)

NOTES_PATH = f"{CATALOG_FOLDER}/entry.json"


class NotesGiven(TypedDict, total=False):
    """Notes of a caller on a table; what is None or absent keeps the notes of before."""

    comment: str | None
    column_comments: Mapping[str, str] | None
    properties: Mapping[str, str] | None


@dataclass(frozen=True)
class EntryNotes:
    """Comments (``""`` for none) and properties of a table; comments of columns by name."""

    comment: str = ""
    column_comments: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, storage: Storage) -> EntryNotes:
        """Read the notes of a table, empty ones without a file; CorruptTableError for a damaged file."""
        try:
            return cls._parsed(json.loads(storage.read(NOTES_PATH)))
        except FileNotFoundError:
            return cls()
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptTableError(
                f"{storage.base}/{NOTES_PATH} cannot be parsed: {error!r}. It only holds comments and "
                "properties of catalog entries; delete it, or set the comments again"
            ) from error

    @classmethod
    def _parsed(cls, raw: Mapping[str, Any]) -> EntryNotes:
        """Return the notes of a file; ValueError, KeyError or TypeError for what :meth:`save` never writes."""
        notes = cls(
            kept_text(raw["comment"]), kept_texts(raw["columnComments"]), kept_texts(raw["properties"])
        )
        problems = property_problems(notes.properties)
        if problems:
            raise ValueError("; ".join(problems))
        return notes

    def with_changes(
        self,
        comment: str | None = None,
        column_comments: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> EntryNotes:
        """Return a copy with the arguments that are not None; ConfigError for properties that are not the user's to set."""
        problems = property_problems(properties or ())
        if problems:
            raise ConfigError("; ".join(problems), tuple(problems))
        return EntryNotes(
            self.comment if comment is None else comment,
            self.column_comments
            if column_comments is None
            else {name: text for name, text in column_comments.items() if text},
            self.properties if properties is None else dict(properties),
        )

    def save(self, storage: Storage) -> None:
        """Write the notes, replacing those before."""
        raw = {
            "comment": self.comment,
            "columnComments": dict(self.column_comments),
            "properties": dict(self.properties),
        }
        storage.replace(NOTES_PATH, json.dumps(raw, indent=2, sort_keys=True).encode())


def kept_text(raw: object) -> str:
    """Return a text that was read from a file; TypeError for something else."""
    if not isinstance(raw, str):
        raise TypeError(f"there is {raw!r} where text belongs")
    return raw


def kept_texts(raw: object) -> dict[str, str]:
    """Return texts by their names that were read from a file; TypeError for something else."""
    if not isinstance(raw, dict):
        raise TypeError(f"there is {raw!r} where texts by their names belong")
    return {name: kept_text(text) for name, text in raw.items()}


def property_problems(names: Iterable[str]) -> list[str]:
    """Say why table properties of some names cannot be stored, one text; empty when they can."""
    refused = sorted(
        name for name in names if name.lower() in _RESERVED or name.lower().startswith(OWN_PREFIX)
    )
    if not refused:
        return []
    return [
        f"the table properties {', '.join(refused)} cannot be set: Spark reserves {', '.join(sorted(_RESERVED))}, and names "
        f"that start with {OWN_PREFIX!r} are the engine's. Leave them out"
    ]
