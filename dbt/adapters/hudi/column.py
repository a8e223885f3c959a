"""Columns of relations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from dbt.adapters.base.column import Column
from dbt.adapters.spark.column import SparkColumn

Self = TypeVar("Self", bound="HudiColumn")
_TEXT = re.compile(r"^(?:var)?char\(\d+\)$")
# Hudi has no 8 and 16 bit integers and no bounded text: the table holds the wider type.
_TOKEN = re.compile(r"(?i)(?:(?<=[:<,])|^)(?:tinyint|smallint|byte|short|(?:var)?char\(\d+\))(?=[,>]|$)")
_STORED = {"tinyint": "int", "smallint": "int", "byte": "int", "short": "int"}


@dataclass(repr=False)
class HudiColumn(SparkColumn):
    """A column with Spark's type name."""

    def is_string(self) -> bool:
        """Whether the column holds text."""
        return self.dtype.lower() == "string" or bool(_TEXT.match(self.dtype.lower())) or super().is_string()

    def can_expand_to(self, other_column: Column) -> bool:
        """Spark's text has no length, so nothing ever expands."""
        return False


def stored_type(dtype: str) -> str:
    """The type a Hudi table holds for a Spark type name, also inside structs, arrays and maps."""
    return _TOKEN.sub(lambda found: _STORED.get(found[0].lower(), "string"), dtype.strip())


def same_stored_type(left: str, right: str) -> bool:
    """Whether a Hudi table holds the same for two Spark type names."""
    return stored_type(left).lower() == stored_type(right).lower()
