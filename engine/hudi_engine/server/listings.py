"""Answers to questions for metadata, with the columns that JDBC names: schemas, tables, columns, types, functions, keys."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from hudi_engine.server.row_sets import type_name
from hudi_engine.spark.catalog import CatalogEntry
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from hudi_engine.spark.sql.session import Rows, StatementSession

# Number in JDBC, size in digits or characters, base of the size; None where it has none.
_JDBC: dict[str, tuple[int, int | None, int | None]] = {
    "boolean": (16, 1, None),
    "tinyint": (-6, 3, 10),
    "smallint": (5, 5, 10),
    "int": (4, 10, 10),
    "bigint": (-5, 19, 10),
    "float": (6, 7, 10),
    "double": (8, 15, 10),
    "decimal": (3, 38, 10),
    "string": (12, None, None),
    "varchar": (12, None, None),
    "char": (1, None, None),
    "binary": (-2, None, None),
    "date": (91, 10, None),
    "timestamp": (93, 29, None),
    "timestamp_ntz": (93, 29, None),
    "array": (2003, None, None),
    "map": (2000, None, None),
    "struct": (2002, None, None),
    "void": (0, None, None),
}
_OTHER = 1111
_NULLABLE = 1
_TABLE, _VIEW = "TABLE", "VIEW"
_DATATYPES = {"s": T.StringType(), "i": T.IntegerType(), "h": T.ShortType(), "b": T.BooleanType()}
_SCHEMAS = "TABLE_SCHEM s, TABLE_CATALOG s"
_TABLES = (
    "TABLE_CAT s, TABLE_SCHEM s, TABLE_NAME s, TABLE_TYPE s, REMARKS s, TYPE_CAT s, TYPE_SCHEM s, TYPE_NAME s, "
    "SELF_REFERENCING_COL_NAME s, REF_GENERATION s"
)
_COLUMNS = (
    "TABLE_CAT s, TABLE_SCHEM s, TABLE_NAME s, COLUMN_NAME s, DATA_TYPE i, TYPE_NAME s, COLUMN_SIZE i, BUFFER_LENGTH i, "
    "DECIMAL_DIGITS i, NUM_PREC_RADIX i, NULLABLE i, REMARKS s, COLUMN_DEF s, SQL_DATA_TYPE i, SQL_DATETIME_SUB i, "
    "CHAR_OCTET_LENGTH i, ORDINAL_POSITION i, IS_NULLABLE s, SCOPE_CATALOG s, SCOPE_SCHEMA s, SCOPE_TABLE s, "
    "SOURCE_DATA_TYPE h, IS_AUTO_INCREMENT s"
)
_TYPES = (
    "TYPE_NAME s, DATA_TYPE i, PRECISION i, LITERAL_PREFIX s, LITERAL_SUFFIX s, CREATE_PARAMS s, NULLABLE h, CASE_SENSITIVE b, "
    "SEARCHABLE h, UNSIGNED_ATTRIBUTE b, FIXED_PREC_SCALE b, AUTO_INCREMENT b, LOCAL_TYPE_NAME s, MINIMUM_SCALE h, "
    "MAXIMUM_SCALE h, SQL_DATA_TYPE i, SQL_DATETIME_SUB i, NUM_PREC_RADIX i"
)
_FUNCTIONS = "FUNCTION_CAT s, FUNCTION_SCHEM s, FUNCTION_NAME s, REMARKS s, FUNCTION_TYPE i, SPECIFIC_NAME s"
_KEYS = "TABLE_CAT s, TABLE_SCHEM s, TABLE_NAME s, COLUMN_NAME s, KEY_SEQ i, PK_NAME s"
_FOREIGN_KEYS = (
    "PKTABLE_CAT s, PKTABLE_SCHEM s, PKTABLE_NAME s, PKCOLUMN_NAME s, FKTABLE_CAT s, FKTABLE_SCHEM s, FKTABLE_NAME s, "
    "FKCOLUMN_NAME s, KEY_SEQ i, UPDATE_RULE i, DELETE_RULE i, FK_NAME s, PK_NAME s, DEFERRABILITY i"
)
Listing = Callable[[StatementSession], Rows]
Patterns = Sequence[str | None]


def catalogs() -> Rows:
    """Return no catalogs: as with Spark's own server, a name has a schema only."""
    return _rows("TABLE_CAT s", [])


def table_types() -> Rows:
    """Return the kinds of names: tables and views."""
    return _rows("TABLE_TYPE s", [[_TABLE], [_VIEW]])


def schemas(session: StatementSession, patterns: Patterns) -> Rows:
    """Return schemas whose names are like a pattern."""
    return _rows(_SCHEMAS, [[name, ""] for name in _schemas(session, patterns[0])])


