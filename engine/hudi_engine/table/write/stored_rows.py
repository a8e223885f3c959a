"""What a write must keep of stored rows: the types of key, partition and ordering columns, and how partition paths are made.

A record key and a folder are the text of values. In a type whose values have another text, no stored row would be found by
its key again, and a partition would have two folders. Hudi keeps no kinds of the fields of its CustomKeyGenerator in tables of
version 6, and formats times in the zone of its machine if no option names one; in tables of another engine these options are
required, since a row with another path than the stored row of its key would be a second row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, HudiError, SchemaError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.enums import KeyGeneratorType
from hudi_engine.format.config.options import Options, canonical_key
from hudi_engine.format.config.table_config import (
    CLASS_KEY,
    PARTITION_FIELDS,
    TableConfig,
    declared_key_generator,
    partition_kinds,
)
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.keygen.generator import (
    KeyGenerator,
    build_key_generator,
    field_values,
    resolve_field,
)
from hudi_engine.format.keygen.timestamp_format import PREFIX
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.evolution import can_change
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.schema.nested import field_type
from hudi_engine.format.schema.sql_names import spark_name
from hudi_engine.format.schema.time_units import in_units_of
from hudi_engine.format.timeline.active import since_all_was_replaced
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.lookup.stored_keys import some_stored_rows
from hudi_engine.table.state import TableState
from hudi_engine.table.write.operation import NOTHING, WHOLE_TABLE

logger = logging.getLogger(__name__)

_KINDS_KEY = "hoodie.datasource.write.partitionpath.field"
_OUTPUT_ZONE, _INPUT_ZONE = f"{PREFIX}output.timezone", f"{PREFIX}input.timezone"
_MAX_COMMITS, _MAX_FILES, _MAX_ROWS = 20, 6, 1_000
_LARGE_FILE = 16 * 1024 * 1024

_PARSER_KEYS = ("hoodie.keygen.datetime.parser.class", "hoodie.deltastreamer.keygen.datetime.parser.class")
_HUDI_PARSERS = "org.apache.hudi.keygen.parser."


def check_stored_paths(state: TableState, options: Options) -> None:
    """Refuse a write to a table of another engine whose paths it would make otherwise.

    Where paths hold formatted times all settings of them must be known. Then, and where the table lacks a property that decides
    paths, the rows of one small file must lie where the settings would place them, but for single rows whose value was changed.
    """
    config = state.config
    formats_times = _formats_times(config)
    if (
        config.is_of_this_engine
        or config.drop_partition_columns
        or not (formats_times or _missing_properties(config))
    ):
        return
    generator = build_key_generator(config, options=options)
    missing = _missing_options(state, generator, options) if formats_times else []
    if missing:
        raise ConfigError(
            f"table {config.name!r}, which another engine made, does not keep how its partition paths were made: give "
            f"{' and '.join(missing)}, with the values that its rows were written with; nothing was written"
        )
    _check_rows(state, generator)


def _formats_times(config: TableConfig) -> bool:
    """Return whether paths may hold formatted times: where the kinds are not kept, any field may be one."""
    if config.key_generator is KeyGeneratorType.CUSTOM:
        kinds = partition_kinds(config.properties).values()
        return not kinds or "timestamp" in kinds
    return config.key_generator is KeyGeneratorType.TIMESTAMP


def _missing_properties(config: TableConfig) -> list[str]:
    """Return which of the fields, the style and the generator of paths the table does not name, as Hudi always does."""
    generator, style = declared_key_generator(config.properties), TableOptions.HIVE_STYLE_PARTITIONING.key
    named = {
        PARTITION_FIELDS: config.is_partitioned or generator is KeyGeneratorType.NON_PARTITION,
        style: style in config.properties,
        CLASS_KEY: generator is not None,
    }
    return [key for key, is_named in named.items() if not is_named]


def _missing_options(state: TableState, generator: KeyGenerator, options: Options) -> list[str]:
    """Return the options that neither the table nor the write has, each with how to choose its value."""
    config = state.config
    parsers = [config.properties.get(key, _HUDI_PARSERS) for key in _PARSER_KEYS]
    if not all(each.startswith(_HUDI_PARSERS) for each in parsers):
        raise ConfigError(
            f"table {config.name!r} has a parser of dates of its own; write to it with the engine that has it"
        )
    missing = []
    has_kinds = bool(partition_kinds(config.properties)) or ":" in options.raw.get(_KINDS_KEY, "")
    if config.key_generator is KeyGeneratorType.CUSTOM and not has_kinds:
        names = [name for name, _ in generator.partition_fields]
        example = ",".join([*(f"{name}:simple" for name in names[:-1]), f"{names[-1]}:timestamp"])
        missing.append(
            f"{_KINDS_KEY} with the kind of each field (in dbt partition_by), such as {example}, and for times "
            f"{PREFIX}timestamp.type and {PREFIX}output.dateformat"
        )
    times = generator.timestamp_format
    given = {canonical_key(key) for key in options.raw}
    if times is None or times.output_timezone or _OUTPUT_ZONE in given:
        return missing
    if not _has_texts(state, generator):
        missing.append(f"{_OUTPUT_ZONE} (the zone of the machine that wrote numbers, such as UTC)")
    elif "Z" in "".join(times.input_formats) and not times.input_timezone and _INPUT_ZONE not in given:
        missing.append(f"{_INPUT_ZONE} (blank where each text keeps its own offset)")
    return missing


def _has_texts(state: TableState, generator: KeyGenerator) -> bool:
    """Return whether the times are texts."""
    schema = state.data_schema()
    names = [name for name, kind in generator.partition_fields if kind == "timestamp"]
    try:
        return schema is None or any(
            pa.types.is_string(field_type(schema, resolve_field(schema, name))) for name in names
        )
    except SchemaError:  # reported with the rows of the write
        return True


def _check_rows(state: TableState, generator: KeyGenerator) -> None:
    """Compare the paths of some stored rows with those that the settings give."""
    read = read_context(state.storage, state.config, state.timeline)
    names = [name for name, _ in generator.partition_fields]
    for each in _newest_files(state):
        try:
            columns = list(dict.fromkeys(resolve_field(read.schema, name)[0] for name in names))
            rows = _with_all_values(some_stored_rows(read, each, columns or [RECORD_KEY], _MAX_ROWS), names)
            paths = generator.partition_paths(rows)
        except HudiError as error:  # damage of stored rows is no reason to refuse the rows to write
            logger.debug("the paths of stored rows in %s are not compared: %s", each.paths, error)
            continue
        others = pc.not_equal(paths, each.partition)
        if rows.num_rows and 2 * pc.sum(others).as_py() >= rows.num_rows:
            raise ConfigError(_other_path(state.config, generator, each.partition, rows, paths, others))
        if rows.num_rows:
            return


def _with_all_values(rows: pa.Table, names: list[str]) -> pa.Table:
    """Return the rows that have a value in each partition field: the path of a null depends on few settings."""
    for name in names:
        rows = rows.filter(pc.is_valid(field_values(rows, name)))
    return rows


def _newest_files(state: TableState) -> Iterator[FileSlice]:
    """Yield files of the newest writes without listing a folder: of each write small base files with many rows first."""
    count = 0
    for instant in reversed(state.timeline.completed_writes[-_MAX_COMMITS:]):
        stats = [each for _, each in state.timeline.commit_metadata(instant).write_stats() if each.path]
        for stat in sorted(stats, key=_order):
            found = _slice_of(stat)
            if found is not None and count < _MAX_FILES:
                count += 1
                yield found


def _order(stat: WriteStat) -> tuple[bool, bool, int]:
    return stat.is_log_file, (stat.file_size_in_bytes or 0) > _LARGE_FILE, -(stat.num_writes or 0)


def _slice_of(stat: WriteStat) -> FileSlice | None:
    """Return a written base file, the one below a log, or the log, as far as its name is known."""
    partition, path = stat.partition_path or "", stat.path or ""
    base = parse_base_file((stat.base_file or "") if stat.is_log_file else path, partition)
    if base is not None:
        return FileSlice(partition, base.file_id, base.instant, base)
    log = parse_log_file(path, partition)
    if log is None or (stat.file_size_in_bytes or 0) > _LARGE_FILE:
        return None
    return FileSlice(partition, log.file_id, log.instant, log_files=(log,))


def _other_path(
    config: TableConfig,
    generator: KeyGenerator,
    stored: str,
    rows: pa.Table,
    paths: pa.Array,
    others: pa.Array,
) -> str:
    """Return a message with a stored path, the one that the write would give, and the settings that decide."""
    place = pc.index(others, True).as_py()
    held = {name: field_values(rows, name) for name, _ in generator.partition_fields}
    values = ", ".join(f"{name}={array[place].as_py()!r}" for name, array in held.items())
    kinds = ",".join(f"{name}:{kind}" for name, kind in generator.partition_fields)
    times = generator.timestamp_format
    settings = [f"{_KINDS_KEY} ({kinds or 'none'})"]
    if times is not None:
        settings += [
            f"{PREFIX}timestamp.type ({times.timestamp_type or 'not set'})",
            f"{PREFIX}output.dateformat ({times.output_format})",
            f"{_OUTPUT_ZONE} ({times.output_timezone or 'not set'})",
            f"{_INPUT_ZONE} ({times.input_timezone or 'not set'})",
        ]
    if any(pa.types.is_timestamp(array.type) for array in held.values()):
        consistent = str(generator.consistent_logical_timestamp).lower()
        settings.append(f"{TableOptions.CONSISTENT_TIMESTAMPS.key} ({consistent})")
    way = f"Give the options that the rows were written with: {', '.join(settings)}"
    if not _formats_times(config):
        way = f"Add what the table lacks to its hoodie.properties: {', '.join(_missing_properties(config))}"
    return (
        f"stored rows of table {config.name!r}, which another engine made, lie in {stored!r}, and by the settings of this write a "
        f"row with their values ({values}) would lie in {paths[place].as_py()!r}: every update would be a second row. {way}; "
        "nothing was written"
    )


_Harmless = Callable[[pa.DataType, pa.DataType], bool]
_PLAIN_SCALE = 6
"""Decimals with more digits after the point have a text with an exponent for some readers, and one without for others."""
_ORDERS_ALIKE = {(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())}


def check_fixed_columns(
    config: TableConfig, before: pa.Schema | None, after: pa.Schema, replaces: str = NOTHING
) -> None:
    """Refuse key, partition and ordering columns in a type in which stored values would count as others.

    Of a write that replaces the whole table nothing is left to be found or compared.

    Args:
        before: Its data columns now; None when they do not count.
    """
    if before is None or replaces == WHOLE_TABLE:
        return
    problems = []
    for name, role, is_harmless, harm in _roles(config):
        old, new = _type_of(before, name), _type_of(after, name)
        if old is None or new is None or old.equals(new) or is_harmless(old, new):
            continue
        problems.append(
            f"column {name!r} is {role} column and cannot change from {spark_name(old)} to {spark_name(new)}: {harm}. "
            f"Cast it to {spark_name(old)}, or rebuild the table (in dbt with --full-refresh)"
        )
    if problems:
        raise SchemaError("; ".join(problems))


def _roles(config: TableConfig) -> Iterator[tuple[str, str, _Harmless, str]]:
    """Return columns with what they are, which changes do no harm, and what the others do."""
    for name in config.record_key_fields:
        yield (
            name,
            "a key",
            _keeps_text,
            "keys would have another text, and stored rows would not be found by theirs",
        )
    for field in config.partition_fields:
        # A formatted time is read from the value, and of a text in another way than of a number.
        harmless = _is_wider_integer if field.kind == "timestamp" else _keeps_text
        yield (
            field.name,
            "a partition",
            harmless,
            "its values would name other folders than those of stored rows",
        )
    for name in config.ordering_fields:
        yield name, "an ordering", _compares_alike, "its values would not compare as those of stored rows do"


def _type_of(schema: pa.Schema, name: str) -> pa.DataType | None:
    try:
        return field_type(schema, resolve_field(schema, name))
    except SchemaError:
        return None


def _is_wider_integer(old: pa.DataType, new: pa.DataType) -> bool:
    return bool(pa.types.is_int32(old) and pa.types.is_int64(new))


def _keeps_text(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether a value has the text in the new type that it has in the old one, of types that a column may change to."""
    if pa.types.is_string(new):
        plain = pa.types.is_decimal(old) and old.scale <= _PLAIN_SCALE
        return bool(pa.types.is_integer(old) or pa.types.is_date(old) or plain)
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(old.scale == new.scale)
    return _is_wider_integer(old, new)


