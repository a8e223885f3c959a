"""The query that shows a merge-on-read table's snapshot, all of it read by Spark's own Parquet scan.

One manifest lists base files and delta sidecars. The query reads it in two parts, told apart by the labels of
:mod:`hudi_engine.catalog.snapshot_files`: base files whose slice has no delta together with the live rows of
the sidecars, as they are; and base files that have a delta, less the rows their mask names. The mask is joined
by the slice's ordinal and the row's position in its file, as one 64-bit number, and is small enough to
broadcast: at most one bit for each base row.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_engine.catalog.sidecar import CHUNK_BITS, CHUNK_COLUMN, WORDS_COLUMN
from hudi_engine.catalog.snapshot_files import DELTA_LABEL, MASKED_LABEL
from hudi_engine.catalog.sql_text import TableName, identifier

_LABEL = "_metadata.file_modification_time"
_ROW = "_metadata.row_index"
_CHUNK_MASK = (1 << CHUNK_BITS) - 1
_CHUNKS_BITS = 32
"""Room for the chunk number: a file may have 2 ** (CHUNK_BITS + 32) rows."""


def snapshot_query(files: TableName, columns: Sequence[str]) -> str:
    """Return the SELECT of the snapshot.

    Args:
        files: The table over the manifest with base files and sidecars.
        columns: The table's columns in order.
    """
    masked, delta = f"timestamp_millis({MASKED_LABEL})", f"timestamp_millis({DELTA_LABEL})"
    names = ", ".join(identifier(column) for column in columns)
    based = ", ".join(f"b.{identifier(column)}" for column in columns)
    key = f"shiftleft(unix_millis(b.{_LABEL}) - {MASKED_LABEL}, {_CHUNKS_BITS})"
    word = f"m.words[CAST(shiftright(b.{_ROW} & {_CHUNK_MASK}, 6) AS INT)]"
    kept = f"shiftright({word}, CAST(b.{_ROW} & 63 AS INT)) & 1 = 0"
    return (
        f"SELECT {names} FROM {files.sql}"
        f" WHERE ({_LABEL} < {masked} OR {_LABEL} >= {delta}) AND {CHUNK_COLUMN} IS NULL"
        f" UNION ALL SELECT /*+ BROADCAST(m) */ {based} FROM {files.sql} b LEFT JOIN"
        f" (SELECT shiftleft(unix_millis({_LABEL}) - {DELTA_LABEL}, {_CHUNKS_BITS}) + {CHUNK_COLUMN}"
        f" AS chunk, {WORDS_COLUMN} AS words FROM {files.sql}"
        f" WHERE {_LABEL} >= {delta} AND {CHUNK_COLUMN} IS NOT NULL) m"
        f" ON m.chunk = {key} + shiftright(b.{_ROW}, {CHUNK_BITS})"
        f" WHERE b.{_LABEL} >= {masked} AND b.{_LABEL} < {delta} AND (m.chunk IS NULL OR {kept})"
    )
