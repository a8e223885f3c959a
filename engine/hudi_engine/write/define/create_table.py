"""Making a table: its folders first, its properties last, so that a killed create leaves nothing that looks like a table."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_engine.config.enums import KeyGeneratorType, MergeMode
from hudi_engine.config.options import Options, canonical_key, resolve_options
from hudi_engine.config.other_keys import DEFINED_ELSEWHERE
from hudi_engine.config.properties import table_checksum
from hudi_engine.config.properties_file import PROPERTIES_PATH
from hudi_engine.config.table_config import CHANGELOG_PROPERTY, OPERATION_OPTION, TableConfig
from hudi_engine.errors import ConfigError, SchemaError, StorageError, TableExistsError
from hudi_engine.keygen.generator import build_key_generator, field_type, resolve_field
from hudi_engine.merge.modes.registry import merge_rule
from hudi_engine.schema.avro import arrow_to_avro
from hudi_engine.schema.meta_fields import META_FIELDS
from hudi_engine.storage.base import TEMP_PREFIX, Storage
from hudi_engine.write.define.definition import TABLE_TYPES, read_definition
from hudi_engine.write.define.table_options import STICKY_INDEX

FOLDERS = (
    ".hoodie/.aux/.bootstrap/.partitions",
    ".hoodie/.aux/.bootstrap/.fileids",
    ".hoodie/.schema",
    ".hoodie/.temp",
    ".hoodie/archived",
)
PACKAGE = "org.apache.hudi"
KEYGEN_CLASSES = {
    "SIMPLE": f"{PACKAGE}.keygen.SimpleKeyGenerator",
    "COMPLEX": f"{PACKAGE}.keygen.ComplexKeyGenerator",
    "TIMESTAMP": f"{PACKAGE}.keygen.TimestampBasedKeyGenerator",
    "CUSTOM": f"{PACKAGE}.keygen.CustomKeyGenerator",
    "NON_PARTITION": f"{PACKAGE}.keygen.NonpartitionedKeyGenerator",
    "GLOBAL_DELETE": f"{PACKAGE}.keygen.GlobalDeleteKeyGenerator",
}
EVENT_TIME_PAYLOAD = f"{PACKAGE}.common.model.DefaultHoodieRecordPayload"
COMMIT_TIME_PAYLOAD = f"{PACKAGE}.common.model.OverwriteWithLatestAvroPayload"
EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_PROPERTY_OPTIONS = (
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
)
_STICKY_PREFIXES = ("hoodie.keygen.timebased.", "hoodie.payload.delete.")


def table_properties(
    *,
    name: str,
    record_key: Sequence[str] | None,
    precombine_field: str | Sequence[str] | None,
    partition_by: Sequence[str] | None,
    table_type: str | None,
    schema: pa.Schema | None,
    options: Mapping[str, object] | None,
) -> TableConfig:
    """Check the definition of a table and turn it into its properties (table version 6).

    Args:
        name: Table name.
        record_key: Key fields; None or empty lets the writer generate keys.
        precombine_field: Ordering field, or several compared in turn; with it the newest row wins (event time), without it
            the last written.
        partition_by: Partition fields, ``field:timestamp`` or ``field:simple`` for the custom key generator.
        table_type: ``cow`` (also when None) or ``mor``.
        schema: Data columns when they are known.
        options: ``hoodie.*`` options; those that define the table are kept in its properties, and may take the place of the
            arguments.

    Raises:
        ConfigError: All problems in one message.
        UnsupportedTableError: A payload class or merge rule that this engine does not know.
    """
    problems: list[str] = []
    resolved: Options = resolve_options({})
    try:
        resolved = resolve_options(options)
    except ConfigError as error:
        problems += error.problems
    definition = read_definition(
        name=name,
        record_key=record_key,
        precombine_field=precombine_field,
        partition_by=partition_by,
        table_type=table_type,
        options=resolved.raw,
    )
    problems += definition.problems
    keys, partitions = spelled(definition.keys, schema), spelled(definition.partitions, schema)
    precombine = ",".join(spelled(definition.ordering, schema)) or None
    kind = TABLE_TYPES.get(str(definition.table_type).lower())
    problems += _definition_problems(
        name, keys, precombine, partitions, kind, definition.table_type, schema, resolved
    )
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))
    assert kind is not None
    properties = {
        "hoodie.table.name": name,
        "hoodie.database.name": resolved.text("hoodie.database.name") or "default",
        "hoodie.table.type": kind,
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.archivelog.folder": "archived",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.keygenerator.class": _key_generator(resolved, keys, partitions),
        **{key: str(resolved.value(key)).lower() for key in _PROPERTY_OPTIONS},
        **_payload(resolved, precombine, kind),
        **_sticky(resolved),
    }
    if keys:
        properties["hoodie.table.recordkey.fields"] = ",".join(keys)
    if precombine:
        properties["hoodie.table.precombine.field"] = precombine
    if partitions:
        properties["hoodie.table.partition.fields"] = ",".join(_stored_partition_fields(resolved, partitions))
    if schema is not None:
        properties["hoodie.table.create.schema"] = json.dumps(
            arrow_to_avro(schema, name), separators=(",", ":")
        )
    properties["hoodie.table.checksum"] = str(table_checksum(properties))
    config = TableConfig.from_properties(properties)
    config.check_writable()
    merge_rule(config)
    problems = _key_generator_problems(config, resolved) + _changelog_mode_problems(config)
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))
    return config


def spelled(fields: Sequence[str], schema: pa.Schema | None) -> tuple[str, ...]:
    """Fields as the columns are spelled, for other readers find them by that; ``field:kind`` keeps its kind.

    Args:
        fields: Columns, fields inside structs named with dots.
        schema: The table's columns, None when they are not known yet.
    """
    if schema is None:
        return tuple(fields)
    found = []
    for field in fields:
        name, colon, kind = field.partition(":")
        try:
            found.append(".".join(resolve_field(schema, name)) + colon + kind)
        except SchemaError:
            found.append(field)
    return tuple(found)


def _key_generator_problems(config: TableConfig, options: Options) -> list[str]:
    """Why the key generator cannot serve the table's fields; empty when it can."""
    kind, count = config.key_generator, len(config.partition_fields)
    if kind in (KeyGeneratorType.NON_PARTITION, KeyGeneratorType.GLOBAL_DELETE) and count:
        return [
            f"the key generator is {kind.value}, which makes no partitions, but partition_by names {count} column(s); leave "
            "the key generator out, or partition_by"
        ]
    if kind in (KeyGeneratorType.SIMPLE, KeyGeneratorType.TIMESTAMP) and count != 1:
        return [
            f"the key generator is {kind.value}, which takes one partition column, but partition_by names {count}; leave the "
            "key generator out, or use COMPLEX, CUSTOM or NON_PARTITION"
        ]
    try:
        build_key_generator(config, options=options)
    except ConfigError as error:
        return list(error.problems)
    return []


