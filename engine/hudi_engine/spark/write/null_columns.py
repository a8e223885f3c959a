"""Nulls in columns that a table of another writer requires: its schema allows them with the commit that brings them."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import types as T

from hudi_engine.format.schema.required import columns_with_nulls, has_required, with_nulls_allowed
from hudi_engine.spark.write.incoming import Incoming
from hudi_engine.table.handles.write_context import WriteContext

_NESTED = (T.StructType, T.ArrayType, T.MapType)


def allowing_nulls(context: WriteContext, incoming: Incoming, *, delete_only: bool) -> WriteContext:
    """Return a write whose schema has those columns optional in which rows have nulls, of distributed rows: may have.

    Args:
        incoming: Its rows, which have all columns of the table unless they are keys to delete.
    """
    if delete_only or not has_required(context.avro_schema):
        return context
    if incoming.table is not None:
        nulls = columns_with_nulls(incoming.table)
    else:
        assert incoming.distributed is not None
        fields = incoming.distributed.frame.schema.fields
        nulls = {each.name for each in fields if each.nullable or isinstance(each.dataType, _NESTED)}
        if len(context.config.record_key_fields) == 1:
            # a row whose only key column is null is refused
            nulls -= {context.config.record_key_fields[0]}
    return replace(context, avro_schema=with_nulls_allowed(context.avro_schema, nulls))
