"""The snapshot manifest: the list of files that Spark reads as a table.

When a folder holds ``_spark_metadata``, Spark reads exactly the files that its newest batch file lists (``MetadataLogFileIndex``
of Spark's file stream sink). One batch file is published for each state of the timeline, as
``<base>/.hoodie/spark_catalog/<layout>/_spark_metadata/<n>.compact``: line 1 is ``v1``, each further line one file as JSON. Spark
takes the distance of the two newest numbers as its compaction interval, so numbers are 9, 19, 29, ..., each a full list.

The second line is the stamp, the state of the table that the list shows, in the form of a folder's entry, which Spark skips. A
publisher copies the lines of partitions that did not change from the previous manifest, unparsed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import quote, unquote

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.continuity import Look

CATALOG_FOLDER = ".hoodie/spark_catalog"
FIRST_NUMBER = 9
NUMBER_STEP = 10
FORMAT = 1
RULES = 1
"""Number of the rules of `native` by which files are listed as they are; a list by others is rebuilt, so raise it with them."""
_LARGE = 1 << 20

_VERSION_LINE = b"v1"
_STAMP_KEY = "hudiSnapshot"
_ORIGIN_KEY = "hudiOrigin"
_ORIGIN_MARK = b'"hudiOrigin": {'
_NAME = re.compile(r"^(\d+)\.compact$")
_LINE_START, _LINE_END = b'{"path": "', b"}"
_FILE = re.compile(rb'\n\{"path": "([^"]*)", "size": (\d+), "isDir": false, "modificationTime": (\d+)')
_SIZE, _LABEL = re.compile(rb'"size": (\d+)'), re.compile(rb'"modificationTime": (\d+)')
# What leads out of a folder, and what may become that: the engine encodes neither dots nor slashes.
_ODD = (b"%", b"\\", b"/..")
_OUTWARD = re.compile(rb"/\.\.(?:/|$)|%2[ef]|\\", re.IGNORECASE)


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
        pending: Requested times of the pending writes and services, sorted; None in a manifest of an earlier release.
        native: Whether every base file listed is known to have the types of the schema, so that Spark can read it.
        derived_at: URI of the folder of sidecars and rewritten base files, ``""`` for the table's own.
        rules: Version of the rules for readable base files, 0 in a manifest of an earlier release.
    """

    base: str
    table_type: str
    instant: str
    writes: tuple[str, ...]
    schema_digest: str = ""
    pending: tuple[str, ...] | None = ()
    native: bool = False
    derived_at: str = ""
    rules: int = RULES

    @property
    def look(self) -> Look:
        """What was seen of the timeline."""
        return Look(frozenset(self.writes), None if self.pending is None else frozenset(self.pending))

    def is_same_table_as(self, other: Stamp) -> bool:
        """Return whether both show the same table by places, type, schema and rules, at whatever instant."""
        mine, theirs = (
            (each.base, each.derived_at, each.table_type, each.schema_digest, each.rules)
            for each in (self, other)
        )
        return mine == theirs


class Derived(str, Enum):
    """What a file is that was made from files of the table: a sidecar, or a base file rewritten for Spark."""

    DELTA = "delta"
    BASE = "base"


@dataclass(frozen=True)
class Origin:
    """What a derived file was made from."""

    kind: Derived
    partition: str
    file_id: str
    digest: str


