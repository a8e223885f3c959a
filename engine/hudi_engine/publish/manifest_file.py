"""The snapshot manifest: the list of files that Spark reads as a table.

Spark's batch file sources know a manifest of their own: when a folder holds ``_spark_metadata``, Spark reads
exactly the files that its newest batch file lists and never looks into the folder itself
(``MetadataLogFileIndex`` of Spark's file stream sink). One batch file is published for each state of the
table's timeline, as ``<base>/.hoodie/spark_catalog/<layout>/_spark_metadata/<n>.compact``: line 1 is ``v1``,
each further line one file as JSON. Spark takes the distance of the two newest numbers as its compaction
interval, so numbers are 9, 19, 29, ... without a gap among the newest two, and each file is a full list.

One line is the stamp: it looks like a folder, which Spark leaves out, and says which state the list shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import quote, unquote

from hudi_engine.storage.base import Storage
from hudi_engine.timeline.continuity import Look

CATALOG_FOLDER = ".hoodie/spark_catalog"
FIRST_NUMBER = 9
NUMBER_STEP = 10
FORMAT = 1

_VERSION_LINE = "v1"
_STAMP_KEY = "hudiSnapshot"
_ORIGIN_KEY = "hudiOrigin"
_NAME = re.compile(r"^(\d+)\.compact$")


class Layout(str, Enum):
    """How Spark gets partition values: ``hive`` from folder names, ``flat`` from the files' own columns."""

    HIVE = "hive"
    FLAT = "flat"

    @property
    def folder(self) -> str:
        """Folder of the manifests of this layout; catalog entries point at it."""
        return f"{CATALOG_FOLDER}/{self.value}"


@dataclass(frozen=True)
class Stamp:
    """Which state of the table a manifest shows.

    Args:
        base: URI of the table's folder when the manifest was made, not percent-encoded.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        instant: Newest completed write, ``""`` for a table without one.
        writes: Requested times of the completed writes on the active timeline, sorted.
        schema_digest: Identity of the table's schema, ``""`` for none.
        pending: Requested times of the writes and services that had not completed, sorted; None in a manifest
            of an earlier release of this engine, which did not say.
    """

    base: str
    table_type: str
    instant: str
    writes: tuple[str, ...]
    schema_digest: str = ""
    pending: tuple[str, ...] | None = ()

    @property
    def look(self) -> Look:
        """What was seen of the timeline."""
        return Look(frozenset(self.writes), None if self.pending is None else frozenset(self.pending))

    def is_same_table_as(self, other: Stamp) -> bool:
        """Return whether both show the same table by place, type and schema, at whatever instant."""
        mine, theirs = ((each.base, each.table_type, each.schema_digest) for each in (self, other))
        return mine == theirs


class Derived(str, Enum):
    """What a file is that was made from files of the table: a sidecar, or a base file rewritten for Spark."""

    DELTA = "delta"
    BASE = "base"


@dataclass(frozen=True)
class Origin:
    """What a derived file was made from.

    Args:
        kind: What it is.
        partition: Partition path of the slice.
        file_id: File group of the slice.
        digest: Identity of everything that went in.
    """

    kind: Derived
    partition: str
    file_id: str
    digest: str


@dataclass(frozen=True)
class ManifestEntry:
    """One file of a manifest.

    Args:
        uri: Where the file is, not percent-encoded.
        size: Bytes; Spark finds the Parquet footer by it.
        modified_ms: Modification time that Spark shows; merge-on-read manifests use it as a label.
        origin: Set for derived files, None for files of the table.
    """

    uri: str
    size: int
    modified_ms: int
    origin: Origin | None = None

    @property
    def is_delta(self) -> bool:
        """Whether the file is a delta sidecar."""
        return self.origin is not None and self.origin.kind is Derived.DELTA


@dataclass(frozen=True)
class Manifest:
    """One published list of files.

    Args:
        number: The number in its name.
        stamp: What it shows; None when the file has no stamp that this engine can read.
        entries: The files.
    """

    number: int
    stamp: Stamp | None
    entries: tuple[ManifestEntry, ...]


