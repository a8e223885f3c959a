"""SQL that a user wrote, as a column of Spark."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from hudi_engine.errors import ConfigError


def expression(text: str) -> Column:
    """Return SQL text as one column, in brackets, as Spark takes a word after an expression for its alias.

    Raises:
        ConfigError: It is no text.
        pyspark.errors.ParseException: It is no SQL.
    """
    if not isinstance(text, str):
        raise ConfigError(f"SQL is given as text, such as 'price > 5', and this is {text!r}")
    return F.expr(f"({text}\n)")