def tables(session: StatementSession, patterns: Patterns, types: Sequence[str]) -> Rows:
    """Return tables and views whose names are like patterns of schema and name, of some types; no types for all."""
    wanted = [each.upper() for each in types] or [_TABLE, _VIEW]
    return _rows(
        _TABLES,
        [
            ["", schema, entry.name.name, _type_of(entry), entry.comment or "", *[None] * 5]
            for schema, entry in _entries(session, patterns)
            if _type_of(entry) in wanted
        ],
    )


def columns(session: StatementSession, patterns: Patterns) -> Rows:
    """Return columns whose names are like patterns of schema, table and column."""
    is_wanted = _like(patterns[2])
    found: list[list[Any]] = []
    for schema, entry in _entries(session, patterns):
        fields = T.StructType.fromJson(json.loads(entry.schema_json)).fields
        found += [
            _column(schema, entry.name.name, field, position)
            for position, field in enumerate(fields, 1)
            if is_wanted(field.name)
        ]
    return _rows(_COLUMNS, found)


def types() -> Rows:
    """Return the types of Spark."""
    return _rows(
        _TYPES,
        [
            [name.upper(), number, size, None, None, None, _NULLABLE, name in ("string", "char", "varchar"), 3,
             base is None, False, False, None, 0, 38 if name == "decimal" else 0, None, None, base]
            for name, (number, size, base) in _JDBC.items()
        ],
    )  # fmt: skip


def functions(session: StatementSession, patterns: Patterns) -> Rows:
    """Return functions whose names are like a pattern, Spark's own and those of schemas."""
    is_wanted = _like(patterns[1])
    names = [str(row[0]) for row in session.spark.sql("show functions").collect()]
    return _rows(_FUNCTIONS, [[None, None, name, "", _NULLABLE, name] for name in names if is_wanted(name)])


def primary_keys(session: StatementSession, schema: str, name: str) -> Rows:
    """Return the record key of a Hudi table; none for anything else. No schema is the current one."""
    schema = schema or session.spark.catalog.currentDatabase()
    base = session.warehouse.hudi_base(session.spark, schema, name)
    keys = () if base is None else session.warehouse.table(session.spark, base).config.record_key_fields
    return _rows(_KEYS, [["", schema, name, key, number, "record key"] for number, key in enumerate(keys, 1)])


def cross_references() -> Rows:
    """Return no foreign keys."""
    return _rows(_FOREIGN_KEYS, [])


def logs() -> Rows:
    """Return no lines of a log, which clients ask for while a statement runs."""
    return _rows("Log s", [])


def _column(schema: str, table: str, field: T.StructField, position: int) -> list[Any]:
    number, size, base = _JDBC.get(type_name(field.dataType), (_OTHER, None, None))
    digits = 0 if base == 10 else None
    if isinstance(field.dataType, T.DecimalType):
        size, digits = field.dataType.precision, field.dataType.scale
    comment = field.metadata.get("comment", "")
    null = "YES" if field.nullable else "NO"
    return [
        "", schema, table, field.name, number, field.dataType.simpleString().upper(), size, None, digits, base,
        int(field.nullable), comment, None, None, None, None, position, null, None, None, None, None, "NO",
    ]  # fmt: skip


def _entries(session: StatementSession, patterns: Patterns) -> Iterator[tuple[str, CatalogEntry]]:
    is_wanted = _like(patterns[1])
    for schema in _schemas(session, patterns[0]):
        for entry in sorted(
            session.warehouse.entries(session.spark, schema), key=lambda each: each.name.name
        ):
            if is_wanted(entry.name.name):
                yield schema, entry


def _schemas(session: StatementSession, pattern: str | None) -> list[str]:
    return sorted(filter(_like(pattern), session.warehouse.schemas(session.spark)))


def _type_of(entry: CatalogEntry) -> str:
    return _VIEW if entry.reads_only else _TABLE


def _like(pattern: str | None) -> Callable[[str], bool]:
    """Return whether a name is like a pattern of JDBC, in any case; no pattern, or an empty one, is like all."""
    if not pattern or pattern in ("%", "*"):
        return lambda _: True
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "*": ".*", "_": "."}
    text = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    found = re.compile(text, re.IGNORECASE | re.DOTALL)
    return lambda name: found.fullmatch(name) is not None


def _rows(columns: str, rows: Iterable[Sequence[Any]]) -> Rows:
    """Return rows as a result; ``columns`` are names with the first letter of a type."""
    named = [each.split() for each in columns.split(", ")]
    schema = T.StructType([T.StructField(name, _DATATYPES[kind]) for name, kind in named])
    arrow = spark_to_arrow(schema)
    values = list(zip(*rows)) or [()] * len(named)
    arrays = [pa.array(each, field.type) for each, field in zip(values, arrow)]
    return Rows(schema, pa.Table.from_arrays(arrays, schema=arrow))
