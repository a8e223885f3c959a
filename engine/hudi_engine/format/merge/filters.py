"""Filters of a read: from tuples to an expression, and which columns an expression looks at."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import META_FIELDS

OPERATORS = ("=", "==", "!=", "<", ">", "<=", ">=", "in", "not in")

_TEXT = re.compile(r"\s*(.+?)\s*(<=|>=|!=|==|=|<|>|\s(?:not\s+)?in\s)\s*(.+?)\s*", re.IGNORECASE | re.DOTALL)
_LONGS = range(-(2**63), 2**63)

Filters: TypeAlias = pc.Expression | Sequence[Any]
"""An Arrow expression; tuples ``(column, operator, value)`` that must all hold; or lists of such, one of which must hold."""


def as_expression(filters: Filters, schema: pa.Schema) -> pc.Expression:
    """Return filters as an expression that can be evaluated over ``schema``."""
    expression = filters if isinstance(filters, pc.Expression) else _from_tuples(filters, schema)
    try:
        schema.empty_table().filter(expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = str(error).splitlines()[0]
        raise SchemaError(
            f"the filter {filters} cannot be evaluated over the table: {reason}. Its columns are {', '.join(schema.names)}"
        ) from error
    return expression


def columns_of(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """Return the columns of ``schema`` that an expression looks at, found by leaving each one out."""
    found = []
    for field in schema:
        rest = pa.schema([other for other in schema if other.name != field.name])
        try:
            rest.empty_table().filter(expression)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            found.append(field.name)
    return found


def parse_filter(text: str, schema: pa.Schema) -> tuple[str, str, Any]:
    """Return the filter that a text says, such as ``amount >= 3``, ``name = anna`` or ``id in k1, k2``; quotes are left out.

    Raises:
        ConfigError, SchemaError: It is no filter, names an unknown column, or a value is none of the column's type.
    """
    matched = _TEXT.fullmatch(text)
    if matched is None:
        raise ConfigError(
            f"the filter {text!r} is none; write a column, one of {', '.join(OPERATORS)}, and a value: amount >= 3"
        )
    name, operator, value = matched[1].strip("`"), " ".join(matched[2].lower().split()), matched[3]
    exact = spellings(schema.names)
    _check((name, operator, [value]), exact)
    kind, several = schema.field(exact[name]).type, operator.endswith("in")
    texts = value.removeprefix("(").removesuffix(")").split(",") if several else [value]
    values: list[Any] = [each.strip().strip("'\"") for each in texts]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        try:
            values = pa.array(values).cast(kind).to_pylist()
        except pa.ArrowInvalid as error:
            raise SchemaError(f"the filter {text!r} compares {name}, which is {kind}: {error}") from error
    return exact[name], operator, values if several else values[0]


def typed_tuples(filters: object, schema: pa.Schema) -> list[list[tuple[Any, ...]]]:
    """Return filters as lists of tuples of which one list must hold, their values of the columns' types; raises by the filter."""
    if isinstance(filters, (str, bytes)) or not isinstance(filters, Sequence) or not filters:
        raise ConfigError(_how(filters))
    alternatives = filters if isinstance(filters[0], list) else [filters]
    exact = spellings(schema.names)
    for alternative in alternatives:
        if not isinstance(alternative, Sequence) or not alternative:
            raise ConfigError(_how(filters))
        for each in alternative:
            if not isinstance(each, tuple) or len(each) != 3 or each[1] not in OPERATORS:
                raise ConfigError(_how(each))
            _check(each, exact)
    return [
        [
            _typed((exact[str(name)], operator, _members(operator, value)), schema)
            for name, operator, value in alternative
        ]
        for alternative in alternatives
    ]


def _from_tuples(filters: object, schema: pa.Schema) -> pc.Expression:
    """Turn tuples, as pyarrow takes them, into an expression; the checks give errors that name the filter."""
    typed = typed_tuples(filters, schema)
    try:
        for each in (each for alternative in typed for each in alternative):
            _check_types(each, schema)
        expression: pc.Expression = pq.filters_to_expression(typed)
    except SchemaError:
        raise
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise ConfigError(f"{_how(filters)} ({error})") from error
    return expression


def _members(operator: str, value: Any) -> Any:
    """Return what a column is compared with; members as a list, which can be read more than once."""
    if operator not in ("in", "not in"):
        return value
    return value.to_pylist() if isinstance(value, (pa.Array, pa.ChunkedArray)) else list(value)


