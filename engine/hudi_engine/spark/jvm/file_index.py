"""An index of files that Spark is handed instead of one that it makes of a folder.

Files become records that Hadoop reads itself (``FileStatus`` as a ``Writable``, fields of ``FSProtos.FileStatusProto``), and
Spark gets the file index that it makes of a folder, already filled. The plan is the same: a native scan of exactly these
files, pruned by partitions.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.jvm.session import gateway, java_session
from hudi_engine.table.snapshot.manifest_file import CATALOG_FOLDER

_CHUNK = 20_000
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True)
class FileIndex:
    """Spark's index of some files.

    Args:
        statuses: Java's array of its files, in the order in which they were given.
    """

    java: Any
    statuses: Any


def filled_index(
    spark: SparkSession,
    storage: Storage,
    name: str,
    files: Sequence[tuple[bytes, int, int]],
    schema: StructType,
    options: Mapping[str, str],
) -> FileIndex | None:
    """Return an index of files.

    Args:
        name: What Spark tells indexes apart by; of two of one name it takes what it keeps of one for the other.
        files: The path, not percent-encoded, the bytes and the modification time of each.
        options: Options of Spark's reader, such as ``basePath``.

    Returns:
        None where the session keeps no cache of files, or one that is too small.

    Raises:
        API_ERRORS: This Spark makes indexes in another way.
    """
    jvm, session = gateway(spark), java_session(spark)
    sources = jvm.org.apache.spark.sql.execution.datasources
    # Spark looks no further than its cache. Should it ever read the places anew, it finds the first, which is no Parquet. It
    # takes lists of the same places for the same rows, and answers the one with what it keeps of the other: the second, at
    # which nothing is, is of this list alone.
    names = (PROPERTIES_PATH, f"{CATALOG_FOLDER}/{name}")
    filled, alone = (jvm.org.apache.hadoop.fs.Path(storage.uri(each)) for each in names)
    cache = sources.FileStatusCache.getOrCreate(session)
    statuses = _statuses(spark, files)
    cache.putLeafFiles(filled, statuses)
    cache.putLeafFiles(alone, _statuses(spark, ()))
    if not cache.getLeafFiles(filled).isDefined():
        return None
    places = jvm.PythonUtils.toSeq([filled, alone])
    some, none = jvm.scala.Option.apply(_java_schema(spark, schema)), jvm.scala.Option.apply(None)
    given = jvm.PythonUtils.toScalaMap(dict(options))
    index = sources.InMemoryFileIndex(session, places, given, some, cache, none, none)
    cache.invalidateAll()  # what this index alone would ask for, and has now
    return FileIndex(index, statuses) if index.allFiles().size() == len(files) else None


def frame_of_index(
    spark: SparkSession, index: FileIndex, schema: StructType, options: Mapping[str, str]
) -> DataFrame:
    """Return rows of the Parquet files of an index; see `filled_index`."""
    jvm, session = gateway(spark), java_session(spark)
    sources = jvm.org.apache.spark.sql.execution.datasources
    relation = sources.HadoopFsRelation(
        index.java,
        index.java.partitionSchema(),
        _java_schema(spark, schema),
        jvm.scala.Option.apply(None),
        sources.parquet.ParquetFileFormat(),
        jvm.PythonUtils.toScalaMap(dict(options)),
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _java_schema(spark: SparkSession, schema: StructType) -> Any:
    return java_session(spark).parseDataType(schema.json())


def _statuses(spark: SparkSession, files: Sequence[tuple[bytes, int, int]]) -> Any:
    """Return Java's array with the status of each file, made by two threads."""
    jvm = gateway(spark)
    arrays: Any = spark.sparkContext._gateway
    kind = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileStatus")
    made = arrays.new_array(jvm.org.apache.hadoop.fs.FileStatus, len(files))

    def make(start: int) -> None:
        chunk = files[start : start + _CHUNK]
        read = jvm.org.apache.hadoop.io.ArrayWritable(kind)
        # through a file, as Python hands bytes to Java as text
        with tempfile.NamedTemporaryFile(prefix="hudi-files-") as file:
            file.write(_records(chunk))
            file.flush()
            opened = jvm.java.io.FileInputStream(os.path.realpath(file.name))
            stream = jvm.java.io.DataInputStream(jvm.java.io.BufferedInputStream(opened))
            try:
                read.readFields(stream)
            finally:
                stream.close()
        jvm.java.lang.System.arraycopy(read.get(), 0, made, start, len(chunk))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(make, range(0, len(files), _CHUNK)))
    return made


def _records(files: Sequence[tuple[bytes, int, int]]) -> bytes:
    """Return files in the form in which Hadoop's ``ArrayWritable`` reads ``FileStatus``."""
    parts = [_LENGTH.pack(len(files))]
    # fields 10 and 11: one replica, blocks of 128 MiB, as in the manifest
    tail = b"\x50\x01\x58" + _varint(128 * 1024 * 1024)
    for path, size, modified in files:
        record = b"".join(
            (
                b"\x08\x02\x12",  # field 1: a file; field 2: its path
                _varint(len(path)),
                path,
                b"\x18",  # field 3: its length
                _varint(size),
                b"\x38",  # field 7: its modification time
                _varint(modified),
                tail,
            )
        )
        parts += (_LENGTH.pack(len(record)), record)
    return b"".join(parts)


@lru_cache(maxsize=4096)
def _varint(number: int) -> bytes:
    """Return a number as Protocol Buffers write it: seven bits a byte, the lowest first."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
