"""Read an HFile of version 3: all of its cells, some keys, or the keys with a prefix.

Source: Hudi table format, HFile. Data blocks one after the other from the start, then the index of their first keys, the
file info, and a trailer of fixed size that says where these are. HBase's writer (Hudi 0.x and 1.0) and Hudi's own (1.1 and
later) differ in the form of the keys in the index. Checksums are not verified, as in Hudi.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hudi_engine.errors import CorruptTableError, UnsupportedTableError

TRAILER_BYTES = 4096
TRAILER_MAGIC = b'TRABLK"$'
DATA_MAGIC, META_MAGIC = b"DATABLK*", b"METABLKc"
INDEX_MAGIC, INFO_MAGIC = b"IDXROOT2", b"FILEINF2"
INFO_PREFIX = b"PBUF"
# On-disk and uncompressed size without header, previous block, checksum type, bytes a checksum, on-disk size
# without checksums.
HEADER = struct.Struct(">8siiqbii")
LENGTHS = struct.Struct(">ii")
ROW_LENGTH = struct.Struct(">H")
INDEX_PLACE = struct.Struct(">qi")
# What follows the row of each key: no family, the latest timestamp, type Put.
AFTER_KEY = b"\x00\x7f" + b"\xff" * 7 + b"\x04"
GZ, PLAIN = 1, 2
NO_CHECKSUMS = 0
KEY_LENGTH, VALUE_LENGTH = "hfile.AVG_KEY_LEN", "hfile.AVG_VALUE_LEN"
_OTHER_CODECS = {0: "LZO", 3: "SNAPPY", 4: "LZ4", 5: "BZIP2", 6: "ZSTD"}
_SKIPPED_MAGICS = (b"IDXLEAF2", b"IDXINTE2", b"BLMFBLK2")
_INFO_AT, _INDEX_AT, _INDEX_ENTRIES, _INDEX_LEVELS, _CODEC = 1, 2, 5, 8, 12
_MAX_BLOCK_BYTES = 1 << 30
_MOST_MISSED = 16
"""After so many keys that a block does not have, each sought to its end, the others are taken from all its cells."""
_TAIL_BYTES = 64 * 1024
_BEFORE, _NO_BLOCK = 16, b"\xff" * 8
"""Where the header of a block has the place of the block before it, and what is there when nobody says."""

Cell = tuple[bytes, bytes]
"""Key and value."""


@dataclass(frozen=True)
class _Block:
    magic: bytes
    body: bytes
    end: int


@dataclass(frozen=True)
class StoredBlock:
    """Where a data block is stored.

    Args:
        first: Its first key.
        plain: Bytes of its cells before compression.
        has_checksums: Whether there are any, which say its place too.
    """

    position: int
    size: int
    first: bytes
    plain: int
    has_checksums: bool


@dataclass(frozen=True)
class CellPlaces:
    """Where the cells of a data block lie in its uncompressed bytes."""

    body: bytes
    keys: Sequence[tuple[int, int]]
    values: Sequence[tuple[int, int]]

    def cells(self) -> Iterator[Cell]:
        """Yield the cells in the order of their keys."""
        for (start, end), (first, last) in zip(self.keys, self.values, strict=True):
            yield self.body[start:end], self.body[first:last]


@dataclass
class HFile:
    """One HFile.

    Args:
        read: Gives bytes of the file, from an offset, as many as the second argument.
        size: Bytes of the file.
        is_at_hand: Whether all of it is in memory.
    """

    read: Callable[[int, int], bytes]
    size: int
    is_at_hand: bool = False
    _tail_at: int = field(init=False)
    _tail: bytes = field(init=False)

    def __post_init__(self) -> None:
        """Read the end of the file, which holds the trailer and, in most files, the index.

        Raises:
            CorruptTableError: It is not an HFile.
            UnsupportedTableError: It is compressed with another codec than GZ.
        """
        self._tail_at = max(0, self.size - _TAIL_BYTES)
        self._tail = bytes(self.read(self._tail_at, self.size - self._tail_at))
        self._check_codec()

    @classmethod
    def of_bytes(cls, content: bytes | memoryview) -> HFile:
        """Open an HFile that is at hand."""
        return cls(lambda start, size: bytes(content[start : start + size]), len(content), is_at_hand=True)

    @cached_property
    def info(self) -> dict[str, bytes]:
        """Names and values of the file info."""
        body = self._block(self._trailer.get(_INFO_AT, 0)).body
        if not body.startswith(INFO_PREFIX):
            return {}
        size, position = _varint(body, len(INFO_PREFIX))
        found = {}
        for number, entry in _fields(body[position : position + size]):
            if number == 1 and isinstance(entry, bytes):
                pair = dict(_fields(entry))
                found[bytes(pair.get(1, b"")).decode("utf-8", "replace")] = bytes(pair.get(2, b""))
        return found

    @property
    def entries(self) -> int:
        """Number of cells."""
        return self._trailer.get(7, 0)

    def blocks(self) -> Iterator[CellPlaces]:
        """Yield the data blocks from the first to the last."""
        position = 0
        while position + HEADER.size <= self.size:
            magic = self._bytes(position, len(DATA_MAGIC))
            if magic != DATA_MAGIC and magic not in _SKIPPED_MAGICS:
                return
            block = self._block(position)
            if block.magic == DATA_MAGIC:
                yield self._places(block.body)
            position = block.end

    def cells(self) -> Iterator[Cell]:
        """Yield all cells in the order of their keys."""
        for block in self.blocks():
            yield from block.cells()

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the values of those keys that the file has; only the blocks that can hold them are read."""
        found: dict[bytes, bytes] = {}
        for block, wanted in self._by_block(sorted(set(keys))):
            offset, size, _ = self._index[block]
            body = self._block(offset, size).body
            place = missed = 0
            for number, key in enumerate(wanted):
                if missed > _MOST_MISSED:
                    cells = dict(self._places(body).cells())
                    found.update({each: cells[each] for each in wanted[number:] if each in cells})
                    break
                value, place = _value_of(body, key, place)
                if value is not None:
                    found[key] = value
                missed += value is None
        return found

    def cells_of(self, block: int) -> Iterator[Cell]:
        """Yield the cells of a data block, by its number in the order of keys."""
        offset, size, _ = self._index[block]
        yield from self._places(self._block(offset, size).body).cells()

    def stored_blocks(self) -> list[StoredBlock]:
        """Return where the data blocks are stored, in the order of their keys."""
        found = []
        for position, _, first in self._index:
            _, stored, plain, _, checksum, *_ = HEADER.unpack_from(self._bytes(position, HEADER.size))
            found.append(StoredBlock(position, HEADER.size + stored, first, plain, checksum != NO_CHECKSUMS))
        return found

    def stored(self, block: StoredBlock) -> bytes:
        """Return all that is stored of a data block, as another file can have it."""
        data = self._bytes(block.position, block.size)
        # the place of the block before it is another one there, and no reader needs it
        return b"".join((data[:_BEFORE], _NO_BLOCK, data[_BEFORE + len(_NO_BLOCK) :]))

    @property
    def can_be_copied(self) -> bool:
        """Whether its data blocks have the form of those that are written here."""
        return self._codec == GZ and self._versioned

    @property
    def average_lengths(self) -> tuple[int, int]:
        """Average bytes of a key and of a value, as its writer counted them."""
        known = [int.from_bytes(self.info.get(name, b""), "big") for name in (KEY_LENGTH, VALUE_LENGTH)]
        return known[0], known[1]

    def with_prefix(self, prefix: bytes) -> Iterator[Cell]:
        """Yield the cells whose keys begin with some bytes."""
        first_keys = self._first_keys
        start = max(0, bisect_right(first_keys, prefix) - 1)
        for block in range(start, len(first_keys)):
            if first_keys[block] > prefix and not first_keys[block].startswith(prefix):
                return
            yield from (cell for cell in self.cells_of(block) if cell[0].startswith(prefix))

    def _by_block(self, keys: Sequence[bytes]) -> Iterator[tuple[int, list[bytes]]]:
        """Group sorted keys by the block that can hold them; one before the first block's key is in none."""
        together: dict[int, list[bytes]] = {}
        for key in keys:
            together.setdefault(bisect_right(self._first_keys, key) - 1, []).append(key)
        together.pop(-1, None)
        yield from together.items()

    @cached_property
    def _first_keys(self) -> list[bytes]:
        return [key for _, _, key in self._index]

    @cached_property
    def _index(self) -> list[tuple[int, int, bytes]]:
        """Offset, bytes and first key of each data block."""
        if self._trailer.get(_INDEX_LEVELS, 1) != 1:
            raise UnsupportedTableError(
                f"an HFile has an index of {self._trailer[_INDEX_LEVELS]} levels; one level is read. Compact the "
                "metadata table with the Hudi release that wrote it"
            )
        count = self._trailer.get(_INDEX_ENTRIES, 0)
        body = self._block(self._trailer.get(_INDEX_AT, 0)).body
        position, found = 0, []
        for _ in range(count):
            if position + INDEX_PLACE.size >= len(body):
                raise CorruptTableError("the index of an HFile ends early")
            offset, size = INDEX_PLACE.unpack_from(body, position)
            length, position = _hadoop_int(body, position + INDEX_PLACE.size)
            found.append((offset, size, _row_of(body, position, position + length)))
            position += length
        return found

    @cached_property
    def _trailer(self) -> dict[int, int]:
        """Numbers of the trailer, by field of its protocol buffer."""
        tail = self._tail[-TRAILER_BYTES:]
        if len(tail) < TRAILER_BYTES or not tail.startswith(TRAILER_MAGIC):
            raise CorruptTableError(f"an HFile of {self.size} bytes has no trailer")
        size, position = _varint(tail, len(TRAILER_MAGIC))
        return {
            number: value
            for number, value in _fields(tail[position : position + size])
            if isinstance(value, int)
        }

    @property
    def _codec(self) -> int:
        return self._trailer.get(_CODEC, PLAIN)

    def _check_codec(self) -> None:
        if self._codec not in (GZ, PLAIN):
            raise UnsupportedTableError(
                f"an HFile is compressed with {_OTHER_CODECS.get(self._codec, self._codec)}; GZ and no compression can be "
                "read. Compact the table with the writer that made it, then read it again"
            )

    @cached_property
    def _versioned(self) -> bool:
        """Whether each value is followed by the number of a version."""
        return self.info.get("KEY_VALUE_VERSION") == b"\x00\x00\x00\x01"

    def _places(self, body: bytes) -> CellPlaces:
        keys: list[tuple[int, int]] = []
        values: list[tuple[int, int]] = []
        for key, start, end in _cells(body, self._versioned):
            first, last = _row_place(body, key, start)
            keys.append((first, last))
            values.append((start, end))
        return CellPlaces(body, keys, values)

    def _bytes(self, position: int, size: int) -> bytes:
        if position >= self._tail_at:
            start = position - self._tail_at
            return self._tail[start : start + size]
        return bytes(self.read(position, size))

    def _block(self, position: int, size: int | None = None) -> _Block:
        """Cut a block out by its header; every length is checked first, since it may come from anywhere."""
        if not 0 <= position <= self.size - HEADER.size:
            raise CorruptTableError(f"an HFile names byte {position} of {self.size}")
        head = self._bytes(position, max(size or 0, HEADER.size))
        magic, stored, plain, _, _, _, with_header = HEADER.unpack_from(head)
        end = position + HEADER.size + stored
        whole = stored >= 0 and 0 <= plain <= _MAX_BLOCK_BYTES and end <= self.size
        if not whole or not HEADER.size <= with_header <= end - position:
            raise CorruptTableError(f"the part at byte {position} of an HFile has an impossible length")
        data = head[:with_header] if len(head) >= with_header else self._bytes(position, with_header)
        body = data[HEADER.size :]
        if self._codec == GZ:
            try:
                body = zlib.decompressobj(wbits=31).decompress(body, plain + 1)
            except zlib.error as error:
                raise CorruptTableError(
                    f"the part at byte {position} of an HFile cannot be decompressed: {error}"
                ) from error
        if len(body) != plain:
            raise CorruptTableError(f"the part at byte {position} of an HFile is not {plain} bytes long")
        return _Block(magic, body, end)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield numbers and values of the fields of a protocol buffer message."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        value, position = _varint(data, position)
        if tag & 7 == 0:
            yield tag >> 3, value
        elif tag & 7 == 2 and position + value <= len(data):
            yield tag >> 3, data[position : position + value]
            position += value
        else:
            raise CorruptTableError(
                f"a message of an HFile holds a field of wire type {tag & 7}, or ends early"
            )


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    for place in range(position, min(position + 10, len(data))):
        value |= (data[place] & 0x7F) << shift
        shift += 7
        if data[place] < 0x80:
            return value, place + 1
    raise CorruptTableError("an HFile ends inside a number")


