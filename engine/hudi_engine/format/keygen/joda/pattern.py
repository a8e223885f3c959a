"""Date patterns of the Joda-Time library, in which Hudi's timestamp-based key generator is configured.

Serves every table version (Hudi table spec, timestamp-based partition paths). Texts are English; a fraction
of a second is cut, not rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from hudi_engine.errors import ConfigError
from hudi_engine.format.keygen.joda.time_zone import LocalTime, local_time, short_zone_name, zone_id

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_LETTERS = "GCYxweEyDMdaKhHkmsSzZ"
_NUMERIC = "CYxyweDdKhHkmsS"


@dataclass(frozen=True)
class Token:
    """A part of a pattern: a run of one letter, or a literal (``letter`` is empty then)."""

    letter: str
    width: int
    text: str = ""

    @property
    def is_number(self) -> bool:
        """Whether the part is written with digits only."""
        return self.letter in _NUMERIC and self.letter != "" or (self.letter == "M" and self.width < 3)


def tokenize(pattern: str) -> tuple[Token, ...]:
    """Take a pattern apart.

    Raises:
        ConfigError: The pattern is empty or holds a letter without meaning.
    """
    if not pattern:
        raise ConfigError("a date pattern is empty; give one such as 'yyyy/MM/dd'")
    tokens: list[Token] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        if letter.isascii() and letter.isalpha():
            if letter not in _LETTERS:
                raise ConfigError(
                    f"date pattern {pattern!r} holds the letter {letter!r}, which has no meaning; "
                    f"legal are {', '.join(_LETTERS)}; put other letters between single quotes"
                )
            end = position
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            tokens.append(Token(letter, end - position))
            position = end
        else:
            text, position = _literal(pattern, position)
            tokens.append(Token("", 0, text))
    return tuple(tokens)


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
    """Write an instant by a pattern.

    Args:
        millis: Milliseconds since 1970 in UTC.
    """
    local = local_time(millis, zone)
    return "".join(
        token.text if token.letter == "" else _format_token(token, local, zone, millis) for token in tokens
    )


def _format_token(token: Token, local: LocalTime, zone: tzinfo, millis: int) -> str:
    """Return the text of one part of a pattern as Joda writes it."""
    letter, width = token.letter, token.width
    if letter in "yYx":
        return _format_year(letter, width, local)
    if letter == "M" and width >= 3:
        name = MONTHS[local.month - 1]
        return name if width > 3 else name[:3]
    if letter == "E":
        name = WEEKDAYS[local.iso_weekday - 1]
        return name if width > 3 else name[:3]
    if letter == "a":
        return "AM" if local.millis_of_day < 43_200_000 else "PM"
    if letter == "G":
        return "AD" if local.year > 0 else "BC"
    if letter == "S":
        return f"{local.millis_of_day % 1000:03d}".ljust(width, "0")[:width]
    if letter == "Z":
        return _format_offset(width, local, zone)
    if letter == "z":
        return short_zone_name(zone, millis)
    return f"{_number(letter, local):0{width}d}"


def _format_year(letter: str, width: int, local: LocalTime) -> str:
    year = local.iso_year if letter == "x" else local.year
    if width == 2:
        return f"{abs(year) % 100:02d}"
    if letter == "Y" and year <= 0:
        year = 1 - year
    return f"{year:0{width + (year < 0)}d}"


def _number(letter: str, local: LocalTime) -> int:
    hour = local.millis_of_day // 3_600_000
    return {
        "C": abs(local.year) // 100,
        "w": local.iso_week,
        "e": local.iso_weekday,
        "D": local.day_of_year,
        "M": local.month,
        "d": local.day,
        "K": hour % 12,
        "h": hour % 12 or 12,
        "H": hour,
        "k": hour or 24,
        "m": local.millis_of_day // 60_000 % 60,
        "s": local.millis_of_day // 1000 % 60,
    }[letter]


def _format_offset(width: int, local: LocalTime, zone: tzinfo) -> str:
    if width >= 3:
        return zone_id(zone)
    minutes = abs(local.offset_seconds) // 60
    colon = ":" if width == 2 else ""
    return f"{'-' if local.offset_seconds < 0 else '+'}{minutes // 60:02d}{colon}{minutes % 60:02d}"
