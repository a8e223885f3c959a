"""The short tier of the fuzz run, and the hostile files that were found to stop a reader."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from hudi_engine.errors import CorruptTableError, SchemaError
from hudi_engine.format.config.properties import parse_properties
from hudi_engine.format.logformat.format import MAGIC
from hudi_engine.format.logformat.reader import scan_blocks
from hudi_engine.format.logformat.source import FileSource
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.timeline.archive_files import encode_archive_block, read_archive_log
from hudi_engine.format.timeline.avro_file import decode_avro_file
from hudi_engine.format.timeline.instant import parse_instant

ROOT = Path(__file__).parents[3]
PLAN = {"type": "record", "name": "Plan", "fields": [{"name": "text", "type": "string"}]}


def test_no_parser_crashes_hangs_or_takes_much_memory_on_damaged_input(tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    command = [sys.executable, "-m", "tests.reliability.fuzz", "--count", "2000", "--progress", str(progress)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    case = int.from_bytes(progress.read_bytes(), "big")
    assert done.returncode == 0, f"at case {case}: {done.stdout[-3000:]} {done.stderr[-3000:]}"
    assert done.stdout.count(" 0 wrong") == 7


def container(schema: object, body: bytes, *, records: int = 1, codec: str = "null") -> bytes:
    """An Avro file of whatever is asked for."""
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(PLAN), [])
    sync = sink.getvalue()[-16:]

    def blob(data: bytes) -> bytes:
        return varint(len(data)) + data

    header = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    entries = b"".join(blob(key.encode()) + blob(value) for key, value in header.items())
    return b"Obj\x01" + varint(len(header)) + entries + b"\x00" + sync + varint(records) + blob(body) + sync


def varint(number: int) -> bytes:
    value, found = number << 1, bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def doubled(times: int) -> object:
    """Records within records, two of each in the next: nothing to read, and no end to it."""
    kind: object = {"type": "record", "name": "R0", "fields": []}
    for number in range(1, times):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": f"R{number - 1}"}]
        kind = {"type": "record", "name": f"R{number}", "fields": fields}
    return kind


EMPTY = {"type": "record", "name": "Empty", "fields": []}
SELF = {"type": "record", "name": "S", "fields": [{"name": "s", "type": ["null", "S"]}]}


def having(kind: object) -> dict[str, object]:
    return {"type": "record", "name": "Top", "fields": [{"name": "f", "type": kind}]}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (container(EMPTY, b"", records=8_000_000), "holds 8000000 records"),
        (container(PLAN, deflated(varint(1 << 29) + bytes(1 << 29)), codec="deflate"), "make more than"),
        (container(PLAN, b"\x02a", codec="snappy"), "null and deflate are read"),
        (container(having({"type": "array", "items": "null"}), varint(1 << 40) + b"\x00"), "take no bytes"),
        (container(having({"type": "array", "items": EMPTY}), varint(1 << 40) + b"\x00"), "take no bytes"),
        (container(SELF, b"\x02" * 200_000 + b"\x00"), "contains itself"),
        (container(doubled(60), b""), "has more than 10000 types"),
        (container(PLAN, varint(1 << 40)), "no readable Avro file"),
        (container(PLAN, b"\x02ab"), "does not fit its schema"),
        (container(json.loads("[" * 400 + "]" * 400), b""), "no readable Avro file"),
    ],
    ids=["records", "bomb", "codec", "nulls", "empties", "itself", "doubled", "length", "rest", "deep"],
)
def test_a_plan_that_would_make_work_or_memory_out_of_little_is_refused_at_once(
    data: bytes, reason: str
) -> None:
    started = time.process_time()
    with pytest.raises(CorruptTableError, match=reason):
        decode_avro_file(data, "1.clean.requested")
    assert time.process_time() - started < 5


def test_a_deflated_plan_of_ordinary_growth_is_read() -> None:
    text = b"/warehouse/orders/dt=2026-01-01/file.parquet," * 20_000
    body = deflated(varint(len(text)) + text)
    assert decode_avro_file(container(PLAN, body, codec="deflate")) == {"text": text.decode()}


@pytest.mark.parametrize("kind", [SELF, doubled(60)], ids=["itself", "doubled"])
def test_a_table_schema_without_end_is_refused_at_once(kind: object) -> None:
    with pytest.raises(SchemaError, match="contains itself|more than 1000000 types"):
        avro_to_arrow(json.dumps(kind))


def test_a_log_full_of_magics_is_scanned_in_time_that_grows_with_its_size() -> None:
    data = MAGIC * 80_000
    started = time.process_time()
    assert [place.content_length for place in scan_blocks(FileSource(pa.BufferReader(data)))] == [len(data)]
    assert time.process_time() - started < 10


def test_properties_of_nothing_but_continued_lines_are_read_in_time_that_grows_with_their_size() -> None:
    started = time.process_time()
    assert parse_properties(b"a\\\n" * 300_000) == {"a" * 300_000: ""}
    assert time.process_time() - started < 10


def test_an_archive_whose_entries_go_backwards_is_refused() -> None:
    block = encode_archive_block([{"commitTime": "1", "actionType": "commit"}])
    entry = block.rindex(struct.pack(">ii", 3, 1)) + 8
    hostile = block[: entry - 4] + struct.pack(">ii", 2**31 - 1, -4) + block[entry + 4 :]
    with pytest.raises(CorruptTableError, match="cannot hold 2147483647 records"):
        list(read_archive_log(hostile, "an archive"))


@pytest.mark.parametrize(
    "name", ["٢٠٢٦٠١٠١٠٠٠٠٠١.commit", "20260101000001000.commit\n", "20260101000001000.commıt"]
)
def test_digits_of_other_scripts_and_line_ends_make_no_instant(name: str) -> None:
    assert parse_instant(name, 1) is None
