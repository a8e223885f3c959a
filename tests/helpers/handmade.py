"""Small version 6 tables written by hand, without any of the engine's writers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.log_file import log_file_name
from hudi_engine.format.logformat.writer import encode_data_blocks, encode_delete_blocks
from hudi_engine.format.schema.avro import arrow_to_avro, with_meta_fields
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.storage import Storage, open_storage
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat


class HandmadeTable:
    """A table in a folder; each method is one completed instant, or one half of it.

    Args:
        path: Folder of the table.
        schema: Its data columns; the first one is the record key.
        partition_by: Partition columns.
        merge_on_read: Whether it is a merge-on-read table.
        properties: Further lines of ``hoodie.properties``.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        partition_by: tuple[str, ...] = (),
        *,
        merge_on_read: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self.schema = schema
        self.merge_on_read = merge_on_read
        self._clock = 0
        self._files: dict[str, str] = {}
        path.mkdir(parents=True)
        self.storage: Storage = open_storage(str(path))
        values = {
            "hoodie.table.name": "handmade",
            "hoodie.table.type": "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE",
            "hoodie.table.version": "6",
            "hoodie.timeline.layout.version": "1",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.table.recordkey.fields": schema.names[0],
            "hoodie.table.partition.fields": ",".join(partition_by),
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            "hoodie.table.create.schema": self.avro_text(),
        }
        if not partition_by:
            del values["hoodie.table.partition.fields"]
        TableConfig.from_properties({**values, **(properties or {})}).save(self.storage)

    @property
    def config(self) -> TableConfig:
        """The table's settings, read anew."""
        return TableConfig.load(self.storage)

    def avro_text(self) -> str:
        """The table's schema as a commit carries it."""
        return json.dumps(arrow_to_avro(self.schema, "handmade"))

    def next_instant(self) -> str:
        """The next time, a second after the one before."""
        self._clock += 1
        return f"202601010000{self._clock:02d}000"

    def write_file(self, partition: str, file_id: str, rows: pa.Table, instant: str) -> WriteStat:
        """Write a base file and its partition metadata, uncommitted."""
        folder = self.path / partition
        folder.mkdir(parents=True, exist_ok=True)
        depth = len(partition.split("/")) if partition else 0
        (folder / ".hoodie_partition_metadata").write_text(f"commitTime={instant}\npartitionDepth={depth}\n")
        name = f"{file_id}_0-1-{self._clock}_{instant}.parquet"
        pq.write_table(with_meta(rows.cast(self.schema), partition, name, instant), folder / name)
        return WriteStat(
            file_id=file_id,
            path=f"{partition}/{name}" if partition else name,
            partition_path=partition,
            num_writes=rows.num_rows,
            file_size_in_bytes=(folder / name).stat().st_size,
        )

    def append_log(
        self, partition: str, file_id: str, base_instant: str, blocks: list[bytes], instant: str
    ) -> WriteStat:
        """Write the blocks as a new log file of a slice, uncommitted."""
        folder = self.path / partition
        version = 1 + len(list(folder.glob(f".{file_id}_{base_instant}.log.*")))
        name = log_file_name(file_id, base_instant, version, "0-1-1")
        (folder / name).write_bytes(b"".join(blocks))
        return WriteStat(
            file_id=file_id,
            path=f"{partition}/{name}" if partition else name,
            partition_path=partition,
            log_version=version,
            file_size_in_bytes=(folder / name).stat().st_size,
        )

    def data_blocks(self, partition: str, file_id: str, rows: pa.Table, instant: str) -> list[bytes]:
        """Encode rows as log blocks."""
        full = with_meta(rows.cast(self.schema), partition, file_id, instant)
        avro = with_meta_fields(arrow_to_avro(self.schema, "handmade"))
        return encode_data_blocks(
            full, avro, instant, block_format="avro", max_block_bytes=1 << 20, codec="gzip"
        )

    def delete_blocks(self, partition: str, keys: list[str], instant: str) -> list[bytes]:
        """Encode deletes as a log block."""
        avro = with_meta_fields(arrow_to_avro(self.schema, "handmade"))
        folders = pa.array([partition] * len(keys), pa.string())
        return encode_delete_blocks(pa.array(keys, pa.string()), folders, None, instant, avro)

    def complete(
        self,
        instant: str,
        stats: list[WriteStat],
        replaced: dict[str, list[str]] | None = None,
        operation: str = "UPSERT",
    ) -> None:
        """Complete an instant: the commit point."""
        action = (
            "replacecommit" if replaced is not None else "deltacommit" if self.merge_on_read else "commit"
        )
        by_partition: dict[str, list[WriteStat]] = {}
        for stat in stats:
            by_partition.setdefault(stat.partition_path or "", []).append(stat)
        body = CommitMetadata(
            by_partition, {"schema": self.avro_text()}, operation, partition_to_replace_file_ids=replaced
        ).to_json()
        self.storage.create(f".hoodie/{instant}.{action}", body)

    def commit(
        self,
        files: Mapping[str, Mapping[str, pa.Table]],
        replaced: dict[str, list[str]] | None = None,
        operation: str = "UPSERT",
    ) -> str:
        """Write base files, by partition and file id, and complete the instant."""
        instant = self.next_instant()
        stats = [
            self.write_file(partition, file_id, rows, instant)
            for partition, groups in files.items()
            for file_id, rows in groups.items()
        ]
        self.complete(instant, stats, replaced, operation)
        return instant


def with_meta(rows: pa.Table, partition: str, name: str, instant: str) -> pa.Table:
    """Put the five meta columns in front; the first column is the key."""
    count = rows.num_rows
    keys = [str(value) for value in rows.column(0).to_pylist()]
    meta = [
        [instant] * count,
        [f"{instant}_0_{number}" for number in range(count)],
        keys,
        [partition] * count,
        [name] * count,
    ]
    arrays = [pa.array(values, pa.string()) for values in meta]
    return pa.table([*arrays, *rows.columns], names=[*META_FIELDS, *rows.column_names])


def file_id() -> str:
    """A fresh file id."""
    return f"{uuid.uuid4()}-0"
