"""What the commit of a write says: its files, the table's columns, and notes for other writers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hudi_engine.format.config.other_keys import CHECKPOINT
from hudi_engine.format.schema.meta_fields import meta_fields
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.spark.write.request import WriteRequest, extra_metadata, skips_existing
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.state import commit_schema_text
from hudi_engine.table.txn.column_ids import column_ids
from hudi_engine.table.txn.conflict import NEW_KEYS_ONLY, REPLACED, ROWS_LEFT
from hudi_engine.table.write.operation import WHOLE_TABLE


def told_by_commit(
    context: WriteContext,
    request: WriteRequest,
    stats: Sequence[WriteStat],
    replaced: dict[str, list[str]] | None,
    *,
    left: bool,
) -> CommitMetadata:
    """Return what the commit of a write says.

    Args:
        replaced: File groups that it takes out, by partition; None where it takes out none.
        left: Whether it has looked at stored rows and left them as they are.
    """
    told = {} if request.changes is None else {REPLACED: request.changes.replaced.to_text()}
    told |= {NEW_KEYS_ONLY: "true"} if skips_existing(request) else {}
    told |= {ROWS_LEFT: "true"} if left else {}
    # a commit takes over the checkpoint of the one before, so that of a table built anew says that nothing was consumed
    anew = request.new_schema and request.operation.replaces == WHOLE_TABLE
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in stats:
        by_partition.setdefault(stat.partition_path or "", []).append(stat)
    return CommitMetadata(
        partition_to_write_stats=by_partition,
        extra_metadata={
            "schema": _schema_text(context),
            **column_ids(context.read.schema_history, context.instant),
            **({CHECKPOINT: "{}"} if anew else {}),
            **extra_metadata(request.options),
            **told,
        },
        operation_type=request.operation.name.value,
        compacted=False,
        partition_to_replace_file_ids=replaced,
    )


def _schema_text(context: WriteContext) -> str:
    avro: dict[str, Any] = dict(context.avro_schema)
    meta = meta_fields(operation=context.config.keeps_operations)
    avro["fields"] = [field for field in avro["fields"] if field["name"] not in meta]
    return commit_schema_text(avro)
