"""Tables with a long life, made of files alone: thousands of commits and partitions in a few seconds."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.log_file import log_file_name
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat

SCHEMA = '{"type":"record","name":"busy","fields":[{"name":"id","type":"long"}]}'
START = datetime(2025, 6, 1, 6)


def busy_table(
    path: Path,
    *,
    commits: int,
    partitions: Sequence[str],
    name: str = "busy",
    extra: dict[str, str] | None = None,
    logs: bool = False,
) -> Path:
    """Make a table of version 6: a file group a partition, and hourly commits that each write one of them.

    Args:
        path: Its folder.
        commits: Completed writes.
        partitions: Paths.
        name: Its name.
        extra: Extra metadata of each commit.
        logs: Whether it is merge-on-read, and the newest commits wrote logs.
    """
    random.seed(11)
    storage = open_storage(str(path))
    values = {
        "hoodie.table.name": name,
        "hoodie.table.type": "MERGE_ON_READ" if logs else "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "day",
        "hoodie.table.create.schema": SCHEMA,
    }
    TableConfig.from_properties(values).save(storage)
    bodies = []
    for rows in (40, 90, 150, 400, 900):
        file = path.parent / f"{path.name}-{rows}.parquet"
        pq.write_table(pa.table({"id": pa.array([random.random() for _ in range(rows)])}), file)
        bodies.append((rows, file))
    first = f"{START:%Y%m%d%H%M%S}000"
    for number, partition in enumerate(partitions):
        folder = path / partition
        folder.mkdir(parents=True)
        depth = len(partition.split("/"))
        (folder / ".hoodie_partition_metadata").write_text(f"commitTime={first}\npartitionDepth={depth}\n")
        shutil.copyfile(bodies[number % 3 + number % 2][1], folder / _base(number, first))
    for number in range(commits):
        _commit(path, number, partitions, extra, logs and number > commits * 0.8)
    return path


def _commit(
    path: Path, number: int, partitions: Sequence[str], extra: dict[str, str] | None, log: bool
) -> None:
    moment = START + timedelta(hours=number)
    instant = f"{moment:%Y%m%d%H%M%S}000"
    place = number % len(partitions)
    first = f"{START:%Y%m%d%H%M%S}000"
    file = _base(place, first)
    if log:
        file = log_file_name(_file_id(place), first, number + 1, "0-1-1")
        (path / partitions[place] / file).write_bytes(b"#HUDI#" + random.randbytes(random.randint(200, 900)))
    stat = WriteStat(
        file_id=_file_id(place),
        path=f"{partitions[place]}/{file}",
        partition_path=partitions[place],
        prev_commit="null" if number < len(partitions) else first,
        log_version=number + 1 if log else None,
        num_writes=150,
        num_inserts=random.randint(20, 90),
        num_update_writes=random.randint(5, 60),
        num_deletes=random.randint(0, 15),
        total_write_bytes=random.randint(2_000_000, 9_000_000),
        file_size_in_bytes=(path / partitions[place] / file).stat().st_size,
    )
    operation = "BULK_INSERT" if number == 0 else "DELETE" if number % 97 == 96 else "UPSERT"
    metadata = CommitMetadata({partitions[place]: [stat]}, {"schema": SCHEMA, **(extra or {})}, operation)
    action = "deltacommit" if log else "commit"
    done = path / ".hoodie" / f"{instant}.{action}"
    done.write_bytes(metadata.to_json())
    # The modification time stands in for the completion time that this layout does not store.
    ended = moment.replace(tzinfo=timezone.utc).timestamp() + random.uniform(0.4, 9)
    os.utime(done, (ended, ended))
    if number % 50 == 49:
        later = f"{moment + timedelta(minutes=1):%Y%m%d%H%M%S}000"
        undone = path / ".hoodie" / f"{later}.rollback"
        undone.write_bytes(b"")
        os.utime(undone, (ended + 60, ended + 60))


def _file_id(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000-0"


def _base(number: int, instant: str) -> str:
    return f"{_file_id(number)}_0-1-1_{instant}.parquet"
