"""Rows of a published merge-on-read table: those of its base files that no log touches, and the live rows of the sidecars.

Masks of up to some megabytes go to Spark as one array of words, in which a row of a base file finds its bit by arithmetic.
Larger ones, or those of very many sidecars, are joined as the view of :mod:`hudi_engine.spark.catalog.spark_table` does it. Where
files are large, each has the place of its words in that array for a number.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.jvm.long_array import long_array
from hudi_engine.spark.read.numbered_files import NUMBER, ROW, NumberedFile, frame_of_numbered
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.table.snapshot.manifest_file import Manifest, decode_uri, files_in
from hudi_engine.table.snapshot.native import METADATA_COLUMN
from hudi_engine.table.snapshot.sidecar import (
    CHUNK_BITS,
    CHUNK_COLUMN,
    WORD_BITS,
    WORDS_COLUMN,
    read_mask_words,
)
from hudi_engine.table.snapshot.snapshot_files import DELTA_LABEL, MASKED_LABEL

logger = logging.getLogger(__name__)

_MAX_WORDS = 1 << 19
"""Four megabytes, which go into each task of Spark: the bits of 33 million rows."""
_MAX_NEAR, _MAX_FAR = 128, 32
"""Sidecars that are opened here, on a local disk and in an object store."""


@dataclass(frozen=True)
class Masks:
    """The masks of a table.

    Args:
        slots: For the ordinal of each slice, which of the slots its words have; -1 for none.
        width: Words a slot; no row behind them is masked.
    """

    slots: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    width: int


def read_masks(storage: Storage, sidecars: Mapping[int, str]) -> Masks | None:
    """Return masks; None where they are too many or too large, or one cannot be read.

    Args:
        sidecars: Paths of sidecars by the ordinals of their slices.
    """
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
    return Masks(slots, words.ravel(), width)


_LABEL, _POSITION = f"{METADATA_COLUMN}.file_modification_time", f"{METADATA_COLUMN}.row_index"
_ROW, _CHUNK, _WORDS, _WORD = "__hudi_row", "__hudi_chunk", "__hudi_words", "__hudi_word"
RESERVED = (METADATA_COLUMN, _ROW, _CHUNK, _WORDS, _WORD, NUMBER, ROW)
"""Names that no column of the table may have."""

_ORDINAL = (1 << 31) - 1
"""The bits of a label that are the ordinal of its slice."""

_MAX_NUMBERED, _LARGE_BYTES = 512, 2 << 20
"""Files that get numbers, and their mean size from which on that takes less time than a scan without them would."""


@dataclass(frozen=True)
class MaskedFiles:
    """The files of a manifest whose base files have masks.

    Args:
        masks: The masks, None where they are too many or too large to go to Spark as one array.
        mostly: Whether base files with a mask have more bytes than those without.
    """

    manifest: Manifest
    masks: Masks | None
    mostly: bool


def masked_files(storage: Storage, manifest: Manifest) -> MaskedFiles:
    """Read the masks of a manifest's sidecars."""
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
    return MaskedFiles(manifest, read_masks(storage, sidecars), masked >= plain)


def merged_rows(files: DataFrame, names: Sequence[str], found: MaskedFiles) -> DataFrame:
    """Return the rows of a table's snapshot.

    Args:
        files: The base files and sidecars of its manifest.
    """
    masks = found.masks
    if masks is not None:
        slots, words = (long_array(files.sparkSession, each) for each in (masks.slots, masks.words))
        if slots is not None and words is not None:
            return _kept(files, names, found, _is_masked(), _is_kept(masks, slots, words))
    return _joined(files, names)


def merged_rows_of_large_files(
    spark: SparkSession,
    schema: StructType,
    names: Sequence[str],
    storage: Storage,
    found: MaskedFiles,
    options: Mapping[str, str],
) -> DataFrame | None:
    """Return the rows of a table's snapshot, in less time than `merged_rows` where files are large.

    Args:
        found: The files of its manifest, with their masks.
        options: What Spark's reader is given to read the files of the manifest.

    Returns:
        None where files are small or very many, or their masks too large, or where this Spark does not take files with numbers.
    """
    manifest, masks = found.manifest, found.masks
    count = len(manifest.lines)
    if masks is None or count > _MAX_NUMBERED or manifest.size_bytes < _LARGE_BYTES * count:
        return None
    words = long_array(spark, masks.words)
    if words is None:
        return None
    numbered = [
        NumberedFile(decode_uri(uri.decode()), size, _begin(masks, label))
        for uri, size, label in files_in(manifest.lines)
    ]
    assert manifest.stamp is not None
    name = f"numbered-files-of-{manifest.number}-{manifest.stamp.instant}"
    files = frame_of_numbered(spark, storage, name, numbered, schema, options)
    if files is None:
        return None
    is_kept = _is_unset(masks, words, F.col(NUMBER), F.col(ROW))
    return _kept(files, names, found, F.col(NUMBER) >= 0, is_kept)


