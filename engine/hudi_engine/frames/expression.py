"""SQL that a user wrote, as a column of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column


def expression(text: str) -> Column:
    """Return SQL text as a column, all of it as one value.

    Spark takes a word behind an expression for its name, so that ``v > 5 and`` would be the condition ``v > 5``: in brackets it is
    no SQL. A comment may end the text.

    Args:
        text: A condition or another expression.

    Raises:
        pyspark.errors.ParseException: It is none.
    """
    from pyspark.sql import functions as F

    return F.expr(f"({text}\n)")
