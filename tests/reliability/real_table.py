"""Real tables for the scorecard, and readers that say what such a table holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hudi_engine import HudiTable, read
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.snapshot.manifest import newest_manifest

Content = dict[tuple[str, str], tuple[int, str]]
"""Partition and key to ordering value and text."""
SCHEMA = pa.schema([("key", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("part", pa.string())])
COW, MOR = "cow", "mor"
CALM = {
    "hoodie.write.lock.wait_time_ms": "2000",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
"""Options of a table whose services run when they are called."""


@dataclass(frozen=True)
class Kind:
    """A kind of table.

    Args:
        table_type: ``cow`` or ``mor``.
        options: Options of its definition and of all calls.
        ordering: Whether ``ts`` decides between two rows of a key.
    """

    table_type: str
    options: Mapping[str, str] = field(default_factory=dict)
    ordering: bool = True


KINDS = {
    "cow": Kind(COW),
    "mor": Kind(MOR),
    "cow global": Kind(COW, {"hoodie.index.type": "GLOBAL_SIMPLE"}),
    "mor global": Kind(MOR, {"hoodie.index.type": "GLOBAL_SIMPLE"}),
    "cow bucket": Kind(COW, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}),
    "mor bucket": Kind(MOR, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}),
    "cow bloom": Kind(COW, {"hoodie.index.type": "BLOOM"}),
    "cow unpacked": Kind(COW, {"hoodie.parquet.small.file.limit": "0"}),
    "mor commit time": Kind(MOR, ordering=False),
}


def in_version(kind: Kind, version: int) -> Kind:
    """Return a kind of tables of a table version."""
    return replace(kind, options={**kind.options, "hoodie.write.table.version": str(version)})


def without_metadata(kind: Kind) -> Kind:
    """Return a kind of tables without a metadata table, whatever their version."""
    return replace(kind, options={**kind.options, "hoodie.metadata.enable": "false"})


def create(spark: Any, path: Path | str, kind: Kind, **more: str) -> HudiTable:
    """Make an empty table partitioned by ``part``."""
    return HudiTable.create(
        spark,
        str(path),
        name="t",
        record_key=["key"],
        precombine_field="ts" if kind.ordering else None,
        partition_by=["part"],
        table_type=kind.table_type,
        options={**CALM, **kind.options, **more},
    )


def batch(rows: Iterable[tuple[str, str, int, str]]) -> pa.Table:
    """Return rows of partition, key, ordering value and text."""
    names = ("part", "key", "ts", "v")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=SCHEMA)


def content(path: str, as_of: str | None = None) -> Content:
    """Return what a reader by timeline sees, without Spark; a key that is there twice is an error."""
    return as_content(read(path, as_of=as_of).to_arrow())


def as_content(rows: pa.Table) -> Content:
    """Return rows as a dictionary; a key that a partition holds twice is an error."""
    found: Content = {}
    if "key" not in rows.column_names:
        assert rows.num_rows == 0
        return found
    columns = [rows.column(name).to_pylist() for name in ("part", "key", "ts", "v")]
    for part, key, ts, text in zip(*columns, strict=True):
        assert (part, key) not in found, f"key {key} of partition {part} is there twice"
        found[(part, key)] = (ts, text)
    return found


def published(path: str) -> Content | None:
    """Return what a reader by name sees, as Spark reads the published list of files; None when there is no list.

    Base files whose slice has a delta file lose the rows that its bitmap names, and get the delta's rows.
    """
    manifest = newest_manifest(LocalStorage(path))
    if manifest is None:
        return None
    masks: dict[tuple[str, str], np.ndarray] = {}
    parts: list[pa.Table] = []
    for entry in manifest.entries:
        if entry.is_delta and entry.origin is not None:
            rows = pq.read_table(_local(entry.uri))
            chunk = rows.column("_hoodie_delta_chunk")
            masks[(entry.origin.partition, entry.origin.file_id)] = _masked(rows.filter(chunk.is_valid()))
            parts.append(rows.filter(chunk.is_null()).select(SCHEMA.names))
    for entry in manifest.entries:
        if not entry.is_delta:
            file = Path(_local(entry.uri))
            rows = pq.ParquetFile(file).read(columns=SCHEMA.names)
            gone = masks.get((file.parent.name, file.name.partition("_")[0]))
            if gone is not None:
                rows = rows.filter(pa.array(~np.isin(np.arange(rows.num_rows), gone)))
            parts.append(rows)
    tables = [part.cast(SCHEMA) for part in parts]
    return as_content(pa.concat_tables([SCHEMA.empty_table(), *tables]))


def _local(uri: str) -> str:
    return uri.removeprefix("file:")


def _masked(rows: pa.Table) -> np.ndarray:
    """Return the row numbers that a bitmap names."""
    found = []
    for chunk, words in zip(
        rows.column("_hoodie_delta_chunk").to_pylist(),
        rows.column("_hoodie_delta_words").to_pylist(),
        strict=True,
    ):
        for number, word in enumerate(words):
            found += [chunk * 4096 + number * 64 + bit for bit in range(64) if (word >> bit) & 1]
    return np.array(found, dtype=np.int64)


def by_hudi_rs(path: str) -> Content:
    """Return what hudi-rs sees."""
    from hudi import HudiReadOptions, HudiTableBuilder

    batches = HudiTableBuilder.from_base_uri(path).build().read(HudiReadOptions())
    return as_content(pa.Table.from_batches(batches)) if batches else {}


def commits(table: HudiTable) -> list[Instant]:
    """Return the completed writes of the active timeline."""
    done = {"commit", "deltacommit", "replacecommit"}
    return [each for each in table.timeline() if each.is_completed and each.action in done]


def told(found: Content) -> str:
    """Return content in a line for a message."""
    return json.dumps({"/".join(key): value for key, value in sorted(found.items())})