def create_table(storage: Storage, config: TableConfig) -> None:
    """Write a new table's folders and properties.

    A folder that a killed create left half made is finished.

    Raises:
        TableExistsError: A table, or anything else, is there already.
    """
    check_absent(storage)
    try:
        for folder in FOLDERS:
            storage.make_dirs(folder)
        storage.create(PROPERTIES_PATH, config.to_bytes())
    except FileExistsError:
        raise TableExistsError(_exists(storage)) from None
    except NotADirectoryError as error:
        raise StorageError(
            f"no folder can be made at {storage.base}: {error.filename or 'a part of the path'} is a file; choose another path"
        ) from error


def check_absent(storage: Storage) -> None:
    """Raise TableExistsError unless the folder is missing, empty, or what a killed create left."""
    if storage.exists(PROPERTIES_PATH):
        raise TableExistsError(_exists(storage))
    itself = storage.stat("")
    if itself is not None and not itself.is_dir:
        raise TableExistsError(f"{storage.base} is a file, not a folder; choose another path")
    strangers = [
        each.name
        for each in storage.list("")
        if each.name != ".hoodie" and not each.name.startswith(TEMP_PREFIX)
    ]
    strangers += [
        each.path for each in storage.list(".hoodie") if not each.is_dir and re.match(r"\d{14}", each.name)
    ]
    if strangers:
        raise TableExistsError(
            f"{storage.base} holds {len(strangers)} file(s) or folder(s) ({', '.join(strangers[:3])}) but no readable Hudi "
            "table; choose an empty folder, or remove them first"
        )


def _exists(storage: Storage) -> str:
    return f"a Hudi table is already at {storage.base}; open it with HudiTable.open, or choose another path"


