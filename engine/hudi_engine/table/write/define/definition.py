"""What defines a table: the arguments of create, completed by the options that say the same in Hudi's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from hudi_engine.format.config.enums import TableType

if TYPE_CHECKING:
    from typing_extensions import Required

NAME_OPTIONS = ("hoodie.table.name", "hoodie.datasource.write.table.name")
KEY_OPTIONS = ("hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields")
ORDERING_OPTIONS = (
    "hoodie.datasource.write.precombine.field",
    "hoodie.table.precombine.field",
    "hoodie.table.ordering.fields",
    "hoodie.datasource.write.ordering.fields",
    "hoodie.payload.ordering.field",
)
PARTITION_OPTIONS = ("hoodie.datasource.write.partitionpath.field", "hoodie.table.partition.fields")
TYPE_OPTIONS = ("hoodie.datasource.write.table.type", "hoodie.table.type")
TABLE_TYPES = {
    "cow": TableType.COPY_ON_WRITE.value,
    "mor": TableType.MERGE_ON_READ.value,
    **{each.value.lower(): each.value for each in TableType},
}


class TableArguments(TypedDict, total=False):
    """What `HudiTable.create` and `rebuild_table` take by name; only ``name`` has to be given."""

    name: Required[str]
    record_key: Sequence[str] | None
    precombine_field: str | Sequence[str] | None
    partition_by: Sequence[str] | None
    table_type: str | None
    options: Mapping[str, object] | None


@dataclass(frozen=True)
class Definition:
    """The fields that define a table.

    Args:
        keys: Key fields; empty lets the writer generate keys.
        ordering: Ordering fields; empty lets the row written last win.
        partitions: Partition fields, maybe with ``:kind``.
        table_type: As given: ``cow``, ``mor`` or Hudi's names.
        problems: Where arguments and options contradict each other.
    """

    keys: tuple[str, ...]
    ordering: tuple[str, ...]
    partitions: tuple[str, ...]
    table_type: str
    problems: tuple[str, ...]


def read_definition(arguments: TableArguments, options: Mapping[str, str]) -> Definition:
    """Take each fact from its argument, or from the option that says it; note where both are given and differ.

    Args:
        arguments: Arguments of create; what is not given is missing or None.
    """
    problems: list[str] = []

    def fields(what: str, given: Sequence[str] | None, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the fields that the argument or an option names; both may, when they agree."""
        found = _split(given)
        for key in keys:
            said = _split([options[key]]) if key in options else ()
            if not found:
                found = said
            elif said and _bare(said) != _bare(found):
                problems.append(
                    f"{what} is {', '.join(found)!r}, but {key} is {options[key]!r}; leave one of them out"
                )
            elif said and not any(":" in each for each in found):
                found = said
        return found

    name, ordering = arguments["name"], arguments.get("precombine_field")
    fields("name", [name] if isinstance(name, str) else None, NAME_OPTIONS)
    kind = arguments.get("table_type")
    for key in TYPE_OPTIONS:
        said_type = options.get(key)
        if said_type is None:
            continue
        if kind is None:
            kind = said_type
        elif TABLE_TYPES.get(str(kind).lower()) != TABLE_TYPES.get(said_type.lower()):
            problems.append(f"table_type is {kind!r}, but {key} is {said_type!r}; leave one of them out")
    return Definition(
        fields("record_key", arguments.get("record_key"), KEY_OPTIONS),
        fields("precombine_field", [ordering] if isinstance(ordering, str) else ordering, ORDERING_OPTIONS),
        fields("partition_by", arguments.get("partition_by"), PARTITION_OPTIONS),
        "cow" if kind is None else kind,
        tuple(problems),
    )


def _split(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(part.strip() for each in given or () for part in str(each).split(",") if part.strip())


def _bare(fields: Sequence[str]) -> list[str]:
    return [field.partition(":")[0].strip().lower() for field in fields]
