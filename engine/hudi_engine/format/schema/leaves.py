"""Columns as Parquet stores them: the leaves of nested ones, and which of them have a dictionary or statistics."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.schema.meta_fields import COMMIT_SEQNO, RECORD_KEY

_SAMPLE_ROWS = 10_000
_UNIQUE_SHARE = 0.7


def leaves_of(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the path and type of each leaf of a column."""
    types = pa.types
    if types.is_struct(kind):
        for field in kind:
            yield from leaves_of(f"{path}.{field.name}", field.type)
    elif types.is_map(kind):
        yield from leaves_of(f"{path}.key_value.key", kind.key_type)
        yield from leaves_of(f"{path}.key_value.value", kind.item_type)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        yield from leaves_of(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind


def leaves_with_statistics(schema: pa.Schema, rows: pa.Table | None) -> list[str]:
    """Choose the leaves of a file for which statistics are written: all but those with a NaN.

    Arrow's writer leaves NaN out of the smallest and largest value, while Spark takes it for larger than any number: it would
    not look for it in a row group whose largest number is too small. Parquet's own writer for Java, and so Apache Hudi, writes
    no bounds there either.
    """
    return [
        path
        for field in schema
        for path, kind in leaves_of(field.name, field.type)
        if not _may_hold_nan(field, kind, rows)
    ]


def _may_hold_nan(field: pa.Field, kind: pa.DataType, rows: pa.Table | None) -> bool:
    value_type = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not pa.types.is_floating(value_type):
        return False
    if rows is None or pa.types.is_nested(field.type):
        return True
    values = rows.column(field.name)
    if pa.types.is_dictionary(values.type):
        values = values.cast(value_type)
    return bool(pc.any(pc.is_nan(values)).as_py())


def dictionary_leaves(schema: pa.Schema, sample: pa.Table) -> list[str]:
    """Choose the leaves to dictionary encode: those whose values repeat.

    A dictionary of values that hardly repeat is built, found too large and thrown away by the Parquet writer,
    which costs more than it saves; keys and sequence numbers never repeat. Floating point numbers have none: Spark looks a
    condition's number up in it by its bits, so that ``= 0.0`` would not find a stored ``-0.0``, nor the other way round.
    """
    leaves: list[str] = []
    head = sample.slice(0, _SAMPLE_ROWS)
    for field in schema:
        if field.name in (RECORD_KEY, COMMIT_SEQNO):
            continue
        paths = [path for path, kind in leaves_of(field.name, field.type) if not pa.types.is_floating(kind)]
        if paths and (pa.types.is_nested(field.type) or _repeats(head.column(field.name))):
            leaves += paths
    return leaves


def _repeats(values: pa.ChunkedArray) -> bool:
    if len(values) < _SAMPLE_ROWS or pa.types.is_dictionary(values.type):
        return True
    # Arrow's own count of different values takes two to four times as long.
    return len(pc.unique(values)) <= len(values) * _UNIQUE_SHARE
