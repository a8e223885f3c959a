"""Which key generator a table's properties ask for.

Versions 8 and 9, and version 6 tables made by Hudi 1.x, name a type; older ones name a class (Hudi table
config).
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.config.enums import KeyGeneratorType

TYPE_KEY = "hoodie.table.keygenerator.type"
CLASS_KEY = "hoodie.table.keygenerator.class"
KEY_GENERATOR_PACKAGE = "org.apache.hudi.keygen"
PARTITION_FIELDS = "hoodie.table.partition.fields"
KINDS_PROPERTY = "hoodie.engine.partition.kinds"
"""Where a table keeps the kinds of its partition fields. Beside their names Hudi has them from version 8 on; before, it
takes them for part of the names."""

_CLASSES = {
    KeyGeneratorType.SIMPLE: ("SimpleKeyGenerator", "SimpleAvroKeyGenerator"),
    KeyGeneratorType.COMPLEX: ("ComplexKeyGenerator", "ComplexAvroKeyGenerator"),
    KeyGeneratorType.TIMESTAMP: ("TimestampBasedKeyGenerator", "TimestampBasedAvroKeyGenerator"),
    KeyGeneratorType.NON_PARTITION: ("NonpartitionedKeyGenerator", "NonpartitionedAvroKeyGenerator"),
    KeyGeneratorType.CUSTOM: ("CustomKeyGenerator", "CustomAvroKeyGenerator"),
    KeyGeneratorType.GLOBAL_DELETE: ("GlobalDeleteKeyGenerator", "GlobalAvroDeleteKeyGenerator"),
}
"""Hudi's classes; the first is the one that a new table names."""
_TIME_FORMAT = ".keygen.timebased.output.dateformat"
_BY_CLASS = {name: kind for kind, names in _CLASSES.items() for name in names}
_WITHOUT_VALUES = (KeyGeneratorType.TIMESTAMP, KeyGeneratorType.NON_PARTITION, KeyGeneratorType.GLOBAL_DELETE)


def key_generator_class(kind: KeyGeneratorType) -> str:
    """Return the class that a new table names, with its package."""
    return f"{KEY_GENERATOR_PACKAGE}.{_CLASSES[kind][0]}"


def declared_key_generator(properties: Mapping[str, str]) -> KeyGeneratorType | None:
    """Return the key generator that the properties name; None when they name none, or one that is not known."""
    declared = properties.get(TYPE_KEY, "").strip().upper()
    if declared in KeyGeneratorType.__members__:
        return KeyGeneratorType(declared)
    package, _, name = properties.get(CLASS_KEY, "").strip().rpartition(".")
    return _BY_CLASS.get(name) if package in ("", KEY_GENERATOR_PACKAGE) else None


def partition_kinds(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the kinds that a table says of its partition fields, by name; empty when it says none."""
    said = ",".join(properties.get(key, "") for key in (KINDS_PROPERTY, PARTITION_FIELDS))
    parts = (part.strip().rpartition(":") for part in said.split(","))
    return {name: kind.strip().lower() for name, colon, kind in parts if colon}


def resolve_key_generator(
    properties: Mapping[str, str], *, key_fields: int, partition_fields: int
) -> KeyGeneratorType:
    """Return the key generator of a table, inferred from its fields as Hudi does when it names none."""
    declared = declared_key_generator(properties)
    if declared is not None:
        return declared
    named = _named(properties)
    if named:
        raise UnsupportedTableError(
            f"table {properties.get('hoodie.table.name')!r} uses the key generator {named!r}; legal are "
            f"{', '.join(member.value for member in KeyGeneratorType)} and Hudi's classes for them. Write "
            "to the table with the engine that has this class"
        )
    if partition_fields == 0:
        return KeyGeneratorType.NON_PARTITION
    if partition_kinds(properties):
        return KeyGeneratorType.CUSTOM
    return KeyGeneratorType.SIMPLE if partition_fields == 1 and key_fields <= 1 else KeyGeneratorType.COMPLEX


def folders_have_values(properties: Mapping[str, str], *, keeps_kinds: bool) -> bool:
    """Return whether a table's key generator names partition folders by the values of simple fields, as far as that is known.

    Args:
        keeps_kinds: Whether who made the table would have stored which fields of a custom key generator are formatted times;
            Hudi stores the names alone for tables of version 6, and drops the kinds when it makes their properties anew, but
            not the format of the times.
    """
    kind = declared_key_generator(properties)
    if kind is None:
        return not _named(properties)
    if kind is KeyGeneratorType.CUSTOM:
        return bool(partition_kinds(properties)) or (
            keeps_kinds and not any(key.endswith(_TIME_FORMAT) for key in properties)
        )
    return kind not in _WITHOUT_VALUES


def _named(properties: Mapping[str, str]) -> str:
    return properties.get(TYPE_KEY, "").strip() or properties.get(CLASS_KEY, "").strip()
