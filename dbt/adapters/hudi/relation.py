"""Names of tables and views."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.spark.relation import SparkRelation


@dataclass(frozen=True, eq=False, repr=False)
class HudiRelation(SparkRelation):
    """A relation; Hudi tables are always of type table, whatever Spark's catalog holds for them."""