def _cells(body: bytes, versioned: bool) -> Iterator[tuple[int, int, int]]:
    """Start of the key, start and end of the value of every cell of a data block."""
    position, total = 0, len(body)
    while position < total:
        if position + LENGTHS.size > total:
            raise CorruptTableError("an HFile ends inside a cell")
        key, value = LENGTHS.unpack_from(body, position)
        start = position + LENGTHS.size + key
        position = start + value
        if key < 0 or value < 0 or position > total - versioned:
            raise CorruptTableError("a cell of an HFile has an impossible length")
        yield start - key, start, position
        if versioned:
            position += _hadoop_size(body[position])


def _value_of(body: bytes, key: bytes, begin: int) -> tuple[bytes | None, int]:
    """Return the value of a key in a data block, found by its bytes and those that follow each key, and where to seek the next.

    Args:
        begin: End of the cell of a smaller key.
    """
    pattern = ROW_LENGTH.pack(len(key)) + key + AFTER_KEY
    place = body.find(pattern, begin)
    while place >= 0:
        start = place - LENGTHS.size
        if start >= 0:
            key_part, value = LENGTHS.unpack_from(body, start)
            first = place + len(pattern)
            if key_part == len(pattern) and 0 <= value <= len(body) - first:
                return body[first : first + value], first + value
        place = body.find(pattern, place + 1)
    return None, begin


def _row_place(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return where the row of a cell's key lies, which is the record key: its length comes first."""
    first = start + ROW_LENGTH.size
    if first > end or first + ROW_LENGTH.unpack_from(data, start)[0] > end:
        raise CorruptTableError("the key of a cell of an HFile has an impossible length")
    return first, first + ROW_LENGTH.unpack_from(data, start)[0]


def _row_of(data: bytes, start: int, end: int) -> bytes:
    first, last = _row_place(data, start, min(end, len(data)))
    return data[first:last]


def _hadoop_size(first: int) -> int:
    """Return bytes of a number in Hadoop's variable length form, from its first byte."""
    if first < 0x80 or first >= 0x90:
        return 1
    return 0x91 - first if first >= 0x88 else 0x89 - first


def _hadoop_int(data: bytes, position: int) -> tuple[int, int]:
    """Return a number of 0 or more in Hadoop's variable length form, and where it ends."""
    size = _hadoop_size(data[position])
    if position + size > len(data):
        raise CorruptTableError("an HFile ends inside a number")
    if size == 1:
        return data[position], position + 1
    return int.from_bytes(data[position + 1 : position + size], "big"), position + size
