"""What a write asks of the index, partition by partition, and the columns that carry the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.merge.key_sets import are_distinct
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.merge.spill import PLACE
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.lookup.tagging import StoredKeys
from hudi_engine.table.txn.conflict import PlannedBy, reject_planned_groups

DELETE_FLAG = "__hudi_delete"
INSERT_FLAG = "__hudi_insert"
BUCKET = "__hudi_bucket"
ORDER = PLACE
"""Number of a row in its DataFrame, so that "the later row" means the same after a shuffle."""
LEAVES = "__hudi_leaves"
"""Whether a row stands for the partition that another one leaves; rows that move are doubled by it."""


@dataclass(frozen=True)
class SidecarState:
    """What a task must know of the published files to make the next ones.

    Args:
        pending: Requested times of the deltacommits of other writers that were pending when the write began.
        before: Path and identity of each slice's sidecar, by partition path and file id.
    """

    schema_digest: str
    pending: tuple[str, ...]
    before: Mapping[tuple[str, str], tuple[str, str]]


@dataclass(frozen=True)
class UnitPlan:
    """How the rows of a partition are treated.

    Args:
        lookup: Rows are looked up by key (upsert, delete, insert without duplicates).
        combine: Rows of the batch with the same key are merged into one first.
        delete_only: Rows are keys to delete; nothing is inserted.
        skip_existing: Rows whose key is in the table are dropped (insert without duplicates).
        packing: New rows may go into small files.
        replaces: The partition's file groups are taken out by this commit, so none of them is written to.
        update_columns: Only these columns of a row that is in the table are replaced; None for all.
        assigned: Columns in which a row that is in the table may get another value, by ``update_columns`` or as its whole row
            was made so; None for all.
        skip_unchanged: Rows that equal what is stored are left out (upsert).
        single_rows: The changed rows were selected one by one, so that no other row of their key may change.
        sidecars: How tasks make the sidecars next to logs; None when they do not.
    """

    index: IndexKind
    lookup: bool
    combine: bool
    delete_only: bool = False
    skip_existing: bool = False
    packing: bool = True
    replaces: bool = False
    update_columns: tuple[str, ...] | None = None
    skip_unchanged: bool = False
    single_rows: bool = False
    sidecars: SidecarState | None = None
    assigned: tuple[str, ...] | None = None


@dataclass(frozen=True)
class PartitionUnit:
    """One partition of the table and what a task must know of it.

    Args:
        log_instants: Instant for the next log's name by file id, where it is not the slice's own (pending compaction).
        frozen: File ids that take no new rows.
        exists: Whether the partition metadata file exists.
        log_keys: File ids whose logs may hold keys that are not in the base file (`hudi_engine.table.lookup.log_keys`).
        closed: File ids that must not change, with the planned clustering that is why.
        holding: File ids that the record index names for keys of the batch; None where every slice is looked through.
    """

    partition: str
    slices: tuple[FileSlice, ...] = ()
    log_instants: tuple[tuple[str, str], ...] = ()
    frozen: tuple[str, ...] = ()
    exists: bool = False
    log_keys: tuple[str, ...] = ()
    closed: tuple[tuple[str, PlannedBy], ...] = ()
    holding: frozenset[str] | None = None

    @property
    def looked_through(self) -> tuple[FileSlice, ...]:
        """The slices that may hold keys of the batch."""
        if self.holding is None:
            return self.slices
        return tuple(each for each in self.slices if each.file_id in self.holding)

    def reject_planned_groups(self, file_ids: Iterable[str]) -> None:
        """Refuse a write to file groups of a planned clustering; raises WriteConflictError."""
        if self.closed:
            closed = {(self.partition, file_id): holder for file_id, holder in self.closed}
            reject_planned_groups([(self.partition, file_id) for file_id in file_ids], closed)

    def stored_keys(self, file_slice: FileSlice) -> StoredKeys:
        """Return which keys of one of the slices count as stored."""
        return StoredKeys.BASE_AND_LOGS if file_slice.file_id in self.log_keys else StoredKeys.BASE


def lookup_keys(batch: pa.Table) -> pa.Array:
    """Record keys of a batch; null for rows that count as new whether or not their key is stored (match condition)."""
    keys = batch.column(RECORD_KEY).combine_chunks()
    if INSERT_FLAG in batch.column_names:
        keys = pc.if_else(batch.column(INSERT_FLAG).combine_chunks(), pa.scalar(None, keys.type), keys)
    return keys


def split_by_partition(table: pa.Table, column: str) -> list[tuple[str, pa.Table]]:
    """Return rows grouped by a text column, groups in order of first appearance."""
    if table.num_rows == 0:
        return []
    encoded = table.column(column).combine_chunks()
    encoded = pc.dictionary_encode(encoded) if not pa.types.is_dictionary(encoded.type) else encoded
    values = encoded.dictionary.to_pylist()
    if len(values) == 1:
        return [(values[0], table)]
    order = pc.sort_indices(encoded.indices)
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(encoded.indices).to_pylist()}
    ordered = taken(table, order)
    groups: list[tuple[str, pa.Table]] = []
    start = 0
    for code in range(len(values)):
        size = counts.get(code, 0)
        groups.append((values[code], ordered.slice(start, size)))
        start += size
    return groups


def in_order(rows: pa.Table) -> pa.Table:
    """Rows of a shuffled batch in the order of their DataFrame where that matters: several have the same key."""
    if ORDER not in rows.column_names:
        return rows
    keys = rows.column(RECORD_KEY) if RECORD_KEY in rows.column_names else None
    if keys is not None and not are_distinct(keys):
        rows = taken(rows, pc.sort_indices(rows.column(ORDER)))
    return rows.drop_columns([ORDER])
