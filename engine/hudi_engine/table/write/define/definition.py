"""The properties of a new table (table version 6), out of its definition."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.config.declared.table_options import CHANGELOG_PROPERTY, TableOptions
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import IndexType, KeyGeneratorType, MergeMode, TableType
from hudi_engine.format.config.options import Options, canonical_key, resolve_options
from hudi_engine.format.config.properties import table_checksum
from hudi_engine.format.config.table_config import (
    EVENT_TIME_STRATEGY,
    KINDS_PROPERTY,
    PARTITION_FIELDS,
    TableConfig,
    declared_key_generator,
    key_generator_class,
    resolve_merge_mode,
)
from hudi_engine.format.config.unsupported_keys import DEFINED_ELSEWHERE
from hudi_engine.format.config.version_properties import (
    COMMIT_TIME_PAYLOAD,
    EVENT_TIME_PAYLOAD,
    new_properties,
)
from hudi_engine.format.keygen.generator import build_key_generator, resolve_field
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.schema.nested import field_type
from hudi_engine.format.schema.sql_names import spark_name
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.table.lookup.kinds import IndexKind, index_kind
from hudi_engine.table.write.define.table_options import (
    KEY_OPTIONS,
    NAME_OPTIONS,
    ORDERING_OPTIONS,
    PARTITION_OPTIONS,
    STICKY_INDEX,
    TABLE_TYPES,
    TYPE_OPTIONS,
    USUAL_DATABASE,
    deletes_by_payload,
    marker_problems,
)

if TYPE_CHECKING:
    from typing_extensions import Required, Unpack


class TableArguments(TypedDict, total=False):
    """What `HudiTable.create` and `rebuild_table` take by name; only ``name`` has to be given."""

    name: Required[str]
    record_key: Sequence[str] | None
    precombine_field: str | Sequence[str] | None
    partition_by: Sequence[str] | None
    table_type: str | None
    options: Mapping[str, object] | None


@dataclass(frozen=True)
class Draft:
    """A table as its definition gives it, fields spelled as the columns are.

    Args:
        keys: Key fields; empty lets the writer generate keys.
        orderings: Ordering fields; empty lets the row written last win.
        partitions: Partition fields, maybe with ``:kind``.
        table_type: As given: ``cow``, ``mor`` or Hudi's names.
    """

    name: str
    keys: tuple[str, ...]
    orderings: tuple[str, ...]
    partitions: tuple[str, ...]
    table_type: str
    schema: pa.Schema | None
    options: Options

    @property
    def kind(self) -> str | None:
        """Hudi's name of the table type, None when there is none of that name."""
        return TABLE_TYPES.get(str(self.table_type).lower())


