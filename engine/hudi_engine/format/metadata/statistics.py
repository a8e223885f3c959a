"""Statistics of columns for the metadata table: of a base file from its footer, of a log from its rows, of a partition.

Source: Hudi metadata table format, column statistics. Records of an index of version V2 name the column's type and store values
as that type is stored; in V1 each type has a wrapper of its own. Bounds follow the order of Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.format.metadata.records import PARTITION_STATS_TYPE, Record
from hudi_engine.format.schema.avro import full_name
from hudi_engine.format.schema.casting import cast_column
from hudi_engine.format.schema.nested import field_type, nested_values
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.damage import damaged_parquet

COLUMN_STATS_TYPE = 3
META_COLUMNS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
"""Meta columns that are always indexed, in the order of Hudi's index definition."""
MOST_COLUMNS = 32
"""Columns that are indexed where no list of them is given."""

_NULL_ORDINAL, DECIMAL_ORDINAL, DATE_ORDINAL = 1, 10, 12
_EXACT = Context(prec=80)
"""Decimals have up to 38 digits, of which the default context keeps 28."""
_DECIMAL = "DecimalWrapper"
_MOST_DIGITS, _SCALE = 30, 15


class Kind(NamedTuple):
    """How values of a column are stored.

    Args:
        wrapper: Record of the union of minima and maxima.
        ordinal: Number of the type, as Hudi's ``ValueType`` counts.
        info: Precision and scale of a decimal.
        unit: Unit of a time in Arrow's words, "" for other types.
    """

    wrapper: str
    ordinal: int
    info: str | None = None
    unit: str = ""


@dataclass(frozen=True)
class Bounds:
    """What is known of one column in one file.

    Args:
        low: Smallest value as stored: bytes of texts and binary values, numbers of all others; None where no value is known.
        values: Rows, nulls included.
        size: Bytes of its chunks in the file, compressed; 0 in logs.
        plain_size: The same, uncompressed.
    """

    low: Any
    high: Any
    values: int
    nulls: int
    size: int = 0
    plain_size: int = 0


_PRIMITIVES = {
    "boolean": Kind("BooleanWrapper", 2),
    "int": Kind("IntWrapper", 3),
    "long": Kind("LongWrapper", 4),
    "float": Kind("FloatWrapper", 5),
    "double": Kind("DoubleWrapper", 6),
    "string": Kind("StringWrapper", 7),
    "bytes": Kind("BytesWrapper", 8),
    "fixed": Kind("BytesWrapper", 9),
}
_LOGICAL = {
    "time-millis": Kind("IntWrapper", 13, None, "ms"),
    "time-micros": Kind("LongWrapper", 14, None, "us"),
    "timestamp-millis": Kind("LongWrapper", 15, None, "ms"),
    "timestamp-micros": Kind("LongWrapper", 16, None, "us"),
    "local-timestamp-millis": Kind("LongWrapper", 18, None, "ms"),
    "local-timestamp-micros": Kind("LongWrapper", 19, None, "us"),
}
_V1_LOGICAL = {
    "time-micros": Kind("TimeMicrosWrapper", 14, None, "us"),
    "timestamp-millis": _LOGICAL["timestamp-millis"],
    "timestamp-micros": _LOGICAL["timestamp-micros"],
}


def indexed_columns(
    schema: Mapping[str, Any], names: Sequence[str] | None, *, is_v2: bool
) -> dict[str, Kind]:
    """Return the columns that are indexed and how their values are stored.

    Args:
        schema: Avro schema of the table, without meta columns.
        names: Columns, nested ones with dots; those that the table lacks or whose type has no statistics are left out. None
            for the first 32 of the table.
        is_v2: Whether the index has version V2, which those have that tables of version 9 begin.
    """
    found = dict.fromkeys(META_COLUMNS, _PRIMITIVES["string"])
    if names is None:
        kinds = ((each["name"], kind_of(each["type"], is_v2=is_v2)) for each in schema["fields"])
        supported = [(name, kind) for name, kind in kinds if kind is not None]
        return {**found, **dict(supported[:MOST_COLUMNS])}
    types = dict(_leaves(schema, ""))
    for name in names:
        kind = kind_of(types[name], is_v2=is_v2) if name in types else None
        if kind is not None:
            found[name] = kind
    return found


