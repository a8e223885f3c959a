"""Handing Spark a list of files as a table, however many they are.

``DataFrameReader.parquet(*paths)`` looks at every path on the driver, and starts a job to list them. A manifest of the
kind that tables are published with says all that Spark wants to know, so nothing is listed, and hive-style folders give
partition values that Spark prunes by. It lies in a folder of this process, and goes when Spark has read it.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.snapshot.layout import choose_layout, column_is_null
from hudi_engine.table.snapshot.manifest_file import (
    FIRST_NUMBER,
    Layout,
    ManifestEntry,
    ManifestFolder,
    Stamp,
    format_line,
    format_manifest,
)
from hudi_engine.table.snapshot.native import AS_STORED, V1_PARQUET
from hudi_engine.table.state import TableState


def listed_files(
    spark: SparkSession, state: TableState, schema: pa.Schema, bases: Sequence[BaseFile]
) -> DataFrame:
    """Return rows of base files that Spark can read itself, in the columns of ``schema``."""
    folder = LocalStorage(tempfile.mkdtemp(dir=_folder()))
    layout = _layout(state, schema, bases)
    storage = state.storage
    lines = [
        format_line(ManifestEntry(storage.uri(base.path), base.size, base.modified_ms)) for base in bases
    ]
    stamp = Stamp(storage.uri(), state.config.table_type.value, "", ())
    ManifestFolder(folder, layout).create(FIRST_NUMBER, format_manifest(stamp, lines))
    reader = spark.read.format(V1_PARQUET).schema(arrow_to_spark(schema)).options(**AS_STORED)
    if layout is Layout.FLAT:
        reader = reader.option("recursiveFileLookup", "true")
    try:
        frame = reader.load(folder.uri(layout.folder))
    finally:
        shutil.rmtree(folder.base, ignore_errors=True)
    return frame.select(*[f"`{name.replace('`', '``')}`" for name in schema.names])


def _layout(state: TableState, schema: pa.Schema, bases: Sequence[BaseFile]) -> Layout:
    # Spark goes up from a file as long as folders are named column=value, and would not stop at such a base folder.
    if "=" in state.storage.uri().rpartition("/")[2]:
        return Layout.FLAT
    of_partition: dict[str, list[str]] = {}
    for base in bases:
        of_partition.setdefault(base.partition, []).append(base.path)

    def all_null(partition: str, column: str) -> bool:
        return all(column_is_null(state.storage, path, column) for path in of_partition[partition])

    return choose_layout(state.config, schema, of_partition, all_null)


@lru_cache(maxsize=1)
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="hudi-lists-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(Path(folder).resolve())
