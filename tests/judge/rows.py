"""One plain form of rows, so that the answers of different readers can be compared with ``==``.

A row is a dict of column name to a JSON value: dates and timestamps ISO text (timestamps in UTC), decimals
text, binary Latin-1 text, structs dicts, maps sorted lists of ``[key, value]``, NaN and infinities the texts
``NaN``, ``Infinity`` and ``-Infinity``. This file is used by the process under test and by the one that runs
Apache Hudi; it needs neither pyarrow nor pyspark.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

COMMIT_TIME, RECORD_KEY, PARTITION_PATH = (
    "_hoodie_commit_time",
    "_hoodie_record_key",
    "_hoodie_partition_path",
)
NOT_COMPARED = ("_hoodie_commit_seqno", "_hoodie_file_name", "_hoodie_operation")
META = (COMMIT_TIME, RECORD_KEY, PARTITION_PATH, *NOT_COMPARED)


def plain(value: Any) -> Any:
    """Turn one value of a reader into its plain form."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else value
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return value.isoformat(timespec="microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("latin-1")
    if hasattr(value, "asDict"):
        return {name: plain(item) for name, item in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def plain_map(items: Iterable[tuple[Any, Any]]) -> list[list[Any]]:
    """Turn the entries of a map into their plain form."""
    return sorted([plain(key), plain(value)] for key, value in items)


def ordered(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sort rows by their whole content and leave out the columns that no two readers need agree on."""
    kept = [{name: value for name, value in row.items() if name not in NOT_COMPARED} for row in rows]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True, default=str))


def without_meta(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Leave Hudi's meta columns out, and sort."""
    return ordered(
        {name: value for name, value in row.items() if not name.startswith("_hoodie_")} for row in rows
    )


def difference(left: Iterable[Mapping[str, Any]], right: Iterable[Mapping[str, Any]], limit: int = 3) -> str:
    """Say how two sets of rows differ, with a few examples; empty text when they are equal."""
    ours, theirs = (
        [json.dumps(row, sort_keys=True, default=str) for row in ordered(rows)] for rows in (left, right)
    )
    if ours == theirs:
        return ""
    only_ours, only_theirs = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
    lines = [f"{len(ours)} rows against {len(theirs)}"]
    lines += [f"only left:  {row}" for row in only_ours[:limit]]
    lines += [f"only right: {row}" for row in only_theirs[:limit]]
    if not only_ours and not only_theirs:
        lines.append("the same rows, some repeated a different number of times")
    return "\n".join(lines)
