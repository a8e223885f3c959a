"""CREATE TABLE, read into a `NewTable` that the warehouse builds and registers; and what of a column a Hudi table does not keep."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import types as T

from hudi_engine.errors import StatementError
from hudi_engine.spark.catalog.sql_text import TableName
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.sql import not_null
from hudi_engine.spark.sql.statement import Statement, StatementResult
from hudi_engine.spark.sql.warehouse import NewTable

# Keys of a column's metadata in the schema that Spark makes of CREATE TABLE (PySpark 3.5 and 4).
_NO_COLLATION = (
    "{}: a collation is not kept by a Hudi table; leave it out, and write COLLATE in the queries that compare"
)
_DEFAULT, _GENERATED, _IDENTITY = "CURRENT_DEFAULT", "GENERATION_EXPRESSION", "identity.start"


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


# --- what a Hudi table does not keep of a column ------------------------------------------------------------------------


def check_new_table(spec: plans.JavaPlan, label: str) -> None:
    """Refuse table-level clauses of a CREATE TABLE of PySpark 4 that a Hudi table does not keep."""
    if plans.hasattr_java(spec, "constraints") and spec.constraints().size():
        kinds = ", ".join(
            plans.kind(each).removesuffix("Constraint") for each in plans.items(spec.constraints())
        )
        raise StatementError(
            f"{label}: a Hudi table keeps no constraints ({kinds}): a key is TBLPROPERTIES (primaryKey = 'id'), and the contract "
            "of a model checks the rest"
        )
    if plans.hasattr_java(spec, "collation") and plans.option(spec.collation()) is not None:
        raise StatementError(_NO_COLLATION.format(label))


def check_new_columns(schema: T.StructType, label: str) -> None:
    """Refuse columns of a CREATE TABLE whose values the table would have to fill in."""
    for column in schema.fields:
        _refuse_required_inside(column, label)
        if getattr(column.dataType, "collation", None) not in (None, "UTF8_BINARY"):
            raise StatementError(_NO_COLLATION.format(f"column {column.name} of {label}"))
        if _GENERATED in column.metadata or _IDENTITY in column.metadata:
            raise StatementError(
                f"column {column.name} of {label}: GENERATED columns are not computed by a Hudi table; "
                "leave it out and select the expression where rows are written"
            )
        check_default(column.name, column.metadata.get(_DEFAULT), label)


def check_added(column: T.StructField, label: str) -> None:
    """Refuse an added column that is NOT NULL, itself or inside: the stored rows lack it."""
    if not column.nullable:
        raise StatementError(
            f"column {column.name} of {label}: a column that is added cannot be NOT NULL, as the rows there lack it; leave that out"
        )
    _refuse_required_inside(column, label)


def whole_column(parts: Sequence[str], label: str) -> str:
    """Return the name of a column that a statement drops or changes; raises StatementError for a field of a struct."""
    if len(parts) > 1:
        raise StatementError(
            f"{'.'.join(parts)} of {label} is a field inside of column {parts[0]}: a field cannot be dropped or be given another "
            "type or a comment, by SQL; name a whole column, or rebuild the table"
        )
    return parts[0]


def check_default(column: str, default: str | None, label: str) -> None:
    """Refuse a default (SQL text, None for none) other than null, which every column has."""
    if default is not None and default.strip().lower() != "null":
        raise StatementError(
            f"column {column} of {label}: DEFAULT {default} is not kept by a Hudi table and rows would read NULL; "
            f"leave it out, and write the value (`coalesce({column}, {default})`) where rows are written"
        )


def _refuse_required_inside(column: T.StructField, label: str) -> None:
    if '"nullable":false' in column.dataType.json():
        raise StatementError(
            f"column {column.name} of {label}: NOT NULL is kept for whole columns, not inside of one; leave it out, and check it "
            "where rows are written (the contract of a model: `type: check`)"
        )
