"""Expressions of an expression index: bounds of their values, made of the bounds of the column.

Source: Hudi's expression index (``HoodieExpressionIndex``) and the functions of Spark that it takes. Kept are the functions that
keep the order of values: their smallest and largest value are those of the column's, and no row is read. The time zone of a session
decides on parts of a time; bounds of those are as wide as zones differ, so that a reader in any of them misses no row.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hudi_engine.errors import ConfigError
from hudi_engine.format.metadata.statistics import DATE_ORDINAL, Bounds, Kind, kind_of

FUNCTIONS = (
    "year(column)",
    "to_date(column)",
    "date_format(column, 'yyyy-MM-dd HH:mm:ss')",
    "from_unixtime(column, 'yyyy-MM-dd HH:mm:ss')",
    "substring(column, 1, 10)",
)
"""Functions that an index can be kept of; patterns may end earlier and have other signs between their parts."""
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "year": (),
    "to_date": ("format",),
    "date_format": ("format",),
    "from_unixtime": ("format",),
    "substring": ("pos", "len"),
}
_TEXT = re.compile(r"\s*(\w+)\s*\(\s*`?([\w.]+)`?\s*((?:,[^,()]+)*)\)\s*", re.ASCII)
_RESULTS: Mapping[str, Any] = {"year": "int", "to_date": {"type": "int", "logicalType": "date"}}
_PARTS = ("yyyy", "MM", "dd", "HH", "mm", "ss")
_PATTERN = re.compile("yyyy(?:[-/:. ]*MM(?:[-/:. ]*dd(?:[-/:. ]*HH(?:[-/:. ]*mm(?:[-/:. ]*ss)?)?)?)?)?")
_LONG_FORM = "yyyy-MM-dd HH:mm:ss"
_TIMES, _ZONELESS_TIMES, _WHOLE_NUMBERS, _STRING = (15, 16), (18, 19), (3, 4), 7
_PER_SECOND = {"ms": 10**3, "us": 10**6, "": 1}
_DAY, _WIDEST_OFFSET = 86_400, 18 * 3_600
_EPOCH = datetime.datetime(1970, 1, 1)
_YEARS = range(1, 10_000)
_BEFORE_ALL, _AFTER_ALL = b"", b"~"
"""Bounds of texts where a year has no four digits: such texts begin with a sign."""


class Expression(NamedTuple):
    """A function of one column.

    Args:
        column: Name of the column.
        function: A function of Spark, as ``expr`` of an index says it.
        options: What else it takes, by Hudi's names: ``format``, ``pos`` and ``len``.
    """

    column: str
    function: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> Expression:
        """Return the expression that a text says, such as ``date_format(ts, 'yyyy-MM-dd')``; raises ConfigError."""
        matched = _TEXT.fullmatch(text)
        if matched is None:
            raise ConfigError(f"expression is {text!r}; {LEGAL}")
        given = [each.strip().strip("'\"") for each in matched[3].split(",")[1:]]
        function = matched[1].lower()
        names = _OPTIONS.get(function, ())
        if len(given) > len(names):
            raise ConfigError(f"expression is {text!r}; {LEGAL}")
        return cls(matched[2], function, dict(zip(names, given, strict=False))).checked()

    @classmethod
    def of(cls, definition: Mapping[str, Any]) -> Expression | None:
        """Return the expression of a definition in ``index.json``; None for one that no index is kept of."""
        fields, options = (
            list(definition.get("sourceFields") or []),
            dict(definition.get("indexOptions") or {}),
        )
        function = options.pop("expr", definition.get("indexFunction"))
        if definition.get("indexType") != "column_stats" or len(fields) != 1:
            return None
        found = cls(str(fields[0]), str(function), {key: str(value) for key, value in options.items()})
        return found if found._is_kept() else None

    def checked(self) -> Expression:
        """Return it; raises ConfigError for an expression that no index is kept of."""
        if not self._is_kept():
            raise ConfigError(f"expression is {self}; {LEGAL}")
        return self

    def __str__(self) -> str:
        values = [
            self.options[each] for each in _OPTIONS.get(self.function, self.options) if each in self.options
        ]
        given = [each if each.isdecimal() else f"'{each}'" for each in values]
        return f"{self.function}({', '.join([self.column, *given])})"

    def takes(self, source: Kind) -> bool:
        """Return whether a column of some type has values of the function."""
        if self.function == "substring":
            return source.ordinal == _STRING
        of = _WHOLE_NUMBERS if self.function == "from_unixtime" else (DATE_ORDINAL, *_TIMES, *_ZONELESS_TIMES)
        return source.ordinal in of

    def kind(self, *, is_v2: bool) -> Kind:
        """Return how its values are stored."""
        found = kind_of(_RESULTS.get(self.function, "string"), is_v2=is_v2)
        assert found is not None
        return found

    def bounds(self, source: Kind, column: Bounds) -> Bounds:
        """Return bounds of its values, by those of the column."""
        counted = replace(column, values=column.values - column.nulls)
        if column.low is None:
            return counted
        if self.function == "substring":
            low, high = (self._prefix(each) for each in (column.low, column.high))
        else:
            low, high = self._of_times(source, column)
        return replace(counted, low=low, high=high)

    def _is_kept(self) -> bool:
        options = self.options
        if self.function not in _OPTIONS:
            return False
        if self.function == "substring":
            position, length = options.get("pos", ""), options.get("len", "")
            return position in ("0", "1") and length.isdecimal() and int(length) > 0
        # Of a time, to_date takes no notice of a format.
        return self.function in ("year", "to_date") or sorted_parts(self._format) is not None

    @property
    def _format(self) -> str:
        return self.options.get("format", _LONG_FORM if self.function == "from_unixtime" else "")

    def _prefix(self, text: bytes) -> bytes:
        return text.decode("utf-8", "replace")[: int(self.options["len"])].encode()

    def _of_times(self, source: Kind, column: Bounds) -> tuple[Any, Any]:
        """Return bounds of a function of times."""
        if source.ordinal == DATE_ORDINAL:
            low, high = column.low * _DAY, column.high * _DAY
        else:
            low, high = (each // _PER_SECOND[source.unit] for each in (column.low, column.high))
        if source.ordinal in (*_TIMES, *_WHOLE_NUMBERS):
            low, high = low - _WIDEST_OFFSET, high + _WIDEST_OFFSET
        if self.function == "to_date":
            return low // _DAY, high // _DAY
        if self.function == "year":
            return _year(low), _year(high)
        if _year(low) not in _YEARS or _year(high) not in _YEARS:
            return _BEFORE_ALL, _AFTER_ALL
        return _text(low, self._format), _text(high, self._format)


LEGAL = f"legal expressions: {', '.join(FUNCTIONS)}. Other functions do not keep the order of values"


def sorted_parts(pattern: str) -> tuple[str, ...] | None:
    """Return the parts of a pattern whose texts sort as their times do: the year and what follows; None for another pattern."""
    if _PATTERN.fullmatch(pattern) is None:
        return None
    return tuple(each for each in _PARTS if each in pattern)


def _year(seconds: int) -> int:
    return int(np.datetime64(seconds // _DAY, "D").astype("datetime64[Y]").astype(int)) + 1970


def _text(seconds: int, pattern: str) -> bytes:
    values = (_EPOCH + datetime.timedelta(seconds=seconds)).timetuple()[:6]
    for part, value in zip(_PARTS, values, strict=True):
        pattern = pattern.replace(part, f"{value:0{len(part)}d}")
    return pattern.encode()
