"""A table's snapshot as a DataFrame with Hudi's meta columns, read through its manifest.

The same files as under a name of the catalog, without catalog entries, and for merge-on-read the same mask as the view of
:mod:`hudi_engine.catalog.snapshot_view`: logs were merged once, when the manifest was published, and every read after that
is Spark's own Parquet scan. No folder is listed, no footer is opened here, and hive-style folders are pruned by their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_engine.config.enums import TableType
from hudi_engine.frames import many_files
from hudi_engine.frames.session import prepare_session
from hudi_engine.merge.table_reader import load_schema_history
from hudi_engine.publish.manifest import current_manifest
from hudi_engine.publish.manifest_file import Layout, Manifest, label_of
from hudi_engine.publish.native import AS_STORED, major_of, natively_readable
from hudi_engine.publish.sidecar import CHUNK_BITS, CHUNK_COLUMN, EXTENSION, WORDS_COLUMN, sidecar_schema
from hudi_engine.publish.snapshot_files import DELTA_LABEL, MASKED_LABEL
from hudi_engine.schema.meta_fields import with_meta_columns
from hudi_engine.schema.spark_types import arrow_to_spark
from hudi_engine.table_state import TableState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_LABEL, _POSITION = "_metadata.file_modification_time", "_metadata.row_index"
_ROW, _CHUNK, _WORDS = "__hudi_row", "__hudi_chunk", "__hudi_words"
_RESERVED = ("_metadata", _ROW, _CHUNK, _WORDS)


def published_snapshot(spark: SparkSession, state: TableState) -> DataFrame | None:
    """Return rows of a table from its manifest, the five meta columns first.

    Args:
        spark: The session.
        state: The table.

    Returns:
        None when the manifest does not show this state, a write is about to give it other columns, or Spark cannot read
        the base files under its schema.
    """
    data_schema = state.data_schema()
    if data_schema is None or state.columns is not None:
        return None
    found = current_manifest(state.storage, state.timeline, state.config)
    if found is None or any(name.lower() in _RESERVED for name in data_schema.names):
        return None
    layout, manifest = found
    schema = with_meta_columns(data_schema, operation=state.config.keeps_operations)
    if not _is_native(state, manifest, schema, spark.version):
        return None
    if state.config.table_type is TableType.MERGE_ON_READ and _has_sidecars(manifest):
        return _masked(_files(spark, state, sidecar_schema(schema), layout, manifest), schema.names)
    return _files(spark, state, schema, layout, manifest).select(*_columns(schema.names))


def _has_sidecars(manifest: Manifest) -> bool:
    """Tell whether the logs of some slice change what its base file says; after a compaction none do."""
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
    return natively_readable(state.storage, state.config, bases, schema, spark_major=major_of(spark_version))


def _files(
    spark: SparkSession, state: TableState, schema: pa.Schema, layout: Layout, manifest: Manifest
) -> DataFrame:
    prepare_session(spark)
    struct, options = arrow_to_spark(schema), dict(AS_STORED)
    if layout is Layout.FLAT:
        options["recursiveFileLookup"] = "true"
    else:
        options["basePath"] = state.storage.uri()
    if len(manifest.lines) >= many_files.FEWEST:
        frame = many_files.frame_of_files(spark, state.storage, manifest.lines, struct, options)
        if frame is not None:
            return frame
    return spark.read.schema(struct).options(**options).parquet(state.storage.uri(layout.folder))


def _columns(names: Sequence[str]) -> list[Column]:
    from pyspark.sql import functions as F

    return [F.col(f"`{name.replace('`', '``')}`") for name in names]


def _masked(files: DataFrame, names: list[str]) -> DataFrame:
    from pyspark.sql import functions as F

    columns = _columns(names)
    label, masked, delta = F.col(_LABEL), _moment(MASKED_LABEL), _moment(DELTA_LABEL)
    is_mask = F.col(CHUNK_COLUMN).isNotNull()
    plain = files.where(((label < masked) | (label >= delta)) & ~is_mask).select(*columns)
    row = F.col(_POSITION)
    base = files.where((label >= masked) & (label < delta)).select(
        *columns,
        row.alias(_ROW),
        (_file(MASKED_LABEL) + F.shiftright(row, CHUNK_BITS)).alias(_CHUNK),
    )
    mask = files.where((label >= delta) & is_mask).select(
        (_file(DELTA_LABEL) + F.col(CHUNK_COLUMN)).alias(_CHUNK), F.col(WORDS_COLUMN).alias(_WORDS)
    )
    word = F.expr(f"{_WORDS}[cast(shiftright({_ROW} & {(1 << CHUNK_BITS) - 1}, 6) as int)]")
    is_kept = F.expr(f"shiftright(__hudi_word, cast({_ROW} & 63 as int)) & 1 = 0")
    joined = base.join(F.broadcast(mask), _CHUNK, "left").withColumn("__hudi_word", word)
    return plain.unionByName(joined.where(F.col(_WORDS).isNull() | is_kept).select(*columns))


def _moment(label: int):  # type: ignore[no-untyped-def]
    from pyspark.sql import functions as F

    return F.expr(f"timestamp_millis({label})")


def _file(label: int):  # type: ignore[no-untyped-def]
    """Put the slice's ordinal into the upper half of a 64-bit number; its chunk goes into the lower half."""
    from pyspark.sql import functions as F

    return F.expr(f"shiftleft(unix_millis({_LABEL}) - {label}, 32)")
