"""File slices of a few visible rows, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.trusted_rules import trust_rules
from hudi_engine.format.filegroup.base_file import BaseFile, base_file_name
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile
from hudi_engine.format.logformat.writer import encode_data_blocks, encode_delete_blocks
from hudi_engine.format.merge.slice_reader import ReadContext
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.format.schema.meta_fields import with_meta_columns
from hudi_engine.format.storage import open_storage

FILE_ID = "f-0"
TOKEN = "0-0-0"
DATA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.string())])
DEFAULT = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
LATEST = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
NON_DEFAULTS = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
AWS_DMS = "org.apache.hudi.common.model.AWSDmsAvroPayload"


def instant(number: int) -> str:
    """Instant time of the n-th commit."""
    return f"20260101{number:09d}"


@dataclass(frozen=True)
class Committed:
    """Instants that count; picklable."""

    failed: frozenset[str] = frozenset()

    def __call__(self, time: str) -> bool:
        return time not in self.failed


def trusting(rule: str, monkeypatch: pytest.MonkeyPatch) -> TableConfig:
    """Settings of a table with a rule of a test module here, ``module:name``, which is allowed."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    trust_rules(rule)
    return config("com.acme.MyPayload", **{"hoodie.engine.merge.rule": rule})


def config(payload: str = DEFAULT, **properties: str) -> TableConfig:
    """Settings of a merge-on-read table of this engine with key ``id`` and ordering field ``ts``; ``__`` stands
    for a dot in names."""
    return TableConfig(
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": "6",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.precombine.field": "ts",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.compaction.payload.class": payload,
            **{name.replace("__", "."): value for name, value in properties.items()},
        }
    )


def row(key: str, ts: int | None = 0, a: int | None = None, b: str | None = None) -> dict[str, Any]:
    """One row of ``DATA``."""
    return {"id": key, "ts": ts, "a": a, "b": b}


def with_meta(
    rows: Sequence[dict[str, Any]], number: int, schema: pa.Schema = DATA, partition: str = ""
) -> pa.Table:
    """Rows of commit ``number`` with their meta columns."""
    data = pa.Table.from_pylist(list(rows), schema=schema)
    keys = data.column("id") if "id" in schema.names else pa.nulls(len(rows), pa.string())
    meta = {
        "_hoodie_commit_time": [instant(number)] * len(rows),
        "_hoodie_commit_seqno": [f"{instant(number)}_0_{place}" for place in range(len(rows))],
        "_hoodie_record_key": keys,
        "_hoodie_partition_path": [partition] * len(rows),
        "_hoodie_file_name": [FILE_ID] * len(rows),
    }
    return pa.table(
        {**meta, **{name: data.column(name) for name in schema.names}}, schema=with_meta_columns(schema)
    )


@dataclass
class SliceBuilder:
    """One file slice below a folder."""

    folder: Path
    schema: pa.Schema = DATA
    partition: str = ""
    base: BaseFile | None = None
    logs: list[LogFile] = field(default_factory=list)

    def add_base(
        self, rows: Sequence[dict[str, Any]], number: int = 1, schema: pa.Schema | None = None
    ) -> SliceBuilder:
        """Write the base file of commit ``number``."""
        table = with_meta(rows, number, schema or self.schema, self.partition)
        (self.folder / self.partition).mkdir(parents=True, exist_ok=True)
        name = base_file_name(FILE_ID, TOKEN, instant(number))
        pq.write_table(table, self.folder / self.partition / name)
        self.base = BaseFile(self.partition, FILE_ID, TOKEN, instant(number))
        return self

    def add_log(self, *blocks: bytes) -> SliceBuilder:
        """Write the next log file."""
        log = LogFile(
            self.partition, FILE_ID, instant(1), len(self.logs) + 1, TOKEN, size=sum(map(len, blocks))
        )
        (self.folder / self.partition).mkdir(parents=True, exist_ok=True)
        (self.folder / log.path).write_bytes(b"".join(blocks))
        self.logs.append(log)
        return self

    def build(self) -> FileSlice:
        """The slice."""
        return FileSlice(self.partition, FILE_ID, instant(1), self.base, tuple(self.logs))

    def context(self, settings: TableConfig, **options: Any) -> ReadContext:
        """A read of it that sees every instant unless ``options`` say otherwise."""
        options.setdefault("is_committed", Committed())
        options.setdefault("schema", with_meta_columns(self.schema))
        return ReadContext(storage=open_storage(str(self.folder)), config=settings, **options)


def upserts(rows: Sequence[dict[str, Any]], number: int, schema: pa.Schema = DATA, **options: Any) -> bytes:
    """Data block of commit ``number``."""
    avro = arrow_to_avro(with_meta_columns(schema), "t")
    return b"".join(encode_data_blocks(with_meta(rows, number, schema), avro, instant(number), **options))


def deletes(keys: Sequence[str], number: int, ordering: pa.Array | None = None) -> bytes:
    """Delete block of commit ``number``; without ordering values it always wins."""
    blocks = encode_delete_blocks(pa.array(list(keys)), pa.array([""] * len(keys)), ordering, instant(number))
    return b"".join(blocks)


def data_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The data columns of ``DATA``, by key."""
    return sorted(table.select(DATA.names).to_pylist(), key=lambda found: (found["id"], str(found)))