def _read_definition(
    arguments: TableArguments, options: Options, schema: pa.Schema | None, problems: list[str]
) -> Draft:
    """Take each fact from its argument, or from the option that gives it; note in ``problems`` if both are given and differ."""
    raw = options.raw

    def fields(what: str, given: Sequence[str] | None, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the fields that the argument or an option names; both may, when they agree."""
        found = _split(given)
        for key in keys:
            named = _split([raw[key]]) if key in raw else ()
            if not found:
                found = named
            elif named and _bare(named) != _bare(found):
                problems.append(
                    f"{what} is {', '.join(found)!r}, but {key} is {raw[key]!r}; leave one of them out"
                )
            elif named and not any(":" in each for each in found):
                found = named
        return spelled(found, schema)

    name, ordering, kind = arguments["name"], arguments.get("precombine_field"), arguments.get("table_type")
    fields("name", [name] if isinstance(name, str) else None, NAME_OPTIONS)
    for key in TYPE_OPTIONS:
        given = raw.get(key)
        if given is None:
            continue
        if kind is None:
            kind = given
        elif TABLE_TYPES.get(str(kind).lower()) != TABLE_TYPES.get(given.lower()):
            problems.append(f"table_type is {kind!r}, but {key} is {given!r}; leave one of them out")
    return Draft(
        name,
        fields("record_key", arguments.get("record_key"), KEY_OPTIONS),
        fields("precombine_field", [ordering] if isinstance(ordering, str) else ordering, ORDERING_OPTIONS),
        fields("partition_by", arguments.get("partition_by"), PARTITION_OPTIONS),
        "cow" if kind is None else kind,
        schema,
        options,
    )


def _split(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(part.strip() for each in given or () for part in str(each).split(",") if part.strip())


def _bare(fields: Sequence[str]) -> list[str]:
    return [field.partition(":")[0].strip().lower() for field in fields]


def key_generator_problems(config: TableConfig, options: Options) -> list[str]:
    """Say why the key generator cannot serve the table's fields; empty when it can."""
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


def name_problems(name: str) -> list[str]:
    """Say why a table cannot have a name; empty when it can."""
    if re.fullmatch(r"[A-Za-z0-9_.\-]+", name or ""):
        return []
    return [f"table name is {name!r}; legal: letters, digits, '_', '-', '.'"]


def definition_problems(draft: Draft) -> list[str]:
    """Say all that is wrong with a definition; empty when nothing is."""
    name, keys, options = draft.name, draft.keys, draft.options
    problems = name_problems(name)
    if draft.kind is None:
        problems.append(f"table_type is {draft.table_type!r}; legal values: cow, mor")
    partitions = [each.partition(":")[0] for each in draft.partitions]
    for argument, fields in (
        ("record_key", keys),
        ("precombine_field", draft.orderings),
        ("partition_by", partitions),
    ):
        if len({field.lower() for field in fields}) != len(fields):
            problems.append(f"{argument} {list(fields)} names a column twice; leave one out")
    if options[TableOptions.KEEP_OPERATIONS]:
        problems += _changelog_problems(keys, draft.kind)
    return [
        *problems,
        *marker_problems(options),
        *_column_problems(draft),
        *_layout_problems(keys, options),
        *_merge_problems(options, draft.orderings),
    ]


def _merge_problems(options: Options, orderings: tuple[str, ...]) -> list[str]:
    """Say what a merge mode lacks, or what contradicts it."""
    if deletes_by_payload(options):
        return [
            f"{TableOptions.PAYLOAD_CLASS} is {options[TableOptions.PAYLOAD_CLASS]!r}, which deletes the keys of one upsert and is "
            "the merge rule of no table; give it with that call (in dbt use incremental_strategy delete)"
        ]
    mode = options[TableOptions.MERGE_MODE]
    named = options[TableOptions.MERGE_RULE] or options[TableOptions.PAYLOAD_CLASS]
    if mode == MergeMode.CUSTOM and not named:
        return [
            "hoodie.record.merge.mode is CUSTOM, which needs hoodie.engine.merge.rule or a payload class this engine knows"
        ]
    if mode == MergeMode.EVENT_TIME_ORDERING and not orderings:
        return ["hoodie.record.merge.mode is EVENT_TIME_ORDERING, which needs a precombine_field"]
    if mode in (None, MergeMode.CUSTOM) or not named or _mode_named(options, orderings) == mode:
        return []
    return [
        f"hoodie.record.merge.mode is {mode}, but {named} merges otherwise; set one of them, or the mode CUSTOM"
    ]


def _mode_named(options: Options, orderings: tuple[str, ...]) -> MergeMode:
    """Return the mode of the rule or payload class that options name."""
    if options[TableOptions.MERGE_RULE]:
        return MergeMode.CUSTOM
    properties = {"hoodie.compaction.payload.class": str(options[TableOptions.PAYLOAD_CLASS])}
    return resolve_merge_mode(properties, 6, has_ordering=bool(orderings))


def _changelog_problems(keys: tuple[str, ...], kind: str | None) -> list[str]:
    """Say why a table cannot be in changelog mode; empty when it can."""
    problems = []
    if kind == TableType.COPY_ON_WRITE:
        problems.append(
            f"{TableOptions.KEEP_OPERATIONS} is true, but table_type is cow, which has no logs to keep changes in; legal "
            "value: false. Leave the option out, or use table_type mor"
        )
    if not keys:
        problems.append(f"{TableOptions.KEEP_OPERATIONS} is true, which needs a record_key")
    return problems


def changelog_mode_problems(config: TableConfig) -> list[str]:
    """Say why a changelog cannot be kept of the table's merge mode; empty when it can.

    The image of a row before an update precedes the updated one in the log, so the merge must take the later of two
    records with equal ordering values, and nothing but whole records.
    """
    wanted = MergeMode.EVENT_TIME_ORDERING if config.ordering_fields else MergeMode.COMMIT_TIME_ORDERING
    if not config.keeps_operations or config.merge_mode is wanted:
        return []
    return [
        f"{TableOptions.KEEP_OPERATIONS} is true, but rows are merged by {config.merge_mode.value}; legal modes: "
        "EVENT_TIME_ORDERING with a precombine_field, COMMIT_TIME_ORDERING without one. Leave the merge mode, rule "
        "and payload class out"
    ]


def _layout_problems(keys: tuple[str, ...], options: Options) -> list[str]:
    """Return what is wrong with file format and bucket index."""
    problems = []
    file_format = options.raw.get("hoodie.table.base.file.format", "PARQUET")
    if file_format.upper() != "PARQUET":
        problems.append(f"hoodie.table.base.file.format is {file_format!r}; only PARQUET is written")
    if options[IndexOptions.TYPE] != IndexType.BUCKET:
        return problems
    if not keys:
        problems.append("hoodie.index.type is BUCKET, which needs a record_key")
    hashed = [each.strip() for each in (options[IndexOptions.HASH_FIELD] or "").split(",") if each]
    unknown = [each for each in hashed if each.lower() not in {key.lower() for key in keys}]
    if keys and unknown:
        problems.append(
            f"hoodie.bucket.index.hash.field names {unknown}, which no record key is made of; choose among {list(keys)}"
        )
    return problems


def _column_problems(draft: Draft) -> list[str]:
    """Return what is wrong with key, ordering and partition columns; types are looked at once all are there."""
    keys, orderings, partitions, schema = draft.keys, draft.orderings, draft.partitions, draft.schema
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
        problems += moved_ordering_problems(
            schema, orderings, draft.kind, index_kind(draft.options), partitioned=bool(partitions)
        )
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
                f"column {name!r} has type {spark_name(kind)} and cannot be part of a key or partition path; name one "
                "of its fields, or another column"
            )
    return problems


