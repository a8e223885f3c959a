"""The query that shows a merge-on-read table's snapshot, all of it read by Spark's own Parquet scan.

One manifest lists base files and delta sidecars. The query reads it in two parts, told apart by the labels of
:mod:`hudi_engine.table.snapshot.snapshot_files`: base files whose slice has no delta together with the live rows of
the sidecars, as they are; and base files that have a delta, less the rows their mask names. The mask is joined
by the slice's ordinal and the row's position in its file, as one 64-bit number, and is small enough to
broadcast: at most one bit for each base row.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.spark.catalog.sql_text import TableName, identifier
from hudi_engine.table.snapshot.mask import CHUNK_BITS, CHUNK_COLUMN, WORDS_COLUMN
from hudi_engine.table.snapshot.native import METADATA_COLUMN
from hudi_engine.table.snapshot.snapshot_files import DELTA_LABEL, MASKED_LABEL

_LABEL = f"{METADATA_COLUMN}.file_modification_time"
_ROW = f"{METADATA_COLUMN}.row_index"
_BASE, _MASK = "_hoodie_base", "_hoodie_mask"
"""Names of the two sides of the join; a table has no columns that start so, which would win over them."""

_CHUNK_MASK = (1 << CHUNK_BITS) - 1
_CHUNKS_BITS = 32
"""Room for the chunk number: a file may have 2 ** (CHUNK_BITS + 32) rows."""


def snapshot_query(files: TableName, columns: Sequence[str]) -> str:
    """Return the SELECT of the snapshot.

    Args:
        files: The table over the manifest with base files and sidecars.

    Raises:
        UnsupportedTableError: when a column has the name of Spark's metadata column.
    """
    if any(column.lower() == METADATA_COLUMN for column in columns):
        raise UnsupportedTableError(
            f"{files.label} has a column {METADATA_COLUMN!r}, which hides Spark's own column of that name: a "
            "merge-on-read table cannot be merged then. Rename the column, or use a copy-on-write table"
        )
    masked, delta = f"timestamp_millis({MASKED_LABEL})", f"timestamp_millis({DELTA_LABEL})"
    names = ", ".join(identifier(column) for column in columns)
    based = ", ".join(f"{_BASE}.{identifier(column)}" for column in columns)
    label, row = f"{_BASE}.{_LABEL}", f"{_BASE}.{_ROW}"
    key = (
        f"shiftleft(unix_millis({label}) - {MASKED_LABEL}, {_CHUNKS_BITS}) + shiftright({row}, {CHUNK_BITS})"
    )
    word = f"{_MASK}.words[CAST(shiftright({row} & {_CHUNK_MASK}, 6) AS INT)]"
    kept = f"shiftright({word}, CAST({row} & 63 AS INT)) & 1 = 0"
    return (
        f"SELECT {names} FROM {files.sql}"
        f" WHERE ({_LABEL} < {masked} OR {_LABEL} >= {delta}) AND {CHUNK_COLUMN} IS NULL"
        f" UNION ALL SELECT /*+ BROADCAST({_MASK}) */ {based} FROM {files.sql} {_BASE} LEFT JOIN"
        f" (SELECT shiftleft(unix_millis({_LABEL}) - {DELTA_LABEL}, {_CHUNKS_BITS}) + {CHUNK_COLUMN}"
        f" AS chunk, {WORDS_COLUMN} AS words FROM {files.sql}"
        f" WHERE {_LABEL} >= {delta} AND {CHUNK_COLUMN} IS NOT NULL) {_MASK}"
        f" ON {_MASK}.chunk = {key}"
        f" WHERE {label} >= {masked} AND {label} < {delta} AND ({_MASK}.chunk IS NULL OR {kept})"
    )
