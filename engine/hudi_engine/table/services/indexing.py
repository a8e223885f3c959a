"""Building and dropping indexes of the metadata table while writes go on.

The table's lock is held while an index is built: writers that come meanwhile wait for it as long as their options let them. A build
has an instant of its own, `indexing`; one that is killed is taken back by the next writer, or completed if it was through.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hudi_engine.errors import ConfigError, ServiceError
from hudi_engine.format.config.declared.metadata_options import MetadataOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.metadata.definitions import IndexDefinitions
from hudi_engine.format.metadata.expressions import LEGAL, Expression
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.format.metadata.secondary_index import INDEXED_TYPES, is_indexed_type
from hudi_engine.format.metadata.statistics import indexed_columns
from hudi_engine.format.schema.avro import avro_to_arrow, without_meta_fields
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import COMPLETE_AS_WRITES
from hudi_engine.table.metadata.build import BUILT_BY, build, wanted_partitions
from hudi_engine.table.metadata.index_build import INDEXING, IndexPlan, end_dead_builds
from hudi_engine.table.metadata.statistics import source_kind
from hudi_engine.table.metadata.writer import (
    drop_metadata_partitions,
    drop_metadata_table,
    drop_unsupported_partitions,
    with_dependent,
)
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import recovered

_NAMED = (MetadataPartition.SECONDARY_INDEX, MetadataPartition.EXPRESSION_INDEX)
INDEXES = (
    MetadataPartition.FILES.value,
    *(each.value for each in BUILT_BY),
    *(f"{each.value}NAME" for each in _NAMED),
)
"""Names of indexes; statistics of partitions come and go with those of columns."""
_NAME = re.compile(rf"({'|'.join(each.value for each in _NAMED)})[A-Za-z0-9_]+\Z", re.ASCII)


def create_index(
    storage: Storage,
    options: Options,
    publication: Publication,
    name: str,
    columns: Sequence[str] = (),
    expression: Expression | None = None,
) -> tuple[str, ...]:
    """Build an index over the table as it is, and ``files`` where it is not there yet; writes keep it from then on.

    A secondary index comes with the record index, which it needs.

    Args:
        name: One of `INDEXES`, with a name of letters, digits and underscores in place of ``NAME``.
        columns: Columns of ``column_stats``, the first 32 without any; the one column of a secondary index.
        expression: What an expression index is of.

    Returns:
        The partitions of the metadata table that were built; none when the index was there.

    Raises:
        ConfigError: The name, its columns or the expression are not legal, an index of the name is over something else, or the
            table has version 6, which has no secondary and no expression indexes.
        RepeatedKeyError: The record index is to be built, and keys are stored in several file groups.
    """
    kind = _kind(name)
    wanted = options.merged(_options_of(kind, name, columns, expression))
    with recovered(storage, options, publication, f"build the index {name}") as (config, timeline):
        config.check_writable()
        if not config.table_version.has_completion_times:
            _check_version_6(kind, name, config, timeline)
        if kind is MetadataPartition.EXPRESSION_INDEX and config.version < 9:
            raise ConfigError(
                f"table {config.name!r} has version {config.version}, and {name} is built in version 9: Apache Hudi 1.2 fails to "
                "query its own indexes of expressions in version 8. Upgrade it first (hudi_upgrade)"
            )
        schema = timeline.table_schema_json()
        if schema is None:
            raise ConfigError(
                f"table {config.name!r} has no columns yet; write to it first, then build {name}"
            )
        if kind is MetadataPartition.COLUMN_STATS:
            _check_columns(columns, config, schema)
            _check_same_columns(columns, config, IndexDefinitions.load(storage, config))
        before = set(config.metadata_partitions)
        config = drop_unsupported_partitions(storage, config)
        missing = [each for each in wanted_partitions(config, wanted) if each not in before]
        definitions = None
        if kind in _NAMED:
            there = IndexDefinitions.load(storage, config)
            if expression is None:
                _check_column(name, columns[0], schema, there)
            else:
                columns = _check_expression(name, expression, schema, there)
            if name not in config.metadata_partitions:
                definitions = IndexDefinitions({}, config.version).with_index(name, columns, expression)
                missing.append(name)
        if not missing:
            return ()
        plan = IndexPlan(tuple(missing), timeline.completed[-1].requested_time)
        with OpenInstant.announce(storage, config, timeline, INDEXING, plan.to_bytes()) as opened:
            opened.start()
            try:
                after = build(storage, config, wanted, schema, missing, definitions, opened.time)
            except Exception:
                end_dead_builds(storage, Timeline.load(storage, config))
                raise
            opened.complete(plan.commit_bytes())
        return tuple(each for each in after.metadata_partitions if each not in before)


def _options_of(
    kind: MetadataPartition, name: str, columns: Sequence[str], expression: Expression | None
) -> dict[str, object]:
    """Return the options that build an index; raises ConfigError for columns or an expression that it does not have."""
    given: dict[str, object] = {MetadataOptions.ENABLED.key: True}
    if (kind is MetadataPartition.EXPRESSION_INDEX) is (expression is None):
        raise ConfigError(
            f"expression of {name} is {expression or 'not given'}; an expr_index_NAME has one, no other index; {LEGAL}"
        )
    if kind in BUILT_BY:
        given[BUILT_BY[kind].key] = True
    if kind is MetadataPartition.SECONDARY_INDEX:
        given[MetadataOptions.RECORD_INDEX.key] = True
        if len(columns) != 1:
            raise ConfigError(
                f"columns of {name} are {', '.join(columns) or 'not given'}; a secondary index has one"
            )
    elif columns and kind is not MetadataPartition.COLUMN_STATS:
        raise ConfigError(
            f"columns {', '.join(columns)} are given for {name}; only column_stats and secondary indexes have columns"
        )
    elif columns:
        given[MetadataOptions.COLUMN_STATS_COLUMNS.key] = ",".join(columns)
    return given


def _check_version_6(kind: MetadataPartition, name: str, config: TableConfig, timeline: Timeline) -> None:
    """Refuse an index that version 6 does not have, and a build that writes under way would not be part of."""
    if kind in _NAMED:
        raise ConfigError(
            f"table {config.name!r} has version {config.version}, and {name} is built in versions 8 and 9; upgrade it first "
            "(hudi_upgrade)"
        )
    pending = [each.requested_time for each in timeline.pending if each.action in COMPLETE_AS_WRITES]
    if pending:
        raise ServiceError(
            f"{name} is not built while writes to table {config.name!r} are under way ({', '.join(pending)}): writers of "
            "version 6 that began before would not keep it. Build it when they are done"
        )


def _check_column(name: str, column: str, schema: str, definitions: IndexDefinitions) -> None:
    """Refuse a secondary index over a column that has no texts to keep, or of a name that is over another; raises ConfigError."""
    columns = avro_to_arrow(schema)
    there = definitions.secondary_columns.get(name, column)
    if there != column:
        raise ConfigError(
            f"{name} is there over column {there!r}; drop it first, or take another name for {column!r}"
        )
    others = {over: other for other, over in definitions.secondary_columns.items() if other != name}
    if column in others:
        raise ConfigError(f"{others[column]} is over column {column!r} already; leave {name} out")
    if columns.get_field_index(column) < 0:
        raise ConfigError(f"column of {name} is {column!r}; legal values: {', '.join(columns.names)}")
    if definitions.partitioned_record_index:
        raise ConfigError(
            f"the record index is one by partition, and {name} needs one over all partitions; drop it first (record_index)"
        )
    kind = columns.field(column).type
    if not is_indexed_type(kind):
        raise ConfigError(
            f"column {column!r} of {name} has type {kind}; legal types of a secondary index: {INDEXED_TYPES}"
        )


def _check_expression(
    name: str, expression: Expression, schema: str, definitions: IndexDefinitions
) -> tuple[str, ...]:
    """Return the column of an expression; raises ConfigError where it fits none, or the name has another one."""
    there = definitions.expressions.get(name, expression)
    if there != expression:
        raise ConfigError(
            f"{name} is there over {there}; drop it first, or take another name for {expression}"
        )
    others = {each.column: other for other, each in definitions.expressions.items() if other != name}
    if expression.column in others:
        raise ConfigError(
            f"{others[expression.column]} is over column {expression.column!r} already, and Apache Hudi finds an expression index "
            f"by its column. Drop it first, or leave {name} out"
        )
    names = avro_to_arrow(schema).names
    if expression.column not in names:
        raise ConfigError(f"column of {name} is {expression.column!r}; legal values: {', '.join(names)}")
    if source_kind(expression, without_meta_fields(schema), is_v2=definitions.is_v2(name)) is None:
        raise ConfigError(
            f"{name} is {expression}, but {expression.column!r} has type {avro_to_arrow(schema).field(expression.column).type}; "
            "year, to_date and date_format take dates and timestamps, from_unixtime whole numbers, substring text"
        )
    return (expression.column,)


def drop_index(storage: Storage, options: Options, publication: Publication, name: str) -> tuple[str, ...]:
    """Drop an index; ``files`` drops the whole metadata table, and secondary indexes go with the record index.

    Returns:
        The partitions of the metadata table that went; none when the index was not there.

    Raises:
        ConfigError: The name is no legal one.
    """
    kind = _kind(name)
    with recovered(storage, options, publication, f"drop the index {name}") as (config, _):
        there = config.metadata_partitions
        if kind is MetadataPartition.FILES:
            drop_metadata_table(storage, config)
            return there
        is_named = kind in _NAMED
        removed = [each for each in there if each == name] if is_named else with_dependent(config, kind)
        if removed:
            drop_metadata_partitions(storage, config, IndexDefinitions.load(storage, config), removed)
        return tuple(removed)


def index_facts(storage: Storage, config: TableConfig) -> list[tuple[str, str, str]]:
    """Return name, type and columns of each index, as ``SHOW INDEXES`` of Hudi has them; only named ones state their columns."""
    entries, facts = IndexDefinitions.load(storage, config).entries, []
    for name in sorted(config.metadata_partitions):
        if name in entries and MetadataPartition.of(name) in _NAMED:
            fields = ",".join(entries[name].get("sourceFields") or ())
            facts.append((name, str(entries[name].get("indexType", "")).lower(), fields))
        elif name != MetadataPartition.FILES.value:
            facts.append((name, name, ""))
    return facts


def _check_columns(columns: Sequence[str], config: TableConfig, schema: str) -> None:
    known = indexed_columns(without_meta_fields(schema), columns, is_v2=config.version >= 9)
    unknown = [each for each in columns if each not in known]
    if unknown:
        raise ConfigError(
            f"columns has {', '.join(unknown)}, of which table {config.name!r} can have no statistics; name columns of the table "
            "that are no struct, array or map"
        )


def _check_same_columns(columns: Sequence[str], config: TableConfig, definitions: IndexDefinitions) -> None:
    """Refuse statistics of other columns than those that are there."""
    name = MetadataPartition.COLUMN_STATS.value
    there = definitions.source_fields(name) if name in config.metadata_partitions else None
    if columns and there is not None and {*columns} != {*there}:
        raise ConfigError(
            f"{name} is there over {', '.join(there)}; drop it first (hudi_drop_index), then build it over {', '.join(columns)}"
        )


def _kind(name: str) -> MetadataPartition:
    if name in (MetadataPartition.FILES.value, *(each.value for each in BUILT_BY)):
        return MetadataPartition(name)
    kind = MetadataPartition.of(name)
    if kind is not None and _NAME.match(name):
        return kind
    raise ConfigError(f"index is {name!r}; legal values: {', '.join(INDEXES)}")
