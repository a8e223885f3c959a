"""Rows of a published merge-on-read table: those of its base files that no log touches, and the live rows of the sidecars.

Masks of up to some megabytes go to Spark as one array of words, in which a row of a base file finds its bit by arithmetic.
Larger ones, or those of very many sidecars, are joined, as in the view of :mod:`hudi_engine.spark.catalog.spark_table`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from hudi_engine.format.parallel import on_threads
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.jvm.errors import API_ERRORS
from hudi_engine.spark.jvm.frames import select_names
from hudi_engine.spark.jvm.long_array import long_array
from hudi_engine.spark.jvm.session import gateway
from hudi_engine.table.snapshot.manifest_file import Manifest, decode_uri, files_in
from hudi_engine.table.snapshot.native import METADATA_COLUMN, ROW_INDEX_COLUMN
from hudi_engine.table.snapshot.sidecar import (
    CHUNK_BITS,
    CHUNK_COLUMN,
    WORD_BITS,
    WORDS_COLUMN,
    read_mask_words,
)
from hudi_engine.table.snapshot.snapshot_files import DELTA_LABEL, MASKED_LABEL

logger = logging.getLogger(__name__)

_LABEL = f"{METADATA_COLUMN}.file_modification_time"
_ROW, _CHUNK, _WORDS, _WORD = "__hudi_row", "__hudi_chunk", "__hudi_words", "__hudi_word"
RESERVED = (METADATA_COLUMN, ROW_INDEX_COLUMN, _ROW, _CHUNK, _WORDS, _WORD)
"""Names that no column of the table may have."""

_ORDINAL = (1 << 31) - 1
"""The bits of a label that are the ordinal of its slice."""
_MAX_WORDS = 1 << 19
"""Four megabytes, which go into each task of Spark: the bits of 33 million rows."""
_MAX_NEAR, _MAX_FAR = 128, 32
"""Sidecars that are opened here, on a local disk and in an object store."""


@dataclass(frozen=True)
class _Masks:
    """The masks of a table.

    Args:
        slots: For the ordinal of each slice, which of the slots its words have; -1 for none.
        width: Words of a slot; no row behind them is masked.
    """

    slots: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    width: int


def counts_rows(spark: SparkSession) -> bool:
    """Return whether this Spark's Parquet reader fills the column of places; another release may call it otherwise."""
    parquet = gateway(spark).org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
    try:
        return bool(parquet.ROW_INDEX_TEMPORARY_COLUMN_NAME() == ROW_INDEX_COLUMN)
    except API_ERRORS as error:
        logger.debug("rows are counted by tasks: %s", error)
        return False


def with_places(schema: StructType) -> StructType:
    """Return columns to read with the places of rows, which Spark's Parquet reader fills in.

    Asked for as ``_metadata.row_index``, each would come in an object of its own.
    """
    return StructType([*schema.fields]).add(ROW_INDEX_COLUMN, LongType())


def merged_rows(files: DataFrame, names: Sequence[str], storage: Storage, manifest: Manifest) -> DataFrame:
    """Return the rows of a table's snapshot.

    Args:
        files: The base files and sidecars of its manifest, in columns that `with_places` returns.
    """
    assert manifest.stamp is not None
    inside = f"{manifest.stamp.base}/"
    sidecars, masked, plain = {}, 0, 0
    for uri, size, label in files_in(manifest.lines):
        if label >= DELTA_LABEL:
            sidecars[label - DELTA_LABEL] = decode_uri(uri.decode()).removeprefix(inside)
        elif label >= MASKED_LABEL:
            masked += size
        else:
            plain += size
    masks = _read_masks(storage, sidecars)
    if masks is not None:
        slots, words = (long_array(files.sparkSession, each) for each in (masks.slots, masks.words))
        if slots is not None and words is not None:
            return _kept(files, names, _is_kept(masks, slots, words), together=masked >= plain)
    return _joined(files, names)


