"""Masks: which rows of a base file the logs of its slice replace or delete.

A bitmap by row number in the rows of a sidecar: one row for each run of 4096 base rows that has a masked one, 64 words of 64
bits. Such rows are in row groups of their own; their chunk number is null in live rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.damage import damaged_parquet

CHUNK_COLUMN = "_hoodie_delta_chunk"
WORDS_COLUMN = "_hoodie_delta_words"
MASK_COLUMNS = (CHUNK_COLUMN, WORDS_COLUMN)
CHUNK_BITS = 12
"""A mask row covers 2 ** CHUNK_BITS rows of the base file."""

WORD_BITS = 6
"""A word covers 2 ** WORD_BITS rows."""

_WORDS = 1 << (CHUNK_BITS - WORD_BITS)


def mask_table(positions: pa.Array | pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    """Turn row numbers of a base file, each once, into mask rows of a sidecar's schema."""
    # Mostly they are in order, which this kind of sorting only has to see.
    rows = np.sort(np.asarray(positions.to_numpy(zero_copy_only=False), dtype=np.int64), kind="stable")
    begins = np.diff(rows >> CHUNK_BITS, prepend=-1) != 0
    chunks = rows[begins] >> CHUNK_BITS
    flags = np.zeros((len(chunks), 1 << CHUNK_BITS), dtype=bool)
    flags[np.cumsum(begins) - 1, rows & ((1 << CHUNK_BITS) - 1)] = True
    bits = np.packbits(flags, axis=1, bitorder="little").view("<i8")
    offsets = pa.array(np.arange(len(chunks) + 1) * _WORDS, pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.array(bits.ravel()))
    columns: list[pa.Array] = [pa.nulls(len(chunks), field.type) for field in schema][:-2]
    return pa.Table.from_arrays(
        [*columns, pa.array(chunks), lists.cast(schema.field(WORDS_COLUMN).type)], schema=schema
    )


def masked_rows(mask: pa.Table) -> pa.Int64Array:
    """Turn mask rows back into row numbers of a base file, ascending."""
    if not mask.num_rows:
        return pa.array([], pa.int64())
    chunks = mask.column(CHUNK_COLUMN).to_numpy()
    words = pc.list_flatten(mask.column(WORDS_COLUMN).combine_chunks()).to_numpy(zero_copy_only=False)
    bits = np.unpackbits(
        words.astype("<i8").view(np.uint8).reshape(len(chunks), -1), axis=1, bitorder="little"
    )
    which, places = np.nonzero(bits)
    return pa.array(np.sort((chunks[which] << CHUNK_BITS) + places, kind="stable"), pa.int64())


def read_mask_words(storage: Storage, path: str, most: int) -> npt.NDArray[np.int64] | None:
    """Read the mask of a sidecar; word ``n`` covers rows ``64 n`` to ``64 n + 63``, the lowest bit the first of them.

    Returns:
        The words up to the last masked row, and at most 63 more; None for more than ``most``.
    """
    with storage.open_input(path) as source, damaged_parquet(f"sidecar {path!r} of {storage.base!r}"):
        file = pq.ParquetFile(source, page_checksum_verification=True)
        mask = file.read_row_groups(_groups_of_mask(file.metadata), [CHUNK_COLUMN, WORDS_COLUMN])
    mask = mask.filter(pc.is_valid(mask.column(CHUNK_COLUMN)))
    chunks = mask.column(CHUNK_COLUMN).to_numpy()
    count = int(chunks.max(initial=-1)) + 1
    if count * _WORDS > most:
        return None
    words = np.zeros((count, _WORDS), dtype=np.int64)
    words[chunks] = pc.list_flatten(mask.column(WORDS_COLUMN)).to_numpy().reshape(len(chunks), _WORDS)
    return words.ravel()


def _groups_of_mask(footer: pq.FileMetaData) -> list[int]:
    places = [n for n in range(footer.num_columns) if footer.schema.column(n).path == CHUNK_COLUMN]
    groups = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        nulls = [group.column(place).statistics for place in places]
        if not all(each is not None and each.null_count == group.num_rows for each in nulls):
            groups.append(number)
    return groups
