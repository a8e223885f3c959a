"""The parsers of what a table's files say, each with good inputs and the errors it may answer bad ones with."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hudi_engine.errors import HudiError
from hudi_engine.format.config.properties import format_properties, parse_properties
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import base_file_name, parse_base_file
from hudi_engine.format.filegroup.log_file import log_file_name, parse_log_file
from hudi_engine.format.index.filters.footer import read_key_footer
from hudi_engine.format.logformat.blocks import delete
from hudi_engine.format.logformat.format import BlockType
from hudi_engine.format.logformat.reader import decode_data_block, read_blocks, scan_blocks
from hudi_engine.format.logformat.source import FileSource
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.paths import relative_path
from hudi_engine.format.timeline import schemas
from hudi_engine.format.timeline.archive_files import encode_archive_block, read_archive_log
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.clock import query_instant
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import parse_instant
from hudi_engine.table.services.clean.plan import CleanPlan
from hudi_engine.table.snapshot.manifest_file import (
    Derived,
    ManifestEntry,
    Origin,
    Stamp,
    format_line,
    format_manifest,
    parse_manifest,
)
from hudi_engine.table.txn.removal import RollbackPlan
from hudi_engine.table.txn.rollback import RestorePlan

from tests.helpers.handmade import HandmadeTable

INSTANT = "20260101000001000"
ROWS = pa.table({"id": ["a", "b"], "n": [1, 2], "dt": ["1", "1"]})


@dataclass(frozen=True)
class Parser:
    """One of the parsers.

    Args:
        name: Its name on the command line.
        seeds: Makes good inputs.
        parse: Parses one input by every function that such bytes reach.
        words: Pieces that mean something to it.
    """

    name: str
    seeds: Callable[[], list[bytes]]
    parse: Callable[[bytes], None]
    words: tuple[bytes, ...] = ()


def _allowed(*calls: Callable[[], object]) -> None:
    """Make calls that may answer with one of the engine's own errors, and with nothing else."""
    for call in calls:
        try:
            call()
        except HudiError:
            continue


@cache
def _handmade() -> HandmadeTable:
    folder = tempfile.mkdtemp(prefix="fuzz-")
    table = HandmadeTable(Path(folder) / "t", ROWS.schema, ("dt",), merge_on_read=True)
    table.commit({"dt=1": {"g-0": ROWS}})
    return table


def _plans() -> list[bytes]:
    clean = {
        "earliestInstantToRetain": {"timestamp": INSTANT, "action": "commit", "state": "COMPLETED"},
        "policy": "KEEP_LATEST_COMMITS",
        "lastCompletedCommitTimestamp": INSTANT,
        "filePathsToBeDeletedPerPartition": {
            "dt=1": [{"filePath": f"/t/dt=1/g-0_0-1-1_{INSTANT}.parquet", "isBootstrapBaseFile": False}]
        },
    }
    rollback = {
        "instantToRollback": {"commitTime": INSTANT, "action": "commit"},
        "RollbackRequests": [
            {
                "partitionPath": "dt=1",
                "fileId": "g-0",
                "latestBaseInstant": INSTANT,
                "filesToBeDeleted": [f"/t/dt=1/g-0_0-1-1_{INSTANT}.parquet"],
                "logBlocksToBeDeleted": {f"/t/dt=1/.g-0_{INSTANT}.log.1_0-1-1": 10},
            }
        ],
    }
    restore = {
        "instantsToRollback": [{"commitTime": "20260101000002000", "action": "commit"}],
        "savepointToRestoreTimestamp": INSTANT,
    }
    found = [
        encode_avro_file(schemas.CLEANER_PLAN, clean),
        encode_avro_file(schemas.ROLLBACK_PLAN, rollback),
        encode_avro_file(schemas.RESTORE_PLAN, restore),
    ]
    entry = {"commitTime": INSTANT, "actionType": "commit", "actionState": "COMPLETED"}
    return [*found, encode_archive_block([entry, entry])]


def _parse_plan(data: bytes) -> None:
    _allowed(
        lambda: CleanPlan.from_bytes(data, "a plan"),
        lambda: RollbackPlan.from_bytes(data, "a plan"),
        lambda: RestorePlan.from_bytes(data, "a plan"),
        lambda: list(read_archive_log(data, "an archive")),
    )


def _properties() -> list[bytes]:
    stored = dict(_handmade().config.properties)
    return [
        format_properties(stored, "Updated at\n2026"),
        format_properties({"a b": "ü\t=:", "commitTime": INSTANT, "partitionDepth": "1"}, ""),
    ]


def _parse_properties(data: bytes) -> None:
    try:
        found = parse_properties(data)
    except ValueError:
        return
    _allowed(lambda: TableConfig.from_properties(found).check_writable())


def _commits() -> list[bytes]:
    stat = WriteStat(
        file_id="g-0", path=f"dt=1/g-0_0-1-1_{INSTANT}.parquet", partition_path="dt=1", num_writes=2
    )
    avro = _handmade().avro_text()
    one = CommitMetadata({"dt=1": [stat]}, {"schema": avro}, "UPSERT").to_json()
    two = CommitMetadata(
        {}, {}, "INSERT_OVERWRITE", partition_to_replace_file_ids={"dt=1": ["g-0"]}
    ).to_json()
    return [one, two]