def _definition_problems(
    name: str,
    keys: tuple[str, ...],
    precombine: str | None,
    partitions: tuple[str, ...],
    kind: str | None,
    table_type: str,
    schema: pa.Schema | None,
    options: Options,
) -> list[str]:
    problems = []
    if not name or not re.fullmatch(r"[A-Za-z0-9_.\-]+", name):
        problems.append(f"table name is {name!r}; legal: letters, digits, '_', '-', '.'")
    if kind is None:
        problems.append(f"table_type is {table_type!r}; legal values: cow, mor")
    if len(set(keys)) != len(keys):
        problems.append(f"record_key {list(keys)} names a column twice")
    if options.is_set("hoodie.write.table.version") and options.int("hoodie.write.table.version") != 6:
        problems.append(
            f"hoodie.write.table.version is {options.value('hoodie.write.table.version')}; only 6 is written"
        )
    for key, wrong in (
        ("hoodie.populate.meta.fields", False),
        ("hoodie.datasource.write.drop.partition.columns", True),
        ("hoodie.table.cdc.enabled", True),
    ):
        if options.bool(key) is wrong:
            problems.append(
                f"{key}={str(wrong).lower()} is read but not written by this engine; leave it out"
            )
    if options.bool(OPERATION_OPTION):
        problems += _changelog_problems(keys, kind)
    problems += _column_problems(keys, precombine, partitions, schema)
    problems += _layout_problems(keys, options)
    named = options.text("hoodie.engine.merge.rule") or options.text("hoodie.datasource.write.payload.class")
    if options.text("hoodie.record.merge.mode") == "CUSTOM" and not named:
        problems.append(
            "hoodie.record.merge.mode is CUSTOM, which needs hoodie.engine.merge.rule or a payload class this engine knows"
        )
    if options.text("hoodie.record.merge.mode") == "EVENT_TIME_ORDERING" and not precombine:
        problems.append("hoodie.record.merge.mode is EVENT_TIME_ORDERING, which needs a precombine_field")
    return problems


def _changelog_problems(keys: tuple[str, ...], kind: str | None) -> list[str]:
    """Why a table cannot be in changelog mode; empty when it can."""
    problems = []
    if kind == "COPY_ON_WRITE":
        problems.append(
            f"{OPERATION_OPTION} is true, but table_type is cow, which has no logs to keep changes in; legal value: false. "
            "Leave the option out, or use table_type mor"
        )
    if not keys:
        problems.append(f"{OPERATION_OPTION} is true, which needs a record_key")
    return problems


def _changelog_mode_problems(config: TableConfig) -> list[str]:
    """Why a changelog cannot be kept of the table's merge mode; empty when it can.

    The image of a row before an update stands in the log before the updated one, so the merge must take the later of two
    records with equal ordering values, and nothing but whole records.
    """
    wanted = MergeMode.EVENT_TIME_ORDERING if config.ordering_fields else MergeMode.COMMIT_TIME_ORDERING
    if not config.keeps_operations or config.merge_mode is wanted:
        return []
    return [
        f"{OPERATION_OPTION} is true, but rows are merged by {config.merge_mode.value}; legal modes: EVENT_TIME_ORDERING with a "
        "precombine_field, COMMIT_TIME_ORDERING without one. Leave the merge mode, rule and payload class out"
    ]


def _layout_problems(keys: tuple[str, ...], options: Options) -> list[str]:
    problems = []
    file_format = options.raw.get("hoodie.table.base.file.format", "PARQUET")
    if file_format.upper() != "PARQUET":
        problems.append(f"hoodie.table.base.file.format is {file_format!r}; only PARQUET is written")
    if options.text("hoodie.index.type") != "BUCKET":
        return problems
    if not keys:
        problems.append("hoodie.index.type is BUCKET, which needs a record_key")
    hashed = [
        each.strip() for each in (options.text("hoodie.bucket.index.hash.field") or "").split(",") if each
    ]
    unknown = [each for each in hashed if each.lower() not in {key.lower() for key in keys}]
    if keys and unknown:
        problems.append(
            f"hoodie.bucket.index.hash.field names {unknown}, which no record key is made of; choose among {list(keys)}"
        )
    return problems


