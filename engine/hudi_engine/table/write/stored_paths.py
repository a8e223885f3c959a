"""Whether the partition paths of a write are those that stored rows have, in tables that another engine made.

Such a table may keep less than its paths were made by: the kinds of its partition fields, the zone of the machine that formatted
its times, a parser of its own. A row whose path comes out otherwise would stand beside the stored row of its key.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timezone
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, HudiError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.enums import KeyGeneratorType
from hudi_engine.format.config.key_generator import partition_kinds
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.keygen.generator import KeyGenerator, build_key_generator, field_values, resolve_field
from hudi_engine.format.keygen.joda.time_zone import clock_of, find_zone, zones_meant
from hudi_engine.format.keygen.timestamp_format import PREFIX, TimestampFormat, zones_that_count
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.lookup.stored_keys import some_stored_rows
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)

_COMMITS_LOOKED_AT, _FILES_READ, _FILES_COMPARED, _ROWS_OF_A_FILE = 20, 6, 3, 1_000
_LARGE_FILE = 16 * 1024 * 1024
_LEAST_APART = 2

_PARSER_KEYS = ("hoodie.keygen.datetime.parser.class", "hoodie.deltastreamer.keygen.datetime.parser.class")
_HUDI_PARSERS = "org.apache.hudi.keygen.parser."


_ROWS_IN_ZONES = 100
"""Of a file, as many that lie elsewhere than their values say and as many that do not."""
_FIXED = [
    f"GMT{sign}{minutes // 60:02d}:{minutes % 60:02d}"
    for minutes in range(15, 14 * 60 + 1, 15)
    for sign in "+-"
]
"""Zones without summer time, those near UTC first."""
_WITH_SUMMER_TIME = (
    "Europe/London", "Europe/Paris", "Europe/Athens", "Europe/Chisinau", "Atlantic/Azores", "Africa/Casablanca",
    "Africa/Cairo", "Asia/Beirut", "Asia/Jerusalem", "Asia/Amman", "Asia/Tehran", "Australia/Adelaide",
    "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Chatham", "America/St_Johns",
    "America/Halifax", "America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles",
    "America/Anchorage", "America/Havana", "America/Mexico_City", "America/Santiago", "America/Asuncion",
    "America/Sao_Paulo",
)  # fmt: skip
"""One zone of each clock that was turned within the last years."""


def check_stored_paths(state: TableState, options: Options) -> None:
    """Refuse a write whose rows would not lie where rows with the same values are; one small file is read where they would.

    Nothing is read of tables whose paths are the values of their partition columns, and of those of this engine whose zone can mean
    one thing only. Single rows may lie elsewhere than their values say, as a change of the value leaves them there, so that most of
    them have to, or several, and one zone has to say where all rows lie.

    Args:
        options: Options of the write and of the table.

    Raises:
        ConfigError: It names a stored path, the one that the write would give, and the settings to give.
    """
    config = state.config
    if config.drop_partition_columns or not _formats_times(config):
        return
    in_doubt = zones_in_doubt(config)
    if config.is_of_this_engine and not in_doubt:
        return
    generator = build_key_generator(config, options=options)
    found = _files_with_others(state, generator, looks_at_all=bool(in_doubt))
    elsewhere = sum(pc.sum(each.others).as_py() for each in found)
    if not elsewhere:
        return
    few = 2 * elsewhere < sum(each.rows.num_rows for each in found)
    zone = ""
    if not few or in_doubt or elsewhere >= _LEAST_APART:
        zone = fitting_zone(generator, found, config)
    if few and not zone and not _has_own_parser(config):
        logger.debug("%d row(s) of table %s lie elsewhere than their values say", elsewhere, config.name)
        return
    shown = next(each for each in found if pc.any(each.others).as_py())
    raise ConfigError(_told(config, generator, shown, zone))


def _files_with_others(state: TableState, generator: KeyGenerator, *, looks_at_all: bool) -> list[Compared]:
    """Return rows of the newest file and, where some of them would lie elsewhere or all are wanted, of others."""
    files = _compared(state, generator)
    found = list(islice(files, 1))
    if found and (looks_at_all or pc.any(found[0].others).as_py()):
        found += islice(files, _FILES_COMPARED - 1)
    return found


def _formats_times(config: TableConfig) -> bool:
    """Tell whether paths may hold formatted times: where the kinds are not kept, any field may be one."""
    if config.key_generator is KeyGeneratorType.CUSTOM:
        kinds = partition_kinds(config.properties).values()
        return not kinds or "timestamp" in kinds
    return config.key_generator is KeyGeneratorType.TIMESTAMP


def _has_own_parser(config: TableConfig) -> bool:
    """Tell whether the table names a parser of dates that is none of Hudi's."""
    return any(
        not config.properties.get(key, _HUDI_PARSERS).startswith(_HUDI_PARSERS) for key in _PARSER_KEYS
    )


