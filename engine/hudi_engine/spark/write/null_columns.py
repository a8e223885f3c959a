"""Nulls in columns that a table of another writer requires: its schema allows them with the commit that brings them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hudi_engine.format.schema.required import has_required, nulls_of_rows, with_nulls_allowed
from hudi_engine.spark.schema.spark_types import nulls_of_frame
from hudi_engine.spark.write.incoming import Incoming
from hudi_engine.table.handles.write_context import WriteContext


def allowing_nulls(context: WriteContext, incoming: Incoming, *, delete_only: bool) -> WriteContext:
    """Return a write whose schema has those columns optional in which rows have nulls, of distributed rows: may have.

    Args:
        incoming: Its rows, which have all columns of the table unless they are keys to delete.
    """
    if delete_only or not has_required(context.avro_schema):
        return context
    if incoming.table is not None:
        nulls = nulls_of_rows(incoming.table)
    else:
        assert incoming.distributed is not None
        keys = context.config.record_key_fields
        # a row whose only key column is null is refused
        only_key = keys[0] if len(keys) == 1 else None
        may_be_null = nulls_of_frame(incoming.distributed.frame.schema)
        nulls = pa.schema([field for field in may_be_null if field.name != only_key])
    return replace(context, avro_schema=with_nulls_allowed(context.avro_schema, nulls))
