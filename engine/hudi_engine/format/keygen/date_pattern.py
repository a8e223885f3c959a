"""Date patterns of the timestamp-based key generator: the letters of Joda-Time that Hudi's users have in such patterns.

Serves every table version (Hudi table spec, timestamp-based partition paths). Texts are English; a fraction of a second is cut,
not rounded; numbers may have fewer digits than their pattern. Other letters of Joda-Time are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, InvalidKeyError

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
        millis: Milliseconds since 1970 by the clock of each text.
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
    """Return the instants at which clocks of a zone show times, the earlier one where they show it twice.

    Returns:
        Milliseconds since 1970 in UTC, and which of the times exist: clocks that are turned forward skip some.
    """
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
