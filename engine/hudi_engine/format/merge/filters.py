"""Filters of a read: from tuples to an expression, and which columns an expression looks at."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import META_FIELDS

OPERATORS = ("=", "==", "!=", "<", ">", "<=", ">=", "in", "not in")

_BEYOND = 2.0**63
_LEAST = -(2**63)
"""Bounds of whole numbers of 64 bits."""
_MAX_FLOATS = {32: math.nextafter(2.0**128 - 2.0**103, 0), 64: float(np.finfo(np.float64).max)}
"""The greatest number that has a nearest one of each width in bits; beyond it a number would become infinity."""

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


def _from_tuples(filters: object, schema: pa.Schema) -> pc.Expression:
    """Turn tuples, as pyarrow takes them, into an expression; the checks give errors that name the filter."""
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
    typed = [
        [
            _typed((exact[str(name)], operator, _members(operator, value)), schema)
            for name, operator, value in alternative
        ]
        for alternative in alternatives
    ]
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
    """Return what a column is compared with; members as a list, which can be asked for more than once."""
    if operator not in ("in", "not in"):
        return value
    return value.to_pylist() if isinstance(value, (pa.Array, pa.ChunkedArray)) else list(value)


def _check(given: tuple[Any, ...], exact: Mapping[str, str]) -> None:
    """Refuse a filter that says nothing; ``exact`` has the table's columns by name."""
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
    """Read text that a date, time or decimal is compared with as such a value; a time without a zone is in UTC."""
    name, operator, value = given
    kind = schema.field(str(name)).type
    if operator in ("in", "not in") and all(each is None for each in value):
        # Of a list without a value Arrow does not know what it is compared with.
        return name, operator, pa.array([None] * min(len(value), 1), kind)
    if pa.types.is_integer(kind):
        return _of_whole_numbers(name, operator, value, kind)
    if pa.types.is_floating(kind):
        if operator in ("in", "not in"):
            return name, operator, _float_members(value, kind)
        return _float_filter(str(name), operator, value, kind)
    if not (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)):
        return given
    if operator in ("in", "not in"):
        members = [_read(given, each, kind) for each in value]
        if pa.types.is_decimal(kind):
            members = [each for each in members if _may_be_stored(each, kind)]
        return name, operator, members or pa.array([], kind)
    return name, operator, _read(given, value, kind)


def _of_whole_numbers(name: str, operator: str, value: Any, kind: pa.DataType) -> tuple[Any, ...]:
    """Return a filter of a column of whole numbers that names none with a fraction, for which Arrow makes floats of the column."""
    if operator in ("in", "not in"):
        members = [_whole(each) for each in value]
        members = [each for each in members if not isinstance(each, (float, Decimal))]
        return name, operator, members or pa.array([], kind)
    number = _whole(value)
    if not isinstance(number, (float, Decimal)):
        return name, operator, number
    nothing, everything = (name, "in", pa.array([], kind)), (name, ">=", _LEAST)
    if operator == "!=":
        return everything
    if operator in ("=", "==") or math.isnan(number):
        return nothing
    is_upper = operator in ("<", "<=")
    if not -_BEYOND < number < _BEYOND:
        return everything if (number > 0) is is_upper else nothing
    return (name, "<=", math.floor(number)) if is_upper else (name, ">=", math.ceil(number))


def _whole(value: object) -> object:
    """Return a number that a column of 64 bits may hold as a whole one; one that none holds as a float or decimal."""
    if isinstance(value, int):
        return value if _LEAST <= value < -_LEAST else Decimal(value)
    if not isinstance(value, (float, Decimal)) or math.isnan(value):
        return value
    return int(value) if _LEAST <= value < -_LEAST and value % 1 == 0 else value


def _may_be_stored(value: object, kind: pa.DataType) -> bool:
    """Tell whether a column of decimals may hold a number; Arrow fails over one with more digits, before or behind the point."""
    if not isinstance(value, Decimal):
        return True
    try:
        pa.scalar(value, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _read(given: object, value: object, kind: pa.DataType) -> object:
    """Return a filter's value as one of the column's type; times without a zone are UTC, as the table shows them."""
    if (
        isinstance(value, datetime.datetime)
        and value.tzinfo is None
        and pa.types.is_timestamp(kind)
        and kind.tz
    ):
        return value.replace(tzinfo=datetime.timezone.utc)
    if pa.types.is_decimal(kind) and isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)  # Arrow would make 19 digits of it, too many beside those of the column
    if not isinstance(value, str):
        return value
    if pa.types.is_decimal(kind):
        return _decimal(given, value, kind)
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
        raise SchemaError(f"the filter {given!r} compares a {kind} with {value!r}, which is none") from error


def _decimal(given: object, text: str, kind: pa.DataType) -> Decimal:
    """Return the number of a text; it may have more digits than the column, which casting it would refuse."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or "_" in text:
        raise SchemaError(f"the filter {given!r} compares a {kind} with {text!r}, which is none")
    return number


def _how(given: object) -> str:
    return (
        f"{given!r} is no filter; write [('column', 'operator', value), ...] with one of the operators "
        f"{', '.join(OPERATORS)}, lists of such lists of which one must hold, or a pyarrow.compute expression"
    )


def _float_members(values: Iterable[object], kind: pa.DataType) -> Sequence[object] | pa.Array:
    """Return the members of a list as the column has them; Arrow takes the two zeros for different ones, but for equal bounds."""
    found = [_nearest_float(each, kind) for each in map(_float_number, values) if not _is_beyond(each, kind)]
    if all(each is None for each in found):
        return pa.array(found, kind)
    return [*found, 0.0, -0.0] if 0 in found else found


def _float_number(value: object) -> object:
    """Return the number that a text says, of which Arrow would make infinity where it is too large; whatever else as it is."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    if not isinstance(text, str):
        return value
    try:
        number = pa.scalar(text).cast(pa.float64()).as_py()
    except pa.ArrowInvalid:
        return value
    return Decimal(text) if math.isinf(number) and "i" not in text.lower() else number


def _is_beyond(value: object, kind: pa.DataType) -> bool:
    """Tell whether a number is none of a column's, and not infinity either, which Arrow would make of it."""
    is_number = isinstance(value, (int, float, Decimal)) and value == value
    return is_number and _MAX_FLOATS[kind.bit_width] < abs(value) < math.inf  # type: ignore[arg-type]


def _nearest_float(value: object, kind: pa.DataType) -> object:
    """Return a number as the column has it: the nearest of 32 bits, say, which its files' bounds and its rows are told in."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if _is_beyond(value, kind):
        return value if abs(value) > _MAX_FLOATS[64] else float(value)
    return pa.scalar(float(value), pa.float64()).cast(kind, safe=False).as_py()


def _float_filter(name: str, operator: str, value: object, kind: pa.DataType) -> tuple[Any, ...]:
    """Return a filter that compares a column with one number; one beyond all floats, which Arrow refuses, lies before infinity."""
    is_number = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
    if not (is_number and _is_beyond(value, pa.float64())):
        return name, operator, _nearest_float(value, kind)
    if operator in ("=", "=="):
        return name, "in", pa.array([], kind)
    if operator == "!=":
        return name, "!=", math.nan  # all but those without a value
    is_above, infinity = value > 0, math.inf  # type: ignore[operator]
    if operator in ("<", "<="):
        return (name, "<", infinity) if is_above else (name, "<=", -infinity)
    return (name, ">=", infinity) if is_above else (name, ">", -infinity)
