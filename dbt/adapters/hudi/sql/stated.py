"""A model's table in words of SQL, for the CREATE TABLE of a materialization that is the project's own."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.options import laid_over
from hudi_engine.spark.catalog.sql_text import literal
from hudi_engine.table.write.define.problems import PARTITION_OPTIONS

from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.model.reading import option_text


def table_clauses(plan: ModelPlan) -> str:
    """Return the clauses of a CREATE TABLE that make the table as the configs of a model say."""
    table = plan.table
    options: dict[str, str] = {"type": table.table_type}
    # partitions are an option, as a column of them may lie in a struct, or have a kind for its key generator
    for key, columns in (
        ("primaryKey", table.record_key),
        ("preCombineField", table.precombine_field),
        (PARTITION_OPTIONS[0], table.partition_by),
    ):
        if columns:
            options[key] = ",".join(columns)
    if table.hive_style is not None:
        options[TableOptions.HIVE_STYLE_PARTITIONING.key] = option_text(table.hive_style)
    clauses = [f"options ({_pairs(laid_over(options, plan.options))})"]
    if plan.own_location:
        clauses.append(f"location {literal(plan.base)}")
    if plan.properties:
        clauses.append(f"tblproperties ({_pairs(plan.properties)})")
    return " ".join(clauses)


def _pairs(given: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in given.items())
