"""Whether Spark's own Parquet reader returns a base file's rows correctly under the table's schema.

Spark finds columns by name, fills missing ones with null and reads both list and decimal encodings. It cannot know of columns
renamed by schema evolution, of partition columns left out of the files, or (before Spark 4) of widened types; before Spark 4.1 it
takes a struct for null of which a file has none of the requested fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.errors import SchemaError
from hudi_engine.format import parallel
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.schema.meta_fields import meta_fields
from hudi_engine.format.schema.nested import paired_parts
from hudi_engine.format.schema.time_units import is_as_meant
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.damage import damaged_parquet
from hudi_engine.table.snapshot.sidecar import MASK_COLUMNS

METADATA_COLUMN = "_metadata"
"""Spark's own column of what it knows of files and places of rows; a column of a table that is named so hides it."""

ROW_INDEX_COLUMN = "_tmp_metadata_row_index"
"""What Spark's Parquet reader calls the places of rows: it fills a table's column of this name with them, whatever is stored."""

AS_STORED = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "parquet.page.verify-checksum.enabled": "true",
}
"""Options of Spark's Parquet source, whatever the session has set: old dates and times are read as they are stored, and a file that
cannot be read, or a page with a wrong checksum, is an error. A read that skipped them could be the source of a write."""

V1_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
"""Spark's Parquet source of version 1 whatever `spark.sql.sources.useV1SourceList` is: that of version 2 has no places of rows, no
times of files and no file index but its own."""

# Not float to double: Hudi widens a float by its text (1.1 stays 1.1), Spark by its bits.
_WIDENINGS_OF_SPARK_4 = {
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float64()),
}


Release: TypeAlias = tuple[int, int]
"""Major and minor version of Spark."""

OLDEST_SPARK, NEWEST_SPARK = (3, 5), (4, 1)
"""What the one can read, all can; what the other cannot read, none can."""
_WIDENS, _FILLS_STRUCTS = (4, 0), (4, 1)
"""The first releases that widen while they read, and that find a struct of which a file has no requested field (SPARK-53535)."""


def natively_readable(
    storage: Storage, config: TableConfig, paths: Iterable[str], schema: pa.Schema, *, spark: Release
) -> bool:
    """Return whether Spark may read base files itself; the footer of one file of each instant is opened."""
    if config.drop_partition_columns or not config.populate_meta_fields:
        return False
    of_instant: dict[str, str] = {}
    for path in paths:
        if not path.endswith(_PARQUET):
            return False
        of_instant.setdefault(path.rpartition("_")[2], path)
    examples = list(of_instant.values())
    stored = parallel.on_threads(partial(_file_schema, storage), examples)
    return all(_fits(each, schema, spark) for each in stored)


def filled_by_spark(names: Iterable[str]) -> str | None:
    """Return the one of some columns that Spark fills itself, whatever a file stores; None for none."""
    return next((name for name in names if name.lower() == ROW_INDEX_COLUMN), None)


def is_misread(storage: Storage, path: str, schema: pa.Schema) -> bool:
    """Return whether the installed Spark refuses a base file's values under the table's types, or reads others from them."""
    return path.endswith(_PARQUET) and not _fits(_file_schema(storage, path), schema, _installed_spark())


def native_instants(
    storage: Storage, config: TableConfig, bases: Iterable[BaseFile], schema: pa.Schema, *, spark: Release
) -> frozenset[str]:
    """Return the instants whose base files Spark may read itself; see `natively_readable`."""
    if config.drop_partition_columns or not config.populate_meta_fields:
        return frozenset()
    examples = {base.instant: base.path for base in bases if base.path.endswith(_PARQUET)}
    stored = parallel.on_threads(partial(_file_schema, storage), list(examples.values()))
    return frozenset(
        instant for instant, found in zip(examples, stored, strict=True) if _fits(found, schema, spark)
    )


@cache
def _installed_spark() -> Release:
    """Return the release of PySpark, the newest where there is none: who publishes need not run it."""
    try:
        return release_of(version("pyspark"))
    except PackageNotFoundError:
        return NEWEST_SPARK


def release_of(spark_version: str) -> Release:
    """Return the major and minor version of a version such as ``4.0.1``."""
    major, minor = spark_version.split(".")[:2]
    return int(major), int(minor)


_SCHEMAS: dict[tuple[str, str], pa.Schema] = {}
_MAX_SCHEMAS = 20000
_PARQUET = ".parquet"
_WRITER = b"writer"


def _file_schema(storage: Storage, path: str) -> pa.Schema:
    """Return Arrow schema of a base file's footer, and its writer; base files never change, so it is read once a process."""
    key = (storage.base, path)
    found = _SCHEMAS.get(key)
    if found is None:
        if len(_SCHEMAS) >= _MAX_SCHEMAS:
            _SCHEMAS.clear()
        with storage.open_input(path) as source, damaged_parquet(f"base file {path!r} of {storage.base!r}"):
            file = pq.ParquetFile(source)
            found = file.schema_arrow.with_metadata({_WRITER: file.metadata.created_by or ""})
        _SCHEMAS[key] = found
    return found


def _fits(stored: pa.Schema, schema: pa.Schema, spark: Release) -> bool:
    if filled_by_spark(schema.names) is not None:
        return False
    if not is_as_meant(stored, (stored.metadata or {}).get(_WRITER, b"").decode(), schema):
        return False
    for field in schema:
        place = stored.get_field_index(field.name)
        if place >= 0 and not _same(stored.field(place).type, field.type, spark):
            return False
    return True


def _same(stored: pa.DataType, wanted: pa.DataType, spark: Release) -> bool:
    """Return whether Spark reads stored values as the wanted type."""
    if stored.equals(wanted):
        return True
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted):
        return (stored.tz is None) == (wanted.tz is None)
    pairs = paired_parts(stored, wanted)
    if pairs is not None:
        return all(
            # A query of the new field alone takes all structs of the file for null.
            spark >= _FILLS_STRUCTS if held is None else _same(held, part, spark)
            for _, held, part in pairs
            if part is not None
        )
    return spark >= _WIDENS and (stored, wanted) in _WIDENINGS_OF_SPARK_4


_PREFIX = "__hudi_"
"""Columns of rows on their way into a table begin so."""


def refuse_reserved(names: Iterable[str]) -> None:
    """Refuse columns, in any case, that Hudi, this engine or Spark's Parquet reader takes for its own; raises SchemaError."""
    for name in names:
        if filled_by_spark([name]) is not None:
            raise SchemaError(
                f"column {name!r}: Spark's Parquet reader fills a column of this name with the places of rows; rename it"
            )
        if name.lower() in meta_fields(operation=True):
            raise SchemaError(
                f"column {name!r} is a meta column, which Hudi fills itself, or differs from one by case only; leave it out"
            )
        if name.lower().startswith(_PREFIX) or name.lower() in MASK_COLUMNS:
            raise SchemaError(
                f"column {name!r}: {', '.join(MASK_COLUMNS)} and names that begin with {_PREFIX} are this engine's own; "
                "rename it"
            )