def moved_ordering_problems(
    schema: pa.Schema,
    orderings: Sequence[str],
    table_type: str | None,
    index: IndexKind,
    *,
    partitioned: bool,
) -> list[str]:
    """Say which ordering columns logs cannot hold for rows that move to another partition; empty when no row moves, or all fit.

    The delete of the row in the partition that it leaves carries its ordering value, in a decimal(30,15).
    """
    if table_type != TableType.MERGE_ON_READ or not (
        partitioned and index.is_global and index.moves_partition
    ):
        return []
    kinds = {
        name: schema.field(found).type for name in orderings if (found := spellings(schema.names).get(name))
    }
    return [
        f"precombine_field {name!r} has type {spark_name(kind)}, and {IndexOptions.TYPE} is {index.name.value} on a merge-on-read "
        "table, whose logs hold the ordering value of rows that move to another partition as decimal(30,15); use a bigint, a "
        "decimal of at most 15 digits before and 15 behind the point, table_type cow, or the index SIMPLE or BLOOM"
        for name, kind in kinds.items()
        if pa.types.is_decimal(kind) and (kind.scale > 15 or kind.precision - kind.scale > 15)
    ]


def ordering_problems(schema: pa.Schema, field: str) -> list[str]:
    """Say why a column cannot order rows; empty when it can."""
    found = spellings(schema.names).get(field)
    if found is None:
        return []
    kind = schema.field(found).type
    if pa.types.is_nested(kind) or pa.types.is_boolean(kind):
        return [
            f"precombine_field {field!r} has type {spark_name(kind)}, which has no order; use a number, text, date, timestamp or "
            "decimal column"
        ]
    return []


