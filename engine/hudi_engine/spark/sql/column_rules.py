"""What a column definition may have beyond name and type: a Hudi table keeps neither defaults nor formulas."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as T

from hudi_engine.errors import StatementError
from hudi_engine.spark.jvm import plans

# Keys of a column's metadata in the schema that Spark makes of CREATE TABLE (PySpark 3.5 and 4).
_NO_COLLATION = (
    "{}: a collation is not kept by a Hudi table; leave it out, and write COLLATE in the queries that compare"
)
_DEFAULT, _GENERATED, _IDENTITY = "CURRENT_DEFAULT", "GENERATION_EXPRESSION", "identity.start"


def check_new_table(spec: plans.JavaPlan, label: str) -> None:
    """Refuse table-level clauses of a CREATE TABLE of PySpark 4 that a Hudi table does not keep.

    Raises:
        StatementError: It has constraints or a collation.
    """
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
    """Refuse columns of a CREATE TABLE whose values the table would have to fill in.

    Raises:
        StatementError: A column is generated, an identity, or has a collation, a default other than null, or NOT NULL inside.
    """
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
    """Refuse a column that a table gets later and that may not be null, itself or inside: the rows there lack it.

    Args:
        column: The column as the statement has it.

    Raises:
        StatementError: It is NOT NULL, or has it inside.
    """
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
    """Refuse a default other than null, which every column has anyway.

    Args:
        default: SQL text of the default, None for none.

    Raises:
        StatementError: There is a default.
    """
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
