"""A table's snapshot as a DataFrame with Hudi's meta columns, read through its manifest.

Logs were merged once, when the manifest was published, and every read after that is Spark's own Parquet scan. No folder is
listed, no footer is opened here, and hive-style folders are pruned by their names.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hudi_engine.format.config.enums import TableType
from hudi_engine.format.schema.meta_fields import with_meta_columns
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.format.timeline.schema_commits import load_schema_history
from hudi_engine.spark.jvm.frames import select_names
from hudi_engine.spark.read.masked import (
    RESERVED,
    counts_rows,
    merged_rows,
    with_places,
)
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.snapshot.manifest import current_manifest
from hudi_engine.table.snapshot.manifest_file import Layout, Manifest, ManifestFolder, label_of
from hudi_engine.table.snapshot.native import AS_STORED, V1_PARQUET, natively_readable, release_of
from hudi_engine.table.snapshot.sidecar import EXTENSION, sidecar_schema
from hudi_engine.table.snapshot.snapshot_files import MASKED_LABEL
from hudi_engine.table.state import TableState


class ListMovedError(Exception):
    """What Spark read as a table's list of files may be another one than was looked at."""


def published_snapshot(spark: SparkSession, state: TableState) -> DataFrame | None:
    """Return rows of a table from its manifest, the five meta columns first.

    Returns:
        None when the manifest does not show this state, a write is about to give the table other columns, or Spark cannot
        read the base files under its schema.

    Raises:
        ListMovedError: Another manifest was published meanwhile, which Spark may have read.
    """
    data_schema = state.data_schema()
    if data_schema is None or state.columns is not None:
        return None
    found = current_manifest(state.storage, state.timeline, state.config)
    if found is None or any(name.lower() in RESERVED for name in data_schema.names):
        return None
    layout, manifest = found
    schema = with_meta_columns(data_schema, operation=state.config.keeps_operations)
    if not _is_native(state, manifest, schema, spark.version):
        return None
    prepare_session(spark)
    if state.config.table_type is not TableType.MERGE_ON_READ or not _has_sidecars(manifest):
        files = _files(spark, state, arrow_to_spark(schema), layout, manifest)
        return select_names(files, [quoted(name) for name in schema.names])
    if not counts_rows(spark):
        return None
    stored = with_places(arrow_to_spark(sidecar_schema(schema)))
    files = _files(spark, state, stored, layout, manifest)
    return merged_rows(files, schema.names, state.storage, manifest)


def _is_newest(state: TableState, layout: Layout, manifest: Manifest) -> bool:
    return ManifestFolder(state.storage, layout).numbers()[-1:] == [manifest.number]


def _has_sidecars(manifest: Manifest) -> bool:
    """Return whether the logs of some slice change rows of its base file; after a compaction none do."""
    return any(label_of(line) >= MASKED_LABEL for line in manifest.lines)


def _is_native(state: TableState, manifest: Manifest, schema: pa.Schema, spark_version: str) -> bool:
    assert manifest.stamp is not None
    if not state.config.populate_meta_fields:
        return False
    if manifest.stamp.native:
        return True
    if load_schema_history(state.storage, state.timeline) is not None:
        return False
    inside = f"{manifest.stamp.base}/"
    paths = (uri.removeprefix(inside) for uri in manifest.uris())
    bases = [path for path in paths if not path.endswith(f".{EXTENSION}")]
    return natively_readable(state.storage, state.config, bases, schema, spark=release_of(spark_version))


def _files(
    spark: SparkSession,
    state: TableState,
    schema: StructType,
    layout: Layout,
    manifest: Manifest,
) -> DataFrame:
    reader = spark.read.format(V1_PARQUET).schema(schema).options(**_reader_options(state, layout))
    frame = reader.load(state.storage.uri(layout.folder))
    if not _is_newest(state, layout, manifest):
        raise ListMovedError(f"the list of files of {state.storage.base!r} moved on while Spark read it")
    return frame


def _reader_options(state: TableState, layout: Layout) -> dict[str, str]:
    if layout is Layout.FLAT:
        return {**AS_STORED, "recursiveFileLookup": "true"}
    return {**AS_STORED, "basePath": state.storage.uri()}