def _column_problems(
    keys: tuple[str, ...], precombine: str | None, partitions: tuple[str, ...], schema: pa.Schema | None
) -> list[str]:
    orderings = precombine.split(",") if precombine else []
    fields = [*keys, *orderings, *[each.partition(":")[0] for each in partitions]]
    problems = [
        f"{name!r} is a Hudi meta column and cannot be a key, ordering or partition field"
        for name in fields
        if name in META_FIELDS
    ]
    problems += [
        f"precombine_field {name!r} is a field inside a struct; rows are ordered by columns only, so copy it into one"
        for name in orderings
        if "." in name
    ]
    if schema is None:
        return problems
    known = {name.lower() for name in schema.names}
    missing = sorted({name for name in fields if name.partition(".")[0].lower() not in known})
    if missing:
        problems.append(f"column(s) {missing} are not in the schema; it has {schema.names}")
    else:
        problems += [problem for name in orderings for problem in ordering_problems(schema, name)]
        problems += _key_type_problems(schema, [*keys, *[each.partition(":")[0] for each in partitions]])
    return problems


def _key_type_problems(schema: pa.Schema, fields: Sequence[str]) -> list[str]:
    problems = []
    for name in fields:
        try:
            kind = field_type(schema, resolve_field(schema, name))
        except SchemaError as error:
            problems.append(str(error))
            continue
        if pa.types.is_nested(kind):
            problems.append(
                f"column {name!r} has type {kind} and cannot be part of a key or partition path; name one of its fields, or "
                "another column"
            )
    return problems


def ordering_problems(schema: pa.Schema, field: str) -> list[str]:
    """Why a column cannot order rows; empty when it can."""
    names = {name.lower(): name for name in schema.names}
    found = names.get(field.lower())
    if found is None:
        return []
    kind = schema.field(found).type
    if pa.types.is_nested(kind) or pa.types.is_boolean(kind):
        return [
            f"precombine_field {field!r} has type {kind}, which has no order; use a number, text, date, timestamp or decimal column"
        ]
    return []


def _key_generator(options: Options, keys: tuple[str, ...], partitions: tuple[str, ...]) -> str:
    given = options.text("hoodie.datasource.write.keygenerator.class")
    if given:
        return given
    short = options.text("hoodie.datasource.write.keygenerator.type")
    if short:
        return KEYGEN_CLASSES[short]
    if not partitions:
        return KEYGEN_CLASSES["NON_PARTITION"]
    if any(":" in each for each in partitions) or (len(partitions) > 1 and len(keys) == 1):
        # CustomKeyGenerator writes the bare key in every Hudi release; ComplexKeyGenerator with one key field does not.
        return KEYGEN_CLASSES["CUSTOM"]
    return KEYGEN_CLASSES["SIMPLE" if len(partitions) == 1 and len(keys) <= 1 else "COMPLEX"]


def _stored_partition_fields(options: Options, partitions: tuple[str, ...]) -> list[str]:
    custom = _key_generator(options, ("?",), partitions).endswith(".CustomKeyGenerator")
    if custom or not any(":" in each for each in partitions):
        return list(partitions)
    return [each.partition(":")[0] for each in partitions]


def _payload(options: Options, precombine: str | None, kind: str) -> dict[str, str]:
    given = options.text("hoodie.datasource.write.payload.class")
    mode = options.text("hoodie.record.merge.mode")
    payload = given or (
        COMMIT_TIME_PAYLOAD if mode == "COMMIT_TIME_ORDERING" or not precombine else EVENT_TIME_PAYLOAD
    )
    if kind == "COPY_ON_WRITE" and payload == COMMIT_TIME_PAYLOAD and not given and mode is None:
        return {}
    rule = options.text("hoodie.engine.merge.rule")
    if rule:
        return {"hoodie.record.merge.mode": "CUSTOM", "hoodie.engine.merge.rule": rule}
    properties = {"hoodie.compaction.payload.class": payload}
    if kind == "MERGE_ON_READ":
        properties["hoodie.compaction.record.merger.strategy"] = EVENT_TIME_STRATEGY
    return properties


def _sticky(options: Options) -> dict[str, str]:
    kept = {
        canonical_key(key): value
        for key, value in options.raw.items()
        if canonical_key(key).startswith(_STICKY_PREFIXES) and key not in DEFINED_ELSEWHERE
    }
    kept.update({key: str(options.value(key)) for key in STICKY_INDEX if options.is_set(key)})
    if options.bool(OPERATION_OPTION):
        kept[CHANGELOG_PROPERTY] = "true"
    if options.text("hoodie.index.type") == "BUCKET":
        kept["hoodie.bucket.index.num.buckets"] = str(options.int("hoodie.bucket.index.num.buckets"))
    for key in ("hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",):
        if options.is_set(key):
            kept[key] = str(options.value(key)).lower()
    return kept
