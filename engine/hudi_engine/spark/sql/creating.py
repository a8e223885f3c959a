"""CREATE TABLE: read into a `NewTable`, which the warehouse builds and registers."""

from __future__ import annotations

from functools import partial

from pyspark.sql import types as T

from hudi_engine.errors import StatementError
from hudi_engine.spark.catalog.sql_text import TableName
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.sql import not_null
from hudi_engine.spark.sql.column_rules import check_new_columns, check_new_table
from hudi_engine.spark.sql.statement import Statement, StatementResult
from hudi_engine.spark.sql.warehouse import NewTable


def create_table(statement: Statement) -> StatementResult | None:
    """CREATE TABLE with columns or AS SELECT: a Hudi table with USING hudi or without USING; other formats are left to Spark."""
    plan, spec = statement.plan, statement.plan.tableSpec()
    provider = plans.option(spec.provider())
    if (provider is not None and str(provider).lower() != "hudi") or plans.option(spec.serde()) is not None:
        return None
    name = TableName(*statement.names(plans.texts(plan.name().nameParts())))
    check_new_table(spec, name.label)
    schema, rows = T.StructType(), None
    if statement.kind.endswith("AsSelect"):
        rows = partial(plans.frame, statement.session, plan.query())
    else:
        schema = plans.struct_type(plan.tableSchema())
        check_new_columns(schema, name.label)
    location, comment = plans.option(spec.location()), plans.option(spec.comment())
    replaces = statement.kind.startswith("Replace")
    new = NewTable(
        name,
        T.StructType([T.StructField(each.name, _plain_type(each.dataType), True) for each in schema.fields]),
        rows,
        location=None if location is None else str(location),
        options={
            str(pair._1()): str(pair._2().toString())
            for pair in plans.items(spec.optionExpression().options())
        },
        properties={str(pair._1()): str(pair._2()) for pair in plans.items(spec.properties())},
        partition_by=[_identity(item, name.label) for item in plans.items(plan.partitioning())],
        replaces=replaces,
        if_not_exists=not replaces and bool(plan.ignoreIfExists()),
        comment="" if comment is None else str(comment),
        column_comments={
            each.name: each.metadata["comment"] for each in schema.fields if "comment" in each.metadata
        },
        notes=not_null.noted(schema),
    )
    return StatementResult(write=statement.warehouse.create_table(statement.session, new))


def _identity(transform: plans.JavaPlan, label: str) -> str:
    if plans.kind(transform) != "IdentityTransform":
        raise StatementError(
            f"PARTITIONED BY or CLUSTER BY ({transform.toString()}) of {label} is refused: partition by columns, which may be "
            "selected as expressions; {{ hudi_cluster(...) }} puts rows in order"
        )
    return str(transform.describe()).strip("`")


def _plain_type(kind: T.DataType) -> T.DataType:
    """Bounded text becomes text: a Hudi table has no length limit."""
    return T.StringType() if isinstance(kind, (T.CharType, T.VarcharType)) else kind
