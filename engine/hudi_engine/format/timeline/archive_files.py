"""The files of the layout 1 archive, ``.commits_.archive.N_W-T-W``: the higher N, the newer the entries.

A file is written whole, so a killed writer leaves either all of its entries or none (Hudi table format,
archived timeline).
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro

from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.logformat.blocks.data_avro import datum_places
from hudi_engine.format.logformat.format import CONTENT_VERSION, BlockType, HeaderKey, LogBlock
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.logformat.writer import encode_block
from hudi_engine.format.schema.avro import decodable
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline import schemas
from hudi_engine.format.timeline.schemas import NAMESPACE, STAT_FIELDS, Schema, optional_fields

_DAMAGE = (ValueError, EOFError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
_JAVA = {"avro.java.string": "String"}

_TEXTS = {"type": "map", "values": "string"}
_TEXT_LISTS = {"type": "map", "values": {"type": "array", "items": "string"}}


def _commit_metadata(name: str, **more: object) -> Schema:
    stat = {"type": "record", "name": "HoodieWriteStat", "fields": optional_fields(STAT_FIELDS)}
    stats = {"type": "map", "values": {"type": "array", "items": stat}}
    fields = optional_fields(
        {"partitionToWriteStats": stats, "compacted": "boolean", "extraMetadata": _TEXTS}
    )
    fields.append({"name": "version", "type": ["int", "null"], "default": 1})
    fields += optional_fields({"operationType": "string", **more})
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}


def _archived_meta_entry() -> Schema:
    """Return the schema of an archive's entry; its fields are in the order in which Hudi writes them."""
    fields = optional_fields(
        {
            "hoodieCommitMetadata": _commit_metadata("HoodieCommitMetadata"),
            "hoodieCleanMetadata": schemas.CLEAN_METADATA,
            "hoodieRollbackMetadata": schemas.ROLLBACK_METADATA,
            "hoodieSavePointMetadata": schemas.SAVEPOINT_METADATA,
            "commitTime": "string",
            "actionType": "string",
        }
    )
    fields.append({"name": "version", "type": ["int", "null"], "default": 1})
    fields += optional_fields(
        {
            "hoodieCompactionPlan": schemas.COMPACTION_PLAN,
            "hoodieCleanerPlan": schemas.CLEANER_PLAN,
            "actionState": "string",
            "hoodieReplaceCommitMetadata": _commit_metadata(
                "HoodieReplaceCommitMetadata", partitionToReplaceFileIds=_TEXT_LISTS
            ),
            "hoodieRequestedReplaceMetadata": schemas.REQUESTED_REPLACE_METADATA,
            "HoodieInflightReplaceMetadata": f"{NAMESPACE}.HoodieCommitMetadata",
            "stateTransitionTime": "string",
        }
    )
    return {"type": "record", "name": "HoodieArchivedMetaEntry", "namespace": NAMESPACE, "fields": fields}


def _for_java(schema: Any, defined: set[str]) -> Any:
    """Copy a schema with Java's string type everywhere, each named type spelled out at its first use only."""
    if isinstance(schema, list):
        return [_for_java(branch, defined) for branch in schema]
    if schema == "string":
        return {"type": "string", **_JAVA}
    if not isinstance(schema, Mapping):
        return schema
    kind = schema["type"]
    if kind == "array":
        return {"type": "array", "items": _for_java(schema["items"], defined)}
    if kind == "map":
        return {"type": "map", "values": _for_java(schema["values"], defined), **_JAVA}
    if kind != "record":
        return _for_java(kind, defined)
    name = schema["name"].rpartition(".")[2]
    if name in defined:
        return f"{NAMESPACE}.{name}"
    defined.add(name)
    fields = [{**field, "type": _for_java(field["type"], defined)} for field in schema["fields"]]
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}


ARCHIVED_META_ENTRY: Schema = _for_java(_archived_meta_entry(), set())
"""Unparsed, since its text goes into the header of every block."""


