"""Fitting a batch to a table's columns: the one place that decides names, types and what is missing.

`fit_schema` says which columns the table has after the batch, or refuses; `fit_frame` brings the rows to them. Names and
fields of structs are matched without regard to case and spelled as the table spells them. Spark's own cast goes by position
in structs, and turns what does not fit into null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.types import DataType

from hudi_engine.errors import SchemaError
from hudi_engine.format.config.enums import SchemaChange
from hudi_engine.format.schema.any_case import AnyCase, spellings
from hudi_engine.format.schema.evolution import evolve
from hudi_engine.format.schema.nested import paired_parts
from hudi_engine.format.schema.time_units import in_units_of
from hudi_engine.spark.schema.spark_types import arrow_to_spark

_RANGES = {
    kind: (-(2 ** (bits - 1)), 2 ** (bits - 1))
    for kind, bits in (("byte", 8), ("short", 16), ("integer", 32), ("long", 64))
}
"""The least number of a type, and the first beyond it."""
_INFINITE = float("inf")


class Missing(Enum):
    """What becomes of columns and fields of the table that a batch lacks."""

    NULL = "null"
    REFUSE = "refuse"


class Overflow(Enum):
    """What becomes of a value that its column cannot hold."""

    REFUSE = "refuse"
    """Such types are refused before anything runs: by `fit_schema`."""
    FAIL = "fail"
    """The query fails when it meets such a value: one that a statement sets."""


@dataclass(frozen=True)
class FitPolicy:
    """How strictly a batch is fitted.

    Args:
        missing: Columns of the table that the batch lacks.
        fixed: Columns whose type changes only when any change is allowed: keys, ordering and partition columns.
    """

    missing: Missing = Missing.NULL
    change: SchemaChange = SchemaChange.WIDEN
    fixed: tuple[str, ...] = ()


def fit_schema(
    incoming: pa.Schema, table: pa.Schema | None, policy: FitPolicy, *, spelling: Sequence[str] = ()
) -> pa.Schema:
    """Return the table's data columns after a batch of these columns.

    Args:
        table: Data columns of the table, None for a table without a schema.
        spelling: Names as a table without a schema spells them.

    Raises:
        SchemaError: Changes that Hudi or the policy refuses; all in one message.
    """
    spelled = spelled_columns(incoming, table, spelling)
    if table is None:
        return spelled
    merged = evolve(table, spelled, allow_missing=policy.missing is Missing.NULL)
    if policy.change is not SchemaChange.ANY:
        _check_changes(table, merged, policy)
    return merged


def spelled_columns(incoming: pa.Schema, table: pa.Schema | None, spelling: Sequence[str] = ()) -> pa.Schema:
    """Return columns spelled as a table spells them, fields of structs too; new ones as they are.

    Args:
        table: Data columns of the table, None for a table without a schema.
        spelling: Names as a table without a schema spells them.
    """
    if table is None:
        return _spelled(incoming, spelling)
    known = {field.name: field.type for field in table}
    return pa.schema(
        [
            field.with_type(spelled_type(field.type, known.get(field.name, field.type)))
            for field in _spelled(incoming, table.names)
        ]
    )


def fit_frame(
    frame: DataFrame,
    names: Sequence[str],
    schema: pa.Schema,
    kept: Sequence[str] = (),
) -> DataFrame:
    """Return a frame with the columns of ``schema``, null where it has none, and those of ``kept`` after them."""
    given, wanted = spellings(names), arrow_to_spark(schema).fields
    as_wanted = [(field.name, field.dataType) for field in wanted]
    if [(field.name, field.dataType) for field in frame.schema.fields] == as_wanted and not kept:
        return frame
    source_types = AnyCase((field.name, field.dataType) for field in frame.schema.fields)
    columns = []
    for field in wanted:
        name = given.get(field.name)
        if name is None:
            column = F.lit(None).cast(field.dataType)
        else:
            source = source_types[name]
            column = fit_value(F.col(quoted(name)), source, field.dataType, field.name)
        columns.append(column.alias(field.name))
    return frame.select(*columns, *[F.col(quoted(name)) for name in kept])


def fit_value(
    value: Column, given: DataType, wanted: DataType, path: str = "", overflow: Overflow = Overflow.REFUSE
) -> Column:
    """Return a value in the type of the table's column; fields that it lacks are null.

    Args:
        overflow: What becomes of values that do not fit.
    """
    if given == wanted:
        return value
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        fields = AnyCase((field.name, field) for field in given.fields)
        parts = []
        for field in wanted.fields:
            source = fields.get(field.name)
            part = F.lit(None).cast(field.dataType)
            if source is not None:
                inner = value.getField(source.name)
                part = fit_value(inner, source.dataType, field.dataType, f"{path}.{field.name}", overflow)
            parts.append(part.alias(field.name))
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        element, kind = given.elementType, wanted.elementType
        if element == kind:
            return value
        return F.transform(value, lambda each: fit_value(each, element, kind, f"{path}.element", overflow))
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        before, after = given.valueType, wanted.valueType
        if before != after:
            value = F.transform_values(
                value, lambda _, each: fit_value(each, before, after, f"{path}.value", overflow)
            )
        return (
            value
            if given.keyType == wanted.keyType
            else F.transform_keys(value, lambda key, _: key.cast("string"))
        )
    return value.cast(wanted) if overflow is Overflow.REFUSE else _checked(value, given, wanted, path)


def spelled_type(given: pa.DataType, known: pa.DataType) -> pa.DataType:
    """Return a type with the fields of its structs spelled as in another one, matched without regard to case, and its units."""
    if pa.types.is_struct(given) and pa.types.is_struct(known):
        fields = AnyCase((field.name, field) for field in known)
        spelled = []
        for field in given:
            same = fields.get(field.name)
            if same is not None:
                field = pa.field(same.name, spelled_type(field.type, same.type))
            spelled.append(field)
        return pa.struct(spelled)
    if pa.types.is_list(given) and pa.types.is_list(known):
        return pa.list_(pa.field("element", spelled_type(given.value_type, known.value_type)))
    if pa.types.is_map(given) and pa.types.is_map(known):
        return pa.map_(given.key_type, spelled_type(given.item_type, known.item_type))
    return in_units_of(given, known)


def quoted(name: str) -> str:
    """Return a column name as Spark's column functions take it whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def _checked(value: Column, given: DataType, wanted: DataType, path: str) -> Column:
    """Return a cast that fails the query at a value that does not fit, where Spark's own gives null or wraps around."""
    back = value.cast(wanted)
    if isinstance(given, T.NullType) or isinstance(wanted, (T.StringType, T.BinaryType)):
        return back
    fits = back.isNotNull()
    if isinstance(wanted, T.IntegralType) and not isinstance(given, (T.StringType, T.BooleanType)):
        number = value if isinstance(given, T.NumericType) else value.cast(T.LongType())
        low, behind = (F.lit(Decimal(each)) for each in _RANGES[wanted.typeName()])
        fits &= (number >= low) & (number < behind)
    elif isinstance(wanted, T.FloatType) and isinstance(given, T.NumericType):
        # Spark takes a number that is too large for it for infinite
        fits &= (F.abs(back) != _INFINITE) | (F.abs(value.cast(T.DoubleType())) == _INFINITE)
    problem = F.concat(
        F.lit("value "),
        value.cast(T.StringType()),
        F.lit(f" of column {path} does not fit its type {wanted.simpleString()}"),
    )
    return F.when(value.isNull() | fits, back).otherwise(F.raise_error(problem).cast(wanted))


