"""Columns brought to those of a table: by name whatever its case, each value in its column's type or an error.

Spark's own cast goes by position in structs, and turns what does not fit into null or wraps it around. The casts are made as
SQL text, as only there every Spark has `try_cast`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.schema.any_case import AnyCase, spellings
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.catalog.sql_text import literal, type_text
from hudi_engine.spark.jvm.frames import select_names
from hudi_engine.spark.schema.spark_types import arrow_to_spark, stored_type
from hudi_engine.table.write.fit import DELETE_MARKS, marks_to_rename

META_PREFIX = "_hoodie_"
_NESTED = (T.StructType, T.ArrayType, T.MapType)
_ADVICE = ". Select a value that does, or give the column another type"
_log = logging.getLogger(__name__)


def exact_marks(frame: DataFrame, known: pa.Schema | None = None) -> DataFrame:
    """Return rows whose delete marks have the names that Hudi looks for, in whatever case they came.

    Args:
        known: Data columns of the table; a column that is spelled as the table spells it is the table's.
    """
    renamed = marks_to_rename(frame.columns, known)
    return frame.withColumnsRenamed(renamed) if renamed else frame


def drop_meta_columns(frame: DataFrame) -> DataFrame:
    """Return the frame without Hudi's own columns, which ``select *`` over a Hudi source has; delete marks stay."""
    drop = [c for c in frame.columns if c.lower().startswith(META_PREFIX) and c.lower() not in DELETE_MARKS]
    if drop and not {c.lower() for c in drop} >= {*META_FIELDS}:
        # only some of them: the query names them on purpose
        _log.warning("%s", dropped_columns_warning(drop))
    return exact_marks(frame.drop(*drop) if drop else frame)


def dropped_columns_warning(names: Sequence[str]) -> str:
    """Return the warning about columns that are left out for their names."""
    one = names[0]
    return (
        f"{', '.join(names)} not written: names that begin with {META_PREFIX} are Hudi's own; to keep such a value give "
        f"it another name, as in {one} as {one.lower().removeprefix(META_PREFIX) or 'name'}"
    )


def fit_frame(
    frame: DataFrame, names: Sequence[str], schema: pa.Schema, kept: Sequence[str] = ()
) -> DataFrame:
    """Return a frame with the columns of ``schema``, null where it has none, and those of ``kept`` after them.

    Args:
        names: Columns of the frame to take; `fit_schema` has allowed their types.
    """
    given, wanted = spellings(names), arrow_to_spark(schema).fields
    as_wanted = [(field.name, field.dataType) for field in wanted]
    if [(field.name, field.dataType) for field in frame.schema.fields] == as_wanted and not kept:
        return frame
    types, changed = {field.name: field.dataType for field in frame.schema.fields}, {}
    for field in wanted:
        name = given.get(field.name)
        if name is None:
            changed[field.name] = F.lit(None).cast(field.dataType)
        elif name != field.name or types[name] != field.dataType:
            changed[field.name] = fit_column(name, types[name], field.dataType)
    return _with_columns(frame, changed, [*(field.name for field in wanted), *kept])


def _with_columns(frame: DataFrame, changed: dict[str, Column], names: Sequence[str]) -> DataFrame:
    """Return the columns of these names, of which some are changed: a column object for each would take milliseconds."""
    return select_names(frame.withColumns(changed) if changed else frame, [quoted(name) for name in names])


def fit_to_table(
    frame: DataFrame, table: T.StructType, *, fill_missing: bool = False, advice: str = _ADVICE
) -> DataFrame:
    """Name, order and cast the columns of a query as the table has them; columns the table lacks are dropped.

    Args:
        fill_missing: Columns the query lacks become null; otherwise they are left out.
    """
    given = AnyCase((column.name, column) for column in frame.schema.fields)
    names, changed = [], {}
    for target in table.fields:
        source = given.get(target.name)
        if source is None and not fill_missing:
            continue
        names.append(target.name)
        if source is None:
            changed[target.name] = F.lit(None).cast(target.dataType)
        elif (source.name, source.dataType) != (target.name, target.dataType):
            changed[target.name] = exact_cast(
                source.name, source.dataType, target.dataType, target.name, literal(advice)
            )
    try:
        return _with_columns(frame, changed, names)
    except AnalysisException as error:
        for target in table.fields:
            source = given.get(target.name)
            if source is not None:
                try:
                    check_cast(frame, source, target, advice)
                except SchemaError as problem:
                    raise problem from error
        raise