def read_archive_log(data: bytes, source: str) -> Iterator[dict[str, Any]]:
    """Yield the records of one archive file, oldest first; a block that was cut short while it was appended is skipped."""
    position = 0
    try:
        for block in read_blocks(data):
            position = block.offset
            if block.kind is BlockType.AVRO_DATA:
                yield from _records(block)
    except UnsupportedTableError as error:
        way_out = "Read the table's history with the Hudi release that wrote it"
        raise UnsupportedTableError(f"{source}: {error}. {way_out}") from error
    except (CorruptTableError, *_DAMAGE) as error:
        raise CorruptTableError(
            f"{source}: the block at byte {position} cannot be decoded: {error}"
        ) from error


def _records(block: LogBlock) -> Iterator[dict[str, Any]]:
    schema = decodable(json.loads(block.schema or ""))
    for start, end in zip(*datum_places(block.content), strict=True):
        record = fastavro.schemaless_reader(io.BytesIO(block.content[start:end]), schema, None)
        if not isinstance(record, dict):
            raise ValueError("an entry is no record")
        yield record


def encode_archive(entries: Sequence[Mapping[str, Any]], batch: int = 10) -> bytes:
    """Return the content of an archive file."""
    return b"".join(encode_archive_block(entries[at : at + batch]) for at in range(0, len(entries), batch))


def encode_archive_block(entries: Sequence[Mapping[str, Any]]) -> bytes:
    """Return one block of records of `ARCHIVED_META_ENTRY`; fields that they lack have their default."""
    parsed = fastavro.parse_schema(ARCHIVED_META_ENTRY)
    records = []
    for entry in entries:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, parsed, dict(entry))
        records.append(struct.pack(">i", sink.tell()) + sink.getvalue())
    schema = json.dumps(ARCHIVED_META_ENTRY, separators=(",", ":"))
    content = struct.pack(">ii", CONTENT_VERSION, len(records)) + b"".join(records)
    return encode_block(BlockType.AVRO_DATA, [(HeaderKey.SCHEMA, schema)], content)


_NAME = re.compile(r"^\.commits_\.archive\.(\d+)(?:_[0-9-]+)?$")
_WRITE_TOKEN = "1-0-1"

EntryKey = tuple[str, str, str]
"""(requested time, action, state) of an entry: what it is known by."""


@dataclass(frozen=True, order=True)
class ArchiveFile:
    """One file of the archive."""

    number: int
    path: str
    size: int


def list_archive_files(storage: Storage, folder: str) -> list[ArchiveFile]:
    """Return the files of an archive, oldest first; none when nothing was archived."""
    found = []
    for status in storage.list(folder):
        match = _NAME.match(status.name)
        if match is not None and not status.is_dir:
            found.append(ArchiveFile(int(match[1]), status.path, status.size))
    return sorted(found)


def archive_file_path(folder: str, number: int) -> str:
    """Return the path of the file with this number, as this engine writes it."""
    return f"{folder}/.commits_.archive.{number}_{_WRITE_TOKEN}"


def create_archive_file(storage: Storage, folder: str, number: int, data: bytes) -> str:
    """Write a file with the first free number from ``number`` on; return its path."""
    while True:
        path = archive_file_path(folder, number)
        try:
            storage.create(path, data)
            return path
        except FileExistsError:
            number += 1


def entry_key(entry: Mapping[str, Any]) -> EntryKey:
    """Return what an entry is known by; entries of versions before 0.11 have no state and are completed."""
    return (
        str(entry.get("commitTime")),
        str(entry.get("actionType")),
        str(entry.get("actionState") or "COMPLETED"),
    )


def archived_since(storage: Storage, files: Iterable[ArchiveFile], oldest: str = "") -> set[EntryKey]:
    """Return the entries of the newest files, as far back as one is ``oldest`` or younger.

    A saved commit whose savepoint went is archived after younger ones, so a bounded search has to bear that
    entries are missed: those of a killed archiving are then written twice, and readers take each once.
    """
    found: set[EntryKey] = set()
    for file in reversed(list(files)):
        keys = {entry_key(entry) for entry in read_archive_log(storage.read(file.path), file.path)}
        found |= keys
        if keys and all(time < oldest for time, _, _ in keys):
            break
    return found
