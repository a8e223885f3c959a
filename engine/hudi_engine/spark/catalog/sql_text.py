"""Names, literals and types as text of Spark SQL, safe whatever characters they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import DataType

from hudi_engine.errors import ConfigError

_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\x1a": "\\Z"}


def identifier(name: str) -> str:
    """Return ``name`` in backticks, those inside it doubled; ConfigError for an empty name."""
    if not name:
        raise ConfigError("a catalog name is empty; give the table, schema and every column a name")
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    r"""Return ``text`` as a string literal that both Spark 3.5 and 4 read back unchanged.

    A quote becomes ``\'`` because Spark 3.5 does not know the doubled form, and ``${`` is broken up because
    Spark replaces variables in the text of a statement, literals included.
    """
    escaped = "".join(_ESCAPES.get(character, character) for character in text)
    return "'" + escaped.replace("${", "$\\{") + "'"


def type_text(kind: DataType) -> str:
    """Return a column type as DDL that means the same in each session.

    Unlike in Spark's own short form, nested field names are quoted, and moments have the name that is theirs alone: what
    ``timestamp`` means is for ``spark.sql.timestampType`` to say.
    """
    part: Any = kind
    name = type(kind).__name__
    if name == "ArrayType":
        return f"array<{type_text(part.elementType)}>"
    if name == "MapType":
        return f"map<{type_text(part.keyType)},{type_text(part.valueType)}>"
    if name == "StructType":
        return (
            "struct<"
            + ",".join(f"{identifier(field.name)}:{type_text(field.dataType)}" for field in part.fields)
            + ">"
        )
    return "timestamp_ltz" if name == "TimestampType" else str(kind.simpleString())


@dataclass(frozen=True, order=True)
class TableName:
    """A table or view of the session catalog."""

    database: str
    name: str

    @property
    def sql(self) -> str:
        """The name as SQL."""
        return f"{identifier(self.database)}.{identifier(self.name)}"

    @property
    def label(self) -> str:
        """The name for messages."""
        return f"{self.database}.{self.name}"

    def with_suffix(self, suffix: str) -> TableName:
        """Return the name of a companion entry, such as ``_ro``."""
        return TableName(self.database, self.name + suffix)

    @classmethod
    def parse(cls, text: str, database: str | None = None) -> TableName:
        """Split ``database.table``, parts in backticks or not; ``database`` completes a name of one part."""
        parts = _split(text)
        if len(parts) == 3 and parts[0].lower() == "spark_catalog":
            parts = parts[1:]
        if len(parts) == 1 and database is not None:
            parts = [database, *parts]
        if len(parts) != 2 or not all(parts):
            raise ConfigError(f"{text!r} is no table name; write it as schema.table")
        return cls(parts[0], parts[1])


def _split(text: str) -> list[str]:
    parts, part, quoted, position = [], "", False, 0
    while position < len(text):
        character = text[position]
        if quoted and text[position : position + 2] == "``":
            part, position = part + "`", position + 1
        elif character == "`":
            quoted = not quoted
        elif character == "." and not quoted:
            parts.append(part)
            part = ""
        else:
            part += character
        position += 1
    return [*parts, part]
