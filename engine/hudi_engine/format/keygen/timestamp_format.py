"""Partition values of the timestamp-based key generator.

Serves every table version (Hudi table spec, timestamp-based partition paths). A value becomes an instant by
``timestamp.type``, and the instant becomes text by ``output.dateformat``. A table of version 6 does not store
``timestamp.type``; where a column's own type states what its numbers mean, or an input format is set, it is not
needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, InvalidKeyError, SchemaError
from hudi_engine.format.keygen.text import map_distinct
from hudi_engine.format.keygen.time_zone import find_zone

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MILLIS_PER_DAY = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MAX_FRACTION = 9
_HIGHEST = {"M": 12, "d": 31, "H": 23, "m": 59, "s": 59}
_MILLIS = {"H": 3_600_000, "m": 60_000, "s": 1_000}
_INPUT_LETTERS = "yMdHmsSZ"


@dataclass(frozen=True)
class Token:
    """A part of a pattern: a run of one letter, or a literal (``letter`` is empty then)."""

    letter: str
    width: int
    text: str = ""


def tokenize(pattern: str) -> tuple[Token, ...]:
    """Take a pattern apart."""
    if not pattern:
        raise ConfigError("a date pattern is empty; give one such as 'yyyy/MM/dd'")
    tokens: list[Token] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        if letter.isascii() and letter.isalpha():
            end = position
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            _check_letter(letter, pattern, "".join(_WRITERS))
            if letter == "Z" and end - position > 2:
                raise ConfigError(
                    f"date pattern {pattern!r} holds ZZZ, the name of a zone; supported are Z and ZZ, an offset"
                )
            tokens.append(Token(letter, end - position))
            position = end
        else:
            text, position = _literal(pattern, position)
            tokens.append(Token("", 0, text))
    return tuple(tokens)


def _check_letter(letter: str, pattern: str, legal: str) -> None:
    if letter not in legal:
        raise ConfigError(
            f"date pattern {pattern!r} holds the letter {letter!r}; supported are {', '.join(legal)}; put other letters between "
            "single quotes"
        )


def _literal(pattern: str, position: int) -> tuple[str, int]:
    text = ""
    quoted = False
    while position < len(pattern):
        character = pattern[position]
        if pattern.startswith("''", position):
            text += "'"
            position += 2
        elif character == "'":
            quoted = not quoted
            position += 1
        elif quoted or not (character.isascii() and character.isalpha()):
            text += character
            position += 1
        else:
            break
    return text, position


def format_millis(tokens: tuple[Token, ...], millis: int, zone: tzinfo) -> str:
    """Write an instant by a pattern."""
    try:
        at = (_EPOCH + timedelta(milliseconds=millis)).astimezone(zone)
    except OverflowError:
        raise InvalidKeyError(
            f"{millis} milliseconds since 1970 are not in the years 1 to 9999; check hoodie.keygen.timebased.timestamp.type"
        ) from None
    return "".join(
        each.text if each.letter == "" else _WRITERS[each.letter](at, each.width) for each in tokens
    )


def _year(at: datetime, width: int) -> str:
    return f"{at.year % 100:02d}" if width == 2 else f"{at.year:0{width}d}"


def _month(at: datetime, width: int) -> str:
    return f"{at.month:0{width}d}" if width < 3 else _name(_MONTHS[at.month - 1], width)


def _name(name: str, width: int) -> str:
    return name if width > 3 else name[:3]


def _offset(at: datetime, width: int) -> str:
    ahead = at.utcoffset() or timedelta()
    hours, minutes = divmod(int(abs(ahead).total_seconds()) // 60, 60)
    return f"{'-' if ahead < timedelta() else '+'}{hours:02d}{':' if width == 2 else ''}{minutes:02d}"


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WRITERS: dict[str, Callable[[datetime, int], str]] = {
    "y": _year,
    "Y": _year,
    "M": _month,
    "d": lambda at, width: f"{at.day:0{width}d}",
    "D": lambda at, width: f"{at.timetuple().tm_yday:0{width}d}",
    "E": lambda at, width: _name(_WEEKDAYS[at.weekday()], width),
    "a": lambda at, _: "AM" if at.hour < 12 else "PM",
    "H": lambda at, width: f"{at.hour:0{width}d}",
    "h": lambda at, width: f"{at.hour % 12 or 12:0{width}d}",
    "m": lambda at, width: f"{at.minute:0{width}d}",
    "s": lambda at, width: f"{at.second:0{width}d}",
    "S": lambda at, width: f"{at.microsecond // 1000:03d}".ljust(width, "0")[:width],
    "Z": _offset,
}
"""How each letter of a pattern is written."""


@dataclass(frozen=True)
class LocalTimes:
    """Times as texts have them.

    Args:
        offsets: Milliseconds by which that clock is ahead of UTC, where the text has an offset.
    """

    millis: Longs
    offsets: Longs
    has_offset: Mask
    good: Mask


class DateReader:
    """Reads columns of texts by one pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        tokens = tokenize(pattern)
        self._names = tuple(token.letter for token in tokens if token.letter)
        for letter in self._names:
            _check_letter(letter, pattern, _INPUT_LETTERS)
        if "y" not in self._names or len(set(self._names)) < len(self._names):
            raise ConfigError(
                f"date pattern {pattern!r} must name the year, and every part of date and time once, in an input format"
            )
        following = (*tokens[1:], Token("", 0))
        pieces = [_expression(token, after, pattern) for token, after in zip(tokens, following, strict=True)]
        self._expression = f"^{''.join(pieces)}$"

    def read(self, texts: pa.StringArray) -> LocalTimes:
        """Read texts without nulls."""
        parts = pc.extract_regex(texts, pattern=self._expression)
        good = parts.is_valid().to_numpy(zero_copy_only=False)
        fields = {name: pc.fill_null(pc.struct_field(parts, name), "") for name in self._names}
        numbers = {name: _numbers(fields[name]) for name in self._names if name not in "SZ"}
        for name, highest in _HIGHEST.items():
            if name in numbers:
                good = good & (numbers[name] <= highest)
        first = np.ones(len(texts), np.int64)
        days, real = _days(numbers["y"], numbers.get("M", first), numbers.get("d", first))
        millis = days * MILLIS_PER_DAY
        for name, factor in _MILLIS.items():
            if name in numbers:
                millis += numbers[name] * factor
        if "S" in fields:
            millis += _numbers(pc.utf8_slice_codeunits(pc.utf8_rpad(fields["S"], 3, "0"), 0, 3))
        if "Z" not in fields:
            return LocalTimes(millis, np.zeros_like(millis), np.zeros(len(texts), bool), good & real)
        offsets, legal = _offsets(fields["Z"])
        return LocalTimes(millis, offsets, np.ones(len(texts), bool), good & real & legal)