def _begin(masks: Masks, label: int) -> int:
    """Return where the words of a file's mask begin, -1 for a file that has none."""
    slot = int(masks.slots[label & _ORDINAL]) if MASKED_LABEL <= label < DELTA_LABEL else -1
    return -1 if slot < 0 else slot * masks.width


def _kept(
    files: DataFrame, names: Sequence[str], found: MaskedFiles, is_masked: Column, is_kept: Column
) -> DataFrame:
    """Return the rows that no mask names, of base files, and those that replace them."""
    columns, rows = named_columns(names), files.where(F.col(CHUNK_COLUMN).isNull())
    if found.mostly:
        return rows.where(~is_masked | is_kept).select(*columns)
    # Rows of files without a mask need not ask for it.
    unmasked = rows.where(~is_masked).select(*columns)
    return unmasked.unionByName(rows.where(is_masked & is_kept).select(*columns))


def named_columns(names: Sequence[str]) -> list[Column]:
    """Return columns by names, whatever those are."""
    return [F.col(quoted(name)) for name in names]


def _is_kept(masks: Masks, slots: Column, words: Column) -> Column:
    """Return whether a row of a file that has a mask is none that it names."""
    ordinal = F.expr(f"cast(unix_millis({_LABEL}) & {_ORDINAL} as int)")
    return _is_unset(masks, words, F.get(slots, ordinal) * masks.width, F.col(_POSITION))


def _is_unset(masks: Masks, words: Column, begin: Column, row: Column) -> Column:
    """Return whether the bit of a row is not set among the words that begin at a place."""
    in_word = (1 << WORD_BITS) - 1
    word = F.get(words, (begin + F.shiftright(row, WORD_BITS)).cast("int"))
    bit = F.call_function("shiftright", word, row.bitwiseAND(in_word).cast("int")).bitwiseAND(1)
    return (row >= masks.width << WORD_BITS) | (F.coalesce(bit, F.lit(0)) == 0)


def _is_masked() -> Column:
    """Return whether a row is of a base file that has a sidecar."""
    label = F.col(_LABEL)
    return (label >= _moment(MASKED_LABEL)) & (label < _moment(DELTA_LABEL))


def _joined(files: DataFrame, names: Sequence[str]) -> DataFrame:
    columns = named_columns(names)
    row, is_mask = F.col(_POSITION), F.col(CHUNK_COLUMN).isNotNull()
    plain = files.where(~_is_masked() & ~is_mask).select(*columns)
    base = files.where(_is_masked()).select(
        *columns,
        row.alias(_ROW),
        (_file(MASKED_LABEL) + F.shiftright(row, CHUNK_BITS)).alias(_CHUNK),
    )
    mask = files.where((F.col(_LABEL) >= _moment(DELTA_LABEL)) & is_mask).select(
        (_file(DELTA_LABEL) + F.col(CHUNK_COLUMN)).alias(_CHUNK), F.col(WORDS_COLUMN).alias(_WORDS)
    )
    word = F.expr(f"{_WORDS}[cast(shiftright({_ROW} & {(1 << CHUNK_BITS) - 1}, {WORD_BITS}) as int)]")
    is_kept = F.expr(f"shiftright({_WORD}, cast({_ROW} & {(1 << WORD_BITS) - 1} as int)) & 1 = 0")
    joined = base.join(F.broadcast(mask), _CHUNK, "left").withColumn(_WORD, word)
    return plain.unionByName(joined.where(F.col(_WORDS).isNull() | is_kept).select(*columns))


def _moment(label: int) -> Column:
    return F.expr(f"timestamp_millis({label})")


def _file(label: int) -> Column:
    """Put the slice's ordinal into the upper half of a 64-bit number; its chunk goes into the lower half."""
    return F.expr(f"shiftleft(unix_millis({_LABEL}) - {label}, 32)")
