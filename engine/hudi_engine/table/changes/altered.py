"""What became of a table's columns since a reader of its changes was made: in those of then its rows would lose values."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hudi_engine.format.schema.sql_names import spark_name


def alterations(made: pa.DataType, now: pa.DataType, *, chosen: bool, path: str = "") -> Iterator[str]:
    """Yield what is said of each column, or field of one, that is another by now; their order is nothing.

    Args:
        made: Columns of the reader, as a struct.
        chosen: The reader was asked for some of the columns, so that others are left out.
        path: Path of what holds the fields, which begins with a dot.
    """
    if pa.types.is_struct(made) and pa.types.is_struct(now):
        known, there = ({field.name: field.type for field in kind} for kind in (made, now))
        for name, kind in known.items():
            if name in there:
                yield from alterations(kind, there[name], chosen=chosen, path=f"{path}.{name}")
            else:
                yield f"{_name(path, name)} was renamed or dropped"
        if not chosen:
            yield from (f"{_name(path, name)} is new" for name in there if name not in known)
    elif pa.types.is_list(made) and pa.types.is_list(now):
        yield from alterations(made.value_type, now.value_type, chosen=chosen, path=f"{path}.element")
    elif pa.types.is_map(made) and pa.types.is_map(now):
        yield from alterations(made.item_type, now.item_type, chosen=chosen, path=f"{path}.value")
    elif spark_name(made) != spark_name(now):
        yield f"{path[1:]!r} was {spark_name(made)} and is {spark_name(now)}"


def _name(path: str, name: str) -> str:
    return repr(f"{path}.{name}"[1:])
