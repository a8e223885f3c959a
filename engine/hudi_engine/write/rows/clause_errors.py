"""Which clause of a merge it is that Spark refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hudi_engine.write.rows.arguments import resolving

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from hudi_engine.write.rows.clauses import MergeClauses

_CONDITIONS = ("on", "matched_condition", "not_matched_condition", "by_source_condition")
_VALUES = ("update_set", "by_source")


@contextmanager
def naming_the_clause(clauses: MergeClauses, sides: DataFrame) -> Iterator[None]:
    """Turn Spark's refusal of a merge into ConfigError with the clause that it is about.

    Args:
        clauses: The clauses.
        sides: Rows of the batch beside the table's, on which each clause is tried by itself once they fail together.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    advice = f"Use columns of the table as {clauses.target}.column and of the data as {clauses.source}.column"
    try:
        yield
    except PySparkException:
        for clause in _CONDITIONS:
            text = getattr(clauses, clause)
            with resolving(f"{clauses.called.get(clause, clause)} {text!r} cannot be resolved", advice):
                sides.select(holds(text))
        for clause in _VALUES:
            given = getattr(clauses, clause)
            for column, text in (given if isinstance(given, Mapping) else {}).items():
                what = f"{clauses.called.get(clause, clause)} sets {column} to {text!r}"
                with resolving(f"{what}, which cannot be resolved", advice):
                    sides.select(F.expr(str(text)))
        with resolving("the clauses of the merge cannot be resolved together", advice):
            raise


def holds(condition: str | None) -> Column:
    """Return whether a condition is true; no condition is, and null is not."""
    from pyspark.sql import functions as F

    return F.lit(True) if condition is None else F.coalesce(F.expr(f"({condition})"), F.lit(False))
