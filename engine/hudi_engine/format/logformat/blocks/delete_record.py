"""A deleted key, as a delete block says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class DeleteRecord:
    """One deleted key.

    Attributes:
        record_key: Key text.
        partition_path: Partition of the key.
        ordering_value: Plain Python value, None for the default, a tuple where a table has several ordering
            fields.
        wrapper: Name of the kind of value that the block says it is; None for the default and for several fields.
    """

    record_key: str
    partition_path: str
    ordering_value: Any
    wrapper: str | None = field(default=None, compare=False)
