"""Options that belong to the table: a write takes them from there and may repeat them, but not contradict them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hudi_engine.errors import ConfigError, WriteConflictError
from hudi_engine.format.config.declared.table_options import CHANGELOG_PROPERTY, TableOptions
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import (
    DECLARED_MERGE_MODES,
    IndexType,
    MergeMode,
    TableType,
    WriteOperation,
)
from hudi_engine.format.config.option import Option, OptionValue
from hudi_engine.format.config.options import Options, canonical_key, laid_over, resolve_options
from hudi_engine.format.config.table_config import (
    CLASS_KEY,
    PAYLOAD_PACKAGE,
    TYPE_KEY,
    TableConfig,
    declared_key_generator,
    payload_merge_mode,
)
from hudi_engine.format.keygen.time_zone import is_known_zone, is_one_zone
from hudi_engine.format.keygen.timestamp_format import PREFIX as TIMESTAMP_PREFIX
from hudi_engine.format.keygen.timestamp_format import zones_that_count
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.schema.meta_fields import IS_DELETED

_AS_WRITTEN = f"{PAYLOAD_PACKAGE}.OverwriteWithLatestAvroPayload"
_COLUMNS = ("record_key_fields", "ordering_fields", "partition_fields")
_SETTINGS = (
    "name",
    "version",
    "table_type",
    "key_generator",
    "hive_style",
    "url_encode",
    "timestamp_keygen",
    "merge_mode",
    "delete_marker",
    "keeps_operations",
    "cdc_enabled",
    "cdc_logging",
)
_PROPERTIES = {
    "merge_rule": TableOptions.MERGE_RULE.key,
    "timestamps_in_keys": TableOptions.CONSISTENT_TIMESTAMPS.key,
}


def same_definition(stored: TableConfig, wanted: TableConfig) -> bool:
    """Return whether a table can be rebuilt in place: key, ordering, partitioning, type, merge rule and buckets are equal."""
    return (
        wanted.database.lower() in (stored.database.lower(), USUAL_DATABASE)
        and _settings(stored) == _settings(wanted)
        and _any_case(stored) == _any_case(wanted)
        and _buckets(stored) == _buckets(wanted)
    )


def check_same_definition(before: TableConfig, now: TableConfig, instant: str) -> None:
    """Refuse a write to a table that was rebuilt with another definition since its rows got their keys and places."""
    was, is_now = (
        {
            **{name: getattr(each, name) for name in (*_COLUMNS, "version")},
            **_settings(each),
            "index": _index(each),
        }
        for each in (before, now)
    )
    changed = [name.replace("_", " ") for name, value in was.items() if value != is_now[name]]
    if changed:
        raise WriteConflictError(
            f"instant {instant} cannot be written: table {now.name!r} was rebuilt or upgraded by another writer meanwhile and "
            f"differs in {', '.join(changed)}. Run this write again"
        )


def _settings(config: TableConfig) -> dict[str, object]:
    """Return settings other than columns and index that decide where a row goes, and how rows of one key are merged."""
    properties = {name: config.properties.get(key, "").strip() for name, key in _PROPERTIES.items()}
    properties["timestamps_in_keys"] = properties["timestamps_in_keys"].lower() or "false"
    return {**{name: getattr(config, name) for name in _SETTINGS}, **properties}


def _any_case(config: TableConfig) -> list[list[str]]:
    """Return key, ordering and partition columns; a rebuild in place keeps the table's spelling of them."""
    partitions = [f"{field.name}:{field.kind}" for field in config.partition_fields]
    roles = (config.record_key_fields, config.ordering_fields, partitions)
    return [[name.lower() for name in names] for names in roles]


def _index(config: TableConfig) -> list[str | None]:
    """Return the settings of the index that the table keeps."""
    return [config.properties.get(option.key) for option in STICKY_INDEX]


def _buckets(config: TableConfig) -> list[str | None] | None:
    """Return settings of the bucket index, which decide where rows are; None for the others."""
    if config.properties.get(IndexOptions.TYPE.key, "").upper() != IndexType.BUCKET:
        return None
    return _index(config)


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

