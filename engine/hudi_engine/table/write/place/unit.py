"""One partition's share of a write: tag, merge or append, and place the new rows.

The same function runs on the driver (small batches) and inside executor tasks, so every way of distributing the work gives
the same files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import SchemaError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.partition_metadata import begin_partition
from hudi_engine.format.logformat.datums.types import AvroType, compile_schema
from hudi_engine.format.merge.delete_marker import delete_mask
from hudi_engine.format.merge.modes.registry import keeps_newer_rows
from hudi_engine.format.merge.ordering import newer_wins
from hudi_engine.format.merge.row_equality import equal_rows
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.schema.meta_fields import META_FIELDS, OPERATION
from hudi_engine.format.schema.nested import array_parts, walk_avro
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.partition import TaggedUnit, drop_outdated_updates
from hudi_engine.table.lookup.tagging import SliceTag, stored_pairs
from hudi_engine.table.lookup.unit import DELETE_FLAG, INSERT_FLAG, UnitPlan
from hudi_engine.table.txn.conflict import FileGroup
from hudi_engine.table.write.place.by_bucket import write_buckets
from hudi_engine.table.write.place.by_key import write_keys

Mask = npt.NDArray[np.bool_]


def without_unchanged(context: WriteContext, plan: UnitPlan, tagged: TaggedUnit) -> TaggedUnit:
    """Return a partition's rows without those whose every stored row has the values they bring, or is newer; deletes stay."""
    batch = tagged.batch
    if not tagged.tags:
        return tagged
    given = set(batch.column_names).difference(META_FIELDS)
    columns = [name for name in context.read.schema.names if name in given]
    if plan.update_columns is not None:
        taken = {name.lower() for name in plan.update_columns}
        columns = [name for name in columns if name.lower() in taken]
    stored, equal = np.zeros(batch.num_rows, np.int64), np.zeros(batch.num_rows, np.int64)
    for tag in tagged.tags:
        _count(context, batch, tag, columns, stored, equal)
    unchanged = (stored > 0) & (stored == equal) & ~_marked(batch, context)
    if not unchanged.any():
        return tagged
    return tagged.only(~unchanged)


def _count(
    context: WriteContext,
    batch: pa.Table,
    tag: SliceTag,
    columns: list[str],
    stored: npt.NDArray[np.int64],
    equal: npt.NDArray[np.int64],
) -> None:
    """Count, for each row of the batch, the stored rows of its key and those that equal it."""
    rows, hits, wanted = stored_pairs(context.read, batch, tag, columns)
    old, new = taken(rows, hits), taken(batch, wanted)
    same = equal_rows(old, new, columns) | _loses(context.config, old, new)
    np.add.at(stored, np.asarray(wanted), 1)
    np.add.at(equal, np.asarray(wanted)[same], 1)


def _loses(config: TableConfig, old: pa.Table, new: pa.Table) -> Mask:
    """Return which new rows are older than the stored ones, in a table where these then stay as they are."""
    names = config.ordering_fields
    if not keeps_newer_rows(config) or not {*names} <= {*old.column_names}:
        return np.zeros(old.num_rows, dtype=bool)
    return ~newer_wins([old.column(name) for name in names], [new.column(name) for name in names])


def _marked(batch: pa.Table, context: WriteContext) -> Mask:
    """Rows that delete, or that are added to the stored row."""
    marked = np.zeros(batch.num_rows, dtype=bool)
    deletes = delete_mask(batch, context.config)
    if deletes is not None:
        marked |= np.asarray(deletes).astype(bool)
    for flag in (DELETE_FLAG, INSERT_FLAG):
        if flag in batch.column_names:
            marked |= np.asarray(pc.fill_null(batch.column(flag), False)).astype(bool)
    return marked


_LEFT = "fileIdsLeft"


def stat_of_left(found: TaggedUnit, kept: TaggedUnit) -> list[WriteStat]:
    """Tell in a write stat without a file, which no commit gets, in which file groups rows were left as they are."""
    written = {tag.file_slice.file_id: len(tag.matched) for tag in kept.tags}
    left = [
        tag.file_slice.file_id
        for tag in found.tags
        if len(tag.matched) > written.get(tag.file_slice.file_id, 0)
    ]
    return [WriteStat(partition_path=found.unit.partition, other={_LEFT: left})] if left else []


def unchanged_file_groups(stats: Iterable[WriteStat]) -> frozenset[FileGroup]:
    """Return the file groups that write stats of the tasks name so."""
    return frozenset(
        (stat.partition_path or "", file_id) for stat in stats for file_id in stat.other.get(_LEFT, ())
    )


def write_unit(task: WriteTask, plan: UnitPlan, tagged: TaggedUnit) -> list[WriteStat]:
    """Write one partition's tagged rows; returns the write stats of the files written, possibly none."""
    found = tagged
    tagged = drop_outdated_updates(task.context, plan, tagged)
    if plan.skip_unchanged and OPERATION not in tagged.batch.column_names:
        tagged = without_unchanged(task.context, plan, tagged)
    unit, batch = tagged.unit, tagged.batch
    if not plan.delete_only:
        check_symbols(batch, task.context.avro_schema)
    if not unit.exists and batch.num_rows and not plan.delete_only:
        begin_partition(task.context.storage, task.context.config, unit.partition, task.context.instant)
    left = [] if tagged is found else stat_of_left(found, tagged)
    if plan.index.buckets is not None:
        return [*left, *write_buckets(task, plan, unit, batch, plan.index.buckets)]
    return [*left, *write_keys(task, plan, unit, batch, list(tagged.tags))]


def check_symbols(rows: pa.Table, avro: Mapping[str, Any]) -> None:
    """Refuse rows with a text that is none of the symbols of its enum; nothing is looked at where there are no enums."""
    if not any(each.get("type") == "enum" for each in walk_avro(avro)):
        return
    record = compile_schema(avro)
    for name, kind in zip(record.names, record.children, strict=True):
        if _has_enum(kind) and name in rows.column_names:
            for chunk in rows.column(name).chunks:
                _check(chunk, kind, name)


def _has_enum(kind: AvroType) -> bool:
    return kind.kind == "enum" or any(map(_has_enum, kind.children))


def _check(values: pa.Array, kind: AvroType, path: str) -> None:
    """Refuse texts of an enum at whatever depth of some values."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if kind.kind == "enum":
        texts = pc.unique(values).drop_null()
        others = texts.filter(pc.invert(pc.is_in(texts, value_set=pa.array(kind.symbols, pa.string()))))
        if len(others):
            raise SchemaError(
                f"column {path!r} is an enum of {', '.join(kind.symbols)} in the table's Avro schema, and {others[0].as_py()!r} is "
                "none of them. Let the writer that made the schema add it, or rebuild the table, which makes the column text"
            )
    elif _has_enum(kind):
        # of a map the values have a type of their own, and the keys are text
        parts = array_parts(values)[-len(kind.children) :]
        names = kind.names or ("value" if kind.kind == "map" else "element",)
        for name, part, inner in zip(names, kind.children, parts, strict=True):
            _check(inner, part, f"{path}.{name}")
