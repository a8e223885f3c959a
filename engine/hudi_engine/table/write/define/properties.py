"""The properties of a new table (table version 6), out of its definition."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.config.declared.table_options import CHANGELOG_PROPERTY, TableOptions
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import IndexType, KeyGeneratorType, MergeMode, TableType
from hudi_engine.format.config.options import Options, canonical_key, resolve_options
from hudi_engine.format.config.other_keys import DEFINED_ELSEWHERE
from hudi_engine.format.config.properties import table_checksum
from hudi_engine.format.config.table_config import (
    EVENT_TIME_STRATEGY,
    KINDS_PROPERTY,
    PARTITION_FIELDS,
    PAYLOAD_PACKAGE,
    TableConfig,
    declared_key_generator,
    key_generator_class,
)
from hudi_engine.format.keygen.generator import resolve_field
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.table.write.define.problems import (
    Draft,
    changelog_mode_problems,
    definition_problems,
    key_generator_problems,
    read_definition,
)
from hudi_engine.table.write.define.table_options import STICKY_INDEX, USUAL_DATABASE

EVENT_TIME_PAYLOAD = f"{PAYLOAD_PACKAGE}.DefaultHoodieRecordPayload"

COMMIT_TIME_PAYLOAD = f"{PAYLOAD_PACKAGE}.OverwriteWithLatestAvroPayload"

_PROPERTY_OPTIONS = (
    TableOptions.HIVE_STYLE_PARTITIONING,
    TableOptions.URL_ENCODE_PARTITIONS,
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
        record_key: Key fields; None or empty lets the writer generate keys.
        precombine_field: Ordering field, or several compared in turn; with it the newest row wins (event time), without it
            the last written.
        partition_by: Partition fields, ``field:timestamp`` or ``field:simple`` for the custom key generator.
        table_type: ``cow`` (also when None) or ``mor``.
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
        {
            "name": name,
            "record_key": record_key,
            "precombine_field": precombine_field,
            "partition_by": partition_by,
            "table_type": table_type,
        },
        resolved.raw,
    )
    draft = Draft(
        name,
        spelled(definition.keys, schema),
        spelled(definition.ordering, schema),
        spelled(definition.partitions, schema),
        definition.table_type,
        schema,
        resolved,
    )
    problems += [*definition.problems, *definition_problems(draft)]
    _refuse(problems)
    config = TableConfig.from_properties(_properties(draft))
    config.check_writable()
    merge_rule(config)
    _refuse(key_generator_problems(config, resolved) + changelog_mode_problems(config))
    return config


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))


def _properties(draft: Draft) -> dict[str, str]:
    """Return the properties of a definition that has no problems, checksum included."""
    options, kind = draft.options, draft.kind
    assert kind is not None
    properties = {
        "hoodie.table.name": draft.name,
        TableOptions.DATABASE_NAME.key: options[TableOptions.DATABASE_NAME] or USUAL_DATABASE,
        "hoodie.table.type": kind,
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.archivelog.folder": "archived",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.keygenerator.class": _key_generator(options, draft.keys, draft.partitions),
        **{option.key: str(options[option]).lower() for option in _PROPERTY_OPTIONS},
        **_payload(options, draft.orderings, kind),
        **_sticky(options),
    }
    if draft.keys:
        properties["hoodie.table.recordkey.fields"] = ",".join(draft.keys)
    if draft.orderings:
        properties["hoodie.table.precombine.field"] = ",".join(draft.orderings)
    if draft.partitions:
        properties[PARTITION_FIELDS] = ",".join(each.partition(":")[0] for each in draft.partitions)
        custom = declared_key_generator(properties) is KeyGeneratorType.CUSTOM
        if custom and any(":" in each for each in draft.partitions):
            properties[KINDS_PROPERTY] = ",".join(draft.partitions)
    if draft.schema is not None:
        avro = arrow_to_avro(draft.schema, draft.name)
        properties["hoodie.table.create.schema"] = json.dumps(avro, separators=(",", ":"))
    properties["hoodie.table.checksum"] = str(table_checksum(properties))
    return properties


def spelled(fields: Sequence[str], schema: pa.Schema | None) -> tuple[str, ...]:
    """Return fields as the columns are spelled, for other readers find them by that; ``field:kind`` keeps its kind.

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


def _key_generator(options: Options, keys: tuple[str, ...], partitions: tuple[str, ...]) -> str:
    """Choose the key generator: the given one, else the one that writes keys alike in every Hudi release."""
    given = options[TableOptions.KEY_GENERATOR_CLASS]
    if given:
        return given
    short = options[TableOptions.KEY_GENERATOR_TYPE]
    if short:
        return key_generator_class(KeyGeneratorType(short))
    if not partitions:
        return key_generator_class(KeyGeneratorType.NON_PARTITION)
    if any(":" in each for each in partitions) or (len(partitions) > 1 and len(keys) == 1):
        # CustomKeyGenerator writes the bare key in every Hudi release; ComplexKeyGenerator with one key field does not.
        return key_generator_class(KeyGeneratorType.CUSTOM)
    simple = len(partitions) == 1 and len(keys) <= 1
    return key_generator_class(KeyGeneratorType.SIMPLE if simple else KeyGeneratorType.COMPLEX)


def _payload(options: Options, orderings: tuple[str, ...], kind: str) -> dict[str, str]:
    """Return the properties of the merge rule; a plain copy-on-write table keeps none, as Hudi leaves it."""
    rule = options[TableOptions.MERGE_RULE]
    if rule:
        return {TableOptions.MERGE_MODE.key: MergeMode.CUSTOM.value, TableOptions.MERGE_RULE.key: rule}
    given = options[TableOptions.PAYLOAD_CLASS]
    mode = options[TableOptions.MERGE_MODE]
    payload = given or (
        COMMIT_TIME_PAYLOAD if mode == MergeMode.COMMIT_TIME_ORDERING or not orderings else EVENT_TIME_PAYLOAD
    )
    if kind == TableType.COPY_ON_WRITE and payload == COMMIT_TIME_PAYLOAD and not given and mode is None:
        return {}
    properties = {"hoodie.compaction.payload.class": payload}
    if kind == TableType.MERGE_ON_READ:
        properties["hoodie.compaction.record.merger.strategy"] = EVENT_TIME_STRATEGY
    return properties


def _sticky(options: Options) -> dict[str, str]:
    kept = {
        canonical_key(key): value
        for key, value in options.raw.items()
        if canonical_key(key).startswith(_STICKY_PREFIXES) and key not in DEFINED_ELSEWHERE
    }
    kept.update({each.key: str(options[each]) for each in STICKY_INDEX if options.is_set(each)})
    if options[TableOptions.CHANGE_DATA_CAPTURE]:
        kept[TableOptions.CHANGE_DATA_CAPTURE.key] = "true"
        kept[TableOptions.CDC_LOGGING.key] = str(options[TableOptions.CDC_LOGGING])
    if options[TableOptions.KEEP_OPERATIONS]:
        kept[CHANGELOG_PROPERTY] = "true"
    if options[IndexOptions.TYPE] == IndexType.BUCKET:
        kept[IndexOptions.BUCKETS.key] = str(options[IndexOptions.BUCKETS])
    if options.is_set(TableOptions.CONSISTENT_TIMESTAMPS):
        kept[TableOptions.CONSISTENT_TIMESTAMPS.key] = str(
            options[TableOptions.CONSISTENT_TIMESTAMPS]
        ).lower()
    return kept
