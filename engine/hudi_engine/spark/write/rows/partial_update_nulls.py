"""Null in tables whose merge takes it for "no value" (partial updates): where a row can be set to null, and where it cannot.

Nulls of the record that wins are filled from the other one. In a log that is done by every reader, so no record there can
clear a value. A copy-on-write table holds whole rows, and one that was made of the stored row is written as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.trusted_rules import RULE_PROPERTY
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.spark.read.expression import expression


def refuse_nulls(rows: DataFrame, assignments: Mapping[str, str], config: TableConfig) -> None:
    """Refuse to set columns to null where the stored values would silently stay."""
    if not merge_rule(config).fills:
        return
    values = [expression(str(text)).alias(name) for name, text in assignments.items()]
    names = [
        field.name for field in rows.select(*values).schema.fields if field.dataType.typeName() == "void"
    ]
    if names:
        raise ConfigError(f"{', '.join(names)} cannot be set to null: {_reason(config)}")


def reject_null_overwrite(new: Column, stored: Column, name: str, config: TableConfig) -> Column:
    """Return a column's new value; fails the query where it is null and a value is stored, which would silently stay.

    Args:
        config: Settings by which rows are written; where these take null as it is, the value is returned as it is.
    """
    if not merge_rule(config).fills:
        return new
    problem = F.lit(f"column {name} of a row would become null: {_reason(config)}")
    return F.when(new.isNull() & stored.isNotNull(), F.raise_error(problem)).otherwise(new)


def _reason(config: TableConfig) -> str:
    by = config.properties.get(RULE_PROPERTY) or config.payload_class or config.merge_mode
    way = "delete the rows, compact the table and insert them again, or rebuild it with another payload class"
    if config.table_type is TableType.COPY_ON_WRITE:
        way = "clear it with UPDATE or update_where, or delete the rows and insert them again"
    return (
        f"table {config.name!r} merges rows by {by}, which takes a null for no value and keeps the stored one. To keep it, use "
        f"coalesce; to be rid of it {way}"
    )
