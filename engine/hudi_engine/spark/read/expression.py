"""SQL that a user wrote, as a column of Spark."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from hudi_engine.errors import ConfigError


def expression(text: str) -> Column:
    """Return SQL text as a column, all of it as one value.

    Spark takes a word behind an expression for its name, so that ``v > 5 and`` would be the condition ``v > 5``: in brackets it is
    no SQL. A comment may end the text.

    Raises:
        ConfigError: It is no text.
        pyspark.errors.ParseException: It is no SQL.
    """
    if not isinstance(text, str):
        raise ConfigError(f"SQL is given as text, such as 'price > 5', and this is {text!r}")
    return F.expr(f"({text}\n)")