def _compared(state: TableState, generator: KeyGenerator) -> Iterator[Compared]:
    """Yield rows of the newest files of several partitions with their paths; a file that tells nothing is passed over."""
    read = read_context(state.storage, state.config, state.timeline)
    names = [name for name, _ in generator.partition_fields]
    seen: set[str] = set()
    others = (each for each in _newest_files(state) if each.partition not in seen)
    for each in islice(others, _FILES_READ):
        try:
            columns = list(dict.fromkeys(resolve_field(read.schema, name)[0] for name in names))
            rows = _with_all_values(some_stored_rows(read, each, columns, _ROWS_OF_A_FILE), names)
            paths = generator.partition_paths(rows)
        except HudiError as error:  # what it says of stored rows is no concern of the rows to write
            logger.debug("the paths of stored rows in %s are not compared: %s", each.paths, error)
            continue
        if rows.num_rows:
            seen.add(each.partition)
            yield Compared(each.partition, rows, paths)


def _with_all_values(rows: pa.Table, names: list[str]) -> pa.Table:
    """Return the rows that have a value in each partition field: null has a path of its own, which says little."""
    for name in names:
        rows = rows.filter(pc.is_valid(field_values(rows, name)))
    return rows


def _newest_files(state: TableState) -> Iterator[FileSlice]:
    """Yield files of the newest writes that have rows: of each the one with the most, without listing a folder."""
    writes = state.timeline.completed_writes[-_COMMITS_LOOKED_AT:]
    for instant in reversed(writes):
        stats = [each for _, each in state.timeline.commit_metadata(instant).write_stats() if each.path]
        for stat in sorted(stats, key=_telling):
            found = _slice_of(stat)
            if found is not None:
                yield found


def _telling(stat: WriteStat) -> tuple[bool, bool, int]:
    """Order files: base files before logs, what is read quickly before large ones, many rows before few."""
    return stat.is_log_file, (stat.file_size_in_bytes or 0) > _LARGE_FILE, -(stat.num_writes or 0)


def _slice_of(stat: WriteStat) -> FileSlice | None:
    """Return a written file, or the base file below a log, as far as its name says what it is."""
    partition, path = stat.partition_path or "", stat.path or ""
    base = parse_base_file((stat.base_file or "") if stat.is_log_file else path, partition)
    if base is not None:
        return FileSlice(partition, base.file_id, base.instant, base)
    log = parse_log_file(path, partition)
    if log is None or (stat.file_size_in_bytes or 0) > _LARGE_FILE:
        return None
    return FileSlice(partition, log.file_id, log.instant, log_files=(log,))


def _told(config: TableConfig, generator: KeyGenerator, compared: Compared, zone: str) -> str:
    """Say where a stored row lies and would lie, by which settings, and what to give."""
    place = pc.index(compared.others, True).as_py()
    held = {name: field_values(compared.rows, name) for name, _ in generator.partition_fields}
    values = ", ".join(f"{name}={array[place].as_py()!r}" for name, array in held.items())
    kinds = ",".join(f"{name}:{kind}" for name, kind in generator.partition_fields)
    times = generator.timestamp_format
    settings = [f"the kinds of partition_by ({kinds})"]
    if times is not None:
        settings += [
            f"{PREFIX}timestamp.type ({times.timestamp_type or 'not set'})",
            f"{PREFIX}output.dateformat ({times.output_format})",
            f"{PREFIX}output.timezone ({times.output_timezone or 'not set'})",
            f"{PREFIX}input.timezone ({times.input_timezone or 'not set'})",
        ]
    if any(pa.types.is_timestamp(array.type) for array in held.values()):
        settings.append(
            f"{TableOptions.CONSISTENT_TIMESTAMPS.key} ({str(generator.consistent_logical_timestamp).lower()})"
        )
    maker = "" if config.is_of_this_engine else ", which another engine made,"
    return (
        f"stored rows of table {config.name!r}{maker} lie in {compared.partition!r}, and by the settings of "
        f"this write a row with their values ({values}) would lie in {compared.paths[place].as_py()!r}, beside the stored row of "
        f"its key. It is decided by {', '.join(settings)}. {_next_step(config, list(held), zone)}; nothing was written"
    )


