"""The rows that fail a test, as a table can hold them: a test may select what no table has."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from pyspark.sql import types as T


def failures_query(query: str, columns: T.StructType) -> str:
    """Return the query of a test as one of which a table can be made.

    It may select count(*), two columns of one name, or a type that a Hudi table cannot hold: of that the text is kept, of a
    timestamp without a time zone the moment that it is in the session's.
    """
    names = [quoted(name) for name in legal_names(columns.names)]
    held = [_held(name, each.dataType) for name, each in zip(names, columns.fields, strict=True)]
    chosen = "*" if held == names else ", ".join(held)
    return f"select {chosen} from (\n{query}\n) as failures ({', '.join(names)})"


def _held(name: str, kind: T.DataType) -> str:
    try:
        spark_to_arrow(T.StructType([T.StructField("value", kind)]))
    except SchemaError:
        other = "timestamp" if isinstance(kind, T.TimestampNTZType) else "string"
        return f"cast({name} as {other}) as {name}"
    return name


def legal_names(names: Sequence[str]) -> list[str]:
    """Names that Avro allows, each once; those that are legal stay."""
    found: list[str] = []
    taken = {name.lower() for name in names}
    for name in names:
        legal = re.sub(r"^(?=\d)", "_", re.sub(r"\W", "_", name, flags=re.ASCII)) or "_"
        number = 2
        while legal.lower() in {each.lower() for each in found} or (legal != name and legal.lower() in taken):
            legal, number = f"{legal.rstrip('_0123456789') or '_'}_{number}", number + 1
        found.append(legal)
    return found