STICKY_INDEX: tuple[Option[OptionValue], ...] = (
    IndexOptions.TYPE,
    IndexOptions.BUCKETS,
    IndexOptions.HASH_FIELD,
)
"""Index options that a table keeps in its properties."""

USUAL_DATABASE = TableOptions.DATABASE_NAME.default
"""Database of a table whose definition names none; said or kept, it is as good as none."""

_DEFINITION: dict[str, Callable[[TableConfig], str]] = {
    **dict.fromkeys(NAME_OPTIONS, lambda config: config.name),
    **dict.fromkeys(KEY_OPTIONS, lambda config: ",".join(config.record_key_fields)),
    **dict.fromkeys(ORDERING_OPTIONS, lambda config: ",".join(config.ordering_fields)),
    **dict.fromkeys(
        PARTITION_OPTIONS, lambda config: ",".join(field.name for field in config.partition_fields)
    ),
    **dict.fromkeys(TYPE_OPTIONS, lambda config: config.table_type.value),
    TableOptions.HIVE_STYLE_PARTITIONING.key: lambda config: str(config.hive_style).lower(),
    TableOptions.URL_ENCODE_PARTITIONS.key: lambda config: str(config.url_encode).lower(),
    **dict.fromkeys(
        ("changelog.enabled", TableOptions.KEEP_OPERATIONS.key, CHANGELOG_PROPERTY),
        lambda config: str(config.keeps_operations).lower(),
    ),
    TableOptions.CHANGE_DATA_CAPTURE.key: lambda config: str(config.cdc_enabled).lower(),
    TableOptions.CDC_LOGGING.key: lambda config: config.cdc_logging.value,
    "hoodie.table.base.file.format": lambda config: config.base_file_format,
}


def marker_problems(options: Options) -> list[str]:
    """Say what a mark of rows that delete lacks; empty when there is no mark, or nothing is missing."""
    pair = (TableOptions.DELETE_FIELD, TableOptions.DELETE_MARKER)
    return [
        f"{option} is {options[option]!r}, which needs {other}: set both, or neither"
        for option, other in (pair, pair[::-1])
        if options[option] and not options[other]
    ]


_DELETING_PAYLOAD, _OPERATION = "EmptyHoodieRecordPayload", "hoodie.datasource.write.operation"


def deletes_by_payload(options: Options) -> bool:
    """Return whether the rows of an upsert delete their keys, as Apache Hudi's payload without a record does."""
    return (options[TableOptions.PAYLOAD_CLASS] or "").rpartition(".")[2] == _DELETING_PAYLOAD


def of_deletes(options: Options) -> Options:
    """Return the options of an upsert that deletes by its payload as those of a delete."""
    upserts = {_OPERATION: WriteOperation.UPSERT.value}
    return resolve_options(
        {
            name: text
            for name, text in options.raw.items()
            if canonical_key(name) != TableOptions.PAYLOAD_CLASS.key and upserts.get(name) != text.upper()
        }
    )


def with_table_options(config: TableConfig, options: Options, operation: str) -> Options:
    """Return the options of a call over those the table keeps."""
    problems = [
        _differs(config, key, options.raw[key], stored(config))
        for key, stored in _DEFINITION.items()
        if key in options.raw
        and _words(TABLE_TYPES.get(options.raw[key].lower(), options.raw[key])) != _words(stored(config))
    ]
    problems += _rule_problems(config, options)
    problems += _time_problems(config, options)
    problems += _text_problems(config, options)
    wanted = options.raw.get(_OPERATION)
    if wanted is not None and wanted.upper() != operation:
        problems.append(
            f"hoodie.datasource.write.operation is {wanted!r}, but {operation.lower()} was called; leave the option out"
        )
    kept = {key: config.properties[key] for key in map(str, STICKY_INDEX) if key in config.properties}
    if kept.get(IndexOptions.TYPE.key) == IndexType.BUCKET:
        problems += _bucket_problems(config, options, kept)
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))
    return resolve_options(laid_over(kept, options.raw))