def _check_changes(table: pa.Schema, merged: pa.Schema, policy: FitPolicy) -> None:
    """Refuse changes of types beyond what the option allows; key, ordering and partition columns never change."""
    fixed = {name.partition(".")[0].lower() for name in policy.fixed}
    problems: list[str] = []
    for field in table:
        change = policy.change
        if field.name.lower() in fixed:
            change = SchemaChange.COLUMNS
        for path, old, new in _changed(field.name, field.type, merged.field(field.name).type):
            if change is SchemaChange.WIDEN and not (pa.types.is_string(new) or pa.types.is_binary(new)):
                continue
            role = " and a key, ordering or partition column" if field.name.lower() in fixed else ""
            problems.append(
                f"column {path!r} is {old} in the table{role}, and {new} in the batch: cast it to {old}"
            )
    if problems:
        raise SchemaError(
            "the batch does not fit the table: "
            + "; ".join(problems)
            + f". hoodie.engine.schema.evolution={SchemaChange.ANY.value} lets the table's type change for good"
        )


def _changed(path: str, old: pa.DataType, new: pa.DataType) -> list[tuple[str, pa.DataType, pa.DataType]]:
    """Leaves of a type that another one has in another type."""
    if old.equals(new):
        return []
    pairs = paired_parts(old, new)
    if pairs is None:
        return [(path, old, new)]
    both = [(name, one, other) for name, one, other in pairs if one is not None and other is not None]
    return [change for name, one, other in both for change in _changed(f"{path}.{name}", one, other)]


def _spelled(incoming: pa.Schema, names: Sequence[str]) -> pa.Schema:
    spelled = spellings(names)
    return pa.schema([field.with_name(spelled.get(field.name, field.name)) for field in incoming])


def never_older(new: Sequence[Column], old: Sequence[Column], names: Sequence[str]) -> Column:
    """Return the new value of the first ordering field; fails the query where the row is older, as the stored one would win.

    Args:
        new: The row's new ordering values, compared field by field as Spark does: null first, NaN last.
    """

    def shown(values: Sequence[Column]) -> Column:
        return F.concat_ws(", ", *[F.coalesce(each.cast("string"), F.lit("null")) for each in values])

    problem = F.concat(
        F.lit(f"{', '.join(names)} {'order' if len(names) > 1 else 'orders'} the versions of a row, and one would go from "),
        shown(old), F.lit(" to "), shown(new),
        F.lit(": the older row would lose against the stored one. Delete the row and insert it anew"),
    )  # fmt: skip
    # Spark 3.5 compares structs only when their fields have the same names
    older, newer = (
        F.struct(*[each.alias(name) for each, name in zip(values, names, strict=True)])
        for values in (new, old)
    )
    return F.when(older < newer, F.raise_error(problem)).otherwise(new[0])
