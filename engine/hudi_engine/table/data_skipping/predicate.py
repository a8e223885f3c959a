"""The pruning predicate of a filter: what indexes of files use of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, UnsupportedTableError
from hudi_engine.format.config.enums import KeyGeneratorType
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.format.merge.filters import Filters, as_expression, typed_tuples
from hudi_engine.format.schema.meta_fields import RECORD_KEY

MOST_KEYS = 1_000_000
_KINDS = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION)


@dataclass(frozen=True)
class PruningPredicate:
    """What the rows of a read have in common, by which partitions and files without such rows are skipped.

    Args:
        filters: Condition over the columns of the read; None for all rows.
        keys: Record keys that the condition allows, each once; None where it does not name them.
        equal: Where it does not: alternatives, each with the values that it allows by column.
        is_lookup: Whether the condition is that of the keys alone.
        bounds_have_nan: Whether bounds of floating point numbers may be used. Those of some writers leave NaN out, which passes
            comparisons of Spark and none of Arrow.
    """

    filters: pc.Expression | None = None
    keys: pa.Array | None = None
    equal: tuple[Mapping[str, Sequence[Any]], ...] = ()
    is_lookup: bool = False
    bounds_have_nan: bool = True


def pruning_predicate(
    filters: Filters | None, schema: pa.Schema, config: TableConfig, options: Options
) -> PruningPredicate:
    """Return the pruning predicate of a filter.

    A filter names record keys by ``=`` or ``in`` on the record key, or on every column of it that is a text or a whole number:
    other types have several texts, by the release that wrote them.

    Raises:
        ConfigError, SchemaError: A filter that makes no sense.
    """
    if filters is None:
        return PruningPredicate()
    expression = as_expression(filters, schema)
    if isinstance(filters, pc.Expression):
        return PruningPredicate(expression)
    equal = tuple(_equal_to(alternative) for alternative in typed_tuples(filters, schema))
    keys = [_keys(each, schema, config, options) for each in equal]
    if any(each is None for each in keys):
        return PruningPredicate(expression, equal=equal)
    return PruningPredicate(expression, pc.unique(pa.concat_arrays(keys)))


def record_keys_of(keys: Iterable[Any], schema: pa.Schema, config: TableConfig, options: Options) -> pa.Array:
    """Return record keys, each once, of texts that are record keys and of values of the key's columns.

    Raises:
        ConfigError: A value that is neither.
    """
    given = [keys] if isinstance(keys, (str, bytes)) else list(keys)
    texts = [key for key in given if isinstance(key, str)]
    values = [key if isinstance(key, tuple) else (key,) for key in given if not isinstance(key, str)]
    made = pa.array([], pa.string())
    if values:
        fields = config.record_key_fields
        wrong = next((each for each in values if len(each) != len(fields)), None)
        if wrong is not None or not has_plain_keys(schema, config):
            raise _no_key(wrong or values[0], config)
        try:
            made = keys_of_values(values, schema, config, options)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise _no_key(values[0], config) from error
        if made.null_count:
            raise _no_key(values[made.is_null().index(True).as_py() % len(values)], config)
    return pc.unique(pa.concat_arrays([pa.array(texts, pa.string()), made]))


def _no_key(value: tuple[Any, ...], config: TableConfig) -> ConfigError:
    named = ", ".join(config.record_key_fields) or "keys that its writers generate"
    return ConfigError(
        f"{value[0] if len(value) == 1 else value!r} is no key of table {config.name!r}, whose record key is {named}; give texts "
        "as in _hoodie_record_key, or values of the key's columns where these are texts or whole numbers"
    )


def keys_of_values(
    values: list[tuple[Any, ...]], schema: pa.Schema, config: TableConfig, options: Options
) -> pa.Array:
    """Return the record keys that values of the key's columns make; null for one that is no key.

    A complex key of one column gives two keys for each value, as releases differ in whether the column's name is in it.
    """
    fields = config.record_key_fields
    kinds = [schema.field(name).type for name in fields]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*values), kinds, strict=True)]
    rows = pa.table(columns, names=list(fields))
    single = config.key_generator is KeyGeneratorType.COMPLEX and len(fields) == 1
    made = [
        build_key_generator(config, options=options, complex_single_prefix=prefix).record_keys_or_null(rows)
        for prefix in ((True, False) if single else (None,))
    ]
    return pa.concat_arrays([keys for keys in made if keys is not None])


def has_plain_keys(schema: pa.Schema, config: TableConfig) -> bool:
    """Return whether the values of the key's columns have one text as key, whoever wrote them."""
    fields = config.record_key_fields
    try:
        is_known = config.key_generator in _KINDS
    except UnsupportedTableError:
        is_known = False  # a generator of somebody's own
    if not fields or not is_known:
        return False
    places = [schema.get_field_index(name) for name in fields]
    return min(places) >= 0 and all(_is_plain(schema.field(place).type) for place in places)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind))


def _equal_to(alternative: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Return the values that columns must be equal to, by column."""
    found: dict[str, list[Any]] = {}
    for name, operator, value in alternative:
        if operator in ("=", "=="):
            found[name] = [value]
        elif operator == "in" and name not in found:
            found[name] = value.to_pylist() if isinstance(value, pa.Array) else list(value)
    return found


def _keys(
    equal: dict[str, list[Any]], schema: pa.Schema, config: TableConfig, options: Options
) -> pa.Array | None:
    """Return the keys of rows whose columns have some values; None where the values do not make one key each."""
    if RECORD_KEY in equal:
        values = equal[RECORD_KEY]
        return None if None in values else pa.array(values, pa.string())
    fields = config.record_key_fields
    if not has_plain_keys(schema, config) or any(name not in equal for name in fields):
        return None
    number = 1
    for name in fields:
        number *= len(equal[name])
    if number > MOST_KEYS or any(None in equal[name] for name in fields):
        return None
    keys = keys_of_values(list(product(*(equal[name] for name in fields))), schema, config, options)
    return None if keys.null_count else keys