def _leaves(schema: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for each in schema["fields"]:
        name, kind = f"{prefix}{each['name']}", _without_null(each["type"])
        yield name, kind
        if isinstance(kind, Mapping) and kind.get("type") == "record":
            yield from _leaves(kind, f"{name}.")


def _without_null(kind: Any) -> Any:
    if isinstance(kind, list):
        others = [each for each in kind if each != "null"]
        return others[0] if len(others) == 1 else kind
    return kind


def kind_of(avro: Any, *, is_v2: bool) -> Kind | None:
    """Return how values of an Avro type are stored; None for types without statistics."""
    kind = _without_null(avro)
    if isinstance(kind, str):
        return _PRIMITIVES.get(kind)
    if not isinstance(kind, Mapping):
        return None
    logical = kind.get("logicalType")
    if logical == "decimal":
        precision, scale = int(kind["precision"]), int(kind.get("scale", 0))
        if is_v2:
            return Kind("BytesWrapper", DECIMAL_ORDINAL, f"{precision},{scale}")
        fits = precision - scale <= _MOST_DIGITS - _SCALE and scale <= _SCALE
        return Kind(_DECIMAL, DECIMAL_ORDINAL, f"{precision},{scale}") if fits else None
    if logical == "date":
        return Kind("IntWrapper" if is_v2 else "DateWrapper", DATE_ORDINAL)
    if logical is not None and (logical in _LOGICAL or "timestamp" in logical):
        return (_LOGICAL if is_v2 else _V1_LOGICAL).get(logical)
    return _PRIMITIVES.get(kind.get("type", ""))


def base_file_bounds(storage: Storage, path: str, columns: Mapping[str, Kind]) -> dict[str, Bounds]:
    """Return the bounds of columns of a base file; of one that the file lacks, those of nulls alone."""
    with storage.open_input(path) as source, damaged_parquet(f"base file {path!r}"):
        file = pq.ParquetFile(source)
        chunks = _Chunks(file)
        return {name: chunks.bounds(name, kind) for name, kind in columns.items()}


class _Chunks:
    """The column chunks of a Parquet file."""

    def __init__(self, file: pq.ParquetFile) -> None:
        self._file = file
        self._meta = file.metadata
        self._places = {self._meta.schema.column(at).path: at for at in range(self._meta.num_columns)}

    def bounds(self, name: str, kind: Kind) -> Bounds:
        """Return the bounds of a column by its statistics; it is read where a chunk with values has none."""
        place = self._places.get(name)
        rows = self._meta.num_rows
        if place is None:
            return Bounds(None, None, rows, rows)
        chunks = [self._meta.row_group(at).column(place) for at in range(self._meta.num_row_groups)]
        sizes = (
            sum(each.total_compressed_size for each in chunks),
            sum(each.total_uncompressed_size for each in chunks),
        )
        statistics = [each.statistics for each in chunks]
        steps = name.split(".")
        if not _is_stored_as(field_type(self._file.schema_arrow, steps), kind) or not all(
            each is not None and each.has_null_count and (each.has_min_max or not each.num_values)
            for each in statistics
        ):
            values = nested_values(self._file.read(columns=[name]), steps)
            return _with_sizes(values_bounds(values, kind), sizes)
        nulls = sum(each.null_count for each in statistics)
        known = [(each.min_raw, each.max_raw) for each in statistics if each.has_min_max]
        plain = self._plain(place, kind)
        lows, highs = [plain(low) for low, _ in known], [plain(high) for _, high in known]
        return Bounds(min(lows, default=None), max(highs, default=None), rows, nulls, *sizes)

    def _plain(self, place: int, kind: Kind) -> Any:
        """Return what makes a value as stored of one in the statistics."""
        column = self._meta.schema.column(place)
        if kind.ordinal == DECIMAL_ORDINAL and column.physical_type not in ("INT32", "INT64"):
            return lambda value: int.from_bytes(value, "big", signed=True)
        if kind.unit:
            arrow = self._file.schema_arrow.field(column.path.split(".")[0]).type
            unit = getattr(arrow, "unit", kind.unit)
            return lambda value: _in_unit(value, unit, kind.unit)
        return lambda value: value


_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _in_unit(value: int, unit: str, wanted: str) -> int:
    return value * _UNITS[wanted] // _UNITS[unit]


def _with_sizes(bounds: Bounds, sizes: tuple[int, int]) -> Bounds:
    return Bounds(bounds.low, bounds.high, bounds.values, bounds.nulls, *sizes)


def values_bounds(values: pa.ChunkedArray, kind: Kind) -> Bounds:
    """Return the bounds of some values as the column reads them; NaN is larger than all numbers, as in Spark."""
    if not _is_stored_as(values.type, kind):
        values = cast_column(values, _arrow_type(kind), "")
    stored = _stored(values, kind)
    if stored.null_count == len(stored):
        return Bounds(None, None, len(stored), stored.null_count)
    bounds = pc.min_max(stored).as_py()
    if pa.types.is_floating(stored.type) and pc.any(pc.is_nan(stored)).as_py():
        bounds = {"min": bounds["min"] if bounds["min"] is not None else float("nan"), "max": float("nan")}
    if kind.ordinal == DECIMAL_ORDINAL:
        bounds = {side: int(value.scaleb(_scale(kind.info), _EXACT)) for side, value in bounds.items()}
    return Bounds(bounds["min"], bounds["max"], len(stored), stored.null_count)


_ARROW = {
    2: pa.bool_(),
    3: pa.int32(),
    4: pa.int64(),
    5: pa.float32(),
    6: pa.float64(),
    7: pa.string(),
    8: pa.binary(),
    DATE_ORDINAL: pa.date32(),
}


def _arrow_type(kind: Kind) -> Any:
    """Return the type that values are read in; None where there are several."""
    if kind.ordinal == DECIMAL_ORDINAL:
        return pa.decimal128(*map(int, str(kind.info).split(",")))
    return _ARROW.get(kind.ordinal)


def _is_stored_as(stored: Any, kind: Kind) -> bool:
    """Return whether values have the bounds that they had before their column was changed to this kind."""
    wanted = _arrow_type(kind)
    if wanted is None or stored == wanted:
        return True
    if pa.types.is_decimal(stored) and pa.types.is_decimal(wanted):
        return bool(stored.scale == wanted.scale)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    families = ((pa.types.is_integer,), texts)
    return any(any(test(stored) for test in some) and any(test(wanted) for test in some) for some in families)


def _stored(values: pa.ChunkedArray, kind: Kind) -> pa.ChunkedArray:
    if kind.wrapper in ("StringWrapper", "BytesWrapper") and kind.ordinal != DECIMAL_ORDINAL:
        return values.cast(pa.binary())
    if kind.unit:
        is_time = pa.types.is_time(values.type)
        narrow = pa.int32() if pa.types.is_time32(values.type) else pa.int64()
        if not is_time and getattr(values.type, "unit", kind.unit) != kind.unit:
            values = pc.cast(values, pa.timestamp(kind.unit, values.type.tz), safe=False)
        return values.cast(narrow)
    return values.cast(pa.int32()) if kind.ordinal == DATE_ORDINAL else values


def merged_bounds(parts: Iterable[Bounds]) -> Bounds:
    """Return the bounds of several files together."""
    found = list(parts)
    lows = [each.low for each in found if each.low is not None]
    highs = [each.high for each in found if each.high is not None]
    nan = next((each for each in highs if each != each), None)
    return Bounds(
        min(lows, default=None),
        nan if nan is not None else max(highs, default=None),
        sum(each.values for each in found),
        sum(each.nulls for each in found),
        sum(each.size for each in found),
        sum(each.plain_size for each in found),
    )


def statistics_record(
    column: str,
    file_name: str,
    kind: Kind,
    bounds: Bounds,
    *,
    is_v2: bool,
    of_partition: bool = False,
    of_expression: bool = False,
) -> Record:
    """Return the record of a column's statistics.

    Args:
        file_name: Name of the file without folder, or the path of the partition.
        of_expression: Whether they are of an expression; these have their type also where there is no value.
    """
    member: Record = {
        "fileName": file_name,
        "columnName": column,
        "minValue": _wrapped(bounds.low, kind),
        "maxValue": _wrapped(bounds.high, kind),
        "valueCount": bounds.values,
        "nullCount": bounds.nulls,
        "totalSize": bounds.size,
        "totalUncompressedSize": bounds.plain_size,
        "isDeleted": False,
        "isTightBound": of_partition,
    }
    if is_v2:
        is_typed = bool(bounds.values) or of_expression
        member["valueType"] = {
            "typeOrdinal": kind.ordinal if is_typed else _NULL_ORDINAL,
            "additionalInfo": kind.info if is_typed else None,
        }
    return {
        "type": PARTITION_STATS_TYPE if of_partition else COLUMN_STATS_TYPE,
        "ColumnStatsMetadata": member,
    }


def _wrapped(value: Any, kind: Kind) -> tuple[str, dict[str, Any]] | None:
    if value is None:
        return None
    if kind.wrapper == "StringWrapper":
        value = value.decode("utf-8", "replace")
    elif kind.wrapper == _DECIMAL:
        value = Decimal(value).scaleb(-_scale(kind.info), _EXACT)
    elif kind.ordinal == DECIMAL_ORDINAL:
        value = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
    return full_name(kind.wrapper, None, "org.apache.hudi.avro.model")[0], {"value": value}


class StoredBound(NamedTuple):
    """A minimum or maximum as a record has it.

    Args:
        wrapper: Record of the union of minima and maxima.
        ordinal: Number of the type, as `Kind` has it; None in an index of version V1.
        value: Decimals with their scale; all others as they are stored.
    """

    wrapper: str
    ordinal: int | None
    value: Any


def stored_bound(member: Mapping[str, Any], side: str, info: str | None = None) -> StoredBound | None:
    """Return a bound of a record of statistics; None where it has none.

    Args:
        member: Its ``ColumnStatsMetadata``.
        side: ``minValue`` or ``maxValue``.
        info: Precision and scale of a decimal for records that do not have them.
    """
    if member[side] is None:
        return None
    (name, wrapped), kind = member[side], member.get("valueType") or {}
    found = StoredBound(name.rpartition(".")[2], kind.get("typeOrdinal"), wrapped["value"])
    info = kind.get("additionalInfo") or info
    if found.wrapper != "BytesWrapper" or found.ordinal != DECIMAL_ORDINAL or info is None:
        return found
    unscaled = int.from_bytes(found.value, "big", signed=True)
    return found._replace(value=Decimal(unscaled).scaleb(-_scale(info), _EXACT))


def bounds_of_record(record: Record, kind: Kind) -> Bounds | None:
    """Return the bounds that a record of statistics has; None where they are of the type that its column had before."""
    member = record["ColumnStatsMetadata"]
    stored = [stored_bound(member, side, kind.info) for side in ("minValue", "maxValue")]
    if not all(each is None or _is_of_kind(each, kind) for each in stored):
        return None
    counts = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
    low, high = (_comparable(each, kind) for each in stored)
    return Bounds(low, high, *(member.get(each) or 0 for each in counts))


def _is_of_kind(stored: StoredBound, kind: Kind) -> bool:
    if {stored.wrapper, kind.wrapper} == {"IntWrapper", "LongWrapper"}:
        return not kind.unit
    return stored.wrapper == kind.wrapper and stored.ordinal in (None, kind.ordinal)


def _comparable(stored: StoredBound | None, kind: Kind) -> Any:
    """Return a bound as `Bounds` has it."""
    value = None if stored is None else stored.value
    if isinstance(value, str):
        return value.encode()
    return int(value.scaleb(_scale(kind.info), _EXACT)) if isinstance(value, Decimal) else value


def _scale(info: str | None) -> int:
    return int((info or "0,0").rpartition(",")[2])
