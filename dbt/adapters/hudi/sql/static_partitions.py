"""PARTITION (column = value) of a statement: the values, and the one partition that all of them make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.schema.casting import cast_table
from hudi_engine.spark.read.collect import to_arrow
from hudi_engine.table.state import TableState
from hudi_engine.table.write.define.table_options import with_table_options
from hudi_engine.table.write.operation import INSERT_OVERWRITE
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.rows.alignment import fit_to_table
from dbt.adapters.hudi.rows.builds import data_columns
from dbt.adapters.hudi.sql import plans
from dbt.adapters.hudi.sql.targets import Statement, Target

Static = dict[str, str | None]


def static_partitions(plan: plans.JavaPlan, partition_by: Sequence[str], target: Target) -> Static:
    """Return the values that PARTITION (...) gives, None for null; it may name others without a value.

    Raises:
        DbtRuntimeError: It names what is no partition column of the table.
    """
    pairs = [(str(pair._1()), pair._2()) for pair in plans.items(plan.partitionSpec())]
    refuse_other_columns((name for name, _ in pairs), partition_by, target)
    given = {name: value.get() for name, value in pairs if value.isDefined()}
    return {name: None if value is None else str(value) for name, value in given.items()}


def refuse_other_columns(names: Iterable[str], partition_by: Sequence[str], target: Target) -> None:
    """Raise DbtRuntimeError where PARTITION (...) names what is no partition column of the table."""
    known = {name.lower() for name in partition_by}
    for name in names:
        if name.lower() not in known:
            raise DbtRuntimeError(
                f"PARTITION ({name}): {target.label} is not partitioned by it; its partition columns: "
                f"{', '.join(partition_by) or 'none'}"
            )


def path_of(statement: Statement, target: Target, table: HudiTable, static: Static) -> str:
    """Return the path of the partition that values for all partition columns make, by the key generator that rows go through.

    Other values may make the same: times of a day, or null and a text without letters.
    """
    options = resolve_options(statement.warehouse.node.at(target.base))
    options = with_table_options(table.config, options, INSERT_OVERWRITE.name.value)
    kinds = AnyCase((field.name, field.dataType) for field in data_columns(table).fields)
    if all(kinds.get(name) == T.StringType() for name in static):
        row = pa.table({name: pa.array([value], pa.string()) for name, value in static.items()})
    else:
        row = _as_stored(statement, table, static)
    paths = build_key_generator(table.config, options=options).partition_paths(row)
    return str(paths[0].as_py())


def _as_stored(statement: Statement, table: HudiTable, static: Static) -> pa.Table:
    """Return the values as Spark casts them, in the types of the table's files; another writer may change its other columns."""
    nothing = statement.session.range(1).select(*(F.lit(value).alias(name) for name, value in static.items()))
    schema = TableState.load(table.storage).data_schema()
    assert schema is not None, "a partitioned table has columns"
    known = {name.lower() for name in static}
    columns = data_columns(table)
    fields = T.StructType([field for field in columns.fields if field.name.lower() in known])
    stored = pa.schema([field for field in schema if field.name.lower() in known])
    return cast_table(to_arrow(fit_to_table(nothing, fields)), stored)
