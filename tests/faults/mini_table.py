"""A table small enough to be written and read a thousand times in a test.

Timeline, names, markers and log framing are Hudi's; the content of base files and log blocks is JSON
``{key: value}``, so that a reader of a few lines can say what the table holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_engine.format.config.options import Options, resolve_options
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.table_version import TABLE_VERSIONS
from hudi_engine.format.filegroup.base_file import base_file_name, parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import log_file_name, parse_log_file
from hudi_engine.format.filegroup.markers import list_markers, write_marker
from hudi_engine.format.filegroup.partition_metadata import ensure_partition_metadata
from hudi_engine.format.filegroup.view import FileSystemView, list_table_files
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.logformat.writer import encode_block
from hudi_engine.format.storage.base import TEMP_PREFIX, Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.paths import join
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import State, timeline_file_name
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.txn.conflict import KeyScope
from hudi_engine.table.txn.recovery import rollback_write
from hudi_engine.table.txn.restore import restore as restore_table
from hudi_engine.table.txn.rollback import RestoreResult, RollbackResult
from hudi_engine.table.txn.savepoint import Savepoint, create_savepoint
from hudi_engine.table.txn.transaction import WriteTransaction

Rows = Mapping[str, Mapping[str, int]]
"""Partition path to key to value."""
Content = dict[tuple[str, str], int]

SCHEMA = '{"type":"record","name":"mini_record","namespace":"hoodie.mini","fields":[]}'


def create_table(base: str, table_type: str = "COPY_ON_WRITE", version: int = 6) -> LocalStorage:
    """Create an empty table of a version, partitioned by ``part``, and return its storage."""
    properties = {
        "hoodie.table.name": "mini",
        "hoodie.database.name": "",
        "hoodie.table.type": table_type,
        "hoodie.table.version": str(version),
        "hoodie.timeline.layout.version": str(TABLE_VERSIONS[version].timeline_layout),
        "hoodie.table.recordkey.fields": "key",
        "hoodie.table.partition.fields": "part",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.archivelog.folder": "archived",
    }
    storage = LocalStorage(base)
    storage.create(PROPERTIES_PATH, TableConfig.from_properties(properties).to_bytes())
    return storage


def options(**more: object) -> Options:
    """Options with a short wait for the lock; ``more`` has underscores for dots."""
    raw = {"hoodie.write.lock.wait_time_ms": 2000}
    return resolve_options({**raw, **{key.replace("__", "."): value for key, value in more.items()}})


def content(storage: Storage, as_of: str | None = None) -> Content:
    """Return what a reader sees."""
    config = TableConfig.load(storage)
    timeline = Timeline.load(storage, config)
    found: Content = {}
    for piece in FileSystemView.build(storage, config, timeline, as_of=as_of).latest_slices():
        for key, value in slice_rows(storage, timeline, piece, as_of).items():
            assert (piece.partition, key) not in found, f"key {key} of {piece.partition} is there twice"
            found[(piece.partition, key)] = value
    return found


def slice_rows(
    storage: Storage, timeline: Timeline, piece: FileSlice, as_of: str | None = None
) -> dict[str, int]:
    """Return the rows of one slice: the base file, then the blocks of committed instants."""
    committed = timeline.committed(as_of)
    rows: dict[str, int] = json.loads(storage.read(piece.base_file.path)) if piece.base_file else {}
    blocks = [block for log in piece.log_files for block in read_blocks(storage.read(log.path))]
    taken_back = {block.target_instant_time for block in blocks if block.is_rollback}
    for block in blocks:
        if block.kind is BlockType.AVRO_DATA and block.instant_time not in taken_back:
            if committed(block.instant_time):
                rows.update(json.loads(bytes(block.content)))
    return rows


@dataclass
class Work:
    """One write against the snapshot of its transaction: plan, data files, metadata."""

    storage: Storage
    transaction: WriteTransaction
    rows: Rows
    token: str = "0-0-0"
    merge_on_read: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        view = FileSystemView.build(self.storage, self.transaction.config, self.transaction.timeline)
        self.slices = view.latest_slices()
        self.metadata = CommitMetadata(
            extra_metadata={"schema": SCHEMA},
            operation_type=self.transaction.operation,
            partition_to_replace_file_ids=self._replaced() if self.overwrite else None,
        )

    def profile(self) -> CommitMetadata:
        """Return the workload profile: one stat a file group to be updated, one for new rows."""
        stats: dict[str, list[WriteStat]] = {}
        for partition, rows in self.rows.items():
            stats[partition] = [WriteStat(file_id="", num_inserts=len(rows))]
            for piece in self.slices:
                if piece.partition == partition and not self.overwrite:
                    stats[partition].append(WriteStat(file_id=piece.file_id, prev_commit=piece.base_instant))
        return CommitMetadata(stats, operation_type=self.transaction.operation)

    def write_files(self) -> None:
        """Write all data files, each announced by a marker."""
        for partition, rows in self.rows.items():
            ensure_partition_metadata(self.storage, partition, self.transaction.instant)
            rest = dict(rows)
            for piece in [] if self.overwrite else self.slices:
                if piece.partition == partition:
                    self._change(piece, rest)
            if rest:
                self._create(partition, rest)

    def _change(self, piece: FileSlice, rest: dict[str, int]) -> None:
        """Update the keys that the slice holds and take them out of ``rest``."""
        old = slice_rows(self.storage, self.transaction.timeline, piece)
        updates = {key: rest.pop(key) for key in list(rest) if key in old}
        if not updates:
            return
        if self.merge_on_read:
            self._append(piece, updates)
            return
        name = base_file_name(piece.file_id, self.token, self.transaction.instant)
        path = self._put(piece.partition, name, "MERGE", json.dumps({**old, **updates}).encode())
        self._stat(piece.partition, piece.file_id, path, piece.base_instant, updates=len(updates))

    def _append(self, piece: FileSlice, updates: Mapping[str, int]) -> None:
        table_version = self.transaction.config.table_version
        instant = self.transaction.instant if table_version.names_logs_by_write else piece.base_instant
        version = max((log.version for log in piece.log_files if log.instant == instant), default=0) + 1
        header = [(HeaderKey.INSTANT_TIME, self.transaction.instant)]
        block = encode_block(BlockType.AVRO_DATA, header, json.dumps(updates).encode())
        while True:
            name = log_file_name(piece.file_id, instant, version, self.token)
            try:
                path = self._put(piece.partition, name, table_version.log_marker, block)
                break
            except FileExistsError:
                version += 1
        self._stat(
            piece.partition,
            piece.file_id,
            path,
            piece.base_instant,
            updates=len(updates),
            log_version=version,
        )

    def _create(self, partition: str, rows: Mapping[str, int]) -> None:
        file_id = f"group-{self.transaction.instant}-{partition}-0"
        name = base_file_name(file_id, self.token, self.transaction.instant)
        path = self._put(partition, name, "CREATE", json.dumps(rows).encode())
        self._stat(partition, file_id, path, "null", inserts=len(rows))

    def _put(self, partition: str, name: str, io_type: str, data: bytes) -> str:
        write_marker(self.storage, self.transaction.instant, partition, name, io_type)
        self.storage.create(join(partition, name), data)
        return join(partition, name)

    def _stat(
        self,
        partition: str,
        file_id: str,
        path: str,
        prev_commit: str,
        *,
        inserts: int = 0,
        updates: int = 0,
        log_version: int | None = None,
    ) -> None:
        self.metadata.partition_to_write_stats.setdefault(partition, []).append(
            WriteStat(
                file_id=file_id,
                path=path,
                partition_path=partition,
                prev_commit=prev_commit,
                num_writes=inserts + updates,
                num_inserts=inserts,
                num_update_writes=updates,
                log_version=log_version,
            )
        )

    def _replaced(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {partition: [] for partition in self.rows}
        for piece in self.slices:
            if self.transaction.operation == "INSERT_OVERWRITE_TABLE" or piece.partition in self.rows:
                found.setdefault(piece.partition, []).append(piece.file_id)
        return found


def begin(storage: Storage, operation: str = "UPSERT", **more: object) -> WriteTransaction:
    """Begin a write with the action that the operation and the table's type ask for."""
    config = TableConfig.load(storage)
    action = "replacecommit" if "OVERWRITE" in operation else "commit"
    if action == "commit" and config.table_type.value == "MERGE_ON_READ":
        action = "deltacommit"
    return WriteTransaction.begin(
        storage, config, options(**more), publication_of(storage), action=action, operation=operation
    )