def _check(given: tuple[Any, ...], exact: Mapping[str, str]) -> None:
    """Refuse a filter without meaning; ``exact`` has the table's columns by name."""
    name, operator, value = given
    if str(name) not in exact:
        own = [each for each in exact.values() if each not in META_FIELDS]
        raise SchemaError(f"the filter {given!r} names an unknown column; the table has {', '.join(own)}")
    if operator in ("in", "not in"):
        if isinstance(value, (str, bytes)):
            raise ConfigError(
                f"the filter {given!r} compares with the letters of {value!r}; give a list: [{value!r}]"
            )
        if isinstance(value, Mapping) or not isinstance(value, Iterable):
            raise ConfigError(f"the filter {given!r} needs a list of values, such as [1, 2], not {value!r}")
    if value is None:
        raise ConfigError(
            f"the filter {given!r} compares with nothing, which no row passes; for rows without a value use "
            f"pyarrow.compute.field({name!r}).is_null()"
        )


def _check_types(given: tuple[Any, ...], schema: pa.Schema) -> None:
    """Refuse a value that no value of the column can be compared with, in words of the filter."""
    name, operator, value = given
    kind = schema.field(name).type
    try:
        schema.empty_table().filter(pq.filters_to_expression([given]))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        first = next(iter(value), None) if operator in ("in", "not in") else value
        raise SchemaError(
            f"the filter {given!r} compares {name!r}, a column of type {kind}, with {first!r}, a {type(first).__name__}; give "
            "a value of the column's type"
        ) from error


def _typed(given: tuple[Any, ...], schema: pa.Schema) -> tuple[Any, ...]:
    """Return a filter whose value, or members, are of the column's type; a time without a zone is in UTC."""
    name, operator, value = given
    kind = schema.field(str(name)).type
    if operator not in ("in", "not in"):
        return name, operator, _read(given, value, kind)
    members = [None if each is None else _read(given, each, kind) for each in value]
    if pa.types.is_floating(kind) and 0 in members:
        members += [0.0, -0.0]  # for Arrow two members, but equal bounds of a row group
    try:
        return name, operator, pa.array(members, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if pa.types.is_decimal(kind):
            raise _misfit(given, value, kind) from error
        return name, operator, members


def _read(given: object, value: Any, kind: pa.DataType) -> object:
    """Return a filter's value as one of the column's type; what Arrow itself refuses is returned as it is."""
    if pa.types.is_integer(kind):
        return _whole_number(given, value, kind)
    if pa.types.is_floating(kind):
        return _float(given, value, kind)
    if pa.types.is_decimal(kind):
        return _decimal(given, value, kind)
    if not pa.types.is_temporal(kind):
        return value
    if not isinstance(value, str):
        return _time(given, value, kind)
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", kind.tz)  # a time may be given more finely than the column has it
    try:
        return pa.scalar(value).cast(kind).as_py()
    except pa.ArrowException as error:
        try:
            if pa.types.is_timestamp(kind) and kind.tz is not None:
                return pa.scalar(value).cast(pa.timestamp(kind.unit)).cast(kind).as_py()
        except pa.ArrowException:
            pass
        raise _misfit(given, value, kind) from error


def _time(given: object, value: Any, kind: pa.DataType) -> object:
    if getattr(value, "nanosecond", 0):
        raise _misfit(given, value, kind)  # a pandas.Timestamp is a datetime too, without its nanoseconds
    is_utc = isinstance(value, datetime.datetime) and value.tzinfo is None and getattr(kind, "tz", None)
    return value.replace(tzinfo=datetime.timezone.utc) if is_utc else value


def _whole_number(given: object, value: Any, kind: pa.DataType) -> object:
    if isinstance(value, (float, Decimal)):
        if not math.isfinite(value) or value % 1:
            raise _misfit(given, value, kind)
        value = int(value)
    if isinstance(value, int) and value not in _LONGS:
        raise _misfit(given, value, kind)
    return value


def _float(given: object, value: Any, kind: pa.DataType) -> object:
    """Return the nearest number that the column holds, as its rows and the bounds of its files are stored so."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str, bytes)):
        return value
    try:
        number = float(value)
        found = pa.scalar(number, pa.float64()).cast(kind, safe=False).as_py()
    except (ValueError, OverflowError) as error:
        raise _misfit(given, value, kind) from error
    is_infinity = "inf" in str(value).lower()
    if math.isinf(found) and not is_infinity:
        raise _misfit(given, value, kind)
    return found


def _decimal(given: object, value: Any, kind: pa.DataType) -> object:
    """Return a number that may have more digits than the column, which casting it would refuse."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)  # Arrow would make 19 digits of it, too many next to those of the column
    if not isinstance(value, str):
        return value
    try:
        number = Decimal(value)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or "_" in value:
        raise _misfit(given, value, kind)
    return number


def _misfit(given: object, value: object, kind: pa.DataType) -> SchemaError:
    return SchemaError(
        f"the filter {given!r} compares a {kind} with {value!r}, which is none. Give a value that such a column can hold, or a "
        "pyarrow.compute expression"
    )


def _how(given: object) -> str:
    return (
        f"{given!r} is no filter; write [('column', 'operator', value), ...] with one of the operators "
        f"{', '.join(OPERATORS)}, lists of such lists of which one must hold, or a pyarrow.compute expression"
    )
