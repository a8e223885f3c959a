"""A manifest of very many files as a DataFrame, without Spark's own reading of it.

Spark turns a manifest line by line into objects, and through so much of its code that a first table of 100,000 files costs
Java eight seconds of CPU, more than half of them to compile that code.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.jvm.errors import JVM_ERRORS
from hudi_engine.spark.jvm.file_index import filled_index, frame_of_index
from hudi_engine.table.snapshot.manifest_file import Manifest, decode_uri, files_in

logger = logging.getLogger(__name__)

FEWEST = 20_000
"""Files from which on it is worth it."""


def frame_of_files(
    spark: SparkSession, storage: Storage, manifest: Manifest, schema: StructType, options: Mapping[str, str]
) -> DataFrame | None:
    """Return rows of Parquet files.

    Args:
        options: Options of Spark's reader, such as ``basePath``.

    Returns:
        None where this Spark does not take an index that is made so.
    """
    assert manifest.stamp is not None
    name = f"files-of-{manifest.number}-{manifest.stamp.instant}"
    files = [
        (decode_uri(uri.decode()).encode() if b"%" in uri else uri, size, modified)
        for uri, size, modified in files_in(manifest.lines)
    ]
    try:
        index = filled_index(spark, storage, name, files, schema, options)
        return None if index is None else frame_of_index(spark, index, schema, options)
    except JVM_ERRORS as error:
        logger.debug("%s is read by its manifest, for Spark took no index: %s", storage.base, error)
        return None
