"""Writing the archived timeline of layout 2: an LSM tree of Parquet files, one row an instant, named by a manifest.

A data file ``<first>_<last>_<level>.parquet`` counts once ``manifest_<version>`` names it and ``_version_`` names the manifest,
so an archive run that is killed leaves a file that is never read. Full levels are merged into the next one (Hudi timeline
specification, ``LSMTimelineWriter``). The caller holds the table's lock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.archived import read_history_file, read_manifest
from hudi_engine.format.timeline.schemas import LSM_INSTANT

BATCH = 10
"""Files of a level that are merged into one of the next level (``hoodie.timeline.compaction.batch.size``)."""
_KEPT_MANIFESTS = 3
_NAME = re.compile(r"(\d+)_(\d+)_(\d)\.parquet")
_COLUMNS = pa.schema(
    [
        ("instantTime", pa.string()),
        ("completionTime", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)


class ArchivedInstant(NamedTuple):
    """One row of the history.

    Args:
        action: Action of the completed file.
        metadata: What the completed file holds.
        plan: What the requested file holds; None where it is empty.
    """

    requested_time: str
    completion_time: str
    action: str
    metadata: bytes
    plan: bytes | None


class History:
    """The history of a table, as of the manifest that counts now.

    Args:
        folder: Archive folder, relative to the base path.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._version, self._sizes = read_manifest(storage, folder)

    @property
    def paths(self) -> list[str]:
        """Paths of the files that make the history up: data files, manifest and version."""
        names = [*self._sizes, f"manifest_{self._version}", "_version_"] if self._version else []
        return [f"{self._folder}/{name}" for name in names]

    def instants_since(self, oldest: str = "") -> set[tuple[str, str]]:
        """Return requested time and action of the instants in files that reach to ``oldest`` or beyond."""
        found: set[tuple[str, str]] = set()
        for name in self._sizes:
            if _last(name) >= oldest:
                rows = self._read(name, ["instantTime", "action"])
                found.update(zip(*(rows[column].to_pylist() for column in rows.column_names), strict=True))
        return found

    def rows(self) -> Iterator[ArchivedInstant]:
        """Yield all instants, oldest first."""
        for name in sorted(self._sizes):
            for row in self._read(name, _COLUMNS.names[:5]).to_pylist():
                yield ArchivedInstant(*row.values())

    def add(self, instants: Sequence[ArchivedInstant]) -> str:
        """Add instants, one or more; return the path of the file that holds them."""
        ordered = sorted(instants)
        rows = [pa.array(values) for values in zip(*ordered, strict=True)]
        arrays = [
            *(each.cast(field.type) for each, field in zip(rows, _COLUMNS, strict=False)),
            pa.array([1] * len(ordered), pa.int32()),
        ]
        table = pa.Table.from_arrays(arrays, schema=_COLUMNS)
        name = self._write(table, level=0)
        self._publish({**self._sizes, name: self._size(name)})
        return f"{self._folder}/{name}"

    def merge_full_levels(self) -> int:
        """Merge the oldest files of each level that has ten or more; return how many files went into others."""
        merged = 0
        for level in range(9):
            files = sorted(name for name in self._sizes if _level(name) == level)[:BATCH]
            if len(files) < BATCH:
                break
            rows = pa.concat_tables([self._read(name, _COLUMNS.names) for name in files])
            name = self._write(rows.sort_by("instantTime").cast(_COLUMNS), level=level + 1)
            left = {kept: size for kept, size in self._sizes.items() if kept not in files}
            self._publish({**left, name: self._size(name)})
            merged += len(files)
        if merged:
            self._drop_old_manifests()
        return merged

    def _read(self, name: str, columns: list[str]) -> pa.Table:
        return read_history_file(self._storage, f"{self._folder}/{name}", columns)

    def _write(self, table: pa.Table, *, level: int) -> str:
        times = table["instantTime"]
        name = f"{times[0].as_py()}_{times[-1].as_py()}_{level}.parquet"
        table = table.replace_schema_metadata(
            {"parquet.avro.schema": json.dumps(LSM_INSTANT), "writer.model.name": "avro"}
        )
        sink = pa.BufferOutputStream()
        pq.write_table(
            table, sink, compression="gzip", row_group_size=max(1, table.num_rows), store_schema=True
        )
        # A file of this name that no manifest names is what a killed archiving left.
        self._storage.replace(f"{self._folder}/{name}", sink.getvalue().to_pybytes())
        return name

    def _size(self, name: str) -> int:
        status = self._storage.stat(f"{self._folder}/{name}")
        assert status is not None
        return status.size

    def _publish(self, sizes: dict[str, int]) -> None:
        """Write the next manifest and make it the one that counts."""
        self._version += 1
        files = [{"fileName": name, "fileLen": size} for name, size in sorted(sizes.items())]
        self._storage.replace(
            f"{self._folder}/manifest_{self._version}", json.dumps({"files": files}, indent=2).encode()
        )
        self._storage.replace(f"{self._folder}/_version_", str(self._version).encode())
        self._sizes = sizes

    def _drop_old_manifests(self) -> None:
        """Remove manifests but the newest, and the files that none of those names; readers may be at those."""
        found = {status.name: status.path for status in self._storage.list(self._folder) if not status.is_dir}
        kept: set[str] = set()
        for name, path in found.items():
            number = name.removeprefix("manifest_")
            if number == name or not number.isdecimal():
                continue
            if int(number) > self._version - _KEPT_MANIFESTS:
                entries: Iterable[dict[str, str]] = json.loads(self._storage.read(path))["files"]
                kept.update(entry["fileName"] for entry in entries)
            else:
                self._storage.remove(path)
        for name, path in found.items():
            if _NAME.fullmatch(name) and name not in kept:
                self._storage.remove(path)


def _level(name: str) -> int:
    match = _NAME.fullmatch(name)
    return int(match[3]) if match else -1


def _last(name: str) -> str:
    match = _NAME.fullmatch(name)
    return match[2] if match else "9"
