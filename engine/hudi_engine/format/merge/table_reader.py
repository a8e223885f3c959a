"""What reading the slices of a table needs, from the table itself."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.missing_columns import defaults_that_fill, schema_with_defaults
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.meta_fields import OPERATION, with_meta_columns
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.schema_commits import load_schema_history


def read_context(
    storage: Storage, config: TableConfig, timeline: Timeline, *, as_of: str | None = None
) -> ReadContext:
    """Return the context of a read without options."""
    avro, history = timeline.table_schema_json(as_of), load_schema_history(storage, timeline)
    return ReadContext(
        storage=storage,
        config=config,
        schema=with_meta_columns(table_schema(config, timeline, as_of), operation=config.keeps_operations),
        is_committed=timeline.committed(as_of),
        as_of=as_of,
        schema_history=history,
        defaults=defaults_that_fill(config, avro),
        fills_by=schema_with_defaults(config, avro, by_ids=history is not None),
    )


def as_its_readers_do(context: ReadContext, timeline: Timeline) -> ReadContext:
    """Return the context of a query, which sees what a reader of the release that keeps the table sees.

    Readers of Hudi 0.x stop in a slice's logs at the first block that is younger than the newest completed
    write, even at a rollback's; incremental reads, writers and table services read on.
    """
    if not context.config.merges_as_release_0 or not timeline.completed_writes or context.instant_range:
        return context
    return replace(context, stops_after=context.as_of or timeline.completed_writes[-1].requested_time)


def table_schema(config: TableConfig, timeline: Timeline, as_of: str | None = None) -> pa.Schema:
    """Return data columns of a table: those of the newest commit, and the partition columns that its files leave out.

    The latter are text, as in Hudi, whose schema of them has no other source than the folders.
    """
    text = timeline.table_schema_json(as_of)
    schema = avro_to_arrow(text) if text is not None else pa.schema([])
    if config.keeps_operations:
        # Other writers that know of the column count it among the data.
        schema = pa.schema([field for field in schema if field.name != OPERATION])
    if not config.drop_partition_columns:
        return schema
    for field in config.partition_fields:
        if schema.get_field_index(field.name) < 0:
            schema = schema.append(pa.field(field.name, pa.string()))
    return schema
