"""Files that a query reads by their path, such as ``parquet.`landing/orders```."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from hudi_engine.spark.catalog.sql_text import identifier
from hudi_engine.spark.jvm.plans import JavaPlan
from hudi_engine.spark.sql.table_names import with_tables_replaced

_FORMATS = frozenset(("parquet", "csv", "json", "orc", "text", "avro", "binaryfile"))
_ROOTED = re.compile(r"/|[A-Za-z][\w+.-]*:")


def with_absolute_files(
    sql: str, plan: JavaPlan, folder: str | None, is_schema: Callable[[str], bool]
) -> str:
    """Return a statement with the files that it reads by path named from the root.

    Args:
        folder: Folder that relative paths count from; None leaves them as they are.
        is_schema: Whether there is a schema of a name: where one is called like a format, no file is meant. It costs a round trip.
    """
    lowered = sql.lower()
    if folder is None or not any(
        kind in lowered for kind in _FORMATS
    ):  # a look into the plan is many round trips
        return sql
    root = Path(folder).resolve()

    def instead(parts: list[str], _has_alias: bool) -> str | None:
        kind = parts[0].lower()
        if len(parts) != 2 or kind not in _FORMATS or _ROOTED.match(parts[1]) or is_schema(kind):
            return None
        return f"{parts[0]}.{identifier(str(root / parts[1]))}"

    return with_tables_replaced(sql, plan, instead)
