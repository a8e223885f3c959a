"""Rows of pandas as an Arrow table, and which column cannot become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.any_case import refuse_same_names

if TYPE_CHECKING:
    import pandas

# Arrow raises its own for most values; for others Python's, such as OverflowError for whole numbers beyond eight bytes
_REFUSALS = (pa.ArrowException, ValueError, TypeError, OverflowError)


def pandas_to_arrow(rows: pandas.DataFrame) -> pa.Table:
    """Return the columns of a pandas DataFrame, without its index.

    Raises:
        SchemaError: Two columns have one name, or the values of one have no Arrow type in common.
    """
    refuse_same_names(map(str, rows.columns))
    try:
        return pa.Table.from_pandas(rows, preserve_index=False)
    except _REFUSALS as error:
        raise SchemaError(
            f"the pandas DataFrame has values that are no column: {_named(rows)}{error}; "
            "replace them, or give the column one type, such as astype('string')"
        ) from error


def _named(rows: pandas.DataFrame) -> str:
    """Name the first column that cannot be had by itself; nothing where there is none."""
    for number, name in enumerate(rows.columns):
        try:
            pa.Table.from_pandas(rows.iloc[:, [number]], preserve_index=False)
        except _REFUSALS:
            return f"column {str(name)!r}: "
    return ""