def _parse_commit(data: bytes) -> None:
    def use() -> None:
        found = CommitMetadata.from_bytes(data)
        list(found.write_stats())
        assert found.schema_json is None or isinstance(found.schema_json, str)

    _allowed(use)


def _logs() -> list[bytes]:
    table = _handmade()
    blocks = table.data_blocks("dt=1", "g-0", ROWS, INSTANT) + table.delete_blocks("dt=1", ["a"], INSTANT)
    return [b"".join(blocks), b"".join(blocks[:1]) * 3]


def _parse_log(data: bytes) -> None:
    def whole() -> None:
        for block in read_blocks(data):
            if block.kind in (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA):
                _allowed(lambda block=block: decode_data_block(block))
            elif block.kind is BlockType.DELETE:
                _allowed(lambda block=block: list(delete.decode(memoryview(block.content))))

    def in_pieces() -> None:
        places = list(scan_blocks(FileSource(pa.BufferReader(data))))
        assert sum(place.content_length for place in places) <= len(data)

    _allowed(whole, in_pieces)


def _manifests() -> list[bytes]:
    stamp = Stamp("file:/t", "MERGE_ON_READ", INSTANT, (INSTANT,), "digest", ("20260101000002000",))
    origin = Origin(Derived.DELTA, "dt=1", "g-0", "abc")
    entries = [
        ManifestEntry("file:/t/dt=1/a b.parquet", 10, 7),
        ManifestEntry("file:/t/dt=1/f.delta", 11, 8, origin),
    ]
    return [format_manifest(stamp, map(format_line, entries)), format_manifest(stamp, ())]


def _parse_manifest(data: bytes) -> None:
    _allowed(lambda: parse_manifest(9, data).entries)


def _names() -> list[bytes]:
    found = [
        f"{INSTANT}.commit",
        f"{INSTANT}.deltacommit.inflight",
        f"{INSTANT}_20260101000002000.replacecommit",
        f"{INSTANT}.inflight",
        base_file_name("0000-0", "0-1-2", INSTANT),
        log_file_name("0000-0", INSTANT, 1, "0-1-2"),
        "2026-01-01 09:30:00.123",
        "dt=2026-01-01/hh=1%2F2",
    ]
    return [name.encode() for name in found]


def _parse_name(data: bytes) -> None:
    name = data.decode("utf-8", "surrogateescape")
    for layout in (1, 2):
        instant = parse_instant(name, layout)
        assert instant is None or (instant.requested_time.isascii() and instant.requested_time.isdigit())
    base, log = parse_base_file(name, "p"), parse_log_file(name, "p")
    for found in (base, log):
        assert found is None or (found.instant.isascii() and "\n" not in name.rpartition("/")[2][-1:])
    _allowed(lambda: relative_path(name), lambda: query_instant(name))


def _footers() -> list[bytes]:
    sink = io.BytesIO()
    table = ROWS.replace_schema_metadata({"hoodie_min_record_key": "a", "hoodie_max_record_key": "b"})
    pq.write_table(table, sink)
    (stored,) = (each.path for each in _handmade().storage.list("dt=1") if each.name.endswith(".parquet"))
    return [sink.getvalue(), _handmade().storage.read(stored)]


class _OneFile(LocalStorage):
    """A storage in which every file has the same content."""

    def __init__(self, data: bytes) -> None:
        super().__init__("/nowhere")
        self._data = data

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self._data)


def _parse_footer(data: bytes) -> None:
    _allowed(lambda: read_key_footer(_OneFile(data), "a.parquet"))


_JSON = (b"{", b"[", b'"', b"null", b"1e999", b"[[[[[[[[", b'{"a":', b"\\u0000", b"NaN", b'"schema"')
PARSERS = {
    parser.name: parser
    for parser in (
        Parser(
            "plans",
            _plans,
            _parse_plan,
            (b"Obj\x01", b'"null"', b"deflate", b'{"type":"array","items":"null"}'),
        ),
        Parser(
            "properties",
            _properties,
            _parse_properties,
            (b"\\", b"\\\n", b"\\u00", b"=", b"\r", b"a\\\n" * 50),
        ),
        Parser("commits", _commits, _parse_commit, _JSON),
        Parser(
            "logs", _logs, _parse_log, (b"#HUDI#", b"#HUDI#\x00\x00\x00\x00\x00\x00\x00\x20", b"\xff" * 8)
        ),
        Parser("manifests", _manifests, _parse_manifest, (*_JSON, b"v1\n", b"%00", b'"isDir": true')),
        Parser(
            "names", _names, _parse_name, (b"..", b"/", b"\n", "٣".encode(), b".", b"_", b"%2e%2e", b"\x00")
        ),
        Parser("footers", _footers, _parse_footer, (b"PAR1", b"PARE", b"\x15\x00", b"\x19\xfc")),
    )
}


def describe(data: bytes) -> str:
    """Return an input so that a person can read it."""
    return json.dumps(data[:300].decode("latin-1"))
