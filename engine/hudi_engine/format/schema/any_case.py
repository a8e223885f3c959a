"""Names matched without regard to case, as Spark and Hudi match columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from hudi_engine.errors import SchemaError

V = TypeVar("V")


class AnyCase(Mapping[str, V]):
    """Values by name, found under every spelling of it; of names that differ in case only the last counts."""

    def __init__(self, named: Iterable[tuple[str, V]]) -> None:
        self._values = {name.lower(): value for name, value in named}

    def __getitem__(self, name: str) -> V:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        """Return the names in lower case."""
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def spellings(names: Iterable[str]) -> AnyCase[str]:
    """Return names as they are spelled, by any spelling."""
    return AnyCase((name, name) for name in names)


def refuse_same_names(names: Iterable[str]) -> None:
    """Refuse columns of which two have one name."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise SchemaError(
                f"columns {seen[name.lower()]!r} and {name!r} have the same name; rename one before writing"
            )
        seen[name.lower()] = name
