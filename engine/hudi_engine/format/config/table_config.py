"""The settings a table carries in ``.hoodie/hoodie.properties``.

Serves table versions 4, 5 and 6 (timeline layout 1), 8 and 9 (layout 2). They differ in the names of the key
generator, ordering and merge settings; version 6 tables made by Hudi 1.x use the newer names too, so every
setting is looked up under both (Hudi table config, keys ``hoodie.table.*``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hudi_engine.errors import ConfigError, CorruptTableError, UnsupportedTableError
from hudi_engine.format.config.declared.engine_options import WriterOptions
from hudi_engine.format.config.declared.table_options import CHANGELOG_PROPERTY, TableOptions
from hudi_engine.format.config.enums import (
    DECLARED_MERGE_MODES,
    CdcLogging,
    ConcurrencyMode,
    KeyGeneratorType,
    MergeMode,
    TableType,
)
from hudi_engine.format.config.properties import format_properties, table_checksum
from hudi_engine.format.config.properties_file import (
    BACKUP_PATH,
    CHECKSUM_KEY,
    HOODIE_FOLDER,
    PROPERTIES_PATH,
    read_properties,
)
from hudi_engine.format.config.table_version import TABLE_VERSIONS, TableVersion
from hudi_engine.format.config.trusted_rules import RULE_PROPERTY, is_trusted, trust_rules
from hudi_engine.format.storage.base import Storage

TYPE_KEY = "hoodie.table.keygenerator.type"
CLASS_KEY = "hoodie.table.keygenerator.class"
KEY_GENERATOR_PACKAGE = "org.apache.hudi.keygen"
PARTITION_FIELDS = "hoodie.table.partition.fields"
KINDS_PROPERTY = "hoodie.engine.partition.kinds"
"""Property with the kinds of a table's partition fields. Hudi writes kinds behind the names of the fields from version 8 on;
before, it would take a kind for part of the name."""

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


def named_zone(name: str) -> tzinfo:
    """Return the zone of an IANA name; raises ConfigError for another text."""
    try:
        return timezone.utc if name.upper() == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            f"{TableOptions.TIMELINE_ZONE} is {name!r}; legal values: LOCAL, UTC and IANA names such as America/New_York"
        ) from None


def is_of_this_engine(properties: Mapping[str, str]) -> bool:
    """Return whether this engine made a table.

    From version 8 on a property names it. Its tables of version 6 name UTC as their time zone and not the format of their
    partition metadata; Hudi's name both or neither, but for those made by SQL with a time zone of their own, to which Hudi
    1.x gives its keys.
    """
    if MADE_BY in properties:
        return True
    return (
        properties.get(TableOptions.TIMELINE_ZONE.key, "").strip().upper() == "UTC"
        and "hoodie.partition.metafile.use.base.format" not in properties
        and not any(key in properties for key in _RELEASE_1_KEYS)
    )


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
    """Return the kinds that a table states of its partition fields, by name; empty when it states none."""
    fields = ",".join(properties.get(key, "") for key in (KINDS_PROPERTY, PARTITION_FIELDS))
    parts = (part.strip().rpartition(":") for part in fields.split(","))
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
            f"table {properties.get('hoodie.table.name')!r} uses the key generator {named!r}; legal values: "
            f"{', '.join(member.value for member in KeyGeneratorType)} and Hudi's classes for them. Write "
            "to the table with the engine that has this class"
        )
    if partition_fields == 0:
        return KeyGeneratorType.NON_PARTITION
    if partition_kinds(properties):
        return KeyGeneratorType.CUSTOM
    return KeyGeneratorType.SIMPLE if partition_fields == 1 and key_fields <= 1 else KeyGeneratorType.COMPLEX


def folders_have_values(properties: Mapping[str, str], *, keeps_kinds: bool) -> bool:
    """Return whether a table's key generator names partition folders by the values of simple fields, as far as that is known."""
    kind = declared_key_generator(properties)
    if kind is None:
        return not _named(properties)
    if kind is KeyGeneratorType.CUSTOM:
        # Hudi stores the names alone for tables of version 6, and drops the kinds when it writes their properties again, but
        # not the format of the times.
        return bool(partition_kinds(properties)) or (
            keeps_kinds and not any(key.endswith(_TIME_FORMAT) for key in properties)
        )
    return kind not in _WITHOUT_VALUES


