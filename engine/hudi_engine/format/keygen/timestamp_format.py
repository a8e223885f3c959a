"""Partition values of the timestamp-based key generator.

Serves every table version (Hudi table spec, timestamp-based partition paths). A value becomes an instant by
``timestamp.type``, and the instant becomes text by ``output.dateformat``. A table of version 6 does not store
``timestamp.type``; where a column's own type says what its numbers mean, or an input format is set, it is not
needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timezone, tzinfo
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, InvalidKeyError, SchemaError
from hudi_engine.format.keygen.date_pattern import DateReader, format_millis, tokenize, utc_of_local
from hudi_engine.format.keygen.text import map_distinct
from hudi_engine.format.keygen.time_zone import find_zone

PREFIX = "hoodie.keygen.timebased."

TIMESTAMP_TYPES = (
    "UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "SCALAR", "DATE_STRING", "MIXED",
)  # fmt: skip
TIME_UNITS = ("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")

_UNIT_OF_TYPE = {
    "UNIX_TIMESTAMP": "SECONDS",
    "EPOCHMILLISECONDS": "MILLISECONDS",
    "EPOCHMICROSECONDS": "MICROSECONDS",
}
_UNIT_OF_COLUMN = {"s": "SECONDS", "ms": "MILLISECONDS", "us": "MICROSECONDS", "ns": "NANOSECONDS"}
_MILLIS_OF_UNIT = {
    "MILLISECONDS": 1, "SECONDS": 1_000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000,
}  # fmt: skip
_UNITS_OF_MILLI = {"MICROSECONDS": 1_000, "NANOSECONDS": 1_000_000}
_TEXT_TYPES = ("DATE_STRING", "MIXED")
# From here on every zone is whole quarters of an hour from UTC; before, some were minutes and seconds off.
_QUARTER_HOURS_SINCE_MS = 94_694_400_000
_NULL_STANDS_FOR = 1


def zones_that_count(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the zones that settings give, by their names; blank ones are left out, and ``timezone`` comes before the others."""
    names = [
        name for name in ("timezone", "input.timezone", "output.timezone") if settings.get(name, "").strip()
    ]
    return {name: settings[name].strip() for name in (["timezone"] if "timezone" in names else names)}


