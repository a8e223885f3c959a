"""The properties of a table in another version: how Apache Hudi's upgrade and downgrade steps change them, one step each.

A new table of version 8 or 9 is defined as one of version 6 and taken up the same steps, so that both always agree (Hudi's
``SevenToEightUpgradeHandler``, ``EightToNineUpgradeHandler`` and their counterparts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hudi_engine.errors import ConfigError, UnsupportedTableError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.enums import KeyGeneratorType, MergeMode, TableType
from hudi_engine.format.config.table_config import (
    CLASS_KEY,
    COMMIT_TIME_STRATEGY,
    EVENT_TIME_STRATEGY,
    KINDS_PROPERTY,
    MADE_BY,
    PARTITION_FIELDS,
    PAYLOAD_PACKAGE,
    TYPE_KEY,
    declared_key_generator,
    is_of_this_engine,
    key_generator_class,
    partition_kinds,
    payload_merge_mode,
    resolve_merge_mode,
)
from hudi_engine.format.config.table_version import TABLE_VERSIONS

Properties = dict[str, str]

INITIAL_VERSION = "hoodie.table.initial.version"
_VERSION, _LAYOUT = "hoodie.table.version", "hoodie.timeline.layout.version"
_PRECOMBINE, _ORDERING = "hoodie.table.precombine.field", "hoodie.table.ordering.fields"
_MODE, _STRATEGY = TableOptions.MERGE_MODE.key, "hoodie.record.merge.strategy.id"
_PAYLOAD, _LEGACY_PAYLOAD = "hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class"
_OLD_STRATEGY = "hoodie.compaction.record.merger.strategy"
_PARTIAL_UPDATES = "hoodie.table.partial.update.mode"
_MERGE_PROPERTY = "hoodie.record.merge.property."
_DELETE_KEYS = (TableOptions.DELETE_FIELD.key, TableOptions.DELETE_MARKER.key)
_TIMELINE = {"hoodie.timeline.path": "timeline", "hoodie.timeline.history.path": "history"}
_PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"
EVENT_TIME_PAYLOAD = f"{PAYLOAD_PACKAGE}.DefaultHoodieRecordPayload"
COMMIT_TIME_PAYLOAD = f"{PAYLOAD_PACKAGE}.OverwriteWithLatestAvroPayload"
_PLAIN = {
    MergeMode.EVENT_TIME_ORDERING: (EVENT_TIME_STRATEGY, EVENT_TIME_PAYLOAD),
    MergeMode.COMMIT_TIME_ORDERING: (COMMIT_TIME_STRATEGY, COMMIT_TIME_PAYLOAD),
}
_IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
_HELPERS: Mapping[MergeMode, tuple[MergeMode, Mapping[str, str]]] = {
    MergeMode.OVERWRITE_NON_DEFAULTS: (
        MergeMode.COMMIT_TIME_ORDERING,
        {_PARTIAL_UPDATES: _IGNORE_DEFAULTS},
    ),
    MergeMode.PARTIAL_UPDATE: (MergeMode.EVENT_TIME_ORDERING, {_PARTIAL_UPDATES: _IGNORE_DEFAULTS}),
    MergeMode.AWS_DMS: (
        MergeMode.COMMIT_TIME_ORDERING,
        {f"{_MERGE_PROPERTY}{_DELETE_KEYS[0]}": "Op", f"{_MERGE_PROPERTY}{_DELETE_KEYS[1]}": "D"},
    ),
}
"""Payload classes that version 9 replaces by a merge mode and further properties."""


def new_properties(properties: Properties, version: int) -> Properties:
    """Return the properties of a new table of a version.

    Args:
        properties: Those of the same table in version 6, without version, layout and checksum.
        version: A written version.

    Raises:
        ConfigError: The version cannot store what the table is to be.
    """
    found = {**properties, _VERSION: "6", _LAYOUT: "1"}
    if version == 6:
        return found
    found = in_version(found, version)
    found[INITIAL_VERSION] = str(version)
    if found[TYPE_KEY] in KeyGeneratorType.__members__:
        del found[CLASS_KEY]
    if payload_merge_mode(found.get(_LEGACY_PAYLOAD, "")) in _PLAIN:
        del found[_LEGACY_PAYLOAD]
    return found


def in_version(properties: Mapping[str, str], version: int) -> Properties:
    """Return the properties of a table after an upgrade or downgrade, step by step; the checksum is left to the caller.

    Raises:
        ConfigError: The version cannot store what the table is.
        UnsupportedTableError: The table cannot be taken to the version.
    """
    steps = [6, 8, 9]
    current = int(properties[_VERSION])
    for number in (current, version):
        if number not in steps:
            raise UnsupportedTableError(
                f"table version {number} cannot be upgraded or downgraded; legal: 6, 8, 9"
            )
    found = dict(properties)
    while current != version:
        towards = steps[steps.index(current) + (1 if version > current else -1)]
        found = _STEPS[current, towards](found)
        found[_VERSION] = str(towards)
        found[_LAYOUT] = str(TABLE_VERSIONS[towards].timeline_layout)
        current = towards
    if version == 8 and "," in found.get(_PRECOMBINE, ""):
        raise ConfigError(
            f"ordering fields are {found[_PRECOMBINE]!r}: a table of version 8 has one at most. Legal are one ordering field, "
            "and versions 6 and 9, which take several"
        )
    return found


def _six_to_eight(given: Properties) -> Properties:
    """Name the key generator by its type and the merge rule by its mode."""
    kind = declared_key_generator(given)
    found = {**given, **_TIMELINE, INITIAL_VERSION: "6"}
    if is_of_this_engine(given):
        found[MADE_BY] = "dbt-hudi"
    if kind is not None:
        found[TYPE_KEY] = kind.value
    kinds = partition_kinds(given)
    if kind is KeyGeneratorType.CUSTOM and PARTITION_FIELDS in given:
        names = [text.partition(":")[0].strip() for text in given[PARTITION_FIELDS].split(",")]
        found[PARTITION_FIELDS] = ",".join(f"{name}:{kinds.get(name, 'simple')}" for name in names)
    found.pop(KINDS_PROPERTY, None)
    ordering = found.pop(_ORDERING, None) or given.get(_PRECOMBINE, "")
    if ordering:
        found[_PRECOMBINE] = ordering
    mode = resolve_merge_mode(given, 6, has_ordering=bool(ordering))
    for key in (_OLD_STRATEGY, _STRATEGY, _MODE):
        found.pop(key, None)
    if mode in _PLAIN:
        found[_STRATEGY], found[_PAYLOAD] = _PLAIN[mode]
        found[_MODE] = mode.value
    else:
        found[_MODE] = MergeMode.CUSTOM.value
        found[_STRATEGY] = _PAYLOAD_STRATEGY
    return found


def _eight_to_nine(given: Properties) -> Properties:
    """Name well-known payload classes by a merge mode and properties, and the ordering fields by their new key."""
    found = dict(given)
    ordering = found.pop(_PRECOMBINE, "")
    if ordering:
        found[_ORDERING] = ordering
    payload = found.get(_PAYLOAD, "")
    mode = payload_merge_mode(payload) if payload else MergeMode(found[_MODE])
    helpers: Mapping[str, str] = {}
    if mode in _HELPERS:
        mode, helpers = _HELPERS[mode]
    elif mode not in _PLAIN:
        return found
    found.pop(_STRATEGY, None)
    if payload:
        found[_LEGACY_PAYLOAD] = found.pop(_PAYLOAD)
    found.update({_MODE: mode.value, **helpers})
    for key in _DELETE_KEYS:
        if key in found:
            found[_MERGE_PROPERTY + key] = found.pop(key)
    return found


def _nine_to_eight(given: Properties) -> Properties:
    """Return the properties of version 8, which name the payload class in addition to the merge mode."""
    found = {key: value for key, value in given.items() if key != _PARTIAL_UPDATES}
    ordering = found.pop(_ORDERING, "")
    if ordering:
        found[_PRECOMBINE] = ordering
    if found.get(_MODE) == MergeMode.CUSTOM:
        return found
    mode = MergeMode(found[_MODE])
    payload = found.pop(_LEGACY_PAYLOAD, "") or _PLAIN[mode][1]
    is_plain = payload_merge_mode(payload) in _PLAIN
    found[_PAYLOAD] = payload
    found[_MODE] = mode.value if is_plain else MergeMode.CUSTOM.value
    found[_STRATEGY] = _PLAIN[mode][0] if is_plain else _PAYLOAD_STRATEGY
    for key in _DELETE_KEYS:
        value = found.pop(_MERGE_PROPERTY + key, None)
        if value is not None and is_plain:
            found[key] = value
    return found


def _eight_to_six(given: Properties) -> Properties:
    """Drop what version 6 does not know; the payload class is the merge rule again."""
    gone = {*_TIMELINE, INITIAL_VERSION, _MODE, _STRATEGY, TYPE_KEY, MADE_BY, "hoodie.table.format"}
    found = {key: value for key, value in given.items() if key not in gone}
    kind = declared_key_generator(given)
    if CLASS_KEY not in found and kind is not None:
        found[CLASS_KEY] = key_generator_class(kind)
    if kind is KeyGeneratorType.CUSTOM and ":" in found.get(PARTITION_FIELDS, ""):
        found[KINDS_PROPERTY] = found[PARTITION_FIELDS]
        found[PARTITION_FIELDS] = ",".join(
            text.partition(":")[0] for text in found[PARTITION_FIELDS].split(",")
        )
    if TableOptions.MERGE_RULE.key in given:
        found[_MODE] = MergeMode.CUSTOM.value
    if given["hoodie.table.type"] == TableType.MERGE_ON_READ:
        found[_OLD_STRATEGY] = EVENT_TIME_STRATEGY
    return found


_STEPS: Mapping[tuple[int, int], Callable[[Properties], Properties]] = {
    (6, 8): _six_to_eight,
    (8, 9): _eight_to_nine,
    (9, 8): _nine_to_eight,
    (8, 6): _eight_to_six,
}
