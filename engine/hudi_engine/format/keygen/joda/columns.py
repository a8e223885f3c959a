"""Reading a whole column of date texts at once, for the patterns nearly everybody uses.

A faster second form of `hudi_engine.format.keygen.joda.parser`: it reads texts whose numbers have all their digits,
and leaves every other text to that module.
"""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.keygen.joda.pattern import Token, tokenize

_WIDTHS = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2}
_HIGHEST = {"M": 12, "d": 31, "H": 23, "m": 59, "s": 59}
_LONGEST_FRACTION = 9


class DateColumnReader:
    """Reads columns by one pattern; build it with `for_pattern`."""

    def __init__(self, expression: str, names: tuple[str, ...], offset_millis: int) -> None:
        self._expression = expression
        self._names = names
        self._offset_millis = offset_millis

    @classmethod
    def for_pattern(cls, pattern: str, zone: tzinfo) -> DateColumnReader | None:
        """Make a reader, or None for a pattern or zone that needs the general one."""
        pieces, names = [], []
        for token in tokenize(pattern):
            piece = _expression(token)
            if piece is None or token.letter in names:
                return None
            pieces.append(piece)
            if token.letter:
                names.append(token.letter)
        if not {"y", "M", "d"} <= set(names):
            return None
        if not isinstance(zone, timezone) and "Z" not in names:
            return None
        offset = zone.utcoffset(None) if isinstance(zone, timezone) else None
        millis = int((offset or timedelta()).total_seconds()) * 1000
        return cls(f"^{''.join(pieces)}$", tuple(names), millis)

    @property
    def names_offset(self) -> bool:
        """Whether the texts name their own offset from UTC."""
        return "Z" in self._names

    def read(self, texts: pa.StringArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Read texts without nulls.

        Returns:
            Milliseconds since 1970 in UTC, and which of them are valid; the others need the general reader.
        """
        parts = pc.extract_regex(texts, pattern=self._expression)
        good = parts.is_valid().to_numpy(zero_copy_only=False)
        fields = {name: pc.fill_null(pc.struct_field(parts, name), "") for name in self._names}
        numbers = {name: _numbers(fields[name]) for name in self._names if name in _WIDTHS}
        for name, highest in _HIGHEST.items():
            if name in numbers:
                good = good & (numbers[name] <= highest)
        days, real = _days(numbers["y"], numbers["M"], numbers["d"])
        millis = days * 86_400_000
        for name, factor in (("H", 3_600_000), ("m", 60_000), ("s", 1_000)):
            if name in numbers:
                millis += numbers[name] * factor
        if "S" in fields:
            millis += _numbers(pc.utf8_slice_codeunits(pc.utf8_rpad(fields["S"], 3, "0"), 0, 3))
        offset, offset_real = self._offsets(fields, len(texts))
        return millis - offset, good & real & offset_real

    def _offsets(
        self, fields: dict[str, pa.StringArray], count: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        if "Z" not in fields:
            return np.full(count, self._offset_millis), np.ones(count, dtype=np.bool_)
        text = pc.replace_substring(fields["Z"], ":", "")
        hours = _numbers(pc.utf8_slice_codeunits(text, 1, 3))
        minutes = _numbers(pc.utf8_slice_codeunits(text, 3, 5))
        negative = pc.starts_with(text, "-").to_numpy(zero_copy_only=False)
        offsets = (hours * 60 + minutes) * 60_000
        return np.where(negative, -offsets, offsets), (hours <= 23) & (minutes <= 59)


def _expression(token: Token) -> str | None:
    letter, width = token.letter, token.width
    if letter == "":
        return re.escape(token.text)
    if _WIDTHS.get(letter) == width:
        return f"(?P<{letter}>[0-9]{{{width}}})"
    if letter == "S" and width <= _LONGEST_FRACTION:
        return f"(?P<S>[0-9]{{{width}}})"
    if letter == "Z" and width <= 2:
        return "(?P<Z>Z|[+-][0-9]{2}:?[0-9]{2})"
    return None


def _numbers(digits: pa.StringArray) -> npt.NDArray[np.int64]:
    filled = pc.if_else(pc.equal(digits, ""), "0", digits)
    return np.asarray(pc.cast(filled, pa.int64()), dtype=np.int64)


def _days(
    years: npt.NDArray[np.int64], months: npt.NDArray[np.int64], days: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return days since 1970, and whether the month has such a day."""
    month = (years - 1970) * 12 + months - 1
    first = month.astype("datetime64[M]").astype("datetime64[D]")
    found = first + (days - 1)
    same_month = found.astype("datetime64[M]").astype(np.int64) == month
    return found.astype(np.int64), same_month & (months >= 1) & (days >= 1)