def check_cast(frame: DataFrame, source: T.StructField, target: T.StructField, advice: str = _ADVICE) -> None:
    """Raise SchemaError where Spark casts no value of a column of a frame to the type of the table's column."""
    try:
        frame.select(exact_cast(source.name, source.dataType, target.dataType, target.name))
    except AnalysisException as error:
        raise SchemaError(
            f"column {target.name} is {source.dataType.simpleString()} in the query and "
            f"{target.dataType.simpleString()} in the table, and Spark casts no such value to the other{advice}"
        ) from error


def exact_cast(
    source: str, given: T.DataType, wanted: T.DataType, name: str, advice: str = literal(_ADVICE)
) -> Column:
    """Cast a column; the query fails at a value that does not fit. Fields of structs the table lacks are dropped.

    Args:
        advice: SQL text that ends the message about such a value.
    """
    check_fields(given, wanted, name, extra=True)
    return fit_column(source, given, wanted, name, advice).alias(name)


def fit_column(
    source: str, given: T.DataType, wanted: T.DataType, path: str = "", advice: str | None = None
) -> Column:
    """Return a column in the type of the table's; arguments as for `fitted`."""
    return (
        F.col(quoted(source))
        if given == wanted
        else F.expr(fitted(quoted(source), given, wanted, path, advice))
    )


def set_value(rows: DataFrame, text: str, field: T.StructField) -> Column:
    """Return SQL of a value as a column of the table; the query fails at a value that does not fit."""
    value = f"({text}\n)"  # a comment may end the text
    given = rows.select(F.expr(value)).schema.fields[0].dataType
    _refuse_assigned_fields(given, field.dataType, field.name)
    return F.expr(fitted(value, given, field.dataType, field.name, "''"))


def assigned_column(source: str, given: T.DataType, wanted: T.DataType, path: str) -> Column:
    """Return a column with values that were written for a column of the table, as `set_value` does."""
    _refuse_assigned_fields(given, wanted, path)
    return fit_column(source, given, wanted, path, "''")


def _refuse_assigned_fields(given: T.DataType, wanted: T.DataType, path: str) -> None:
    try:
        check_fields(given, wanted, path)
    except SchemaError as error:
        raise ConfigError(str(error)) from error


def check_fields(given: T.DataType, wanted: T.DataType, path: str, *, extra: bool = False) -> None:
    """Refuse a value whose structs have other fields than the table's, all in one SchemaError.

    Args:
        extra: Whether it may have fields that the table lacks.
    """
    problems = _field_problems(given, wanted, path, extra=extra)
    if problems:
        raise SchemaError("; ".join(problems))


def _field_problems(given: T.DataType, wanted: T.DataType, path: str, *, extra: bool) -> list[str]:
    """Return a message for each field of structs that only one side has; see `check_fields`."""
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return _field_problems(given.elementType, wanted.elementType, f"{path}.element", extra=extra)
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        return _field_problems(given.valueType, wanted.valueType, f"{path}.value", extra=extra)
    if not (isinstance(given, T.StructType) and isinstance(wanted, T.StructType)):
        if (
            isinstance(given, T.NullType)
            or not isinstance(given, _NESTED)
            and not isinstance(wanted, _NESTED)
        ):
            return []
        return [
            f"{path} is {given.simpleString()} in the query and {wanted.simpleString()} in the table; cast it in the query, or "
            "rebuild the table (in dbt with --full-refresh)"
        ]
    has, needs = ({field.name.lower(): field for field in struct.fields} for struct in (given, wanted))
    legal = ", ".join(wanted.names)
    advice = f"its fields: {legal}. Fields go by name, as in named_struct('{wanted.names[0]}', ...)"
    found = [
        f"{path} has no field {field.name!r}; {advice}"
        for name, field in has.items()
        if name not in needs and not extra
    ]
    found += [
        f"{path} lacks the field {field.name!r}, which the table has ({legal}): give it too, null will do"
        for name, field in needs.items()
        if name not in has
    ]
    for name in [name for name in needs if name in has]:
        inner = f"{path}.{needs[name].name}"
        found += _field_problems(has[name].dataType, needs[name].dataType, inner, extra=extra)
    return found


