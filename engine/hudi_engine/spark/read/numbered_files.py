"""Files of a table with a number each, which rows have in a column, and their places in their files in another.

Spark gives rows what it knows of their file in a struct, which it makes anew for each row: of six million rows that took a
fifth of a scan. A value of a partition column costs nothing, and neither does a column that the Parquet reader fills
itself. So each file is listed in a folder of its own, whose name says its number as those of partitions say their values, and
gets its true path once Spark has read the folders.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, LongType, StructType

from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.jvm.errors import API_ERRORS
from hudi_engine.spark.jvm.file_index import filled_index, frame_of_index
from hudi_engine.spark.jvm.session import gateway
from hudi_engine.table.snapshot.native import ROW_INDEX_COLUMN

logger = logging.getLogger(__name__)

NUMBER, ROW = "__hudi_number", ROW_INDEX_COLUMN
"""The columns; by the second name Spark's Parquet reader knows that it has to count rows."""


@dataclass(frozen=True)
class NumberedFile:
    """A file of Parquet.

    Args:
        size: Its bytes.
        number: The number of its rows, of 32 bits.
    """

    path: str
    size: int
    number: int


def frame_of_numbered(
    spark: SparkSession,
    storage: Storage,
    name: str,
    files: Sequence[NumberedFile],
    schema: StructType,
    options: Mapping[str, str],
) -> DataFrame | None:
    """Return rows of Parquet files with ``NUMBER``, and with ``ROW``, which counts the rows of each file from 0.

    Args:
        name: A name that these files with these numbers alone have.
        options: Options of Spark's reader; those with ``basePath`` get partition columns from names of folders.

    Returns:
        None where this Spark does not take such files.
    """
    jvm = gateway(spark)
    parquet = jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
    stored = StructType([*schema.fields]).add(ROW, LongType())
    base = storage.uri()
    listed = {key: value for key, value in options.items() if key != "recursiveFileLookup"} | {
        "basePath": base
    }
    by_folder = "basePath" in options
    places = [
        f"{each.path.rpartition('/')[0] if by_folder else base}/{NUMBER}={each.number}/{place}"
        for place, each in enumerate(files)
    ]
    records = [(place.encode(), each.size, 0) for place, each in zip(places, files, strict=True)]
    try:
        if parquet.ROW_INDEX_TEMPORARY_COLUMN_NAME() != ROW:
            return None
        index = filled_index(
            spark, storage, name, records, StructType([*stored.fields]).add(NUMBER, IntegerType()), listed
        )
        if index is None or NUMBER not in list(index.java.partitionSchema().fieldNames()):
            return None
        for place, each in enumerate(files):
            index.statuses[place].setPath(jvm.org.apache.hadoop.fs.Path(each.path))
        return frame_of_index(spark, index, stored, listed)
    except API_ERRORS as error:
        logger.debug("%s is read by labels, for Spark took no index: %s", storage.base, error)
        return None
