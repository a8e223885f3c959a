"""Hudi's procedures about the metadata table: partitions, files, sizes and column statistics, as it has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.layout.layout import split_names
from hudi_engine.format.metadata.keys import hashed
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.format.metadata.table import MetadataTable
from hudi_engine.table.inspect.files import check_partition
from hudi_engine.table.operations import table_operations
from hudi_engine.table.operations.operation import Call, Row, procedure
from hudi_engine.table.services.indexing import index_facts

_STATS = MetadataPartition.COLUMN_STATS.value


@procedure("partition string")
def show_metadata_table_partitions(call: Call) -> list[Row]:
    """Return the partitions of the table by its metadata table."""
    return [(name,) for name in _metadata(call).table_partitions()]


@procedure("index_name string, index_type string, col_name string", changes=True)
def run_indexing(
    call: Call,
    index: table_operations.Index,
    columns: tuple[str, ...] | None = None,
    expression: str | None = None,
) -> list[Row]:
    """Build an index of the metadata table, and return all that the table has then; Hudi has this as HoodieIndexer."""
    table_operations.create_index.execute(call, index=index, columns=columns, expression=expression)
    config = TableConfig.load(call.services.storage)
    return [*index_facts(call.services.storage, config)]


@procedure("file_path string")
def show_metadata_table_files(call: Call, partition: str = "", limit: int = 100) -> list[Row]:
    """Return the files of one partition by the metadata table."""
    metadata, wanted = _metadata(call), partition.strip("/")
    check_partition(wanted, metadata.table_partitions())
    return [(each.name,) for each in metadata.table_files([wanted])[wanted][:limit]]


@procedure("stat_key string, stat_value string")
def show_metadata_table_stats(call: Call) -> list[Row]:
    """Return number and bytes of the files of each partition of the metadata table."""
    metadata = _metadata(call)
    rows: list[Row] = [("partitionCount", str(len(metadata.partitions)))]
    for name in sorted(metadata.partitions):
        groups = metadata.groups(name)
        bases = [each.base_file.size for each in groups if each.base_file is not None]
        logs = [log.size for each in groups for log in each.log_files]
        rows += [
            (f"{name}.totalBaseFileSizeInBytes", str(sum(bases))),
            (f"{name}.totalLogFileSizeInBytes", str(sum(logs))),
            (f"{name}.baseFileCount", str(len(bases))),
            (f"{name}.logFileCount", str(len(logs))),
        ]
    return rows


@procedure(
    "file_name string, column_name string, min_value string, max_value string, null_number long",
)
def show_metadata_table_column_stats(
    call: Call, partition: str = "", targetcolumns: str = "", limit: int = 100
) -> list[Row]:
    """Return the column statistics of the newest base files."""
    rows = [
        (each["fileName"], each["columnName"], *_texts(each), each["nullCount"])
        for _, each in _statistics(call, split_names(partition), split_names(targetcolumns))
    ]
    return sorted(rows, key=lambda row: (row[1], row[0]))[:limit]


@procedure(
    "`Partition path` string, `Field name` string, `Average overlap` double, `Maximum file overlap` int, "
    "`Total file number` int, `50% overlap` int, `75% overlap` int, `95% overlap` int, `99% overlap` int, `Total value number` int"
)
def show_metadata_column_stats_overlap(call: Call, partition: str = "", targetcolumns: str = "") -> list[Row]:
    """Return how many base files of a partition hold a value of a column: few where the files are clustered by it."""
    ends: dict[tuple[str, str], list[tuple[Any, int]]] = {}
    files: dict[str, set[str]] = {}
    for place, each in _statistics(call, split_names(partition), split_names(targetcolumns)):
        files.setdefault(place, set()).add(each["fileName"])
        if each["minValue"] is not None and each["maxValue"] is not None:
            found = ends.setdefault((place, each["columnName"]), [])
            found += [(each["minValue"][1]["value"], 0), (each["maxValue"][1]["value"], 1)]
    rows = [(*name, *_overlap(found, len(files[name[0]]))) for name, found in ends.items()]
    return sorted(rows, key=lambda row: (row[1], row[2], row[0]))


def _overlap(ends: list[tuple[Any, int]], files: int) -> tuple[Any, ...]:
    """Return average and maximum of how many ranges are open at the ends of ranges, the number of files, and percentiles."""
    counts: dict[Any, int] = {}
    most = now = 0
    for value, is_end in sorted(ends):
        if is_end:
            counts.setdefault(value, now)
            now -= 1
        else:
            now += 1
            counts[value] = now
            most = max(most, now)
    ordered = sorted(counts.values())
    shares = [ordered[int(share / 100 * (len(ordered) - 1))] for share in (50, 75, 95, 99)]
    return sum(ordered) / len(ordered), most, files, *shares, len(ordered)


def _statistics(
    call: Call, partitions: tuple[str, ...], columns: tuple[str, ...]
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield the statistics of the newest base files with their partition; of all columns and partitions if none is named."""
    metadata, state = _metadata(call), call.state
    if _STATS not in metadata.partitions:
        raise ConfigError(
            f"the metadata table has no column statistics; it has {', '.join(sorted(metadata.partitions))}"
        )
    known = metadata.table_partitions()
    for each in partitions:
        check_partition(each, known)
    files = metadata.table_files(partitions or known)
    view = FileSystemView.build(state.storage, state.config, state.timeline, files=files)
    newest = {each.name: each.partition for each in view.latest_base_files()}
    records = (
        metadata.with_prefix(_STATS, [hashed(column) for column in columns])
        if columns
        else metadata.records(_STATS)
    )
    for _, record in records:
        found = record["ColumnStatsMetadata"]
        if found["fileName"] in newest:
            yield newest[found["fileName"]], found


def _texts(found: Mapping[str, Any]) -> tuple[str, str]:
    low, high = (_text(found[each]) for each in ("minValue", "maxValue"))
    return low, high


def _text(wrapped: Any) -> str:
    """Return a value as Java writes it."""
    value = wrapped and wrapped[1]["value"]
    if isinstance(value, bytes):
        return str([each - 256 if each > 127 else each for each in value])
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _metadata(call: Call) -> MetadataTable:
    state = call.state
    found = MetadataTable.open(state.storage, state.config, state.timeline)
    if found is None:
        raise ConfigError(
            f"table {state.config.name!r} has no metadata table (hoodie.table.metadata.partitions is empty)"
        )
    return found