def format_manifest(stamp: Stamp, entries: Iterable[ManifestEntry]) -> bytes:
    """Format a batch file of Spark's file stream sink."""
    head = _status(stamp.base, 0, 0, is_dir=True)
    head[_STAMP_KEY] = {
        "format": FORMAT,
        "base": stamp.base,
        "tableType": stamp.table_type,
        "instant": stamp.instant,
        "writes": list(stamp.writes),
        "schema": stamp.schema_digest,
        "pending": None if stamp.pending is None else list(stamp.pending),
    }
    lines = [_VERSION_LINE, json.dumps(head)]
    for entry in entries:
        status = _status(entry.uri, entry.size, entry.modified_ms, is_dir=False)
        if entry.origin is not None:
            origin = entry.origin
            status[_ORIGIN_KEY] = {
                "kind": origin.kind.value,
                "partition": origin.partition,
                "fileId": origin.file_id,
                "digest": origin.digest,
            }
        lines.append(json.dumps(status))
    return "\n".join(lines).encode()


def parse_manifest(number: int, body: bytes) -> Manifest:
    """Parse a batch file; one that is damaged or of another writer has no stamp and no entries."""
    try:
        version, *lines = body.decode().split("\n")
        statuses = [json.loads(line) for line in lines if line]
        if version != _VERSION_LINE:
            return Manifest(number, None, ())
        stamp = next((_stamp(each[_STAMP_KEY]) for each in statuses if _STAMP_KEY in each), None)
        if stamp is None:
            return Manifest(number, None, ())
        entries = tuple(_entry(each) for each in statuses if not each["isDir"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Manifest(number, None, ())
    return Manifest(number, stamp, entries)


def encode_uri(uri: str) -> str:
    """Percent-encode the path of a URI such as ``file:/a b`` or ``s3a://bucket/a b``."""
    scheme, colon, rest = uri.partition(":")
    return f"{scheme}{colon}{quote(rest, safe='/=:@,+~')}"


def decode_uri(uri: str) -> str:
    """Undo :func:`encode_uri`."""
    return unquote(uri)


class ManifestFolder:
    """The published manifests of one layout.

    Args:
        storage: Where they are kept; normally the table's own storage.
        layout: Which of the two folders.
    """

    def __init__(self, storage: Storage, layout: Layout) -> None:
        self._storage = storage
        self.layout = layout
        self._folder = f"{layout.folder}/_spark_metadata"

    def numbers(self) -> list[int]:
        """Return the numbers that are there, ascending."""
        matches = (_NAME.match(status.name) for status in self._storage.list(self._folder))
        return sorted(int(match[1]) for match in matches if match is not None)

    def read(self, number: int) -> Manifest | None:
        """Return a manifest, None when it is gone."""
        try:
            return parse_manifest(number, self._storage.read(self._path(number)))
        except FileNotFoundError:
            return None

    def create(self, number: int, body: bytes) -> None:
        """Publish a manifest. Raises FileExistsError when another publisher has taken the number."""
        self._storage.create(self._path(number), body)

    def trim(self, newest: int) -> None:
        """Delete all but ``newest`` and the one before it, oldest first.

        The one before stays so that a reader that has just listed the folder still finds its file.
        """
        for number in self.numbers():
            if number < newest and number != newest - NUMBER_STEP:
                self._storage.delete(self._path(number))

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number}.compact"


def is_healthy(numbers: Sequence[int]) -> bool:
    """Tell whether Spark can read a folder with these manifest numbers, ascending."""
    if not numbers or any((number + 1) % NUMBER_STEP for number in numbers):
        return False
    return len(numbers) == 1 or numbers[-1] - numbers[-2] == NUMBER_STEP


def number_after(numbers: Sequence[int]) -> int:
    """Return the number to publish next."""
    if not numbers:
        return FIRST_NUMBER
    return (numbers[-1] + 1) // NUMBER_STEP * NUMBER_STEP + FIRST_NUMBER


def _status(uri: str, size: int, modified_ms: int, *, is_dir: bool) -> dict[str, Any]:
    return {
        "path": encode_uri(uri),
        "size": size,
        "isDir": is_dir,
        "modificationTime": modified_ms,
        "blockReplication": 1,
        "blockSize": 128 * 1024 * 1024,
        "action": "add",
    }


def _stamp(raw: dict[str, Any]) -> Stamp | None:
    if raw["format"] != FORMAT:
        return None
    pending = raw.get("pending")
    return Stamp(
        raw["base"],
        raw["tableType"],
        raw["instant"],
        tuple(raw["writes"]),
        raw["schema"],
        None if pending is None else tuple(pending),
    )


def _entry(raw: dict[str, Any]) -> ManifestEntry:
    made = raw.get(_ORIGIN_KEY)
    origin = None
    if made is not None:
        origin = Origin(Derived(made["kind"]), made["partition"], made["fileId"], made["digest"])
    return ManifestEntry(decode_uri(raw["path"]), raw["size"], raw["modificationTime"], origin)
