"""One partition's share of a write: tag, merge or append, and place the new rows.

The same function runs on the driver (small batches) and inside executor tasks, so every way of distributing the work gives
the same files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import SchemaError
from hudi_engine.format.filegroup.partition_metadata import begin_partition
from hudi_engine.format.logformat.datums.types import AvroType, compile_schema
from hudi_engine.format.schema.meta_fields import OPERATION
from hudi_engine.format.schema.nested import array_parts, walk_avro
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.lookup.outdated_updates import drop_outdated_updates
from hudi_engine.table.lookup.partition import TaggedUnit
from hudi_engine.table.lookup.unit import UnitPlan
from hudi_engine.table.write.place.by_bucket import write_buckets
from hudi_engine.table.write.place.by_key import write_keys
from hudi_engine.table.write.place.unchanged import stat_of_left, without_unchanged


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
    """Refuse rows with a text that is none of the symbols of its enum; nothing is looked at where there are no enums.

    Args:
        rows: Rows with data columns of the table.

    Raises:
        SchemaError: It names the column, the text and the symbols.
    """
    if not any(each.get("type") == "enum" for each in walk_avro(avro)):
        return
    record = compile_schema(avro)
    for name, kind in zip(record.names, record.children, strict=True):
        if name in rows.column_names and _has_enum(kind):
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
