"""A Parquet file as its row groups' column chunks.

Source: Apache Parquet, file format; ``parquet.thrift`` (FileMetaData, RowGroup, ColumnChunk).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.parquet.chunk import COMPRESSED, DATA_OFFSET, PATH, Chunk
from hudi_engine.format.parquet.thrift import Struct, read_struct

MAGIC = b"PAR1"
SCHEMA, FILE_ROWS, ROW_GROUPS, KEY_VALUES, CREATED_BY = 2, 3, 4, 5, 6
COLUMNS, BYTES, ROWS = 1, 2, 3
META = 3
_ELSEWHERE, _ENCRYPTED = 1, (8, 9)
_NAME, _CHILDREN = 4, 5
_TAIL = 8


@dataclass(frozen=True)
class RowGroup:
    """A row group."""

    rows: int
    size: int
    chunks: dict[str, list[Chunk]]


class ChunkFile:
    """An open Parquet file."""

    def __init__(self, source: pa.NativeFile) -> None:
        footer = _footer(source)
        self.meta = read_struct(footer)
        try:
            elements = self.meta[SCHEMA][1][1]
            self.elements: dict[str, list[Struct]] = dict(_columns(elements))
            self.groups = [_group(each, source) for each in self.meta[ROW_GROUPS][1][1]]
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise CorruptTableError(f"a footer lacks {error}") from error

    @property
    def created_by(self) -> str:
        """Who wrote the file, as given in the footer."""
        text: bytes = self.meta.get(CREATED_BY, (0, b""))[1]
        return text.decode(errors="replace")

    def leaves(self, column: str) -> list[Struct]:
        """Return the schema elements of a column's leaves, in the order of its chunks."""
        return [each for each in self.elements[column] if not _children(each)]


def _footer(source: pa.NativeFile) -> bytes:
    size = source.size()
    tail = source.read_at(_TAIL, size - _TAIL) if size >= _TAIL else b""
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > size - _TAIL:
        raise CorruptTableError("a file ends without a footer of Parquet")
    found: bytes = source.read_at(length, size - _TAIL - length)
    return found


def _columns(elements: list[Struct]) -> Iterator[tuple[str, list[Struct]]]:
    at = 1
    while at < len(elements):
        end = _end(elements, at)
        yield elements[at][_NAME][1].decode(), elements[at:end]
        at = end


def _end(elements: list[Struct], start: int) -> int:
    """Return the place behind an element and all below it."""
    waiting, at = 1, start
    while waiting:
        waiting += _children(elements[at]) - 1
        at += 1
    return at


def _children(element: Struct) -> int:
    return int(element[_CHILDREN][1]) if _CHILDREN in element else 0


def _group(group: Struct, source: pa.NativeFile) -> RowGroup:
    chunks: dict[str, list[Chunk]] = {}
    unknown: set[str] = set()
    for place in group[COLUMNS][1][1]:
        meta = place.get(META, (0, {}))[1]
        if not _is_here(place, meta):
            unknown.add(meta[PATH][1][1][0].decode() if PATH in meta else "")
            continue
        chunk = Chunk.at(meta, source)
        chunks.setdefault(chunk.column, []).append(chunk)
    known = {} if "" in unknown else {name: found for name, found in chunks.items() if name not in unknown}
    return RowGroup(group[ROWS][1], group[BYTES][1], known)


def _is_here(place: dict[int, Any], meta: Struct) -> bool:
    """Return whether a chunk's pages lie in the file itself, and can be read by everybody."""
    hidden = _ELSEWHERE in place or any(number in place for number in _ENCRYPTED)
    return not hidden and DATA_OFFSET in meta and COMPRESSED in meta and PATH in meta
