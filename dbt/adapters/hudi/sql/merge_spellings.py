"""Which values are one key or partition: null and what stands for it, times whose texts are one, values that a cast changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from hudi_engine import HudiTable
from hudi_engine.format.config.options import Options
from hudi_engine.format.keygen.complex_key import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.format.keygen.partition_path import DEFAULT_PARTITION_VALUE
from hudi_engine.table.state import TableState
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

BLANK_IS_STORED = (
    " is stored and not matched, so that it would be inserted over the stored row: null equals nothing by =, and null, '' and "
    f"{DEFAULT_PARTITION_VALUE} make one partition (null and {NULL_PLACEHOLDER}, or '' and {EMPTY_PLACEHOLDER}, one key of several "
    "columns)"
)
Cut = Callable[[Column], Column]
_MICROS = 1_000
# How many digits a whole number may have.
_DIGITS: dict[type[T.DataType], int] = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 20}
_MOST_DIGITS = 38


@dataclass(frozen=True)
class Spelling:
    """What stands in a key or a partition's path where a column has no value, or a text without letters.

    Args:
        cut: Gives what is equal for all values of one text, None where each has its own.
    """

    kind: T.DataType
    null: str
    empty: str
    cut: Cut | None = None

    @classmethod
    def of_key(cls, kind: T.DataType, cut: Cut | None = None) -> Spelling:
        """Return that of one of several columns of a key."""
        return cls(kind, NULL_PLACEHOLDER, EMPTY_PLACEHOLDER, cut)

    @classmethod
    def of_partition(cls, kind: T.DataType, cut: Cut | None = None) -> Spelling:
        """Return that of a partition column, of which both go into one partition."""
        return cls(kind, DEFAULT_PARTITION_VALUE, DEFAULT_PARTITION_VALUE, cut)

    def same(self, value: Column) -> Column:
        """Return what is equal, or null, for all values that make one key or partition."""
        text = self._text(value)
        if text is None:
            return value if self.cut is None else self.cut(value)
        return F.when(text.isNull(), self.null).when(text == "", self.empty).otherwise(text)

    def is_blank(self, value: Column) -> Column:
        """Tell whether a value without letters may make the same key or partition, or this one is null."""
        text = self._text(value)
        return value.isNull() if text is None else text.isNull() | text.isin("", self.null, self.empty)

    def _text(self, value: Column) -> Column | None:
        """Return the value as the text that it is, None for a type of which no value is without letters."""
        if isinstance(self.kind, T.BinaryType):
            return F.hex(value)
        return value if isinstance(self.kind, T.StringType) else None


def spellings_of_keys(
    columns: Sequence[T.StructField],
    key: Collection[str],
    dated: Collection[str],
    cut: Mapping[str, Cut],
) -> dict[str, Spelling]:
    """Return the spelling of each column in which something may stand that is not its value.

    Args:
        dated: Partition columns that have spellings of their own.
    """
    found = {}
    for each in columns:
        if each.name not in key and each.name not in dated:
            found[each.name] = Spelling.of_partition(each.dataType, cut.get(each.name))
        elif each.name in key and (len(key) > 1 or each.name in cut):
            found[each.name] = Spelling.of_key(each.dataType, cut.get(each.name))
    return found


def cut_times(table: HudiTable, columns: Sequence[T.StructField], options: Options) -> Mapping[str, Cut]:
    """Return the key or partition columns of whose times several have one text, with what is equal for those."""
    times = [each.name for each in columns if isinstance(each.dataType, T.TimestampType)]
    if not times:
        return {}
    schema = TableState.load(table.storage).data_schema()
    assert schema is not None
    kinds = {name: schema.field(name).type for name in times}
    in_millis = {
        name: F.unix_millis
        for name, kind in kinds.items()
        if pa.types.is_timestamp(kind) and kind.unit == "ms"
    }
    if not build_key_generator(table.config, options=options).consistent_logical_timestamp:
        return in_millis
    return {**dict.fromkeys(times, _towards_1970), **in_millis}


def _towards_1970(value: Column) -> Column:
    """Return a time without the microseconds of its last millisecond, as its text in keys."""
    micros = F.unix_micros(value)
    return micros - micros % _MICROS


def unlike_columns(columns: Sequence[T.StructField], source: T.StructType) -> Mapping[str, str]:
    """Return the columns, with their types, that a source has in a type of which values may become another while they are stored.

    An unmatched row may get a stored key by that: ``=`` compares what the source has, before it is cast.

    Args:
        columns: Key and partition columns of a table.
    """
    return {
        each.name: each.dataType.simpleString()
        for each in columns
        for given in source.fields
        if given.name.lower() == each.name.lower() and not _stays(given.dataType, each.dataType)
    }


def advice_for_on(
    plain: Sequence[str], dated: Sequence[str], cut: Sequence[str], unlike: Mapping[str, str]
) -> str:
    """Return what an ON has to compare, so that it finds the stored row of each key.

    Args:
        plain: Columns whose values are one key or one partition each.
        dated: Those of which many values make one partition.
        cut: Those of ``plain`` that count by the millisecond.
    """
    said = f"compare {', '.join(plain)} in ON"
    if dated:
        said += f", and of {', '.join(dated)} what its partition says, such as the day"
    if cut:
        said += f", {', '.join(cut)} by the millisecond, by which a row is found (unix_millis)"
    casts = [f"cast({column} as {kind})" for column, kind in unlike.items()]
    return said + (f", the source's as they are stored: {', '.join(casts)}" if casts else "")


def _stays(given: T.DataType, stored: T.DataType) -> bool:
    """Tell whether ``=`` finds a value equal to what it becomes when it is stored, unless storing it fails."""
    if given == stored:
        return True
    if isinstance(stored, T.TimestampType):
        return isinstance(given, T.DateType)
    if isinstance(stored, T.DoubleType):
        return isinstance(given, T.NumericType)  # it is compared as a double too
    from_digits, to_digits = _whole_and_decimals(given), _whole_and_decimals(stored)
    if from_digits is None or to_digits is None or from_digits[1] > to_digits[1]:
        return False
    return max(from_digits[0], to_digits[0]) + to_digits[1] <= _MOST_DIGITS


def _whole_and_decimals(kind: T.DataType) -> tuple[int, int] | None:
    """Return how many digits an exact number has before and behind the point, None for other types."""
    if isinstance(kind, T.DecimalType):
        return kind.precision - kind.scale, kind.scale
    whole = _DIGITS.get(type(kind))
    return None if whole is None else (whole, 0)