def _kept(files: DataFrame, names: Sequence[str], is_kept: Column, *, together: bool) -> DataFrame:
    """Return rows of base files that no mask names, and live rows; ``together`` if most bytes are of files with a mask."""
    columns, rows = [quoted(name) for name in names], files.where(F.col(CHUNK_COLUMN).isNull())
    if together:
        return select_names(rows.where(~_is_masked() | is_kept), columns)
    # Rows of files without a mask need no look-up.
    unmasked = select_names(rows.where(~_is_masked()), columns)
    return unmasked.unionByName(select_names(rows.where(_is_masked() & is_kept), columns))


def _is_kept(masks: _Masks, slots: Column, words: Column) -> Column:
    """Return whether the bit of a row is not set, for a row of a file that has a mask."""
    row, in_word = F.col(ROW_INDEX_COLUMN), (1 << WORD_BITS) - 1
    ordinal = F.expr(f"cast(unix_millis({_LABEL}) & {_ORDINAL} as int)")
    begin = F.get(slots, ordinal) * masks.width
    word = F.get(words, (begin + F.shiftright(row, WORD_BITS)).cast("int"))
    bit = F.call_function("shiftright", word, row.bitwiseAND(in_word).cast("int")).bitwiseAND(1)
    return (row >= masks.width << WORD_BITS) | (F.coalesce(bit, F.lit(0)) == 0)


def _is_masked() -> Column:
    """Return whether a row is of a base file that has a sidecar."""
    label = F.col(_LABEL)
    return (label >= _moment(MASKED_LABEL)) & (label < _moment(DELTA_LABEL))


def _joined(files: DataFrame, names: Sequence[str]) -> DataFrame:
    columns = [quoted(name) for name in names]
    row, is_mask = F.col(ROW_INDEX_COLUMN), F.col(CHUNK_COLUMN).isNotNull()
    plain = select_names(files.where(~_is_masked() & ~is_mask), columns)
    chunk = _file(MASKED_LABEL) + F.shiftright(row, CHUNK_BITS)
    base = select_names(
        files.where(_is_masked()).withColumns({_ROW: row, _CHUNK: chunk}), [*columns, _ROW, _CHUNK]
    )
    mask = files.where((F.col(_LABEL) >= _moment(DELTA_LABEL)) & is_mask).select(
        (_file(DELTA_LABEL) + F.col(CHUNK_COLUMN)).alias(_CHUNK), F.col(WORDS_COLUMN).alias(_WORDS)
    )
    word = F.expr(f"{_WORDS}[cast(shiftright({_ROW} & {(1 << CHUNK_BITS) - 1}, {WORD_BITS}) as int)]")
    is_kept = F.expr(f"shiftright({_WORD}, cast({_ROW} & {(1 << WORD_BITS) - 1} as int)) & 1 = 0")
    joined = base.join(F.broadcast(mask), _CHUNK, "left").withColumn(_WORD, word)
    return plain.unionByName(select_names(joined.where(F.col(_WORDS).isNull() | is_kept), columns))


def _moment(label: int) -> Column:
    return F.expr(f"timestamp_millis({label})")


def _file(label: int) -> Column:
    """Put the slice's ordinal into the upper half of a 64-bit number; its chunk goes into the lower half."""
    return F.expr(f"shiftleft(unix_millis({_LABEL}) - {label}, 32)")


def _read_masks(storage: Storage, sidecars: dict[int, str]) -> _Masks | None:
    """Read masks by the ordinals of their slices; None where they are too many or too large, or one cannot be read."""
    if len(sidecars) > (_MAX_NEAR if storage.is_near else _MAX_FAR):
        return None
    most = _MAX_WORDS // max(len(sidecars), 1)
    try:
        found = on_threads(lambda path: read_mask_words(storage, path, most), list(sidecars.values()))
    except (OSError, LookupError, ValueError, pa.ArrowException) as error:
        logger.debug("Spark is left to read the masks of %s: %s", storage.base, error)
        return None
    some = [each for each in found if each is not None]
    if len(some) < len(found):
        return None
    width = max(map(len, some), default=0)
    words = np.zeros((len(some), width), dtype=np.int64)
    slots = np.full(max(sidecars, default=0) + 1, -1, dtype=np.int64)
    for slot, (ordinal, each) in enumerate(zip(sidecars, some, strict=True)):
        words[slot, : len(each)] = each
        slots[ordinal] = slot
    return _Masks(slots, words.ravel(), width)
