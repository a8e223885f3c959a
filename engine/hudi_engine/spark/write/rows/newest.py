"""One row a key of a batch whose rows are still in Spark: the row that combining the batch would keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED
from hudi_engine.spark.schema.fit import quoted

_ZEROS = {"integer": "0", "date": "date'1970-01-01'"}
"""What Avro has as int 0, by Spark's name of the type; see `merge.ordering.is_default`."""
_PLACE, _RESET, _AFTER = "__hudi_place", "__hudi_reset", "__hudi_after"


def newest_of_each_key(frame: DataFrame, key: Sequence[str], config: TableConfig) -> DataFrame:
    """Return of several rows with one key the one with the greatest ordering values, of equal ones the last.

    A row that deletes and says no ordering value ends what came before it and is older than all after it, as where
    a batch is combined (Source: Hudi table format, merging).

    Args:
        frame: Rows of a batch in their order.
        key: Columns that say which rows are of one key.
        config: The table's settings; for a table whose rules keep one row whole.
    """
    placed = frame.withColumn(_PLACE, F.monotonically_increasing_id())
    order = [F.col(quoted(name)).desc_nulls_last() for name in config.ordering_fields]
    helpers = [_PLACE]
    kinds = {field.name.lower(): field.dataType.typeName() for field in frame.schema.fields}
    ends = deletes_always(config, kinds, lambda name: F.col(quoted(name)))
    if ends is not None:
        reset = F.max(F.when(ends, F.col(_PLACE))).over(Window.partitionBy(*key))
        after = F.when(F.col(_PLACE) > F.col(_RESET), 2).when(F.col(_PLACE) == F.col(_RESET), 1).otherwise(0)
        placed = placed.withColumn(_RESET, reset).withColumn(_AFTER, after)
        order.insert(0, F.col(_AFTER).desc())
        helpers += [_RESET, _AFTER]
    newest_first = Window.partitionBy(*key).orderBy(*order, F.col(_PLACE).desc())
    ranked = placed.withColumn(_PLACE, F.row_number().over(newest_first))
    return ranked.where(F.col(_PLACE) == 1).drop(*helpers)


def deletes_always(
    config: TableConfig, kinds: Mapping[str, str], value: Callable[[str], Column]
) -> Column | None:
    """Tell which rows delete whatever came before them; None where no row can, or where the last row wins anyway.

    Args:
        kinds: Spark's name for the type of each column of the rows, by the column's name in lower case.
    """
    ordering = config.ordering_fields
    if not ordering:
        return None
    marks = [value(mark) for mark in (IS_DELETED, DELETES) if kinds.get(mark) == "boolean"]
    if config.delete_marker is not None and config.delete_marker[0].lower() in kinds:
        field, _ = config.delete_marker
        marks.append(value(field).cast("string").isin(*config.delete_markers))
    if not marks:
        return None
    deletes, says_nothing = F.lit(False), F.lit(True)
    for mark in marks:
        deletes = deletes | F.coalesce(mark, F.lit(False))
    for name in ordering:
        says_nothing = says_nothing & value(name).isNull()
    zero = _ZEROS.get(kinds.get(ordering[0].lower(), ""))
    if len(ordering) == 1 and zero is not None:
        says_nothing = says_nothing | F.coalesce(value(ordering[0]) == F.expr(zero), F.lit(False))
    return deletes & says_nothing
