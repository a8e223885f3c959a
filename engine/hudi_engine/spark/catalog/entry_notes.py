"""What a catalog entry says beyond the table itself: comments and properties.

They are kept in the table, so that a catalog that forgets (Spark's in-memory one) is filled again with them
and every catalog that knows the table tells the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.catalog.entry import OWN_PREFIX
from hudi_engine.table.snapshot.manifest_file import CATALOG_FOLDER

_RESERVED = frozenset(
    {"provider", "location", "owner", "external", "is_managed_location", "comment", "collation"}
)

NOTES_PATH = f"{CATALOG_FOLDER}/entry.json"


class NotesGiven(TypedDict, total=False):
    """What a caller says of a table; what is None or absent keeps what was said before."""

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
        """Return what a file says; ValueError, KeyError or TypeError for what :meth:`save` never writes."""
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
    refused = sorted(name for name in names if _is_reserved(name))
    if not refused:
        return []
    return [
        f"the table properties {', '.join(refused)} cannot be set: Spark reserves {', '.join(sorted(_RESERVED))}, and names "
        f"that start with {OWN_PREFIX!r} are the engine's. Leave them out"
    ]


def _is_reserved(name: str) -> bool:
    lowered = name.lower()
    return lowered in _RESERVED or lowered.startswith(OWN_PREFIX)