def work(storage: Storage, transaction: WriteTransaction, rows: Rows, token: str = "0-0-0") -> Work:
    """Plan a write."""
    return Work(
        storage,
        transaction,
        rows,
        token,
        merge_on_read=transaction.config.table_type.value == "MERGE_ON_READ",
        overwrite="OVERWRITE" in transaction.operation,
    )


def write(
    storage: Storage, rows: Rows, operation: str = "UPSERT", *, key_scope: KeyScope = KeyScope.PARTITION
) -> str:
    """Do a whole write; returns its instant."""
    with begin(storage, operation) as transaction:
        task = work(storage, transaction, rows)
        transaction.inflight(task.profile())
        task.write_files()
        transaction.commit(task.metadata, key_scope=key_scope)
    return transaction.instant


def rollback(storage: Storage, instant: str | None = None) -> RollbackResult:
    """Undo the newest commit, or a certain instant."""
    return rollback_write(storage, options(), publication_of(storage), instant)


def restore(storage: Storage, instant: str) -> RestoreResult:
    """Take the table back to a commit."""
    return restore_table(storage, options(), publication_of(storage), instant)


def savepoint(storage: Storage, instant: str | None = None, **more: str) -> Savepoint:
    """Save the newest commit, or a certain one."""
    return create_savepoint(storage, options(), publication_of(storage), instant, **more)


def leftovers(storage: Storage) -> list[str]:
    """Return what a clean table must not have: pending instants, markers, heartbeats, locks, dead data
    files.
    """
    config = TableConfig.load(storage)
    timeline = Timeline.load(storage, config)
    found = [instant.file_name for instant in timeline.pending]
    found += [
        status.path
        for status in storage.list(".hoodie/.heartbeat", recursive=True)
        if not status.name.startswith(TEMP_PREFIX)
    ]
    for folder in storage.list(".hoodie/.temp"):
        # Markers are kept for a while when one of the files has not come: it may come yet.
        if all(storage.exists(path) for path, _ in list_markers(storage, folder.name)):
            found.append(folder.path)
    found += [".hoodie/lock"] if storage.exists(".hoodie/lock") else []
    for partition, statuses in list_table_files(storage, config).items():
        for status in statuses:
            base = parse_base_file(status.name, partition)
            log = parse_log_file(status.name, partition)
            if (base is not None and not timeline.is_committed(base.instant)) or (
                log is not None and not timeline.is_committed(log.instant)
            ):
                found.append(status.path)
    return found


def timeline_path(instant: str, action: str, state: State) -> str:
    """Return the path of a timeline file."""
    return f".hoodie/{timeline_file_name(instant, action, state)}"