def _differs(config: TableConfig, key: object, given: str, had: str, why: str = "") -> str:
    return f"{key} is {given!r}, but table {config.name!r} has {had!r}{why}; leave the option out, or rebuild the table"


def with_write_options(config: TableConfig, options: Options) -> TableConfig:
    """Return settings with the merge rule and delete marker of a call's options, which tables of other writers may not store."""
    said: dict[str, str] = {}
    payload = options[TableOptions.PAYLOAD_CLASS]
    if payload and not config.payload_class and TableOptions.MERGE_MODE.key not in config.properties:
        said["hoodie.compaction.payload.class"] = payload
    field, marker = options[TableOptions.DELETE_FIELD], options[TableOptions.DELETE_MARKER]
    if field and marker and config.delete_marker is None:
        said |= {TableOptions.DELETE_FIELD.key: field, TableOptions.DELETE_MARKER.key: marker}
    return config.with_properties(said) if said else config


def _bucket_problems(config: TableConfig, options: Options, kept: Mapping[str, str]) -> list[str]:
    """Return what contradicts the buckets of a table, which hash its whole record key unless it stores another hash field."""
    hashed = ",".join(config.record_key_fields)
    return [
        f"{key} is {given!r}, but table {config.name!r} was made with {had!r}, which decides where its rows "
        "are; leave the option out, or rebuild the table"
        for key, had in {IndexOptions.HASH_FIELD.key: hashed, **kept}.items()
        if (given := options.raw.get(key)) is not None and (_words(given) or _words(hashed)) != _words(had)
    ]


def _text_problems(config: TableConfig, options: Options) -> list[str]:
    """Return names and texts that are other ones than the table's."""
    had: dict[Option[str | None], str] = {}
    rule = config.properties.get(TableOptions.MERGE_RULE.key, "").strip()
    if rule:
        had[TableOptions.MERGE_RULE] = rule
    named = options[TableOptions.DATABASE_NAME] or USUAL_DATABASE
    if config.database and USUAL_DATABASE not in (config.database.lower(), named.lower()):
        had[TableOptions.DATABASE_NAME] = config.database
    if config.delete_marker is not None:
        had[TableOptions.DELETE_FIELD], had[TableOptions.DELETE_MARKER] = config.delete_marker
    problems = [] if config.delete_marker is not None else marker_problems(options)
    problems += [
        _differs(config, option, given, value)
        for option, value in had.items()
        if (given := options[option]) and not _is_same_text(option, given, value)
    ]
    if options[TableOptions.MERGE_RULE] and not rule:
        problems.append(
            f"{TableOptions.MERGE_RULE} is {options[TableOptions.MERGE_RULE]!r}, but table {config.name!r} keeps no rule of its "
            "own, so its rows were merged without; leave the option out, or rebuild the table"
        )
    marked = options[TableOptions.DELETE_FIELD]
    if marked and config.delete_marker is None and config.table_type is TableType.MERGE_ON_READ:
        problems.append(
            f"{TableOptions.DELETE_FIELD} is {marked!r}, but merge-on-read table {config.name!r} has none, so its logs are read "
            f"without one; mark the rows with a column {IS_DELETED} that is true, or rebuild the table with the option"
        )
    return problems


def _is_same_text(option: Option[str | None], given: str, had: str) -> bool:
    """Return whether texts are one; capital letters count in a merge rule's name and in a marker."""
    exact = option in (TableOptions.MERGE_RULE, TableOptions.DELETE_MARKER)
    return given == had if exact else given.lower() == had.lower()