def fitted(value: str, given: T.DataType, wanted: T.DataType, path: str, advice: str | None) -> str:
    """Return SQL of a value in the type of the table's column; fields of structs that it lacks are null.

    Args:
        advice: SQL text that ends the message at which the query fails for a value that does not fit; None for types of which
            every value fits.
    """
    if given == wanted:
        return value
    name = f"`__hudi_{path.count('.')}`"
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        fields = AnyCase((field.name, field) for field in given.fields)
        parts = []
        for field in wanted.fields:
            source = fields.get(field.name)
            part = f"cast(null as {type_text(field.dataType)})"
            if source is not None:
                inner = f"{value}[{literal(source.name)}]"
                part = fitted(inner, source.dataType, field.dataType, f"{path}.{field.name}", advice)
            parts.append(f"{literal(field.name)}, {part}")
        return f"if({value} is null, null, named_struct({', '.join(parts)}))"
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        element = fitted(name, given.elementType, wanted.elementType, f"{path}.element", advice)
        return value if element == name else f"transform({value}, {name} -> {element})"
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        item = fitted(name, given.valueType, wanted.valueType, f"{path}.value", advice)
        if item != name:
            value = f"transform_values({value}, (`__hudi_key`, {name}) -> {item})"
        if given.keyType == wanted.keyType:
            return value
        return f"transform_keys({value}, (`__hudi_key`, {name}) -> cast(`__hudi_key` as string))"
    if advice is None:
        return f"cast({value} as {type_text(wanted)})"
    return _checked(value, given, wanted, path, advice)


def _tried(value: str, given: T.DataType, wanted: T.DataType) -> str | None:
    """Return SQL of a cast that is null at a value that does not fit; None where every value fits."""
    kind = type_text(wanted)
    same = stored_type(given.simpleString()) == stored_type(wanted.simpleString())
    if same or isinstance(given, T.NullType) or isinstance(wanted, T.StringType):
        return None
    tried = f"try_cast({value} as {kind})"
    if isinstance(wanted, T.FloatType):
        # Spark takes a number that is too large for it for infinite
        grown = f"abs({tried}) = double('inf') and abs(try_cast({value} as double)) <> double('inf')"
        tried = f"if({grown}, null, {tried})"
    return tried


def _misfit_text(wanted: T.DataType, path: str) -> str:
    return f" of column {path} does not fit its type {wanted.simpleString()}"


def _checked(value: str, given: T.DataType, wanted: T.DataType, path: str, advice: str) -> str:
    """Return SQL of a cast that fails the query at a value that does not fit."""
    kind, tried = type_text(wanted), _tried(value, given, wanted)
    if tried is None:
        return f"cast({value} as {kind})"
    problem = literal(_misfit_text(wanted, path))
    failed = f"raise_error(concat('value ', cast({value} as string), {problem}, {advice}))"
    return f"if({value} is null or {tried} is not null, {tried}, cast({failed} as {kind}))"


def misfit(source: T.StructField, target: T.StructField) -> Column | None:
    """Return a text where a value does not fit a column, null elsewhere; None for nested types and where every value fits.

    Spark must be able to cast some value of the type, see `check_cast`.
    """
    value = quoted(source.name)
    if isinstance(target.dataType, _NESTED) or isinstance(source.dataType, _NESTED):
        return None
    tried = _tried(value, source.dataType, target.dataType)
    if tried is None:
        return None
    shown = F.concat(
        F.lit("value "), F.col(value).cast("string"), F.lit(_misfit_text(target.dataType, target.name))
    )
    return F.when(F.col(value).isNotNull() & F.expr(tried).isNull(), shown)


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
        F.lit(": the older row would lose against the stored one. Delete the row and insert it again"),
    )  # fmt: skip
    # Spark 3.5 compares structs only when their fields have the same names
    older, newer = (
        F.struct(*[each.alias(name) for each, name in zip(values, names, strict=True)])
        for values in (new, old)
    )
    return F.when(older < newer, F.raise_error(problem)).otherwise(new[0])
