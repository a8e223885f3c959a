"""Rows of a published merge-on-read table: those of its base files that no log touches, and the live rows of the sidecars.

Masks of up to some megabytes go to Spark as one array of words, in which a row of a base file finds its bit by arithmetic.
Larger ones, or those of very many sidecars, are joined as the view of :mod:`hudi_engine.catalog.snapshot_view` does it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_engine.frames.long_array import long_array
from hudi_engine.parallel import on_threads
from hudi_engine.publish.manifest_file import Manifest, decode_uri, files_in
from hudi_engine.publish.mask import CHUNK_BITS, CHUNK_COLUMN, WORD_BITS, WORDS_COLUMN, read_mask_words
from hudi_engine.publish.native import METADATA_COLUMN
from hudi_engine.publish.snapshot_files import DELTA_LABEL, MASKED_LABEL
from hudi_engine.schema.fit import quoted
from hudi_engine.storage.base import Storage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

logger = logging.getLogger(__name__)

_LABEL, _POSITION = f"{METADATA_COLUMN}.file_modification_time", f"{METADATA_COLUMN}.row_index"
_ROW, _CHUNK, _WORDS, _WORD = "__hudi_row", "__hudi_chunk", "__hudi_words", "__hudi_word"
RESERVED = (METADATA_COLUMN, _ROW, _CHUNK, _WORDS, _WORD)
"""Names that no column of the table may have."""

_ORDINAL = (1 << 31) - 1
"""The bits of a label that are the ordinal of its slice."""

_MOST_WORDS = 1 << 19
"""Four megabytes, which go into each task of Spark: the bits of 33 million rows."""
_MOST_NEAR, _MOST_FAR = 128, 32
"""Sidecars that are opened here, on a local disk and in an object store."""


@dataclass(frozen=True)
class Masks:
    """The masks of a table.

    Args:
        slots: For the ordinal of each slice, which of the slots its words have; -1 for none.
        words: The slots, one after another.
        width: Words a slot; no row behind them is masked.
    """

    slots: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    width: int


def merged_rows(files: DataFrame, names: Sequence[str], storage: Storage, manifest: Manifest) -> DataFrame:
    """Return the rows of a table's snapshot.

    Args:
        files: The base files and sidecars of its manifest.
        names: The table's columns.
        storage: The table's storage.
        manifest: The manifest.
    """
    from pyspark.sql import functions as F

    sidecars, masked, plain = {}, 0, 0
    for uri, size, label in files_in(manifest.lines):
        if label >= DELTA_LABEL:
            sidecars[label - DELTA_LABEL] = decode_uri(uri.decode())
        elif label >= MASKED_LABEL:
            masked += size
        else:
            plain += size
    assert manifest.stamp is not None
    inside = f"{manifest.stamp.base}/"
    masks = _masks(storage, {number: uri.removeprefix(inside) for number, uri in sidecars.items()})
    arrays = None if masks is None else _arrays(files, masks)
    if masks is None or arrays is None:
        return _joined(files, names)
    columns, rows = named_columns(names), files.where(F.col(CHUNK_COLUMN).isNull())
    is_kept = _is_kept(masks, *arrays)
    if masked >= plain:
        return rows.where(is_kept).select(*columns)
    # Rows of files without a mask need not ask for it.
    unmasked = rows.where(~_is_masked()).select(*columns)
    return unmasked.unionByName(rows.where(_is_masked() & is_kept).select(*columns))


def named_columns(names: Sequence[str]) -> list[Column]:
    """Return columns by names, whatever those are."""
    from pyspark.sql import functions as F

    return [F.col(quoted(name)) for name in names]


def _masks(storage: Storage, sidecars: Mapping[int, str]) -> Masks | None:
    """Return the masks of sidecars by ordinal; None where they are too many or too large, or one cannot be read."""
    if len(sidecars) > (_MOST_NEAR if storage.is_near else _MOST_FAR):
        return None
    most = _MOST_WORDS // max(len(sidecars), 1)
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


def _arrays(files: DataFrame, masks: Masks) -> tuple[Column, Column] | None:
    slots, words = (long_array(files.sparkSession, each) for each in (masks.slots, masks.words))
    return None if slots is None or words is None else (slots, words)


def _is_kept(masks: Masks, slots: Column, words: Column) -> Column:
    """Tell whether a row is none that its file's mask names; those of sidecars and of files without a mask are all kept."""
    from pyspark.sql import functions as F

    row, in_word = F.col(_POSITION), (1 << WORD_BITS) - 1
    ordinal = F.expr(f"cast(unix_millis({_LABEL}) & {_ORDINAL} as int)")
    place = F.get(slots, ordinal) * masks.width + F.shiftright(row, WORD_BITS)
    word = F.get(words, place.cast("int"))
    bit = F.call_function("shiftright", word, row.bitwiseAND(in_word).cast("int")).bitwiseAND(1)
    is_behind = row >= masks.width << WORD_BITS
    return ~_is_masked() | is_behind | (F.coalesce(bit, F.lit(0)) == 0)


def _is_masked() -> Column:
    """Tell whether a row is of a base file that has a sidecar."""
    from pyspark.sql import functions as F

    label = F.col(_LABEL)
    return (label >= _moment(MASKED_LABEL)) & (label < _moment(DELTA_LABEL))


def _joined(files: DataFrame, names: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F

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
    from pyspark.sql import functions as F

    return F.expr(f"timestamp_millis({label})")


def _file(label: int) -> Column:
    """Put the slice's ordinal into the upper half of a 64-bit number; its chunk goes into the lower half."""
    from pyspark.sql import functions as F

    return F.expr(f"shiftleft(unix_millis({_LABEL}) - {label}, 32)")