def _rule_problems(config: TableConfig, options: Options) -> list[str]:
    """Return key generator and merge rule: said again they must be the table's, where it has one."""
    said: dict[str, tuple[str, str]] = {}
    for key in (
        TableOptions.KEY_GENERATOR_CLASS.key,
        "hoodie.table.keygenerator.class",
        TableOptions.KEY_GENERATOR_TYPE.key,
        "hoodie.table.keygenerator.type",
    ):
        given = options.raw.get(key)
        if given is not None:
            field = TYPE_KEY if key.endswith(".type") else CLASS_KEY
            kind = declared_key_generator({field: given})
            said[key] = (given if kind is None else kind.value, config.key_generator.value)
    payload = options[TableOptions.PAYLOAD_CLASS]
    if payload is not None and config.payload_class:
        said[TableOptions.PAYLOAD_CLASS.key] = (payload, config.payload_class)
    elif payload is not None and TableOptions.MERGE_MODE.key in config.properties:
        # From version 9 on a table has the merge mode of a well-known class in place of its name.
        if payload_merge_mode(payload) is not config.merge_mode and not deletes_by_payload(options):
            said[TableOptions.PAYLOAD_CLASS.key] = (payload, config.merge_mode.value)
    mode = options[TableOptions.MERGE_MODE]
    if mode is not None:
        stored = config.merge_mode if config.merge_mode in DECLARED_MERGE_MODES else MergeMode.CUSTOM
        said[TableOptions.MERGE_MODE.key] = (mode.value, stored.value)
    return [
        _differs(config, key, given, stored)
        for key, (given, stored) in said.items()
        if given.rpartition(".")[2].lower() != stored.rpartition(".")[2].lower()
    ]


def _time_problems(config: TableConfig, options: Options) -> list[str]:
    """Return how times become keys and folders: said again it must be as in the table, which may not say all of it."""
    times = config.timestamp_keygen
    stored = {f"{TIMESTAMP_PREFIX}{name}": times[name] for name in times if not name.endswith("timezone")}
    stored |= {f"{TIMESTAMP_PREFIX}{name}": zone for name, zone in zones_that_count(times).items()}
    consistent = TableOptions.CONSISTENT_TIMESTAMPS.key
    if consistent in config.properties:
        stored[consistent] = config.properties[consistent]
    elif config.is_of_this_engine:  # which writes it down where it is true
        stored[consistent] = "false"
    return [
        _differs(config, key, given, had, ", by which its keys and folders were made")
        for key, given in options.raw.items()
        if (had := stored.get(canonical_key(key))) is not None
        and _folded(key, given) != _folded(key, had)
        and not (key.endswith("timezone") and not is_known_zone(had))
    ] + _problems_with_defaults(config, options)


def _problems_with_defaults(config: TableConfig, options: Options) -> list[str]:
    """Return what contradicts the defaults that hold for settings which a table of this engine does not store."""
    times = config.timestamp_keygen
    zones = zones_that_count(times)
    if not config.is_of_this_engine or "input.timezone" not in times or "timezone" in zones:
        return []
    read_in = zones.get("input.timezone", "UTC")
    unsaid = read_in if is_one_zone(read_in, "UTC") else f"none: UTC for numbers, {read_in} for texts"
    written_in = zones.get("output.timezone", unsaid)
    both = read_in if is_one_zone(read_in, written_in) else f"none: {read_in} to read, {written_in} to write"
    defaults = {"input.timezone": read_in, "output.timezone": written_in, "timezone": both}
    if times.get("timestamp.type", "").strip().upper() == "SCALAR":
        defaults["timestamp.scalar.time.unit"] = "SECONDS"
    problems = []
    for key, given in options.raw.items():
        name = canonical_key(key).removeprefix(TIMESTAMP_PREFIX)
        had = defaults.get(name)
        if had is None or times.get(name, "").strip() or not given.strip():
            continue
        if given.strip().upper() != had and not is_one_zone(had, given):
            problems.append(_differs(config, key, given, had, ", by which its keys and folders were made"))
    return problems


def _folded(key: str, text: str) -> str:
    """Return a setting in one spelling; in patterns and zones capital letters count."""
    text = text.strip()
    return text if key.endswith(("dateformat", "regex", "timezone")) else text.lower()


def _words(text: str) -> list[str]:
    return [word.partition(":")[0].strip().lower() for word in text.split(",") if word.strip()]


def for_write(config: TableConfig) -> TableConfig:
    """Return settings by which rows that were made of stored ones take their places as they are, where files allow that."""
    if config.table_type is not TableType.COPY_ON_WRITE or not merge_rule(config).composes:
        return config
    return config.with_properties({"hoodie.compaction.payload.class": _AS_WRITTEN})