@dataclass(frozen=True)
class TimestampFormat:
    """How one table turns values into dated partition values; picklable.

    Args:
        timestamp_type: One of `TIMESTAMP_TYPES`; None where the table does not say.
        input_formats: Joda patterns of texts, tried in this order.
        scalar_unit: Unit of ``SCALAR`` numbers, one of `TIME_UNITS`.
        input_timezone: Zone of texts without an offset. Empty: such texts are in UTC, and a text with an
            offset keeps it for the partition value.
        output_timezone: Zone of the partition value; empty: the zone a text was read in, UTC for numbers.
    """

    output_format: str
    timestamp_type: str | None = None
    input_formats: tuple[str, ...] = ()
    scalar_unit: str = "SECONDS"
    input_timezone: str = ""
    output_timezone: str = ""

    def __post_init__(self) -> None:
        """Refuse settings that no row could be placed by, before any is read."""
        if not self.output_format:
            raise ConfigError(f"{PREFIX}output.dateformat is not set; give a pattern such as 'yyyy/MM/dd'")
        if self.timestamp_type is not None and self.timestamp_type not in TIMESTAMP_TYPES:
            raise ConfigError(
                f"{PREFIX}timestamp.type is {self.timestamp_type!r}; "
                f"legal values: {', '.join(TIMESTAMP_TYPES)}"
            )
        if self.scalar_unit not in TIME_UNITS:
            raise ConfigError(
                f"{PREFIX}timestamp.scalar.time.unit is {self.scalar_unit!r}; "
                f"legal values: {', '.join(TIME_UNITS)}"
            )
        if self.timestamp_type in _TEXT_TYPES and not self.input_formats:
            raise ConfigError(
                f"{PREFIX}timestamp.type is {self.timestamp_type}, which needs {PREFIX}input.dateformat; "
                "give a pattern such as 'yyyy-MM-dd'"
            )
        tokenize(self.output_format)
        for name in (self.input_timezone, self.output_timezone):
            if name:
                find_zone(name)
        self._readers  # noqa: B018 - refuses patterns that cannot be read before any row is touched

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> TimestampFormat:
        """Take the format from a table's settings."""
        delimiter = settings.get("input.dateformat.list.delimiter.regex", "").strip() or ","
        try:
            inputs = re.split(delimiter, settings.get("input.dateformat", ""))
        except re.error as error:
            raise ConfigError(
                f"{PREFIX}input.dateformat.list.delimiter.regex is {delimiter!r}, which is no regular "
                f"expression: {error}"
            ) from error
        zones = zones_that_count(settings)
        both = zones.get("timezone", "")
        kind = settings.get("timestamp.type", "").strip().upper()
        return cls(
            output_format=settings.get("output.dateformat", ""),
            timestamp_type=kind or None,
            input_formats=tuple(pattern.strip() for pattern in inputs if pattern.strip()),
            scalar_unit=settings.get("timestamp.scalar.time.unit", "SECONDS").strip().upper(),
            input_timezone=zones.get("input.timezone", both),
            output_timezone=zones.get("output.timezone", both),
        )

    def partition_values(
        self, array: pa.Array, field: str, *, consistent_logical_timestamp: bool = False
    ) -> pa.StringArray:
        """Turn a column into partition values.

        Args:
            array: Numbers, dates, timestamps or texts. Null stands for one unit after 1970, as in Hudi.
            consistent_logical_timestamp: Timestamp columns are taken as instants whatever ``timestamp.type``
                says.
        """
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
            return self._from_texts(pc.cast(array, pa.string()), field)
        numbers, unit = self._numbers(array, field, consistent_logical_timestamp)
        millis = _to_millis(numbers, unit, field)
        return self._from_millis(millis.to_numpy(zero_copy_only=False), self._number_zone())

    @cached_property
    def _readers(self) -> tuple[DateReader, ...]:
        return tuple(DateReader(pattern) for pattern in self.input_formats)

    def _number_zone(self) -> tzinfo:
        return find_zone(self.output_timezone) if self.output_timezone else timezone.utc

    def _numbers(self, array: pa.Array, field: str, consistent: bool) -> tuple[pa.Array, str]:
        """Return a column as whole numbers with their unit: the column's own where it has one, else the option's."""
        kind = array.type
        if pa.types.is_timestamp(kind):
            own = _UNIT_OF_COLUMN[kind.unit]
            unit = own if consistent or self.timestamp_type is None else self._number_unit(field)
            return pc.cast(array, pa.int64()), unit
        if pa.types.is_date32(kind):
            unit = "DAYS" if self.timestamp_type is None else self._number_unit(field)
            return pc.cast(pc.cast(array, pa.int32()), pa.int64()), unit
        if pa.types.is_integer(kind):
            return pc.cast(array, pa.int64()), self._number_unit(field)
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            whole = pc.trunc(array)
            try:
                return pc.cast(whole, pa.int64()), self._number_unit(field)
            except pa.ArrowInvalid as error:
                raise InvalidKeyError(
                    f"partition column {field!r} holds a number that is no time: {error}"
                ) from error
        raise SchemaError(
            f"partition column {field!r} has type {kind}, which cannot be a time; "
            "use a number, date, timestamp or string column"
        )

    def _number_unit(self, field: str) -> str:
        if self.timestamp_type == "SCALAR":
            return self.scalar_unit
        if self.timestamp_type in _UNIT_OF_TYPE:
            return _UNIT_OF_TYPE[self.timestamp_type]
        received = "not set" if self.timestamp_type is None else self.timestamp_type
        raise ConfigError(
            f"partition column {field!r} holds numbers, but {PREFIX}timestamp.type is {received}; "
            "set it to UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS or SCALAR"
        )

    def _from_millis(self, millis: npt.NDArray[np.int64], zone: tzinfo) -> pa.StringArray:
        step = self._granularity(millis, zone)
        tokens = tokenize(self.output_format)
        buckets = pa.array(np.floor_divide(millis, step))
        return map_distinct(buckets, lambda bucket: format_millis(tokens, int(str(bucket)) * step, zone))

    def _granularity(self, millis: npt.NDArray[np.int64], zone: tzinfo) -> int:
        """Return milliseconds within which all instants have the same output."""
        letters = {token.letter for token in tokenize(self.output_format)}
        if "S" in letters:
            return 1
        if "s" in letters or len(millis) == 0:
            return 1_000
        if zone is not timezone.utc:
            if int(millis.min()) < _QUARTER_HOURS_SINCE_MS:
                return 1_000
            return 60_000 if "m" in letters else 900_000
        if "m" in letters:
            return 60_000
        return 3_600_000 if letters & set("ahHZ") else 86_400_000

    def _from_texts(self, texts: pa.StringArray, field: str) -> pa.StringArray:
        if not self._readers or self.timestamp_type not in (None, *_TEXT_TYPES):
            received = "not set" if self.timestamp_type is None else self.timestamp_type
            raise ConfigError(
                f"partition column {field!r} holds text, but {PREFIX}timestamp.type is {received}; "
                f"set it to DATE_STRING and give {PREFIX}input.dateformat"
            )
        encoded = pc.fill_null(texts, self._text_of_null()).dictionary_encode()
        return self._from_distinct(encoded.dictionary, field).take(encoded.indices)

    def _from_distinct(self, texts: pa.StringArray, field: str) -> pa.StringArray:
        """Read texts by the first pattern that each fits, and write them in the output zone."""
        local, offsets = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
        has_offset, good = np.zeros(len(texts), bool), np.zeros(len(texts), bool)
        for reader in self._readers:
            rest = np.flatnonzero(~good)
            if len(rest):
                found = reader.read(texts.take(pa.array(rest)))
                local[rest], offsets[rest] = found.millis, found.offsets
                has_offset[rest], good[rest] = found.has_offset, found.good
        in_zone, exists = utc_of_local(local, find_zone(self.input_timezone or "UTC"))
        good &= has_offset | exists
        if not good.all():
            patterns = ", ".join(repr(each.pattern) for each in self._readers)
            raise InvalidKeyError(
                f"partition column {field!r} holds {texts[int(np.argmin(good))].as_py()!r}, which fits no pattern of "
                f"{PREFIX}input.dateformat ({patterns}), or is skipped by the clocks of its zone; correct the value or add its "
                "pattern"
            )
        named = self.output_timezone or self.input_timezone
        if not named:
            return self._from_millis(local, timezone.utc)
        return self._from_millis(np.where(has_offset, local - offsets, in_zone), find_zone(named))

    def _text_of_null(self) -> str:
        zone = find_zone(self.input_timezone or self.output_timezone or "UTC")
        return format_millis(tokenize(self.input_formats[0]), _NULL_STANDS_FOR, zone)


def _to_millis(numbers: pa.Array, unit: str, field: str) -> pa.Array:
    filled = pc.fill_null(numbers, _NULL_STANDS_FOR)
    if unit in _UNITS_OF_MILLI:
        # Java divides towards zero, and so does Arrow.
        return pc.divide(filled, _UNITS_OF_MILLI[unit])
    try:
        return pc.multiply_checked(filled, _MILLIS_OF_UNIT[unit])
    except pa.ArrowInvalid as error:
        largest = pc.max(pc.abs(filled)).as_py()
        raise InvalidKeyError(
            f"partition column {field!r} holds {largest}, too large for a time in {unit.lower()}; "
            f"check {PREFIX}timestamp.type"
        ) from error
