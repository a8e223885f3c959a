"""Whether a base file gave as many rows as its footer tells; rows that are missing must not look as if they never were."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.errors import CorruptTableError


def check_row_count(path: str, file: pq.ParquetFile, columns: Sequence[str], found: int, told: int) -> None:
    """Refuse rows of a base file when the footer tells of another number of them.

    A column may end before the others: pyarrow stops where a page of a repeated column holds no value.
    """
    if found == told:
        return
    short = ", ".join(repr(name) for name in columns if not _is_whole(file, name))
    raise CorruptTableError(
        f"base file {path!r} cannot be read: its footer tells {told} rows of what was read, but {found} came; "
        f"{'column ' + short if short else 'a column'} ends before the file does. "
        "Write the rows again from their source, or read the file with Spark, which may read more of it"
    )


def _is_whole(file: pq.ParquetFile, column: str) -> bool:
    try:
        return int(file.read(columns=[column]).num_rows) == int(file.metadata.num_rows)
    except (pa.ArrowInvalid, OSError):
        return False