def _compares_alike(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether values differ in the new type as they do in the old one, and in the same order."""
    decimals = pa.types.is_decimal(old) and pa.types.is_decimal(new)
    return bool(decimals or (old, new) in _ORDERS_ALIKE)


def check_returning(
    state: TableState, before: pa.Schema | None, after: pa.Schema, replaces: str = NOTHING
) -> None:
    """Refuse a new column whose name older files have in another spelling, or with a type that cannot be read as its own.

    A warning names the other columns that come back, as rows that are not written again show their earlier values.

    Only a write that adds columns looks back, until the newest one that replaced all rows.

    Args:
        before: Its data columns now; None when they do not count.
    """
    if before is None or replaces == WHOLE_TABLE:
        return
    known = set(before.names)
    added = {field.name.lower(): field for field in after if field.name not in known}
    problems, returned = [], set()
    for metadata in since_all_was_replaced(state.timeline) if added else ():
        for field in avro_to_arrow(metadata.schema_json) if metadata.schema_json else ():
            wanted = added.get(field.name.lower())
            problem = None if wanted is None else _problem(field, wanted)
            if problem is not None:
                del added[field.name.lower()]
                problems.append(problem)
            elif wanted is not None:
                returned.add(field.name)
    if problems:
        raise SchemaError(f"{'; '.join(problems)}. Give it another name, or rebuild the table")
    if returned:
        logger.warning(
            "table %s: column %s was dropped before and comes back: rows that are not written again show the values from before. A "
            "new table (--full-refresh) or another name avoids it",
            state.config.name,
            ", ".join(sorted(returned)),
        )


def _problem(dropped: pa.Field, wanted: pa.Field) -> str | None:
    """Say why a column cannot come back; None where it can."""
    if dropped.name != wanted.name:
        return (
            f"column {wanted.name!r} was dropped as {dropped.name!r}, and files written before have its values under that "
            "spelling, in which it may come back"
        )
    if not can_change(dropped.type, wanted.type):
        return (
            f"column {dropped.name!r} was dropped as {dropped.type} and would come back as {wanted.type}, which files "
            "written before cannot be read as"
        )
    if not in_units_of(wanted.type, dropped.type).equals(wanted.type):
        # times in files of older Hudi are read in the unit of the table's schema
        return (
            f"column {dropped.name!r} was dropped with times in another unit, as {dropped.type}, and would come back as "
            f"{wanted.type}, by which the times in files written before could be taken for others"
        )
    return None