def utc_of_local(millis: Longs, zone: tzinfo) -> tuple[Longs, Mask]:
    """Return the instants at which clocks of a zone show times, the earlier of two, and which of the times exist."""
    if zone is timezone.utc:
        return millis, np.ones(len(millis), bool)
    seconds, places = np.unique(np.floor_divide(millis, 1000), return_inverse=True)
    offsets = [_offset_of_local(int(each), zone) for each in seconds]
    exists = np.array([each is not None for each in offsets], bool)
    shift = np.array([each or 0 for each in offsets], np.int64)
    return millis - shift[places] * 1000, exists[places]


def _offset_of_local(seconds: int, zone: tzinfo) -> int | None:
    try:
        shown = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=zone)
        back = shown.astimezone(timezone.utc).astimezone(zone)
    except OverflowError:
        return 0  # refused where it is written
    if back.replace(tzinfo=None) != shown.replace(tzinfo=None):
        return None
    return int((shown.utcoffset() or timedelta()).total_seconds())


def _expression(token: Token, after: Token, pattern: str) -> str:
    """Return the regular expression of a part; a number that follows fixes the digits, as nothing else ends them."""
    letter, width = token.letter, token.width
    if letter == "":
        return f"(?i:{re.escape(token.text)})"
    if letter == "Z":
        return "(?P<Z>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)"
    widest = {"y": 4, "S": _MAX_FRACTION}.get(letter, 2)
    if width > widest or (letter == "y" and width == 2):
        raise ConfigError(
            f"date pattern {pattern!r} holds {letter * width!r}, which is not read; use yyyy, MM, dd, HH, mm, ss, SSS and Z in an "
            "input format"
        )
    is_followed = after.letter not in ("", "Z") or after.text[:1].isdigit()
    least, most = (width, width) if is_followed else (1, width if letter == "S" else widest)
    return f"(?P<{letter}>[0-9]{{{least},{most}}})"


def _offsets(texts: pa.StringArray) -> tuple[Longs, Mask]:
    digits = pc.replace_substring(texts, ":", "")
    hours = _numbers(pc.utf8_slice_codeunits(digits, 1, 3))
    minutes = _numbers(pc.utf8_slice_codeunits(digits, 3, 5))
    negative = pc.starts_with(digits, "-").to_numpy(zero_copy_only=False)
    offsets = (hours * 60 + minutes) * 60_000
    return np.where(negative, -offsets, offsets), (hours <= 23) & (minutes <= 59)


def _numbers(digits: pa.StringArray) -> Longs:
    filled = pc.if_else(pc.equal(digits, ""), "0", digits)
    return np.asarray(pc.cast(filled, pa.int64()), dtype=np.int64)


def _days(years: Longs, months: Longs, days: Longs) -> tuple[Longs, Mask]:
    """Return days since 1970, and whether the month has such a day."""
    month = (years - 1970) * 12 + months - 1
    first = month.astype("datetime64[M]").astype("datetime64[D]")
    found = first + (days - 1)
    same_month = found.astype("datetime64[M]").astype(np.int64) == month
    return found.astype(np.int64), same_month & (months >= 1) & (days >= 1)


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
            array: Numbers, dates, timestamps or texts. Null represents one unit after 1970, as in Hudi.
            consistent_logical_timestamp: Timestamp columns are taken as instants whatever ``timestamp.type``
                states.
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
