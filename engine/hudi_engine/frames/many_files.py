"""A manifest of very many files as a DataFrame, without Spark's own reading of it.

Spark turns a manifest line by line into objects, and through so much of its code that a first table of 100,000 files costs
Java eight seconds of CPU, more than half of them to compile that code. Here the lines become records that Hadoop reads itself
(``FileStatus`` as a ``Writable``, fields of ``FSProtos.FileStatusProto``), and Spark gets the file index that it makes of a
folder, already filled. The plan is the same: a native scan of exactly these files, pruned by partitions.
"""

from __future__ import annotations

import logging
import os
import struct
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hudi_engine.config.properties_file import PROPERTIES_PATH
from hudi_engine.publish.manifest_file import CATALOG_FOLDER, Manifest, decode_uri, files_in
from hudi_engine.storage.base import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

logger = logging.getLogger(__name__)

FEWEST = 20_000
"""Files from which on it is worth it."""
_CHUNK = 20_000
_LENGTH = struct.Struct(">i")


def frame_of_files(
    spark: SparkSession, storage: Storage, manifest: Manifest, schema: StructType, options: Mapping[str, str]
) -> DataFrame | None:
    """Return rows of Parquet files.

    Args:
        spark: The session.
        storage: The table's storage.
        manifest: The list of files.
        schema: Columns of the result.
        options: Options of Spark's reader, such as ``basePath``.

    Returns:
        None where this Spark does not take an index that is made so.
    """
    from py4j.protocol import Py4JError

    try:
        index = _index(spark, storage, manifest, schema, options)
        return None if index is None else _frame(spark, index, schema, options)
    except Py4JError as error:
        logger.debug("%s is read by its manifest, for Spark took no index: %s", storage.base, error)
        return None


def _index(
    spark: SparkSession, storage: Storage, manifest: Manifest, schema: StructType, options: Mapping[str, str]
) -> Any:
    jvm: Any = spark._jvm
    session, sources = spark._jsparkSession, jvm.org.apache.spark.sql.execution.datasources
    # Spark looks no further than its cache. Should it ever read the places anew, it finds the first, which is no Parquet. It
    # takes lists of the same places for the same rows, and answers the one with what it keeps of the other: the second, at
    # which nothing is, is of this list alone.
    names = (PROPERTIES_PATH, f"{CATALOG_FOLDER}/files-of-{manifest.number}")
    files, alone = (jvm.org.apache.hadoop.fs.Path(storage.uri(name)) for name in names)
    cache = sources.FileStatusCache.getOrCreate(session)
    cache.putLeafFiles(files, _statuses(spark, manifest.lines))
    cache.putLeafFiles(alone, _statuses(spark, ()))
    if not cache.getLeafFiles(files).isDefined():
        return None  # the session keeps no such cache, or one that is too small
    places = jvm.PythonUtils.toSeq([files, alone])
    some, none = jvm.scala.Option.apply(_java_schema(spark, schema)), jvm.scala.Option.apply(None)
    given = jvm.PythonUtils.toScalaMap(dict(options))
    index = sources.InMemoryFileIndex(session, places, given, some, cache, none, none)
    return index if index.allFiles().size() == len(manifest.lines) else None


def _frame(spark: SparkSession, index: Any, schema: StructType, options: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import DataFrame

    jvm: Any = spark._jvm
    session, sources = spark._jsparkSession, jvm.org.apache.spark.sql.execution.datasources
    relation = sources.HadoopFsRelation(
        index,
        index.partitionSchema(),
        _java_schema(spark, schema),
        jvm.scala.Option.apply(None),
        sources.parquet.ParquetFileFormat(),
        jvm.PythonUtils.toScalaMap(dict(options)),
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _java_schema(spark: SparkSession, schema: StructType) -> Any:
    return spark._jsparkSession.parseDataType(schema.json())


def _statuses(spark: SparkSession, lines: Sequence[bytes]) -> Any:
    """Return Java's array with the status of each file, made by two threads."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    kind = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileStatus")
    made = gateway.new_array(jvm.org.apache.hadoop.fs.FileStatus, len(lines))

    def make(start: int) -> None:
        chunk = lines[start : start + _CHUNK]
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
        list(pool.map(make, range(0, len(lines), _CHUNK)))
    return made


def _records(lines: Sequence[bytes]) -> bytes:
    """Return files in the form in which Hadoop's ``ArrayWritable`` reads ``FileStatus``."""
    parts = [_LENGTH.pack(len(lines))]
    # fields 10 and 11: one replica, blocks of 128 MiB, as in the manifest
    tail = b"\x50\x01\x58" + _varint(128 * 1024 * 1024)
    for uri, size, modified in files_in(lines):
        path = decode_uri(uri.decode()).encode() if b"%" in uri else uri
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
