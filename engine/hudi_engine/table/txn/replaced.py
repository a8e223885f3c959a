"""What a commit that takes rows out and puts others in says of the rows it was about, for writers beside it.

Two such commits stand beside each other in different partitions only when neither could have taken out what the other put
in. That can be told of windows of one column, since the rows that come in lie in the window too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

REPLACED = "dbt_hudi.replaced"
"""Key in the extra metadata of a commit."""


@dataclass(frozen=True)
class Replaced:
    """The rows that a commit replaced.

    Args:
        column: Column of the window; None when the rows are told in another way.
        start: First moment of the window in UTC.
    """

    column: str | None = None
    start: str | None = None
    end: str | None = None

    @classmethod
    def within(cls, column: str, start: datetime, end: datetime) -> Replaced:
        """Return the rows whose ``column`` lies in a window, the end not included."""
        return cls(column.lower(), _text(start), _text(end))

    @classmethod
    def of(cls, extra: Mapping[str, str | None]) -> Replaced | None:
        """Read what a commit says; None when it replaced nothing in this way."""
        told = extra.get(REPLACED)
        if told is None:
            return None
        try:
            found = json.loads(told)
            return cls(found.get("column"), found.get("start"), found.get("end"))
        except (ValueError, AttributeError):
            return cls()

    def to_text(self) -> str:
        """Return the value for the extra metadata."""
        return json.dumps({"column": self.column, "start": self.start, "end": self.end})

    def is_apart_from(self, other: Replaced) -> bool:
        """Tell whether no row can be of both."""
        if self.column is None or self.column != other.column:
            return False
        if None in (self.start, self.end, other.start, other.end):
            return False
        return str(self.end) <= str(other.start) or str(other.end) <= str(self.start)


def _text(moment: datetime) -> str:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return aware.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
