"""Units of times: a table's are milliseconds or microseconds, as its Avro schema states, Spark's are microseconds.

Other writers make ``timestamp-millis`` of Flink's ``TIMESTAMP(3)`` and of many Avro schemas. Where rows of a table go to Spark,
and where columns come from it, the unit changes; everything else has the table's. Some files of older Hudi declare a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.schema.casting import cast_table, with_values
from hudi_engine.format.schema.nested import map_leaf_types, map_leaves, paired_parts, type_of_parts

_VERSION = b"org.apache.spark.version"
_DATES, _INT96 = (b"org.apache.spark.legacyDateTime", "3.0.0"), (b"org.apache.spark.legacyINT96", "3.1.0")
_FIRST_SAME_DAY = -141_427
"""1582-10-15."""
_FIRST_SAME_SECOND = -2_208_988_800
"""1900-01-01: before it most time zones had offsets that older releases of Spark took for others."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


# Source of the marks: Apache Spark, DataSourceUtils. Spark before 3.0 wrote the Julian calendar until 1582-10-15.
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


_SPARK_UNIT = "us"
_ARROW = "parquet-cpp-arrow"


def for_spark(rows: pa.Table) -> pa.Table:
    """Return a table's rows with their times as Spark takes them; nothing is copied where they are so."""
    wanted = pa.schema([field.with_type(map_leaf_types(field.type, _in_spark_unit)) for field in rows.schema])
    return cast_table(rows, wanted)


def schema_in_units_of(given: pa.Schema, table: pa.Schema | None) -> pa.Schema:
    """Return columns with their times in the units that the table has them in; those that it does not have are as given."""
    if table is None:
        return given
    known = {field.name: field.type for field in table}
    return pa.schema(
        [field.with_type(in_units_of(field.type, known.get(field.name, field.type))) for field in given]
    )


def in_units_of(given: pa.DataType, known: pa.DataType) -> pa.DataType:
    """Return a type with its times, inside structs, lists and maps too, in the units of another one."""
    return _paired(given, known, lambda _, of_table: of_table)


def as_meant(rows: pa.Table, created_by: str | None, wanted: Mapping[str, pa.DataType]) -> pa.Table:
    """Return the rows of a Parquet file with their times in the unit that their numbers have.

    Releases of Hudi before 1.1 declared times of ``timestamp-millis`` as microseconds in Parquet, though their numbers are
    milliseconds; Hudi reads them so since. What was written by Arrow, as all files of this engine, has the declared unit.
    """
    changed = {}
    for number, field in enumerate(rows.schema if is_of_others(created_by) else ()):
        kind = _meant(field.type, wanted.get(field.name, field.type))
        if not kind.equals(field.type):
            chunks = [chunk.view(kind) for chunk in rows.column(number).chunks]
            changed[field.name] = pa.chunked_array(chunks, kind)
    return with_values(rows, changed) if changed else rows


def is_as_meant(stored: pa.Schema, created_by: str | None, wanted: pa.Schema) -> bool:
    """Return whether the times of a Parquet file have the declared unit; see `as_meant`."""
    kinds = {field.name: field.type for field in stored} if is_of_others(created_by) else {}
    return all(
        _meant(kinds[field.name], field.type).equals(kinds[field.name])
        for field in wanted
        if field.name in kinds
    )


def is_of_others(created_by: str | None) -> bool:
    """Return whether a Parquet file was not written by Arrow."""
    return not (created_by or "").startswith(_ARROW)


def _meant(stored: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    def of_time(stored: pa.DataType, wanted: pa.DataType) -> pa.DataType:
        return wanted if (stored.unit, wanted.unit) == ("us", "ms") else stored

    return _paired(stored, wanted, of_time)


def _paired(
    given: pa.DataType, known: pa.DataType, of_time: Callable[[pa.DataType, pa.DataType], pa.DataType]
) -> pa.DataType:
    """Return a type with those times in it chosen again that another one has at the same place, in the same kind of zone."""
    pairs = paired_parts(given, known)
    if pairs is not None:
        parts = [
            one if other is None else _paired(one, other, of_time)
            for _, one, other in pairs
            if one is not None
        ]
        return type_of_parts(given, parts)
    both_times = pa.types.is_timestamp(given) and pa.types.is_timestamp(known)
    return of_time(given, known) if both_times and given.tz == known.tz else given


def _in_spark_unit(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(_SPARK_UNIT, kind.tz) if pa.types.is_timestamp(kind) else kind