_PROPERTY_OPTIONS = (
    TableOptions.HIVE_STYLE_PARTITIONING,
    TableOptions.URL_ENCODE_PARTITIONS,
)

_STICKY_PREFIXES = ("hoodie.keygen.timebased.", "hoodie.payload.delete.")


def table_properties(schema: pa.Schema | None, **arguments: Unpack[TableArguments]) -> TableConfig:
    """Check the definition of a table and turn it into its properties (table version 6).

    All problems are in the message of one ConfigError.

    Args:
        arguments: ``record_key``: None or empty lets the writer generate keys. ``precombine_field``: one field, or several
            compared in turn; with it the newest row wins (event time), without it the last written. ``partition_by``:
            ``field:timestamp`` or ``field:simple`` for the custom key generator. ``table_type``: ``cow`` (also when None) or
            ``mor``. ``options``: those that define the table are kept in its properties, and may replace the arguments.
    """
    problems: list[str] = []
    resolved: Options = resolve_options({})
    try:
        resolved = resolve_options(arguments.get("options"))
    except ConfigError as error:
        problems += error.problems
    draft = _read_definition(arguments, resolved, schema, problems)
    _refuse([*problems, *definition_problems(draft)])
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
        "hoodie.archivelog.folder": "archived",
        "hoodie.datasource.write.drop.partition.columns": "false",
        TableOptions.TIMELINE_ZONE.key: "UTC",
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
    properties = new_properties(properties, int(options[TableOptions.TABLE_VERSION]))
    properties["hoodie.table.checksum"] = str(table_checksum(properties))
    return properties


def spelled(fields: Sequence[str], schema: pa.Schema | None) -> tuple[str, ...]:
    """Return fields as the columns are spelled, for other readers find them by that; ``field:kind`` keeps its kind."""
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


def defined_table(
    schema: pa.Schema | None,
    *,
    name: str,
    record_key: Sequence[str] | None = None,
    precombine_field: str | Sequence[str] | None = None,
    partition_by: Sequence[str] | None = None,
    table_type: str | None = None,
    options: Mapping[str, object] | None = None,
) -> TableConfig:
    """Return the properties of a table that is defined by the arguments of `HudiTable.create`; raises as that does."""
    return table_properties(
        name=name,
        record_key=column_names(record_key, "record_key"),
        precombine_field=column_names(precombine_field, "precombine_field"),
        partition_by=column_names(partition_by, "partition_by"),
        table_type=table_type,
        schema=schema,
        options=options,
    )


def column_names(value: object, what: str) -> list[str] | None:
    """Return a list of names from one name or several; None stays None."""
    if value is None:
        return None
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Sequence) or any(
        not isinstance(each, str) or not each.strip() for each in names
    ):
        raise ConfigError(f"{what} is {value!r}; it must be a list of column names")
    return [str(name).strip() for name in names]


def check_arguments(given: Mapping[str, object], call: str, first: str) -> None:
    """Raise TypeError when there is no name, or an argument that a call does not have, with the nearest.

    Args:
        call: The name of the call.
        first: Its arguments before those of the definition, for the message.
    """
    legal = ("schema", *TableArguments.__annotations__)
    for name in given:
        if name not in legal:
            raise TypeError(
                f"{call}() has no argument {name!r}; {did_you_mean(name, legal)}it takes {first}, {', '.join(legal)}"
            )
    if "name" not in given:
        raise TypeError(f"{call}() needs name, the name of the table, such as name='orders'")
