"""Nulls in columns that a table of another writer requires: its schema allows them with the commit that brings them."""

from __future__ import annotations

from dataclasses import replace

from hudi_engine.handles.write_context import WriteContext
from hudi_engine.schema.required import has_required, nulls_of_rows, with_nulls_allowed
from hudi_engine.schema.spark_types import nulls_of_frame
from hudi_engine.write.incoming import Incoming


def allowing_nulls(context: WriteContext, incoming: Incoming) -> WriteContext:
    """Return a write whose schema has those columns optional in which rows have nulls, of distributed rows: may have.

    Args:
        context: The write.
        incoming: Its rows, which have all columns of the table unless they are keys to delete.
    """
    if not has_required(context.avro_schema):
        return context
    if incoming.table is not None:
        nulls = nulls_of_rows(incoming.table)
    else:
        assert incoming.distributed is not None
        nulls = nulls_of_frame(incoming.distributed.frame.schema)
    return replace(context, avro_schema=with_nulls_allowed(context.avro_schema, nulls))
