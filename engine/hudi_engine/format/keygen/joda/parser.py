"""Reading texts by the date patterns of Joda-Time.

Serves every table version (Hudi table spec, timestamp-based partition paths). As in Joda-Time's
``DateTimeFormat``, numbers may have fewer digits than their pattern, names are read in any case, and the text
must be used up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import partial

from hudi_engine.errors import ConfigError
from hudi_engine.format.keygen.joda.pattern import MONTHS, WEEKDAYS, Token, tokenize
from hudi_engine.format.keygen.joda.time_zone import (
    MILLIS_PER_DAY,
    MILLIS_PER_SECOND,
    fixed_zone,
    millis_of_local,
    zone_of_text,
)

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_YEAR_WITHOUT_ONE = 2000
_NAMES = {"M": ("M", MONTHS), "E": ("e", WEEKDAYS), "a": ("a", ("AM", "PM"))}
_MAX_DIGITS = {"M": 2, "d": 2, "D": 3, "e": 1, "K": 2, "h": 2, "H": 2, "k": 2, "m": 2, "s": 2}
_RANGES = {
    "M": (1, 12), "d": (1, 31), "D": (1, 366), "e": (1, 7), "K": (0, 11), "h": (1, 12), "H": (0, 23),
    "k": (1, 24), "m": (0, 59), "s": (0, 59),
}  # fmt: skip
_ZONE_NAMES = {
    "UT": "UTC", "UTC": "UTC", "GMT": "UTC", "EST": "America/New_York", "EDT": "America/New_York",
    "CST": "America/Chicago", "CDT": "America/Chicago", "MST": "America/Denver", "MDT": "America/Denver",
    "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
}  # fmt: skip


class DateTextError(ValueError):
    """A text does not fit a date pattern, or names no real instant."""


@dataclass(frozen=True)
class ParsedInstant:
    """An instant read from a text.

    Args:
        millis: Milliseconds since 1970 in UTC.
        zone: The zone the text itself names, else the zone it was read in.
    """

    millis: int
    zone: tzinfo


@dataclass
class _Fields:
    text: str
    position: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    zone: tzinfo | None = None

    def fail(self, expected: str) -> DateTextError:
        return DateTextError(f"expected {expected} at {self.text[self.position :]!r}")


Step = Callable[[_Fields], None]


class JodaParser:
    """Reads texts by one pattern.

    Args:
        pattern: The pattern, such as ``yyyy-MM-dd'T'HH:mm:ss.SSSZ``.

    Raises:
        ConfigError: The pattern is malformed, holds a letter that cannot be read (``G``, ``C``, ``x``,
            ``w``), or names day or hour twice.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        tokens = tokenize(pattern)
        _check_letters(tokens, pattern)
        following = (*tokens[1:], Token("", 0))
        self._steps = [
            _step(token, after.is_number, pattern) for token, after in zip(tokens, following, strict=True)
        ]

    def parse(self, text: str, zone: tzinfo = timezone.utc) -> ParsedInstant:
        """Read a text.

        Args:
            zone: Zone of a text that names none.

        Raises:
            DateTextError: The text does not fit.
        """
        fields = _Fields(text)
        for step in self._steps:
            step(fields)
        if fields.position != len(text):
            raise fields.fail("the end")
        used = fields.zone if fields.zone is not None else zone
        millis = millis_of_local(_day(fields.numbers), _millis_of_day(fields.numbers), used)
        if millis is None:
            raise DateTextError("clocks were turned forward over this time, it does not exist in its zone")
        return ParsedInstant(millis, used)


def _check_letters(tokens: tuple[Token, ...], pattern: str) -> None:
    """Refuse patterns whose parts can contradict each other."""
    letters = {token.letter for token in tokens}
    if letters & {"E", "e"} and not letters >= {"M", "d"} and "D" not in letters:
        problem = "a weekday but no month and day"
    elif "D" in letters and letters & {"M", "d"}:
        problem = "the day of the year besides the month or day of the month"
    elif len(letters & {"H", "k", "h", "K"}) > 1:
        problem = "the hour in more than one way"
    else:
        return
    raise ConfigError(
        f"date pattern {pattern!r} names {problem}; say date and time once each in an input format"
    )


def _step(token: Token, number_follows: bool, pattern: str) -> Step:
    """Choose how a part of a pattern is read; a number that follows limits the digits, as nothing else ends them."""
    letter, width = token.letter, token.width
    if letter == "":
        return partial(_read_literal, literal=token.text)
    if letter in "yY":
        if width == 2:
            return partial(_read_two_digit_year, lenient=not number_follows)
        return partial(_read_year, digits=width if number_follows else 9)
    if letter in _NAMES and (letter != "M" or width >= 3):
        field, names = _NAMES[letter]
        return partial(_read_name, letter=field, names=names)
    if letter == "S":
        return partial(_read_fraction, digits=width)
    if letter == "Z":
        return _read_zone_id if width >= 3 else _read_offset
    if letter == "z" and width < 4:
        return _read_zone_name
    if letter in _MAX_DIGITS:
        return partial(_read_number, letter=letter, digits=max(width, _MAX_DIGITS[letter]))
    raise ConfigError(
        f"date pattern {pattern!r} holds {letter * width!r}, which can be written but not read; "
        "use year, month, day and time letters (y M d D E a H h K k m s S Z) in an input format"
    )


def _read_literal(fields: _Fields, *, literal: str) -> None:
    end = fields.position + len(literal)
    if fields.text[fields.position : end].lower() != literal.lower():
        raise fields.fail(repr(literal))
    fields.position = end


