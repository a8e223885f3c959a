"""Columns of relations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from dbt.adapters.spark.column import SparkColumn

Self = TypeVar("Self", bound="HudiColumn")
_TEXT = re.compile(r"^(?:var)?char\(\d+\)$")
# Hudi has no 8 and 16 bit integers and no bounded text: the table holds the wider type.
_STORED = {"tinyint": "int", "smallint": "int", "byte": "int", "short": "int"}


@dataclass(repr=False)
class HudiColumn(SparkColumn):
    """A column with Spark's type name."""

    def is_string(self) -> bool:
        """Whether the column holds text."""
        return self.dtype.lower() == "string" or bool(_TEXT.match(self.dtype.lower())) or super().is_string()

    def can_expand_to(self, other_column: SparkColumn) -> bool:
        """Spark's text has no length, so nothing ever expands."""
        return False

    @property
    def stored_type(self) -> str:
        """The type a Hudi table holds for this column."""
        return stored_type(self.dtype)


def stored_type(dtype: str) -> str:
    """The type a Hudi table holds for a Spark type name."""
    lowered = dtype.strip().lower()
    if _TEXT.match(lowered):
        return "string"
    return _STORED.get(lowered, lowered)
