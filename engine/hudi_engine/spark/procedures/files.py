"""Procedures that tell of a table's files."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.format.filegroup.base_file import BaseFile, parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile, parse_log_file
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.procedures.procedure import Call, Row
from hudi_engine.table.inspect.files import check_partition

_SLICE = (
    "partition string, file_id string, base_instant string, data_file string, data_file_size long, "
    "num_delta_files long"
)
SLICES = f"{_SLICE}, total_delta_file_size long, delta_files string"
LATEST_SLICES = (
    f"{_SLICE}, total_delta_file_size long, delta_size_compaction_scheduled long, "
    "delta_size_compaction_unscheduled long, delta_to_base_radio_compaction_scheduled double, "
    "delta_to_base_radio_compaction_unscheduled double, delta_files_compaction_scheduled string, "
    "delta_files_compaction_unscheduled string"
)
SIZES = (
    "commit_time string, min long, `10th` double, `50th` double, avg double, `95th` double, max long, "
    "num_files int, std_dev double"
)
INVALID = "path string"
IN_PARTITION = ("table", "limit", "partition_path")


def show_fsview_all(call: Call) -> list[Row]:
    """Return every committed file slice that is still there, replaced file groups included."""
    return [
        (*_slice(call.state.storage, each), _size(each.log_files), _names(call, each.log_files))
        for each in islice(_view(call).every_slice(), call.number("limit", 10))
    ]


def show_fsview_latest(call: Call) -> list[Row]:
    """Return the newest slice of each live file group; logs behind a planned compaction are told apart."""
    found = _view(call).latest_slices()[: call.number("limit", 10)]
    return [_latest(call, each) for each in found]


def stats_file_sizes(call: Call) -> list[Row]:
    """Return how large the data files on storage are, by the commit in their names and in total."""
    view = _view(call)
    sizes: dict[str, list[int]] = {}
    for partition in view.partitions:
        for status in view.files(partition):
            file = parse_base_file(status.name, partition) or parse_log_file(status.name, partition)
            if file is not None:
                sizes.setdefault(file.instant, []).append(status.size)
    rows = [_spread(instant, sizes[instant]) for instant in sorted(sizes, reverse=True)]
    everything = [size for each in sizes.values() for size in each]
    return [*rows[: call.number("limit", 10)], *([_spread("ALL", everything)] if everything else [])]


def show_invalid_parquet(call: Call) -> list[Row]:
    """Return the base files on storage whose footer cannot be read."""
    view, storage = _view(call), call.state.storage
    paths = [
        status.path
        for partition in view.partitions
        for status in view.files(partition)
        if parse_base_file(status.name, partition) is not None
    ]
    sound = on_threads(lambda path: _is_parquet(storage, path), paths)
    damaged = [storage.uri(path) for path, good in zip(paths, sound) if not good]
    return [(uri,) for uri in damaged[: call.number("limit", 100)]]


def _view(call: Call) -> FileSystemView:
    wanted = call.given.get("partition_path")
    if wanted is None or wanted == "ALL_PARTITIONS":
        return call.state.view()
    view = call.state.view([wanted.strip("/")])
    if not any(view.files(partition) for partition in view.partitions):
        check_partition(wanted.strip("/"), call.state.view().partitions, asked="partition_path")
    return view


def _slice(storage: Storage, piece: FileSlice) -> Row:
    base = piece.base_file
    return (
        piece.partition,
        piece.file_id,
        piece.base_instant,
        "" if base is None else storage.uri(base.path),
        0 if base is None else base.size,
        len(piece.log_files),
    )


def _latest(call: Call, piece: FileSlice) -> Row:
    own = [log for log in piece.log_files if log.instant == piece.base_instant]
    later = [log for log in piece.log_files if log.instant != piece.base_instant]
    base = 0 if piece.base_file is None else piece.base_file.size
    return (
        *_slice(call.state.storage, piece),
        _size(piece.log_files),
        _size(own),
        _size(later),
        _size(own) / base if base else -1.0,
        _size(later) / base if base else -1.0,
        _names(call, own),
        _names(call, later),
    )


def _size(files: Sequence[BaseFile | LogFile]) -> int:
    return sum(file.size for file in files)


def _names(call: Call, files: Sequence[LogFile]) -> str:
    return f"[{', '.join(call.state.storage.uri(file.path) for file in files)}]"


def _spread(name: str, sizes: Sequence[int]) -> Row:
    ordered = sorted(sizes)
    deviation = statistics.stdev(ordered) if len(ordered) > 1 else 0.0
    low, middle, high = _quantiles(ordered)
    return (
        name,
        ordered[0],
        low,
        middle,
        statistics.fmean(ordered),
        high,
        ordered[-1],
        len(ordered),
        deviation,
    )


def _quantiles(ordered: Sequence[int]) -> Iterator[float]:
    """Yield the 10th, 50th and 95th percentile, between two sizes where it falls there, as Hudi's histogram does."""
    for share in (0.1, 0.5, 0.95):
        place = share * (len(ordered) + 1)
        below = min(max(int(place), 1), len(ordered))
        above = min(below + 1, len(ordered))
        part = min(max(place - below, 0.0), 1.0)
        yield ordered[below - 1] + part * (ordered[above - 1] - ordered[below - 1])


def _is_parquet(storage: Storage, path: str) -> bool:
    try:
        with storage.open_input(path) as source:
            pq.read_metadata(source)
    except FileNotFoundError:
        return True  # cleaned since it was listed
    except (pa.ArrowInvalid, OSError):
        return False
    return True