@dataclass(frozen=True)
class ManifestEntry:
    """One file of a manifest.

    Args:
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
    """One published list of files, sorted lines as they are stored; its stamp is None when this engine cannot read it."""

    number: int
    stamp: Stamp | None
    lines: tuple[bytes, ...]

    @cached_property
    def entries(self) -> tuple[ManifestEntry, ...]:
        """The files, read; of a table of many files that takes seconds."""
        return tuple(parse_line(line) for line in self.lines)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(int(found[1]) for found in map(_SIZE.search, self.lines) if found is not None)

    def uris(self) -> Iterator[str]:
        """Yield where each file is, not percent-encoded."""
        return (decode_uri(encoded_uri(line).decode()) for line in self.lines)

    def lists(self, uri: str) -> bool:
        """Return whether a file is listed, given where it is, not percent-encoded."""
        wanted = _start_of(uri) + b'"'
        place = bisect_left(self.lines, wanted)
        return place < len(self.lines) and self.lines[place].startswith(wanted)

    def lines_in(self, folder: str) -> range:
        """Return the positions of the lines of files below a folder, given by its URI, not percent-encoded."""
        start = _start_of(folder) + b"/"
        return range(bisect_left(self.lines, start), bisect_left(self.lines, start + b"\xff"))


def format_manifest(stamp: Stamp, lines: Iterable[bytes]) -> bytes:
    """Format a batch file of Spark's file stream sink; ``lines`` as of `format_line`."""
    head = _status(stamp.base, 0, 0, is_dir=True)
    head[_STAMP_KEY] = {
        "format": FORMAT,
        "base": stamp.base,
        "tableType": stamp.table_type,
        "instant": stamp.instant,
        "writes": list(stamp.writes),
        "schema": stamp.schema_digest,
        "pending": None if stamp.pending is None else list(stamp.pending),
        "native": stamp.native,
        "rules": stamp.rules,
        **({"derivedAt": stamp.derived_at} if stamp.derived_at else {}),
    }
    return b"\n".join([_VERSION_LINE, json.dumps(head).encode(), *lines])


def format_list(entries: Iterable[ManifestEntry]) -> bytes:
    """Format a batch file of files that belong to no table, for a reader of this process."""
    return b"\n".join([_VERSION_LINE, *map(format_line, entries)])


def format_ended(layout: Layout) -> bytes:
    """Format what ends the manifests of a layout that a table has left: no list, so Spark fails with this text."""
    return f"nothing: the files of this table are listed in {layout.folder} now, make its name known again".encode()


def format_line(entry: ManifestEntry) -> bytes:
    """Format one file."""
    status = _status(entry.uri, entry.size, entry.modified_ms, is_dir=False)
    if entry.origin is not None:
        origin = entry.origin
        status[_ORIGIN_KEY] = {
            "kind": origin.kind.value,
            "partition": origin.partition,
            "fileId": origin.file_id,
            "digest": origin.digest,
        }
    return json.dumps(status).encode()


def parse_manifest(number: int, body: bytes) -> Manifest:
    """Parse a batch file; one that is damaged, of another writer or of files elsewhere has no stamp and no lines."""
    damaged = Manifest(number, None, ())
    version, *lines = body.split(b"\n")
    if version != _VERSION_LINE or not _are_whole(body, len(lines)):
        return damaged
    try:
        head = json.loads(lines[0])
        stamp = _stamp(head[_STAMP_KEY])
        # In the order in which they are looked up; earlier releases wrote another.
        files = tuple(sorted(lines[1:]))
        if stamp is None or head["isDir"] is not True or not _lie_below(stamp, files, body):
            return damaged
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return damaged
    return Manifest(number, stamp, files)


def parse_line(line: bytes) -> ManifestEntry:
    """Parse one file."""
    try:
        raw = json.loads(line)
        if raw["path"].encode() != encoded_uri(line):
            raise ValueError("it names two files")
        return _entry(raw)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptTableError(
            f"a line of the snapshot manifest in {CATALOG_FOLDER!r} is damaged: {line[:200]!r}; delete that folder, the next "
            "write or publish makes it again"
        ) from error


def files_in(lines: Iterable[bytes]) -> list[tuple[bytes, int, int]]:
    """Return the URI, percent-encoded, the bytes and the modification time of each file, without reading lines whole."""
    return [
        (uri, int(size), int(modified)) for uri, size, modified in _FILE.findall(b"\n".join([b"", *lines]))
    ]


def encoded_uri(line: bytes) -> bytes:
    """Return where the file of a line is, percent-encoded, without reading the rest of the line."""
    return line[len(_LINE_START) : line.index(b'"', len(_LINE_START))]