def _named(properties: Mapping[str, str]) -> str:
    return properties.get(TYPE_KEY, "").strip() or properties.get(CLASS_KEY, "").strip()


EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"

PAYLOAD_PACKAGE = "org.apache.hudi.common.model"

_PAYLOAD_MODES = {
    "OverwriteWithLatestAvroPayload": MergeMode.COMMIT_TIME_ORDERING,
    "DefaultHoodieRecordPayload": MergeMode.EVENT_TIME_ORDERING,
    "EventTimeAvroPayload": MergeMode.EVENT_TIME_ORDERING,
    "PartialUpdateAvroPayload": MergeMode.PARTIAL_UPDATE,
    "OverwriteNonDefaultsWithLatestAvroPayload": MergeMode.OVERWRITE_NON_DEFAULTS,
    "AWSDmsAvroPayload": MergeMode.AWS_DMS,
}
_STRATEGY_MODES = {
    EVENT_TIME_STRATEGY: MergeMode.EVENT_TIME_ORDERING,
    COMMIT_TIME_STRATEGY: MergeMode.COMMIT_TIME_ORDERING,
}
_UNAVAILABLE = "hoodie.write.partial.update.unavailable.value"
_IGNORE_DEFAULTS = {
    MergeMode.COMMIT_TIME_ORDERING: MergeMode.OVERWRITE_NON_DEFAULTS,
    MergeMode.EVENT_TIME_ORDERING: MergeMode.PARTIAL_UPDATE,
}


def payload_merge_mode(payload_class: str) -> MergeMode:
    """Return what a payload class does; CUSTOM for classes that are not known here."""
    return _PAYLOAD_MODES.get(payload_class.removeprefix(f"{PAYLOAD_PACKAGE}."), MergeMode.CUSTOM)


def unavailable_value(properties: Mapping[str, str]) -> str | None:
    """Return the text that represents a value its source did not send; None when the table names none."""
    return properties.get(f"hoodie.record.merge.property.{_UNAVAILABLE}") or properties.get(_UNAVAILABLE)


# Version 6 names a payload class, which decides before the strategy id. Versions 8 and 9 name a merge mode; version 8 keeps a
# payload class with CUSTOM, version 9 turns well-known payloads into a mode and hoodie.table.partial.update.mode.
def resolve_merge_mode(properties: Mapping[str, str], version: int, *, has_ordering: bool) -> MergeMode:
    """Return the merge mode of a table."""
    mode = _declared(properties) or _inferred(properties)
    if version >= 9:
        partial = properties.get("hoodie.table.partial.update.mode", "").strip().upper()
        mode = _with_partial_update(mode, partial, unavailable_value(properties) is not None)
    if mode is MergeMode.EVENT_TIME_ORDERING and not has_ordering:
        return MergeMode.COMMIT_TIME_ORDERING
    return mode


def _declared(properties: Mapping[str, str]) -> MergeMode | None:
    raw = properties.get(TableOptions.MERGE_MODE.key, "").strip().upper()
    if not raw:
        return None
    if raw not in DECLARED_MERGE_MODES:
        raise CorruptTableError(
            f"hoodie.record.merge.mode is {raw!r}; legal values: {', '.join(DECLARED_MERGE_MODES)}"
        )
    mode = MergeMode(raw)
    payload = properties.get("hoodie.compaction.payload.class", "").strip()
    return payload_merge_mode(payload) if mode is MergeMode.CUSTOM and payload else mode


