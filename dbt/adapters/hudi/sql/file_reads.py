"""Files that a query reads by their path, such as ``parquet.`landing/orders```."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from hudi_engine.catalog.sql_text import identifier

from dbt.adapters.hudi.sql.plans import JavaPlan
from dbt.adapters.hudi.sql.substituted import places_of_tables

_FORMATS = frozenset(("parquet", "csv", "json", "orc", "text", "avro", "binaryfile"))
_ROOTED = re.compile(r"/|[A-Za-z][\w+.-]*:")


def with_absolute_files(
    sql: str, plan: JavaPlan, folder: str | None, is_schema: Callable[[str], bool]
) -> str:
    """Return a statement with the files that it reads by path named from the root.

    Args:
        sql: The statement.
        plan: Its plan, as it was parsed.
        folder: Folder that relative paths count from; None leaves them as they are.
        is_schema: Whether there is a schema of a name: where one is called like a format, no file is meant. It costs a round trip.
    """
    if folder is None:
        return sql
    root, pieces, position = Path(folder).resolve(), [], 0
    for start, end, parts, _ in sorted(places_of_tables(plan)):
        kind = parts[0].lower()
        if len(parts) != 2 or kind not in _FORMATS or _ROOTED.match(parts[1]) or is_schema(kind):
            continue
        pieces += [sql[position:start], f"{parts[0]}.{identifier(str(root / parts[1]))}"]
        position = end
    return "".join([*pieces, sql[position:]])
