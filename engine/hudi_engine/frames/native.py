"""Whether Spark's own Parquet reader gives a base file's rows right under the table's schema.

Spark finds columns by name, fills missing ones with null and reads both list and decimal encodings. It cannot know of columns
renamed by schema evolution, of partition columns left out of the files, or (before Spark 4) of widened types.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.config.table_config import TableConfig
from hudi_engine.storage.base import Storage
from hudi_engine.storage.damage import damaged_parquet

AS_STORED = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
"""Options of Spark's Parquet source: old dates and times are what the file says, whatever the session prefers."""

# Not float to double: Hudi widens a float by its text (1.1 stays 1.1), Spark by its bits.
_WIDENINGS_OF_SPARK_4 = {
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float64()),
}


def natively_readable(
    storage: Storage, config: TableConfig, path: str, schema: pa.Schema, spark_version: str
) -> bool:
    """Tell whether Spark may read the file itself.

    Args:
        storage: The table's storage.
        config: The table's properties.
        path: Base file, relative to the table.
        schema: Meta and data columns to read.
        spark_version: Version of the running Spark, such as ``4.0.1``.
    """
    if config.drop_partition_columns or not config.populate_meta_fields or not path.endswith(".parquet"):
        return False
    stored = _file_schema(storage, path)
    major = int(spark_version.partition(".")[0])
    for field in schema:
        place = stored.get_field_index(field.name)
        if place >= 0 and not _same(stored.field(place).type, field.type, major):
            return False
    return True


_SCHEMAS: dict[tuple[str, str], pa.Schema] = {}
_MOST_SCHEMAS = 20000


def _file_schema(storage: Storage, path: str) -> pa.Schema:
    """Return Arrow schema of a base file's footer; base files never change, so it is read once a process."""
    key = (storage.base, path)
    if key not in _SCHEMAS:
        if len(_SCHEMAS) >= _MOST_SCHEMAS:
            _SCHEMAS.clear()
        with storage.open_input(path) as source, damaged_parquet(f"base file {path!r} of {storage.base!r}"):
            _SCHEMAS[key] = pq.ParquetFile(source).schema_arrow.remove_metadata()
    return _SCHEMAS[key]


def _same(stored: pa.DataType, wanted: pa.DataType, spark_major: int) -> bool:
    if stored.equals(wanted):
        return True
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted):
        return (stored.tz is None) == (wanted.tz is None)
    if pa.types.is_list(stored) and pa.types.is_list(wanted):
        return _same(stored.value_type, wanted.value_type, spark_major)
    if pa.types.is_map(stored) and pa.types.is_map(wanted):
        return _same(stored.item_type, wanted.item_type, spark_major)
    if pa.types.is_struct(stored) and pa.types.is_struct(wanted):
        return all(
            stored.get_field_index(child.name) < 0
            or _same(stored.field(stored.get_field_index(child.name)).type, child.type, spark_major)
            for child in wanted
        )
    return spark_major >= 4 and (stored, wanted) in _WIDENINGS_OF_SPARK_4