def _start_of(uri: str) -> bytes:
    return _LINE_START + encode_uri(uri).encode()


def is_derived(line: bytes) -> bool:
    """Return whether the file of a line was made of files of the table."""
    return _ORIGIN_MARK in line


def label_of(line: bytes) -> int:
    """Return the modification time in the line of a file."""
    found = _LABEL.search(line)
    return 0 if found is None else int(found[1])


def _are_whole(body: bytes, lines: int) -> bool:
    """Return whether all lines but the first are whole, the first of them the stamp; of many lines in one look."""
    starts = body.count(b"\n" + _LINE_START)
    ends = body.count(_LINE_END + b"\n") + body.endswith(_LINE_END)
    return 0 < lines == starts == ends == body.count(b'"isDir": false') + 1


def _lie_below(stamp: Stamp, lines: Sequence[bytes], body: bytes) -> bool:
    """Return whether all files lie where those of the table and those derived from them do; ``body`` is looked at as a whole."""
    starts = tuple(_start_of(folder) + b"/" for folder in (stamp.base, stamp.derived_at) if folder)
    # Of sorted lines those between two below a folder lie there too.
    looked = lines if stamp.derived_at else (*lines[:1], *lines[-1:])
    if not all(line.startswith(starts) for line in looked):
        return False
    if not any(each in body for each in _ODD):
        return True
    return not any(_OUTWARD.search(encoded_uri(line)) for line in lines)


def encode_uri(uri: str) -> str:
    """Percent-encode the path of a URI such as ``file:/a b`` or ``s3a://bucket/a b``."""
    scheme, colon, rest = uri.partition(":")
    return f"{scheme}{colon}{quote(rest, safe='/=:@,+~')}"


def decode_uri(uri: str) -> str:
    """Undo :func:`encode_uri`."""
    return unquote(uri)


@lru_cache(maxsize=1)
def _parse_large(number: int, body: bytes) -> Manifest:
    """Parse a manifest that is looked at several times in a write."""
    return parse_manifest(number, body)


class ManifestFolder:
    """The published manifests of one layout."""

    def __init__(self, storage: Storage, layout: Layout) -> None:
        self._storage = storage
        self.layout = layout
        self._folder = f"{layout.folder}/_spark_metadata"

    def numbers(self) -> list[int]:
        """Return the numbers that are there, ascending."""
        matches = (_NAME.match(status.name) for status in self._storage.list(self._folder))
        return sorted(int(match[1]) for match in matches if match is not None)

    def read(self, number: int) -> Manifest | None:
        """Return a manifest, None when it was deleted."""
        try:
            body = self._storage.read(self._path(number))
        except FileNotFoundError:
            return None
        if len(body) < _LARGE:
            return parse_manifest(number, body)
        return _parse_large(number, body)

    def create(self, number: int, body: bytes) -> None:
        """Publish a manifest. Raises FileExistsError when another publisher has taken the number."""
        self._storage.create(self._path(number), body)

    def trim(self, newest: int, numbers: Sequence[int]) -> None:
        """Delete all of ``numbers`` but ``newest`` and the one before it, which a reader of an older listing needs."""
        for number in numbers:
            if number < newest and number != newest - NUMBER_STEP:
                self._storage.remove(self._path(number))

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number}.compact"


def is_healthy(numbers: Sequence[int]) -> bool:
    """Return whether Spark can read a folder with these manifest numbers, ascending."""
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
        raw.get("native") is True,
        raw.get("derivedAt", ""),
        raw.get("rules", 0),
    )


def _entry(raw: dict[str, Any]) -> ManifestEntry:
    made = raw.get(_ORIGIN_KEY)
    origin = None
    if made is not None:
        origin = Origin(Derived(made["kind"]), made["partition"], made["fileId"], made["digest"])
    return ManifestEntry(decode_uri(raw["path"]), raw["size"], raw["modificationTime"], origin)
