"""Parquet files in the calendar of Spark before 3.0 (Julian until 1582-10-15): old dates and times in them are refused.

The footer of such a file has a mark, and Spark rebases its values on read; this engine does not. Source: Apache Spark,
``DataSourceUtils``.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.schema.nested import map_leaves

_VERSION = b"org.apache.spark.version"
_DATES, _INT96 = (b"org.apache.spark.legacyDateTime", "3.0.0"), (b"org.apache.spark.legacyINT96", "3.1.0")
_FIRST_SAME_DAY = -141_427
"""1582-10-15."""
_FIRST_SAME_SECOND = -2_208_988_800
"""1900-01-01: before it most time zones had offsets that older releases of Spark took for others."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def is_in_old_calendar(footer: pq.FileMetaData, texts: Mapping[bytes, bytes] | None = None) -> bool:
    """Return whether a file's footer marks its dates and times as those of the old calendar."""
    found = (footer.metadata or {}) if texts is None else texts
    if _VERSION not in found:
        return False
    version = found[_VERSION].decode()
    dates, int96 = (mark in found or version < since for mark, since in (_DATES, _INT96))
    columns = range(footer.num_columns)
    return dates or (int96 and any(footer.schema.column(place).physical_type == "INT96" for place in columns))


def check_calendar(rows: pa.Table, source: str) -> None:
    """Refuse rows of a marked file that have a date before 1582-10-15 or a time before 1900."""
    for name, column in zip(rows.column_names, rows.columns):

        def check(values: pa.Array, name: str = name) -> pa.Array:
            if _is_old(values):
                raise UnsupportedTableError(
                    f"column {name!r} of {source} has dates before 1582-10-15 or times before 1900 in the calendar of Spark "
                    "before 3.0, which this engine does not read. Read them with Spark and write them again with "
                    "spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED and "
                    "spark.sql.parquet.int96RebaseModeInWrite=CORRECTED"
                )
            return values

        for chunk in column.chunks:
            map_leaves(chunk, check)


def _is_old(values: pa.Array) -> bool:
    kind = values.type
    if pa.types.is_date32(kind):
        smallest, first_same = pc.min(values.view(pa.int32())).as_py(), _FIRST_SAME_DAY
    elif pa.types.is_timestamp(kind):
        first_same = _FIRST_SAME_SECOND * _PER_SECOND[kind.unit]
        smallest = pc.min(values.view(pa.int64())).as_py()
    else:
        return False
    return smallest is not None and smallest < first_same
