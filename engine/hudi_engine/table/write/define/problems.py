"""What is wrong with the definition of a table: every problem in words, so that all are said at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import IndexType, KeyGeneratorType, MergeMode, TableType
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig, resolve_merge_mode
from hudi_engine.format.keygen.generator import build_key_generator, field_type, resolve_field
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.schema.sql_names import spark_name
from hudi_engine.table.lookup.kinds import IndexKind, index_kind

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


@dataclass(frozen=True)
class Draft:
    """A table as it is asked for, fields spelled as the columns are."""

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


def marker_problems(options: Options) -> list[str]:
    """Say what a mark of rows that delete lacks; empty when there is no mark, or nothing is missing."""
    pair = (TableOptions.DELETE_FIELD, TableOptions.DELETE_MARKER)
    return [
        f"{option} is {options[option]!r}, which needs {other}: set both, or neither"
        for option, other in (pair, pair[::-1])
        if options[option] and not options[other]
    ]


def _merge_problems(options: Options, orderings: tuple[str, ...]) -> list[str]:
    """Say what a merge mode lacks, or what contradicts it."""
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

    The image of a row before an update stands in the log before the updated one, so the merge must take the later of two
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