def _digits(fields: _Fields, most: int) -> str:
    start = end = fields.position
    limit = min(len(fields.text), start + most)
    while end < limit and fields.text[end] in "0123456789":
        end += 1
    fields.position = end
    return fields.text[start:end]


def _read_number(fields: _Fields, *, letter: str, digits: int) -> None:
    start = fields.position
    text = _digits(fields, digits)
    low, high = _RANGES[letter]
    if not text or not low <= int(text) <= high:
        fields.position = start
        raise fields.fail(f"a number from {low} to {high} for {letter!r}")
    fields.numbers[letter] = int(text)


def _read_year(fields: _Fields, *, digits: int) -> None:
    sign = _sign(fields)
    text = _digits(fields, digits)
    if not text:
        raise fields.fail("a year")
    fields.numbers["y"] = sign * int(text)


def _read_two_digit_year(fields: _Fields, *, lenient: bool) -> None:
    start = fields.position
    sign = _sign(fields) if lenient else 1
    signed = fields.position != start
    text = _digits(fields, len(fields.text) if lenient else 2)
    if not text or (not lenient and len(text) < 2):
        raise fields.fail("a year of two digits")
    year = sign * int(text)
    if not signed and len(text) == 2:
        # Joda-Time reads two digits as a year at most 80 back and 19 ahead of the current one.
        low = datetime.now(timezone.utc).year - 80
        year = low + (year - low) % 100
    fields.numbers["y"] = year


def _sign(fields: _Fields) -> int:
    sign = fields.text[fields.position : fields.position + 1]
    if sign in ("+", "-"):
        fields.position += 1
    return -1 if sign == "-" else 1


def _read_fraction(fields: _Fields, *, digits: int) -> None:
    text = _digits(fields, digits)
    if not text:
        raise fields.fail("a fraction of a second")
    fields.numbers["S"] = int(text[:3].ljust(3, "0"))


def _read_name(fields: _Fields, *, letter: str, names: tuple[str, ...]) -> None:
    for number, name in enumerate(names, 1):
        for spelling in (name, name[:3]):
            cases = (spelling, spelling.lower(), spelling.upper())
            if fields.text.startswith(cases, fields.position):
                fields.position += len(spelling)
                fields.numbers[letter] = number
                return
    raise fields.fail(f"one of {', '.join(names)}")


def _read_offset(fields: _Fields) -> None:
    if fields.text[fields.position : fields.position + 1] in ("Z", "z"):
        fields.position += 1
        fields.zone = timezone.utc
        return
    sign_text = fields.text[fields.position : fields.position + 1]
    if sign_text not in ("+", "-"):
        raise fields.fail("an offset such as +01:00")
    sign = _sign(fields)
    seconds = _offset_part(fields, 23) * 3600
    colon = fields.text.startswith(":", fields.position)
    for unit in (60, 1):
        if colon and fields.text.startswith(":", fields.position):
            fields.position += 1
        elif colon or not fields.text[fields.position : fields.position + 1].isdigit():
            break
        seconds += _offset_part(fields, 59) * unit
    fields.zone = fixed_zone(sign * seconds)


def _offset_part(fields: _Fields, most: int) -> int:
    text = _digits(fields, 2)
    if len(text) != 2 or int(text) > most:
        raise fields.fail("an offset such as +01:00")
    return int(text)


def _read_zone_id(fields: _Fields) -> None:
    end = fields.position
    while end < len(fields.text) and (fields.text[end].isalnum() or fields.text[end] in "/_+-:"):
        end += 1
    try:
        fields.zone = zone_of_text(fields.text[fields.position : end])
    except ConfigError as error:
        raise DateTextError(str(error)) from error
    fields.position = end


def _read_zone_name(fields: _Fields) -> None:
    rest = fields.text[fields.position :]
    for name in sorted(_ZONE_NAMES, key=len, reverse=True):
        if rest.startswith(name):
            fields.position += len(name)
            fields.zone = zone_of_text(_ZONE_NAMES[name])
            return
    raise fields.fail(f"one of {', '.join(_ZONE_NAMES)}")


def _day(numbers: dict[str, int]) -> int:
    """Return days since 1970 of the calendar fields."""
    dated = numbers.keys() & {"M", "d", "D"}
    year = numbers.get("y", _YEAR_WITHOUT_ONE if dated else 1970)
    cycles = (year - 1970) // 400 if not 1 <= year <= 9999 else 0
    try:
        if "D" in numbers:
            day = date(year - 400 * cycles, 1, 1) + timedelta(days=numbers["D"] - 1)
            if day.year != year - 400 * cycles:
                raise ValueError(f"day {numbers['D']} is out of range for year {year}")
        else:
            day = date(year - 400 * cycles, numbers.get("M", 1), numbers.get("d", 1))
    except ValueError as error:
        raise DateTextError(str(error)) from error
    days = day.toordinal() - _EPOCH_DAY + cycles * 146_097
    if "e" in numbers:
        days += numbers["e"] - day.isoweekday()
    return days


def _millis_of_day(numbers: dict[str, int]) -> int:
    if "H" in numbers:
        hour = numbers["H"]
    elif "k" in numbers:
        hour = numbers["k"] % 24
    else:
        hour = numbers.get("K", numbers.get("h", 0)) % 12 + (12 if numbers.get("a") == 2 else 0)
    millis = (hour * 3600 + numbers.get("m", 0) * 60 + numbers.get("s", 0)) * MILLIS_PER_SECOND
    return (millis + numbers.get("S", 0)) % MILLIS_PER_DAY
