"""What became of a table's columns since a reader of its changes was made: in those of then its rows would lose values."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hudi_engine.format.schema.nested import paired_parts
from hudi_engine.format.schema.sql_names import spark_name


def alterations(made: pa.DataType, now: pa.DataType, *, chosen: bool, path: str = "") -> Iterator[str]:
    """Yield what is said of each column, or field of one, that is another by now; their order is nothing.

    Args:
        made: Columns of the reader, as a struct.
        chosen: The reader was asked for some of the columns, so that others are left out.
        path: Path of what holds the fields, which begins with a dot.
    """
    pairs = paired_parts(made, now)
    if pairs is None:
        if spark_name(made) != spark_name(now):
            yield f"{path[1:]!r} was {spark_name(made)} and is {spark_name(now)}"
        return
    for name, before, after in pairs:
        if before is not None and after is not None:
            yield from alterations(before, after, chosen=chosen, path=f"{path}.{name}")
        elif after is None:
            yield f"{_name(path, name)} was renamed or dropped"
        elif not chosen:
            yield f"{_name(path, name)} is new"


def _name(path: str, name: str) -> str:
    return repr(f"{path}.{name}"[1:])
