"""Reading a whole table with Arrow alone, slice by slice: no Spark, no JVM, no manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.merge.base_reader import select_schema
from hudi_engine.format.merge.read_context import InstantRange, ReadContext
from hudi_engine.format.merge.slice_reader import BASE_ONLY, PAYLOAD_COMBINE, read_slice
from hudi_engine.format.merge.table_reader import as_its_readers_do, read_context
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.continuity import look_until_still


def read_table(
    storage: Storage,
    *,
    as_of: str | None = None,
    read_optimized: bool = False,
    columns: Sequence[str] | None = None,
    instant_range: InstantRange | None = None,
) -> pa.Table:
    """Return rows of a table, the five meta columns first; a table without a commit gives no rows."""

    def look() -> tuple[TableConfig, Timeline, tuple[ReadContext, list[FileSlice]]]:
        config = TableConfig.load(storage)
        timeline = Timeline.load(storage, config)
        timeline.check_readable(as_of)
        read = replace(read_context(storage, config, timeline, as_of=as_of), instant_range=instant_range)
        context = as_its_readers_do(read, timeline)
        view = FileSystemView.build(storage, config, timeline, as_of=as_of)
        if not read_optimized:
            return config, timeline, (context, view.latest_slices())
        bases = view.latest_base_files()
        return (
            config,
            timeline,
            (context, [FileSlice(each.partition, each.file_id, each.instant, each) for each in bases]),
        )

    context, slices = look_until_still(storage, look, as_of)
    merge_type = BASE_ONLY if read_optimized else PAYLOAD_COMBINE
    wanted = list(context.schema.names if columns is None else columns)
    tables = [select_schema(context.schema, wanted).empty_table()]
    tables.extend(read_slice(context, each, columns=wanted, merge_type=merge_type) for each in slices)
    return pa.concat_tables(tables)
