"""``column_types`` of a seed: types that values of a CSV file can be cast to, told from others without Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hudi_engine.format.spelling import nearest

from dbt.adapters.hudi.model.reading import Problems, mapping

_PLAIN = (
    *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"),
    *("float", "real", "double", "decimal", "dec", "numeric"),
    *("string", "binary", "date", "timestamp", "timestamp_ltz"),
)
_IN_SPARK = {
    **dict.fromkeys(("text", "varchar", "character varying"), "string"),
    "bool": "boolean",
    "int64": "bigint",
    "float64": "double",
    "double precision": "double",
}
"""Words of other databases that mean one type of Spark and no other; packages give them where they do not ask for us."""
_LEGAL = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal(p, s), string, varchar(n), char(n), binary, date, "
    "timestamp (or timestamp_ltz)"
)
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_TEXT = re.compile(r"(?:var)?char\s*\(\s*(\d+)\s*\)")
_MOST_DIGITS = 38
_WITHOUT_ZONE = "timestamp_ntz"


def check_column_types(config: Mapping[str, object], problems: Problems) -> None:
    """Note which types of a seed's ``column_types`` are none, or none that a text can become."""
    if config.get("materialized") != "seed":
        return
    for column, kind in mapping("column_types", config.get("column_types"), problems).items():
        if str(kind).strip().lower() == _WITHOUT_ZONE:
            problems.add(
                f"column_types has {kind!r} for column {column!r}, which a Hudi table cannot hold; set it to timestamp "
                f"(column_types: {{{column}: timestamp}}), which reads times without an offset in the session's time zone"
            )
        elif not _is_legal(kind):
            problems.add(f"column_types has {kind!r} for column {column!r}; legal values: {_LEGAL}")


def in_spark(kind: str) -> str:
    """Return Spark's word for a type that another database calls so; any other type as it is."""
    return _IN_SPARK.get(kind.strip().lower(), kind)


def nearly_named(given: Mapping[str, object], columns: list[str]) -> dict[str, str]:
    """Return names of ``column_types`` that a seed's file does not have, each with the column it is spelled like.

    A folder may say the types of columns that only some of its seeds have, so other names are nobody's mistake.
    """
    known = {name.lower() for name in columns}
    unknown = {name: nearest(name, columns) for name in given if name.lower() not in known}
    return {name: near for name, near in unknown.items() if near is not None}


def _is_legal(kind: object) -> bool:
    text = kind.strip().lower() if isinstance(kind, str) else ""
    decimal, bounded = _DECIMAL.fullmatch(text), _TEXT.fullmatch(text)
    if decimal is not None:
        digits, scale = int(decimal[1]), int(decimal[2] or 0)
        return 1 <= digits <= _MOST_DIGITS and scale <= digits
    return text in _PLAIN or text in _IN_SPARK or (bounded is not None and int(bounded[1]) >= 1)