def _inferred(properties: Mapping[str, str]) -> MergeMode:
    payload = properties.get("hoodie.compaction.payload.class", "").strip()
    if payload:
        return payload_merge_mode(payload)
    strategy = (
        properties.get("hoodie.record.merge.strategy.id", "").strip()
        or properties.get("hoodie.compaction.record.merger.strategy", "").strip()
    )
    return _STRATEGY_MODES.get(strategy, MergeMode.CUSTOM) if strategy else MergeMode.EVENT_TIME_ORDERING


def _with_partial_update(mode: MergeMode, partial: str, says_unavailable: bool) -> MergeMode:
    if partial in ("", "KEEP_VALUES"):
        return mode
    if partial == MergeMode.FILL_UNAVAILABLE and mode is MergeMode.EVENT_TIME_ORDERING and says_unavailable:
        return MergeMode.FILL_UNAVAILABLE
    return _IGNORE_DEFAULTS.get(mode, MergeMode.CUSTOM) if partial == "IGNORE_DEFAULTS" else MergeMode.CUSTOM


CREATE_SCHEMA = "hoodie.table.create.schema"
ZONE_PROPERTY = "hoodie.engine.timeline.timezone"
"""Where a table with instants in local time keeps the zone that a writer gave (`TableOptions.TIMELINE_ZONE`)."""
MADE_BY = "hoodie.engine.made.by"
"""Names this engine in its tables of version 8 and later."""

_NON_BLOCKING = ConcurrencyMode.NON_BLOCKING_CONCURRENCY_CONTROL
_BOOTSTRAP_INDEX = "HFileBootstrapIndex"
_BOOTSTRAP_INDEX_FOLDER = ".hoodie/.aux/.bootstrap/.partitions"

_TIMEBASED_PREFIXES = ("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.")
_DELETE_FIELD = TableOptions.DELETE_FIELD.key
_DELETE_MARKER = TableOptions.DELETE_MARKER.key
_TRUSTED = "__rule_is_trusted"
_RELEASE_1_KEYS = (
    "hoodie.record.merge.strategy.id",
    "hoodie.timeline.path",
    "hoodie.timeline.history.path",
    "hoodie.table.format",
    "hoodie.table.initial.version",
)
"""Keys that Hudi 1.x gives the tables of version 6 that it creates, and those that it upgrades; writing adds none of them."""
_AWS_DMS_MARKER = ("Op", "D")
"""Column and value by which AWSDmsAvroPayload marks rows that delete."""
_OPERATION_COLUMN = "_hoodie_operation"
_MERGE_PROPERTY = "hoodie.record.merge.property."


def _flag(key: str, *, default: bool = False) -> cached_property[bool]:
    return cached_property(lambda config: config._truth(key, default))


@dataclass(frozen=True)
class PartitionField:
    """A column that decides the partition path: ``kind`` is ``simple`` (its value) or ``timestamp`` (formatted)."""

    name: str
    kind: str = "simple"


