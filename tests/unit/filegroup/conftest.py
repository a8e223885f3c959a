"""A table folder that a few words fill with a timeline and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.partition_metadata import ensure_partition_metadata
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata

LAYOUTS = {6: "1", 9: "2"}


class Table:
    """Builds files; instants are the short numbers given, padded to 17 digits."""

    def __init__(self, base: Path, version: int = 6, *, partitioned: bool = False) -> None:
        self.storage = LocalStorage(str(base))
        self.config = TableConfig.from_properties(
            {
                "hoodie.table.name": "t",
                "hoodie.table.type": "MERGE_ON_READ",
                "hoodie.table.version": str(version),
                "hoodie.timeline.layout.version": LAYOUTS[version],
                "hoodie.table.partition.fields": "p" if partitioned else "",
            }
        )

    def instants(self, *names: str, bodies: Mapping[str, bytes] | None = None, **more: Any) -> None:
        """Create timeline files such as ``1.deltacommit`` or, in layout 2, ``1_2.commit``."""
        empty = CommitMetadata(**more).to_json()
        for name in names:
            times, _, rest = name.partition(".")
            padded = "_".join(time.zfill(17) for time in times.split("_"))
            body = (bodies or {}).get(name, empty if not name.endswith(("requested", "inflight")) else b"")
            self.storage.create(f"{self.config.timeline_path}/{padded}.{rest}", body)

    def files(self, *names: str, partition: str = "") -> None:
        """Create empty files: ``f@1`` is a base file, ``f@1.log.2`` a log file, ``f@1.log.2.cdc`` change
        data.
        """
        ensure_partition_metadata(self.storage, partition, "0" * 17)
        for name in names:
            path = name if "@" not in name else hudi_name(name)
            self.storage.create(f"{partition}/{path}" if partition else path, b"x" * 10)

    def view(self, *, as_of: str | None = None, partitions: Sequence[str] | None = None) -> FileSystemView:
        """The view, as of a short instant if given."""
        timeline = Timeline.load(self.storage, self.config)
        moment = None if as_of is None else as_of.zfill(17)
        return FileSystemView.build(self.storage, self.config, timeline, as_of=moment, partitions=partitions)

    def latest(self, *, as_of: str | None = None) -> dict[str, list[str]]:
        """File group -> files of its newest slice, in the short form of files()."""
        return {each.file_id: short_names(each) for each in self.view(as_of=as_of).latest_slices()}

    def history(self, file_id: str, partition: str = "") -> list[list[str]]:
        """Files of every slice of a group, newest slice first."""
        return [short_names(each) for each in self.view().all_slices(partition)[file_id]]


def hudi_name(short: str) -> str:
    """``f@1`` -> ``f_0-1-2_0…01.parquet``; ``f@1.log.2~3-3-3`` names another write token."""
    short, _, token = short.partition("~")
    file_id, _, rest = short.partition("@")
    instant, _, log = rest.partition(".")
    token = token or "0-1-2"
    if not log:
        return f"{file_id}_{token}_{instant.zfill(17)}.parquet"
    log, cdc = (log[: -len(".cdc")], ".cdc") if log.endswith(".cdc") else (log, "")
    return f".{file_id}_{instant.zfill(17)}.{log}_{token}{cdc}"


def short_names(each: Any) -> list[str]:
    base = [each.base_file] if each.base_file is not None else []
    found = [f"{file.file_id}@{file.instant.lstrip('0')}" for file in base]
    for log in each.log_files + each.cdc_files:
        found.append(
            f"{log.file_id}@{log.instant.lstrip('0')}.log.{log.version}{'.cdc' if log.is_cdc else ''}"
        )
    return found


@pytest.fixture
def v6(tmp_path: Path) -> Table:
    return Table(tmp_path)


@pytest.fixture
def v9(tmp_path: Path) -> Table:
    return Table(tmp_path, 9)


@pytest.fixture
def partitioned(tmp_path: Path) -> Table:
    return Table(tmp_path, partitioned=True)
