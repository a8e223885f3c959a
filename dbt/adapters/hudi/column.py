"""Columns of relations."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

from dbt.adapters.base.column import Column
from dbt.adapters.spark.column import SparkColumn
from hudi_engine.format.schema.meta_fields import DELETES
from hudi_engine.spark.schema.spark_types import stored_type
from hudi_engine.spark.write.rows.casts import META_PREFIX
from pyspark.sql import types as T

Self = TypeVar("Self", bound="HudiColumn")
_TEXT = re.compile(r"^(?:var)?char\(\d+\)$")
_DECIMAL = re.compile(r"^(?:decimal|dec|numeric)(?:\(\d+(?:,\s*\d+)?\))?$")
_WHOLE = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
_MOMENT = re.compile(r"(?i)(?:(?<=[:<,])|^)timestamp(?=[,>]|$)")


@dataclass(repr=False)
class HudiColumn(SparkColumn):
    """A column with Spark's type name."""

    def is_string(self) -> bool:
        """Whether the column holds text."""
        return self.dtype.lower() == "string" or bool(_TEXT.match(self.dtype.lower())) or super().is_string()

    def is_integer(self) -> bool:
        """Whether the column holds whole numbers."""
        return self.dtype.lower() in _WHOLE

    def is_numeric(self) -> bool:
        """Whether the column holds decimals."""
        return bool(_DECIMAL.match(self.dtype.lower()))

    def is_float(self) -> bool:
        """Whether the column holds binary fractions."""
        return self.dtype.lower() in ("float", "real", "double")

    @classmethod
    def string_type(cls, size: int) -> str:  # noqa: ARG003
        """Return the type of texts up to a number of characters: Spark's text has no length."""
        return "string"

    def can_expand_to(self, other_column: Column) -> bool:
        """Spark's text has no length, so nothing ever expands."""
        return False


def explicit_type(dtype: str) -> str:
    """Return a type name that does not depend on ``spark.sql.timestampType``."""
    return _MOMENT.sub("timestamp_ltz", dtype.strip())


def same_stored_type(left: str, right: str) -> bool:
    """Whether a Hudi table holds the same for two Spark type names."""
    return stored_type(left).lower() == stored_type(right).lower()


def users_columns(schema: T.StructType, marks: Collection[str] = ()) -> list[T.StructField]:
    """Return the columns of a table or query that are none of Hudi's.

    Args:
        marks: Which marks of deleted rows count, in lower case.
    """
    return [
        column
        for column in schema.fields
        if column.name.lower() in marks
        or not (column.name.lower().startswith(META_PREFIX) or column.name.lower() == DELETES)
    ]
