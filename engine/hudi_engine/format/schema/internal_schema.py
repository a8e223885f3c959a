"""Schema history of tables changed by ALTER TABLE (schema on read): every column has an id that survives a rename.

Hudi keeps the versions as JSON in ``.hoodie/.schema/<instant>.schemacommit``; each file holds all versions up
to its instant. A data file was written with the newest version that is not younger than the file's instant. A
column is found in an old file by its id: under its old name if it was renamed, and not at all if a new column
merely took the name of a dropped one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.schema.nested import array_of_parts, array_parts, type_of_parts


@dataclass(frozen=True)
class ColumnNode:
    """One column, field, list element or map value of a schema version.

    Attributes:
        children: Fields of a struct; the element of a list, the key and value of a map.
    """

    column_id: int
    name: str
    children: tuple[ColumnNode, ...] = ()

    def child(self, name: str) -> ColumnNode | None:
        """Return the child of that name."""
        return next((each for each in self.children if each.name == name), None)

    def is_same_by_name(self, now: ColumnNode) -> bool:
        """Return whether a reader that goes by names, in any case, finds what one that goes by ids does.

        Added, dropped and moved columns leave it so; a renaming and a new column under the name of a dropped one do not.
        """
        names = {each.column_id: each.name for each in self.children}
        by_name = {each.name.lower(): each for each in self.children}
        return all(
            names.get(each.column_id, each.name) == each.name
            and ((was := by_name.get(each.name.lower())) is None or was.column_id == each.column_id)
            and (was is None or was.is_same_by_name(each))
            for each in now.children
        )


@dataclass(frozen=True)
class SchemaHistory:
    """All versions of a table's schema, oldest first.

    Attributes:
        versions: Instant (0 for the schema before the first change) and root of each version.
    """

    versions: tuple[tuple[int, ColumnNode], ...]
    texts: tuple[str, ...] = ()

    def version_at(self, instant: str) -> ColumnNode:
        """Return the schema with which a file of ``instant`` was written."""
        number = _number(instant)
        at_most = [root for version, root in self.versions if version <= number]
        return at_most[-1] if at_most else self.versions[0][1]

    def text_at(self, instant: str) -> str:
        """Return the text of the version with which a file of ``instant`` is written."""
        number = _number(instant)
        at_most = [text for (version, _), text in zip(self.versions, self.texts) if version <= number]
        return at_most[-1] if at_most else self.texts[0]

    def up_to(self, instant: str) -> SchemaHistory:
        """Return the history as it was at ``instant``."""
        number = _number(instant)
        count = max(1, sum(version <= number for version, _ in self.versions))
        return SchemaHistory(self.versions[:count], self.texts[:count])

    def newest(self, as_of: str | None = None) -> ColumnNode:
        """Return the schema now, or at ``as_of``."""
        return self.versions[-1][1] if as_of is None else self.version_at(as_of)

    def is_read_by_name(self, instant: str, names: Iterable[str]) -> bool:
        """Return whether columns are found by their names in the files of an instant."""
        written, now = self.version_at(instant), self.newest()
        if written == now:
            return True
        held = {each.name.lower() for each in written.children}
        fresh = [name for name in names if now.child(name) is None]
        return written.is_same_by_name(now) and not any(name.lower() in held for name in fresh)


def parse_history(
    text: str | bytes, name: str, is_committed: Callable[[str], bool] = lambda _: True
) -> SchemaHistory:
    """Parse the content of a ``schemacommit`` file."""
    try:
        schemas = json.loads(text)["schemas"]
        versions = [(int(entry["version_id"]), _node(0, "", entry), _text(entry)) for entry in schemas]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(f"the schema history {name!r} cannot be parsed: {error!r}") from error
    kept = sorted(
        (entry for entry in versions if entry[0] == 0 or is_committed(str(entry[0]))),
        key=lambda entry: entry[0],
    )
    if not kept:
        raise CorruptTableError(f"the schema history {name!r} holds no committed version")
    return SchemaHistory(
        tuple((version, root) for version, root, _ in kept), tuple(text for _, _, text in kept)
    )


def restore_names(
    stored: pa.Schema, written: ColumnNode, wanted: ColumnNode, schema: pa.Schema
) -> dict[str, str]:
    """Return stored name of every top-level column of ``schema`` that the file holds."""
    by_id = {node.column_id: node.name for node in written.children}
    found: dict[str, str] = {}
    for field in schema:
        node = wanted.child(field.name)
        if node is not None:
            name = by_id.get(node.column_id)
        else:
            # A column without an id came after the last change; under its name older files hold one that was dropped.
            name = None if written.child(field.name) is not None else field.name
        if name is not None and stored.get_field_index(name) >= 0:
            found[field.name] = name
    return found


def rename_nested(array: pa.Array, written: ColumnNode, wanted: ColumnNode) -> pa.Array:
    """Rename the struct fields inside ``array`` from the written to the wanted version; fields removed since are left out."""
    if not wanted.children or not written.children:
        return array
    kind, held = array.type, array_parts(array)
    if pa.types.is_struct(kind):
        return _rename_struct(array, held, written, wanted)
    parts = [*held[:-1], rename_nested(held[-1], written.children[-1], wanted.children[-1])]
    return array_of_parts(array, parts, type_of_parts(kind, [part.type for part in parts]))


def _rename_struct(
    array: pa.StructArray, held: list[pa.Array], written: ColumnNode, wanted: ColumnNode
) -> pa.Array:
    """Give a struct's fields the names that their ids have now; fields whose id was dropped are left out."""
    names = {node.column_id: node for node in wanted.children}
    parts: dict[str, pa.Array] = {}
    for field, part in zip(array.type, held, strict=True):
        old = written.child(field.name)
        new = names.get(old.column_id) if old is not None else None
        if old is None:
            parts[field.name] = part
        elif new is not None:
            parts[new.name] = rename_nested(part, old, new)
    if not parts:
        return pa.nulls(len(array), pa.struct([]))
    kind = pa.struct([pa.field(name, part.type) for name, part in parts.items()])
    return array_of_parts(array, list(parts.values()), kind)


def _number(instant: str) -> int:
    """Return an instant as a number to compare with the 17 digits of versions; one of 14 digits is the first of its second."""
    return int(f"{instant}000" if len(instant) == 14 else instant)


def _text(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False)


def _node(column_id: int, name: str, entry: Mapping[str, Any]) -> ColumnNode:
    return ColumnNode(column_id, name, _children(entry))


def _children(entry: Mapping[str, Any]) -> tuple[ColumnNode, ...]:
    kind = entry.get("type")
    if isinstance(kind, Mapping):
        return _children(kind)
    if kind == "record":
        return tuple(
            ColumnNode(int(field["id"]), str(field["name"]), _children(_type_of(field)))
            for field in entry["fields"]
        )
    if kind == "array":
        return (ColumnNode(int(entry["element_id"]), "element", _children(_wrap(entry["element"]))),)
    if kind == "map":
        key = ColumnNode(int(entry["key_id"]), "key", _children(_wrap(entry["key"])))
        return (key, ColumnNode(int(entry["value_id"]), "value", _children(_wrap(entry["value"]))))
    return ()


def _type_of(field: Mapping[str, Any]) -> Mapping[str, Any]:
    return _wrap(field["type"])


def _wrap(kind: Any) -> Mapping[str, Any]:
    return kind if isinstance(kind, Mapping) else {"type": kind}
