"""HFile data blocks, from HFiles written by hand."""

from __future__ import annotations

import gzip
import json
import struct

import pytest
from hudi_engine.errors import CorruptTableError, HudiError, UnsupportedTableError
from hudi_engine.format.logformat.blocks.data_hfile import decode

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}],
    }
)
GZ, NONE, SNAPPY = 1, 2, 3
VERSIONED = b"\x0a\x11KEY_VALUE_VERSION\x12\x04\x00\x00\x00\x01"
INFO = b"PBUF" + bytes([len(VERSIONED) + 2, 0x0A, len(VERSIONED)]) + VERSIONED


def part(magic: bytes, body: bytes, codec: int) -> bytes:
    packed = gzip.compress(body) if codec == GZ else body
    checksums = b"sums"
    sizes = (len(packed) + len(checksums), len(body), -1, 2, 16384, 33 + len(packed))
    return magic + struct.pack(">iiqbii", *sizes) + packed + checksums


def cells(rows: list[tuple[str, int]], versioned: bool) -> bytes:
    found = b""
    for name, number in rows:
        text = name.encode()
        key = struct.pack(">h", len(text)) + text + bytes(10)
        value = bytes([2 * len(text)]) + text + bytes([2 * number])
        found += struct.pack(">ii", len(key), len(value)) + key + value + (b"\x00" if versioned else b"")
    return found


def hfile(*blocks: list[tuple[str, int]], codec: int = GZ, versioned: bool = True) -> bytes:
    data = b"".join(part(b"DATABLK*", cells(rows, versioned), codec) for rows in blocks)
    data += part(b"IDXLEAF2", b"index", codec) + part(b"DATABLK*", cells([("z", 9)], versioned), codec)
    info = part(b"FILEINF2", INFO if versioned else b"PBUF\x00", codec)
    place = bytes([len(data) & 0x7F | 0x80, len(data) >> 7])
    fields = b"\x08" + place + b"Z\x03abc" + b"\x60" + bytes([codec])
    trailer = b'TRABLK"$' + bytes([len(fields)]) + fields
    return data + info + trailer.ljust(4096, b"\x00")


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("codec", [GZ, NONE])
def test_rows_of_all_data_parts_come_in_order(codec: int, versioned: bool) -> None:
    content = hfile([("a", 1), ("b", 2)], [("ü", 3)], codec=codec, versioned=versioned)

    rows = decode(memoryview(content), SCHEMA).to_pylist()

    assert [(row["id"], row["n"]) for row in rows] == [("a", 1), ("b", 2), ("ü", 3), ("z", 9)]


KEYED = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [{"name": "key", "type": ["null", "string"]}, {"name": "n", "type": "long"}],
    }
)


def keyed_hfile(rows: list[tuple[str, str | None, int]], row_length: int | None = None) -> bytes:
    """An HFile of cells: their keys, and the datums of a column ``key`` and a number."""
    found = b""
    for name, value, number in rows:
        text = name.encode()
        key = struct.pack(">h", len(text) if row_length is None else row_length) + text + bytes(10)
        said = b"\x00" if value is None else b"\x02" + bytes([2 * len(value)]) + value.encode()
        datum = said + bytes([2 * number])
        found += struct.pack(">ii", len(key), len(datum)) + key + datum
    data = part(b"DATABLK*", found, NONE)
    fields = b"\x08" + bytes([len(data) & 0x7F | 0x80, len(data) >> 7]) + b"\x60" + bytes([NONE])
    return (
        data
        + part(b"FILEINF2", b"", NONE)
        + (b'TRABLK"$' + bytes([len(fields)]) + fields).ljust(4096, b"\x00")
    )


def test_a_column_named_key_that_the_writer_emptied_has_the_keys_of_the_cells() -> None:
    """Hudi's writer empties a text column of that name in every row, and its reader fills what is empty."""
    content = keyed_hfile([("a", "", 1), ("ü" * 40, "", 2), ("c", "said", 3), ("d", None, 4)])

    rows = decode(memoryview(content), KEYED).to_pylist()

    assert [(row["key"], row["n"]) for row in rows] == [("a", 1), ("ü" * 40, 2), ("said", 3), (None, 4)]


def test_a_cell_key_shorter_than_it_says_is_damage() -> None:
    with pytest.raises(CorruptTableError, match="key of a cell"):
        decode(memoryview(keyed_hfile([("a", "", 1)], row_length=500)), KEYED)


def test_other_compressions_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedTableError, match="SNAPPY; GZ and no compression"):
        decode(memoryview(hfile([("a", 1)], codec=SNAPPY)), SCHEMA)


def test_damage_anywhere_is_one_typed_error_or_harmless() -> None:
    good = hfile([("a", 1), ("b", 2)])
    with pytest.raises(CorruptTableError, match="no trailer"):
        decode(memoryview(good[:-1]), SCHEMA)
    for place in range(len(good) - 4000):
        torn = bytearray(good)
        torn[place] ^= 0xFF
        try:
            decode(memoryview(torn), SCHEMA)
        except HudiError:
            continue