def _next_step(config: TableConfig, names: list[str], zone: str) -> str:
    key, _, _ = zone.partition("=")
    if key.removeprefix(PREFIX) in zones_in_doubt(config):
        return f"The stored rows fit {zone}: give that"
    if zone:
        return (
            f"The stored rows fit {zone}: give the zone of the machine that wrote them by its name, as an offset tells nothing of "
            f"summer time; where all lie in UTC but for some whose time was changed, {key}=UTC"
        )
    if config.key_generator is KeyGeneratorType.CUSTOM and not partition_kinds(config.properties):
        example = ",".join([*(f"{name}:simple" for name in names[:-1]), f"{names[-1]}:timestamp"])
        return (
            f"Give the options that the rows were written with: hoodie.datasource.write.partitionpath.field with the kind of each "
            f"field (in dbt partition_by), such as {example}, and for times {PREFIX}timestamp.type and {PREFIX}output.dateformat"
        )
    return (
        f"Give the {PREFIX}* options that the rows were written with; where they were made by a parser of dates of their own, "
        "write to the table with the engine that has it"
    )


@dataclass(frozen=True)
class Compared:
    """Rows of one file.

    Args:
        paths: Partition path of each by the settings of the write.
    """

    partition: str
    rows: pa.Table
    paths: pa.Array

    @property
    def others(self) -> pa.Array:
        """Which rows would lie elsewhere."""
        return pc.not_equal(self.paths, self.partition)


def fitting_zone(generator: KeyGenerator, found: Sequence[Compared], config: TableConfig) -> str:
    """Return the setting of a zone by which the rows of all files lie where they are, as ``key=value``; "" when there is none.

    Args:
        generator: Makes the paths by the settings of the write.
        config: The table; where it says a zone that readers take for different ones, those are tried.
    """
    times = generator.timestamp_format
    if times is None:
        return ""
    samples = _samples(found)
    has_texts = _has_texts(generator, found[0].rows)
    for name, zone in _other_zones(times, config, of_texts=has_texts):
        moved = replace(generator, timestamp_format=_with_zone(times, name, zone))
        if all(_lie_there(moved, rows, partition) for partition, rows in samples):
            return f"{PREFIX}{name}={zone}"
    return ""


def _lie_there(generator: KeyGenerator, rows: pa.Table, partition: str) -> bool:
    try:
        return bool(pc.all(pc.equal(generator.partition_paths(rows), partition)).as_py())
    except HudiError:  # a time that a clock which was turned forward does not show
        return False


def _samples(found: Sequence[Compared]) -> list[tuple[str, pa.Table]]:
    """Return some rows of each file with their partition path: first those that lie elsewhere, which few zones explain."""
    masks = [(each, each.others) for each in found] + [(each, pc.invert(each.others)) for each in found]
    samples = [(each.partition, each.rows.filter(mask).slice(0, _ROWS_IN_ZONES)) for each, mask in masks]
    return [(partition, rows) for partition, rows in samples if rows.num_rows]


def zones_in_doubt(config: TableConfig) -> Mapping[str, str]:
    """Return the zones that a table says and that readers take for different ones, by the names of their settings."""
    return {
        name: zone for name, zone in zones_that_count(config.timestamp_keygen).items() if zones_meant(zone)
    }


def _has_texts(generator: KeyGenerator, rows: pa.Table) -> bool:
    """Tell whether times are texts: the zone that they come in means nothing for numbers."""
    times = [name for name, kind in generator.partition_fields if kind == "timestamp"]
    return any(pa.types.is_string(field_values(rows, name).type) for name in times)


def _other_zones(times: TimestampFormat, config: TableConfig, *, of_texts: bool) -> Iterator[tuple[str, str]]:
    """Yield settings of zones that may have been meant: of texts as they come and of what is written, in the likely order."""
    for name, zone in zones_in_doubt(config).items():
        yield from ((name, meant) for meant in zones_meant(zone))
    written_in = zones_that_count(config.timestamp_keygen).keys() & {"output.timezone", "timezone"}
    if of_texts and not times.input_timezone:
        yield "input.timezone", "UTC"
        name = "input.timezone" if times.output_timezone else "output.timezone"
        yield from ((name, zone) for zone in (*_FIXED, *_WITH_SUMMER_TIME))
    elif not times.output_timezone:
        yield from (("output.timezone", zone) for zone in (*_FIXED, *_WITH_SUMMER_TIME))
    elif not of_texts and not written_in:
        yield from (("output.timezone", zone) for zone in _turned(times.output_timezone))


def _with_zone(times: TimestampFormat, name: str, zone: str) -> TimestampFormat:
    read_in = times.input_timezone if name == "output.timezone" else zone
    written_in = times.output_timezone if name == "input.timezone" else zone
    return replace(times, input_timezone=read_in, output_timezone=written_in)


def _turned(given: str) -> list[str]:
    """Return the zones with summer time that have a given offset for a part of the year; none of UTC and of names."""
    zone = find_zone(given)
    if zone is timezone.utc or not isinstance(zone, timezone):
        return []
    return [each for each in _WITH_SUMMER_TIME if zone.utcoffset(None) in clock_of(find_zone(each))]