@dataclass(frozen=True)
class TableConfig:
    """Immutable settings of one table; every attribute is derived from ``properties``."""

    properties: Mapping[str, str]

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to another process: the settings, and whether their merge rule may be imported there."""
        return {**self.__dict__, _TRUSTED: is_trusted(self.properties.get(RULE_PROPERTY, ""))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the settings over in another process."""
        if state.pop(_TRUSTED, False):
            trust_rules(state["properties"].get(RULE_PROPERTY))
        self.__dict__.update(state)

    @classmethod
    def load(cls, storage: Storage) -> TableConfig:
        """Read and validate the settings of the table at ``storage.base``.

        The backup that Hudi keeps during an update is used when the file itself is missing or damaged.
        """
        config = cls.from_properties(read_properties(storage))
        _check_rows_are_inside(config, storage)
        return config

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> TableConfig:
        """Build from parsed properties and check that this engine can read such a table."""
        config = cls(dict(properties))
        config._check_readable()
        return config

    @cached_property
    def name(self) -> str:
        """``hoodie.table.name``."""
        return self._text("hoodie.table.name")

    @cached_property
    def database(self) -> str:
        """``hoodie.database.name``; ``""`` when there is none."""
        return self._text(TableOptions.DATABASE_NAME.key)

    @cached_property
    def table_type(self) -> TableType:
        """Copy on write or merge on read."""
        raw = self._text("hoodie.table.type")
        try:
            return TableType(raw.upper())
        except ValueError:
            legal = ", ".join(member.value for member in TableType)
            raise CorruptTableError(f"hoodie.table.type is {raw!r}; legal values: {legal}") from None

    @cached_property
    def version(self) -> int:
        """Table version: 4, 5, 6, 8 or 9."""
        return self._number("hoodie.table.version", 0)

    @cached_property
    def layout_version(self) -> int:
        """Timeline layout: 1 up to version 6, 2 for versions 8 and 9."""
        known = TABLE_VERSIONS.get(self.version)
        return self._number("hoodie.timeline.layout.version", known.timeline_layout if known else 0)

    @cached_property
    def table_version(self) -> TableVersion:
        """What the table's version decides."""
        return TABLE_VERSIONS[self.version]

    @cached_property
    def timeline_path(self) -> str:
        """Folder of the active timeline, relative to the base path."""
        if self.layout_version == 1:
            return HOODIE_FOLDER
        return f"{HOODIE_FOLDER}/{self._text('hoodie.timeline.path', 'timeline')}"

    @cached_property
    def archive_folder(self) -> str:
        """Folder of the archived timeline, relative to the base path."""
        if self.layout_version == 1:
            return f"{HOODIE_FOLDER}/{self._text('hoodie.archivelog.folder', 'archived')}"
        return f"{self.timeline_path}/{self._text('hoodie.timeline.history.path', 'history')}"

    @cached_property
    def record_key_fields(self) -> tuple[str, ...]:
        """Columns of the record key; empty for generated keys."""
        return self._names("hoodie.table.recordkey.fields")

    @cached_property
    def ordering_fields(self) -> tuple[str, ...]:
        """Columns that order records of one key; empty when commit order decides."""
        return self._names("hoodie.table.ordering.fields") or self._names("hoodie.table.precombine.field")

    @cached_property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """Columns of the partition path, in order."""
        default = (
            "timestamp" if declared_key_generator(self.properties) is KeyGeneratorType.TIMESTAMP else "simple"
        )
        names = [text.rpartition(":")[0] or text for text in self._names(PARTITION_FIELDS)]
        kinds = partition_kinds(self.properties)
        return tuple(PartitionField(name, kinds.get(name, default)) for name in names)

    @cached_property
    def is_partitioned(self) -> bool:
        """Whether data lies in partition folders rather than in the base folder itself."""
        return bool(self.partition_fields)

    @cached_property
    def key_generator(self) -> KeyGeneratorType:
        """Key generator, from type, class or, when neither is there, from the fields as Hudi infers it."""
        return resolve_key_generator(
            self.properties,
            key_fields=len(self.record_key_fields),
            partition_fields=len(self.partition_fields),
        )

    @cached_property
    def folders_say_values(self) -> bool:
        """Whether partition folders are named by the values of fields whose kind is ``simple``, as far as the table states it."""
        named_by_values = folders_have_values(self.properties, keeps_kinds=self.is_of_this_engine)
        return named_by_values and not self.slashed_dates

    hive_style = _flag(TableOptions.HIVE_STYLE_PARTITIONING.key)
    """Whether partition folders are named ``column=value``."""
    url_encode = _flag(TableOptions.URL_ENCODE_PARTITIONS.key)
    """Whether partition values are escaped as Hive does."""
    slashed_dates = _flag("hoodie.datasource.write.slash.separated.date.partitioning")
    """Whether slashes represent dashes in the folders of a lone partition column that are not ``column=value``."""
    drop_partition_columns = _flag("hoodie.datasource.write.drop.partition.columns")
    """Whether partition columns are left out of the data files."""
    populate_meta_fields = _flag("hoodie.populate.meta.fields", default=True)
    """Whether the five ``_hoodie_*`` columns are filled."""
    cdc_enabled = _flag(TableOptions.CHANGE_DATA_CAPTURE.key)
    """Whether writes keep change data files."""
    partition_metafile_use_base_format = _flag("hoodie.partition.metafile.use.base.format")
    """Whether ``.hoodie_partition_metadata`` is a Parquet or ORC file."""

    @cached_property
    def cdc_logging(self) -> CdcLogging:
        """What change data files keep of a change."""
        option = TableOptions.CDC_LOGGING
        value = self._text(option.key, option.default).upper()
        try:
            return CdcLogging(value)
        except ValueError as error:
            raise CorruptTableError(
                f"table {self.name!r} has {option}={value!r}; legal values: {', '.join(CdcLogging)}"
            ) from error

    @cached_property
    def keeps_operations(self) -> bool:
        """Whether rows carry ``_hoodie_operation`` and logs keep every change (changelog mode, merge-on-read only).

        Hudi 0.15 drops properties it does not know when a table is registered in its catalog; the column is in the schema
        that it puts there then.
        """
        known = f'"{_OPERATION_COLUMN}"' in (self.create_schema or "")
        return self.table_type is TableType.MERGE_ON_READ and self._truth(CHANGELOG_PROPERTY, known)

    @cached_property
    def payload_class(self) -> str | None:
        """Payload class the table names, None when it names none."""
        return (
            self._text("hoodie.compaction.payload.class")
            or self._text(TableOptions.PAYLOAD_CLASS.key)
            or None
        )

    @cached_property
    def merge_mode(self) -> MergeMode:
        """How records of one key are merged; CUSTOM when this engine does not know the payload class."""
        return resolve_merge_mode(self.properties, self.version, has_ordering=bool(self.ordering_fields))

    @cached_property
    def unavailable_value(self) -> str | None:
        """Text that represents a value its source did not send, in tables that fill such gaps."""
        return unavailable_value(self.properties)

    @cached_property
    def is_of_this_engine(self) -> bool:
        """Whether this engine made the table."""
        return is_of_this_engine(self.properties)

    @cached_property
    def is_of_release_1(self) -> bool:
        """Whether Hudi 1.x made the table.

        It takes the merge mode out of those of version 6. Tables of releases before 0.14 have the keys of neither.
        """
        if TableOptions.MERGE_MODE.key in self.properties:
            return True
        by_release_0 = "hoodie.compaction.record.merger.strategy" in self.properties
        return not by_release_0 and any(key in self.properties for key in _RELEASE_1_KEYS)

    @cached_property
    def merges_as_release_0(self) -> bool:
        """Whether rows are those that Hudi 0.x, which made the table, gives.

        Release 1 merges the same logs otherwise when records or deletes come late.
        """
        return (
            self.version <= 6
            and self.table_type is TableType.MERGE_ON_READ
            and not self.is_of_release_1
            and not self.is_of_this_engine
        )

    @cached_property
    def delete_marker(self) -> tuple[str, str] | None:
        """Column and value that mark a row as a delete besides ``_hoodie_is_deleted``; None when there is none."""
        return self._declared_marker or (_AWS_DMS_MARKER if self.merge_mode is MergeMode.AWS_DMS else None)

    @cached_property
    def delete_markers(self) -> tuple[str, ...]:
        """Spellings of the value in `delete_marker`: capital and small letters are one where the payload class has its own.

        A marker that a property names is compared exactly, also the one that Hudi 1.x keeps for that class in version 9.
        """
        if self.delete_marker is None:
            return ()
        marker = self.delete_marker[1]
        return (marker,) if self._declared_marker is not None else (marker.upper(), marker.lower())

    @cached_property
    def _declared_marker(self) -> tuple[str, str] | None:
        for prefix in (_MERGE_PROPERTY, ""):
            field, marker = self._text(prefix + _DELETE_FIELD), self._text(prefix + _DELETE_MARKER)
            if field and marker:
                return field, marker
        return None

    @cached_property
    def base_file_format(self) -> str:
        """Format of base files in upper case, normally ``PARQUET``."""
        return self._text("hoodie.table.base.file.format", "PARQUET").upper()

    @cached_property
    def timeline_timezone(self) -> str:
        """``UTC``, or ``LOCAL`` when instants are in the zone of whoever wrote them, Hudi's default."""
        value = self._text(TableOptions.TIMELINE_ZONE.key, "LOCAL").upper()
        if value not in ("UTC", "LOCAL"):
            raise CorruptTableError(
                f"table {self.name!r} has {TableOptions.TIMELINE_ZONE}={value!r}; legal values: UTC and LOCAL"
            )
        return value

    @property
    def timeline_zone(self) -> tzinfo | None:
        """Zone of the digits of instants; None for the zone of this machine."""
        if self.timeline_timezone == "UTC":
            return timezone.utc
        name = self._text(ZONE_PROPERTY)
        return named_zone(name) if name else None

    @cached_property
    def metadata_partitions(self) -> tuple[str, ...]:
        """Partitions of a live metadata table; empty when there is none."""
        return self._names("hoodie.table.metadata.partitions")

    @cached_property
    def create_schema(self) -> str | None:
        """Avro schema (JSON, without meta columns) given when the table was created."""
        return self._text(CREATE_SCHEMA) or None

    @cached_property
    def timestamp_keygen(self) -> Mapping[str, str]:
        """Settings of timestamp-based partition paths, keys without their prefix.

        A text whose zone no one states is in UTC in the tables of this engine, and in Hudi's where its own offset puts it.
        """
        found: dict[str, str] = {}
        for prefix in reversed(_TIMEBASED_PREFIXES):
            found.update(
                {
                    key[len(prefix) :]: value
                    for key, value in self.properties.items()
                    if key.startswith(prefix)
                }
            )
        if self.is_of_this_engine and any(field.kind == "timestamp" for field in self.partition_fields):
            found.setdefault("input.timezone", "UTC")
        return found

    def check_writable(self) -> None:
        """Refuse tables that this engine reads but must not write.

        Raises:
            UnsupportedTableError: naming the version or feature and the way out.
        """
        if not self.table_version.is_written:
            written = ", ".join(str(each.number) for each in TABLE_VERSIONS.values() if each.is_written)
            raise UnsupportedTableError(
                f"table {self.name!r} has version {self.version}; this engine writes versions {written}. Write to it once "
                "with Apache Hudi 0.14 or 0.15, which upgrades it to version 6, or rebuild it here"
            )
        features = {
            f"base file format {self.base_file_format}": self.base_file_format != "PARQUET",
            "hoodie.datasource.write.drop.partition.columns=true": self.drop_partition_columns,
            "hoodie.populate.meta.fields=false": not self.populate_meta_fields,
            "hoodie.partition.metafile.use.base.format=true": self.partition_metafile_use_base_format,
            "hoodie.datasource.write.slash.separated.date.partitioning=true": self.slashed_dates,
            f"{WriterOptions.CONCURRENCY_MODE}={_NON_BLOCKING}": (
                self._text(WriterOptions.CONCURRENCY_MODE.key).upper() == _NON_BLOCKING
            ),
        }
        found = [feature for feature, present in features.items() if present]
        if found:
            raise UnsupportedTableError(
                f"table {self.name!r} has {', '.join(found)}; this engine reads such tables but does not "
                "write them. Write to it with Apache Hudi, or rebuild it here without the feature"
            )
        self.key_generator  # noqa: B018 - raises for a class this engine does not know

    def to_bytes(self, comment: str = "") -> bytes:
        """Format ``hoodie.properties`` with a fresh checksum."""
        head = comment or f"Updated at {datetime.now(timezone.utc).isoformat().replace('+00:00', 'Z')}"
        ordered = {key: self.properties[key] for key in sorted(self.properties) if key != CHECKSUM_KEY}
        return format_properties({**ordered, CHECKSUM_KEY: str(table_checksum(ordered))}, head)

    def with_properties(
        self, changes: Mapping[str, str] | None = None, removals: Iterable[str] = ()
    ) -> TableConfig:
        """Return a copy with some properties set and others removed, checksum renewed."""
        removed = set(removals)
        merged = {key: value for key, value in self.properties.items() if key not in removed}
        merged.update(changes or {})
        merged[CHECKSUM_KEY] = str(table_checksum(merged))
        return TableConfig.from_properties(merged)

    def save(self, storage: Storage, comment: str = "") -> None:
        """Write ``hoodie.properties`` atomically; a leftover backup goes, since it would be older."""
        storage.replace(PROPERTIES_PATH, self.to_bytes(comment))
        storage.delete(BACKUP_PATH)

    def _check_readable(self) -> None:
        legal = ", ".join(
            f"{each.number} (layout {each.timeline_layout})" for each in TABLE_VERSIONS.values()
        )
        known = TABLE_VERSIONS.get(self.version)
        if known is None or known.timeline_layout != self.layout_version:
            raise UnsupportedTableError(
                f"table {self.name!r} has version {self.version} and timeline layout {self.layout_version}; "
                f"this engine reads versions {legal}. Upgrade an older table with Apache Hudi first"
            )
        # Evaluated here so that a bad value is found when the table is opened, not in the middle of a read.
        for attribute in (
            "table_type",
            "hive_style",
            "url_encode",
            "slashed_dates",
            "drop_partition_columns",
            "populate_meta_fields",
        ):
            getattr(self, attribute)

    def _text(self, key: str, default: str = "") -> str:
        return self.properties.get(key, "").strip() or default

    def _names(self, key: str) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.properties.get(key, "").split(",") if name.strip())

    def _number(self, key: str, default: int) -> int:
        raw = self._text(key)
        if not raw:
            return default
        try:
            return int(raw)
        except ValueError:
            raise CorruptTableError(f"{key} is {raw!r}; it must be a whole number") from None

    def _truth(self, key: str, default: bool) -> bool:
        raw = self._text(key, str(default)).lower()
        if raw not in ("true", "false"):
            raise CorruptTableError(f"{key} is {raw!r}; legal values: true, false")
        return raw == "true"


def _check_rows_are_inside(config: TableConfig, storage: Storage) -> None:
    """Refuse a table whose rows lie partly in the files that it was bootstrapped from.

    After a full bootstrap (``FULL_RECORD`` for every partition) all rows are in the table, though its properties name the
    source ever after. Only partitions that took the keys alone (``METADATA_ONLY``) are named by Hudi's bootstrap index
    (HFileBootstrapIndex), so a table without one is like any other; other kinds of index are not looked into.
    """
    source = config.properties.get("hoodie.bootstrap.base.path", "").strip()
    if not source:
        return
    index = config.properties.get("hoodie.bootstrap.index.class", _BOOTSTRAP_INDEX).rpartition(".")[2]
    if index == _BOOTSTRAP_INDEX and not storage.list(_BOOTSTRAP_INDEX_FOLDER):
        return
    raise UnsupportedTableError(
        f"table {config.name!r} is bootstrapped from {source!r}: its rows lie partly outside the table. "
        "Bootstrap it again with hoodie.bootstrap.mode.selector.regex.mode=FULL_RECORD for every partition, or copy its "
        "rows into another table, with Apache Hudi"
    )
